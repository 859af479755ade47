//! Serves a client over a byte stream with the framing of stdio (2026-07-28, stdio).

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Caller, Connection, ConnectionOutput},
    connection_trace::ConnectionTrace,
    lifetime::ServerLifetime,
    recorder::ServerRecorder,
};
use crate::{
    engine::Engine,
    faults::{SendStep, SendSteps, Stop},
};
use rehearse_net::{LineReader, LineWriter};
use rehearse_protocol::{Closed, Direction, Transport};

/// The reason why serving over a pipe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeEnd {
    /// The client closed its end, or a fault closed the pipe.
    Closed,
    /// `stop` was cancelled.
    Stopped,
    /// The script made the server exit with this code.
    Exited(u8),
}

/// How long answers may still take after the end of input. Clients wait about 2 s before they kill a server.
const END_OF_INPUT_GRACE: Duration = Duration::from_millis(250);

/// Serves one client until it closes its end or `stop` is cancelled. Answers in progress may then still take as long as
/// `grace`, but only 250 ms after the client has closed its end (2026-07-28, stdio: Shutdown).
///
/// # Errors
/// The pipe cannot be read. A client that no longer reads is not an error.
pub async fn serve_pipe<R, W>(
    engine: Arc<Engine>,
    transport: Transport,
    reader: R,
    writer: W,
    stop: CancellationToken,
    grace: Duration,
) -> io::Result<PipeEnd>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (connection, frames) =
        Connection::open(engine, transport, None, Caller::default(), ServerLifetime::start(Instant::now()), None);
    serve(connection, frames, None, reader, writer, stop, grace).await
}

/// A server with several clients, each connected by its own pipe.
#[derive(Clone, Debug)]
pub struct PipeServer {
    engine: Arc<Engine>,
    lifetime: ServerLifetime,
    recorder: Option<Arc<ServerRecorder>>,
}

impl PipeServer {
    /// A server for this engine.
    pub fn new(engine: Arc<Engine>) -> PipeServer {
        PipeServer::with_lifetime(engine, ServerLifetime::start(Instant::now()), None)
    }

    /// The same server, whose [traces](super::MockServer::traces) are recorded.
    #[must_use]
    pub fn record_traces(self, recorder: Option<Arc<ServerRecorder>>) -> PipeServer {
        PipeServer { recorder, ..self }
    }

    pub(super) fn with_lifetime(
        engine: Arc<Engine>,
        lifetime: ServerLifetime,
        recorder: Option<Arc<ServerRecorder>>,
    ) -> PipeServer {
        PipeServer { engine, lifetime, recorder }
    }

    /// Like [`serve_pipe`]. Tasks that the client begins outlive the pipe.
    ///
    /// # Errors
    /// Like [`serve_pipe`].
    pub async fn serve<R, W>(
        &self,
        transport: Transport,
        reader: R,
        writer: W,
        stop: CancellationToken,
        grace: Duration,
    ) -> io::Result<PipeEnd>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let lifetime = ServerLifetime::start(self.lifetime.started);
        let (connection, frames) = Connection::open(
            self.engine.clone(),
            transport,
            None,
            Caller::default(),
            lifetime,
            Some(self.lifetime.clone()),
        );
        let trace = self.recorder.as_ref().map(|recorder| recorder.open(transport));
        let ended = tokio::select! {
            ended = serve(connection, frames, trace.as_deref(), reader, writer, stop, grace) => ended,
            () = self.lifetime.shutdown.kill.cancelled() => Ok(self.lifetime.exit_code().map_or(PipeEnd::Stopped, PipeEnd::Exited)),
        };
        if let Some(trace) = trace {
            trace.close(match &ended {
                Ok(PipeEnd::Closed) => Closed::by_client("the pipe was closed"),
                Ok(PipeEnd::Stopped) => Closed::by_limit("the server was stopped"),
                Ok(PipeEnd::Exited(code)) => Closed::by_server(format!("the server exited with code {code}")).broken(),
                Err(error) => Closed::by_client(format!("the pipe cannot be read: {error}")).broken(),
            });
        }
        ended
    }

    /// Ends the tasks in the background.
    pub async fn end(&self) {
        self.lifetime.shutdown.end(Duration::ZERO).await;
    }
}

