//! Sends the messages of a session over whatever transport it has.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
};
use tokio::sync::watch;

use super::http_session::HttpSession;
use crate::transport::{Authorization, Outgoing, ResponseHead, WireError};

/// Where the messages of a session go. Clones send to the same place.
#[derive(Clone)]
pub(crate) enum MessageSender {
    /// Frames of a connection that flow freely both ways.
    Frames(Outgoing),
    /// Each message is a POST.
    Http(Arc<HttpSession>),
}

/// A message that is being sent.
pub(crate) struct Sending {
    /// Ends when the message is written, over HTTP when its response has ended, with the message in its body.
    pub(crate) sent: BoxFuture<'static, Result<Option<Bytes>, WireError>>,
    /// The head of the HTTP response.
    pub(crate) head: Option<watch::Receiver<Option<ResponseHead>>>,
}

impl MessageSender {
    /// Sends a message with this method, or an answer. The call, not the first poll, decides its place among the messages.
    pub(crate) fn send(&self, method: Option<&str>, bytes: Bytes) -> Sending {
        match self {
            MessageSender::Frames(outgoing) => {
                Sending { sent: outgoing.send(bytes).map(|sent| sent.map(|_| None)).boxed(), head: None }
            }
            MessageSender::Http(session) => match session.begin_post(bytes, &[], Authorization::Negotiated) {
                Ok(exchange) => {
                    let head = Some(exchange.head_receiver());
                    let (session, method) = (session.clone(), method.map(str::to_owned));
                    let sent = async move { session.finish_post(method.as_deref(), exchange).await };
                    Sending { sent: sent.boxed(), head }
                }
                Err(error) => Sending { sent: ready(Err(error)).boxed(), head: None },
            },
        }
    }

    /// The HTTP side of the session, if it has one.
    pub(crate) fn http(&self) -> Option<&Arc<HttpSession>> {
        match self {
            MessageSender::Frames(_) => None,
            MessageSender::Http(session) => Some(session),
        }
    }
}
