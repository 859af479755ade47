//! Serves the mock of this process to relays: processes that a client starts as a server on stdio. They forward their
//! standard streams through a socket, so their client has the same mock as the clients over the network, with one state,
//! one journal and one verification.
//!
//! Both directions have length-prefixed frames: pieces of the stream, then an empty frame at its end. Another one follows in
//! the direction to the relay: one byte, its exit code.

use std::{future::ready, io, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use rehearse_mock::serve::{PipeEnd, PipeServer};
use rehearse_protocol::Transport;
use rehearse_system::local_pipe::{LocalListener, LocalReader, LocalWriter};
use tokio::task::JoinSet;
use tokio_util::{
    codec::{FramedRead, FramedWrite, LengthDelimitedCodec},
    io::{CopyToBytes, SinkWriter, StreamReader},
    sync::CancellationToken,
};

/// How long responses in progress may take after `stop`.
const GRACE: Duration = Duration::from_secs(5);

/// The frames of a relay.
pub fn relay_codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(u32::MAX as usize).new_codec()
}

/// Serves relays until `stop` is cancelled and the last relay has ended.
pub async fn serve_relays(listener: LocalListener, pipes: PipeServer, stop: CancellationToken) {
    let mut relays = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((reader, writer)) = accepted {
                    relays.spawn(serve_one(reader, writer, pipes.clone(), stop.clone()));
                }
            }
            Some(_) = relays.join_next() => {}
            () = stop.cancelled() => break,
        }
    }
    while relays.join_next().await.is_some() {}
}

async fn serve_one(reader: LocalReader, writer: LocalWriter, pipes: PipeServer, stop: CancellationToken) {
    let frames = FramedRead::new(reader, relay_codec());
    let pieces = frames.take_while(|piece| ready(piece.as_ref().is_ok_and(|piece| !piece.is_empty())));
    let reader = StreamReader::new(pieces);
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
