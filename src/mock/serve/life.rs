//! How long a server lives, or a connection that is one by itself.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use super::play::play_in_background;
use crate::{mock::engine::Exchange, transport::server::Shutdown};

/// The time from the start of a server until it ends in order, or the script lets it die.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) started: Instant,
    pub(super) shutdown: Shutdown,
    died: Arc<OnceLock<u8>>,
}

impl Life {
    pub(super) fn begin(started: Instant) -> Life {
        Life { started, shutdown: Shutdown::default(), died: Arc::default() }
    }

    /// The script lets the server die: everything breaks off.
    pub(super) fn die(&self, code: u8) {
        let _ = self.died.set(code);
        self.shutdown.kill.cancel();
    }

    /// The exit code, if the script has let the server die.
    pub(super) fn died(&self) -> Option<u8> {
        self.died.get().copied()
    }

    /// Plays what nobody waits for, until the server ends.
    pub(super) fn carry_on(&self, exchange: Box<Exchange>) {
        let life = self.clone();
        self.shutdown.tasks.spawn(async move {
            let code = tokio::select! {
                code = play_in_background(exchange, life.started) => code,
                () = life.shutdown.stop.cancelled() => None,
                () = life.shutdown.kill.cancelled() => None,
            };
            if let Some(code) = code {
                life.die(code);
            }
        });
    }
}
