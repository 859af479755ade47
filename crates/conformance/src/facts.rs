//! What is known of the peer that is checked.

use std::{collections::BTreeSet, time::Duration};

use http::HeaderMap;
use rehearse_protocol::{EventKind, Trace, Version};
use serde_json::Value;

use crate::{Flow, Role};

/// Where the URLs begin that acts name, and that no client may fetch.
pub(crate) const CANARY: &str = "/canary/";

/// What is known besides the traffic of the peer that is checked, and of the server it talks to. The rest is read from
/// the traffic itself.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Which side is checked.
    pub role: Role,
    /// The acts that the client is in: how the mock behaves.
    pub acts: Vec<String>,
    /// What the client does with a server that does nothing unusual.
    pub flow: Option<Flow>,
    /// How the client's process ended, if it was started and has ended by itself.
    pub exit_code: Option<i32>,
    /// What the client has fetched from the mock that is not an endpoint of it.
    pub fetched: Vec<Fetched>,
    /// Whether the client has sent `initialize` on any connection.
    pub has_handshake: bool,
    /// Whether the client tries both eras in any act.
    pub has_both_eras: bool,
    /// The server's capabilities; null if unknown.
    pub capabilities: Value,
    /// Why there is no test material: a sentence each, by what is missing: `tool`, `resource`.
    pub missing: Vec<(String, String)>,
    /// The resource that tokens are requested for.
    pub resource: Option<String>,
    /// The URL of the endpoint, or the identifier of an authorization server.
    pub endpoint: Option<String>,
    /// Values that only the server may know, from its environment.
    pub secrets: Vec<String>,
    /// A variable of the server's process with a value that only it has.
    pub canary: Option<(&'static str, String)>,
    /// Whether harm counts as the violation of a rule.
    pub counts_harm: bool,
    /// After what time a request without an answer is a finding. Less says nothing: the server may only be slow.
    pub patience: Duration,
    /// Whether the server is on this machine or in a private network.
    pub is_local: bool,
    /// Which tools could show more.
    pub more_tools: MoreTools,
    /// The SDKs that other traffic of the peer shows.
    pub sdks: BTreeSet<&'static str>,
    /// The other connections with the server in the same run, with the versions that were asked for, on the same clock as
    /// the evidence: what is called on them may change what others read.
    pub others: Vec<(Version, Trace)>,
}

/// Which tools may show more than those that were called.
#[derive(Clone, Debug, Default)]
pub enum MoreTools {
    /// Those that may not be called, if the user allows them.
    #[default]
    Others,
    /// Those that may be called and were not, or the time was over. The text says so.
    Uncalled(String),
    /// None: all were called.
    None,
}

/// A request of a client for a URL that the server only names.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Path and query.
    pub target: String,
    /// Its headers.
    pub headers: HeaderMap,
}

impl Facts {
    /// What the client has fetched from the mock, by its traces: the paths below `/canary/`.
    pub fn fetched<'t>(traces: impl IntoIterator<Item = &'t Trace>) -> Vec<Fetched> {
        let fetched = traces.into_iter().flat_map(Trace::events).filter_map(|event| match &event.kind {
            EventKind::HttpRequest { target, headers, .. } if target.starts_with(CANARY) => {
                Some(Fetched { target: target.clone(), headers: headers.clone() })
            }
            _ => None,
        });
        fetched.collect()
    }

    /// Whether the client is in this act.
    pub fn is_in(&self, act: &str) -> bool {
        self.acts.iter().any(|it| it == act)
    }

    /// Whether a capability is declared: `tools`, or `tools/listChanged` for one that must be true.
    pub fn declares(&self, capability: &str) -> bool {
        declares(&self.capabilities, capability)
    }

    /// Whether the server speaks an extension.
    pub fn has_extension(&self, name: &str) -> bool {
        has_extension(&self.capabilities, name)
    }
}

pub(crate) fn has_extension(capabilities: &Value, name: &str) -> bool {
    capabilities.get("extensions").and_then(|all| all.get(name)).is_some()
}

pub(crate) fn declares(capabilities: &Value, capability: &str) -> bool {
    let value = capabilities.pointer(&format!("/{capability}"));
    value.is_some_and(|value| !matches!(value, Value::Bool(false) | Value::Null))
}
