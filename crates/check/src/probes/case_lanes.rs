//! The lanes whose cases are all that is sent: requests that a server must refuse, input that it may die of, and cases
//! with a connection each.

use futures_util::future::join_all;
use rehearse_conformance::{CaseBody, Lane as CaseLane};
use rehearse_protocol::{Trace, Transport};

use crate::{lane::Lane, lists, prober::Prober};

/// Reads the lists once more, and sends requests that the server must refuse.
pub(super) async fn negative(prober: &Prober<'_>, lane: &mut Lane) {
    let mut again = prober.material.clone();
    lists::read(lane, &mut again).await;
    send_cases(lane, prober, CaseLane::Negative).await;
}

/// Sends input that the server may die of.
pub(super) async fn malformed(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.cases_on(CaseLane::Malformed).next().is_none() {
        return Vec::new();
    }
    let Some(mut lane) = prober.open_session().await else { return Vec::new() };
    if !lane.wire().is_http() {
        // What answers the handshake comes before the first case.
        lane.control("malformed").await;
    }
    send_cases(&mut lane, prober, CaseLane::Malformed).await;
    vec![lane.close().await]
}

/// Sends each case on a connection of its own, without a handshake.
pub(super) async fn fresh(prober: &Prober<'_>) -> Vec<Trace> {
    let at_once = if prober.transport() == Transport::Stdio { 3 } else { 8 };
    let cases: Vec<_> = prober.cases_on(CaseLane::Fresh).collect();
    let mut traces = Vec::new();
    for group in cases.chunks(at_once) {
        let sent = group.iter().map(|case| async {
            let mut lane = prober.open().await?;
            lane.send(case).await;
            Some(lane.close().await)
        });
        traces.extend(join_all(sent).await.into_iter().flatten());
    }
    traces
}

/// Sends the cases of a lane, one after the other.
pub(super) async fn send_cases(lane: &mut Lane, prober: &Prober<'_>, on: CaseLane) {
    let mut is_silence_awaited = false;
    for case in prober.cases_on(on) {
        if lane.is_over() {
            lane.note_unsent(case);
            continue;
        }
        lane.send(case).await;
        let is_notification = matches!(case.body, CaseBody::Notification { .. });
        let may_kill = on == CaseLane::Malformed && matches!(case.body, CaseBody::Bytes(_));
        if (is_notification || may_kill) && !lane.wire().is_http() {
            lane.control(&case.name).await;
        }
        is_silence_awaited |= is_notification;
    }
    if lane.is_over() {
        return;
    }
    if is_silence_awaited {
        lane.be_silent().await;
    }
    if !lane.wire().is_http() {
        lane.wait_for_late().await;
    }
}
