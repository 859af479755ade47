//! Unusual writes of valid requests over a pipe, and the end of the input during a request.

use std::time::Duration;

use rehearse_conformance::{Case, CaseGroup};
use serde_json::json;

use crate::{connection::ProbeConnection, prober::Prober};

/// The time between two halves of a request.
const PAUSE: Duration = Duration::from_millis(50);
/// How many requests are sent with one write.
const JOINED: usize = 5;

/// Opens a session; in the modern era with a request before the handshake.
pub(super) async fn open(prober: &Prober<'_>) -> Option<ProbeConnection> {
    let mut connection = prober.open().await?;
    if prober.material.is_modern() {
        // 2026-07-28, basic#statelessness: no request needs another one before it.
        let method = prober.material.cheap_method();
        let first = Case::request(format!("lists/fresh/{method}"), CaseGroup::Fresh, method, json!({}));
        connection.send(&first).await;
    }
    connection.handshake().await;
    Some(connection)
}

/// Sends requests in halves, several at once, and with other ends of lines.
pub(super) async fn write(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let method = prober.material.cheap_method();
    let request = |name: String| Case::request(name, CaseGroup::Input, method, json!({}));
    for case in prober.cases_on(CaseGroup::Input) {
        if connection.is_over() {
            return connection.note_unsent(case);
        }
        connection.send(case).await;
    }
    // What a process that has ended does not answer says nothing.
    if !connection.is_over() {
        connection.send_joined(&[request("stdin/split".to_owned())], Some(PAUSE)).await;
    }
    if !connection.is_over() {
        let joined: Vec<_> = (0..JOINED).map(|number| request(format!("stdin/joined/{number}"))).collect();
        connection.send_joined(&joined, None).await;
    }
}

/// Sends a request right before the end of the input.
pub(super) async fn end_during_request(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    connection.start("shutdown/during-call", prober.material.cheap_method()).await;
}
