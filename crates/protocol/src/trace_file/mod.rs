//! Traces as a file: JSON Lines, a header and then one event a line, in the order in which they happened.
//!
//! Each line is written when its event happens, so a crash loses nothing; a line may be cut.

mod line;
mod read;

use crate::{Event, Trace, Transport, Version};

pub use line::LineError;
pub use line::{connection_line, event_line, header_line};
pub use read::TraceFileError;

/// What stands in the place of a secret.
pub const MASK: &str = "***";
/// The name of the format, in the header.
const FORMAT: &str = "rehearse-trace";
/// The version of the format. A reader refuses others.
const VERSION: u32 = 1;

/// Whose connection it is, and where it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The name of the server.
    pub server: String,
    /// The transport.
    pub transport: Transport,
    /// The version that the client asks for, where it is fixed.
    pub protocol: Option<Version>,
    /// The scenario and its cell.
    pub scenario: Option<(String, String)>,
}

impl ConnectionInfo {
    /// A connection with a server, of no scenario, in any version.
    pub fn new(server: impl Into<String>, transport: Transport) -> ConnectionInfo {
        ConnectionInfo { server: server.into(), transport, protocol: None, scenario: None }
    }
}

/// One connection of a file.
#[derive(Clone, Debug)]
pub struct RecordedConnection {
    /// Whose it is.
    pub info: ConnectionInfo,
    /// Its events.
    pub trace: Trace,
}

/// The content of a file.
///
/// ```
/// use bytes::Bytes;
/// use rehearse_protocol::{
///     Direction, Event, EventKind, Trace, Transport,
///     trace_file::{ConnectionInfo, TraceFile, connection_line, event_line, header_line},
/// };
///
/// let mut trace = Trace::default();
/// trace.push_frame(Default::default(), Direction::ClientToServer, Bytes::from_static(b"{ \"id\":1 }"));
/// let mut file = header_line() + &connection_line(1, &ConnectionInfo::new("s", Transport::Stdio));
/// file.extend(trace.events().map(|event| event_line(1, event)));
/// let read = TraceFile::parse(file.as_bytes())?;
/// assert_eq!(&read.connections[0].trace.frames().next().expect("a frame").bytes[..], b"{ \"id\":1 }");
/// # Ok::<(), rehearse_protocol::trace_file::TraceFileError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TraceFile {
    /// The connections, in the order in which they were opened.
    pub connections: Vec<RecordedConnection>,
    /// Whether a line is cut: a recorder was killed.
    pub is_cut: bool,
}

impl TraceFile {
    /// The file of these connections, one after the other.
    pub fn to_text(&self) -> String {
        let lines = self.connections.iter().zip(1..).flat_map(|(connection, number)| {
            let events = connection.trace.events().map(move |event: &Event| event_line(number, event));
            std::iter::once(connection_line(number, &connection.info)).chain(events)
        });
        std::iter::once(header_line()).chain(lines).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, Method, StatusCode};

    use super::*;
    use crate::{Closed, ClosedHow, Direction, EventKind, ProcessEvent};

    fn every_kind() -> Trace {
        let mut headers = HeaderMap::new();
        headers.append("accept", HeaderValue::from_static("a"));
        headers.append("accept", HeaderValue::from_static("b"));
        headers.append("x-bytes", HeaderValue::from_bytes(b"\xff").expect("opaque bytes"));
        let bytes = Bytes::from_static;
        let kinds = [
            EventKind::Opened(Transport::Http),
            EventKind::Process(ProcessEvent::Started { pid: 7 }),
            EventKind::Process(ProcessEvent::InputClosed),
            EventKind::Process(ProcessEvent::Terminated),
            EventKind::Process(ProcessEvent::LeftBehind),
            EventKind::Case("tools/unknown".into()),
            EventKind::HttpRequest { method: Method::POST, target: "/mcp?a".into(), headers: headers.clone() },
            EventKind::HttpResponse { status: StatusCode::ACCEPTED, headers },
            EventKind::HttpBody { direction: Direction::ServerToClient, bytes: bytes(b"event: x\n\n\xfe") },
            EventKind::HttpEnd { is_whole: false },
            EventKind::Stderr(bytes("starting é".as_bytes())),
            EventKind::Process(ProcessEvent::Exited { code: None }),
            EventKind::Closed(Closed::by_server("gone").broken()),
            EventKind::Closed(Closed::by_client("no close frame came").with(ClosedHow::NoCloseFrame)),
        ];
        let mut trace = Trace::default();
        for (kind, number) in kinds.into_iter().zip(0..) {
            let at = Duration::from_micros(u64::from(number) * 1001);
            trace.push_event(Event { at, exchange: (number % 2 == 1).then_some(number), kind });
        }
        let frames: [&[u8]; 8] = [
            br#"{"jsonrpc":"2.0","id":1,"a":1e2,"a": "twice"}"#,
            b" {}",
            b"{}\r",
            b"{\n}",
            b"null",
            b"no JSON",
            b"\"\xff\"",
            b"",
        ];
        for (frame, number) in frames.into_iter().zip(1..) {
            let at = Duration::from_millis(10 + number);
            trace.push_frame(at, Direction::ServerToClient, Bytes::copy_from_slice(frame));
        }
        trace
    }

