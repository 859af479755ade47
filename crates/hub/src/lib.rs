//! A [`Hub`]: one client for all servers of a config. It connects to them, lists, filters and names their tools, and calls
//! them.
//!
//! ```text
//! HubServer ─ connect ─> Session ─ list ─┐            name ─> RegisteredTool ─ approval ─ stored result? ─> Session::call_tool
//! HubServer ─ connect ─> Session ─ list ─┴─> Registry ──┘                                                   (original name)
//!               ^                            ^
//!               └── lost: reconnect          └── tools/list_changed: list again
//! ```
//!
//! Tools are registered in the order of the config, whichever server answers first, so that the same tool wins a duplicate
//! name in every run. A `ServerConnection` outlives the sessions with its server. Calls hold the session for reading;
//! closing it cancels them first. `item_registry` lists resources and prompts when they are needed. [`registry`] is pure; `server_connection` and `watch` wait for servers; `store` caches
//! results.
//!
//! All servers at once:
//!
//! ```no_run
//! use rehearse_client::{CallOptions, CommandSpec, ServerParams, Target};
//! use rehearse_hub::{Hub, HubOptions, HubServer};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let command = CommandSpec { program: "weather-server".into(), ..CommandSpec::default() };
//! let weather = ServerParams::new("weather", Target::Stdio(command));
//! let hub = Hub::new([HubServer::new(weather)], HubOptions::default());
//! let discovery = hub.discover().await?;
//! for (server, error) in &discovery.unreachable {
//!     eprintln!("{server}: {error}");
//! }
//! let outcome = hub.call("forecast", None, CallOptions::default()).await?;
//! println!("{}", outcome.text());
//! hub.close().await;
//! # Ok(())
//! # }
//! ```

mod approval;
mod caching_session;
mod call;
pub mod configured;
mod discovery;
mod item_lists;
mod item_registry;
mod options;
pub mod projection;
pub mod registry;
mod reload;
mod routing;
mod server_connection;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod usage;
mod watch;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};
use serde_json::value::RawValue;
use tokio::sync::{RwLockReadGuard, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    approval::Denial,
    caching_session::CachingSession,
    call::CallError,
    discovery::Discovery,
    item_registry::ItemRegistry,
    options::{
        ApprovalDecision, ApprovalMode, ApprovalRequest, Approver, ConnectMode, HubOptions, HubServer, RecordSink,
        Retry, RetrySink,
    },
    registry::{DuplicateTool, Effect, Notice, RegisteredTool, Registry},
    reload::ReloadReport,
    routing::{Rerouted, RoutedCall, Routing},
    server_connection::is_retryable,
    status::{ConnectionState, ServerStatus},
    usage::Usage,
};
use self::{
    approval::SavedApprovals,
    registry::AllowedCalls,
    registry::ServerTools,
    routing::Turns,
    server_connection::{OpenSession, ServerConnection},
    store::ResultStore,
    usage::UsageCounter,
};
use rehearse_client::UnsolicitedFrame;
use rehearse_client::{CallOptions, ConnectError, Failure, Session};

/// How many events a receiver may lag behind.
const EVENTS: usize = 256;
/// How long cancelled work may take, to notify the server.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// The connections to all servers of a config and the registry of their tools. Clones share the same hub. See the
/// [module](self) for examples; [`Hub::close`] closes all connections.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    options: HubOptions,
    /// In the order of the config.
    connections: RwLock<Vec<Arc<ServerConnection>>>,
    registry: ArcSwap<Registry>,
    /// Serializes registrations, so that no registry replaces a newer one.
    registering: Mutex<()>,
    events: broadcast::Sender<Event>,
    saved_approvals: SavedApprovals,
    results: ResultStore,
    usages: UsageCounter,
    turns: Turns,
    /// Stops the background tasks.
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// A change in a hub.
#[derive(Clone, Debug)]
pub enum Event {
    /// The status of a server changed.
    StatusChanged(Arc<str>),
    /// The registry changed.
    ToolsChanged,
    /// The resources or prompts of a server changed.
    ItemsChanged(Arc<str>),
    /// A server lost its session, and the hub opened a new one.
    SessionRenewed(Arc<str>),
    /// The connection to a server was lost; the hub reconnects if the options have retries.
    Disconnected { server: Arc<str>, why: Arc<str> },
    /// A server could not list all its tools.
    ListingFailed { server: Arc<str>, failure: Failure },
    /// A call goes to another server.
    Rerouted(Rerouted),
    /// A changed list has a duplicate that the policy rejects; the registry stays as it was.
    RegistryRejected(DuplicateTool),
}

