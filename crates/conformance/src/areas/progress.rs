//! Progress.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use super::Judge;
use super::common::{connection, on_one_stream, shown, tool_works};
use super::query::{Calls, Query};
use crate::{Call, Case, CaseGroup, Evidence, HttpExchange, Judgement, Kind, Material, Message};

const PROGRESS: &str = "notifications/progress";
/// The token of a notification.
const OWN: &str = "/params/progressToken";
const TOKEN: &str = "/params/_meta/progressToken";
/// How many notifications a second are too many.
const MOST: usize = 100;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("progress.token.only-known", |e, j| {
        let requests = Requests::new(e);
        let has_token = |it: &&Message<'_>| it.at(OWN).is_string() || it.at(OWN).is_number();
        let found = |it: &Message<'_>| format!("the token {}", shown(it.at(OWN)));
        e.notifications(PROGRESS).filter(has_token).must(j, |it| requests.of(it).is_some(), found);
    }),
    ("progress.token.none-without", |e, j| {
        let requests = Requests::new(e);
        for call in e.calls_of("tools/call").filter(|call| call.response.is_some() && call.request.at(TOKEN).is_null())
        {
            let Some(connection) = connection(e, call.request.place) else { continue };
            let progress =
                connection.on_the_way(&call).find(|it| it.method() == Some(PROGRESS) && requests.of(it).is_none());
            j.check(progress.is_none(), progress.unwrap_or(call.request), || "progress");
        }
    }),
    ("progress.value.increases", |e, j| {
        let requests = Requests::new(e);
        let mut last: HashMap<(usize, String), f64> = HashMap::new();
        for progress in e.notifications(PROGRESS) {
            let Some(value) = progress.at("/params/progress").as_f64() else { continue };
            let number = requests.of(progress).map_or(0, |call| call.request.place.event);
            let key = (progress.place.connection, format!("{number} {}", progress.at(OWN)));
            let Some(before) = last.insert(key, value) else { continue };
            j.check(value > before, progress, || format!("{value} after {before}"));
        }
    }),
    ("progress.value.finite", |e, j| {
        let total = |it: &Message<'_>| it.params().get("total").map(shown).unwrap_or_default();
        e.notifications(PROGRESS).must(
            j,
            |it| it.at("/params/progress").is_number() && it.params().get("total").is_none_or(Value::is_number),
            |it| format!("`progress: {}`, `total: {}`", shown(it.at("/params/progress")), total(it)),
        );
    }),
    ("progress.total.bounds", |e, j| {
        for progress in e.notifications(PROGRESS) {
            let number = |pointer| progress.at(pointer).as_f64();
            let (Some(value), Some(total)) = (number("/params/progress"), number("/params/total")) else { continue };
            j.check(value <= total, progress, || format!("{value} of {total}"));
        }
    }),
    ("progress.stop.after-completion", |e, j| {
        let requests = Requests::new(e);
        for progress in e.notifications(PROGRESS) {
            let Some(call) = requests.of(progress) else { continue };
            // The result of a task comes later than the response.
            let is_task = call.result().is_some_and(|it| it.get("task").is_some() || it["resultType"] == "task");
            if !is_task {
                let late = call.response.is_some_and(|it| it.place < progress.place && on_one_stream(it, progress));
                j.check(!late, progress, || "progress after the response");
            }
        }
    }),
    ("progress.token.on-cheap-request", |e, j| {
        e.case("lists/progress-token").responded().must_get(j, Call::has_result)
    }),
    ("progress.rate.limited", |e, j| {
        let mut times: HashMap<String, Vec<Duration>> = HashMap::new();
        for progress in e.notifications(PROGRESS) {
            let times = times.entry(progress.at(OWN).to_string()).or_default();
            times.push(progress.time);
            let before = times.len().checked_sub(MOST + 1).and_then(|at| times.get(at));
            let is_fast = before.is_some_and(|before| progress.time.saturating_sub(*before) < Duration::from_secs(1));
            j.check(!is_fast, progress, || format!("more than {MOST} notifications within a second"));
        }
        j.violations.truncate(1);
    }),
    ("progress.message.string", |e, j| message(e, j, Value::is_string)),
    ("progress.message.informative", |e, j| {
        message(e, j, |it| it.as_str().is_none_or(|it| !it.trim().is_empty() && !it.contains(char::is_control)))
    }),
    ("progress.stream.same", |e, j| {
        // Progress comes in the exchange of its request, or in one that resumes it.
        let requests = Requests::new(e);
        for progress in e.notifications(PROGRESS) {
            let is_resumed = exchange(e, progress).is_some_and(HttpExchange::is_resumed);
            let Some(call) = requests.of(progress).filter(|_| !is_resumed) else { continue };
            j.check(call.request.exchange == progress.exchange, progress, || "progress on another stream");
        }
    }),
    ("progress.stream.related", |e, j| {
        for progress in e.notifications(PROGRESS) {
            let Some(http) = exchange(e, progress).filter(|http| http.method == "POST") else { continue };
            let Some(connection) = connection(e, progress.place) else { continue };
            let sent = http.messages.iter().filter_map(|index| connection.messages.get(*index));
            let token = progress.at(OWN);
            let is_related = sent.into_iter().any(|it| !it.is_from_server() && it.at(TOKEN) == token);
            j.check(is_related, progress, || format!("the token {}", shown(token)));
        }
    }),
    ("progress.token.string-and-int", |e, j| {
        let calls = e.case("calls/integer-token").responded().filter(|call| tool_works(e, call));
        calls.must_get(j, Call::has_result);
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let Some(method) = material.served_list() else { return Vec::new() };
    let params = json!({ "_meta": { "progressToken": "rehearse-list" } });
    let mut cases = vec![Case::request("lists/progress-token", CaseGroup::Main, method, params)];
    if let Some((name, arguments)) = material.callable.first() {
        let mut params = Material::call_params(name, arguments);
        cases.push(Case::request("calls/no-token", CaseGroup::Calls, "tools/call", params.clone()));
        params["_meta"] = json!({ "progressToken": 17 });
        cases.push(Case::request("calls/integer-token", CaseGroup::Calls, "tools/call", params));
    }
    cases
}

/// The requests with a token, by connection and token, in order.
struct Requests<'e>(HashMap<(usize, String), Vec<Call<'e>>>);

impl<'e> Requests<'e> {
    fn new(evidence: &'e Evidence<'_>) -> Requests<'e> {
        let mut requests: HashMap<_, Vec<_>> = HashMap::new();
        for call in evidence.calls().filter(|call| call.request.kind == Kind::Request) {
            let token = call.request.at(TOKEN);
            if !token.is_null() {
                requests.entry((call.request.place.connection, token.to_string())).or_default().push(call);
            }
        }
        Requests(requests)
    }

    /// The request with the token of a notification: the last one before it.
    fn of(&self, progress: &Message<'_>) -> Option<Call<'e>> {
        let token = progress.at(OWN).to_string();
        let requests = self.0.get(&(progress.place.connection, token))?;
        let before = requests.partition_point(|call| call.request.place < progress.place);
        requests.get(before.checked_sub(1)?).copied()
    }
}

fn exchange<'e, 't>(evidence: &'e Evidence<'t>, message: &Message<'_>) -> Option<&'e HttpExchange<'t>> {
    connection(evidence, message.place)?.exchanges.get(&message.exchange?)
}

fn message(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value) -> bool) {
    for progress in e.notifications(PROGRESS) {
        let Some(text) = progress.params().get("message") else { continue };
        j.check(holds(text), progress, || format!("`message: {}`", shown(text)));
    }
}
