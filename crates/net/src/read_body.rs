//! Reads whole HTTP bodies.

use std::{pin::pin, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError<E> {
    /// It is too long.
    #[error("a body of more than {0} bytes")]
    TooLong(usize),
    /// Nothing came for this time.
    #[error("no data of the body came for {0:?}")]
    Stalled(Duration),
    /// The connection broke.
    #[error("{0}")]
    Broken(E),
}

/// Reads a body up to a limit of bytes. One that comes in one piece is not copied.
///
/// # Errors
/// It is longer, or breaks off.
pub async fn read_body<B: Body<Data = Bytes>>(body: B, limit: usize) -> Result<Bytes, BodyError<B::Error>> {
    read(body, limit, None).await
}

/// As [`read_body`], and a body of which nothing comes for this time is an error.
///
/// # Errors
/// It is longer, breaks off or stalls.
pub async fn read_live_body<B: Body<Data = Bytes>>(
    body: B,
    limit: usize,
    patience: Duration,
) -> Result<Bytes, BodyError<B::Error>> {
    read(body, limit, Some(patience)).await
}

async fn read<B: Body<Data = Bytes>>(
    body: B,
    limit: usize,
    patience: Option<Duration>,
) -> Result<Bytes, BodyError<B::Error>> {
    let mut body = pin!(body);
    let (mut first, mut joined) = (Bytes::new(), BytesMut::new());
    loop {
        let next = match patience {
            None => body.frame().await,
            Some(patience) => {
                tokio::time::timeout(patience, body.frame()).await.map_err(|_| BodyError::Stalled(patience))?
            }
        };
        let Some(frame) = next else { break };
        // Trailers are of no interest.
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
        if first.len().max(joined.len()) + data.len() > limit {
            return Err(BodyError::TooLong(limit));
        }
        if first.is_empty() {
            first = data;
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&first);
        }
        joined.extend_from_slice(&data);
    }
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt, stream};

    use super::*;

    fn body(chunks: &'static [&'static str]) -> crate::Body {
        crate::Body::stream(stream::iter(chunks).map(|chunk| Bytes::from_static(chunk.as_bytes())))
    }

    #[tokio::test]
    async fn a_body_is_joined_and_refused_as_soon_as_it_is_too_long() {
        for (chunks, expected) in [
            (&[][..], Some("")),
            (&["abc"], Some("abc")),
            (&["a", "", "b", "c"], Some("abc")),
            (&["a", "bcd"], None),
            (&["abcd"], None),
        ] {
            let read: Result<Bytes, BodyError<Infallible>> = read_body(body(chunks), 3).await;
            let read = read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            assert_eq!(read.ok().as_deref(), expected, "{chunks:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_which_nothing_comes_is_an_error() {
        let stalled = crate::Body::stream(stream::once(async { Bytes::from_static(b"a") }).chain(stream::pending()));
        let read = read_live_body(stalled, 3, Duration::from_secs(9)).await;
        assert!(matches!(read, Err(BodyError::Stalled(_))), "{read:?}");
    }
}
