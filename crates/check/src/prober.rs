//! What every probe has at hand.

use rehearse_client::ServerParams;
use rehearse_conformance::{Case, CaseGroup, Material};
use rehearse_protocol::{Transport, Version};
use serde_json::{Value, json};

use crate::{CheckOptions, connection::ProbeConnection, options::Budget, survey::SlowTool};

/// How much is tried in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything.
    Whole,
    /// Everything but what belongs to the process, which another version shows.
    Protocol,
    /// Normal work, and what must be refused; another version of the same era shows the rest.
    Brief,
}

/// A server in one version, with what is known of it. Probes open their connections with it.
pub(crate) struct Prober<'a> {
    pub(crate) params: &'a ServerParams,
    pub(crate) options: &'a CheckOptions,
    pub(crate) budget: Budget,
    pub(crate) version: Version,
    pub(crate) extent: Extent,
    /// Whether the server speaks the modern era as well.
    pub(crate) has_modern: bool,
    pub(crate) material: Material,
    /// The tools that may be called, with their arguments; the few that are called often are in the material.
    pub(crate) tools: Vec<(String, Value)>,
    pub(crate) slow: Option<SlowTool>,
    /// Whether a resource differed after tools were called that say that they change nothing.
    pub(crate) has_effects: bool,
    /// What the areas want to be sent.
    pub(crate) cases: Vec<Case>,
}

impl Prober<'_> {
    pub(crate) fn transport(&self) -> Transport {
        self.params.target.transport()
    }

    /// Whether each connection costs a process.
    pub(crate) fn starts_processes(&self) -> bool {
        self.transport() == Transport::Stdio
    }

    /// Whether messages are lines of a pipe.
    pub(crate) fn is_pipe(&self) -> bool {
        matches!(self.transport(), Transport::Stdio | Transport::Memory)
    }

    /// The cases of a group.
    pub(crate) fn cases_on(&self, group: CaseGroup) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.group == group)
    }

    /// Connects; sends nothing. `None` if there is no connection any more.
    pub(crate) async fn open(&self) -> Option<ProbeConnection> {
        ProbeConnection::open(self.params, self.version, self.options, &self.budget).await.ok()
    }

    /// Connects and opens a session.
    pub(crate) async fn open_session(&self) -> Option<ProbeConnection> {
        self.open_session_as(json!({})).await
    }

    /// Connects and opens a session with a client of these capabilities.
    pub(crate) async fn open_session_as(&self, capabilities: Value) -> Option<ProbeConnection> {
        let mut connection = self.open().await?.with_capabilities(capabilities);
        connection.handshake().await;
        Some(connection)
    }
}
