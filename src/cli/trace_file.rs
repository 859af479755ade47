//! `--trace-file`: writes every event of every connection as it happens, so that a crash of a server loses nothing.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, Receiver, Sender},
    },
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Failure, secrets::Secrets};
use rehearse_client::ClientRecorder;
use rehearse_client_configs::secret::{MASK, is_secret_name};
use rehearse_protocol::{
    Event, EventKind,
    trace_file::{ConnectionInfo, connection_line, event_line, header_line},
};

/// Writes the traces of any number of connections to one file. Clones share it.
///
/// A thread masks and writes, so that recording does not slow down what is recorded.
#[derive(Clone, Debug)]
pub(super) struct TraceFileWriter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    lines: Sender<Line>,
    connections: AtomicU32,
}

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
    /// As there.
    pub(super) fn append(path: &Path) -> Result<TraceFileWriter, Failure> {
        // Processes that record at the same time have different numbers.
        TraceFileWriter::open(path, OpenOptions::new().append(true), std::process::id() << 8)
    }

    fn open(path: &Path, options: &mut OpenOptions, first: u32) -> Result<TraceFileWriter, Failure> {
        options.create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
        let opened = options.open(path).and_then(|file| {
            let metadata = file.metadata()?;
            #[cfg(unix)]
            if metadata.is_file() {
                file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            }
            Ok((file, metadata.len()))
        });
        let (file, length) = opened.map_err(|error| cannot_write(path, &error))?;
        let (lines, queue) = mpsc::channel();
        std::thread::spawn(move || write_all(file, &queue));
        let writer =
            TraceFileWriter(Arc::new(Inner { path: path.to_owned(), lines, connections: AtomicU32::new(first) }));
        // Another recorder may have been killed within a line.
        writer.0.add(Line::Text(if length == 0 { header_line() } else { "\n".to_owned() }));
        writer.check().map(|()| writer)
    }

    /// Begins a connection; returns what adds its events. Without `secrets` nothing is masked.
    pub(super) fn connection(
        &self,
        info: &ConnectionInfo,
        secrets: Option<Secrets>,
    ) -> impl Fn(&Event) + Send + Sync + use<> {
        let number = self.0.connections.fetch_add(1, Ordering::Relaxed);
        self.0.add(Line::Text(connection_line(number, info)));
        let (inner, secrets) = (self.0.clone(), Arc::new(secrets));
        move |event| inner.add(Line::Event(number, event.clone(), secrets.clone()))
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
        let (sender, answer) = mpsc::channel();
        self.0.add(Line::Check(sender));
        match answer.recv() {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(cannot_write(&self.0.path, &error)),
            Err(error) => Err(cannot_write(&self.0.path, &error)),
        }
    }
}

impl Inner {
    fn add(&self, line: Line) {
        // The thread ends with the last sender.
        let _ = self.lines.send(line);
    }
}

/// Writes each line at once: what is written before a crash is whole. Nothing follows a line that could not be written.
fn write_all(mut file: File, lines: &Receiver<Line>) {
    let mut error = None;
    for line in lines {
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
    }
}

fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::cannot(format!("cannot write {}: {error}", path.display()))
}

/// The event with masked secrets. JSON stays JSON.
fn hidden_event(secrets: &Secrets, event: &Event) -> Event {
    let mut event = event.clone();
    match &mut event.kind {
        EventKind::Frame(frame) => frame.bytes = hidden_frame(secrets, &frame.bytes),
        EventKind::HttpBody { bytes, .. } => *bytes = hidden_bytes(bytes, |text| secrets.hidden_in_frame(text)),
        EventKind::Stderr(bytes) => *bytes = hidden_bytes(bytes, |text| secrets.hidden_in_stderr(text)),
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
        Value::String(text) => *text = secrets.hidden(text),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_frame_is_still_json() {
        let secrets = Secrets::default();
        let hidden = |frame: &'static str| hidden_frame(&secrets, &Bytes::from_static(frame.as_bytes()));
        assert_eq!(hidden(r#"{"a": 1}"#), r#"{"a": 1}"#);
        let mut value = serde_json::json!({ "pin": 1, "token": 1234567, "more": [{ "password": "x" }] });
        hide_value(&secrets, "", &mut value);
        assert_eq!(value.to_string(), r#"{"pin":1,"token":"***","more":[{"password":"***"}]}"#);
    }
}
