//! A hub whose config has changed.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
};

use futures_util::{StreamExt, future::join_all, stream};

use super::{
    ConnectError, ConnectMode, ConnectionState, Hub, HubError, HubServer, server_connection::ServerConnection,
};

/// What outcome of a changed config, by the names of the servers.
#[derive(Debug, Default)]
pub struct ReloadReport {
    pub added: Vec<Arc<str>>,
    pub removed: Vec<Arc<str>>,
    /// Those that are connected to anew, since how to reach them has changed.
    pub restarted: Vec<Arc<str>>,
    /// Those of them that cannot be reached.
    pub unreachable: Vec<(Arc<str>, Arc<ConnectError>)>,
}

impl Hub {
    /// Takes over a changed config: connections of servers that are reached as before stay open. Whoever reads the file
    /// gives only a config that is valid, so that the one before counts until then.
    ///
    /// # Errors
    /// [`HubError::Duplicate`]; the servers have changed all the same, and the registry stays as it was.
    pub async fn reload(&self, servers: impl IntoIterator<Item = HubServer>) -> Result<ReloadReport, HubError> {
        let (mut reloaded, leave) = self.replace(servers.into_iter().collect());
        leave.await;
        let fresh = reloaded.added.iter().chain(&reloaded.restarted).cloned().enumerate();
        let connecting =
            fresh.filter(|_| self.0.options.connect == ConnectMode::Eager).map(|(place, name)| async move {
                let outcome = self.connect(&name).await;
                (place, name, outcome)
            });
        let mut connecting = stream::iter(connecting).buffer_unordered(self.0.options.concurrency.get());
        let mut unreachable = Vec::new();
        while let Some((place, name, outcome)) = connecting.next().await {
            if let Err(HubError::Unreachable { error, .. }) = outcome {
                unreachable.push((place, name, error));
            }
        }
        drop(connecting);
        unreachable.sort_by_key(|(place, ..)| *place);
        reloaded.unreachable = unreachable.into_iter().map(|(_, name, error)| (name, error)).collect();
        self.register()?;
        Ok(reloaded)
    }

    /// Takes over a changed config without connecting to anything: the tools of servers that are gone, or reached
    /// otherwise, are gone at once. The future takes leave of those; until then nobody is to connect to the new ones.
    pub fn replace(&self, servers: Vec<HubServer>) -> (ReloadReport, impl Future<Output = ()> + Send + use<>) {
        let (mut reloaded, mut kept) = (ReloadReport::default(), HashSet::new());
        let (before, mut connections, mut ended) = (self.connections(), Vec::new(), Vec::new());
        for member in servers {
            let known = before.iter().find(|connection| *connection.name == *member.config.name);
            if let Some(connection) = known
                && connection.member().has_same_connection(&member)
            {
                connection.set_server(member);
                kept.insert(connection.name.clone());
                connections.push(connection.clone());
                continue;
            }
            let connection = Arc::new(ServerConnection::new(member, self.0.stop.clone()));
            match known {
                Some(_) => reloaded.restarted.push(connection.name.clone()),
                None => reloaded.added.push(connection.name.clone()),
            }
            connections.push(connection);
        }
        for connection in before {
            if kept.contains(&connection.name) {
                continue;
            }
            if !reloaded.restarted.contains(&connection.name) {
                reloaded.removed.push(connection.name.clone());
            }
            ended.push(connection);
        }
        *self.0.connections.write().unwrap_or_else(PoisonError::into_inner) = connections;
        ended.iter().for_each(|connection| self.0.results.forget(&connection.name));
        self.register_or_emit();
        let leave = async move {
            join_all(ended.iter().map(|connection| connection.disconnect(ConnectionState::NotConnected))).await;
        };
        (reloaded, leave)
    }
}
