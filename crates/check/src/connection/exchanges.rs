//! HTTP exchanges that a connection does not wait for one after the other.

use std::time::Duration;

use rehearse_client::WireExchange;
use rehearse_conformance::Case;
use rehearse_protocol::{EventKind, sse};

use super::ProbeConnection;

impl ProbeConnection {
    /// Begins an HTTP request, and does not wait for its response.
    pub(crate) fn begin_exchange(&mut self, case: &Case) -> Option<WireExchange> {
        if self.is_cut_off() || self.is_unheard() {
            return None;
        }
        let (_, body) = self.body(case);
        self.wire.exchange(self.http_request(case, Some(case.name.as_str().into()), body)).ok()
    }

    /// Waits until responses have ended, at most as long as for an answer.
    pub(crate) async fn finish_exchanges(&mut self, begun: Vec<WireExchange>) {
        let limit = self.limit();
        self.end(begun, limit).await;
    }

    /// Reads streams for the window of silence, once they have begun. Those that go on end with the connection.
    pub(crate) async fn read(&mut self, begun: Vec<WireExchange>) {
        self.wait_for_heads(&begun).await;
        let limit = self.grace();
        self.end(begun, limit).await;
    }

    /// Sends a case as an HTTP request of its own, waits for the head of its response, and ends it.
    pub(crate) async fn send_http(&mut self, case: &Case) {
        if let Some(exchange) = self.begin_exchange(case) {
            self.wait_for_heads(&[exchange]).await;
        }
    }

    async fn wait_for_heads(&self, begun: &[WireExchange]) {
        let recorder = self.wire.recorder();
        let heads = async {
            loop {
                let read = recorder.end();
                let has_begun = |it: &WireExchange| it.is_finished() || self.head(it.number).is_some();
                if begun.iter().all(has_begun) || !recorder.has_more(read).await {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(self.limit(), heads).await;
    }

    /// Path and query of the last POST, over HTTP+SSE those that the server named.
    pub(crate) fn posted_to(&self) -> Option<String> {
        self.wire.recorder().find_last(|event| match &event.kind {
            EventKind::HttpRequest { method, target, .. } if method == http::Method::POST => Some(target.clone()),
            _ => None,
        })
    }

    async fn end(&mut self, begun: Vec<WireExchange>, limit: Duration) {
        let ends = begun.into_iter().map(|mut exchange| async move {
            let has_ended = exchange.ended(limit).await;
            (!has_ended).then_some(exchange)
        });
        let left = futures_util::future::join_all(ends).await;
        self.open.extend(left.into_iter().flatten());
    }

    /// The session id as the server might have assigned it to another client.
    pub(crate) fn other_session_id(&self) -> Option<String> {
        let own = self.exchange.session()?.to_str().ok()?;
        let other = other_id(own);
        Some(if other == own { format!("{own}0") } else { other })
    }

    /// The id of the first event of an exchange that has one, as soon as it is there.
    pub(crate) async fn first_event_id(&self, exchange: &WireExchange) -> Option<String> {
        let recorder = self.wire.recorder();
        let (mut read, mut decoder, mut events) = (recorder.start(), sse::Decoder::default(), Vec::new());
        let first = async {
            loop {
                for event in recorder.read(&mut read).iter().filter(|it| it.exchange == Some(exchange.number)) {
                    let has_ended = match &event.kind {
                        EventKind::HttpBody { bytes, .. } => decoder.push(bytes, &mut events).is_err(),
                        EventKind::HttpEnd { .. } => true,
                        _ => false,
                    };
                    let id = events.drain(..).find_map(|event| event.id.filter(|id| !id.is_empty()));
                    if id.is_some() || has_ended {
                        return id;
                    }
                }
                if exchange.is_finished() || !recorder.has_more(read).await {
                    return None;
                }
            }
        };
        tokio::time::timeout(self.limit(), first).await.ok().flatten()
    }
}

/// An id of the same form.
pub(crate) fn other_id(own: &str) -> String {
    own.chars()
        .map(|it| match it {
            '0'..='8' | 'a'..='e' | 'A'..='E' => char::from_u32(u32::from(it) + 1).unwrap_or(it),
            '9' => '0',
            'f' => 'a',
            'F' => 'A',
            other => other,
        })
        .collect()
}
