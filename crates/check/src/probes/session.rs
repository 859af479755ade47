//! Sessions of streamable HTTP: with a wrong id or none, after their end, and next to each other.

use futures_util::future::join3;
use rehearse_conformance::{Case, CaseGroup};
use rehearse_protocol::{Era, Trace, Transport, names::SESSION_HEADER};
use serde_json::json;

use crate::{connection::ProbeConnection, prober::Prober};

/// Ends one session while another one is open, and uses both, and ids that the server never assigned.
pub(super) async fn session(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.version.era() == Era::Modern || prober.transport() != Transport::Http {
        return Vec::new();
    }
    let opened = Box::pin(join3(prober.open_session(), prober.open_session(), prober.open_session())).await;
    let (Some(mut ended), Some(mut other), Some(mut foreign)) = opened else { return Vec::new() };
    let list = |name: &str| Case::request(name, CaseGroup::Fresh, prober.material.cheap_method(), json!({}));
    let delete = |name: &str| Case::http(name, CaseGroup::Fresh, "DELETE");
    if let Some(unknown) = ended.other_session_id() {
        ended.send(&list("session/without-id").without_header(SESSION_HEADER)).await;
        ended.send(&list("session/unknown-id").header(SESSION_HEADER, &unknown)).await;
        ended.send(&delete("session/delete-unknown").header(SESSION_HEADER, &unknown)).await;
        ended.send(&delete("session/delete")).await;
        ended.send(&list("session/after-delete")).await;
        ended.send(&delete("session/delete-again")).await;
        ended.end_session();
        other.send(&list("session/other")).await;
        // A session of its own: a server that does not check `Origin` ends it.
        foreign.send(&delete("origin/delete").header("origin", "http://evil.example")).await;
    }
    let mut traces = Vec::new();
    for connection in [ended, other, foreign] {
        traces.push(ProbeConnection::close(connection).await);
    }
    traces
}
