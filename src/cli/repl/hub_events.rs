//! Prints the events of the hub above the prompt, and reconnects lost servers.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use tokio::{sync::broadcast::error::RecvError, time::Instant};

use super::shell::{Never, Shell};
use crate::cli::{
    Exit,
    mcp::{list::list_tools::name_of, session::renewal_message},
};
use rehearse_hub::{ConnectionState, Event, ServerStatus, is_retryable};

/// Prints the events of the hub.
pub(super) async fn watch_hub(shell: &Arc<Shell>) -> Never {
    let mut events = shell.hub.events();
    let (mut tools, mut reconnecting) = (Tools::default(), FuturesUnordered::new());
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            Some(()) = reconnecting.next() => continue,
        };
        let hub_session = shell.hub_session();
        match event {
            Ok(Event::Disconnected { server, why }) => {
                hub_session.warn(&format!("lost the connection to MCP server '{server}': {why}"));
                tools.0.remove(&server);
                reconnecting.push(Box::pin(reconnect(shell, server, shell.args.retries)));
            }
            Ok(Event::SessionRenewed(server)) => hub_session.warn(&renewal_message(&server)),
            Ok(Event::ListingFailed { server, failure }) => {
                hub_session.warn(&format!("failed to list MCP tools for server {server}: {failure}"));
            }
            Ok(Event::Rerouted(rerouted)) => hub_session.warn(&rerouted.to_string()),
            Ok(Event::RegistryRejected(duplicate)) => hub_session.warn(&duplicate.to_string()),
            Ok(Event::StatusChanged(server)) => {
                let is_connected = |(name, status): &(Arc<str>, ServerStatus)| {
                    *name == server && status.state == ConnectionState::Connected
                };
                let started = shell.hub.status().iter().any(is_connected).then(|| shell.started.lock().remove(&server));
                if let Some(started) = started.flatten() {
                    let took = started.elapsed().as_secs_f64() * 1000.0;
                    shell.debug(&server, &format!("connected to '{server}' in {took:.1} ms"));
                }
            }
            Ok(Event::ToolsChanged) => {
                let is_listed =
                    |status: &ServerStatus| status.state == ConnectionState::Connected && status.tools.is_some();
                let connected = shell.hub.status().into_iter().filter(|(_, status)| is_listed(status));
                let listed = connected.filter_map(|(name, _)| {
                    let tools = shell.hub.tool_definitions(&name).ok()?;
                    Some((name, tools.iter().filter_map(|tool| name_of(tool)).collect()))
                });
                for change in tools.update(listed.collect()) {
                    hub_session.note(&change);
                }
                if shell.has_started() {
                    shell.print_new_notices();
                }
            }
            Ok(Event::ItemsChanged(_)) | Err(RecvError::Lagged(_)) => {}
            // The hub lives as long as the shell.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Reconnects a server whose connection was lost, unless its state has changed in the meantime.
async fn reconnect(shell: &Shell, server: Arc<str>, most: usize) {
    let mut last = None;
    let backoffs = || shell.backoffs.lock();
    let next = || backoffs().entry(server.clone()).or_default().pause(most);
    while let Some(pause) = next() {
        tokio::time::sleep(pause).await;
        let is_broken =
            shell.hub.status().iter().any(|(name, status)| *name == server && status.state == ConnectionState::Failed);
        if !is_broken {
            return;
        }
        match Box::pin(shell.hub.connect(&server)).await {
            Ok(_) => {
                backoffs().entry(server.clone()).or_default().reconnected_at = Some(Instant::now());
                return shell.hub_session().note(&format!("reconnected to MCP server '{server}'"));
            }
            Err(error) => last = Some(error),
        }
    }
    if let Some(error) = last {
        shell.print_hub_error(&error);
    }
    shell.hub_session().warn(&format!("giving up on MCP server '{server}'; type 'reconnect {server}' to retry"));
}

impl Shell {
    /// Connects to all servers and prints the results. Returns only if the command must exit.
    pub(super) async fn connect_all(&self) -> Exit {
        if self.args.lazy {
            self.initial_connections.mark_all_done();
            return std::future::pending().await;
        }
        let hub_session = self.hub_session();
        let Some(failed) = self.connect_to(hub_session.names.clone(), self.unreachable).await else {
            return Exit::CannotRun;
        };
        if self.hub.is_closed() {
            return std::future::pending().await;
        }
        if !failed.is_empty() && failed.len() < hub_session.names.len() {
            hub_session.note("continuing with other MCP servers");
        }
        self.print_new_notices();
        self.initial_connections.mark_all_done();
        let again = failed.into_iter().filter(|(_, error)| is_retryable(error)).map(|(server, _)| server);
        Box::pin(connect_again(self, again.collect())).await;
        std::future::pending().await
    }
}

/// Connects again to servers whose first connection failed.
async fn connect_again(shell: &Shell, servers: Vec<Arc<str>>) {
    let most = shell.args.retries;
    let again = servers.into_iter().filter(|_| most > 0).map(|server| {
        shell.backoffs.lock().entry(server.clone()).or_default().count_first();
        reconnect(shell, server, most + 1)
    });
    join_all(again).await;
}

/// The last known tools of each connected server.
#[derive(Default)]
struct Tools(HashMap<Arc<str>, BTreeSet<String>>);

impl Tools {
    /// Describes the changes of servers that were connected before.
    fn update(&mut self, connected: HashMap<Arc<str>, BTreeSet<String>>) -> Vec<String> {
        let mut changes = Vec::new();
        for (server, now) in &connected {
            if let Some(before) = self.0.get(server).filter(|before| *before != now) {
                let added = now.difference(before).map(|tool| format!("+{tool}"));
                let removed = before.difference(now).map(|tool| format!("-{tool}"));
                let all: Vec<_> = added.chain(removed).collect();
                changes.push(format!("the tools of MCP server '{server}' changed: {}", all.join(" ")));
            }
        }
        self.0 = connected;
        changes.sort();
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_of_servers_that_stay_connected_are_reported() {
        let mut tools = Tools::default();
        let mut update = |names: Option<&[&str]>| {
            let listed = names.map(|names| ("s".into(), names.iter().map(|name| (*name).to_owned()).collect()));
            tools.update(listed.into_iter().collect())
        };
        assert_eq!(update(Some(&["a", "b"])), [""; 0]);
        assert_eq!(update(Some(&["a", "b"])), [""; 0]);
        let changes = update(Some(&["b", "c", "d"]));
        assert_eq!(changes, ["the tools of MCP server 's' changed: +c +d -a"]);
        assert_eq!(update(None), [""; 0]);
        assert_eq!(update(Some(&["x"])), [""; 0]);
    }
}
