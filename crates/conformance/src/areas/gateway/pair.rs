//! The calls of clients, each with that at the upstream.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{Call, Connection, EventRef, Evidence, Message};

/// The case of what is asked after the upstream has ended.
const GONE: &str = "gateway/gone";
/// The case of a call that its client cancels, in the modern era by leaving its stream.
const CANCEL: &str = "gateway/cancel";

/// A call of a client, and what the gateway made of it at its upstream.
pub(super) struct Pair<'e> {
    pub(super) connection: &'e Connection<'e>,
    pub(super) call: Call<'e>,
    pub(super) upstream: Option<(&'e Connection<'e>, Call<'e>)>,
}

impl<'e> Pair<'e> {
    pub(super) fn name(&self) -> Option<&'e str> {
        subject(&self.call)
    }

    /// Whether the client has a response, or a status that refuses the request.
    pub(super) fn is_answered(&self) -> bool {
        self.call.response.is_some() || self.call.status().is_some_and(|status| status >= 400)
    }

    /// Whether its client has not waited three times as long as for its slowest call: the gateway may only be slow.
    pub(super) fn is_slow(&self) -> bool {
        let slowest = self.connection.calls_of(self.call.method()).filter_map(|it| it.took()).max().unwrap_or_default();
        let given_up = self.connection.cancellations(self.call.request).next();
        let waited = given_up.map_or_else(
            || self.connection.waited(self.call.request),
            |it| it.time.saturating_sub(self.call.request.time),
        );
        !self.is_answered() && waited < slowest * 3
    }

    /// The frames of both sides: what the client sent, what the upstream got and answered, what the client got.
    pub(super) fn places(&self) -> Vec<EventRef> {
        let upstream = self.upstream.as_ref().map(|(_, call)| call.places()).unwrap_or_default();
        [self.call.request.place].into_iter().chain(upstream).chain(self.call.response.map(|it| it.place)).collect()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.call.request.case == Some(CANCEL)
    }
}

pub(super) fn is_gone(call: &Call<'_>) -> bool {
    call.request.case == Some(GONE)
}

/// What an item is known by in a request for it.
pub(super) fn subject<'e>(call: &Call<'e>) -> Option<&'e str> {
    ["/params/name", "/params/uri", "/params/ref/name", "/params/ref/uri"].into_iter().find_map(|it| call.text(it))
}

/// Whether the name of an item at the gateway is that of the upstream, or that with something before or after it.
pub fn is_named(client: &str, upstream: &str) -> bool {
    let is_apart = |rest: &str, at: Option<char>| rest.is_empty() || at.is_some_and(|it| !it.is_alphanumeric());
    client == upstream
        || client.strip_suffix(upstream).is_some_and(|rest| is_apart(rest, rest.chars().next_back()))
        || client.strip_prefix(upstream).is_some_and(|rest| is_apart(rest, rest.chars().next()))
}

/// Each call of a client of a method, with that at the upstream: of the same name, with the same arguments if there is one.
pub(super) fn pairs<'e>(e: &'e Evidence<'_>, method: &'e str) -> Vec<Pair<'e>> {
    let all = e.upstream.iter().flat_map(|connection| connection.calls_of(method).map(move |call| (connection, call)));
    let mut upstream: Vec<_> = all.collect();
    let own: HashSet<_> =
        e.connections.iter().flat_map(|it| it.calls_of(method)).filter_map(|call| subject(&call)).collect();
    let mut pairs = Vec::new();
    for connection in &e.connections {
        for call in connection.calls_of(method).filter(|call| !is_gone(call)) {
            let name = subject(&call).unwrap_or_default();
            // One of another name is another one, if the gateway has this name too.
            let is_same =
                |it: &Call<'_>| subject(it).is_some_and(|it| it == name || (is_named(name, it) && !own.contains(it)));
            let sent = arguments(call.request);
            let equal = upstream.iter().position(|(_, it)| is_same(it) && arguments(it.request) == sent);
            let found = equal.or_else(|| upstream.iter().position(|(_, it)| is_same(it)));
            pairs.push(Pair { connection, call, upstream: found.map(|at| upstream.remove(at)) });
        }
    }
    pairs
}

/// The pairs of which both sides are there.
pub(super) fn joined<'e>(e: &'e Evidence<'_>, method: &'e str) -> impl Iterator<Item = (Pair<'e>, Call<'e>)> {
    pairs(e, method).into_iter().filter_map(|pair| {
        let (_, upstream) = *pair.upstream.as_ref()?;
        Some((pair, upstream))
    })
}

/// The pairs in which the upstream and the client have a result.
pub(super) fn results<'e>(
    e: &'e Evidence<'_>,
    method: &'e str,
) -> impl Iterator<Item = (Pair<'e>, &'e Value, &'e Value)> {
    joined(e, method).filter_map(|(pair, upstream)| {
        let (sent, got) = (upstream.result()?, pair.call.result()?);
        Some((pair, sent, got))
    })
}

/// What a client asks for of an item.
pub(super) fn arguments(request: &Message<'_>) -> Value {
    let params = request.params();
    match params.get("arguments").or_else(|| params.get("argument")) {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(arguments) => arguments.clone(),
    }
}
