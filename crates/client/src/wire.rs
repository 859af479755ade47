//! A connection without a session, for probes: it sends any bytes and any HTTP request, and records all that comes back.

use std::{
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method};
use reqwest::Url;
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{ConnectError, Endpoint, ServerParams, StderrSink, Target};
use crate::{
    recorder::TraceRecorder,
    transport::{
        Child, Duplex, EventChunks, Link, LinkError, OpenConnection, Outgoing, http::whole_body, memory, sse, stdio,
        web, ws,
    },
};
use rehearse_protocol::{Closed, Direction, EventKind, Frame, LineSplitter, ProcessEvent, Transport};

/// A connection to a server, without a handshake. Nothing is retried, added or left out.
///
/// Over streamable HTTP nothing is connected until the first [`Wire::exchange`]; over everything else [`Wire::send`]
/// sends frames, and what the server sends is recorded as it comes.
pub struct Wire {
    recorder: TraceRecorder,
    link: WireLink,
    child: Option<Child>,
    shutdown: CancellationToken,
    /// Why the last HTTP request without a response has none.
    failure: Arc<Mutex<Option<String>>>,
}

enum WireLink {
    Duplex { outgoing: Outgoing, reading: JoinHandle<Duplex>, stop: CancellationToken, http: Option<HttpEndpoint> },
    Http(HttpEndpoint),
}

/// Where HTTP requests go.
struct HttpEndpoint {
    http: reqwest::Client,
    url: Url,
    headers: HeaderMap,
}

impl HttpEndpoint {
    fn new(at: &Endpoint, schemes: &[&str]) -> Result<HttpEndpoint, ConnectError> {
        let invalid = |error| ConnectError::from_open(error, &web::display_url(&at.url));
        let mut url = web::parse_url(&at.url, schemes).map_err(invalid)?;
        match url.scheme() {
            "ws" => drop(url.set_scheme("http")),
            "wss" => drop(url.set_scheme("https")),
            _ => {}
        }
        let (http, headers) = (web::client(&url).map_err(invalid)?, web::header_map(&at.headers).map_err(invalid)?);
        Ok(HttpEndpoint { http, url, headers })
    }
}

/// An HTTP request of a [`Wire`].
#[derive(Clone, Debug, Default)]
pub struct WireRequest {
    /// The HTTP method.
    pub method: Method,
    /// A path that replaces that of the endpoint; `None` for the endpoint itself.
    pub path: Option<String>,
    /// The headers, in addition to those that are configured for the server, which they replace.
    pub headers: HeaderMap,
    /// Whether the names of the headers begin in upper case, over HTTP/1.1.
    pub has_title_case: bool,
    /// The body; it is recorded as a frame.
    pub body: Option<Bytes>,
    /// The case of a probe, recorded before the request.
    pub case: Option<Arc<str>>,
}

/// An HTTP exchange that has begun. Dropping it ends it.
#[derive(Debug)]
pub struct WireExchange {
    /// The number of the exchange in the trace.
    pub number: u32,
    running: JoinHandle<()>,
}

impl WireExchange {
    /// Waits until the response has ended or failed; false after the time limit, and the exchange goes on.
    pub async fn ended(&mut self, limit: Duration) -> bool {
        timeout(limit, &mut self.running).await.is_ok()
    }

    /// Whether the response has ended or failed.
    pub fn is_finished(&self) -> bool {
        self.running.is_finished()
    }
}

