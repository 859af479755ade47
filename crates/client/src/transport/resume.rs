//! An event stream of streamable HTTP over as many connections as it takes (2025-11-25, Streamable HTTP: Resumability and
//! Redelivery).

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Response, StatusCode, header::HeaderMap};

use super::{
    events::{EventReader, message},
    http::HttpClient,
    web,
};
use rehearse_protocol::{Message, ParseError, message::split_batch, sse::Event};

/// Between connections without events, if the server sets no time.
const PAUSE: Duration = Duration::from_millis(500);

/// The events of one stream.
pub(crate) struct EventStream {
    client: HttpClient,
    reader: EventReader,
    resumption: Resumption,
    last_event: Option<String>,
    retry: Option<Duration>,
    /// Whether the current connection has brought an event.
    is_fruitful: bool,
    is_finished: bool,
}

/// When a stream that has ended is opened again, and with which headers.
pub(crate) enum Resumption {
    /// Never: 2026-07-28 has no resumption.
    Never,
    /// Until the response has arrived, if the server has given its events ids.
    OfResponse(HeaderMap),
    /// As long as the session lasts.
    OfSession(HeaderMap),
}

impl EventStream {
    pub(crate) fn new(client: HttpClient, response: Response, resumption: Resumption) -> EventStream {
        EventStream {
            client,
            reader: EventReader::new(response),
            resumption,
            last_event: None,
            retry: None,
            is_fruitful: false,
            is_finished: false,
        }
    }

    /// The number of the exchange in the trace that the last event came from.
    pub(crate) fn exchange(&self) -> Option<u32> {
        self.reader.exchange()
    }

    /// The next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// How the stream broke; nothing follows.
    pub(crate) async fn next(&mut self) -> Option<Result<Event, String>> {
        loop {
            if self.is_finished {
                return None;
            }
            let broken = match self.reader.next().await {
                Ok(Some(event)) => {
                    self.note(&event);
                    return Some(Ok(event));
                }
                Ok(None) => None,
                Err(closed) => Some(closed.to_string()),
            };
            if !self.resume().await {
                self.is_finished = true;
                // rmcp would open the stream once more, without the last id.
                return broken.filter(|_| !matches!(self.resumption, Resumption::OfSession(_))).map(Err);
            }
        }
    }

    fn note(&mut self, event: &Event) {
        self.is_fruitful = true;
        if let Some(id) = &event.id {
            self.last_event = Some(id.clone()).filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            self.retry = Some(Duration::from_millis(retry));
        }
        if let Resumption::OfResponse(_) = self.resumption
            && message(event.clone()).is_some_and(|frame| ends_stream(&frame))
        {
            self.resumption = Resumption::Never;
        }
    }

    /// Opens another connection; false if there is none.
    async fn resume(&mut self) -> bool {
        let headers = match (&self.resumption, &self.last_event) {
            (Resumption::Never, _) | (Resumption::OfResponse(_), None) => return false,
            (Resumption::OfResponse(headers) | Resumption::OfSession(headers), _) => headers.clone(),
        };
        let pause = if std::mem::take(&mut self.is_fruitful) { Duration::ZERO } else { PAUSE };
        tokio::time::sleep(self.retry.unwrap_or(pause)).await;
        match self.client.get(headers, self.last_event.as_deref()).await {
            Ok(response)
                if response.status() == StatusCode::OK && web::media_type(&response) == "text/event-stream" =>
            {
                self.reader = EventReader::new(response);
                true
            }
            _ => false,
        }
    }
}

/// Whether this frame ends the stream: a response, or a batch with one.
fn ends_stream(frame: &Bytes) -> bool {
    match Message::parse(frame) {
        Ok(Message::Response(_)) => true,
        Err(ParseError::Batch) => split_batch(frame).unwrap_or_default().iter().any(ends_stream),
        Err(error) => error.id().is_some(),
        Ok(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::ends_stream;

    #[test]
    fn a_batch_ends_the_stream_if_it_has_a_response() {
        assert!(ends_stream(&(&br#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#[..]).into()));
        assert!(!ends_stream(&(&br#"[{"jsonrpc":"2.0","id":"s","method":"ping"}]"#[..]).into()));
    }
}
