//! All servers of a config with one client: connected to, listed, filtered, named and called as one set of tools.
//!
//! ```text
//! HubServer ─ connect ─> Session ─ list ─┐            name ─> RegisteredTool ─ approval ─ stored result? ─> Session::call_tool
//! HubServer ─ connect ─> Session ─ list ─┴─> Registry ──┘                                                      (its own name)
//!            ^                            ^
//!            └── broke: tried again       └── tools/list_changed: listed again
//! ```
//!
//! Servers count in the order of the config, whatever the order in which they answer: so which of two equal names wins
//! does not change from run to run. Each server has a connection that outlives its sessions; a call holds the connection's session for
//! reading, and whoever closes it cancels the calls first. [`registry`] is pure; everything that waits is here and in
//! `connection` and `watch`. What may be kept for the next request is in `store`.
//!
//! All servers at once:
//!
//! ```no_run
//! use mcp_rehearsal::client::{
//!     CallOptions, CommandSpec, ServerParams, Target,
//!     hub::{Hub, HubOptions, HubServer},
//! };
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
//!
//! Or step by step, with whatever a program wants to do in between: connect, discover, filter, rename, register, call,
//! disconnect all. The two servers are mocks here.
//!
//! ```
//! use std::sync::Arc;
//!
//! use mcp_rehearsal::{
//!     client::{
//!         CallOptions, Endpoint, Protocol, ServerParams, Session, Target,
//!         hub::{Registry, registry::ServerTools},
//!     },
//!     config::{
//!         Span,
//!         policy::{Duplicates, Naming, Policy},
//!         server::{At, ToolFilter},
//!     },
//!     mock::{MockServer, Tool},
//!     transport::Transport,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let postgres = MockServer::builder().tool(Tool::new("query").reply("3 rows")).tool(Tool::new("drop_table"));
//! let weather = MockServer::builder().tool(Tool::new("query").reply("Rain."));
//! let mocks = [("postgres", postgres.start().await?), ("weather", weather.start().await?)];
//!
//! // Connect.
//! let mut sessions = Vec::new();
//! for (name, mock) in &mocks {
//!     let url = mock.url(Transport::Http).ok_or("it listens")?;
//!     let target = Target::Http(Endpoint { url, headers: Vec::new() });
//!     sessions.push(Session::connect(&ServerParams::new(*name, target), Protocol::Auto).await?);
//! }
//!
//! // Discover.
//! let mut discovered = Vec::new();
//! for session in &sessions {
//!     let listing = session.list_tools(CallOptions::default()).await?;
//!     discovered.push((Arc::from(session.name()), listing.items));
//! }
//!
//! // Filter, rename and register: the registry does so by the rules that it is given.
//! let at = |name: &str| At { value: name.to_owned(), span: Span::default() };
//! let exclude = At { value: vec![at("drop_table")], span: Span::default() };
//! let filter = ToolFilter { exclude: Some(exclude), include: None };
//! let listed = discovered.iter().map(|(server, tools)| ServerTools {
//!     server,
//!     filter: &filter,
//!     policy: &Policy::USUAL,
//!     tools,
//!     mirrors: false,
//! });
//! let registry = Registry::build(listed, Naming::Literal("{server}.{tool}"), Duplicates::Rejected)?;
//! let names: Vec<_> = registry.tools().iter().map(|tool| &*tool.name).collect();
//! assert_eq!(names, ["postgres.query", "weather.query"]);
//!
//! // Call: the server gets its own name for the tool.
//! let tool = registry.get("weather.query").ok_or("there is no such tool")?;
//! let session = sessions.iter().find(|session| *session.name() == *tool.server).ok_or("there is no such server")?;
//! let outcome = session.call_tool(&tool.original, None, CallOptions::default()).await?;
//! assert_eq!(outcome.text(), "Rain.");
//!
//! // Disconnect all.
//! for session in sessions {
//!     session.close().await;
//! }
//! # Ok(())
//! # }
//! ```

mod approval;
mod caching_session;
mod call;
pub mod configured;
mod discovery;
mod options;
pub mod registry;
mod reload;
mod server_connection;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod usage;
mod watch;