impl Drop for WireExchange {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Wire {
    /// Connects: starts the process, or opens the stream of HTTP+SSE or the WebSocket. HTTP is recorded in detail.
    ///
    /// # Errors
    /// The server cannot be started or reached; never what it answers to a message.
    pub async fn open(
        params: &ServerParams,
        stderr: Option<StderrSink>,
        recorder: TraceRecorder,
    ) -> Result<Wire, ConnectError> {
        let recorder = recorder.with_details();
        let shutdown = params.shutdown.clone();
        let opened = match &params.target {
            Target::Stdio(spec) => {
                let splitter = LineSplitter::default().with_blank_lines();
                stdio::open(spec, &params.name, stderr, recorder.clone(), splitter)
            }
            Target::Memory(address) => memory::open(address, recorder.clone()),
            Target::Sse(at) => sse::open(&at.url, &at.headers, None, recorder.clone()).await,
            Target::Ws(at) => ws::open(&at.url, &at.headers, None, recorder.clone()).await,
            Target::Http(at) => {
                let link = WireLink::Http(HttpEndpoint::new(at, &["http", "https"])?);
                recorder.note(EventKind::Opened(Transport::Http));
                return Ok(Wire { recorder, link, child: None, shutdown, failure: Arc::default() });
            }
        };
        let name = match &params.target {
            Target::Sse(at) | Target::Ws(at) => web::display_url(&at.url),
            _ => params.name.clone(),
        };
        let http = match &params.target {
            Target::Sse(at) => Some(HttpEndpoint::new(at, &["http", "https"])?),
            Target::Ws(at) => Some(HttpEndpoint::new(at, &["ws", "wss"])?),
            _ => None,
        };
        let OpenConnection { link, child, .. } = opened.map_err(|error| ConnectError::from_open(error, &name))?;
        recorder.note(EventKind::Opened(params.target.transport()));
        let Link::Duplex(mut duplex) = link else {
            return Err(ConnectError::Invalid("this transport has no frames of its own".to_owned()));
        };
        let (outgoing, stop) = (duplex.outgoing(), CancellationToken::new());
        let stopped = stop.clone();
        let reading = tokio::spawn(async move {
            while stopped.run_until_cancelled(duplex.read_frame()).await == Some(true) {}
            *duplex
        });
        Ok(Wire {
            recorder,
            link: WireLink::Duplex { outgoing, reading, stop, http },
            child,
            shutdown,
            failure: Arc::default(),
        })
    }

    /// The recorder of the connection.
    pub fn recorder(&self) -> &TraceRecorder {
        &self.recorder
    }

    /// Whether messages are HTTP requests: [`Wire::exchange`] instead of [`Wire::send`].
    pub fn is_http(&self) -> bool {
        matches!(self.link, WireLink::Http(_))
    }

