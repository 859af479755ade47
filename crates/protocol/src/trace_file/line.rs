//! One line of a trace file.

use std::time::{Duration, TryFromFloatSecsError};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, method::InvalidMethod, status::InvalidStatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{ConnectionInfo, FORMAT, VERSION};
use crate::{Closed, ClosedBy, ClosedHow, Direction, Event, EventKind, Frame, ProcessEvent, Transport, Version};

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is no object with the members of a line.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A member is missing that its event needs.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// Its connection has no line before it.
    #[error("connection {0} was not opened")]
    NotOpened(u32),
    /// `atMs` is negative or too large.
    #[error("`atMs` is not a time")]
    Time(#[from] TryFromFloatSecsError),
    /// What is no text is not in Base64.
    #[error("`base64` is invalid: {0}")]
    Base64(#[from] base64::DecodeError),
    /// A name or a value that no header has.
    #[error("{name:?} is not a header")]
    Header {
        /// The name.
        name: String,
        /// Why.
        source: http::Error,
    },
    /// `method` is none of HTTP.
    #[error("`method` is not an HTTP method")]
    Method(#[from] InvalidMethod),
    /// `status` is not one of HTTP.
    #[error("`status` is not an HTTP status")]
    Status(#[from] InvalidStatusCode),
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
}

/// Any other line. Which members there are depends on the event.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Line {
    pub(super) connection: u32,
    pub(super) at_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exchange: Option<u32>,
    pub(super) event: EventName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<Side>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) headers: Option<Vec<(String, HeaderText)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) is_whole: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) case: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<ClosedBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) how: Option<ClosedHow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) transport: Option<Transport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) protocol: Option<Version>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scenario: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cell: Option<String>,
}

/// What a line says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EventName {
    /// A connection begins; all other lines of it follow.
    Connection,
    #[default]
    Opened,
    Frame,
    HttpRequest,
    HttpResponse,
    HttpBody,
    HttpEnd,
    Case,
    ProcessStarted,
    ProcessInputClosed,
    ProcessTerminated,
    ProcessLeftBehind,
    ProcessExited,
    Stderr,
    Closed,
}

/// Who sent it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Side {
    Client,
    Server,
}

/// The value of a header.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum HeaderText {
    Text(String),
    Bytes { base64: String },
}

impl From<Direction> for Side {
    fn from(direction: Direction) -> Side {
        match direction {
            Direction::ClientToServer => Side::Client,
            Direction::ServerToClient => Side::Server,
        }
    }
}

impl From<Side> for Direction {
    fn from(side: Side) -> Direction {
        match side {
            Side::Client => Direction::ClientToServer,
            Side::Server => Direction::ServerToClient,
        }
    }
}

/// The first line of a file, with its newline.
pub fn header_line() -> String {
    text(&Header { format: FORMAT.to_owned(), version: VERSION })
}

/// The line that begins a connection, with its newline. Numbers are unique in a file.
pub fn connection_line(connection: u32, info: &ConnectionInfo) -> String {
    let (scenario, cell) = info.scenario.clone().unzip();
    text(&Line {
        connection,
        event: EventName::Connection,
        server: Some(info.server.clone()),
        transport: Some(info.transport),
        protocol: info.protocol,
        scenario,
        cell,
        ..Line::default()
    })
}

/// The line of an event of a connection, with its newline.
pub fn event_line(connection: u32, event: &Event) -> String {
    let at_ms = event.at.as_micros() as f64 / 1000.0;
    let mut line = Line { connection, at_ms, exchange: event.exchange, ..Line::default() };
    line.event = match &event.kind {
        EventKind::Opened(transport) => {
            line.transport = Some(*transport);
            EventName::Opened
        }
        EventKind::Frame(Frame { direction, bytes, .. }) => {
            line.from = Some((*direction).into());
            line.message = message(bytes);
            if line.message.is_none() {
                line.set_bytes(bytes);
            }
            EventName::Frame
        }
        EventKind::HttpRequest { method, target, headers } => {
            (line.method, line.target) = (Some(method.to_string()), Some(target.clone()));
            line.headers = Some(header_texts(headers));
            EventName::HttpRequest
        }
        EventKind::HttpResponse { status, headers } => {
            (line.status, line.headers) = (Some(status.as_u16()), Some(header_texts(headers)));
            EventName::HttpResponse
        }
        EventKind::HttpBody { direction, bytes } => {
            line.from = Some((*direction).into());
            line.set_bytes(bytes);
            EventName::HttpBody
        }
        EventKind::HttpEnd { is_whole } => {
            line.is_whole = Some(*is_whole);
            EventName::HttpEnd
        }
        EventKind::Case(case) => {
            line.case = Some(case.to_string());
            EventName::Case
        }
        EventKind::Process(ProcessEvent::Started { pid }) => {
            line.pid = Some(*pid);
            EventName::ProcessStarted
        }
        EventKind::Process(ProcessEvent::InputClosed) => EventName::ProcessInputClosed,
        EventKind::Process(ProcessEvent::Terminated) => EventName::ProcessTerminated,
        EventKind::Process(ProcessEvent::LeftBehind) => EventName::ProcessLeftBehind,
        EventKind::Process(ProcessEvent::Exited { code }) => {
            line.code = *code;
            EventName::ProcessExited
        }
        EventKind::Stderr(bytes) => {
            line.set_bytes(bytes);
            EventName::Stderr
        }
        EventKind::Closed(Closed { by, how, text }) => {
            (line.by, line.how, line.reason) = (Some(*by), Some(*how), Some(text.to_string()));
            EventName::Closed
        }
    };
    text(&line)
}