    #[test]
    fn every_event_reads_back_as_it_was() {
        let info = ConnectionInfo {
            protocol: Some(Version::LATEST),
            scenario: Some(("progress".into(), "http/2026-07-28".into())),
            ..ConnectionInfo::new("s \"1\"", Transport::Http)
        };
        let one = RecordedConnection { info, trace: every_kind() };
        let two = RecordedConnection { info: ConnectionInfo::new("t", Transport::Stdio), trace: every_kind() };
        let file = TraceFile { connections: vec![one, two], is_cut: false };
        let text = file.to_text();
        let read = TraceFile::parse(text.as_bytes()).expect("valid");
        assert_eq!(format!("{read:?}"), format!("{file:?}"));
        let line = text.lines().find(|line| line.contains("1e2")).expect("the frame");
        assert!(line.contains(r#""message":{"jsonrpc":"2.0","id":1,"a":1e2,"a": "twice"}"#), "{line}");
    }

    #[test]
    fn a_cut_last_line_loses_only_its_event() {
        let connection = RecordedConnection { info: ConnectionInfo::new("s", Transport::Ws), trace: every_kind() };
        let text = TraceFile { connections: vec![connection], is_cut: false }.to_text();
        let read = TraceFile::parse(&text.as_bytes()[..text.len() - 5]).expect("valid");
        assert_eq!((read.is_cut, read.connections[0].trace.end()), (true, every_kind().end() - 1));
        // Another recorder has gone on, after a line that is cut within a text.
        let cut = &text[..text.rfind("2.0").expect("a text") + 2];
        let longer = format!("{cut}\n{}", text.lines().skip(1).collect::<Vec<_>>().join("\n"));
        let read = TraceFile::parse(longer.as_bytes()).expect("valid");
        assert_eq!((read.is_cut, read.connections.len()), (true, 2));
        assert!(TraceFile::parse(header_line().as_bytes()).is_ok_and(|read| read.connections.is_empty()));
    }

    #[test]
    fn a_file_that_does_not_say_who_ended_it_blames_nobody() {
        let connection = connection_line(1, &ConnectionInfo::new("s", Transport::Stdio));
        let lines = [
            r#"{"connection":1,"atMs":0,"event":"case","case":"shutdown/close-input"}"#,
            r#"{"connection":1,"atMs":0,"event":"case","case":"shutdown/terminate"}"#,
            r#"{"connection":1,"atMs":0,"event":"case","case":"shutdown/left-behind"}"#,
            r#"{"connection":1,"atMs":0,"event":"case","case":"shutdown/during-call"}"#,
            r#"{"connection":1,"atMs":0,"event":"closed","reason":"the server closed its standard output"}"#,
        ];
        let text = format!("{}{connection}{}\n", header_line(), lines.join("\n"));
        let read = TraceFile::parse(text.as_bytes()).expect("valid");
        let kinds: Vec<_> = read.connections[0].trace.events().map(|event| format!("{:?}", event.kind)).collect();
        let expected = [
            EventKind::Process(ProcessEvent::InputClosed),
            EventKind::Process(ProcessEvent::Terminated),
            EventKind::Process(ProcessEvent::LeftBehind),
            EventKind::Case("shutdown/during-call".into()),
            EventKind::Closed(Closed::by_client("the server closed its standard output")),
        ];
        assert_eq!(kinds, expected.map(|kind| format!("{kind:?}")));
    }

    #[test]
    fn another_file_is_refused_by_name_and_line() {
        let refused = |text: &str| TraceFile::parse(text.as_bytes()).expect_err("no trace").to_string();
        let newer = header_line().replace("\"version\":1", "\"version\":2");
        assert_eq!(refused(&newer), "the trace has version 2 of its format; this program reads version 1");
        for other in ["", "[]\n", "{\"jsonrpc\":\"2.0\"}\n", "\u{fffd}"] {
            assert!(refused(other).starts_with("it is not a trace of rehearse"), "{other:?}");
        }
        let connection = connection_line(1, &ConnectionInfo::new("s", Transport::Ws));
        for (line, problem) in [
            (r#"{"connection":2,"atMs":0,"event":"stderr","text":""}"#, "line 3: connection 2 was not opened"),
            (r#"{"connection":1,"atMs":0,"event":"stderr"}"#, "line 3: `text` is missing"),
            (r#"{"connection":1,"atMs":0,"event":"moved"}"#, "line 3: unknown variant `moved`"),
            (r#"{"connection":1,"atMs":-1,"event":"closed","reason":""}"#, "line 3: `atMs` is not a time"),
            (r#"{"connection":1,"atMs":0,"event":"closed","why":""}"#, "line 3: unknown field `why`"),
        ] {
            let found = refused(&format!("{}{connection}{line}\n", header_line()));
            assert!(found.starts_with(problem), "{found}");
        }
    }
}
