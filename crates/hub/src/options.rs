//! The servers and the options of a hub.

use std::{collections::BTreeMap, fmt, num::NonZeroUsize, pin::Pin, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{RegisteredTool, Routing};
use rehearse_client::{ClientRecorder, ConnectError, ServerParams, StderrSink};
use rehearse_client_configs::{
    policy::{ApprovalRule, Duplicates, Naming, Policy, Unreachable},
    server::ToolFilter,
};
use rehearse_protocol::Protocol;

/// A server of a hub.
#[derive(Clone, Debug)]
pub struct HubServer {
    /// How to connect to it.
    pub config: ServerParams,
    /// The protocol version [default: that of the hub].
    pub protocol: Option<Protocol>,
    /// Whether the hub may connect to it.
    pub is_enabled: bool,
    /// The filter of its tools, applied as `policy` says.
    pub filter: ToolFilter,
    /// The policy of the client that the config belongs to.
    pub policy: &'static Policy,
    /// Whether calls of its tools need no approval.
    pub is_trusted: bool,
    /// Its tools whose calls need no approval.
    pub always_allow: Vec<String>,
    /// Timeouts of single tools, with precedence over that of the server.
    pub tool_timeouts: BTreeMap<String, Duration>,
    /// Whether only the caller ends a call of another tool, and no timeout.
    pub waits_for_tools: bool,
}

/// The options of a hub.
#[derive(Clone)]
pub struct HubOptions {
    /// The default protocol version.
    pub protocol: Protocol,
    /// How tools are named.
    pub naming: Naming,
    /// What to do with duplicate names.
    pub duplicates: Duplicates,
    /// What to do with unreachable servers.
    pub unreachable: Unreachable,
    /// When to connect.
    pub connect: ConnectMode,
    /// How many servers to connect to at once. The result does not depend on it.
    pub concurrency: NonZeroUsize,
    /// Retries of failed and lost connections.
    pub retry: Retry,
    /// Called before each retry.
    pub retry_sink: Option<RetrySink>,
    /// The interval of health checks.
    pub health_interval: Option<Duration>,
    /// Which server gets a call if several have the tool.
    pub routing: Routing,
    /// Whether a call of a read-only or idempotent tool is repeated once if its connection is lost.
    pub repeats_calls: bool,
    /// Whether the arguments of a call must match the input schema of the tool.
    pub checks_arguments: bool,
    /// How calls are approved.
    pub approval: ApprovalMode,
    /// How long results of read-only tools are reused for calls with the same arguments, at most until a tool of the same
    /// server is called that is not read-only. `None` disables all caching, including
    /// [`Hub::caching_session`](super::Hub::caching_session).
    pub result_ttl: Option<Duration>,
    /// Receives the stderr lines of servers.
    pub stderr: Option<StderrSink>,
    /// As [`ConnectOptions::all_stderr`](rehearse_client::ConnectOptions::all_stderr).
    pub all_stderr: bool,
    /// Receives the recorder of each connection before its first frame. It also records HTTP messages.
    pub record_sink: Option<RecordSink>,
    /// Whether to watch for changed lists and lost connections in the background.
    pub watch_changes: bool,
}

/// Called with the name of a server and the recorder of its next connection.
pub type RecordSink = Arc<dyn Fn(&Arc<str>, &ClientRecorder) + Send + Sync>;

/// Called with the server, the error and the pause before a retry.
pub type RetrySink = Arc<dyn Fn(&Arc<str>, &ConnectError, Duration) + Send + Sync>;

/// When a hub connects to its servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectMode {
    /// By [`Hub::discover`](super::Hub::discover).
    #[default]
    Eager,
    /// On first use.
    Lazy,
}

/// Retries with exponential backoff: each pause is twice the previous one, with jitter of up to half a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The number of attempts after the first.
    pub attempts: u32,
    /// The first pause.
    pub pause: Duration,
    /// The maximum pause.
    pub max_pause: Duration,
}

/// How calls are approved that the config does not allow.
#[derive(Clone, Default)]
pub enum ApprovalMode {
    /// Allow every call.
    #[default]
    AllowAll,
    /// Deny every call: there is no user to ask.
    NoApprover,
    /// Deny every call because of the setting with this name.
    DeniedBySetting(&'static str),
    /// Ask for each call.
    Ask(Approver),
}

/// Asks the user to approve a call.
pub type Approver =
    Arc<dyn Fn(ApprovalRequest) -> Pin<Box<dyn Future<Output = ApprovalDecision> + Send>> + Send + Sync>;

/// A call that needs approval.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// The tool.
    pub tool: Arc<RegisteredTool>,
    /// The arguments of the call.
    pub arguments: Option<Map<String, Value>>,
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// Allow this call.
    Allow,
    /// Allow this and all later calls of the tool.
    AllowAlways,
    /// Deny this call.
    Deny,
}

impl HubServer {
    /// An enabled server without filters, with the usual policy.
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
            waits_for_tools: false,
        }
    }

    /// How long a call of a tool may take.
    pub fn tool_timeout(&self, tool: &str) -> Duration {
        match self.tool_timeouts.get(tool) {
            Some(own) => *own,
            None if self.waits_for_tools => Duration::MAX,
            None => self.config.timeouts.call,
        }
    }

    /// Whether both can share one connection.
    pub(super) fn has_same_connection(&self, other: &HubServer) -> bool {
        let same = |one: &dyn fmt::Debug, two: &dyn fmt::Debug| format!("{one:?}") == format!("{two:?}");
        self.is_enabled == other.is_enabled
            && self.protocol == other.protocol
            && same(&self.config.target, &other.config.target)
            && same(&self.config.timeouts, &other.config.timeouts)
    }
}

impl HubOptions {
    /// The options that match the policy of a client.
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
            concurrency: policy.concurrency,
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
            routing: Routing::Registered,
            repeats_calls: false,
            checks_arguments: true,
            approval: ApprovalMode::AllowAll,
            result_ttl: None,
            stderr: None,
            all_stderr: false,
            record_sink: None,
            watch_changes: true,
        }
    }
}

impl Retry {
    /// No retries.
    pub const NEVER: Retry = Retry { attempts: 0, pause: Duration::ZERO, max_pause: Duration::ZERO };

    /// The pause before each retry, without jitter.
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
