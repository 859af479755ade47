//! The order in which a server's requests came.
//!
//! rmcp gives each of them to a task of its own, and tasks do not begin in order. So the transport gives each request a
//! place before rmcp sees it, and what answers it begins when the one before it has started. For the same reason it counts
//! them: whatever rmcp starts for a request, and for its answer, has no bound of its own.

use std::{mem::replace, pin::pin, sync::Arc, task::Poll};

use futures_util::poll;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage, ServerRequest},
    transport::Transport,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::backlog::Backlog;

/// A transport that gives each request a place, and reads nothing while too many are open.
pub(super) struct OrderedTransport<T> {
    transport: T,
    /// Cancelled when whoever has the last place has started.
    last: CancellationToken,
    backlog: Backlog,
}

/// A request's place; the next one's turn comes when all clones are dropped.
#[derive(Clone)]
pub(super) struct QueueTicket {
    before: CancellationToken,
    _next: Arc<DropGuard>,
}

impl<T> OrderedTransport<T> {
    pub(super) fn new(transport: T) -> OrderedTransport<T> {
        let last = CancellationToken::new();
        last.cancel();
        OrderedTransport { transport, last, backlog: Backlog::new() }
    }

    fn issue_ticket(&mut self) -> QueueTicket {
        let next = CancellationToken::new();
        QueueTicket { before: replace(&mut self.last, next.clone()), _next: Arc::new(next.drop_guard()) }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for OrderedTransport<T> {
    type Error = T::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
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
    /// Begins the work, which takes whatever it queues for when it is polled first, after that of the place before.
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
