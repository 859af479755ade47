//! Serves the mock of this process to relays: processes that a client starts as a server on stdio. They forward their
//! standard streams through a socket, so their client has the same mock as the clients over the network, with one state,
//! one journal and one verification.

use std::time::Duration;

use rehearse_mock::serve::{PipeEnd, PipeServer};
use rehearse_protocol::Transport;
use rehearse_relay::process_streams;
use rehearse_system::local_pipe::{LocalListener, LocalReader, LocalWriter};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long responses in progress may take after `stop`.
const GRACE: Duration = Duration::from_secs(5);

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
    let (reader, mut writer) = process_streams(reader, writer);
    let served = pipes.serve(Transport::Stdio, reader, &mut writer.0, stop, GRACE).await;
    let code = match served {
        Ok(PipeEnd::Exited(code)) => code,
        Ok(PipeEnd::Closed | PipeEnd::Stopped) => 0,
        // The relay has ended.
        Err(_) => return,
    };
    // The relay may have ended.
    let _ = writer.end(code).await;
}