impl Line {
    fn set_bytes(&mut self, bytes: &Bytes) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text = Some(text.to_owned()),
            Err(_) => self.base64 = Some(BASE64_STANDARD.encode(bytes)),
        }
    }

    fn take_bytes(&mut self) -> Result<Bytes, LineError> {
        match (self.message.take(), self.text.take(), self.base64.take()) {
            (Some(message), ..) => Ok(Bytes::from(message.get().to_owned())),
            (None, Some(text), _) => Ok(text.into()),
            (None, None, Some(base64)) => decode(&base64),
            (None, None, None) => Err(LineError::Missing("text")),
        }
    }

    fn take_headers(&mut self) -> Result<HeaderMap, LineError> {
        let mut headers = HeaderMap::new();
        for (name, value) in needed(self.headers.take(), "headers")? {
            let bytes = match value {
                HeaderText::Text(text) => text.into(),
                HeaderText::Bytes { base64 } => decode(&base64)?,
            };
            let invalid = |source| LineError::Header { name: name.clone(), source };
            headers.append(
                HeaderName::try_from(&name).map_err(|error| invalid(error.into()))?,
                HeaderValue::from_maybe_shared(bytes).map_err(|error| invalid(error.into()))?,
            );
        }
        Ok(headers)
    }

    /// When it happened.
    pub(super) fn at(&self) -> Result<Duration, LineError> {
        let time = Duration::try_from_secs_f64(self.at_ms / 1000.0)?;
        Ok(Duration::from_micros((time.as_secs_f64() * 1e6).round() as u64))
    }

    /// The connection that begins here.
    pub(super) fn info(self) -> Result<ConnectionInfo, LineError> {
        Ok(ConnectionInfo {
            server: needed(self.server, "server")?,
            transport: needed(self.transport, "transport")?,
            protocol: self.protocol,
            scenario: self.scenario.zip(self.cell),
        })
    }

    /// What happened.
    pub(super) fn kind(mut self, at: Duration) -> Result<EventKind, LineError> {
        let from = self.from.map(Direction::from);
        Ok(match self.event {
            EventName::Connection | EventName::Opened => EventKind::Opened(needed(self.transport, "transport")?),
            EventName::Frame => {
                let bytes = self.take_bytes()?;
                EventKind::Frame(Frame::new(needed(from, "from")?, at, bytes))
            }
            EventName::HttpRequest => EventKind::HttpRequest {
                headers: self.take_headers()?,
                method: needed(self.method, "method")?.parse()?,
                target: needed(self.target, "target")?,
            },
            EventName::HttpResponse => EventKind::HttpResponse {
                headers: self.take_headers()?,
                status: needed(self.status, "status")?.try_into()?,
            },
            EventName::HttpBody => EventKind::HttpBody { bytes: self.take_bytes()?, direction: needed(from, "from")? },
            EventName::HttpEnd => EventKind::HttpEnd { is_whole: needed(self.is_whole, "isWhole")? },
            EventName::Case => match needed(self.case, "case")?.as_str() {
                // Older files have what happens to a process as cases.
                "shutdown/close-input" => EventKind::Process(ProcessEvent::InputClosed),
                "shutdown/terminate" => EventKind::Process(ProcessEvent::Terminated),
                "shutdown/left-behind" => EventKind::Process(ProcessEvent::LeftBehind),
                case => EventKind::Case(case.into()),
            },
            EventName::ProcessStarted => EventKind::Process(ProcessEvent::Started { pid: needed(self.pid, "pid")? }),
            EventName::ProcessInputClosed => EventKind::Process(ProcessEvent::InputClosed),
            EventName::ProcessTerminated => EventKind::Process(ProcessEvent::Terminated),
            EventName::ProcessLeftBehind => EventKind::Process(ProcessEvent::LeftBehind),
            EventName::ProcessExited => EventKind::Process(ProcessEvent::Exited { code: self.code }),
            EventName::Stderr => EventKind::Stderr(self.take_bytes()?),
            // Older files do not say who and how: then neither side is to blame.
            EventName::Closed => EventKind::Closed(Closed {
                by: self.by.unwrap_or_default(),
                how: self.how.unwrap_or_default(),
                text: needed(self.reason, "reason")?.into(),
            }),
        })
    }
}

/// The frame as it is, if it can stand within a line.
fn message(bytes: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains(['\n', '\r']))?;
    let message: Box<RawValue> = serde_json::from_str(text).ok()?;
    // `null` would be no message for the reader.
    (message.get().len() == text.len() && text != "null").then_some(message)
}

fn header_texts(headers: &HeaderMap) -> Vec<(String, HeaderText)> {
    let value = |value: &HeaderValue| match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => HeaderText::Text(text.to_owned()),
        Err(_) => HeaderText::Bytes { base64: BASE64_STANDARD.encode(value.as_bytes()) },
    };
    headers.iter().map(|(name, it)| (name.to_string(), value(it))).collect()
}

fn decode(base64: &str) -> Result<Bytes, LineError> {
    Ok(BASE64_STANDARD.decode(base64)?.into())
}

fn needed<T>(value: Option<T>, name: &'static str) -> Result<T, LineError> {
    value.ok_or(LineError::Missing(name))
}

fn text(line: &impl Serialize) -> String {
    // A map with text keys can always be written.
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}
