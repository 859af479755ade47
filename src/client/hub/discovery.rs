//! Connecting to servers to learn which tools there are, all or only as many as it takes to know what a name means.

use std::{collections::HashSet, pin::pin, sync::Arc};

use futures_util::{Stream, StreamExt, future::ready, stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{ConnectionState, Hub, HubError, Registry, server_connection::ServerConnection};
use crate::{
    client::{ConnectError, Failure},
    config::policy::{Duplicates, Unreachable},
};

/// What outcome of a discovery.
#[derive(Debug, Default)]
pub struct Discovery {
    pub registry: Arc<Registry>,
    /// The servers that could not be reached, in the order of the config.
    pub unreachable: Vec<(Arc<str>, Arc<ConnectError>)>,
    /// The servers of which not every tool could be listed.
    pub incomplete: Vec<(Arc<str>, Failure)>,
}

/// A server that was connected to and listed, as far as that went.
struct Attempt {
    /// In the order of the config.
    place: usize,
    server: Arc<str>,
    outcome: Result<Option<Failure>, Arc<ConnectError>>,
}

/// A discovery under way.
#[derive(Default)]
struct DiscoveryProgress {
    unreachable: Vec<(usize, Arc<str>, Arc<ConnectError>)>,
    incomplete: Vec<(usize, Arc<str>, Failure)>,
}

impl Hub {
    /// Connects to every server that is enabled, lists its tools and registers them. Servers that are connected already
    /// are only listed anew.
    ///
    /// # Errors
    /// [`HubError::Unreachable`] and [`HubError::Duplicate`], as the options say; with the first nothing is left open.
    pub async fn discover(&self) -> Result<Discovery, HubError> {
        let (mut found, enough) = (DiscoveryProgress::default(), CancellationToken::new());
        let mut attempts = pin!(self.attempts(self.enabled(), enough.clone()));
        while let Some(attempt) = attempts.next().await {
            if let (Err(error), Unreachable::Fatal) = (&attempt.outcome, self.options().unreachable) {
                let error = HubError::Unreachable { server: attempt.server.clone(), error: error.clone() };
                enough.cancel();
                // Those that are still being connected to are given up by that, and take their leave.
                tokio::join!(self.disconnect_all(), attempts.for_each(|_| ready(())));
                return Err(error);
            }
            found.take(attempt);
        }
        Ok(found.with(self.register()?))
    }

    /// As [`Hub::discover`], until it is certain which tool is called by this name. Servers that cannot have a tool of the
    /// name are connected to only if no other has one. When it is certain, nothing is told of the servers that are not
    /// needed, and those that are still being connected to then go on with that until the hub is closed.
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
                // Nobody may be waiting any more.
                let _ = sender.send(attempt);
            }
        });
        while let Some(attempt) = attempts.recv().await {
            over.insert(attempt.server.clone());
            found.take(attempt);
            // What is wrong with the tools so far is told at the end.
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
        Ok(found.with(self.register()?))
    }

    /// Whether a name means a tool that it will mean when all servers are there as well. Until then it may become that of
    /// another one, if the policy for duplicates prefers its server; `is_over` tells of which servers it is known what
    /// they list.
    pub fn is_settled(&self, tool: &str, is_over: impl Fn(&str) -> bool) -> bool {
        let Some(found) = self.registry().get(tool).cloned() else { return false };
        // If one server is the end of all, nothing is certain before the last one.
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
                || is_over(name)
                || !self.could_register(name, tool)
        })
    }

    /// Whether a server can have a tool that is registered under this name.
    fn could_register(&self, server: &str, tool: &str) -> bool {
        let options = self.options();
        options.naming.may_name(server, tool)
            || (options.duplicates == Duplicates::Qualified && Registry::RENAMED.may_name(server, tool))
    }

    /// The servers that are switched on, with their places.
    fn enabled(&self) -> Vec<(usize, Arc<ServerConnection>)> {
        self.connections()
            .into_iter()
            .filter(|connection| connection.status().state != ConnectionState::Disabled)
            .enumerate()
            .collect()
    }

    /// Connects to servers and lists them, several at a time. When it is enough, no more are begun with.
    fn attempts(
        &self,
        connections: Vec<(usize, Arc<ServerConnection>)>,
        enough: CancellationToken,
    ) -> impl Stream<Item = Attempt> + Send + '_ {
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
        stream::iter(attempts).buffer_unordered(self.options().concurrency.get())
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

    /// In the order of the config.
    fn with(mut self, registry: Arc<Registry>) -> Discovery {
        self.unreachable.sort_by_key(|(place, ..)| *place);
        self.incomplete.sort_by_key(|(place, ..)| *place);
        Discovery {
            registry,
            unreachable: self.unreachable.into_iter().map(|(_, server, error)| (server, error)).collect(),
            incomplete: self.incomplete.into_iter().map(|(_, server, failure)| (server, failure)).collect(),
        }
    }
}
