//! All servers of a config with one client: connected to, listed, filtered, named and called as one set of tools.
//!
//! ```text
//! Member ─ connect ─> Session ─ list ─┐            name ─> RegisteredTool ─ approval ─ stored result? ─> Session::call_tool
//! Member ─ connect ─> Session ─ list ─┴─> Registry ──┘                                                      (its own name)
//!            ^                            ^
//!            └── broke: tried again       └── tools/list_changed: listed again
//! ```
//!
//! Servers count in the order of the config, whatever the order in which they answer: so which of two equal names wins
//! does not change from run to run. Each server has a slot that outlives its sessions; a call holds the slot's session for
//! reading, and whoever closes it cancels the calls first. [`registry`] is pure; everything that waits is here and in
//! `slot` and `watch`. What may be kept for the next request is in `store`.
//!
//! All servers at once:
//!
//! ```no_run
//! use mcp_rehearsal::client::{
//!     CallOptions, CommandSpec, ServerParams, Target,
//!     hub::{Hub, HubOptions, Member},
//! };
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let command = CommandSpec { program: "weather-server".into(), ..CommandSpec::default() };
//! let weather = ServerParams::new("weather", Target::Stdio(command));
//! let hub = Hub::new([Member::new(weather)], HubOptions::default());
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
//!         hub::{Registry, registry::Listed},
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
//! let listed = discovered.iter().map(|(server, tools)| Listed {
//!     server,
//!     filter: &filter,
//!     policy: &Policy::USUAL,
//!     tools,
//!     mirrors: false,
//! });
//! let registry = Registry::of(listed, Naming::Literal("{server}.{tool}"), Duplicates::Rejected)?;
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
mod cached;
mod call;
pub mod configured;
mod discovery;
mod options;
pub mod registry;
mod reload;
mod slot;
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
    cached::Cached,
    call::CallError,
    discovery::Discovery,
    options::{Approval, Approver, Connect, Decision, HubOptions, Member, RecordSink, Request, Retry, RetrySink},
    registry::{DuplicateTool, Notice, RegisteredTool, Registry},
    reload::Reloaded,
    status::{State, Status},
    usage::Usage,
};
use self::{approval::Granted, registry::Listed, slot::Slot, store::ResultStore, usage::Usages};
use super::{ConnectError, Failure, Session};
use crate::transport::UnsolicitedFrame;

/// How many events a reader may be behind.
const EVENTS: usize = 256;
/// How long work may take that is cancelled. A request needs that time to tell the server.
const LEAVE: Duration = Duration::from_secs(1);

/// All servers of a config, usable from many tasks at once. Clones are the same hub. [`Hub::close`] takes leave of all.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    options: HubOptions,
    /// In the order of the config.
    slots: RwLock<Vec<Arc<Slot>>>,
    registry: ArcSwap<Registry>,
    /// Registries are made one after another, so that none replaces a newer one.
    registering: Mutex<()>,
    events: broadcast::Sender<Event>,
    granted: Granted,
    results: ResultStore,
    usages: Usages,
    /// Ends what goes on in the background.
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Something that changed.
#[derive(Clone, Debug)]
pub enum Event {
    /// The status of a server.
    Status(Arc<str>),
    /// The registry.
    Tools,
    /// A server did not know its session any more, and there is a new one.
    Renewed(Arc<str>),
    /// The connection with a server broke; it is tried again if the options say so.
    Broke { server: Arc<str>, why: Arc<str> },
    /// A server's tools could not all be listed.
    Unlisted { server: Arc<str>, failure: Failure },
    /// A changed list has a tool that the policy forbids, so that the registry stays as it was.
    Rejected(DuplicateTool),
}

/// Why a hub does not work.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HubError {
    /// A server cannot be reached, and the policy wants all of them. Nothing is left open.
    #[error("server {server}: connecting: {error}")]
    Unreachable { server: Arc<str>, error: Arc<ConnectError> },
    /// Two tools have one name, and the policy forbids it.
    #[error(transparent)]
    Duplicate(#[from] DuplicateTool),
    /// There is no server of this name.
    #[error("there is no server {0:?}")]
    NoServer(String),
    /// The server is switched off.
    #[error("the server {0:?} is disabled")]
    Disabled(Arc<str>),
}

