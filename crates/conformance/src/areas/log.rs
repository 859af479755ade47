//! Log messages.

use rehearse_protocol::{Transport, names::META_LOG_LEVEL};
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    time::Duration,
};

use serde_json::{Value, json};

use super::Judge;
use super::common::{connection, error_code, is_empty, is_one_of, shown};
use super::query::{Calls, Query};
use crate::{Call, Case, CaseGroup, EventRef, Evidence, Judgement, Kind, Material, Message};

const MESSAGE: &str = "notifications/message";
/// The levels, from the least severe.
pub(super) const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const LOG_LEVEL: &str = "/params/_meta/io.modelcontextprotocol~1logLevel";
/// How many notifications a second are too many.
const MOST: usize = 200;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("log.level.set-empty", |e, j| {
        let found = |call: &Call<'_>| call.result().map_or_else(|| call.answer_text(), shown);
        e.case("lists/log-level").responded().must(j, |call| call.result().is_some_and(is_empty), found);
    }),
    ("log.level.invalid-32602", |e, j| error_code(e, j, "bad-params/log-level", &[-32602])),
    ("log.level.missing-32602", |e, j| error_code(e, j, "bad-params/no-log-level", &[-32602])),
    ("log.msg.level-enum", |e, j| each(e, j, "level", |level| is_one_of(level, &LEVELS))),
    ("log.msg.data-present", |e, j| each(e, j, "data", |_| true)),
    ("log.msg.rate", |e, j| {
        let mut last = VecDeque::new();
        for message in e.notifications(MESSAGE) {
            last.push_back(message.time);
            while last.front().is_some_and(|first| message.time.saturating_sub(*first) > Duration::from_secs(1)) {
                last.pop_front();
            }
            j.check(last.len() <= MOST, message, || format!("{} messages within a second", last.len()));
        }
        j.violations.truncate(1);
    }),
    ("log.modern.no-optin-no-log", only_with_level),
    ("log.modern.invalid-level-32602", |e, j| error_code(e, j, "bad-params/modern-log-level", &[-32602])),
    ("log.level.threshold", threshold),
    ("log.modern.threshold", threshold),
    ("log.modern.same-stream", |e, j| {
        // A log message comes in the exchange of a request that asked for it, before the response.
        for message in e.notifications(MESSAGE) {
            let Some(connection) = connection(e, message.place) else { continue };
            let Some(exchange) = message.exchange.and_then(|number| connection.exchanges.get(&number)) else {
                continue;
            };
            let in_exchange = || exchange.messages.iter().filter_map(|index| connection.messages.get(*index));
            let asked = in_exchange().any(|it| it.kind == Kind::Request && !it.at(LOG_LEVEL).is_null());
            let ended = in_exchange().any(|it| it.kind == Kind::Response && it.place < message.place);
            j.check(asked && !ended, message, || match asked {
                true => "a log message after the response".to_owned(),
                false => "a log message on the stream of another request".to_owned(),
            });
        }
    }),
    ("log.msg.no-secrets", |e, j| {
        // The credentials that were given to the server are in no log message.
        let headers = e.exchanges().filter_map(|(_, http)| http.request_header("authorization"));
        let secrets = e.facts.secrets.iter().map(String::as_str);
        let tokens = headers.filter_map(|it| it.split_whitespace().last()).chain(secrets);
        let tokens: BTreeSet<_> = tokens.filter(|it| it.len() > 7).collect();
        if tokens.is_empty() {
            j.untested("no credentials were given to the server");
            return;
        }
        for message in e.notifications(MESSAGE) {
            let text = message.params().to_string();
            let is_secret = tokens.iter().any(|token| text.contains(token));
            j.check(!is_secret, message, || "a secret");
        }
    }),
    ("log.msg.consistent-logger", |e, j| {
        let mut all = e.notifications(MESSAGE).map(|message| message.params().get("logger").is_some());
        let first = all.next();
        let is_same = |it: &Message<'_>| Some(it.params().get("logger").is_some()) == first;
        e.notifications(MESSAGE).must(j, is_same, |_| "messages with and without a logger");
        j.violations.truncate(1);
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.declares("logging") {
        return Vec::new();
    }
    let calls = |level: &str| -> Vec<Case> {
        let callable = material.callable.iter();
        let calls = callable.map(|(name, arguments)| {
            let params = Material::call_params(name, arguments);
            Case::request(format!("calls/log-{level}/{name}"), CaseGroup::Calls, "tools/call", params)
        });
        calls.collect()
    };
    let (verbose, quiet) = (calls("debug"), calls("error"));
    if material.is_modern() {
        let at = |case: Case, level: &str| case.meta(META_LOG_LEVEL, Some(json!(level)));
        let bad = material.served_list();
        let bad =
            bad.map(|method| Case::request("bad-params/modern-log-level", CaseGroup::Negative, method, json!({})));
        let bad = bad.into_iter().map(|case| at(case, "loud"));
        let verbose = verbose.into_iter().map(|case| at(case, "debug"));
        return bad.chain(verbose).chain(quiet.into_iter().map(|case| at(case, "error"))).collect();
    }
    let set = |name: String, group, params: Value| Case::request(name, group, "logging/setLevel", params);
    let level = |level: &&str| set(format!("lists/log-level/{level}"), CaseGroup::Calls, json!({ "level": level }));
    // All on one connection: the level may be that of the whole process.
    let levels = LEVELS.iter().rev().map(level);
    let error = set("lists/log-level/error".to_owned(), CaseGroup::Calls, json!({ "level": "error" }));
    let bad = [
        set("bad-params/log-level".to_owned(), CaseGroup::Negative, json!({ "level": "verbose" })),
        set("bad-params/no-log-level".to_owned(), CaseGroup::Negative, json!({})),
    ];
    levels.chain(verbose).chain([error]).chain(quiet).chain(bad).collect()
}

fn severity(level: &Value) -> Option<usize> {
    LEVELS.iter().position(|it| level == it)
}

/// Messages of a call for which only errors are wanted, of a tool that has logged less. What comes while an earlier call or
/// the change of the level is open may be of before.
fn threshold(e: &Evidence<'_>, j: &mut Judgement) {
    let error = severity(&json!("error"));
    let minor = |call: &Call<'_>| -> Vec<Message<'_>> {
        let Some(connection) = connection(e, call.request.place) else { return Vec::new() };
        let messages = connection.on_the_way(call).filter(|it| it.method() == Some(MESSAGE));
        messages.filter(|it| severity(it.at("/params/level")) < error).cloned().collect()
    };
    let talks = |name: &Value| {
        e.case("calls/log-debug").any(|it| it.request.at("/params/name") == name && !minor(&it).is_empty())
    };
    let earlier: Vec<_> = e.case("calls/log-debug").chain(e.case("lists/log-level/error")).collect();
    for call in e.case("calls/log-error").responded() {
        let name = call.request.at("/params/name");
        let is_open = |earlier: &Call<'_>, at: EventRef| {
            let shares = earlier.request.place.connection == at.connection && e.transport != Transport::Http;
            shares && earlier.response.is_none_or(|it| it.place > at)
        };
        let mut messages = minor(&call).into_iter();
        let found = messages.find(|message| !earlier.iter().any(|it| is_open(it, message.place)));
        if found.is_some() || talks(name) {
            let level = found.as_ref().map(|it| shown(it.at("/params/level"))).unwrap_or_default();
            j.check_subject(
                found.is_none(),
                name.as_str().unwrap_or_default(),
                found.as_ref().unwrap_or(call.request),
                || format!("a message of the level {level}"),
            );
        }
    }
    j.untested("no tool that may be called sent log messages");
}