/// Why an operation of a hub failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HubError {
    /// A server cannot be reached, and the policy requires all servers. All connections are closed.
    #[error("cannot connect to server {server}: {error}")]
    Unreachable { server: Arc<str>, error: Arc<ConnectError> },
    /// Two tools have the same name, and the policy rejects duplicates.
    #[error(transparent)]
    Duplicate(#[from] DuplicateTool),
    /// No server has this name.
    #[error("unknown server {0:?}")]
    UnknownServer(String),
    /// The server is disabled.
    #[error("the server {0:?} is disabled")]
    Disabled(Arc<str>),
}

impl HubError {
    /// The session was closed meanwhile.
    fn gone(connection: &ServerConnection) -> HubError {
        HubError::Unreachable { server: connection.name.clone(), error: Arc::new(ConnectError::Cancelled) }
    }
}

impl Hub {
    /// A hub without connections. Must be called within a tokio runtime.
    pub fn new(servers: impl IntoIterator<Item = HubServer>, options: HubOptions) -> Hub {
        let stop = CancellationToken::new();
        let connections =
            servers.into_iter().map(|member| Arc::new(ServerConnection::new(member, stop.clone()))).collect();
        let results = ResultStore::new(options.result_ttl);
        Hub(Arc::new(Inner {
            options,
            connections: RwLock::new(connections),
            registry: ArcSwap::default(),
            registering: Mutex::default(),
            events: broadcast::Sender::new(EVENTS),
            saved_approvals: SavedApprovals::default(),
            results,
            usages: UsageCounter::default(),
            turns: Turns::default(),
            stop,
            tasks: TaskTracker::new(),
        }))
    }

    /// Connects to one server, unless it is connected, and registers its tools. Returns why its tools could not all be
    /// listed, if so.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`], [`HubError::Disabled`], [`HubError::Unreachable`], [`HubError::Duplicate`].
    pub async fn connect(&self, server: &str) -> Result<Option<Failure>, HubError> {
        let connection = self.connection(server)?;
        if connection.status().state == ConnectionState::Disabled {
            return Err(HubError::Disabled(connection.name.clone()));
        }
        let unreachable = |error| HubError::Unreachable { server: connection.name.clone(), error };
        let failure = self.connect_and_list(&connection).await.map_err(unreachable)?;
        self.register()?;
        Ok(failure)
    }

    /// Cancels the calls of one server, closes its connection and removes its tools.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`].
    pub async fn disconnect(&self, server: &str) -> Result<(), HubError> {
        let connection = self.connection(server)?;
        let state = connection.status().state;
        self.disconnect_with_state(
            &connection,
            if state == ConnectionState::Disabled { state } else { ConnectionState::NotConnected },
        )
        .await
    }

    /// Disconnects and connects again.
    ///
    /// # Errors
    /// As [`Hub::connect`].
    pub async fn reconnect(&self, server: &str) -> Result<Option<Failure>, HubError> {
        self.disconnect(server).await?;
        self.connect(server).await
    }

    /// Enables a server, and connects to it unless the hub is lazy.
    ///
    /// # Errors
    /// As [`Hub::connect`].
    pub async fn enable(&self, server: &str) -> Result<Option<Failure>, HubError> {
        let connection = self.connection(server)?;
        if connection.status().state == ConnectionState::Disabled {
            connection.set(ConnectionState::NotConnected, None);
            self.emit(Event::StatusChanged(connection.name.clone()));
        }
        match self.0.options.connect {
            ConnectMode::Eager => self.connect(server).await,
            ConnectMode::Lazy => Ok(None),
        }
    }

    /// Disables and disconnects a server.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`].
    pub async fn disable(&self, server: &str) -> Result<(), HubError> {
        let connection = self.connection(server)?;
        self.disconnect_with_state(&connection, ConnectionState::Disabled).await
    }