use std::{
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    approval::Denial,
    caching_session::CachingSession,
    call::CallError,
    discovery::Discovery,
    options::{
        ApprovalDecision, ApprovalMode, ApprovalRequest, Approver, ConnectMode, HubOptions, HubServer, RecordSink,
        Retry, RetrySink,
    },
    registry::{DuplicateTool, Notice, RegisteredTool, Registry},
    reload::ReloadReport,
    status::{ConnectionState, ServerStatus},
    usage::Usage,
};
use self::{
    approval::SavedApprovals, registry::ServerTools, server_connection::ServerConnection, store::ResultStore,
    usage::UsageCounter,
};
use super::{ConnectError, Failure, Session};
use crate::transport::UnsolicitedFrame;

/// How many events a reader may be behind.
const EVENTS: usize = 256;
/// How long work may take that is cancelled. A request needs that time to tell the server.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// All servers of a config, usable from many tasks at once. Clones are the same hub. [`Hub::close`] takes leave of all.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    options: HubOptions,
    /// In the order of the config.
    connections: RwLock<Vec<Arc<ServerConnection>>>,
    registry: ArcSwap<Registry>,
    /// Registries are made one after another, so that none replaces a newer one.
    registering: Mutex<()>,
    events: broadcast::Sender<Event>,
    saved_approvals: SavedApprovals,
    results: ResultStore,
    usages: UsageCounter,
    /// Ends what goes on in the background.
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Something that changed.
#[derive(Clone, Debug)]
pub enum Event {
    /// The status of a server.
    StatusChanged(Arc<str>),
    /// The registry.
    ToolsChanged,
    /// A server did not know its session any more, and there is a new one.
    SessionRenewed(Arc<str>),
    /// The connection with a server broke; it is tried again if the options say so.
    Disconnected { server: Arc<str>, why: Arc<str> },
    /// A server's tools could not all be listed.
    ListingFailed { server: Arc<str>, failure: Failure },
    /// A changed list has a tool that the policy forbids, so that the registry stays as it was.
    RegistryRejected(DuplicateTool),
}

/// Why a hub does not work.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HubError {
    /// A server cannot be reached, and the policy wants all of them. Nothing is left open.
    #[error("cannot connect to server {server}: {error}")]
    Unreachable { server: Arc<str>, error: Arc<ConnectError> },
    /// Two tools have one name, and the policy forbids it.
    #[error(transparent)]
    Duplicate(#[from] DuplicateTool),
    /// There is no server of this name.
    #[error("unknown server {0:?}")]
    UnknownServer(String),
    /// The server is switched off.
    #[error("the server {0:?} is disabled")]
    Disabled(Arc<str>),
}

