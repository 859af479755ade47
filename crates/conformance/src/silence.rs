//! When the absence of an answer says something about a server.

use crate::{Call, Connection, EventRef, Evidence, Judgement};

/// Why silence says nothing yet.
pub(crate) const NOT_DUE: &str = "no answer came in time; `--timeout` waits longer";

/// Whether a request has its answer, or was given enough time for it: a slow server may still be busy with an earlier one,
/// unless it has answered a later one, and may wait for what it has asked the client.
pub(crate) fn is_due(evidence: &Evidence<'_>, connection: &Connection<'_>, call: &Call<'_>) -> bool {
    let patience = evidence.facts.patience;
    let is_passed_over = || connection.waited(call.request) >= patience && is_alive_after(connection, call);
    let is_late = || connection.silence_after(call.request) >= patience || is_passed_over();
    let is_asked_in_time = |ask: &crate::Ask<'_>| {
        let mut on_the_way = connection.on_the_way(call).filter(|it| it.time < call.request.time + patience);
        on_the_way.any(|it| it.place == ask.request.place)
    };
    let has_asked = || connection.asks().any(|ask| ask.responses.is_empty() && is_asked_in_time(&ask));
    call.is_answered() || (is_late() && !has_asked())
}

/// Whether a request that was sent later on the connection has an answer.
pub(crate) fn is_alive_after(connection: &Connection<'_>, call: &Call<'_>) -> bool {
    connection.calls().any(|later| later.request.place > call.request.place && later.is_served())
}

/// Takes back the violations that are only the absence of an answer that cannot be expected, whatever a judge thinks of it.
pub(crate) fn excuse(evidence: &Evidence<'_>, judgement: &mut Judgement) {
    let mut excused = None;
    judgement.violations.retain(|it| {
        let why = it.places.first().filter(|_| it.awaits_answer).and_then(|place| why_none(evidence, *place));
        judgement.exercised -= usize::from(why.is_some());
        excused = excused.or(why);
        why.is_none()
    });
    excused.into_iter().for_each(|why| judgement.untested(why));
}

/// Why a message of the client has no answer yet, or can have none.
fn why_none(evidence: &Evidence<'_>, place: EventRef) -> Option<&'static str> {
    let connection = evidence.connections.get(place.connection)?;
    let call = connection.calls().find(|call| call.request.place == place).filter(|call| !call.is_answered())?;
    let lasts = call.http.map_or(!connection.ended_by_server(), |http| http.ended.is_none());
    match () {
        () if lasts && !is_due(evidence, connection, &call) => Some(NOT_DUE),
        () if is_after_end(evidence, &call) => Some("the server had ended"),
        () => None,
    }
}

/// Whether a request over HTTP was sent to a server that had ended: its connection was lost, an earlier one as well, and
/// nothing had an answer from then on.
fn is_after_end(evidence: &Evidence<'_>, call: &Call<'_>) -> bool {
    let lost =
        evidence.exchanges().filter(|(_, it)| it.status.is_none()).filter_map(|(_, it)| Some((it.time, it.ended_at?)));
    let Some((first, _)) = lost.filter(|(_, ended)| *ended < call.request.time).max() else { return false };
    call.is_lost() && !evidence.exchanges().any(|(_, it)| it.time > first && it.status.is_some())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::{Closed, Direction, EventKind, Trace, Transport, Version};

    use super::*;
    use crate::{CheckVerdict, Facts, checks};

    #[test]
    fn silence_is_a_violation_only_after_the_time_for_an_answer() {
        let check = checks().iter().find(|it| it.id == "era.mixed.concurrent").expect("the check");
        let verdict_after = |seconds| {
            let mut trace = Trace::default();
            trace.push(Duration::ZERO, EventKind::Case("era/mixed/modern".into()));
            let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
            trace.push_frame(Duration::ZERO, Direction::ClientToServer, request.into());
            trace.push(Duration::from_secs(seconds), EventKind::Closed(Closed::by_client("the end")));
            let facts = Facts { patience: Duration::from_secs(10), ..Facts::default() };
            let outcome = check.judge(&Evidence::new(&[&trace], Version::LATEST, Transport::Http, facts));
            (outcome.verdict, outcome.judgement.untested)
        };
        assert_eq!(verdict_after(2).0, CheckVerdict::NotTested);
        assert_eq!(verdict_after(20).0, CheckVerdict::Warn);
    }
}
