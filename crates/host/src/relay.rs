//! What stands between a host and the server, and records what passes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rehearse_client::{CommandSpec, Endpoint, EventSink, ServerParams, StderrLine, Target};
use rehearse_protocol::{Event, Trace, Transport};
use rehearse_relay::{HttpRelay, process_streams, relay_lines};
use rehearse_system::local_pipe::{LocalListener, LocalReader, LocalWriter, address_in};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::HostError;

/// How much of a connection is kept.
const KEPT_EVENTS: usize = 20_000;
const KEPT_BYTES: usize = 64 << 20;
/// How many bytes may wait for a host that reads slowly.
const WAITING: usize = 64 << 10;
/// How long a server may take to end after its host.
const GRACE: Duration = Duration::from_secs(3);

type Traces = Arc<Mutex<Vec<Arc<Mutex<Trace>>>>>;

/// A relay with the transport of the server. It ends on drop.
pub(crate) struct ServerRelay {
    entry: Entry,
    traces: Traces,
    stop: CancellationToken,
}

/// How the host gets to it.
enum Entry {
    /// By a process, which finds the relay at the pipe.
    Process { rehearse: PathBuf, pipe: PathBuf, serving: JoinHandle<()> },
    /// By a URL, with these headers.
    Http { relay: HttpRelay, transport: Transport, headers: Vec<(String, String)> },
}

impl ServerRelay {
    /// # Errors
    /// There is no such transport, or no pipe or port can be listened on.
    pub(crate) async fn start(
        server: &ServerParams,
        folder: &Path,
        rehearse: &Path,
        shutdown: &CancellationToken,
    ) -> Result<ServerRelay, HostError> {
        let (traces, stop) = (Traces::default(), shutdown.child_token());
        let entry = match &server.target {
            Target::Http(Endpoint { url, headers }) | Target::Sse(Endpoint { url, headers }) => {
                let transport = server.target.transport();
                let notes = traces.clone();
                let sinks = Arc::new(move |_: &_| sink(&notes));
                let relay = HttpRelay::start(([127, 0, 0, 1], 0).into(), url, transport, sinks).await?;
                Entry::Http { relay, transport, headers: headers.clone() }
            }
            Target::Stdio(_) => {
                let pipe = address_in(folder);
                let listener = LocalListener::bind(&pipe)?;
                let params = ServerParams { shutdown: stop.clone(), ..server.clone() };
                let serving = tokio::spawn(serve(listener, params, traces.clone()));
                Entry::Process { rehearse: rehearse.to_owned(), pipe, serving }
            }
            other => return Err(HostError::Transport(other.transport())),
        };
        Ok(ServerRelay { entry, traces, stop })
    }

    /// How the host gets to it.
    pub(crate) fn target(&self) -> Target {
        match &self.entry {
            Entry::Process { rehearse, pipe, .. } => {
                let [program, pipe] = [rehearse, pipe].map(|path| path.display().to_string());
                Target::Stdio(CommandSpec { program, args: vec!["relay".into(), pipe], ..CommandSpec::default() })
            }
            Entry::Http { relay, transport, headers } => {
                let endpoint = Endpoint { url: relay.url(), headers: headers.clone() };
                if *transport == Transport::Sse { Target::Sse(endpoint) } else { Target::Http(endpoint) }
            }
        }
    }

    /// Ends the relay and the processes of the server. Returns the traffic of each connection.
    pub(crate) async fn stop(self) -> Vec<Trace> {
        self.stop.cancel();
        match self.entry {
            Entry::Process { serving, .. } => drop(tokio::time::timeout(GRACE, serving).await),
            Entry::Http { relay, .. } => relay.stop().await,
        }
        let mut traces = self.traces.lock();
        traces.drain(..).map(|trace| std::mem::take(&mut *trace.lock())).collect()
    }
}

/// Writes the events of a new connection into a trace.
fn sink(traces: &Traces) -> Box<dyn EventSink> {
    let trace = Arc::new(Mutex::new(Trace::beginning(KEPT_EVENTS, KEPT_BYTES)));
    traces.lock().push(trace.clone());
    Box::new(move |event: &Event| trace.lock().push_event(event.clone()))
}

/// Starts the server for each process of the host that connects.
async fn serve(listener: LocalListener, params: ServerParams, traces: Traces) {
    let mut processes = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((reader, writer)) = accepted {
                    processes.spawn(relay(reader, writer, params.clone(), sink(&traces)));
                }
            }
            Some(_) = processes.join_next() => {}
            () = params.shutdown.cancelled() => break,
        }
    }
    while processes.join_next().await.is_some() {}
}

async fn relay(reader: LocalReader, writer: LocalWriter, params: ServerParams, sink: Box<dyn EventSink>) {
    let (input, mut output) = process_streams(reader, writer);
    let (mut lines, written) = tokio::io::duplex(WAITING);
    let stderr = Arc::new(|_: StderrLine| {});
    let copying = async { tokio::io::copy(&mut lines, &mut output.0).await };
    let (status, _) = tokio::join!(relay_lines(&params, sink, stderr, input, written), copying);
    let code = status.ok().flatten().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    // The host may have ended it.
    let _ = output.end(code.unwrap_or(1)).await;
}
