//! The resources, resource templates and prompts of the servers.
//!
//! A server is asked for its items when they are needed for the first time, so that connecting costs no request. Its list is
//! kept until the server reports a change or the connection ends. A server that reports no changes is asked each time.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::Value;

use super::{CachingSession, ConnectionState, Hub, server_connection::ServerConnection, watch::reports_changes};
use rehearse_client::{CallOptions, Failure, Listing};
use rehearse_protocol::List;

/// The items of one kind.
#[derive(Clone, Debug, Default)]
pub struct ItemRegistry {
    /// The items of each server, in the order of the config.
    pub servers: Vec<(Arc<str>, Arc<Listing>)>,
    /// The servers that could not list their items.
    pub failures: Vec<(Arc<str>, Failure)>,
}

impl ItemRegistry {
    /// The items that can be read, with their servers.
    pub fn items(&self) -> impl Iterator<Item = (&Arc<str>, Value)> {
        self.servers.iter().flat_map(|(server, listing)| listing.values().map(move |item| (server, item)))
    }
}

impl Hub {
    /// The items that are known without asking a server.
    pub fn known_items(&self, list: List) -> ItemRegistry {
        let listed =
            |connection: Arc<ServerConnection>| Some((connection.name.clone(), connection.items().last(list)?.clone()));
        ItemRegistry { servers: self.connections().into_iter().filter_map(listed).collect(), failures: Vec::new() }
    }

    /// The items of all connected servers. Servers that declare such are asked for their current list.
    pub async fn items(&self, list: List) -> ItemRegistry {
        let is_connected = |connection: &Arc<ServerConnection>| connection.status().state == ConnectionState::Connected;
        let ask = |connection: Arc<ServerConnection>| async move {
            let session = connection.open_session().await;
            let open = session.as_ref()?;
            let options = CallOptions { cancel: Some(open.calls.clone()), ..CallOptions::default() };
            let listed = self.caching_session(&open.session).items(list, options).await;
            Some((connection.name.clone(), listed))
        };
        let connected = self.connections().into_iter().filter(is_connected).map(ask);
        let mut listed = stream::iter(connected).buffered(self.options().concurrency.get());
        let mut found = ItemRegistry::default();
        while let Some(listed) = listed.next().await {
            match listed {
                Some((server, Ok(listing))) => found.servers.push((server, listing)),
                Some((server, Err(failure))) => found.failures.push((server, failure)),
                // Its connection has ended.
                None => {}
            }
        }
        found
    }
}

impl CachingSession<'_> {
    /// The items of the server, listed if the last list may be old.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn items(&self, list: List, options: CallOptions) -> Result<Arc<Listing>, Failure> {
        let connection = self.hub.connection(self.session.name()).ok();
        let current = connection.and_then(|connection| connection.items().current(list).cloned());
        match current {
            Some(listing) => Ok(listing),
            None => self.list(list, options).await,
        }
    }

    /// Lists the items of the server. A server that does not declare such items has none.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn list(&self, list: List, options: CallOptions) -> Result<Arc<Listing>, Failure> {
        let connection = self.hub.connection(self.session.name()).ok();
        let changes = connection.as_ref().map(|connection| connection.items().changes());
        let is_declared = self.session.info().declares(list.capability());
        let listing = match is_declared {
            true => self.session.list_from(self, list, options).await?,
            false => Listing::default(),
        };
        let listing = Arc::new(listing);
        if let Some(connection) = connection {
            let is_reported = self.hub.options().watch_changes && reports_changes(self.session, list.capability());
            let mut items = connection.items();
            let is_current = (is_reported || !is_declared) && Some(items.changes()) == changes;
            items.set(list, listing.clone(), is_current);
        }
        Ok(listing)
    }
}
