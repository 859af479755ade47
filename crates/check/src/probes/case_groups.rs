//! The groups whose cases are all that is sent: requests that a server must refuse, input that it may die of, and cases
//! with a connection each.

use futures_util::future::join_all;
use rehearse_conformance::{Case, CaseBody, CaseGroup};
use rehearse_protocol::{Trace, Version};

use super::input;
use crate::{
    connection::ProbeConnection,
    lists,
    prober::{Extent, Prober},
};

/// How many connections are opened at once.
const AT_ONCE: usize = 8;
/// How often malformed input goes on with a new connection, because the server has ended the one before or has fallen silent.
const MOST_ANEW: usize = 4;

/// Reads the lists once more, and sends requests that the server must refuse.
pub(super) async fn negative(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let mut again = prober.material.clone();
    lists::read_small(connection, &mut again).await;
    send_cases(connection, prober, CaseGroup::Negative).await;
}

/// Sends unusual writes of valid requests, and input that the server may die of. A process for it is started once, not in
/// every version.
pub(super) async fn malformed(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.starts_processes() && prober.extent != Extent::Whole {
        return Vec::new();
    }
    let opened = if prober.is_pipe() { input::open(prober).await } else { prober.open_session().await };
    let Some(mut connection) = opened else { return Vec::new() };
    let mut traces = Vec::new();
    if !connection.wire().is_http() {
        // What answers the handshake comes before the first case.
        connection.control("malformed").await;
    }
    if prober.is_pipe() {
        // Whether another process has the same lists.
        let mut again = prober.material.clone();
        lists::read_small(&mut connection, &mut again).await;
        input::write(prober, &mut connection).await;
    }
    let cases: Vec<_> = prober.cases_on(CaseGroup::Malformed).collect();
    let (mut rest, mut anew) = (&cases[..], 0);
    loop {
        rest = &rest[send_until_over(&mut connection, rest).await..];
        let is_last = rest.is_empty() && !(prober.is_pipe() && connection.is_over());
        // Silence costs time on each connection.
        let most = if connection.wire().is_closed() { MOST_ANEW } else { 1 };
        if is_last || anew >= most {
            break;
        }
        anew += 1;
        rest.iter().for_each(|case| connection.note_unsent(case));
        traces.push(connection.close().await);
        let Some(again) = prober.open_session().await else { return traces };
        connection = again;
    }
    rest.iter().for_each(|case| connection.note_unsent(case));
    if prober.is_pipe() {
        input::end_during_request(prober, &mut connection).await;
    }
    traces.push(connection.close().await);
    traces
}

/// Sends each case on a connection of its own, without a handshake.
pub(super) async fn fresh(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.starts_processes() {
        return Box::pin(fresh_in_turn(prober)).await;
    }
    let cases: Vec<_> = prober.cases_on(CaseGroup::Fresh).collect();
    let mut traces = Vec::new();
    for group in cases.chunks(AT_ONCE) {
        let sent = group.iter().map(|case| async {
            let mut connection = prober.open().await?;
            connection.send(case).await;
            Some(connection.close().await)
        });
        traces.extend(join_all(sent).await.into_iter().flatten());
    }
    traces
}

/// As [`fresh`], but cases share a process as long as the server refuses them: then it is as fresh as before.
async fn fresh_in_turn(prober: &Prober<'_>) -> Vec<Trace> {
    let (mut traces, mut shared) = (Vec::new(), None::<ProbeConnection>);
    for case in prober.cases_on(CaseGroup::Fresh) {
        let mut connection = match shared.take() {
            Some(connection) => connection,
            None => match prober.open().await {
                Some(connection) => connection,
                None => return traces,
            },
        };
        let answer = connection.send(case).await;
        let is_refused = answer.message.is_some_and(|message| message.get("error").is_some());
        match is_refused && !connection.is_over() {
            true => shared = Some(connection),
            false => traces.push(connection.close().await),
        }
    }
    if let Some(connection) = shared {
        traces.push(connection.close().await);
    }
    traces
}

/// Sends the cases of a group, one after the other.
pub(super) async fn send_cases(connection: &mut ProbeConnection, prober: &Prober<'_>, on: CaseGroup) {
    send_each(connection, prober.cases_on(on)).await;
}

/// Sends the batches, which are what one version has alone.
pub(super) async fn batches(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let batches = prober.cases_on(CaseGroup::Malformed).filter(|case| case.name.starts_with("malformed/batch"));
    if prober.version == Version::V2025_03_26 {
        send_each(connection, batches).await;
    }
}

async fn send_each(connection: &mut ProbeConnection, cases: impl Iterator<Item = &Case>) {
    let cases: Vec<_> = cases.collect();
    let sent = send_until_over(connection, &cases).await;
    cases[sent..].iter().for_each(|case| connection.note_unsent(case));
}

/// Sends cases one after the other, until the connection is of no more use. Returns how many were sent.
async fn send_until_over(connection: &mut ProbeConnection, cases: &[&Case]) -> usize {
    let mut is_silence_awaited = false;
    for (sent, case) in cases.iter().enumerate() {
        if connection.is_over() {
            return sent;
        }
        let is_notification = matches!(case.body, CaseBody::Notification { .. });
        match (is_notification || !case.is_answered) && !connection.wire().is_http() {
            true => connection.send_silent(case).await,
            false => drop(connection.send(case).await),
        }
        is_silence_awaited |= is_notification;
    }
    if is_silence_awaited && !connection.is_over() {
        connection.be_silent().await;
    }
    cases.len()
}