    /// Sends the bytes as one frame; over HTTP+SSE as one POST.
    ///
    /// # Errors
    /// Why it could not be sent. A status that refuses a POST is no error.
    pub async fn send(&self, case: Option<Arc<str>>, bytes: Bytes) -> Result<(), String> {
        let WireLink::Duplex { outgoing, .. } = &self.link else {
            return Err("streamable HTTP has no frames outside of requests".to_owned());
        };
        if let Some(case) = case {
            self.recorder.note(EventKind::Case(case));
        }
        match outgoing.send(bytes).await {
            Ok(_) | Err(LinkError::Status { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Sends frames over a pipe, each as a case, with one write; with a pause, in two halves of the bytes.
    ///
    /// # Errors
    /// Why it could not be sent; also on other transports.
    pub async fn send_joined(&self, frames: Vec<(Arc<str>, Bytes)>, pause: Option<Duration>) -> Result<(), String> {
        let WireLink::Duplex { outgoing, .. } = &self.link else {
            return Err("streamable HTTP has no frames outside of requests".to_owned());
        };
        outgoing.write_joined(frames, pause).await.map_err(|error| error.to_string())
    }

    /// Begins an HTTP request; its response is read to its end in a task, however long it takes. Over HTTP+SSE and
    /// WebSocket it is one of its own, beside the connection.
    ///
    /// # Errors
    /// The transport has no HTTP.
    pub fn exchange(&self, request: WireRequest) -> Result<WireExchange, String> {
        let (WireLink::Http(endpoint) | WireLink::Duplex { http: Some(endpoint), .. }) = &self.link else {
            return Err("a pipe has no HTTP requests".to_owned());
        };
        let HttpEndpoint { http, url, headers } = endpoint;
        let mut url = url.clone();
        if let Some(path) = &request.path {
            let (path, query) = path.split_once('?').map_or((path.as_str(), None), |(path, query)| (path, Some(query)));
            url.set_path(path);
            url.set_query(query);
        }
        let mut all = headers.clone();
        for name in request.headers.keys() {
            all.remove(name);
        }
        all.extend(request.headers);
        let titled = request.has_title_case.then(|| web::title_case_client(&url)).transpose();
        let http = titled.map_err(|error| error.to_string())?.unwrap_or_else(|| http.clone());
        let is_document = request.path.is_some() && request.method == Method::GET;
        let mut builder = http.request(request.method, url).headers(all);
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        let (recorder, number) = (self.recorder.clone(), self.recorder.new_exchange());
        let failure = self.failure.clone();
        if let Some(case) = request.case {
            recorder.note_in(Some(number), EventKind::Case(case));
        }
        let running = tokio::spawn(async move {
            let sent = web::send_in(number, &http, builder, &recorder, request.body.as_ref()).await;
            let is_whole = match sent {
                Ok(response) => read(response, &recorder, number, is_document).await,
                Err(error) => {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                    return;
                }
            };
            recorder.note_in(Some(number), EventKind::HttpEnd { is_whole });
        });
        Ok(WireExchange { number, running })
    }

    /// The first frame from index `from` on that the predicate accepts; `None` after the time limit or at the end of the
    /// connection.
    pub async fn wait_for(
        &self,
        from: usize,
        limit: Duration,
        mut accepts: impl FnMut(&Frame) -> bool,
    ) -> Option<Frame> {
        let waiting = self.recorder.wait_for(from, |frame| accepts(frame));
        timeout(limit, waiting).await.ok().flatten().map(|(_, frame)| frame)
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.recorder.closed().is_some()
    }

    /// Why the last HTTP request without a response has none: no connection, or one that broke.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last lines of the standard error of the server's process.
    pub fn last_lines(&self) -> Vec<String> {
        self.child.as_ref().map(Child::last_lines).unwrap_or_default()
    }

    /// Closes the standard input or the connection, records what still comes, and stops the process. Returns its exit
    /// status.
    pub async fn close(self) -> Option<ExitStatus> {
        if let WireLink::Duplex { outgoing, reading, stop, .. } = self.link {
            if self.child.is_some() {
                self.recorder.note(EventKind::Process(ProcessEvent::InputClosed));
                outgoing.close_input().await;
                if let Some(child) = self.child {
                    let (status, _) = tokio::join!(child.stop(&self.shutdown), async {
                        let _ = timeout(DRAIN, reading).await;
                    });
                    stop.cancel();
                    self.recorder.close(Closed::by_client("the prober closed the connection"));
                    return status;
                }
                return None;
            }
            stop.cancel();
            if let Ok(mut duplex) = reading.await {
                let _ = rmcp::transport::Transport::close(&mut duplex).await;
            }
        }
        self.recorder.close(Closed::by_client("the prober closed the connection"));
        None
    }
}

/// How long to read what a process writes after the end of its standard input.
const DRAIN: Duration = Duration::from_secs(5);

/// Records the body of a response: the frames and all bytes of an event stream, or one frame; what another path than the
/// endpoint returns to a GET is no frame. False if it broke.
async fn read(response: reqwest::Response, recorder: &TraceRecorder, number: u32, is_document: bool) -> bool {
    if web::media_type(&response) == "text/event-stream" {
        let mut chunks = EventChunks::new(response);
        loop {
            match chunks.next().await {
                Ok(Some((bytes, frames))) => {
                    let kind = EventKind::HttpBody { direction: Direction::ServerToClient, bytes };
                    recorder.note_in(Some(number), kind);
                    for frame in frames {
                        recorder.record_in(Some(number), Direction::ServerToClient, frame);
                    }
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
    let is_json = web::media_type(&response) == "application/json";
    match whole_body(response).await {
        Ok(body) if body.is_empty() => true,
        Ok(body) if !is_document && (is_json || matches!(body.first(), Some(b'{' | b'['))) => {
            recorder.record_in(Some(number), Direction::ServerToClient, body);
            true
        }
        Ok(body) => {
            recorder.note_in(Some(number), EventKind::HttpBody { direction: Direction::ServerToClient, bytes: body });
            true
        }
        Err(_) => false,
    }
}
