//! `--trace-file`: writes every event of every connection as it happens, so that a crash of a server loses nothing.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Failure, secrets::Secrets, style};
use rehearse_client::{ClientRecorder, EventSink};
use rehearse_client_configs::secret::{MASK, is_secret_name};
use rehearse_net::Backlog;
use rehearse_protocol::{
    Event, EventKind,
    trace_file::{ConnectionInfo, TraceFile, connection_line, event_line, header_line},
};
use rehearse_system::private;

/// Writes the traces of any number of connections to one file. Clones share it.
///
/// A thread masks and writes. Nothing more is read from a server while too much waits for it.
#[derive(Clone, Debug)]
pub(super) struct TraceFileWriter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    lines: Sender<Line>,
    /// What waits for the thread.
    backlog: Arc<Backlog>,
    connections: AtomicU32,
}

/// Adds the events of a connection.
struct ConnectionSink {
    inner: Arc<Inner>,
    number: u32,
    secrets: Arc<Option<Secrets>>,
}

/// How many bytes may wait to be written.
const MAX_WAITING: usize = 4 << 20;
/// How long a disk may take to write them, after a signal.
const PATIENCE: Duration = Duration::from_secs(5);
/// The length of the first line of a trace, and much more.
const LONGEST_HEADER: u64 = 4096;

/// What the thread does.
enum Line {
    Text(String),
    /// An event of a connection, whose secrets are masked.
    Event(u32, Event, Arc<Option<Secrets>>),
    /// Tell whether everything so far was written.
    Check(Sender<Option<String>>),
}

impl TraceFileWriter {
    /// Creates the file, which only its owner can read, and writes its header.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn create(path: &Path) -> Result<TraceFileWriter, Failure> {
        let mut options = OpenOptions::new();
        TraceFileWriter::open(path, options.write(true).truncate(true), 1)
    }

    /// As [`TraceFileWriter::create`], but keeps what the file has. Several processes may append to it.
    ///
    /// # Errors
    /// As there; or the file has something else than a trace.
    pub(super) fn append(path: &Path) -> Result<TraceFileWriter, Failure> {
        // Processes that record at the same time have different numbers.
        check_header(path)?;
        TraceFileWriter::open(path, OpenOptions::new().append(true), std::process::id() << 8)
    }

    fn open(path: &Path, options: &mut OpenOptions, first: u32) -> Result<TraceFileWriter, Failure> {
        let opened = private::open(options.create(true), path).and_then(|file| {
            let metadata = file.metadata()?;
            if metadata.is_file() {
                private::restrict(path)?;
            }
            Ok((file, metadata.len()))
        });
        let (file, length) = opened.map_err(|error| cannot_write(path, &error))?;
        let (lines, queue) = mpsc::channel();
        let backlog = Arc::new(Backlog::new(MAX_WAITING));
        let written = backlog.clone();
        std::thread::spawn(move || write_all(file, &queue, &written));
        let connections = AtomicU32::new(first);
        let writer = TraceFileWriter(Arc::new(Inner { path: path.to_owned(), lines, backlog, connections }));
        // Another recorder may have been killed within a line.
        writer.0.add(Line::Text(if length == 0 { header_line() } else { "\n".to_owned() }));
        if let Err(error) = writer.check() {
            // A file without a header is no trace. The first error is reported.
            if length == 0 && path.is_file() {
                let _ = std::fs::remove_file(path);
            }
            return Err(error);
        }
        Ok(writer)
    }

    /// Begins a connection; returns what adds its events. Without `secrets` nothing is masked.
    pub(super) fn connection(&self, info: &ConnectionInfo, secrets: Option<Secrets>) -> impl EventSink + use<> {
        let number = self.0.connections.fetch_add(1, Ordering::Relaxed);
        self.0.add(Line::Text(connection_line(number, info)));
        ConnectionSink { inner: self.0.clone(), number, secrets: Arc::new(secrets) }
    }

    /// Writes what a recorder records from now on.
    pub(super) fn follow(&self, info: &ConnectionInfo, recorder: &ClientRecorder, secrets: Option<Secrets>) {
        recorder.set_sink(Box::new(self.connection(info, secrets)));
    }

    /// Waits until everything so far is written.
    ///
    /// # Errors
    /// It was not.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.written(self.ask().recv().ok())
    }

    /// As [`TraceFileWriter::check`], after a signal: waits for a disk that hangs only for a while.
    ///
    /// # Errors
    /// As there.
    pub(super) fn check_soon(&self) -> Result<(), Failure> {
        self.written(self.ask().recv_timeout(PATIENCE).ok())
    }

    fn ask(&self) -> Receiver<Option<String>> {
        let (sender, answer) = mpsc::channel();
        self.0.add(Line::Check(sender));
        answer
    }

    fn written(&self, answer: Option<Option<String>>) -> Result<(), Failure> {
        match answer {
            Some(None) => Ok(()),
            Some(Some(error)) => Err(cannot_write(&self.0.path, &error)),
            None => Err(cannot_write(&self.0.path, &"it takes too long")),
        }
    }
}

