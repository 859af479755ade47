//! Unusual writes of valid requests over a pipe, and the end of the input during a request.

use std::time::Duration;

use rehearse_conformance::{Case, CaseGroup};
use rehearse_protocol::{Trace, Transport};
use serde_json::json;

use super::case_groups::send_cases;
use crate::prober::Prober;

/// The time between two halves of a request.
const PAUSE: Duration = Duration::from_millis(50);
/// How many requests are sent with one write.
const JOINED: usize = 5;

/// Sends requests in halves, several at once, and with other ends of lines.
pub(super) async fn input(prober: &Prober<'_>) -> Vec<Trace> {
    if !matches!(prober.transport(), Transport::Stdio | Transport::Memory) {
        return Vec::new();
    }
    let Some(mut connection) = prober.open().await else { return Vec::new() };
    let method = prober.material.cheap_method();
    if prober.material.is_modern() {
        // 2026-07-28, basic#statelessness: no request needs another one before it.
        let first = Case::request(format!("lists/fresh/{method}"), CaseGroup::Fresh, method, json!({}));
        connection.send(&first).await;
    }
    connection.handshake().await;
    let request = |name: String| Case::request(name, CaseGroup::Input, method, json!({}));
    send_cases(&mut connection, prober, CaseGroup::Input).await;
    // What a process that has ended does not answer says nothing.
    if !connection.is_over() {
        connection.send_joined(&[request("stdin/split".to_owned())], Some(PAUSE)).await;
    }
    if !connection.is_over() {
        let joined: Vec<_> = (0..JOINED).map(|number| request(format!("stdin/joined/{number}"))).collect();
        connection.send_joined(&joined, None).await;
    }
    connection.start("shutdown/during-call", method).await;
    vec![connection.close().await]
}
