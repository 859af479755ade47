//! Response bodies: whole, or a stream of server-sent events.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};

/// A response body.
pub enum Body {
    /// The whole body.
    Whole(Option<Bytes>),
    /// Dropped when the client closes the connection. The length is the value of `Content-Length`.
    Stream(Option<u64>, Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// A body of these bytes.
    pub fn whole(bytes: impl Into<Bytes>) -> Body {
        let bytes = bytes.into();
        Body::Whole((!bytes.is_empty()).then_some(bytes))
    }

    /// A body of these chunks.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Body {
        Body::Stream(None, Box::pin(stream))
    }

    /// A body with this `Content-Length`, even if the stream has another length.
    pub fn stream_with_length(length: usize, stream: impl Stream<Item = Bytes> + Send + 'static) -> Body {
        Body::Stream(Some(length as u64), Box::pin(stream))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stream(_, stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Stream(length, _) => length.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Whole(bytes) => f.debug_tuple("Whole").field(bytes).finish(),
            Body::Stream(..) => f.write_str("Stream"),
        }
    }
}
