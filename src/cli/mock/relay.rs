//! A mock on stdio that is a part of another one: a process that passes on what it hears, so that its client has the
//! same mock as the clients over the network, with one state, one journal and one verification.
//!
//! What the client sends goes through the socket as it is. What comes back is a series of frames with their length
//! before them: pieces of the stream, then an empty one, then one byte, with which the process is to end.

use std::{io, path::PathBuf};

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

/// Where the mock is of which this process is a part.
#[derive(Debug, clap::Args)]
pub(crate) struct RelayArgs {
    socket: PathBuf,
}

fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(u32::MAX as usize).new_codec()
}

/// Serves processes that relay, until `stop` is cancelled and the last of them is gone.
pub(super) async fn serve(listener: UnixListener, pipes: PipeServer, stop: CancellationToken) {
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
        // Nobody is there any more who could be told.
        Err(_) => return,
    };
    let mut frames = writer.into_inner().into_inner();
    let told = async {
        frames.feed(Bytes::new()).await?;
        frames.send(Bytes::copy_from_slice(&[code])).await
    };
    let _: io::Result<()> = told.await;
}

/// Is a mock on stdio for the one behind the socket, until either end is closed or a signal comes.
///
/// # Errors
/// The mock is not there, or is gone before its end.
pub(crate) fn relay(args: &RelayArgs) -> Result<Exit, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(runtime_failure)?;
    let exit = runtime.block_on(pass_on(args));
    // A thread that reads a terminal never returns.
    runtime.shutdown_background();
    exit
}

async fn pass_on(args: &RelayArgs) -> Result<Exit, Failure> {
    let gone =
        |error: io::Error| Failure::cannot(format!("the mock behind {} is gone: {error}", args.socket.display()));
    let mut signals = Signals::install().map_err(runtime_failure)?;
    let (reader, mut upwards) = UnixStream::connect(&args.socket).await.map_err(gone)?.into_split();
    let (mut input, mut output) = (stdio::Input::open(), stdio::Output::open());
    let up = async {
        tokio::select! {
            _ = tokio::io::copy(&mut input, &mut upwards) => {}
            _ = signals.next() => {}
        }
        let _ = upwards.shutdown().await;
        signals.next().await;
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
        () = stdio::nobody_reads() => Ok(None),
    };
    input.restore();
    output.restore();
    match code.map_err(gone)?.unwrap_or_default() {
        0 => Ok(Exit::Success),
        code => Ok(Exit::Scripted(code)),
    }
}