    /// Cancels all calls, closes all connections and stops all background tasks.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.disconnect_all().await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Whether [`Hub::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.0.stop.is_cancelled()
    }

    /// Takes the unsolicited frames of all servers since the last call.
    pub fn take_unsolicited(&self) -> Vec<(Arc<str>, UnsolicitedFrame)> {
        let mut strays = Vec::new();
        for connection in self.connections() {
            strays.extend(connection.late().into_iter().map(|stray| (connection.name.clone(), stray)));
            // Skip servers that are connecting.
            let Some(session) = connection.try_open_session() else { continue };
            let found = session.as_ref().map(|live| live.session.take_unsolicited()).unwrap_or_default();
            strays.extend(found.into_iter().map(|stray| (connection.name.clone(), stray)));
        }
        strays
    }

    /// The options of the hub.
    pub fn options(&self) -> &HubOptions {
        &self.0.options
    }

    /// The current registry.
    pub fn registry(&self) -> Arc<Registry> {
        self.0.registry.load_full()
    }

    /// The status of each server, in the order of the config.
    pub fn status(&self) -> Vec<(Arc<str>, ServerStatus)> {
        self.connections().into_iter().map(|connection| (connection.name.clone(), connection.status())).collect()
    }

    /// The events from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// The usage of each tool, by server and original name.
    pub fn usage(&self) -> Vec<(Arc<str>, String, Usage)> {
        self.0.usages.all()
    }

    /// Runs `work` with the session of a server, connecting if necessary, without listing its tools. The session stays open
    /// until the work is done. To close it, the hub cancels the token of the work and drops the work after a grace period.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`], [`HubError::Disabled`], [`HubError::Unreachable`].
    pub async fn with_session<T>(
        &self,
        server: &str,
        work: impl AsyncFnOnce(&Session, CancellationToken) -> T,
    ) -> Result<T, HubError> {
        let connection = self.connection(server)?;
        let session = self.live(&connection).await?;
        let given_up = || HubError::gone(&connection);
        let live = session.as_ref().ok_or_else(given_up)?;
        let too_late = async {
            live.calls.cancelled().await;
            tokio::task::coop::unconstrained(tokio::time::sleep(CLOSE_GRACE)).await;
        };
        tokio::select! {
            biased;
            done = Box::pin(work(&live.session, live.calls.clone())) => Ok(done),
            () = too_late => Err(given_up()),
        }
    }

    /// The session with a server, connecting if necessary.
    async fn live<'c>(
        &self,
        connection: &'c Arc<ServerConnection>,
    ) -> Result<RwLockReadGuard<'c, Option<OpenSession>>, HubError> {
        if connection.status().state == ConnectionState::Disabled {
            return Err(HubError::Disabled(connection.name.clone()));
        }
        let unreachable = |error| HubError::Unreachable { server: connection.name.clone(), error };
        let (session, is_new) = connection.session(&self.0.options).await.map_err(unreachable)?;
        if let Some(live) = session.as_ref().filter(|_| is_new) {
            self.emit(Event::StatusChanged(connection.name.clone()));
            self.watch(connection, live).await;
        }
        Ok(session)
    }

    /// Reads a resource, connecting if necessary. The result may be one of the cache.
    ///
    /// # Errors
    /// As [`Hub::with_session`]; or any [`Failure`] of the request.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
        options: CallOptions,
    ) -> Result<Result<Box<RawValue>, Failure>, HubError> {
        let connection = self.connection(server)?;
        let session = self.live(&connection).await?;
        let live = session.as_ref().ok_or_else(|| HubError::gone(&connection))?;
        Ok(self.caching_session(&live.session).read_resource(uri, options).await)
    }

    /// Sends one request as [`Hub::with_session`] does, and retries it once in a new session if the server has lost the
    /// session.
    ///
    /// # Errors
    /// As [`Hub::with_session`].
    pub async fn request<T>(
        &self,
        server: &str,
        work: impl AsyncFn(&Session, CancellationToken) -> Result<T, Failure>,
    ) -> Result<Result<T, Failure>, HubError> {
        let mut may_renew = true;
        loop {
            let once = async |session: &Session, cancel| {
                let done = work(session, cancel).await;
                let is_lost = done.as_ref().err().is_some_and(|failure| session.is_lost_by(failure));
                (done, is_lost)
            };
            let (done, is_lost) = Box::pin(self.with_session(server, once)).await?;
            if !(is_lost && std::mem::take(&mut may_renew)) {
                return Ok(done);
            }
            self.emit(Event::SessionRenewed(self.connection(server)?.name.clone()));
        }
    }

    /// The tool definitions of a server, verbatim, including filtered tools.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`].
    pub fn tool_definitions(&self, server: &str) -> Result<Vec<Box<RawValue>>, HubError> {
        self.connection(server).map(|connection| connection.listing().tools.clone())
    }

    /// The configuration of a server.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`].
    pub fn server(&self, server: &str) -> Result<Arc<HubServer>, HubError> {
        self.connection(server).map(|connection| connection.member())
    }

    fn connections(&self) -> Vec<Arc<ServerConnection>> {
        self.0.connections.read().clone()
    }

    fn connection(&self, server: &str) -> Result<Arc<ServerConnection>, HubError> {
        let connections = self.0.connections.read();
        let found = connections.iter().find(|connection| &*connection.name == server).cloned();
        found.ok_or_else(|| HubError::UnknownServer(server.to_owned()))
    }

    /// Connects if necessary, and lists the tools.
    async fn connect_and_list(&self, connection: &Arc<ServerConnection>) -> Result<Option<Failure>, Arc<ConnectError>> {
        let mut may_renew = true;
        loop {
            let connected = connection.session(&self.0.options).await;
            self.emit(Event::StatusChanged(connection.name.clone()));
            let (session, is_new) = connected?;
            let Some(live) = &*session else { return Ok(None) };
            if is_new {
                self.watch(connection, live).await;
            }
            let failure = connection.list(live).await;
            let is_lost = failure.as_ref().is_some_and(|failure| live.session.is_lost_by(failure));
            if is_lost && std::mem::take(&mut may_renew) {
                self.emit(Event::SessionRenewed(connection.name.clone()));
                continue;
            }
            self.emit(Event::StatusChanged(connection.name.clone()));
            return Ok(failure);
        }
    }

    async fn disconnect_with_state(
        &self,
        connection: &ServerConnection,
        state: ConnectionState,
    ) -> Result<(), HubError> {
        connection.disconnect(state).await;
        self.0.results.invalidate(&connection.name);
        self.emit(Event::StatusChanged(connection.name.clone()));
        self.register().map(drop).map_err(HubError::from)
    }

    async fn disconnect_all(&self) {
        let connections = self.connections();
        let state = |connection: &ServerConnection| match connection.status().state {
            ConnectionState::Disabled => ConnectionState::Disabled,
            _ => ConnectionState::NotConnected,
        };
        futures_util::future::join_all(connections.iter().map(|connection| connection.disconnect(state(connection))))
            .await;
    }

    /// Builds the registry from the lists of all servers.
    ///
    /// # Errors
    /// Two tools have the same name, and the policy rejects duplicates.
    pub fn register(&self) -> Result<Arc<Registry>, DuplicateTool> {
        let _one_at_a_time = self.0.registering.lock();
        let listed: Vec<_> = self
            .connections()
            .into_iter()
            .map(|connection| (connection.listing(), connection.member(), connection))
            .collect();
        let listed = listed.iter().map(|(listing, member, connection)| ServerTools {
            server: &connection.name,
            filter: &member.filter,
            policy: member.policy,
            tools: &listing.tools,
            always_allow: if member.is_trusted { AllowedCalls::All } else { AllowedCalls::Of(&member.always_allow) },
            mirrors: listing.mirrors,
        });
        let registry = Arc::new(Registry::build(listed, self.0.options.naming, self.0.options.duplicates)?);
        self.0.registry.store(registry.clone());
        self.emit(Event::ToolsChanged);
        Ok(registry)
    }

    /// As [`Hub::register`]; an error becomes an event.
    fn register_or_emit(&self) {
        if let Err(duplicate) = self.register() {
            self.emit(Event::RegistryRejected(duplicate));
        }
    }

    fn emit(&self, event: Event) {
        // Without a receiver the event is dropped.
        let _ = self.0.events.send(event);
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("options", &self.0.options).field("status", &self.status()).finish_non_exhaustive()
    }
}
