//! Raw frames, which rmcp would never send.

use bytes::Bytes;

use super::{
    HeaderChange, LinkError,
    duplex::Outgoing,
    http::{HttpClient, RawResponse},
};

/// Sends raw frames on the connection of a session.
#[derive(Clone)]
pub(crate) enum RawSender {
    /// Over anything but streamable HTTP; frames that come back arrive through the session.
    Duplex(Box<Outgoing>),
    /// Each frame is a POST of its own; frames that come back are in its response.
    Http(HttpClient),
}

/// A raw frame that has been sent.
pub(crate) struct SentFrame {
    /// The HTTP status, on transports that have one.
    pub status: Option<u16>,
    /// The body of a refused POST.
    pub(crate) body: Bytes,
    pub(crate) answer: Option<RawResponse>,
}

impl RawSender {
    /// Whether the server no longer knows the session.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, RawSender::Http(client) if client.is_lost())
    }

    /// Sends and records the bytes as one frame. The headers are used by streamable HTTP only.
    ///
    /// # Errors
    /// The bytes could not be sent. An HTTP status is never an error here.
    pub(crate) async fn send(&self, bytes: Bytes, headers: &[HeaderChange]) -> Result<SentFrame, LinkError> {
        match self {
            RawSender::Duplex(outgoing) => match outgoing.send(bytes).await {
                Ok(status) => Ok(SentFrame { status, body: Bytes::new(), answer: None }),
                Err(LinkError::Status { status, body }) => {
                    Ok(SentFrame { status: Some(status), body: body.into(), answer: None })
                }
                Err(error) => Err(error),
            },
            RawSender::Http(client) => {
                let answer = client.post_raw(bytes, headers).await?;
                Ok(SentFrame { status: Some(answer.status()), body: Bytes::new(), answer: Some(answer) })
            }
        }
    }
}