fn each(e: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    for message in e.notifications(MESSAGE) {
        let value = message.params().get(key);
        j.check(value.is_some_and(&holds), message, || match value {
            Some(value) => format!("`{key}: {}`", shown(value)),
            None => format!("no `{key}`"),
        });
    }
}

/// What happens to the log of a connection, in order.
enum Step<'e> {
    Log(&'e Message<'e>),
    Request(Call<'e>),
    Response(Call<'e>),
}

/// What asks for log messages on one stream.
#[derive(Default)]
struct LogStream {
    /// How many requests that ask for them have no response yet.
    open: usize,
    /// Where the last response to one that asks for them came.
    ended: Option<EventRef>,
    /// Where the last one was sent that does not, and that has its response.
    quiet: Option<EventRef>,
}

/// Over HTTP the stream tells the request. On a pipe any open request may have asked for the message, or the last that
/// has: its message may come late, but not after a whole request that did not ask for any.
fn only_with_level(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in e.connections.iter().filter(|connection| !connection.is_legacy) {
        let mut steps: Vec<(EventRef, Step<'_>)> = Vec::new();
        let is_log =
            |it: &&Message<'_>| it.is_from_server() && it.kind == Kind::Notification && it.method() == Some(MESSAGE);
        // What comes in one place is in no order: a log message is judged first.
        steps.extend(connection.messages.iter().filter(is_log).map(|it| (it.place, Step::Log(it))));
        for call in connection.calls().filter(|call| call.request.kind == Kind::Request) {
            steps.push((call.request.place, Step::Request(call)));
            steps.extend(call.response.map(|it| (it.place, Step::Response(call))));
        }
        steps.sort_by_key(|(place, _)| *place);
        let mut streams: HashMap<Option<u32>, LogStream> = HashMap::new();
        for (place, step) in steps {
            let (Step::Log(request) | Step::Request(Call { request, .. }) | Step::Response(Call { request, .. })) =
                step;
            let stream = streams.entry(request.exchange).or_default();
            let asks = !request.at(LOG_LEVEL).is_null();
            match step {
                Step::Log(message) => {
                    let is_asked = stream.open > 0 || stream.ended.is_some_and(|ended| stream.quiet <= Some(ended));
                    j.check(is_asked, message, || "a log message that no request asked for");
                }
                Step::Request(_) => stream.open += usize::from(asks),
                Step::Response(_) if asks => {
                    stream.open = stream.open.saturating_sub(1);
                    stream.ended = Some(place);
                }
                Step::Response(_) => stream.quiet = stream.quiet.max(Some(request.place)),
            }
        }
    }
    if j.exercised == 0 {
        for (call, _) in e.results_of("tools/call") {
            j.check_call(true, &call);
        }
    }
}

#[cfg(test)]
mod tests {
    use rehearse_protocol::{Direction, Event, EventKind, Frame, Trace, Version};

    use super::*;
    use crate::{Facts, checks};

    /// A call with all messages that ends at the place `ended` of what follows: the change of the level, the call with errors
    /// only, and a message.
    fn violations(ended: usize) -> usize {
        let call = |id: u32| json!({ "id": id, "method": "tools/call", "params": { "name": "a" } });
        let answer = |id: u32| json!({ "id": id, "result": {} });
        let info = json!({ "method": MESSAGE, "params": { "level": "info", "data": "x" } });
        let set = json!({ "id": 2, "method": "logging/setLevel", "params": { "level": "error" } });
        let mut all = vec![
            (Some("calls/log-debug/a"), call(1)),
            (None, info.clone()),
            (Some("lists/log-level/error"), set),
            (None, answer(2)),
            (Some("calls/log-error/a"), call(3)),
            (None, info),
            (None, answer(3)),
        ];
        all.insert(ended, (None, answer(1)));
        let mut trace = Trace::default();
        for (case, message) in all {
            let mut push = |kind| trace.push_event(Event { at: Duration::ZERO, exchange: None, kind });
            case.into_iter().for_each(|case| push(EventKind::Case(case.into())));
            let is_sent = message["id"].is_number() && message.get("method").is_some();
            let direction = if is_sent { Direction::ClientToServer } else { Direction::ServerToClient };
            let mut text = json!({ "jsonrpc": "2.0" });
            text.as_object_mut().expect("an object").extend(message.as_object().expect("an object").clone());
            push(EventKind::Frame(Frame::new(direction, Duration::ZERO, text.to_string().into())));
        }
        let facts = Facts { capabilities: json!({ "tools": {}, "logging": {} }), ..Facts::default() };
        let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, facts);
        let check = checks().iter().find(|it| it.id == "log.level.threshold").expect("the check");
        check.judge(&evidence).judgement.violations.len()
    }

    #[test]
    fn a_message_while_an_earlier_call_is_open_may_be_of_that() {
        assert_eq!((violations(2), violations(5), violations(6)), (1, 1, 0));
    }
}
