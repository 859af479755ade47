//! What one side sent, with what came back.

use std::time::Duration;

use rehearse_document::text::quoted;
use serde_json::Value;

use crate::{EventRef, HttpExchange, Message};

/// A frame of the client and its answer. The frame may be anything that a probe sends, also what is not a request.
#[derive(Clone, Copy, Debug)]
pub struct Call<'e> {
    /// What the client sent.
    pub request: &'e Message<'e>,
    /// The response with the id of the request. For a frame without a usable id: the first error without an id before
    /// the client's next frame on the same connection or exchange.
    pub response: Option<&'e Message<'e>>,
    /// The HTTP exchange of the request.
    pub http: Option<&'e HttpExchange<'e>>,
    /// Whether an HTTP status alone can be the answer. Over HTTP+SSE it is none: the answer comes on the stream
    /// (2024-11-05, HTTP with SSE).
    pub(crate) is_answered_by_status: bool,
}

/// A request of the server, with what the client answered.
#[derive(Clone, Debug)]
pub struct Ask<'e> {
    /// What the server sent.
    pub request: &'e Message<'e>,
    /// The responses with its id, in order. A conformant client sends one.
    pub responses: Vec<&'e Message<'e>>,
}

impl Ask<'_> {
    /// The method of the request; empty if it has none.
    pub fn method(&self) -> &str {
        self.request.method().unwrap_or_default()
    }

    /// The frames of the request and its responses.
    pub fn places(&self) -> Vec<EventRef> {
        [self.request].iter().chain(&self.responses).map(|message| message.place).collect()
    }

    /// As [`Ask::places`], with more.
    pub fn places_with(&self, more: impl IntoIterator<Item = EventRef>) -> Vec<EventRef> {
        self.places().into_iter().chain(more).collect()
    }
}

impl<'e> Call<'e> {
    /// The method of the request; empty if it has none.
    pub fn method(&self) -> &'e str {
        self.request.method().unwrap_or_default()
    }

    /// The result.
    pub fn result(&self) -> Option<&'e Value> {
        self.response?.result()
    }

    /// How long the answer took; `None` without one.
    pub fn took(&self) -> Option<Duration> {
        Some(self.response?.time.saturating_sub(self.request.time))
    }

    /// Whether HTTP says that the request never reached the method.
    pub(crate) fn is_refused_elsewhere(&self) -> bool {
        matches!(self.status(), Some(401 | 403 | 405 | 429 | 500..))
            || (self.status() == Some(404) && self.response.is_none())
            || self.is_page()
    }

    /// Whether the answer is a page for people. That has a check of its own.
    pub(crate) fn is_page(&self) -> bool {
        let is_html = |http: &HttpExchange<'_>| http.media_type() == "text/html";
        self.response.is_none() && matches!(self.status(), Some(200..300)) && self.http.is_some_and(is_html)
    }

    /// The code of the error.
    pub fn error_code(&self) -> Option<i64> {
        self.response?.error_code()
    }

    /// Whether there is a result.
    pub fn has_result(&self) -> bool {
        self.result().is_some()
    }

    /// Whether there is an error with a code.
    pub fn has_error(&self) -> bool {
        self.error_code().is_some()
    }

    /// A text in the params of the request, by JSON pointer.
    pub fn text(&self, pointer: &str) -> Option<&'e str> {
        self.request.at(pointer).as_str()
    }

    /// The HTTP status.
    pub fn status(&self) -> Option<u16> {
        self.http?.status
    }

    /// Whether the event stream with the response has begun, and has neither ended nor brought it.
    pub fn is_pending(&self) -> bool {
        self.response.is_none() && self.http.is_some_and(|http| http.is_stream() && http.ended.is_none())
    }

    /// Whether the connection was lost before anything came back. A client has to expect that (RFC 9112, section 9.5).
    pub fn is_lost(&self) -> bool {
        self.response.is_none() && self.http.is_some_and(|http| http.status.is_none() && http.ended.is_some())
    }

    /// Whether anything came back: a response, or an HTTP status.
    pub fn is_answered(&self) -> bool {
        self.response.is_some() || (self.status().is_some() && !self.is_pending())
    }

    /// Whether a living server has answered: as [`Call::is_answered`], but over HTTP+SSE a POST that is refused is not
    /// answered, unless a server refuses it that only wants a token or less of them.
    pub fn is_served(&self) -> bool {
        let is_by_status = |status| self.is_answered_by_status || matches!(status, 401 | 403 | 429);
        self.response.is_some() || (self.status().is_some_and(is_by_status) && !self.is_pending())
    }

    /// What came back, in a few words.
    pub fn answer_text(&self) -> String {
        let status = self.status().filter(|status| *status != 200).map(|status| format!("HTTP {status}"));
        let answer = match self.response {
            Some(response) => match (response.error(), response.result()) {
                (Some(error), _) => {
                    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
                    match response.error_code() {
                        Some(code) => Some(format!("error {code} {}", shortened(message))),
                        None => Some(format!("an error without a code: {error}")),
                    }
                }
                (None, Some(result)) if result.get("isError") == Some(&Value::Bool(true)) => {
                    Some("a result with isError: true".to_owned())
                }
                (None, Some(_)) => Some("a result".to_owned()),
                (None, None) => Some("neither a result nor an error".to_owned()),
            },
            None => None,
        };
        match (status, answer) {
            (Some(status), Some(answer)) => format!("{status}, {answer}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => match self.status() {
                Some(status) => format!("HTTP {status} without a message"),
                None => "no answer".to_owned(),
            },
        }
    }
}

/// The beginning of a text on one line, quoted.
fn shortened(text: &str) -> String {
    quoted(&text.split_whitespace().collect::<Vec<_>>().join(" "), 80)
}
