//! What every probe has at hand.

use rehearse_client::ServerParams;
use rehearse_conformance::{Case, CaseGroup, Material};
use rehearse_protocol::{Transport, Version};
use serde_json::{Value, json};

use crate::{CheckOptions, connection::ProbeConnection, options::Budget, survey::SlowTool};

/// A server in one version, with what is known of it. Probes open their connections with it.
pub(crate) struct Prober<'a> {
    pub(crate) params: &'a ServerParams,
    pub(crate) options: &'a CheckOptions,
    pub(crate) budget: Budget,
    pub(crate) version: Version,
    pub(crate) material: Material,
    /// The tools that may be called, with their arguments; the few that are called often are in the material.
    pub(crate) tools: Vec<(String, Value)>,
    pub(crate) slow: Option<SlowTool>,
    /// What the areas want to be sent.
    pub(crate) cases: Vec<Case>,
}

impl Prober<'_> {
    pub(crate) fn transport(&self) -> Transport {
        self.params.target.transport()
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