impl Hub {
    /// A hub of these servers, none of which is connected to yet. Must be called within a tokio runtime.
    pub fn new(members: impl IntoIterator<Item = Member>, options: HubOptions) -> Hub {
        let stop = CancellationToken::new();
        let slots = members.into_iter().map(|member| Arc::new(Slot::new(member, stop.clone()))).collect();
        let results = ResultStore::new(options.result_ttl);
        Hub(Arc::new(Inner {
            options,
            slots: RwLock::new(slots),
            registry: ArcSwap::default(),
            registering: Mutex::default(),
            events: broadcast::Sender::new(EVENTS),
            granted: Granted::default(),
            results,
            usages: Usages::default(),
            stop,
            tasks: TaskTracker::new(),
        }))
    }

    /// Connects to one server, and registers its tools. One that is connected stays so.
    ///
    /// # Errors
    /// [`HubError::NoServer`], [`HubError::Disabled`], [`HubError::Unreachable`], [`HubError::Duplicate`].
    pub async fn connect(&self, server: &str) -> Result<Option<Failure>, HubError> {
        let slot = self.slot(server)?;
        if slot.status().state == State::Disabled {
            return Err(HubError::Disabled(slot.name.clone()));
        }
        let unreachable = |error| HubError::Unreachable { server: slot.name.clone(), error };
        let failure = self.connect_and_list(&slot).await.map_err(unreachable)?;
        self.register()?;
        Ok(failure)
    }

    /// Cancels the calls of one server, takes leave of it, and forgets its tools.
    ///
    /// # Errors
    /// [`HubError::NoServer`].
    pub async fn disconnect(&self, server: &str) -> Result<(), HubError> {
        let slot = self.slot(server)?;
        let state = slot.status().state;
        self.end(&slot, if state == State::Disabled { state } else { State::NotConnected }).await
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
        let slot = self.slot(server)?;
        if slot.status().state == State::Disabled {
            slot.set(State::NotConnected, None);
            self.tell(Event::Status(slot.name.clone()));
        }
        match self.0.options.connect {
            Connect::Eager => self.connect(server).await,
            Connect::Lazy => Ok(None),
        }
    }

