//! One request and its answer.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{
    Response as HttpResponse,
    header::{HeaderMap, LOCATION},
};
use serde_json::Value as Json;

use super::{
    HttpModel,
    answer::{AnswerError, Progress},
    streamed_answer::{StreamedAnswer, read},
};
use crate::{
    api::error_message,
    model::{Block, Delta, DeltaSink, ModelError, Response},
};
use rehearse_net::{BodyError, http_client, read_body};
use rehearse_protocol::{
    MAX_FRAME,
    http::{is_event_stream, media_type},
    sse::Decoder,
};

/// The largest answer, in bytes, and the largest error.
const MAX_ANSWER: usize = 2 * MAX_FRAME;
const MAX_ERROR: usize = 64 << 10;
/// The longest message of an error, in characters.
const MAX_MESSAGE: usize = 500;

impl HttpModel {
    /// Sends the request once. An answer that comes whole gives its texts as one piece each.
    pub(super) async fn exchange(&self, body: Bytes, deltas: DeltaSink<'_>) -> Result<Response, ModelError> {
        let request = self.http.post(self.url.clone()).body(body);
        let response = request.send().await.map_err(|error| self.broken(error))?;
        if !response.status().is_success() {
            return Err(self.rejection(response).await);
        }
        if is_event_stream(response.headers()) {
            return self.read_stream(response, deltas).await;
        }
        let body = self.read_body(response, MAX_ANSWER).await?;
        let whole: Json =
            serde_json::from_slice(&body).map_err(|error| self.malformed(format!("it is not JSON: {error}")))?;
        let response = read(self.options.api, &whole).map_err(|error| self.answer_error(error))?;
        for block in &response.content {
            match block {
                Block::Text { text } => deltas(Delta::Text(text.clone())),
                Block::Thinking { text, .. } if !text.is_empty() => deltas(Delta::Thinking(text.clone())),
                _ => {}
            }
        }
        Ok(response)
    }

    async fn read_stream(&self, mut response: HttpResponse, deltas: DeltaSink<'_>) -> Result<Response, ModelError> {
        let (mut decoder, mut events, mut size) = (Decoder::new(MAX_FRAME), Vec::new(), 0);
        let mut answer = StreamedAnswer::new(self.options.api);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(error))? {
            size += chunk.len();
            if size > MAX_ANSWER {
                return Err(self.malformed(format!("it has more than {MAX_ANSWER} bytes")));
            }
            decoder.push(&chunk, &mut events).map_err(|error| self.malformed(error.to_string()))?;
            for event in events.drain(..) {
                let Some(data) = event.data.filter(|data| !data.is_empty()) else { continue };
                let progress = answer.add(&data, deltas).map_err(|error| self.answer_error(error))?;
                if progress == Progress::Complete {
                    return answer.finish().map_err(|error| self.answer_error(error));
                }
            }
        }
        if answer.has_stopped() {
            return answer.finish().map_err(|error| self.answer_error(error));
        }
        Err(self.unreachable("the connection ended before the answer was complete".to_owned()))
    }

    async fn read_body(&self, response: HttpResponse, limit: usize) -> Result<Bytes, ModelError> {
        read_body(reqwest::Body::from(response), limit).await.map_err(|error| match error {
            BodyError::Broken(error) => self.broken(error),
            _ => self.malformed(format!("it has more than {limit} bytes")),
        })
    }

    /// The error of an answer with another status than 2xx.
    async fn rejection(&self, response: HttpResponse) -> ModelError {
        let (status, retry_after) = (response.status().as_u16(), retry_after(response.headers()));
        let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok()).map(http_client::display_url);
        let is_text = media_type(response.headers()) == "text/plain";
        // What cannot be read has no message.
        let body = self.read_body(response, MAX_ERROR).await.unwrap_or_default();
        let message = match (location, serde_json::from_slice::<Json>(&body)) {
            (Some(location), _) => format!("it redirects to {location}"),
            (None, Ok(body)) => error_message(&body).unwrap_or_default().to_owned(),
            (None, Err(_)) if is_text => String::from_utf8_lossy(&body).lines().next().unwrap_or_default().to_owned(),
            (None, Err(_)) => String::new(),
        };
        self.rejected(status, &message, retry_after)
    }

    fn answer_error(&self, error: AnswerError) -> ModelError {
        match error {
            AnswerError::Malformed(why) => self.malformed(why),
            AnswerError::Failed { status, message } => self.rejected(status, &message, None),
        }
    }

    fn rejected(&self, status: u16, message: &str, retry_after: Option<Duration>) -> ModelError {
        let message = self.options.key.as_ref().map_or_else(|| message.to_owned(), |key| key.hide_in(message));
        let message = message.chars().take(MAX_MESSAGE).collect();
        ModelError::Rejected { endpoint: self.endpoint.clone(), status, message, retry_after }
    }

    fn malformed(&self, why: String) -> ModelError {
        ModelError::Malformed { endpoint: self.endpoint.clone(), why }
    }

    fn broken(&self, error: reqwest::Error) -> ModelError {
        self.unreachable(http_client::describe(error))
    }

    fn unreachable(&self, why: String) -> ModelError {
        ModelError::Unreachable { endpoint: self.endpoint.clone(), why }
    }
}

/// When the provider wants the next try. A date is not understood.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|it| it / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}
