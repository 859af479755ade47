//! What changes while nobody types: told, and where a connection broke, mended.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{sync::broadcast::error::RecvError, time::Instant};

use super::shell::{Never, Shell, locked};
use crate::{
    cli::mcp::{list_tools::name_of, visit::renewed},
    client::hub::{Event, State, Status},
};

/// The pauses before each attempt to connect anew (S1, section 9: 1, 2, 4, 8 and 16 s after the first).
const PAUSES: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];
/// Whoever lives as long as this after it was connected to anew has not broken at once.
const SETTLED: Duration = Duration::from_secs(60);

/// How often a connection broke soon after it was made.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    attempts: usize,
    mended: Option<Instant>,
}

impl Breaks {
    /// The pause before the next attempt to connect; `None` if there have been enough.
    fn pause(&mut self) -> Option<Duration> {
        if self.mended.take().is_some_and(|mended| mended.elapsed() >= SETTLED) {
            self.attempts = 0;
        }
        let pause = PAUSES.get(self.attempts).copied();
        self.attempts += 1;
        pause
    }
}

/// Tells what changes.
pub(super) async fn events(shell: &Arc<Shell>) -> Never {
    let mut events = shell.hub.events();
    let (mut tools, mut mending) = (Tools::default(), FuturesUnordered::new());
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            Some(()) = mending.next() => continue,
        };
        let visit = shell.visit();
        match event {
            Ok(Event::Broke { server, why }) => {
                visit.warn(&format!("the connection with MCP server '{server}' broke: {why}"));
                tools.0.remove(&server);
                mending.push(Box::pin(mend(shell, server)));
            }
            Ok(Event::Renewed(server)) => visit.warn(&renewed(&server)),
            Ok(Event::Unlisted { server, failure }) => {
                visit.warn(&format!("failed to list MCP tools for server {server}: {failure}"));
            }
            Ok(Event::Rejected(duplicate)) => visit.warn(&duplicate.to_string()),
            Ok(Event::Status(server)) => {
                let is_connected =
                    |(name, status): &(Arc<str>, Status)| *name == server && status.state == State::Connected;
                let started =
                    shell.hub.status().iter().any(is_connected).then(|| locked(&shell.started).remove(&server));
                if let Some(started) = started.flatten() {
                    let took = started.elapsed().as_secs_f64() * 1000.0;
                    shell.debug(&server, &format!("connecting to '{server}' took {took:.1} ms"));
                }
            }
            Ok(Event::Tools) => {
                let is_listed = |status: &Status| status.state == State::Connected && status.tools.is_some();
                let connected = shell.hub.status().into_iter().filter(|(_, status)| is_listed(status));
                let listed = connected.filter_map(|(name, _)| {
                    let tools = shell.hub.listed(&name).ok()?;
                    Some((name, tools.iter().filter_map(|tool| name_of(tool)).collect()))
                });
                for change in tools.update(listed.collect()) {
                    visit.note(&change);
                }
            }
            Err(RecvError::Lagged(_)) => {}
            // The hub lives as long as the shell.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Connects anew to a server whose connection broke, unless somebody has decided otherwise in the meantime.
async fn mend(shell: &Arc<Shell>, server: Arc<str>) {
    let mut last = None;
    let breaks = || locked(&shell.breaks);
    let next = || breaks().entry(server.clone()).or_default().pause();
    while let Some(pause) = next() {
        tokio::time::sleep(pause).await;
        let is_broken =
            shell.hub.status().iter().any(|(name, status)| *name == server && status.state == State::Failed);
        if !is_broken {
            return;
        }
        match Box::pin(shell.hub.connect(&server)).await {
            Ok(_) => {
                breaks().entry(server.clone()).or_default().mended = Some(Instant::now());
                return shell.visit().note(&format!("MCP server '{server}' is connected again"));
            }
            Err(error) => last = Some(error),
        }
    }
    if let Some(error) = last {
        shell.trouble(&error);
    }
    shell.visit().warn(&format!("MCP server '{server}' is given up; 'reconnect {server}' tries again"));
}

/// The tools that each connected server had when it was looked at last.
#[derive(Default)]
struct Tools(HashMap<Arc<str>, BTreeSet<String>>);

impl Tools {
    /// What has changed of servers that were connected before.
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

    #[tokio::test(start_paused = true)]
    async fn a_server_that_breaks_again_and_again_is_given_up_and_one_that_lived_is_not() {
        let mut breaks = Breaks::default();
        let mended = |breaks: &mut Breaks| {
            let pause = breaks.pause();
            breaks.mended = Some(Instant::now());
            pause.map(|pause| pause.as_secs())
        };
        let soon: Vec<_> = (0..8).map(|_| mended(&mut breaks)).collect();
        assert_eq!(soon, [Some(0), Some(1), Some(2), Some(4), Some(8), Some(16), None, None]);
        tokio::time::advance(SETTLED).await;
        assert_eq!((mended(&mut breaks), mended(&mut breaks)), (Some(0), Some(1)));
        breaks.mended = None;
        tokio::time::advance(SETTLED).await;
        assert_eq!(breaks.pause().map(|pause| pause.as_secs()), Some(2), "it was not mended");
    }

    #[test]
    fn only_changes_of_servers_that_stay_connected_are_told() {
        let mut tools = Tools::default();
        let mut update = |names: Option<&[&str]>| {
            let listed = names.map(|names| ("s".into(), names.iter().map(|name| (*name).to_owned()).collect()));
            tools.update(listed.into_iter().collect())
        };
        assert_eq!(update(Some(&["a", "b"])), [""; 0]);
        assert_eq!(update(Some(&["a", "b"])), [""; 0]);
        let told = update(Some(&["b", "c", "d"]));
        assert_eq!(told, ["the tools of MCP server 's' changed: +c +d -a"]);
        assert_eq!(update(None), [""; 0]);
        assert_eq!(update(Some(&["x"])), [""; 0]);
    }
}
