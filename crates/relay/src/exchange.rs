//! Responses on their way from a server to a client.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use rehearse_client::EventSink;
use rehearse_net::Backlog;
use rehearse_protocol::{Direction, Event, EventKind, http::is_event_stream};
use tokio::sync::mpsc;

use crate::MAX_WAITING;

/// The exchanges in progress, by number. Either side may come first.
pub(crate) type Exchanges = Mutex<HashMap<u32, Exchange>>;

pub(crate) struct Exchange {
    parts: mpsc::UnboundedSender<Part>,
    /// Until the relay takes it.
    received: Option<mpsc::UnboundedReceiver<Part>>,
    backlog: Arc<Backlog>,
    is_stream: bool,
}

/// A part of a response.
pub(crate) enum Part {
    Head(StatusCode, HeaderMap),
    Bytes(Bytes),
    End,
}

impl Default for Exchange {
    fn default() -> Self {
        let (parts, received) = mpsc::unbounded_channel();
        let backlog = Arc::new(Backlog::new(MAX_WAITING));
        Exchange { parts, received: Some(received), backlog, is_stream: false }
    }
}

/// The parts of one response, as they come.
pub(crate) struct Parts {
    exchanges: Arc<Exchanges>,
    number: u32,
    received: mpsc::UnboundedReceiver<Part>,
    backlog: Arc<Backlog>,
}

impl Parts {
    /// Those of an exchange; `None` if another has them.
    pub(crate) fn take(exchanges: &Arc<Exchanges>, number: u32) -> Option<Parts> {
        let mut all = exchanges.lock();
        let exchange = all.entry(number).or_default();
        let (received, backlog) = (exchange.received.take()?, exchange.backlog.clone());
        Some(Parts { exchanges: exchanges.clone(), number, received, backlog })
    }

    /// The next part. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Part> {
        let part = self.received.recv().await;
        self.passed(part)
    }

    /// The next part, if it is there.
    pub(crate) fn try_next(&mut self) -> Option<Part> {
        let part = self.received.try_recv().ok();
        self.passed(part)
    }

    fn passed(&self, part: Option<Part>) -> Option<Part> {
        if let Some(Part::Bytes(bytes)) = &part {
            self.backlog.remove(bytes.len());
        }
        part
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.exchanges.lock().remove(&self.number);
    }
}

/// Writes each event, and passes it on to the exchange that it belongs to.
pub(crate) struct ExchangeSink {
    pub(crate) write: Box<dyn EventSink>,
    pub(crate) exchanges: Arc<Exchanges>,
}

impl EventSink for ExchangeSink {
    fn take(&self, event: &Event) {
        self.write.take(event);
        let part = match &event.kind {
            EventKind::HttpResponse { status, headers } => Part::Head(*status, headers.clone()),
            EventKind::HttpBody { direction: Direction::ServerToClient, bytes } => Part::Bytes(bytes.clone()),
            EventKind::Frame(frame) if frame.direction == Direction::ServerToClient => Part::Bytes(frame.bytes.clone()),
            EventKind::HttpEnd { .. } => Part::End,
            _ => return,
        };
        let Some(number) = event.exchange else { return };
        let mut exchanges = self.exchanges.lock();
        let exchange = exchanges.entry(number).or_default();
        if let Part::Head(_, headers) = &part {
            exchange.is_stream = is_event_stream(headers);
        }
        // The bytes of an event stream are there as they came, besides its frames.
        if exchange.is_stream && event.frame().is_some() {
            return;
        }
        if let Part::Bytes(bytes) = &part {
            exchange.backlog.add(bytes.len());
        }
        let _ = exchange.parts.send(part);
    }

    fn room(&self, exchange: Option<u32>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.write.room(exchange).await;
            let backlog = exchange.and_then(|number| Some(self.exchanges.lock().get(&number)?.backlog.clone()));
            if let Some(backlog) = backlog {
                backlog.room().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_slowly_holds_up_its_own_exchange() {
        let exchanges: Arc<Exchanges> = Arc::default();
        let sink = ExchangeSink { write: Box::new(|_: &Event| {}), exchanges: exchanges.clone() };
        let body = |exchange| Event {
            at: Duration::ZERO,
            exchange: Some(exchange),
            kind: EventKind::HttpBody { direction: Direction::ServerToClient, bytes: vec![0; MAX_WAITING].into() },
        };
        sink.take(&body(1));
        let mut room = sink.room(Some(1));
        assert!(room.as_mut().now_or_never().is_none() && sink.room(Some(2)).now_or_never().is_some());
        let mut parts = Parts::take(&exchanges, 1).expect("nothing has them");
        assert!(matches!(parts.next().await, Some(Part::Bytes(_))));
        room.await;
        sink.take(&body(1));
        drop(parts);
        assert!(sink.room(Some(1)).now_or_never().is_some(), "the client has gone");
    }
}
