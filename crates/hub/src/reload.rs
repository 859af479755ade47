//! Reloading a changed config.

use std::{collections::HashSet, sync::Arc};

use futures_util::{StreamExt, future::join_all, stream};

use super::{
    ConnectError, ConnectMode, ConnectionState, Hub, HubError, HubServer, server_connection::ServerConnection,
};

/// The changes of a reload, by server name.
#[derive(Debug, Default)]
pub struct ReloadReport {
    /// New servers.
    pub added: Vec<Arc<str>>,
    /// Removed servers.
    pub removed: Vec<Arc<str>>,
    /// Servers whose connection settings changed.
    pub restarted: Vec<Arc<str>>,
    /// New and restarted servers that cannot be reached.
    pub unreachable: Vec<(Arc<str>, Arc<ConnectError>)>,
}

impl Hub {
    /// Replaces the servers by those of a changed, valid config. Servers with the same connection settings stay connected.
    ///
    /// # Errors
    /// [`HubError::Duplicate`]; the servers are replaced nevertheless, but the registry stays as it was.
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

    /// Replaces the servers without connecting. The tools of removed and restarted servers are removed at once; the future
    /// closes their connections. Await it before connecting to the new servers.
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
        *self.0.connections.write() = connections;
        ended.iter().for_each(|connection| self.0.results.invalidate(&connection.name));
        self.register_or_emit();
        let leave = async move {
            join_all(ended.iter().map(|connection| connection.disconnect(ConnectionState::NotConnected))).await;
        };
        (reloaded, leave)
    }
}
