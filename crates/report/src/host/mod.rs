//! The result of `rehearse host run`: what real hosts make of a server.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{Verdict, milliseconds::Milliseconds, profile::Fit};

/// What has come of running hosts with a server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostResult {
    /// The version of this data format.
    pub format: u32,
    /// The version of `rehearse`.
    pub rehearse: String,
    /// The command or URL of the server.
    pub target: String,
    /// The name and version that the server gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How long the run took.
    #[serde(rename = "durationMs", with = "Milliseconds")]
    pub duration: Duration,
    /// Each host, in the order of the run.
    pub hosts: Vec<HostRun>,
    /// What the exit code says.
    pub verdict: Verdict,
}

/// What one host made of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostRun {
    /// The name of the host, such as `claude-code`.
    pub host: String,
    /// What people call it.
    pub title: String,
    /// What its program says of its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the server can be used in it; absent if the host could not be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// How long the host ran.
    #[serde(rename = "durationMs", with = "Milliseconds")]
    pub duration: Duration,
    /// How long after its start the host asked the model; zero if it did not.
    #[serde(rename = "askedAfterMs", with = "Milliseconds")]
    pub asked_after: Duration,
    /// What the host and the server agreed on; absent if they did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<HostConnection>,
    /// Each tool of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<HostTool>,
    /// Tools that the host offers with the server's, by the names that the model sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_tools: Vec<String>,
    /// What the host printed about a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<String>,
    /// What the host tried to reach beyond this machine, such as `api.example.com:443`. Nothing was reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried_to_reach: Vec<String>,
    /// Why the host could not be run, or ended before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it has asked the model anything. If not, it shows nothing of the server.
    pub was_asked: bool,
}

/// What a host and a server agreed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostConnection {
    /// The transport.
    pub transport: String,
    /// The protocol version.
    pub protocol: String,
    /// The name and version that the host gives itself.
    pub client: String,
    /// What the host declares.
    pub capabilities: Json,
    /// What the host asked for, in order, such as `tools/list`.
    pub methods: Vec<String>,
}

/// What became of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostTool {
    /// Its name in the server.
    pub name: String,
    /// The name that the model sees; absent if the model does not see the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Other tools of the server whose names the host makes equal to its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<String>,
    /// What of the definition the model does not see as the server lists it, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// The call of it; absent if the model has not called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HostCall>,
}

/// A call of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostCall {
    /// The arguments of the model.
    pub arguments: Json,
    /// Whether the call came to the server.
    pub arrived: bool,
    /// What came otherwise than it was sent, on the way there or back, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

impl HostRun {
    /// A host of which nothing is known yet.
    pub fn new(host: &str, title: &str) -> HostRun {
        HostRun {
            host: host.to_owned(),
            title: title.to_owned(),
            version: None,
            fit: None,
            duration: Duration::ZERO,
            asked_after: Duration::ZERO,
            connection: None,
            tools: Vec::new(),
            other_tools: Vec::new(),
            printed: Vec::new(),
            tried_to_reach: Vec::new(),
            error: None,
            was_asked: false,
        }
    }

    /// Decides how the server fits: blocked if the host does not connect, shows no tool or lets no call through;
    /// degraded if anything is lost or changed.
    pub fn decide(&mut self) {
        let is_changed = |tool: &HostTool| {
            let call = tool.call.as_ref();
            tool.shown.is_none()
                || !tool.alike.is_empty()
                || !tool.changes.is_empty()
                || call.is_some_and(|it| !it.arrived || !it.changes.is_empty())
        };
        let is_shown = self.tools.iter().any(|tool| tool.shown.is_some() || !tool.alike.is_empty());
        let mut calls = self.tools.iter().filter_map(|tool| tool.call.as_ref()).peekable();
        let is_refused = calls.peek().is_some() && calls.all(|call| !call.arrived);
        self.fit = match () {
            () if !self.was_asked => None,
            () if self.connection.is_none() && self.error.is_some() => None,
            () if self.connection.is_none() || is_refused || !(is_shown || self.tools.is_empty()) => Some(Fit::Blocked),
            () if self.tools.iter().any(is_changed) => Some(Fit::Degraded),
            () => Some(Fit::Works),
        };
    }
}

impl HostResult {
    /// Decides the verdict: failed if the server is blocked in a host, not run if a host could not be, and incomplete if one did not
    /// come to its end.
    pub fn decide(&mut self) {
        let has = |fit| self.hosts.iter().any(|host| host.fit == fit);
        self.verdict = match () {
            () if has(Some(Fit::Blocked)) => Verdict::Failed,
            () if has(None) => Verdict::CannotRun,
            () if self.hosts.is_empty() => Verdict::NothingTested,
            () if self.hosts.iter().any(|host| host.error.is_some()) => Verdict::Incomplete,
            () => Verdict::Passed,
        };
    }
}
