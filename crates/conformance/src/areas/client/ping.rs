//! Pings.

use std::time::Duration;

use super::super::Judge;
use super::super::common::shown;
use super::asked::is_passed_over;
use super::reading::Readings;
use crate::areas::query::Query;
use crate::{Ask, Connection, Evidence, Judgement, Kind, Message};

/// What takes longer is not prompt, also on a busy machine.
const PROMPT: Duration = Duration::from_secs(5);
/// A ping that waits so long for an answer which comes only after the call was not answered during it.
const WHILE: Duration = Duration::from_millis(1500);
/// So many pings in [`SPAN`] are too many.
const MOST: usize = 10;
const SPAN: Duration = Duration::from_secs(5);

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-ping.answer.empty-prompt", |e, j| answered(e, j, |connection, ping| !is_early(connection, ping))),
    ("client-ping.answer.before-initialized", |e, j| answered(e, j, is_early)),
    ("client-ping.answer.during-request", |e, j| {
        for (connection, ask) in pings(e) {
            let during = connection.calls().filter(|call| call.method() == "tools/call").find_map(|call| {
                let response = call.response.filter(|it| it.place > ask.request.place)?;
                (call.request.place < ask.request.place).then_some(response)
            });
            let Some(end) = during else { continue };
            let is_answered = ask.responses.first().is_some_and(|it| it.place < end.place);
            let time = end.time.saturating_sub(ask.request.time);
            // A client that answers directly after the call has waited for it.
            let is_long = time >= PROMPT || (time >= WHILE && ask.responses.iter().any(|it| it.place > end.place));
            if is_answered || is_long {
                j.check_at(is_answered, None, ask.places(), || "no answer before the end of the call");
            }
        }
    }),
    ("client-ping.send.rate", |e, j| {
        for connection in &e.connections {
            let sent = connection.sent().filter(|it| it.kind == Kind::Request);
            let sent: Vec<_> = sent.filter(|it| it.method() == Some("ping")).collect();
            for (number, ping) in sent.iter().enumerate() {
                let before = number.checked_sub(MOST).and_then(|at| sent.get(at));
                let is_often = before.is_some_and(|before| ping.time.saturating_sub(before.time) < SPAN);
                j.check(!is_often, ping, || format!("more than {MOST} pings in {} s", SPAN.as_secs()));
            }
        }
        j.violations.truncate(1);
    }),
    ("client-ping.send.not-modern", |e, j| {
        e.sent().filter(|it| it.kind == Kind::Request).must(j, |message| message.method() != Some("ping"), |_| "`ping`")
    }),
];

fn pings<'e, 't>(evidence: &'e Evidence<'t>) -> impl Iterator<Item = (&'e Connection<'t>, Ask<'e>)> {
    let all = evidence.connections.iter().flat_map(|it| it.asks().map(move |ask| (it, ask)));
    all.filter(|(_, ask)| ask.method() == "ping")
}

/// Whether the server has not answered `initialize` yet.
fn is_early(connection: &Connection<'_>, ping: &Message<'_>) -> bool {
    let mut handshakes = connection.calls().filter(|call| call.method() == "initialize");
    handshakes.any(|call| call.response.is_some_and(|response| response.place > ping.place))
}

fn answered(e: &Evidence<'_>, j: &mut Judgement, is_wanted: impl Fn(&Connection<'_>, &Message<'_>) -> bool) {
    for connection in &e.connections {
        let readings = Readings::new(connection);
        // Those of a batch have a check of their own.
        let alone = connection.asks().filter(|ask| ask.method() == "ping" && !ask.request.is_in_batch);
        let pings = alone.filter(|ask| is_wanted(connection, ask.request));
        for ask in pings {
            let read = readings.after(ask.request.place);
            let Some(response) = ask.responses.first() else {
                // A client that goes on for so long lives.
                let last = connection.sent().last().map(|it| it.time);
                let lives = read.zip(last).is_some_and(|(read, last)| last.saturating_sub(read.time) > PROMPT);
                if lives || is_passed_over(e, &ask) {
                    j.check(false, ask.request, || "no answer");
                } else {
                    j.untested("the client ended before it answered");
                }
                continue;
            };
            let is_empty =
                response.result().and_then(|it| it.as_object()).is_some_and(|it| it.keys().all(|key| key == "_meta"));
            j.check_at(is_empty, None, ask.places(), || match response.error_code() {
                Some(code) => format!("the error {code}"),
                None => format!("`result: {}`", shown(response.at("/result"))),
            });
            let read = read.filter(|read| read.place < response.place);
            let took = read.map(|read| response.time.saturating_sub(read.time)).unwrap_or_default();
            if is_empty && took > PROMPT {
                j.check_at(false, None, ask.places(), || format!("an answer {took:.1?} after it was read"));
                j.at_level(crate::Level::Derived);
            }
        }
    }
}
