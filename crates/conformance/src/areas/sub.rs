//! Subscriptions of 2026-07-28: the streams of `subscriptions/listen`.

mod stream;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use serde_json::Value;

use stream::{ACKNOWLEDGED, Stream, UPDATED, all_streams, is_scoped, places, streams, tag, type_of};
pub(super) use stream::{LISTEN, SUBSCRIPTION_ID, TYPES, is_wanted};

use super::Judge;
use super::common::{connection, readings, shown};
use super::query::{Query, elements};
use crate::{Connection, EventRef, Evidence, Judgement, Kind, Message, formats::is_at_or_below};

/// A server that answers a request this long after one without an acknowledgement waits for a change.
const PROMPT: Duration = Duration::from_millis(100);
pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("sub.listen.supported", |e, j| {
        let mut seen = HashSet::new();
        for stream in streams(e).iter().filter(|it| it.wants_declared(e)) {
            let is_first = seen.insert(stream.call.request.place.connection);
            if is_first && stream.call.is_answered() && !stream.call.is_refused_elsewhere() {
                j.check_call(!stream.is_refused(), &stream.call);
            }
        }
    }),
    ("sub.ack.first", first),
    ("sub.ack.prompt", |e, j| {
        // The client may have ended this one before the acknowledgement.
        for stream in streams(e).iter().filter(|it| !it.is_refused() && !it.is_case("listen/cancelled")) {
            if stream.acknowledgement().is_some() {
                j.check_call(true, &stream.call);
                continue;
            }
            let Some(connection) = connection(e, stream.call.request.place) else { continue };
            let since = stream.call.request.time;
            let mut later = connection.calls().filter(|it| it.request.time.saturating_sub(since) >= PROMPT);
            let is_due = later.any(|call| call.response.is_some());
            if is_due && stream.call.response.is_none() && stream.wants_declared(e) {
                j.check_answer(false, &stream.call, || "no acknowledgement");
            }
        }
    }),
    ("sub.ack.id-is-request-id", |e, j| {
        let streams = all_streams(e);
        let places = places(&streams);
        for stream in streams.iter().filter(|it| it.call.request.exchange.is_some()) {
            stream.messages.iter().filter(|it| it.method() == Some(ACKNOWLEDGED)).must(
                j,
                |message| tag(message) == stream.id(),
                |message| format!("{} for {}", shown(tag(message)), stream.id()),
            );
        }
        e.notifications(ACKNOWLEDGED).filter(|it| it.exchange.is_none()).must(
            j,
            |message| places.contains(&message.place),
            |message| format!("{}, an unknown id", shown(tag(message))),
        );
    }),
    ("sub.ack.subset", |e, j| {
        each_type(e, j, |stream, key, _, granted| granted.then(|| stream.wants(key)), "a type that was not requested");
        for stream in streams(e) {
            let Some(message) = stream.acknowledgement() else { continue };
            let requested = stream.call.request.at("/params/notifications/resourceSubscriptions");
            let granted = message.at("/params/notifications/resourceSubscriptions").as_array().into_iter().flatten();
            for uri in granted {
                let is_requested = requested.as_array().is_some_and(|it| it.contains(uri));
                j.check(is_requested || requested.is_null(), message, || format!("{}, not requested", shown(uri)));
            }
        }
    }),
    ("sub.ack.omits-unsupported", |e, j| {
        if e.results_of("server/discover").next().is_none() {
            return j.untested("the server declares nothing: it has no `server/discover`");
        }
        let is_undeclared = |capability: &str| !e.facts.declares(capability);
        each_type(
            e,
            j,
            |stream, key, capability, granted| (stream.wants(key) && is_undeclared(capability)).then_some(!granted),
            "it acknowledged, but not declared",
        );
    }),
    ("sub.ack.includes-declared", |e, j| {
        each_type(
            e,
            j,
            |stream, key, capability, granted| (stream.wants(key) && e.facts.declares(capability)).then_some(granted),
            "it declared, but not acknowledged",
        )
    }),
    ("sub.ack.empty-filter", |e, j| nothing_wanted(e, j, "listen/empty")),
    ("sub.filter.missing-32602", |e, j| {
        if !streams(e).iter().any(|stream| stream.acknowledgement().is_some()) {
            return j.untested("no subscription was acknowledged");
        }
        for stream in all_streams(e).iter().filter(|it| it.is_case("listen/missing")) {
            let is_accepted = stream.acknowledgement().is_some();
            if is_accepted || (stream.call.is_answered() && !stream.call.is_refused_elsewhere()) {
                let holds = !is_accepted && stream.call.error_code() == Some(-32602);
                j.check_answer(holds, &stream.call, || match is_accepted {
                    true => "an acknowledgement".to_owned(),
                    false => stream.call.answer_text(),
                });
            }
        }
    }),
    ("sub.filter.only-requested", |e, j| {
        for stream in streams(e) {
            for message in &stream.messages {
                let Some(key) = type_of(message) else { continue };
                j.check_subject(stream.wants(key), key, message, || "a notification that was not requested");
            }
        }
    }),
    ("sub.filter.only-requested-uris", |e, j| {
        for stream in streams(e) {
            let uris = stream.call.request.at("/params/notifications/resourceSubscriptions");
            let Some(uris) = uris.as_array().filter(|uris| !uris.is_empty()) else { continue };
            for message in stream.messages.iter().filter(|it| it.method() == Some(UPDATED)) {
                let uri = message.at("/params/uri").as_str().unwrap_or_default();
                let is_requested = uris.iter().filter_map(Value::as_str).any(|it| is_at_or_below(uri, it));
                j.check(is_requested, message, || format!("{uri:?}"));
            }
        }
    }),
    ("sub.filter.false-is-off", |e, j| nothing_wanted(e, j, "listen/false")),
    ("sub.tag.every-notification", tagged),
    ("sub.tag.final-response", |e, j| {
        for stream in all_streams(e) {
            let Some(result) = stream.call.result() else { continue };
            let found = result.pointer(&format!("/_meta/{SUBSCRIPTION_ID}")).unwrap_or(&Value::Null);
            j.check_answer(found == stream.id(), &stream.call, || format!("the id {}", shown(found)));
        }
    }),
    ("sub.tag.absent-elsewhere", |e, j| {
        let places = places(&all_streams(e));
        let notifications = e.received().filter(|it| it.kind == Kind::Notification && is_scoped(it));
        let messages = notifications.filter(|it| !places.contains(&it.place));
        messages.must(j, |message| tag(message).is_null(), |message| format!("the id {}", shown(tag(message))));
    }),
    ("sub.scope.no-progress-or-log", |e, j| {
        for stream in streams(e) {
            let Some(acknowledgement) = stream.acknowledgement() else { continue };
            let scoped = stream.messages.iter().find(|it| is_scoped(it));
            let found = || scoped.map(|it| format!("`{}`", it.method().unwrap_or_default())).unwrap_or_default();
            j.check(scoped.is_none(), scoped.unwrap_or(&acknowledgement), found);
        }
    }),
    ("sub.scope.no-listchanged-on-request-stream", |e, j| {
        for (connection, exchange) in e.exchanges().filter(|(_, exchange)| exchange.is_stream()) {
            let sent = exchange.messages.iter().filter_map(|index| connection.messages.get(*index));
            if sent.clone().any(|it| !it.is_from_server() && it.method() == Some(LISTEN)) {
                continue;
            }
            let change = sent.clone().find(|it| it.is_from_server() && type_of(it).is_some());
            let found = || change.map(|it| format!("`{}`", it.method().unwrap_or_default())).unwrap_or_default();
            j.check_at(change.is_none(), None, change.map(|it| it.place).into_iter().collect(), found);
        }
    }),
    ("sub.scope.stdio-needs-subscription", |e, j| {
        for connection in &e.connections {
            let listened = connection.calls().find(|call| call.method() == LISTEN).map(|call| call.request.place);
            connection.received().filter(|it| type_of(it).is_some()).must(
                j,
                |message| listened.is_some_and(|place| place < message.place),
                |message| format!("`{}`", message.method().unwrap_or_default()),
            );
        }
    }),
    ("sub.multi.concurrent", |e, j| {
        let mut open = HashSet::new();
        for stream in streams(e).iter().filter(|it| it.wants_declared(e)) {
            let connection = stream.call.request.place.connection;
            if open.contains(&connection) && !stream.call.is_refused_elsewhere() {
                j.check_call(!stream.is_refused(), &stream.call);
            }
            if stream.acknowledgement().is_some() {
                open.insert(connection);
            }
        }
    }),
    ("sub.multi.demux", |e, j| {
        let streams = all_streams(e);
        let places = places(&streams);
        for stream in streams.iter().filter(|it| it.call.request.exchange.is_some()) {
            let tagged = stream.messages.iter().filter(|it| it.method() != Some(ACKNOWLEDGED) && !tag(it).is_null());
            for message in tagged {
                j.check(tag(message) == stream.id(), message, || format!("{} on {}", shown(tag(message)), stream.id()));
            }
        }
        carried(e, &streams)
            .iter()
            .filter(|it| it.exchange.is_none() && type_of(it).is_some())
            .filter(|message| !tag(message).is_null())
            .must(
                j,
                |message| places.contains(&message.place),
                |message| format!("{}, an unknown id", shown(tag(message))),
            );
        j.untested("nothing changed while the prober listened");
    }),
    ("sub.cancel.http-close", closed),
    ("sub.cancel.stdio-cancelled", cancelled),
    ("sub.end.graceful-response", |e, j| {
        for stream in streams(e).iter().filter(|it| it.acknowledgement().is_some()) {
            let Some(connection) = connection(e, stream.call.request.place) else { continue };
            let is_ended = match stream.call.http {
                Some(http) => http.is_whole == Some(true),
                None => connection.ended_by_server(),
            };
            let is_cancelled = || {
                let cancelled = connection.messages.iter().filter(|it| it.method() == Some("notifications/cancelled"));
                cancelled.filter(|it| it.is_from_server()).any(|it| it.at("/params/requestId") == stream.id())
            };
            let is_answered = stream.call.has_result();
            if is_answered || is_ended {
                let holds = is_answered || (stream.call.http.is_none() && is_cancelled());
                j.check_answer(holds, &stream.call, || "the end of the stream without a response");
            }
        }
        j.untested("the server ended no subscription");
    }),
    ("sub.stream.content-type", |e, j| {
        for stream in streams(e).iter().filter(|it| !it.is_refused()) {
            let Some(http) = stream.call.http.filter(|http| http.status.is_some()) else { continue };
            j.check_answer(http.is_stream(), &stream.call, || format!("{:?}", http.media_type()));
        }
    }),
    ("sub.stream.stays-open", |e, j| {
        for stream in streams(e).iter().filter(|it| it.acknowledgement().is_some() && it.wants_declared(e)) {
            let Some(http) = stream.call.http else { continue };
            j.check_answer(http.is_whole.is_none(), &stream.call, || "the end of the stream");
        }
    }),
    ("sub.change.tools", |e, j| changed(e, j, "tools/list", 0)),
    ("sub.change.prompts", |e, j| changed(e, j, "prompts/list", 1)),
    ("sub.change.resources", |e, j| changed(e, j, "resources/list", 2)),
];

