//! What a hub is made of, and how it goes about it.

use std::{collections::BTreeMap, fmt, num::NonZeroUsize, pin::Pin, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::RegisteredTool;
use crate::{
    client::{ConnectError, Protocol, ServerParams, StderrSink},
    config::{
        policy::{ApprovalRule, Duplicates, Naming, Policy, Unreachable},
        server::ToolFilter,
    },
    transport::TraceRecorder,
};

/// A server of a hub.
#[derive(Clone, Debug)]
pub struct HubServer {
    pub config: ServerParams,
    /// Which version it is asked for, instead of the hub's.
    pub protocol: Option<Protocol>,
    pub is_enabled: bool,
    /// Which of its tools there are, read as `policy` says.
    pub filter: ToolFilter,
    pub policy: &'static Policy,
    /// Whether all its tools may be called without asking anybody.
    pub is_trusted: bool,
    /// Those of its tools that may.
    pub always_allow: Vec<String>,
    /// How long a call of some of its tools may take, instead of the server's timeout.
    pub tool_timeouts: BTreeMap<String, Duration>,
}

/// How a hub behaves.
#[derive(Clone)]
pub struct HubOptions {
    pub protocol: Protocol,
    pub naming: Naming,
    pub duplicates: Duplicates,
    pub unreachable: Unreachable,
    pub connect: ConnectMode,
    /// How many servers are connected to and listed at a time. What comes of it does not depend on it.
    pub concurrency: NonZeroUsize,
    /// How often, and after which pauses, a connection is tried again that failed or broke.
    pub retry: Retry,
    /// Who is told before each further attempt.
    pub retry_sink: Option<RetrySink>,
    /// How often a server is asked whether it still answers.
    pub health_interval: Option<Duration>,
    pub approval: ApprovalMode,
    /// How long the result of a tool that only reads stands for the next call with the same arguments, at most until a tool
    /// of the same server is called that does not only read. With any time, what [`Hub::caching_session`](super::Hub::caching_session) asks
    /// for stands as well, for as long as its server says (`ttlMs`; 2026-07-28, Caching); without one nothing is kept.
    pub result_ttl: Option<Duration>,
    /// Where the lines go that servers write to their standard error.
    pub stderr: Option<StderrSink>,
    /// Who gets the record of each connection before anything goes over it. It then has what HTTP says as well.
    pub record_sink: Option<RecordSink>,
    /// Whether changed lists and broken connections are noticed while nobody calls.
    pub watch_changes: bool,
}

/// Called with the name of a server and the record of a connection that is about to be opened.
pub type RecordSink = Arc<dyn Fn(&Arc<str>, &TraceRecorder) + Send + Sync>;

/// Called when connecting to a server has failed and is tried again after a pause.
pub type RetrySink = Arc<dyn Fn(&Arc<str>, &ConnectError, Duration) + Send + Sync>;

/// When servers are connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectMode {
    /// By [`Hub::discover`](super::Hub::discover).
    #[default]
    Eager,
    /// Not before something needs them.
    Lazy,
}

/// Attempts after the first. Each pause is twice the one before, up to `longest`, and shortened by chance by up to half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    pub attempts: u32,
    pub pause: Duration,
    pub max_pause: Duration,
}

/// Who allows calls of tools that neither their server's trust nor a list allows.
#[derive(Clone, Default)]
pub enum ApprovalMode {
    /// Everything is allowed.
    #[default]
    AllowAll,
    /// Nobody is there to ask.
    NoApprover,
    /// None is allowed, because of a setting that has this name for users.
    DeniedBySetting(&'static str),
    /// Somebody is asked each time.
    Ask(Approver),
}

/// Asks somebody about a call.
pub type Approver =
    Arc<dyn Fn(ApprovalRequest) -> Pin<Box<dyn Future<Output = ApprovalDecision> + Send>> + Send + Sync>;

/// A call that somebody is asked about.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    pub tool: Arc<RegisteredTool>,
    pub arguments: Option<Map<String, Value>>,
}

/// What somebody says to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    Allow,
    /// This one and all that follow, of this tool.
    AllowAlways,
    Deny,
}

impl HubServer {
    /// With all its tools, as most programs would treat it.
    pub fn new(config: ServerParams) -> HubServer {
        HubServer {
            config,
            protocol: None,
            is_enabled: true,
            filter: ToolFilter::default(),
            policy: &Policy::USUAL,
            is_trusted: false,
            always_allow: Vec::new(),
            tool_timeouts: BTreeMap::new(),
        }
    }

    /// Whether a connection made for one of them serves the other.
    pub(super) fn has_same_connection(&self, other: &HubServer) -> bool {
        let same = |one: &dyn fmt::Debug, two: &dyn fmt::Debug| format!("{one:?}") == format!("{two:?}");
        self.is_enabled == other.is_enabled
            && self.protocol == other.protocol
            && same(&self.config.target, &other.config.target)
            && same(&self.config.timeouts, &other.config.timeouts)
    }
}

impl HubOptions {
    /// As the program of a config does it.
    pub fn from_policy(policy: &Policy) -> HubOptions {
        let approval = match policy.approval {
            ApprovalRule::Never => ApprovalMode::AllowAll,
            ApprovalRule::Always => ApprovalMode::NoApprover,
        };
        HubOptions {
            naming: policy.naming,
            duplicates: policy.duplicates,
            unreachable: policy.unreachable,
            approval,
            ..HubOptions::default()
        }
    }
}

impl Default for HubOptions {
    fn default() -> Self {
        HubOptions {
            protocol: Protocol::Auto,
            naming: Naming::Bare,
            duplicates: Duplicates::FirstWins,
            unreachable: Unreachable::Skipped,
            connect: ConnectMode::Eager,
            concurrency: NonZeroUsize::MIN.saturating_add(7),
            retry: Retry::NEVER,
            retry_sink: None,
            health_interval: None,
            approval: ApprovalMode::AllowAll,
            result_ttl: None,
            stderr: None,
            record_sink: None,
            watch_changes: true,
        }
    }
}

impl Retry {
    pub const NEVER: Retry = Retry { attempts: 0, pause: Duration::ZERO, max_pause: Duration::ZERO };

    /// The pause before each further attempt, without what chance takes off.
    pub(super) fn pauses(self) -> impl Iterator<Item = Duration> {
        let pause = move |index: u32| self.pause.saturating_mul(2_u32.saturating_pow(index)).min(self.max_pause);
        (0..self.attempts).map(pause)
    }
}

impl fmt::Debug for HubOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubOptions")
            .field("protocol", &self.protocol)
            .field("naming", &self.naming)
            .field("duplicates", &self.duplicates)
            .field("unreachable", &self.unreachable)
            .field("connect", &self.connect)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let second = Duration::from_secs;
        let retry = Retry { attempts: 4, pause: second(1), max_pause: second(3) };
        assert_eq!(retry.pauses().collect::<Vec<_>>(), [second(1), second(2), second(3), second(3)]);
        assert_eq!(Retry::NEVER.pauses().next(), None);
    }
}
