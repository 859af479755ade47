//! The lifetime of a server, or of a single connection that has its own server.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use super::drive::drive_in_background;
use crate::engine::Exchange;
use rehearse_net::Shutdown;

/// The time from the start of a server until it stops, or the script makes it exit.
#[derive(Clone, Debug)]
pub(super) struct ServerLifetime {
    pub(super) started: Instant,
    pub(super) shutdown: Shutdown,
    exit_code: Arc<OnceLock<u8>>,
}

impl ServerLifetime {
    pub(super) fn start(started: Instant) -> ServerLifetime {
        ServerLifetime { started, shutdown: Shutdown::default(), exit_code: Arc::default() }
    }

    /// Makes the server exit: every connection is closed.
    pub(super) fn exit(&self, code: u8) {
        let _ = self.exit_code.set(code);
        self.shutdown.kill.cancel();
    }

    /// The exit code, if the script has made the server exit.
    pub(super) fn exit_code(&self) -> Option<u8> {
        self.exit_code.get().copied()
    }

    /// Drives an exchange in the background until it finishes or the server stops.
    pub(super) fn spawn_background(&self, exchange: Box<Exchange>) {
        let lifetime = self.clone();
        self.shutdown.tasks.spawn(async move {
            let code = tokio::select! {
                code = drive_in_background(exchange, lifetime.started) => code,
                () = lifetime.shutdown.stop.cancelled() => None,
                () = lifetime.shutdown.kill.cancelled() => None,
            };
            if let Some(code) = code {
                lifetime.exit(code);
            }
        });
    }
}
