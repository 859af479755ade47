//! Requests that a connection does not wait for one after the other.

use std::{sync::Arc, time::Duration};

use rehearse_conformance::{Case, CaseBody};
use serde_json::Value;
use tokio::time::Instant;

use super::{Answer, LEAST_WAIT, ProbeConnection, answer_among, parse};

/// A request that is on its way.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) id: Value,
    /// Where the trace was.
    from: usize,
    /// The index of its exchange.
    exchange: Option<usize>,
}

/// A call that was cancelled, and has no answer.
#[derive(Debug)]
pub(crate) struct CancelledCall {
    begun: Begun,
    /// Until when it is seen whether something comes of it.
    seen_until: Instant,
    /// Until when the server may work on it.
    works_until: Instant,
    /// What is sent once it was seen.
    then: Case,
}

impl ProbeConnection {
    /// Sees for this long whether something comes of a cancelled call, while other requests are sent, and sends a case then.
    /// `work` is how long the server may still work on it.
    pub(crate) fn watch(&mut self, begun: Begun, seen: Duration, work: Duration, then: Case) {
        let now = Instant::now();
        let call = CancelledCall { begun, seen_until: now + seen, works_until: now + work, then };
        self.cancelled = Some(Box::new(call));
    }

    /// Ends what [`ProbeConnection::watch`] has begun. Returns whether a process may still work on the call.
    pub(super) async fn end_watch(&mut self) -> bool {
        let Some(call) = self.cancelled.take().filter(|_| !self.is_over()) else { return false };
        let left = call.seen_until.saturating_duration_since(Instant::now());
        let answer = self.finish(&call.begun, left).await;
        self.send(&call.then).await;
        !self.wire.is_http() && answer.message.is_none() && Instant::now() < call.works_until
    }

    /// Sends a case, and waits for nothing.
    pub(crate) async fn begin(&mut self, case: &Case) -> Option<Begun> {
        if self.is_cut_off() || self.is_unheard() {
            return None;
        }
        let (id, body) = self.body(case);
        let (id, from) = (id.unwrap_or_default(), self.wire.recorder().end());
        let name = Some(case.name.as_str()).filter(|name| !name.is_empty()).map(Arc::from);
        if !self.wire.is_http() {
            let sent = tokio::time::timeout(self.budget.within(LEAST_WAIT), self.wire.send(name, body?)).await;
            return matches!(sent, Ok(Ok(()))).then_some(Begun { id, from, exchange: None });
        }
        let request = self.http_request(case, name, body);
        self.open.push(self.wire.exchange(request).ok()?);
        Some(Begun { id, from, exchange: self.open.len().checked_sub(1) })
    }

    /// Waits for the answer to what was begun, or for the end of its exchange.
    pub(crate) async fn finish(&mut self, begun: &Begun, limit: Duration) -> Answer {
        let limit = self.budget.within(limit);
        let number = begun.exchange.and_then(|at| self.open.get(at)).map(|it| it.number);
        let recorder = self.wire.recorder();
        let waiting = async {
            let mut read = begun.from;
            loop {
                let found = answer_among(&recorder.read(&mut read), Some(&begun.id), number);
                if found.is_some() || !recorder.has_more(read).await {
                    return found;
                }
            }
        };
        let waiting = tokio::time::timeout(limit, waiting);
        let found = match begun.exchange.and_then(|at| self.open.get_mut(at)) {
            Some(exchange) if exchange.is_finished() => None,
            Some(exchange) => tokio::select! {
                found = waiting => found.ok().flatten(),
                _ = exchange.ended(limit) => None,
            },
            None => waiting.await.ok().flatten(),
        };
        let mut read = begun.from;
        let recorded = || answer_among(&self.wire.recorder().read(&mut read), Some(&begun.id), number);
        Answer { message: found.or_else(recorded).and_then(|frame| parse(&frame)) }
    }

    /// Closes the exchanges from this one on.
    pub(crate) fn abandon(&mut self, begun: &Begun) {
        if let Some(exchange) = begun.exchange {
            self.open.truncate(exchange);
        }
    }

    /// The request with an id of its own.
    pub(crate) fn with_id(&mut self, case: &Case, id: &str) -> Case {
        let (_, body) = self.body(case);
        let mut message: Value = body.and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default();
        message["id"] = id.into();
        Case { body: CaseBody::Bytes(message.to_string().into()), ..case.clone() }
    }
}
