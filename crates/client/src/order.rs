//! Answers the requests of a server in their order.
//!
//! rmcp handles each request in a task of its own, and tasks do not start in order. So the transport attaches a ticket
//! to each request before rmcp sees it, and its answer starts after that of the request before. The transport also
//! counts the requests, because rmcp has no limit for them.

use std::{mem::replace, pin::pin, sync::Arc, task::Poll};

use futures_util::poll;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage, ServerRequest},
    transport::Transport,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::backlog::Backlog;

/// A transport that attaches a ticket to each request, and reads nothing while too many are open.
pub(super) struct OrderedTransport<T> {
    transport: T,
    /// Cancelled when the work of the last ticket has started.
    last: CancellationToken,
    backlog: Backlog,
    /// Whether the client has sent `initialize`.
    has_handshake: bool,
}

/// The position of a request in the queue; the next one starts when all clones are dropped.
#[derive(Clone)]
pub(super) struct QueueTicket {
    before: CancellationToken,
    _next: Arc<DropGuard>,
}

impl<T> OrderedTransport<T> {
    pub(super) fn new(transport: T) -> OrderedTransport<T> {
        let last = CancellationToken::new();
        last.cancel();
        OrderedTransport { transport, last, backlog: Backlog::new(), has_handshake: false }
    }

    fn issue_ticket(&mut self) -> QueueTicket {
        let next = CancellationToken::new();
        QueueTicket { before: replace(&mut self.last, next.clone()), _next: Arc::new(next.drop_guard()) }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for OrderedTransport<T> {
    type Error = T::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let request = if let JsonRpcMessage::Request(sent) = &item { Some(&sent.request) } else { None };
        self.has_handshake |= matches!(request, Some(ClientRequest::InitializeRequest(_)));
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let open = is_answer.then(|| self.backlog.open());
        let sending = self.transport.send(item);
        async move {
            let _until_it_is_written = open;
            sending.await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.backlog.wait_for_room().await;
        let mut message = self.transport.receive().await?;
        // Without a handshake, servers send no requests and clients no responses (2026-07-28, Transports: Messages).
        while !self.has_handshake && matches!(message, JsonRpcMessage::Request(_)) {
            message = self.transport.receive().await?;
        }
        if let JsonRpcMessage::Request(asked) = &mut message {
            asked.request.extensions_mut().insert(self.backlog.open());
            if !matches!(asked.request, ServerRequest::PingRequest(_)) {
                let ticket = self.issue_ticket();
                asked.request.extensions_mut().insert(ticket);
            }
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.transport.close()
    }
}

impl QueueTicket {
    /// Starts the work after that of the ticket before. The first poll decides the order of whatever the work queues
    /// for.
    pub(super) async fn run_in_turn<T>(self, work: impl Future<Output = T>) -> T {
        self.before.cancelled().await;
        let mut work = pin!(work);
        let started = poll!(&mut work);
        drop(self);
        match started {
            Poll::Ready(done) => done,
            Poll::Pending => work.await,
        }
    }
}
