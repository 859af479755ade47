//! `--otlp`: sends a span of every request to a collector of OpenTelemetry, as OTLP over HTTP.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use url::Url;

use super::{Failure, secrets::Secrets, style};
use rehearse_client::EventSink;
use rehearse_net::http_client::{self, describe};
use rehearse_protocol::{
    Event, EventKind,
    span::{Span, SpanReader, otlp_json},
    trace_file::ConnectionInfo,
};

/// The path of traces below the URL of a collector (OTLP/HTTP: Endpoint URLs).
const PATH: &str = "v1/traces";
/// Headers for the collector, as all programs with OpenTelemetry have them (OpenTelemetry Protocol Exporter).
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// How many spans one request has.
const BATCH: usize = 512;
/// How long a span waits for others.
const INTERVAL: Duration = Duration::from_secs(1);
/// How many bytes of events may wait. What comes while there are more is left out: no server waits for a collector.
const MAX_WAITING: usize = 32 << 20;
/// How long the collector may take for a request, and for what is left at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where spans are sent.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct OtlpArgs {
    /// Send a span of each request to this OpenTelemetry collector
    #[arg(long, value_name = "URL", hide_short_help = true, value_parser = endpoint)]
    otlp: Option<Url>,
}

/// The URL for traces of a collector.
fn endpoint(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it must start with http:// or https://".to_owned());
    }
    if !url.path().ends_with(PATH) {
        url.set_path(&format!("{}/{PATH}", url.path().trim_end_matches('/')));
    }
    Ok(url)
}

impl OtlpArgs {
    /// # Errors
    /// The HTTP client cannot be made.
    pub(super) fn exporter(&self) -> Result<Option<SpanExporter>, Failure> {
        self.otlp.clone().map(SpanExporter::start).transpose()
    }
}

/// Sends spans. Clones share the queue.
#[derive(Clone)]
pub(super) struct SpanExporter {
    queue: Sender<Item>,
    waiting: Arc<AtomicUsize>,
    /// How many events were left out.
    dropped: Arc<AtomicUsize>,
}

/// A connection whose spans are read.
struct OpenConnection {
    reader: Mutex<SpanReader>,
    secrets: Secrets,
}

enum Item {
    Event(Arc<OpenConnection>, Event),
    /// Send everything so far, and tell what went wrong.
    Flush(Sender<Option<String>>),
}

impl SpanExporter {
    fn start(url: Url) -> Result<SpanExporter, Failure> {
        let failure = |error: &dyn std::fmt::Display| Failure::cannot(format!("cannot send spans: {error}"));
        let builder = http_client::builder(http_client::is_loopback(&url)).timeout(PATIENCE);
        let client = builder.build().map_err(|error| failure(&describe(error)))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failure(&error))?;
        let headers: Vec<_> = std::env::var(HEADERS).unwrap_or_default().split(',').filter_map(header).collect();
        let (queue, items) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let taken = waiting.clone();
        std::thread::spawn(move || {
            send_all(&items, &taken, |spans| {
                let body = otlp_json(spans, env!("CARGO_PKG_VERSION"));
                let request = client.post(url.clone()).header("content-type", "application/json").body(body);
                let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
                let answer = runtime.block_on(async { request.send().await }).map_err(describe)?;
                match answer.status() {
                    status if status.is_success() => Ok(()),
                    status if status.is_redirection() => Err(format!("HTTP {status}: redirects are not followed")),
                    status => Err(format!("HTTP {status}")),
                }
            });
        });
        Ok(SpanExporter { queue, waiting, dropped: Arc::default() })
    }

    /// Begins a connection; returns what takes its events. `is_observer` is whether another program sends the requests.
    pub(super) fn connection(&self, info: &ConnectionInfo, secrets: Secrets, is_observer: bool) -> Box<dyn EventSink> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let reader = Mutex::new(SpanReader::new(info, now, is_observer, random));
        let (connection, exporter) = (Arc::new(OpenConnection { reader, secrets }), self.clone());
        Box::new(move |event: &Event| {
            if !matches!(event.kind, EventKind::Frame(_) | EventKind::Closed(_)) {
                return;
            }
            if exporter.waiting.load(Ordering::Relaxed) > MAX_WAITING {
                exporter.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            exporter.waiting.fetch_add(event.size(), Ordering::Relaxed);
            // The thread ends with the last sender.
            let _ = exporter.queue.send(Item::Event(connection.clone(), event.clone()));
        })
    }

    /// Sends what is left, and warns once of a collector that has not taken it.
    pub(super) fn finish(&self) {
        let (sender, answer) = mpsc::channel();
        let _ = self.queue.send(Item::Flush(sender));
        let dropped = self.dropped.load(Ordering::Relaxed);
        match answer.recv_timeout(2 * PATIENCE) {
            Ok(None) if dropped > 0 => style::warn(&format!("{dropped} messages have no spans: they came too fast")),
            Ok(None) => {}
            Ok(Some(error)) => style::warn(&format!("not all spans were sent: {error}")),
            Err(_) => style::warn("not all spans were sent: the collector is too slow"),
        }
    }
}

/// Reads spans, and sends them in batches. After a failure nothing more is sent.
fn send_all(items: &Receiver<Item>, waiting: &AtomicUsize, send: impl Fn(&[Span]) -> Result<(), String>) {
    let (mut spans, mut error, mut last) = (Vec::new(), None, Instant::now());
    loop {
        let item = items.recv_timeout(INTERVAL.saturating_sub(last.elapsed()));
        let answer = match item {
            Ok(Item::Event(connection, event)) => {
                waiting.fetch_sub(event.size(), Ordering::Relaxed);
                if error.is_none() {
                    let read = connection.reader.lock().take(&event);
                    spans.extend(read.into_iter().map(|span| hidden(span, &connection.secrets)));
                }
                None
            }
            Ok(Item::Flush(answer)) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if answer.is_some() || spans.len() >= BATCH || last.elapsed() >= INTERVAL {
            for batch in spans.chunks(BATCH) {
                error = error.or_else(|| send(batch).err());
            }
            spans.clear();
            last = Instant::now();
        }
        if let Some(answer) = answer {
            let _ = answer.send(error.clone());
        }
    }
}

/// The span without secrets in what comes from a server or a user.
fn hidden(mut span: Span, secrets: &Secrets) -> Span {
    let texts = span.attributes.iter_mut().map(|(_, value)| value).chain(&mut span.error).chain([&mut span.name]);
    texts.for_each(|text| *text = secrets.hidden_in_frame(text));
    span
}

/// `name=value`, percent-encoded (W3C Baggage).
fn header(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let value =
        url::form_urlencoded::parse(format!("v={}", value.replace('+', "%2B")).as_bytes()).next()?.1.into_owned();
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

/// A number that is not zero.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(SystemTime::now()).max(1)
}

/// The number of a trace.
pub(super) fn random_trace() -> u128 {
    u128::from(random()) << 64 | u128::from(random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_one_path_for_traces() {
        for (text, expected) in [
            ("http://h:4318", "http://h:4318/v1/traces"),
            ("http://h:4318/", "http://h:4318/v1/traces"),
            ("https://h/otlp/", "https://h/otlp/v1/traces"),
            ("https://h/x/v1/traces", "https://h/x/v1/traces"),
        ] {
            assert_eq!(endpoint(text).map(String::from).as_deref(), Ok(expected), "{text}");
        }
        assert!(endpoint("ftp://h").is_err() && endpoint("h:4318").is_err());
        assert_eq!(header("x-key=a%20b+c"), Some(("x-key".to_owned(), "a b+c".to_owned())));
    }
}