fn first(e: &Evidence<'_>, j: &mut Judgement) {
    for stream in streams(e) {
        let Some(first) = stream.messages.first() else { continue };
        let found = || format!("`{}` as the first message", first.method().unwrap_or_default());
        j.check(first.method() == Some(ACKNOWLEDGED), first, found);
    }
}

/// Checks each type of each acknowledgement.
fn each_type(
    e: &Evidence<'_>,
    j: &mut Judgement,
    holds: impl Fn(&Stream<'_>, &str, &str, bool) -> Option<bool>,
    found: &str,
) {
    for stream in streams(e) {
        let Some(message) = stream.acknowledgement() else { continue };
        for (key, capability, _) in TYPES {
            let is_granted = is_wanted(message.at(&format!("/params/notifications/{key}")));
            let Some(holds) = holds(&stream, key, capability, is_granted) else { continue };
            j.check_subject(holds, key, message, || found.to_owned());
        }
    }
}

/// Checks that a filter without types is accepted, and that nothing comes of it.
fn nothing_wanted(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    let streams = streams(e);
    if !streams.iter().any(|stream| stream.acknowledgement().is_some()) {
        return j.untested("no subscription was acknowledged");
    }
    for stream in streams.iter().filter(|it| it.is_case(case)) {
        let granted = stream.acknowledgement().map(|it| it.at("/params/notifications"));
        let is_granted = granted.is_some_and(|it| TYPES.iter().any(|(key, ..)| is_wanted(&it[*key])));
        let event = stream.messages.iter().find(|message| type_of(message).is_some());
        j.check_answer(!stream.is_refused() && !is_granted && event.is_none(), &stream.call, || {
            match (granted, event) {
                (_, Some(event)) => format!("`{}`", event.method().unwrap_or_default()),
                (Some(granted), None) => format!("the acknowledgement of {}", shown(granted)),
                (None, None) => stream.call.answer_text(),
            }
        });
    }
}

/// What comes on streams: over HTTP all of it, else what only a stream can carry.
fn carried<'e>(evidence: &'e Evidence<'_>, streams: &[Stream<'e>]) -> Vec<&'e Message<'e>> {
    let listening: HashSet<_> = streams.iter().map(|stream| stream.call.request.place.connection).collect();
    let over_http = streams.iter().filter(|it| it.call.request.exchange.is_some()).flat_map(|it| it.messages.clone());
    let is_carried = |it: &&Message<'_>| type_of(it).is_some() || it.method() == Some(ACKNOWLEDGED);
    let on_pipes = evidence.received().filter(|it| it.exchange.is_none() && it.kind == Kind::Notification);
    let on_pipes = on_pipes.filter(|it| listening.contains(&it.place.connection) && is_carried(it));
    over_http.chain(on_pipes.map(|it| it as &Message<'_>)).collect()
}

fn tagged(e: &Evidence<'_>, j: &mut Judgement) {
    carried(e, &all_streams(e)).into_iter().must(
        j,
        |message| !tag(message).is_null(),
        |message| format!("`{}` without an id", message.method().unwrap_or_default()),
    );
}

fn closed(e: &Evidence<'_>, j: &mut Judgement) {
    for stream in streams(e) {
        let place = stream.call.request.place;
        let Some(connection) = connection(e, place).filter(|_| stream.is_case("listen/cancelled")) else {
            continue;
        };
        if stream.acknowledgement().is_none() {
            continue;
        }
        let mut later = connection.calls().filter(|it| it.request.place > place && it.method() != LISTEN).peekable();
        if later.peek().is_some() || connection.ended_by_server() {
            let is_answered = later.any(|call| call.is_served());
            j.check_answer(is_answered, &stream.call, || "no answer to any later request");
        }
    }
    j.untested("no subscription was acknowledged");
}

/// When the client cancelled each of its requests, by id.
fn cancellations(connection: &Connection<'_>) -> HashMap<String, EventRef> {
    let sent = connection.sent();
    let cancelled = sent.filter(|it| it.method() == Some("notifications/cancelled"));
    cancelled.map(|it| (it.at("/params/requestId").to_string(), it.place)).collect()
}

fn cancelled(e: &Evidence<'_>, j: &mut Judgement) {
    for stream in streams(e).iter().filter(|it| it.acknowledgement().is_some()) {
        let Some(connection) = connection(e, stream.call.request.place) else { continue };
        let Some(cancelled) = cancellations(connection).get(&stream.id().to_string()).copied() else { continue };
        // After the second answer to a later request, the server has read the cancellation.
        let later = connection.calls().filter(|call| call.request.place > cancelled && call.method() != LISTEN);
        let Some(read) = later.filter_map(|call| call.response).nth(1).map(|it| it.place) else { continue };
        let late = stream.messages.iter().find(|it| it.place > read);
        let found = || format!("`{}` after the cancellation", late.and_then(|it| it.method()).unwrap_or_default());
        j.check_at(late.is_none(), None, vec![cancelled, late.map_or(read, |it| it.place)], found);
    }
}

/// Checks that a change of a list between two readings reaches those that listen for it.
fn changed(e: &Evidence<'_>, j: &mut Judgement, method: &str, number: usize) {
    let (key, _, notification) = TYPES[number];
    let mut changes: HashMap<usize, EventRef> = HashMap::new();
    let mut before: HashMap<usize, (EventRef, BTreeSet<String>)> = HashMap::new();
    let (list, name) = super::common::keys(method);
    for reading in readings(e, method) {
        let Some(place) = reading.pages.first().map(|(call, _)| call.request.place) else { continue };
        let items = reading.pages.iter().flat_map(|(_, result)| elements(&result[list]));
        let names: BTreeSet<_> = items.filter_map(|item| Some(item[name].as_str()?.to_owned())).collect();
        if let Some((earlier, old)) = before.insert(place.connection, (place, names.clone()))
            && old != names
        {
            changes.entry(place.connection).or_insert(earlier);
        }
    }
    for stream in streams(e).iter().filter(|it| !it.is_case("listen/cancelled")) {
        let place = stream.call.request.place;
        let (Some(acknowledgement), Some(changed)) = (stream.acknowledgement(), changes.get(&place.connection)) else {
            continue;
        };
        let is_granted = is_wanted(acknowledgement.at(&format!("/params/notifications/{key}")));
        let is_whole = connection(e, place).is_some_and(|it| it.closed.is_some());
        if is_granted && is_whole && acknowledgement.place < *changed {
            let is_told = stream.messages.iter().any(|it| it.method() == Some(notification));
            let found = || format!("another list, and no `{notification}`");
            j.check_at(is_told, stream.call.request.case, vec![place, *changed], found);
        }
    }
    j.untested("the list did not change while the prober listened");
}