impl Inner {
    fn add(&self, line: Line) {
        // The thread ends with the last sender.
        let _ = self.lines.send(line);
    }
}

impl EventSink for ConnectionSink {
    fn take(&self, event: &Event) {
        self.inner.backlog.add(event.size());
        self.inner.add(Line::Event(self.number, event.clone(), self.secrets.clone()));
    }

    fn room(&self, _exchange: Option<u32>) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.backlog.room())
    }
}

/// Writes each line at once: what is written before a crash is whole. Nothing follows a line that could not be written.
fn write_all(mut file: File, lines: &Receiver<Line>, backlog: &Backlog) {
    let mut error = None;
    for line in lines {
        let size = if let Line::Event(_, event, _) = &line { event.size() } else { 0 };
        let text = match line {
            Line::Check(answer) => {
                let _ = answer.send(error.clone());
                continue;
            }
            Line::Text(text) => text,
            Line::Event(number, event, secrets) => match &*secrets {
                Some(secrets) => event_line(number, &hidden_event(secrets, &event)),
                None => event_line(number, &event),
            },
        };
        if error.is_none() {
            error = file.write_all(text.as_bytes()).err().map(|error| error.to_string());
        }
        backlog.remove(size);
    }
}

/// Whether a file, if there is one, is a trace.
///
/// # Errors
/// It is not, or cannot be read.
fn check_header(path: &Path) -> Result<(), Failure> {
    // A pipe has no beginning.
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(());
    }
    let mut line = Vec::new();
    let read = File::open(path).and_then(|file| BufReader::new(file).take(LONGEST_HEADER).read_until(b'\n', &mut line));
    read.map_err(|error| Failure::cannot(format!("cannot read {}: {error}", path.display())))?;
    match TraceFile::parse(&line) {
        Err(error) if !line.is_empty() => Err(Failure::Usage(format!("cannot append to {}: {error}", path.display()))),
        _ => Ok(()),
    }
}

fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::cannot(format!("cannot write {}: {error}", path.display()))
}

/// Masks the secrets of a file. Returns how many events had one.
pub(super) fn mask(file: &mut TraceFile, secrets: &Secrets) -> usize {
    let mut count = 0;
    for connection in &mut file.connections {
        let mut masked = connection.trace.new_empty();
        for event in connection.trace.events() {
            let hidden = hidden_event(secrets, event);
            count += usize::from(event_line(0, &hidden) != event_line(0, event));
            masked.push_event(hidden);
        }
        connection.trace = masked;
    }
    count
}

/// The event with masked secrets. JSON stays JSON.
fn hidden_event(secrets: &Secrets, event: &Event) -> Event {
    let mut event = event.clone();
    match &mut event.kind {
        EventKind::Frame(frame) => frame.bytes = hidden_frame(secrets, &frame.bytes),
        EventKind::HttpBody { bytes, .. } => *bytes = hidden_bytes(bytes, |text| secrets.hidden_in_frame(text)),
        EventKind::Stderr(bytes) => *bytes = hidden_bytes(bytes, |text| secrets.hidden(text)),
        EventKind::HttpRequest { target, headers, .. } => {
            *target = secrets.hidden_in_frame(target);
            hide_headers(secrets, headers);
        }
        EventKind::HttpResponse { headers, .. } => hide_headers(secrets, headers),
        EventKind::Closed(closed) => closed.text = secrets.hidden(&closed.text).into(),
        EventKind::Opened(_) | EventKind::HttpEnd { .. } | EventKind::Case(_) | EventKind::Process(_) => {}
    }
    event
}

fn hidden_bytes(bytes: &Bytes, mask: impl Fn(&str) -> String) -> Bytes {
    let text = String::from_utf8_lossy(bytes);
    let masked = mask(&text);
    if masked == text { bytes.clone() } else { masked.into() }
}

