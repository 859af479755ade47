//! Serves the mock of this process to relays: processes that a client starts as a server on stdio. They forward their
//! standard streams through a socket, so their client has the same mock as the clients over the network, with one state,
//! one journal and one verification.
//!
//! Bytes from the client go through the socket unchanged. The other direction has length-prefixed frames: pieces of the
//! stream, then an empty frame, then one byte, the exit code of the relay.

use std::{io, time::Duration};

use bytes::Bytes;
use futures_util::SinkExt;
use rehearse_mock::serve::{PipeEnd, PipeServer};
use rehearse_protocol::Transport;
use tokio::{
    net::{UnixListener, UnixStream},
    task::JoinSet,
};
use tokio_util::{
    codec::{FramedWrite, LengthDelimitedCodec},
    io::{CopyToBytes, SinkWriter},
    sync::CancellationToken,
};

/// How long responses in progress may take after `stop`.
const GRACE: Duration = Duration::from_secs(5);

/// The frames of the direction to a relay.
pub fn relay_codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(u32::MAX as usize).new_codec()
}

/// Serves relays until `stop` is cancelled and the last relay has ended.
pub async fn serve_relays(listener: UnixListener, pipes: PipeServer, stop: CancellationToken) {
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
    let mut writer = SinkWriter::new(CopyToBytes::new(FramedWrite::new(writer, relay_codec())));
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
