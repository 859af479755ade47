//! Lists that change, and notifications of it.

use std::collections::BTreeSet;

use rehearse_protocol::Transport;

use super::common::{keys, readings};
use super::query::elements;
use crate::{Call, Connection, Evidence, HttpExchange, Judgement, Message, unrest::Moment};

/// One complete reading of a list: its first page, and the names on all pages.
pub(super) struct Names<'e> {
    pub(super) call: Call<'e>,
    pub(super) names: BTreeSet<&'e str>,
    pub(super) moment: Moment,
}

/// The complete readings of a list, by connection.
pub(super) fn names_by_connection<'e>(evidence: &'e Evidence<'_>, method: &str) -> Vec<Vec<Names<'e>>> {
    let (key, name) = keys(method);
    let mut connections: Vec<Vec<Names<'e>>> = Vec::new();
    for reading in readings(evidence, method) {
        let is_complete = reading.pages.last().is_some_and(|(_, result)| !result["nextCursor"].is_string());
        let (Some((call, _)), Some((last, _))) = (reading.pages.first().filter(|_| is_complete), reading.pages.last())
        else {
            continue;
        };
        let moment = Moment::of(call, last);
        let items = reading.pages.iter().flat_map(|(_, result)| elements(&result[key]));
        let found = Names { call: *call, names: items.filter_map(|item| item[name].as_str()).collect(), moment };
        match connections.last_mut() {
            Some(last) if last.first().is_some_and(|it| it.moment.connection == moment.connection) => last.push(found),
            _ => connections.push(vec![found]),
        }
    }
    connections
}

/// A notification of a method on the connection of a reading, after it.
fn notified<'e>(evidence: &'e Evidence<'_>, reading: &Names<'_>, method: &str) -> Option<&'e Message<'e>> {
    let place = reading.call.request.place;
    let connection: &Connection<'_> = evidence.connections.get(place.connection)?;
    connection.messages.iter().find(|it| it.is_from_server() && it.place > place && it.method() == Some(method))
}

/// Whether a change after a reading could be announced: on HTTP only on a stream that was open by then.
fn can_announce(evidence: &Evidence<'_>, reading: &Names<'_>) -> bool {
    let place = reading.call.request.place;
    let Some(connection) = evidence.connections.get(place.connection) else { return false };
    let is_open = |it: &HttpExchange<'_>| {
        it.method == "GET" && it.is_stream() && it.response.is_some_and(|head| head < place) && it.is_whole.is_none()
    };
    evidence.transport != Transport::Http || connection.exchanges.values().any(is_open)
}

/// Checks that a list which has changed was announced.
pub(super) fn notifies(e: &Evidence<'_>, j: &mut Judgement, list: &str, notification: &str) {
    for connection in names_by_connection(e, list) {
        for pair in connection.windows(2) {
            let [before, after] = pair else { continue };
            let changed = before.names.symmetric_difference(&after.names).next();
            let Some(changed) = changed.filter(|_| can_announce(e, before)) else { continue };
            let is_notified = notified(e, before, notification).is_some();
            let found = || format!("a change without `{notification}`");
            j.check_at(is_notified, Some(changed), after.call.places(), found);
        }
    }
    j.untested("the list did not change, or no stream was open for the notification");
}

/// Notes a notification after which the list is what it was before.
pub(super) fn spurious(e: &Evidence<'_>, j: &mut Judgement, list: &str, notification: &str) {
    for connection in names_by_connection(e, list) {
        for pair in connection.windows(2) {
            let [before, after] = pair else { continue };
            let message = notified(e, before, notification).filter(|it| it.place < after.call.request.place);
            let Some(message) = message else { continue };
            j.check(before.names != after.names, message, || "the same list as before");
        }
    }
    j.untested("the server sent no such notification");
}