async fn serve<R, W>(
    connection: Connection,
    frames: mpsc::Receiver<ConnectionOutput>,
    trace: Option<&ConnectionTrace>,
    reader: R,
    writer: W,
    stop: CancellationToken,
    grace: Duration,
) -> io::Result<PipeEnd>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let write = write(frames, trace, LineWriter::new(writer));
    let serve = async {
        let ended = read(&connection, trace, reader, &stop).await;
        let patience = match ended {
            Ok(PipeEnd::Closed) => {
                connection.close_input();
                Some(grace.min(END_OF_INPUT_GRACE))
            }
            Ok(PipeEnd::Stopped) => Some(grace),
            _ => None,
        };
        if let Some(patience) = patience {
            let _ = tokio::time::timeout(patience, connection.finish()).await;
        }
        connection.cancel().await;
        let exit_code = connection.exit_code();
        drop(connection);
        ended.map(|ended| exit_code.map_or(ended, PipeEnd::Exited))
    };
    let (mut serve, mut write) = (std::pin::pin!(serve), std::pin::pin!(write));
    tokio::select! {
        ended = serve.as_mut() => {
            match ended {
                Ok(PipeEnd::Closed | PipeEnd::Stopped) => {
                    let stop = tokio::time::timeout(grace, write).await.ok().flatten();
                    ended.map(|ended| stop.map_or(ended, pipe_end))
                }
                ended => ended,
            }
        }
        stop = write.as_mut() => Ok(stop.map_or(PipeEnd::Closed, pipe_end)),
    }
}

fn pipe_end(stop: Stop) -> PipeEnd {
    match stop {
        Stop::Exit(code) => PipeEnd::Exited(code),
        _ => PipeEnd::Closed,
    }
}

/// Writes until there are no more frames, the client no longer reads, or a fault ends the pipe.
async fn write<W: AsyncWrite + Unpin>(
    mut frames: mpsc::Receiver<ConnectionOutput>,
    trace: Option<&ConnectionTrace>,
    mut writer: LineWriter<W>,
) -> Option<Stop> {
    let line = |bytes: Bytes, is_whole| if is_whole { [&bytes[..], b"\n"].concat().into() } else { bytes };
    while let Some(outgoing) = frames.recv().await {
        if let Some(trace) = trace {
            outgoing.record(trace);
        }
        let steps = match outgoing {
            ConnectionOutput::Frame(frame) => match writer.write(&frame).await {
                Ok(()) => continue,
                Err(_) => return None,
            },
            ConnectionOutput::Packet(packet) => packet.steps(line),
            ConnectionOutput::Stop(stop) => SendSteps::new(Bytes::new(), stop),
        };
        for step in steps {
            match step {
                SendStep::Bytes(bytes) => writer.write_bytes(&bytes).await.ok()?,
                SendStep::Wait(time) => tokio::time::sleep(time).await,
                // Nothing can be sent after half a line.
                SendStep::Stop(Stop::Hang) => while frames.recv().await.is_some() {},
                SendStep::Stop(stop) => return Some(stop),
            }
        }
    }
    None
}

async fn read<R: AsyncRead + Unpin>(
    connection: &Connection,
    trace: Option<&ConnectionTrace>,
    reader: R,
    stop: &CancellationToken,
) -> io::Result<PipeEnd> {
    let mut reader = LineReader::new(reader);
    loop {
        let line = tokio::select! {
            line = reader.next() => line?,
            () = stop.cancelled() => return Ok(PipeEnd::Stopped),
            () = connection.closed() => return Ok(PipeEnd::Exited(connection.exit_code().unwrap_or_default())),
        };
        if let (Some(trace), Some(Ok(frame))) = (trace, &line) {
            trace.record_frame(Direction::ClientToServer, frame.clone());
        }
        let received = async {
            match line {
                Some(Ok(frame)) => drop(connection.receive(&frame, None).await),
                Some(Err(too_long)) => connection.refuse(None, &too_long.to_string()).await,
                None => return true,
            }
            false
        };
        tokio::select! {
            at_end = received => if at_end { return Ok(PipeEnd::Closed) },
            () = stop.cancelled() => return Ok(PipeEnd::Stopped),
        }
    }
}
