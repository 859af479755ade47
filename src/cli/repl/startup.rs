//! What commands from a pipe wait for at startup, so that their results do not depend on which server is faster. A server
//! that never responds delays only commands that may concern it.

use std::{collections::HashSet, sync::Arc};

use super::{command::Command, shell::Shell};
use rehearse_client_configs::policy::Unreachable;
use rehearse_hub::{ConnectionState, Routing};

impl Shell {
    /// Waits until all first connection attempts have ended.
    pub(super) async fn wait_all(&self) {
        self.initial_connections.wait_all().await;
    }

    pub(super) fn has_started(&self) -> bool {
        self.initial_connections.are_done()
    }

    /// Waits until no pending connection can change the result of a command.
    pub(super) async fn ready_for(&self, command: &Command) {
        let mut over = self.initial_connections.subscribe();
        let ready = async {
            // If an unreachable server is fatal, nothing is settled before the last one.
            if self.unreachable == Unreachable::Skipped
                && over.wait_for(|over| self.is_ready(command, over)).await.is_ok()
            {
                return;
            }
            std::future::pending().await
        };
        tokio::select! {
            () = self.wait_all() => {}
            () = ready => {}
        }
    }

    fn is_ready(&self, command: &Command, over: &HashSet<Arc<str>>) -> bool {
        let is_over = |server: &str| over.contains(server) || !self.is_expected(server);
        match (command, command.server()) {
            (_, Some(server)) => is_over(server),
            // Any server may get the call.
            (Command::Call(_), None) if self.hub.options().routing != Routing::Registered => false,
            (Command::Call(args), None) => args.tool().map_or(true, |tool| self.hub.is_settled(tool, is_over)),
            (Command::Help { .. } | Command::Explain(_), None) => true,
            _ => false,
        }
    }

    /// Whether the shell connects to a server at startup.
    fn is_expected(&self, server: &str) -> bool {
        self.hub.status().iter().any(|(name, status)| **name == *server && status.state != ConnectionState::Disabled)
    }
}
