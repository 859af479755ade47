//! When the absence of an answer says something about a server.

use std::time::Duration;

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

/// Takes back the violations that are only the absence of an answer for which too little time was given, whatever a judge
/// thinks of it.
pub(crate) fn excuse(evidence: &Evidence<'_>, judgement: &mut Judgement) {
    let before = judgement.violations.len();
    if evidence.facts.patience == Duration::ZERO {
        return;
    }
    judgement.violations.retain(|it| !(it.awaits_answer && it.places.first().is_some_and(|place| is_early(evidence, *place))));
    let excused = before - judgement.violations.len();
    judgement.exercised -= excused;
    if excused > 0 {
        judgement.untested(NOT_DUE);
    }
}

/// Whether this is a message of the client whose answer is neither there nor due, on a connection that lasts.
fn is_early(evidence: &Evidence<'_>, place: EventRef) -> bool {
    let Some(connection) = evidence.connections.get(place.connection) else { return false };
    let lasts = |call: &Call<'_>| call.http.map_or(!connection.ended_by_server(), |http| http.ended.is_none());
    let mut calls = connection.calls().filter(|call| call.request.place == place);
    calls.any(|call| !call.is_answered() && lasts(&call) && !is_due(evidence, connection, &call))
}

#[cfg(test)]
mod tests {
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
        assert_eq!(verdict_after(20).0, CheckVerdict::Fail);
    }
}
