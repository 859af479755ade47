//! Messages over HTTP: their exchanges, the heads of the responses, and the session.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use rehearse_client::{ClientRecorder, WireRequest};
use rehearse_conformance::{Case, CaseBody};
use rehearse_protocol::{Era, Event, EventKind};
use serde_json::Value;

use super::{
    LEAST_WAIT, PATIENCE, ProbeConnection,
    answer::{answer_among, parse},
};

impl ProbeConnection {
    /// Sends an HTTP request, and waits for the response to the message in it, or for the end of the body.
    pub(super) async fn exchange(
        &mut self,
        case: &Case,
        name: Option<Arc<str>>,
        body: Option<Bytes>,
        id: Option<&Value>,
        from: usize,
        limit: Duration,
    ) -> Option<Value> {
        let has_body = body.is_some();
        let mut exchange = self.wire.exchange(self.http_request(case, name, body)).ok()?;
        let number = exchange.number;
        // A POST always gets a status, also for a notification.
        let limit = if limit.is_zero() { self.budget.within(LEAST_WAIT) } else { limit };
        let recorder = self.wire.recorder().clone();
        // Without a message in it, a request wants a status; an event stream that it opens may never end.
        let is_empty = matches!(case.body, CaseBody::Empty);
        let message = tokio::select! {
            frame = self.wait_for_answer(from, limit, id, Some(number), Duration::ZERO) => frame,
            _ = exchange.ended(limit) => None,
            () = has_head(&recorder, number), if is_empty => None,
        };
        let mut read = from;
        let message = message.or_else(|| answer_among(&self.wire.recorder().read(&mut read), id, Some(number)));
        self.note_session(number);
        self.last_head = self.head(number);
        let is_accepted = self.last_head.as_ref().is_some_and(|(status, _)| *status < 300);
        self.is_refused |= !self.is_open
            && id.is_some()
            && self.last_head.as_ref().is_some_and(|(status, _)| matches!(status, 429 | 503));
        self.may_be_unread = has_body && !is_accepted;
        let has_nothing = message.is_none() && !self.has_status(number);
        self.has_status |= !has_nothing;
        if exchange.is_finished() {
            self.unanswered += u32::from(has_nothing);
        } else if !exchange.ended(Duration::from_millis(20)).await {
            // A head without the message that was asked for is no answer.
            let is_open = message.is_none() && id.is_some() && case.is_answered;
            self.unanswered += u32::from(has_nothing || is_open);
            if self.unanswered >= PATIENCE {
                self.budget.note_silence(self.options.request_timeout * PATIENCE);
            }
            match message {
                Some(_) => self.ending.push(exchange),
                None => self.open.push(exchange),
            }
        }
        message.and_then(|frame| parse(&frame))
    }

    /// Opens the stream of a legacy session on which a server may send what belongs to no request.
    pub(crate) async fn open_stream(&mut self) {
        if !self.wire.is_http() || self.version.era() == Era::Modern {
            return;
        }
        let headers = self.headers(&Case::http("", rehearse_conformance::CaseGroup::Main, "GET"), None);
        let request = WireRequest { method: Method::GET, headers, ..WireRequest::default() };
        let mut read = self.wire.recorder().end();
        let Ok(exchange) = self.wire.exchange(request) else { return };
        let recorder = self.wire.recorder();
        let has_begun = async {
            while !exchange.is_finished() && !self.has_status(exchange.number) && recorder.has_more(read).await {
                read = recorder.end();
            }
        };
        let _ = tokio::time::timeout(self.grace(), has_begun).await;
        self.open.push(exchange);
    }

    pub(super) fn has_status(&self, number: u32) -> bool {
        self.head(number).is_some()
    }

    /// The headers of the response of an exchange.
    pub(crate) fn head(&self, number: u32) -> Option<(u16, HeaderMap)> {
        self.wire.recorder().find_last(|event| head_of(event, number))
    }

    pub(super) fn note_session(&mut self, number: u32) {
        if self.exchange.session().is_none()
            && self.version.era() == Era::Legacy
            && let Some((200..300, headers)) = self.head(number)
        {
            self.exchange.begin_session(&headers);
        }
    }

    /// Status and headers of the last HTTP response; none if there was no answer.
    pub(crate) fn last_head(&self) -> Option<&(u16, HeaderMap)> {
        self.last_head.as_ref()
    }

    /// The id of the session.
    pub(crate) fn session(&self) -> Option<String> {
        self.exchange.session()?.to_str().ok().map(ToOwned::to_owned)
    }

    /// Forgets the session, which has ended.
    pub(crate) fn end_session(&mut self) {
        self.exchange.end_session();
    }
}

/// Waits for the head of the response of an exchange; for ever if none comes.
async fn has_head(recorder: &ClientRecorder, number: u32) {
    let mut read = recorder.start();
    loop {
        if recorder.read(&mut read).iter().any(|event| head_of(event, number).is_some()) {
            return;
        }
        if !recorder.has_more(read).await {
            return std::future::pending().await;
        }
    }
}

/// Status and headers, if this event is the head of the response of an exchange.
fn head_of(event: &Event, number: u32) -> Option<(u16, HeaderMap)> {
    match &event.kind {
        EventKind::HttpResponse { status, headers } if event.exchange == Some(number) => {
            Some((status.as_u16(), headers.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rehearse_client::{Endpoint, ServerParams, Target};
    use rehearse_protocol::Version;
    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        time::Instant,
    };

    use super::*;
    use crate::{CheckOptions, options::Budget};

    #[tokio::test]
    async fn a_stream_without_the_answer_is_silence() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let serving = tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: x\n\n").await;
                open.push(stream);
            }
        });
        let params = ServerParams::new("server", Target::Http(Endpoint { url, headers: Vec::new() }));
        let options = CheckOptions { request_timeout: Duration::from_millis(500), ..CheckOptions::default() };
        let budget = Budget::new(Instant::now(), Duration::from_secs(3600));
        let opened = ProbeConnection::open(&params, Version::LATEST, &options, &budget).await;
        let Ok(mut connection) = opened else { panic!("it listens") };
        for _ in 0..PATIENCE {
            assert_eq!(connection.limit(), options.request_timeout);
            connection.request("tools/list", json!({})).await;
        }
        assert_eq!(connection.limit(), options.grace);
        serving.abort();
    }
}
