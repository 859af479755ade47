//! Serves the mock of another process on stdio: it forwards stdin and stdout through a socket. Its client has the same
//! mock as the clients over the network, with one state, one journal and one verification.
//!
//! Bytes from the client go through the socket unchanged. The other direction has length-prefixed frames: pieces of the
//! stream, then an empty frame, then one byte, the exit code of this process.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::{
    io::AsyncWriteExt,
    net::{UnixListener, UnixStream},
    runtime,
    task::JoinSet,
};
use tokio_util::{
    codec::{FramedRead, FramedWrite, LengthDelimitedCodec},
    io::{CopyToBytes, SinkWriter},
    sync::CancellationToken,
};

use super::{
    server::{GRACE, runtime_failure},
    stdio,
};
use crate::cli::{Exit, Failure, signals::Signals};
use rehearse_mock::serve::{PipeEnd, PipeServer};
use rehearse_protocol::Transport;

/// What is written to standard error.
const LOG: &[u8] = b"The server is up, and all is well.\n";

/// The socket of the mock, and what a process does by itself.
#[derive(Debug, clap::Args)]
pub(crate) struct RelayArgs {
    socket: PathBuf,
    /// A folder for a file with the end of standard input and the signals, each with its time in milliseconds
    #[arg(long)]
    notes: Option<PathBuf>,
    /// Writes so many bytes to standard error first
    #[arg(long, default_value_t = 0)]
    stderr: usize,
    /// Ends so many milliseconds after the end of standard input
    #[arg(long, default_value_t = 0)]
    linger: u64,
    /// Does not end by SIGTERM meanwhile
    #[arg(long)]
    deaf: bool,
}

fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(u32::MAX as usize).new_codec()
}

/// Serves relays until `stop` is cancelled and the last relay has ended.
pub(in crate::cli) async fn serve(listener: UnixListener, pipes: PipeServer, stop: CancellationToken) {
    let mut relays = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    relays.spawn(serve_one(stream, pipes.clone(), stop.clone()));
                }
            }
            Some(_) = relays.join_next() => {}
            () = stop.cancelled() => break,
        }
    }
    while relays.join_next().await.is_some() {}
}

async fn serve_one(stream: UnixStream, pipes: PipeServer, stop: CancellationToken) {
    let (reader, writer) = stream.into_split();
    let mut writer = SinkWriter::new(CopyToBytes::new(FramedWrite::new(writer, codec())));
    let served = pipes.serve(Transport::Stdio, reader, &mut writer, stop, GRACE).await;
    let code = match served {
        Ok(PipeEnd::Exited(code)) => code,
        Ok(PipeEnd::Closed | PipeEnd::Stopped) => 0,
        // The relay has ended.
        Err(_) => return,
    };
    let mut frames = writer.into_inner().into_inner();
    let sent = async {
        frames.feed(Bytes::new()).await?;
        frames.send(Bytes::copy_from_slice(&[code])).await
    };
    let _: io::Result<()> = sent.await;
}

/// Relays until either side closes or a signal arrives.
///
/// # Errors
/// The mock cannot be reached, or has ended without an exit code.
pub(crate) fn relay(args: &RelayArgs) -> Result<Exit, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(runtime_failure)?;
    let exit = runtime.block_on(forward(args));
    // A thread that reads a terminal never returns.
    runtime.shutdown_background();
    exit
}

async fn forward(args: &RelayArgs) -> Result<Exit, Failure> {
    let notes = Notes::create(args.notes.as_deref());
    let _ = io::stderr().write_all(&LOG.repeat(args.stderr.div_ceil(LOG.len())));
    let unreachable =
        |error: io::Error| Failure::cannot(format!("cannot reach the mock at {}: {error}", args.socket.display()));
    let mut signals = Signals::install().map_err(runtime_failure)?;
    let (reader, mut upwards) = UnixStream::connect(&args.socket).await.map_err(unreachable)?.into_split();
    let (mut input, mut output) = (stdio::Input::open(), stdio::Output::open());
    let up = async {
        tokio::select! {
            _ = tokio::io::copy(&mut input, &mut upwards) => notes.add("eof"),
            _ = signals.next() => notes.add("term"),
        }
        let stays = tokio::time::sleep(Duration::from_millis(args.linger));
        tokio::pin!(stays);
        loop {
            tokio::select! {
                () = &mut stays => break,
                _ = signals.next() => notes.add("term"),
            }
            if !args.deaf {
                break;
            }
        }
        let _ = upwards.shutdown().await;
        signals.next().await;
        notes.add("term");
    };
    let down = async {
        let mut frames = FramedRead::new(reader, codec());
        let mut next = async || frames.next().await.ok_or(io::ErrorKind::UnexpectedEof)?;
        loop {
            let frame = next().await?;
            if frame.is_empty() {
                return Ok(next().await?.first().copied());
            }
            if output.write_all(&frame).await.is_err() || output.flush().await.is_err() {
                return Ok(None);
            }
        }
    };
    let code = tokio::select! {
        code = down => code,
        _ = up => Ok(None),
        () = stdio::stdout_closed(), if !args.deaf => Ok(None),
    };
    notes.add("end");
    input.restore();
    output.restore();
    match code.map_err(unreachable)?.unwrap_or_default() {
        0 => Ok(Exit::Success),
        code => Ok(Exit::Scripted(code)),
    }
}

/// A file in which a relay notes how its client ends it.
struct Notes {
    file: Option<File>,
    begun: Instant,
}

impl Notes {
    /// The names of the files are in the order of the relays.
    fn create(folder: Option<&Path>) -> Notes {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{:020}-{}", now.as_micros(), std::process::id());
        Notes { file: folder.and_then(|folder| File::create_new(folder.join(name)).ok()), begun: Instant::now() }
    }

    fn add(&self, what: &str) {
        if let Some(mut file) = self.file.as_ref() {
            let _ = writeln!(file, "{what} {}", self.begun.elapsed().as_millis());
        }
    }
}