impl Hub {
    /// A hub of these servers, none of which is connected to yet. Must be called within a tokio runtime.
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
            stop,
            tasks: TaskTracker::new(),
        }))
    }

    /// Connects to one server, and registers its tools. One that is connected stays so.
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

    /// Cancels the calls of one server, takes leave of it, and forgets its tools.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`].
    pub async fn disconnect(&self, server: &str) -> Result<(), HubError> {
        let connection = self.connection(server)?;
        let state = connection.status().state;
        self.end(&connection, if state == ConnectionState::Disabled { state } else { ConnectionState::NotConnected })
            .await
    }

    /// Disconnects, and connects anew.
    ///
    /// # Errors
    /// As [`Hub::connect`].
    pub async fn reconnect(&self, server: &str) -> Result<Option<Failure>, HubError> {
        self.disconnect(server).await?;
        self.connect(server).await
    }

    /// Switches a server on, and connects to it unless the hub is lazy.
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

    /// Switches a server off.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`].
    pub async fn disable(&self, server: &str) -> Result<(), HubError> {
        let connection = self.connection(server)?;
        self.end(&connection, ConnectionState::Disabled).await
    }

    /// Takes leave of all servers, after the calls under way are cancelled. Nothing of the hub goes on after it.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.disconnect_all().await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Whether somebody takes leave of all servers.
    pub fn is_closed(&self) -> bool {
        self.0.stop.is_cancelled()
    }

    /// What servers have sent, since this was last asked, that is no message or answers nothing.
    pub fn take_unsolicited(&self) -> Vec<(Arc<str>, UnsolicitedFrame)> {
        let mut strays = Vec::new();
        for connection in self.connections() {
            strays.extend(connection.late().into_iter().map(|stray| (connection.name.clone(), stray)));
            // Whoever is still being connected to has sent nothing that anybody waits for.
            let Some(session) = connection.try_open_session() else { continue };
            let found = session.as_ref().map(|live| live.session.take_unsolicited()).unwrap_or_default();
            strays.extend(found.into_iter().map(|stray| (connection.name.clone(), stray)));
        }
        strays
    }

    /// How it behaves.
    pub fn options(&self) -> &HubOptions {
        &self.0.options
    }

    /// The tools that there are now.
    pub fn registry(&self) -> Arc<Registry> {
        self.0.registry.load_full()
    }

    /// How it stands with each server, in the order of the config.
    pub fn status(&self) -> Vec<(Arc<str>, ServerStatus)> {
        self.connections().into_iter().map(|connection| (connection.name.clone(), connection.status())).collect()
    }

    /// What changes from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// How often each tool was called, by server and the server's own name for it.
    pub fn usage(&self) -> Vec<(Arc<str>, String, Usage)> {
        self.0.usages.all()
    }

    /// Does something over the session with a server, which is connected to if it is not; its tools are not listed for
    /// that. Nobody closes the session before the work is done, but whoever wants to cancels the token that the work is
    /// given, and after a while drops the work.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`], [`HubError::Disabled`], [`HubError::Unreachable`].
    pub async fn with_session<T>(
        &self,
        server: &str,
        work: impl AsyncFnOnce(&Session, CancellationToken) -> T,
    ) -> Result<T, HubError> {
        let connection = self.connection(server)?;
        if connection.status().state == ConnectionState::Disabled {
            return Err(HubError::Disabled(connection.name.clone()));
        }
        let unreachable = |error| HubError::Unreachable { server: connection.name.clone(), error };
        let (session, is_new) = connection.session(&self.0.options).await.map_err(unreachable)?;
        let given_up = || unreachable(Arc::new(ConnectError::Cancelled));
        let live = session.as_ref().ok_or_else(given_up)?;
        if is_new {
            self.emit(Event::StatusChanged(connection.name.clone()));
            self.watch(&connection, live).await;
        }
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

    /// Makes one request over the session with a server, as [`Hub::with_session`] does, and once more over a new one if the server
    /// does not know the session any more.
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

    /// What a server lists, as it came; what its filter leaves out as well.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`].
    pub fn tool_definitions(&self, server: &str) -> Result<Vec<Box<RawValue>>, HubError> {
        self.connection(server).map(|connection| connection.listing().tools.clone())
    }

    /// What is said about a server.
    ///
    /// # Errors
    /// [`HubError::UnknownServer`].
    pub fn server(&self, server: &str) -> Result<Arc<HubServer>, HubError> {
        self.connection(server).map(|connection| connection.member())
    }

    fn connections(&self) -> Vec<Arc<ServerConnection>> {
        self.0.connections.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn connection(&self, server: &str) -> Result<Arc<ServerConnection>, HubError> {
        let connections = self.0.connections.read().unwrap_or_else(PoisonError::into_inner);
        let found = connections.iter().find(|connection| &*connection.name == server).cloned();
        found.ok_or_else(|| HubError::UnknownServer(server.to_owned()))
    }

    /// Connects if need be, and lists the tools.
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

    async fn end(&self, connection: &ServerConnection, state: ConnectionState) -> Result<(), HubError> {
        connection.disconnect(state).await;
        self.0.results.forget(&connection.name);
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

    /// Makes the registry of what the servers list.
    ///
    /// # Errors
    /// There are two tools of one name, and the policy forbids it.
    pub(crate) fn register(&self) -> Result<Arc<Registry>, DuplicateTool> {
        let _one_at_a_time = self.0.registering.lock().unwrap_or_else(PoisonError::into_inner);
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
            mirrors: listing.mirrors,
        });
        let registry = Arc::new(Registry::build(listed, self.0.options.naming, self.0.options.duplicates)?);
        self.0.registry.store(registry.clone());
        self.emit(Event::ToolsChanged);
        Ok(registry)
    }

    /// As [`Hub::register`], where nobody waits for what comes of it.
    fn register_or_emit(&self) {
        if let Err(duplicate) = self.register() {
            self.emit(Event::RegistryRejected(duplicate));
        }
    }

    fn emit(&self, event: Event) {
        // Nobody may be listening.
        let _ = self.0.events.send(event);
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("options", &self.0.options).field("status", &self.status()).finish_non_exhaustive()
    }
}
