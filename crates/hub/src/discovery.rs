//! Discovery: connects to servers and lists their tools, for all tools or for one tool name.

use std::{collections::HashSet, pin::pin, sync::Arc};

use futures_util::{StreamExt, future::ready, stream, stream::BoxStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{ConnectionState, Hub, HubError, Registry, server_connection::ServerConnection};
use rehearse_client::{ConnectError, Failure};
use rehearse_client_configs::policy::{Duplicates, Unreachable};

/// The result of a discovery.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The registered tools.
    pub registry: Arc<Registry>,
    /// The servers that could not be reached, in the order of the config.
    pub unreachable: Vec<(Arc<str>, Arc<ConnectError>)>,
    /// The servers that could not list all their tools.
    pub incomplete: Vec<(Arc<str>, Failure)>,
}

/// The attempt to connect to a server and list its tools.
struct Attempt {
    /// The index in the config.
    place: usize,
    server: Arc<str>,
    outcome: Result<Option<Failure>, Arc<ConnectError>>,
}

/// A discovery in progress.
#[derive(Default)]
struct DiscoveryProgress {
    unreachable: Vec<(usize, Arc<str>, Arc<ConnectError>)>,
    incomplete: Vec<(usize, Arc<str>, Failure)>,
}

impl Discovery {
    /// One message for each server that could not list its tools, in the words of CPE.
    pub fn listing_failures(&self) -> impl Iterator<Item = String> {
        self.incomplete
            .iter()
            .map(|(server, failure)| format!("failed to list MCP tools for server {server}: {failure}"))
    }

    /// All these messages, if no server listed a tool.
    pub fn total_failure(&self) -> Option<String> {
        let is_total = self.registry.tools().is_empty() && !self.incomplete.is_empty();
        let failures = || self.listing_failures().collect::<Vec<_>>().join("; ");
        is_total.then(|| format!("failed to register any MCP tools: {}", failures()))
    }
}

impl Hub {
    /// Connects to every enabled server, lists its tools and registers them.
    ///
    /// # Errors
    /// [`HubError::Unreachable`] and [`HubError::Duplicate`], depending on the options. The first closes all connections.
    pub async fn discover(&self) -> Result<Discovery, HubError> {
        let (mut found, enough) = (DiscoveryProgress::default(), CancellationToken::new());
        let mut attempts = pin!(self.attempts(self.enabled(), enough.clone()));
        while let Some(attempt) = attempts.next().await {
            if let (Err(error), Unreachable::Fatal) = (&attempt.outcome, self.options().unreachable) {
                let error = HubError::Unreachable { server: attempt.server.clone(), error: error.clone() };
                enough.cancel();
                // Pending connection attempts end with this.
                tokio::join!(self.disconnect_all(), attempts.for_each(|_| ready(())));
                return Err(error);
            }
            found.take(attempt);
        }
        Ok(found.finish(self.register()?))
    }

    /// As [`Hub::discover`], but only until it is settled which tool has this name. Servers that cannot have a tool of this
    /// name are connected last. Once the name is settled, the result has no errors of other servers, and pending attempts
    /// continue in the background.
    ///
    /// # Errors
    /// As [`Hub::discover`].
    pub async fn discover_for(&self, tool: &str) -> Result<Discovery, HubError> {
        if self.options().unreachable == Unreachable::Fatal {
            return self.discover().await;
        }
        let (likely, others): (Vec<_>, Vec<_>) =
            self.enabled().into_iter().partition(|(_, connection)| self.could_register(&connection.name, tool));
        let (mut found, mut over, enough) = (DiscoveryProgress::default(), HashSet::new(), CancellationToken::new());
        let _enough = enough.clone().drop_guard();
        let (sender, mut attempts) = mpsc::unbounded_channel();
        let (hub, no_more) = (self.clone(), enough.clone());
        self.0.tasks.spawn(async move {
            let mut attempts = pin!(hub.attempts(likely, no_more));
            while let Some(attempt) = attempts.next().await {
                // The receiver may be gone.
                let _ = sender.send(attempt);
            }
        });
        while let Some(attempt) = attempts.recv().await {
            over.insert(attempt.server.clone());
            found.take(attempt);
            // Errors are reported at the end.
            if let Ok(registry) = self.register()
                && self.is_settled(tool, |server| over.contains(server))
            {
                return Ok(Discovery { registry, ..Discovery::default() });
            }
        }
        let mut attempts = pin!(self.attempts(others, enough));
        while let Some(attempt) = attempts.next().await {
            found.take(attempt);
        }
        Ok(found.finish(self.register()?))
    }

