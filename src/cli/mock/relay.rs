//! Serves the mock of another process on stdio: it forwards stdin and stdout through a pipe to
//! [`serve_relays`](rehearse_check::client::serve_relays).

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::{io::AsyncWriteExt, runtime};
use tokio_util::{
    codec::{FramedRead, FramedWrite},
    io::{CopyToBytes, SinkWriter},
};

use super::server::runtime_failure;
use crate::cli::{Exit, Failure, output, signals::Signals};
use rehearse_relay::process_codec;
use rehearse_system::{local_pipe, stdio};

/// What is written to standard error.
const LOG: &[u8] = b"The server is up, and all is well.\n";
/// A client that closes standard input so soon after a signal may have done both at once.
const TOGETHER: Duration = Duration::from_millis(100);

/// The pipe of the mock, and what a process does by itself.
#[derive(Debug, clap::Args)]
pub(crate) struct RelayArgs {
    pipe: PathBuf,
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
        |error: io::Error| Failure::cannot(format!("cannot reach the mock at {}: {error}", args.pipe.display()));
    let mut signals = Signals::install()?;
    let (reader, writer) = local_pipe::connect(&args.pipe).await.map_err(unreachable)?;
    let mut upwards = SinkWriter::new(CopyToBytes::new(FramedWrite::new(writer, process_codec())));
    let (mut input, mut output) = (stdio::Input::open(), stdio::Output::open(output::remember));
    let up = async {
        {
            let mut copied = std::pin::pin!(tokio::io::copy(&mut input, &mut upwards));
            tokio::select! {
                _ = &mut copied => notes.add("eof"),
                _ = signals.next() => {
                    notes.add("term");
                    // Which of two events is seen first is chance.
                    if tokio::time::timeout(TOGETHER, &mut copied).await.is_ok() {
                        notes.add("eof");
                    }
                }
            }
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
        let mut frames = upwards.into_inner().into_inner();
        let _ = frames.send(Bytes::new()).await;
        signals.next().await;
        notes.add("term");
    };
    let down = async {
        let mut frames = FramedRead::new(reader, process_codec());
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