fn hidden_frame(secrets: &Secrets, bytes: &Bytes) -> Bytes {
    let masked = hidden_bytes(bytes, |text| secrets.hidden_in_frame(text));
    let is_json = |bytes: &[u8]| serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
    if masked == *bytes || is_json(&masked) {
        return masked;
    }
    match serde_json::from_slice::<Value>(bytes) {
        Ok(mut value) => {
            hide_value(secrets, "", &mut value);
            value.to_string().into()
        }
        Err(_) => masked,
    }
}

fn hide_value(secrets: &Secrets, name: &str, value: &mut Value) {
    match value {
        Value::String(_) | Value::Number(_) if is_secret_name(name) => *value = MASK.into(),
        Value::String(text) => *text = secrets.hidden_known(text),
        Value::Array(items) => items.iter_mut().for_each(|item| hide_value(secrets, name, item)),
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| hide_value(secrets, name, value)),
        _ => {}
    }
}

fn hide_headers(secrets: &Secrets, headers: &mut HeaderMap) {
    for (name, value) in headers.iter_mut() {
        let text = String::from_utf8_lossy(value.as_bytes());
        let masked = secrets.hidden_header(name.as_str(), &text);
        if masked != text
            && let Ok(masked) = HeaderValue::from_str(&masked)
        {
            *value = masked;
        }
    }
}

/// Reads a trace file.
///
/// # Errors
/// It cannot be read, or is no trace.
pub(super) fn read(path: &Path) -> Result<TraceFile, Failure> {
    let unread = |error: &dyn std::fmt::Display| Failure::Usage(format!("cannot read {}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| unread(&error))?;
    let file = TraceFile::parse(&bytes).map_err(|error| unread(&error))?;
    if file.is_cut {
        style::warn(&format!("a line of {} is cut", path.display()));
    }
    if file.connections.is_empty() {
        return Err(unread(&"it has no connection"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, Method};

    use super::*;
    use rehearse_client::{Endpoint, Target};
    use rehearse_protocol::Direction;

    #[test]
    fn a_masked_frame_is_still_json() {
        let secrets = Secrets::default();
        let hidden = |frame: &'static str| hidden_frame(&secrets, &Bytes::from_static(frame.as_bytes()));
        assert_eq!(hidden(r#"{"a": 1}"#), r#"{"a": 1}"#);
        let mut value = serde_json::json!({ "pin": 1, "token": 1234567, "more": [{ "password": "x" }] });
        hide_value(&secrets, "", &mut value);
        assert_eq!(value.to_string(), r#"{"pin":1,"token":"***","more":[{"password":"***"}]}"#);
    }

    #[test]
    fn http_is_masked_and_keeps_apart_what_is_different() {
        let secrets = Secrets::from_target(&Target::Http(Endpoint { url: "http://h/".into(), headers: Vec::new() }));
        let hidden = |kind| hidden_event(&secrets, &Event { at: Duration::ZERO, exchange: None, kind }).kind;
        let request = |session: &'static str, target: &str| {
            let pairs = [("mcp-session-id", session), ("dpop", "short"), ("accept", "a")];
            let headers = pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            let kind = EventKind::HttpRequest {
                method: Method::POST,
                target: target.to_owned(),
                headers: headers.into_iter().collect(),
            };
            let EventKind::HttpRequest { target, headers, .. } = hidden(kind) else { panic!("no request") };
            let header = |name: &str| headers[name].to_str().expect("ASCII").to_owned();
            assert_eq!((header("dpop"), header("accept")), (MASK.to_owned(), "a".to_owned()));
            (header("mcp-session-id"), target)
        };
        let (one, target) = request("a-1234567890", "/callback?code=short&state=x");
        assert_eq!(target, "/callback?code=***&state=x");
        let (other, again) = (request("b-1234567890", "/"), request("a-1234567890", "/"));
        assert_eq!((one.clone(), "/".to_owned()), again);
        assert!(!one.contains("1234567890") && one.len() == 12 && one.as_bytes()[1] == b'-', "{one}");
        let differ = one.chars().zip(other.0.chars()).filter(|(one, other)| one != other);
        assert_eq!(differ.count(), 1);
        let form = "code=short&code_verifier=verify&grant_type=authorization_code";
        let body = EventKind::HttpBody { direction: Direction::ClientToServer, bytes: form.into() };
        let EventKind::HttpBody { bytes, .. } = hidden(body) else { panic!("no body") };
        assert_eq!(bytes, "code=***&code_verifier=***&grant_type=authorization_code");
    }
}
