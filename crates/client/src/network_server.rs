//! A server command that listens on the network.

use std::{
    collections::HashSet,
    io,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use rand::RngExt;
use tokio::{
    io::BufReader,
    net::TcpStream,
    process::ChildStdin,
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    recorder::ClientRecorder,
    transport::{
        Child, CommandSpec, OpenError, StderrLine, StderrSink, StopGrace, child::listen, stderr::stderr_excerpt,
    },
};

/// How long another server may take to accept a connection.
const OTHER: Duration = Duration::from_secs(1);
/// The pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(20);
/// Linux gives 32,768 and above to a program that asks for any port, Windows and macOS 49,152 and above.
const PORTS: Range<u16> = 20_000..32_768;

/// A running server command that listens on the network. Dropping it kills the command with all processes that it started.
#[derive(Debug)]
pub struct NetworkServer {
    child: Child,
    // Some servers end with their standard input.
    _stdin: ChildStdin,
    _stdout: AbortOnDropHandle<()>,
}

/// What shows that a server command is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Readiness {
    /// Its address accepts connections.
    Address,
    /// A line of its standard output or standard error contains this text.
    Output(String),
}

/// A server command that did not become ready. No process is left running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The command could not be started.
    #[error("{program:?} could not be started: {source}")]
    Spawn {
        /// The program of the command.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The command ended before it was ready.
    #[error("the command ended before it was ready{}{}", .status.as_ref().map(|it| format!(": {it}")).unwrap_or_default(), stderr_excerpt(.lines))]
    Ended {
        /// Its exit status, if it is known.
        status: Option<std::process::ExitStatus>,
        /// The last lines of its output.
        lines: Vec<String>,
    },
    /// The command was not ready in time.
    #[error("the command was not ready within {after:?}: {}{}", missing(.readiness, .address), stderr_excerpt(.lines))]
    Timeout {
        /// The time limit.
        after: Duration,
        /// What was waited for.
        readiness: Readiness,
        /// Where it was to listen.
        address: String,
        /// The last lines of its output.
        lines: Vec<String>,
    },
    /// Another server listens where the command is to listen.
    #[error("another server listens on {0} already")]
    Taken(String),
    /// The caller stopped the start.
    #[error("the start was cancelled")]
    Cancelled,
}

/// The address of a URL, `host:port`; `None` if it has no host.
pub fn address(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

impl NetworkServer {
    /// Starts a command that is to listen on an address, and waits until it is ready, at most for `limit`. Each line of its
    /// output goes to `output`.
    ///
    /// # Errors
    /// [`StartError`] says why the command is not ready; [`StartError::Cancelled`] after `shutdown`.
    pub async fn start(
        command: &CommandSpec,
        (name, address): (&str, &str),
        readiness: Readiness,
        output: StderrSink,
        limit: Duration,
        shutdown: &CancellationToken,
    ) -> Result<NetworkServer, StartError> {
        if let Ok(Ok(_)) = timeout(OTHER, TcpStream::connect(address)).await {
            return Err(StartError::Taken(address.to_owned()));
        }
        let (seen, mut was_seen) = watch::channel(false);
        let wanted = match &readiness {
            Readiness::Output(text) => Some(text.clone()),
            Readiness::Address => None,
        };
        let sink: StderrSink = Arc::new(move |line: StderrLine| {
            if wanted.as_ref().is_some_and(|text| line.line.contains(text)) {
                seen.send_replace(true);
            }
            output(line);
        });
        // A server on the network does not end with its standard input.
        let grace = StopGrace { exit: Duration::ZERO, ..command.grace };
        let command = CommandSpec { grace, ..command.clone() };
        let (child, pipes) =
            Child::spawn(&command, name, Some(sink.clone()), ClientRecorder::new()).map_err(spawn_error)?;
        let server: Arc<str> = name.into();
        let stdout = tokio::spawn(async move {
            listen(BufReader::new(pipes.stdout), None, |line| sink(StderrLine { server: Arc::clone(&server), line }))
                .await;
        });
        let stdout = AbortOnDropHandle::new(stdout);
        let ready = async {
            match &readiness {
                Readiness::Address => accept(address).await,
                // It waits for ever if the output ends.
                Readiness::Output(_) if was_seen.wait_for(|seen| *seen).await.is_ok() => {}
                Readiness::Output(_) => std::future::pending().await,
            }
        };
        let error = tokio::select! {
            biased;
            () = shutdown.cancelled() => StartError::Cancelled,
            (status, lines) = child.exit_details(Duration::MAX) => StartError::Ended { status, lines },
            ready = timeout(limit, ready) => match ready {
                Ok(()) => match child.exit_details(Duration::ZERO).await {
                    (None, _) => return Ok(NetworkServer { child, _stdin: pipes.stdin, _stdout: stdout }),
                    // What accepts connections is another server.
                    (status, lines) => StartError::Ended { status, lines },
                },
                Err(_) => {
                    let (address, lines) = (address.to_owned(), child.last_lines());
                    StartError::Timeout { after: limit, lines, readiness, address }
                }
            },
        };
        child.stop(shutdown).await;
        Err(error)
    }

    /// Ends the command and all processes that it started: SIGTERM, then SIGKILL.
    pub async fn stop(self, shutdown: &CancellationToken) {
        self.child.stop(shutdown).await;
    }
}

/// Waits until the address accepts a connection.
async fn accept(address: &str) {
    while TcpStream::connect(address).await.is_err() {
        sleep(PAUSE).await;
    }
}

fn missing(readiness: &Readiness, address: &str) -> String {
    match readiness {
        Readiness::Address => format!("nothing listens on {address}"),
        Readiness::Output(text) => format!("it printed no line with {text:?}"),
    }
}

fn spawn_error(error: OpenError) -> StartError {
    match error {
        OpenError::Spawn { program, source } => StartError::Spawn { program, source },
        other => StartError::Spawn { program: String::new(), source: io::Error::other(other.to_string()) },
    }
}

/// A port of 127.0.0.1 on which nothing listens. This process gets each port once; no system gives one to an outgoing
/// connection or to a listener on port 0.
///
/// # Errors
/// No port is free.
pub fn free_port() -> io::Result<u16> {
    static TAKEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);
    let mut result = Err(io::ErrorKind::AddrInUse.into());
    for _ in 0..PORTS.len() {
        let port = rand::rng().random_range(PORTS);
        if !TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            continue;
        }
        result = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(|_| port);
        if result.is_ok() {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_free_port_is_another_one_that_no_system_gives_away() {
        let ports: HashSet<u16> = std::iter::repeat_with(|| free_port().expect("a port")).take(100).collect();
        assert_eq!(ports.len(), 100);
        assert!(ports.iter().all(|port| PORTS.contains(port)), "{ports:?}");
    }
}
