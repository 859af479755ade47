//! The groups whose cases are all that is sent: requests that a server must refuse, input that it may die of, and cases
//! with a connection each.

use futures_util::future::join_all;
use rehearse_conformance::{CaseBody, CaseGroup};
use rehearse_protocol::{Trace, Transport};

use crate::{connection::ProbeConnection, lists, prober::Prober};

/// Reads the lists once more, and sends requests that the server must refuse.
pub(super) async fn negative(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let mut again = prober.material.clone();
    lists::read(connection, &mut again).await;
    send_cases(connection, prober, CaseGroup::Negative).await;
}

/// Sends input that the server may die of.
pub(super) async fn malformed(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.cases_on(CaseGroup::Malformed).next().is_none() {
        return Vec::new();
    }
    let Some(mut connection) = prober.open_session().await else { return Vec::new() };
    if !connection.wire().is_http() {
        // What answers the handshake comes before the first case.
        connection.control("malformed").await;
    }
    send_cases(&mut connection, prober, CaseGroup::Malformed).await;
    vec![connection.close().await]
}

/// Sends each case on a connection of its own, without a handshake.
pub(super) async fn fresh(prober: &Prober<'_>) -> Vec<Trace> {
    let at_once = if prober.transport() == Transport::Stdio { 3 } else { 8 };
    let cases: Vec<_> = prober.cases_on(CaseGroup::Fresh).collect();
    let mut traces = Vec::new();
    for group in cases.chunks(at_once) {
        let sent = group.iter().map(|case| async {
            let mut connection = prober.open().await?;
            connection.send(case).await;
            Some(connection.close().await)
        });
        traces.extend(join_all(sent).await.into_iter().flatten());
    }
    traces
}

/// Sends the cases of a group, one after the other.
pub(super) async fn send_cases(connection: &mut ProbeConnection, prober: &Prober<'_>, on: CaseGroup) {
    let mut is_silence_awaited = false;
    for case in prober.cases_on(on) {
        if connection.is_over() {
            connection.note_unsent(case);
            continue;
        }
        connection.send(case).await;
        let is_notification = matches!(case.body, CaseBody::Notification { .. });
        let may_kill = on == CaseGroup::Malformed && matches!(case.body, CaseBody::Bytes(_));
        if (is_notification || may_kill) && !connection.wire().is_http() {
            connection.control(&case.name).await;
        }
        is_silence_awaited |= is_notification;
    }
    if connection.is_over() {
        return;
    }
    if is_silence_awaited {
        connection.be_silent().await;
    }
    if !connection.wire().is_http() {
        connection.wait_for_late().await;
    }
}