    /// Switches a server off.
    ///
    /// # Errors
    /// [`HubError::NoServer`].
    pub async fn disable(&self, server: &str) -> Result<(), HubError> {
        let slot = self.slot(server)?;
        self.end(&slot, State::Disabled).await
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
    pub fn strays(&self) -> Vec<(Arc<str>, UnsolicitedFrame)> {
        let mut strays = Vec::new();
        for slot in self.slots() {
            strays.extend(slot.late().into_iter().map(|stray| (slot.name.clone(), stray)));
            // Whoever is still being connected to has sent nothing that anybody waits for.
            let Some(session) = slot.session_at_once() else { continue };
            let found = session.as_ref().map(|live| live.session.take_unsolicited()).unwrap_or_default();
            strays.extend(found.into_iter().map(|stray| (slot.name.clone(), stray)));
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
    pub fn status(&self) -> Vec<(Arc<str>, Status)> {
        self.slots().into_iter().map(|slot| (slot.name.clone(), slot.status())).collect()
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
    /// [`HubError::NoServer`], [`HubError::Disabled`], [`HubError::Unreachable`].
    pub async fn over<T>(
        &self,
        server: &str,
        work: impl AsyncFnOnce(&Session, CancellationToken) -> T,
    ) -> Result<T, HubError> {
        let slot = self.slot(server)?;
        if slot.status().state == State::Disabled {
            return Err(HubError::Disabled(slot.name.clone()));
        }
        let unreachable = |error| HubError::Unreachable { server: slot.name.clone(), error };
        let (session, is_new) = slot.session(&self.0.options).await.map_err(unreachable)?;
        let given_up = || unreachable(Arc::new(ConnectError::Cancelled));
        let live = session.as_ref().ok_or_else(given_up)?;
        if is_new {
            self.tell(Event::Status(slot.name.clone()));
            self.watch(&slot, live).await;
        }
        let too_late = async {
            live.calls.cancelled().await;
            tokio::task::coop::unconstrained(tokio::time::sleep(LEAVE)).await;
        };
        tokio::select! {
            biased;
            done = Box::pin(work(&live.session, live.calls.clone())) => Ok(done),
            () = too_late => Err(given_up()),
        }
    }

    /// Makes one request over the session with a server, as [`Hub::over`] does, and once more over a new one if the server
    /// does not know the session any more.
    ///
    /// # Errors
    /// As [`Hub::over`].
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
            let (done, is_lost) = Box::pin(self.over(server, once)).await?;
            if !(is_lost && std::mem::take(&mut may_renew)) {
                return Ok(done);
            }
            self.tell(Event::Renewed(self.slot(server)?.name.clone()));
        }
    }

    /// What a server lists, as it came; what its filter leaves out as well.
    ///
    /// # Errors
    /// [`HubError::NoServer`].
    pub fn listed(&self, server: &str) -> Result<Vec<Box<RawValue>>, HubError> {
        self.slot(server).map(|slot| slot.listing().tools.clone())
    }

    /// What is said about a server.
    ///
    /// # Errors
    /// [`HubError::NoServer`].
    pub fn member(&self, server: &str) -> Result<Arc<Member>, HubError> {
        self.slot(server).map(|slot| slot.member())
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        self.0.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn slot(&self, server: &str) -> Result<Arc<Slot>, HubError> {
        let slots = self.0.slots.read().unwrap_or_else(PoisonError::into_inner);
        let found = slots.iter().find(|slot| &*slot.name == server).cloned();
        found.ok_or_else(|| HubError::NoServer(server.to_owned()))
    }

    /// Connects if need be, and lists the tools.
    async fn connect_and_list(&self, slot: &Arc<Slot>) -> Result<Option<Failure>, Arc<ConnectError>> {
        let mut may_renew = true;
        loop {
            let connected = slot.session(&self.0.options).await;
            self.tell(Event::Status(slot.name.clone()));
            let (session, is_new) = connected?;
            let Some(live) = &*session else { return Ok(None) };
            if is_new {
                self.watch(slot, live).await;
            }
            let failure = slot.list(live).await;
            let is_lost = failure.as_ref().is_some_and(|failure| live.session.is_lost_by(failure));
            if is_lost && std::mem::take(&mut may_renew) {
                self.tell(Event::Renewed(slot.name.clone()));
                continue;
            }
            self.tell(Event::Status(slot.name.clone()));
            return Ok(failure);
        }
    }

    async fn end(&self, slot: &Slot, state: State) -> Result<(), HubError> {
        slot.disconnect(state).await;
        self.0.results.forget(&slot.name);
        self.tell(Event::Status(slot.name.clone()));
        self.register().map(drop).map_err(HubError::from)
    }

    async fn disconnect_all(&self) {
        let slots = self.slots();
        let state = |slot: &Slot| match slot.status().state {
            State::Disabled => State::Disabled,
            _ => State::NotConnected,
        };
        futures_util::future::join_all(slots.iter().map(|slot| slot.disconnect(state(slot)))).await;
    }

    /// Makes the registry of what the servers list.
    ///
    /// # Errors
    /// There are two tools of one name, and the policy forbids it.
    pub(crate) fn register(&self) -> Result<Arc<Registry>, DuplicateTool> {
        let _one_at_a_time = self.0.registering.lock().unwrap_or_else(PoisonError::into_inner);
        let listed: Vec<_> = self.slots().into_iter().map(|slot| (slot.listing(), slot.member(), slot)).collect();
        let listed = listed.iter().map(|(listing, member, slot)| Listed {
            server: &slot.name,
            filter: &member.filter,
            policy: member.policy,
            tools: &listing.tools,
            mirrors: listing.mirrors,
        });
        let registry = Arc::new(Registry::of(listed, self.0.options.naming, self.0.options.duplicates)?);
        self.0.registry.store(registry.clone());
        self.tell(Event::Tools);
        Ok(registry)
    }

    /// As [`Hub::register`], where nobody waits for what comes of it.
    fn register_or_tell(&self) {
        if let Err(duplicate) = self.register() {
            self.tell(Event::Rejected(duplicate));
        }
    }

    fn tell(&self, event: Event) {
        // Nobody may be listening.
        let _ = self.0.events.send(event);
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("options", &self.0.options).field("status", &self.status()).finish_non_exhaustive()
    }
}
