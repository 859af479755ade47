//! What several areas of a client need.

use std::borrow::Cow;

use rehearse_protocol::{Era, Version, names::VERSION_HEADER};
use serde_json::Value;

use crate::evidence::{MODERN_KEYS, VERSION_POINTER};
use crate::{Call, Connection, EventRef, Evidence, HttpExchange, Judgement, Kind, Message};

pub(super) use super::super::common::sent_in;

pub(super) const META: &str = "/params/_meta/io.modelcontextprotocol~1";
pub(super) const CAPABILITIES: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";
/// How often a request may be sent that is refused each time.
const MOST_ATTEMPTS: usize = 3;

/// The requests of the modern era. A connection over HTTP may have those of an older version as well.
pub(super) fn modern<'c>(connection: &'c Connection<'_>) -> impl Iterator<Item = Call<'c>> {
    let is_accepted = |call: &Call<'_>| call.has_result() && call.request.at(VERSION_POINTER).is_string();
    let is_modern = connection.calls().any(|call| is_accepted(&call));
    connection.calls().filter(move |call| call.request.kind == Kind::Request && is_of_modern_era(call, is_modern))
}

/// The requests of the modern era on all connections.
pub(super) fn all_modern<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    evidence.connections.iter().flat_map(modern)
}

fn is_of_modern_era(call: &Call<'_>, is_usual: bool) -> bool {
    let meta = call.request.at("/params/_meta");
    let named = call.http.and_then(|http| http.request_header(VERSION_HEADER));
    let is_marked = MODERN_KEYS.iter().any(|key| meta.get(key).is_some());
    let is_older = call.http.is_some_and(is_of_older_version);
    is_marked || (!is_older && (is_usual || named.is_some() || call.request.exchange.is_none()))
}

/// Whether two requests ask for the same.
pub(super) fn is_same(one: &Message<'_>, other: &Message<'_>) -> bool {
    one.method() == other.method() && arguments(one) == arguments(other)
}

fn arguments(message: &Message<'_>) -> serde_json::Map<String, Value> {
    let mut params = message.params().as_object().cloned().unwrap_or_default();
    params.remove("_meta");
    params
}

/// Checks that a request which gets this error each time is not sent for ever.
pub(super) fn bounded(e: &Evidence<'_>, j: &mut Judgement, code: i64) {
    for connection in &e.connections {
        let refused: Vec<_> = connection.calls().filter(|call| call.error_code() == Some(code)).collect();
        let attempts = refused.iter().map(|one| {
            let same = refused.iter().filter(|it| is_same(one.request, it.request));
            same.map(|it| it.request.place).collect::<Vec<EventRef>>()
        });
        let Some(most) = attempts.max_by_key(Vec::len) else { continue };
        let (count, method) = (most.len(), refused.first().map(Call::method));
        j.check_at(count <= MOST_ATTEMPTS, method, most, || format!("the same request {count} times"));
    }
}

/// The bytes of a header of a request as text; of several lines, as a server reads them (RFC 9110, section 5.3).
pub(super) fn header<'h>(http: &'h HttpExchange<'_>, name: &str) -> Option<Cow<'h, str>> {
    let mut lines = http.request_headers?.get_all(name).iter().map(|it| String::from_utf8_lossy(it.as_bytes()));
    let first = lines.next()?;
    Some(lines.fold(first, |all, line| format!("{all}, {line}").into()))
}

/// The scheme, in lower case, and the token in the header of a request: `bearer`, or `dpop` for a token that is bound to a
/// key (RFC 9449, section 7.1).
pub(super) fn credentials(http: &HttpExchange<'_>) -> Option<(String, String)> {
    let text = header(http, "authorization")?;
    let (scheme, token) = text.split_once(' ')?;
    let scheme = scheme.to_ascii_lowercase();
    matches!(&*scheme, "bearer" | "dpop").then(|| (scheme, token.to_owned()))
}

/// Checks a header of each request; `shown` is its name in a report.
pub(super) fn headers<'e>(
    requests: impl Iterator<Item = (&'e Connection<'e>, &'e HttpExchange<'e>)>,
    j: &mut Judgement,
    (name, shown): (&str, &str),
    holds: impl Fn(Option<&str>) -> bool,
) {
    for (_, http) in requests {
        let value = header(http, name);
        j.check_at(holds(value.as_deref()), None, http.places(), || header_text(shown, value.as_deref()));
    }
}

/// What a header is, in words.
pub(super) fn header_text(name: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("`{name}: {value}`"),
        None => format!("no `{name}`"),
    }
}

/// The GET at the endpoint by which a client looks for an older transport after this call, before anything succeeds there.
pub(super) fn get_after<'c>(connection: &'c Connection<'_>, call: &Call<'_>) -> Option<&'c HttpExchange<'c>> {
    let target = call.http.map(|http| http.target);
    let is_later = |http: &&HttpExchange<'_>| Some(http.target) == target && http.request > call.request.place;
    let has_failed = |http: &&HttpExchange<'_>| http.method == "GET" || http.status.is_none_or(|status| status >= 400);
    let mut later = connection.exchanges.values().filter(is_later).take_while(has_failed);
    later.find(|http| http.method == "GET")
}

/// Whether a request names a version before 2026-07-28.
pub(super) fn is_of_older_version(http: &HttpExchange<'_>) -> bool {
    let named = http.request_header(VERSION_HEADER).and_then(|it| it.parse::<Version>().ok());
    named.is_some_and(|version| version.era() == Era::Legacy)
}
