//! A session that ends, and is used again.

use rehearse_conformance::{Case, Lane as CaseLane};
use rehearse_protocol::{Era, Trace, Transport};
use serde_json::json;

use crate::prober::Prober;

/// Deletes a session of streamable HTTP, and sends a request in it.
pub(super) async fn session(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.version.era() == Era::Modern || prober.transport() != Transport::Http {
        return Vec::new();
    }
    let Some(mut lane) = prober.open_session().await else { return Vec::new() };
    if lane.has_session() {
        lane.send(&Case::http("session/delete", CaseLane::Fresh, "DELETE")).await;
        let method = prober.material.list_methods().first().copied().unwrap_or("ping");
        lane.send(&Case::request("session/after-delete", CaseLane::Fresh, method, json!({}))).await;
    }
    lane.end_session();
    vec![lane.close().await]
}
