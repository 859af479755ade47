//! The events of an HTTP response.

use std::collections::VecDeque;

use bytes::Bytes;
use reqwest::Response;

use crate::recorder::ClientRecorder;
use rehearse_protocol::{
    Closed,
    sse::{Decoder, Event},
};

/// Reads the server-sent events of a response.
pub(crate) struct EventReader {
    response: Response,
    decoder: Decoder,
    ready: VecDeque<Event>,
    recorder: Option<ClientRecorder>,
}

impl EventReader {
    /// A recorder notes the bytes of the stream, beside the frames in it.
    pub(crate) fn new(response: Response, recorder: Option<ClientRecorder>) -> EventReader {
        let decoder = recorder.as_ref().map_or_else(Decoder::default, |recorder| Decoder::new(recorder.largest()));
        EventReader { response, decoder, ready: VecDeque::new(), recorder }
    }

    /// The number of the exchange in the trace.
    pub(crate) fn exchange(&self) -> Option<u32> {
        super::web::exchange(&self.response)
    }

    /// The next event; `None` at the end of the stream. Cancel-safe.
    ///
    /// # Errors
    /// How the stream broke.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Closed> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if let Some(recorder) = &self.recorder {
                recorder.room(self.exchange()).await;
            }
            let broken = |error| Closed::by_server(super::web::describe(error)).broken();
            let Some(chunk) = self.response.chunk().await.map_err(broken)? else { return Ok(None) };
            if let Some(recorder) = &self.recorder {
                recorder.note_chunk(self.exchange(), &chunk);
                if recorder.is_full() {
                    return Err(Closed::by_limit("the server sent more than is kept"));
                }
            }
            let mut events = Vec::new();
            let pushed = self.decoder.push(&chunk, &mut events);
            self.ready.extend(events);
            pushed.map_err(|error| Closed::by_limit(format!("the server sent {error}")))?;
        }
    }

    /// The next message, or how the connection ended. Cancel-safe.
    pub(crate) async fn next_message(&mut self) -> Result<Bytes, Closed> {
        loop {
            match self.next().await? {
                Some(event) => match message(event) {
                    Some(bytes) => return Ok(bytes),
                    None => continue,
                },
                None => return Err(Closed::by_server("the server closed the event stream")),
            }
        }
    }
}

/// The frame in an event: events of other types, and priming events without data, carry none.
pub(crate) fn message(event: Event) -> Option<Bytes> {
    matches!(event.event.as_deref(), None | Some("" | "message")).then_some(event.data)?.filter(|data| !data.is_empty())
}