    /// Whether a name will still refer to the same tool when all servers are connected. A server with precedence may still
    /// claim the name; `is_listed` returns whether the tools of a server are listed.
    pub fn is_settled(&self, tool: &str, is_listed: impl Fn(&str) -> bool) -> bool {
        let Some(found) = self.registry().get(tool).cloned() else { return false };
        // If one unreachable server is fatal, nothing is settled before the last one.
        if self.options().unreachable == Unreachable::Fatal {
            return false;
        }
        let servers = self.status();
        let place = servers.iter().position(|(name, _)| *name == found.server);
        let is_preferred = |index: usize| match self.options().duplicates {
            Duplicates::FirstWins | Duplicates::Qualified => place.is_none_or(|place| index < place),
            Duplicates::LastWins => place.is_none_or(|place| index > place),
            Duplicates::Rejected => true,
        };
        servers.iter().enumerate().all(|(index, (name, status))| {
            *name == found.server
                || !is_preferred(index)
                || status.state == ConnectionState::Disabled
                || is_listed(name)
                || !self.could_register(name, tool)
        })
    }

    /// Whether a server could register a tool under this name.
    fn could_register(&self, server: &str, tool: &str) -> bool {
        let options = self.options();
        options.naming.may_name(server, tool)
            || (options.duplicates == Duplicates::Qualified && Registry::RENAMED.may_name(server, tool))
    }

    /// The enabled servers with their indices.
    fn enabled(&self) -> Vec<(usize, Arc<ServerConnection>)> {
        self.connections()
            .into_iter()
            .filter(|connection| connection.status().state != ConnectionState::Disabled)
            .enumerate()
            .collect()
    }

    /// Connects to servers and lists their tools, several at a time, until `enough` is cancelled. If one unreachable server
    /// is fatal, the attempts are in the order of the config, so that the first error is always the same.
    fn attempts(
        &self,
        connections: Vec<(usize, Arc<ServerConnection>)>,
        enough: CancellationToken,
    ) -> BoxStream<'_, Attempt> {
        let attempts = connections.into_iter().map(move |(place, connection)| {
            let enough = enough.clone();
            async move {
                let outcome = match enough.is_cancelled() {
                    true => Err(Arc::new(ConnectError::Cancelled)),
                    false => self.connect_and_list(&connection).await,
                };
                Attempt { place, server: connection.name.clone(), outcome }
            }
        });
        let (attempts, at_once) = (stream::iter(attempts), self.options().concurrency.get());
        match self.options().unreachable {
            Unreachable::Fatal => attempts.buffered(at_once).boxed(),
            Unreachable::Skipped => attempts.buffer_unordered(at_once).boxed(),
        }
    }
}

impl DiscoveryProgress {
    fn take(&mut self, Attempt { place, server, outcome }: Attempt) {
        match outcome {
            Ok(None) => {}
            Ok(Some(failure)) => self.incomplete.push((place, server, failure)),
            Err(error) => self.unreachable.push((place, server, error)),
        }
    }

    /// The discovery, in the order of the config.
    fn finish(mut self, registry: Arc<Registry>) -> Discovery {
        self.unreachable.sort_by_key(|(place, ..)| *place);
        self.incomplete.sort_by_key(|(place, ..)| *place);
        Discovery {
            registry,
            unreachable: self.unreachable.into_iter().map(|(_, server, error)| (server, error)).collect(),
            incomplete: self.incomplete.into_iter().map(|(_, server, failure)| (server, failure)).collect(),
        }
    }
}
