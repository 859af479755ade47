//! What a gateway between clients and an upstream server may not change: to its clients it is a server, to its upstream a
//! client. No section is about what is in between, so most rules are derived from what a result, an error or a
//! notification of a server is to its client.

mod difference;
mod pair;

use std::collections::HashSet;

use rehearse_document::text::quoted;
use rehearse_protocol::{List, names::INPUT_METHODS};
use serde_json::{Map, Value};

use self::{
    difference::{changed_text, difference, first, loss, lost_members, lost_meta},
    pair::{Pair, arguments, is_gone, joined, pairs, results, subject},
};
use super::Judge;
use super::common::shown;
use super::query::elements;
use crate::{Ask, Call, Connection, EventRef, Evidence, Judgement, Kind, Level, Message};
pub use pair::is_named;

const CALL: &str = "tools/call";
/// The methods that name one item.
const ITEMS: [&str; 4] = [CALL, "resources/read", "prompts/get", "completion/complete"];
/// The members of results that each connection has of its own.
const OWN_MEMBERS: [&str; 6] = ["_meta", "resultType", "requestState", "ttlMs", "cacheScope", "nextCursor"];
/// The members of the result of a call that have checks of their own.
const CALL_MEMBERS: [&str; 3] = ["content", "structuredContent", "isError"];
const CONTENT: [&str; 5] = ["text", "image", "audio", "resource", "resource_link"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("gateway.request.arrives", |e, j| {
        for pair in ITEMS.iter().flat_map(|method| known(e, method)).filter(|pair| pair.call.has_result()) {
            j.check_at(pair.upstream.is_some(), pair.name(), pair.places(), || "a result, and nothing at the upstream");
        }
    }),
    ("gateway.request.once", |e, j| {
        let pairs = pairs(e, CALL);
        if pairs.iter().any(|pair| pair.upstream.is_none()) {
            return j.untested("the gateway has other names for its tools, or tools of its own");
        }
        let of_client: Vec<_> = pairs.iter().filter_map(|pair| Some(pair.upstream.as_ref()?.1.request.place)).collect();
        for call in e.upstream.iter().flat_map(|it| it.calls_of(CALL)) {
            let holds =
                of_client.contains(&call.request.place) || call.request.params().get("inputResponses").is_some();
            j.check_at(holds, subject(&call), call.places(), || "a call that no client has made");
        }
    }),
    ("gateway.request.arguments", |e, j| {
        for (pair, upstream) in ITEMS.iter().flat_map(|method| joined(e, method)) {
            let [sent, got] = [&pair.call, &upstream].map(|call| arguments(call.request));
            let wrong = difference("arguments", &sent, &got);
            j.check_at(wrong.is_none(), pair.name(), pair.places(), || wrong.unwrap_or_default());
            let given = |call: &Call<'_>| call.request.params().get("inputResponses").cloned();
            if let (Some(sent), Some(got)) = (given(&pair.call), given(&upstream)) {
                let wrong = difference("inputResponses", &sent, &got);
                j.check_at(wrong.is_none(), pair.name(), pair.places(), || wrong.unwrap_or_default());
            }
        }
    }),
    ("gateway.request.meta", |e, j| {
        for (pair, upstream) in joined(e, CALL) {
            let sent = pair.call.request.at("/params/_meta");
            if let Some(lost) = lost_meta(sent, upstream.request.at("/params/_meta")) {
                j.check_at(lost.is_empty(), pair.name(), pair.places(), || lost);
            }
        }
    }),
    ("gateway.result.arrives", |e, j| {
        for (pair, upstream) in ITEMS.iter().flat_map(|method| joined(e, method)).filter(|(it, _)| !it.is_cancelled()) {
            if upstream.response.is_some() {
                j.check_at(pair.is_answered(), pair.name(), pair.places(), || became(&upstream, &pair.call));
                // It may only be slow.
                j.at_level_if(pair.is_slow(), Level::Info);
            }
        }
    }),
    ("gateway.result.kept", |e, j| {
        for (pair, upstream) in ITEMS.iter().flat_map(|method| joined(e, method)) {
            let (Some(sent), Some(got)) = (upstream.response, pair.call.response) else { continue };
            let holds = sent.result().is_some() == got.result().is_some();
            j.check_at(holds, pair.name(), pair.places(), || became(&upstream, &pair.call));
        }
    }),
    ("gateway.result.is-error", |e, j| {
        let is_error = |result: &Value| result["isError"] == true;
        for (pair, sent, got) in results(e, CALL) {
            let holds = is_error(sent) == is_error(got);
            j.check_at(holds, pair.name(), pair.places(), || {
                format!("`isError: {}` became `isError: {}`", is_error(sent), is_error(got))
            });
        }
    }),
    ("gateway.result.structured", |e, j| {
        for (pair, sent, got) in results(e, CALL) {
            if let Some(sent) = sent.get("structuredContent") {
                let wrong = difference("structuredContent", sent, &got["structuredContent"]);
                j.check_at(wrong.is_none(), pair.name(), pair.places(), || wrong.unwrap_or_default());
            }
        }
    }),
    ("gateway.result.meta", |e, j| {
        for (pair, sent, got) in ITEMS.iter().flat_map(|method| results(e, method)) {
            if let Some(lost) = lost_meta(&sent["_meta"], &got["_meta"]) {
                j.check_at(lost.is_empty(), pair.name(), pair.places(), || lost);
            }
        }
    }),
    ("gateway.result.members", |e, j| {
        for (pair, sent, got) in results(e, CALL) {
            let own = |key: &str| OWN_MEMBERS.contains(&key) || CALL_MEMBERS.contains(&key);
            let wrong = lost_members(sent, got, own);
            if let Some(wrong) = wrong {
                j.check_at(wrong.is_empty(), pair.name(), pair.places(), || wrong);
            }
        }
    }),
    ("gateway.content.blocks", |e, j| {
        for (pair, sent, got) in alike(e).filter(|(_, sent, _)| sent["content"].is_array()) {
            let known = |it: &&str| CONTENT.contains(it);
            let [sent, got] = [sent, got].map(|result| types(result).filter(known).collect::<Vec<_>>().join(", "));
            j.check_at(sent == got, pair.name(), pair.places(), || format!("blocks of {sent:?} became {got:?}"));
        }
    }),
    ("gateway.content.text", |e, j| {
        compare_blocks(e, j, |sent, got| texts(sent).zip(texts(got)).and_then(|(sent, got)| changed_text(sent, got)));
    }),
    ("gateway.content.data", |e, j| {
        compare_blocks(e, j, |sent, got| {
            let pointers = ["/data", "/mimeType", "/resource/blob", "/resource/mimeType", "/resource/uri", "/uri"];
            let all = pointers.iter().filter(|it| sent.pointer(it).is_some());
            first(all.map(|it| difference(&it[1..], sent.pointer(it)?, got.pointer(it).unwrap_or(&Value::Null))))
        });
    }),
    ("gateway.content.members", |e, j| {
        compare_blocks(e, j, |sent, got| {
            let own = |key: &str| matches!(key, "type" | "text" | "data" | "mimeType" | "uri" | "resource");
            let inner = |key: &str| matches!(key, "uri" | "text" | "blob" | "mimeType");
            let outer = lost_members(sent, got, own).filter(|it| !it.is_empty());
            outer.or_else(|| lost_members(&sent["resource"], &got["resource"], inner).filter(|it| !it.is_empty()))
        });
    }),
    ("gateway.content.unknown-type", |e, j| {
        for (pair, sent, got) in alike(e) {
            for block in elements(&sent["content"]).filter(|block| !is_known(block)) {
                let holds = elements(&got["content"]).any(|it| loss("", block, it).is_none());
                j.check_at(holds, pair.name(), pair.places(), || format!("no block {}", shown(block)));
            }
        }
    }),
    ("gateway.error.code", |e, j| {
        compare_errors(e, j, |sent, got| difference("code", &sent["code"], &got["code"]));
    }),
    ("gateway.error.message", |e, j| {
        // It may say more, as where the error comes from.
        compare_errors(e, j, |sent, got| {
            let [sent, got] = [sent, got].map(|error| error["message"].as_str().unwrap_or_default());
            (!got.contains(sent)).then(|| format!("{} became {}", quoted(sent, 80), quoted(got, 80)))
        });
    }),
    ("gateway.error.data", |e, j| {
        compare_errors(e, j, |sent, got| {
            sent.get("data").and_then(|data| difference("data", data, got.get("data").unwrap_or(&Value::Null)))
        });
    }),
    ("gateway.list.complete", |e, j| {
        for list in List::ALL {
            let (upstream, client) = (items(&e.upstream, list), items(&e.connections, list));
            let Some((_, of_client)) = client.first().filter(|_| !upstream.is_empty()) else { continue };
            // Only of a gateway whose own lists end.
            let may_end = is_read_to_the_end(&e.connections, list) && !is_read_to_the_end(&e.upstream, list);
            if let Some(page) = unread(&e.upstream, list).filter(|_| may_end) {
                j.check_at(false, Some(list.method()), page.places(), || "a page of the upstream that is not read");
            }
            let missing = first_reading(&upstream).filter(|(name, _)| seen(&client, name.0).is_none());
            let missing: Vec<_> = missing.map(|(name, _)| name.0).collect();
            j.check_at(missing.is_empty(), Some(list.method()), of_client.places(), || {
                format!("{} missing: {}", missing.len(), some(&missing))
            });
        }
    }),
    ("gateway.list.invented", |e, j| {
        for list in List::ALL {
            let (upstream, client) = (items(&e.upstream, list), items(&e.connections, list));
            let Some((_, of_client)) = client.first().filter(|_| !upstream.is_empty()) else { continue };
            let known: HashSet<_> =
                upstream.iter().filter_map(|(it, _)| seen(&client, it.0)).map(|((name, _), _)| *name).collect();
            let mut added: Vec<_> =
                client.iter().map(|(name, _)| name.0).filter(|name| !known.contains(name)).collect();
            added.dedup();
            j.check_at(added.is_empty(), Some(list.method()), of_client.places(), || {
                format!("{} that no upstream has: {}", added.len(), some(&added))
            });
        }
    }),
    ("gateway.list.once", |e, j| {
        for list in List::ALL {
            for connection in &e.connections {
                let all = items(std::slice::from_ref(connection), list);
                let mut names: Vec<_> = first_reading(&all).map(|(name, _)| name.0).collect();
                let Some((_, call)) = all.first() else { continue };
                names.sort_unstable();
                let twice: Vec<_> = names.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]).collect();
                j.check_at(twice.is_empty(), Some(list.method()), call.places(), || format!("twice: {}", some(&twice)));
            }
        }
    }),
    ("gateway.list.schema", |e, j| compare_items(e, j, |key| matches!(key, "inputSchema" | "outputSchema"))),
    ("gateway.list.texts", |e, j| compare_items(e, j, |key| matches!(key, "title" | "description"))),
    ("gateway.list.annotations", |e, j| compare_items(e, j, |key| key == "annotations")),
    ("gateway.list.members", |e, j| {
        let others =
            ["name", "uri", "uriTemplate", "inputSchema", "outputSchema", "title", "description", "annotations"];
        compare_items(e, j, |key| !others.contains(&key));
    }),
    ("gateway.resource.contents", |e, j| {
        for (pair, sent, got) in results(e, "resources/read") {
            let wrong = difference("contents", &sent["contents"], &renamed(&got["contents"], &sent["contents"]));
            j.check_at(wrong.is_none(), pair.name(), pair.places(), || wrong.unwrap_or_default());
        }
    }),
    ("gateway.prompt.messages", |e, j| {
        for (pair, sent, got) in results(e, "prompts/get") {
            let wrong = difference("messages", &sent["messages"], &got["messages"]);
            j.check_at(wrong.is_none(), pair.name(), pair.places(), || wrong.unwrap_or_default());
        }
    }),
    ("gateway.completion.values", |e, j| {
        for (pair, sent, got) in results(e, "completion/complete") {
            let wrong = difference("values", &sent["completion"]["values"], &got["completion"]["values"]);
            j.check_at(wrong.is_none(), pair.name(), pair.places(), || wrong.unwrap_or_default());
        }
    }),
    ("gateway.progress.forwarded", |e, j| {
        // Without an answer, more progress may be on its way.
        for pair in pairs(e, CALL).iter().filter(|pair| pair.call.response.is_some()) {
            let Some((connection, upstream)) = &pair.upstream else { continue };
            let (asked, got) = progress(pair.connection, &pair.call);
            let (passed, sent) = progress(connection, upstream);
            if asked && !passed && pair.name().is_some_and(|name| is_named(name, "progress")) {
                j.check_at(false, pair.name(), pair.places(), || "the upstream is not asked for progress");
            } else if asked && !sent.is_empty() {
                j.check_at(sent == got, pair.name(), pair.places(), || {
                    let got = if got.is_empty() { "no progress".to_owned() } else { some(&got) };
                    format!("progress {} became {got}", some(&sent))
                });
            }
        }
    }),
    ("gateway.cancel.forwarded", |e, j| {
        for pair in pairs(e, CALL).iter().filter(|pair| pair.is_cancelled()) {
            let Some((connection, upstream)) = &pair.upstream else { continue };
            let is_cancelled = is_cancelled(connection, upstream);
            j.check_at(is_cancelled, pair.name(), pair.places(), || "the upstream still works on the call");
        }
    }),
    ("gateway.log.forwarded", |e, j| {
        let (sent, got) = (notified(&e.upstream, "notifications/message"), notified_worker(e, "notifications/message"));
        let has_asked = e.calls_of("logging/setLevel").any(|call| call.has_result()) || e.is_modern();
        for message in sent.iter().filter(|_| has_asked) {
            let is_same = |it: &&Message<'_>| {
                ["level", "logger", "data"].iter().all(|key| it.params()[key] == message.params()[key])
            };
            let holds = got.iter().any(is_same);
            j.check_at(holds, None, vec![message.place], || format!("no message {}", shown(message.params())));
        }
    }),
    ("gateway.change.forwarded", |e, j| {
        let declared = |list: List| e.facts.declares(&format!("{}/listChanged", list.capability()));
        for list in List::ALL.into_iter().filter(|list| declared(*list)) {
            let Some(sent) = notified(&e.upstream, list.change()).first().copied() else { continue };
            let holds = !notified_worker(e, list.change()).is_empty();
            j.check_at(holds, Some(list.change()), vec![sent.place], || "no notification to the client");
        }
        let updated = "notifications/resources/updated";
        if e.calls_of("resources/subscribe").any(|call| call.has_result())
            && let Some(sent) = notified(&e.upstream, updated).first()
        {
            let holds = !notified_worker(e, updated).is_empty();
            j.check_at(holds, Some(updated), vec![sent.place], || "no notification to the client");
        }
    }),
    ("gateway.ask.forwarded", |e, j| {
        for ask in asked(e) {
            let holds = same_ask(e, &ask).is_some();
            j.check_at(holds, Some(ask.method()), ask.places(), || match client_ask(e, ask.method()) {
                Some(other) => {
                    difference("params", &question(ask.request), &question(other.request)).unwrap_or_default()
                }
                None => "the client is not asked".to_owned(),
            });
        }
    }),
    ("gateway.ask.answer", |e, j| {
        for ask in asked(e) {
            let (Some(given), Some(got)) =
                (same_ask(e, &ask).and_then(|it| it.responses.first().copied()), ask.responses.first())
            else {
                continue;
            };
            let wrong = difference("result", given.at("/result"), got.at("/result"));
            let places = vec![given.place, got.place];
            j.check_at(wrong.is_none(), Some(ask.method()), places, || wrong.unwrap_or_default());
        }
    }),
    ("gateway.ask.session", |e, j| {
        for connection in &e.connections {
            for ask in connection.asks().filter(|ask| ask.method() != "ping") {
                let is_open = |call: Call<'_>| {
                    call.request.kind == Kind::Request
                        && call.request.place < ask.request.place
                        && call.response.is_none_or(|it| it.place > ask.request.place)
                };
                let holds = connection.calls().any(is_open);
                j.check_at(holds, Some(ask.method()), ask.places(), || "a question to a client that has asked nothing");
            }
        }
    }),
    ("gateway.capability.lost", |e, j| {
        let (sent, got) = (declared(&e.upstream), declared(&e.connections));
        for ((upstream, call), (client, own)) in sent.iter().zip(&got).take(1) {
            let mut names = upstream.as_object().into_iter().flat_map(Map::keys);
            let lost: Vec<_> = names.by_ref().filter(|name| client.get(name.as_str()).is_none()).collect();
            let places = [call.places(), own.places()].concat();
            j.check_at(lost.is_empty(), None, places, || format!("not passed on: {}", some(&lost)));
        }
    }),
    ("gateway.capability.instructions", |e, j| {
        let text = |connections: &[Connection<'_>]| {
            let found = |call: Call<'_>| Some(call.result()?.get("instructions")?.as_str()?.to_owned());
            opened(connections).find_map(found)
        };
        if let Some(sent) = text(&e.upstream) {
            let got = text(&e.connections).unwrap_or_default();
            let places = opened(&e.connections).take(1).flat_map(|call| call.places()).collect();
            j.check_at(got.contains(&sent), None, places, || quoted(&got, 80));
        }
    }),
    ("gateway.auth.token", |e, j| {
        for http in e.upstream.iter().flat_map(|it| it.exchanges.values()) {
            let Some(headers) = http.request_headers else { continue };
            let values = headers.values().filter_map(|value| value.to_str().ok());
            let mut leaked =
                values.filter(|value| e.facts.secrets.iter().any(|secret| value.contains(secret.as_str())));
            if !e.facts.secrets.is_empty() {
                j.check_at(leaked.next().is_none(), None, http.places(), || "the token of the client");
            }
        }
    }),
    ("gateway.upstream.gone", |e, j| {
        for connection in &e.connections {
            for call in connection.calls().filter(is_gone) {
                let is_success = call.result().is_some_and(|result| result["isError"] != true);
                // A bridge over stdio may end with its upstream, as a server that ends would.
                let is_told = call.is_answered() || connection.ended_by_server();
                j.check_answer(is_told && !is_success, &call, || call.answer_text());
            }
        }
    }),
];

/// The calls of clients for items that the upstream lists.
fn known<'e>(e: &'e Evidence<'_>, method: &'e str) -> impl Iterator<Item = Pair<'e>> {
    let listed = List::of_item_method(method).map(|list| items(&e.upstream, list)).unwrap_or_default();
    let is_listed =
        move |pair: &Pair<'_>| listed.iter().any(|(it, _)| pair.name().is_some_and(|name| is_named(name, it.0)));
    pairs(e, method).into_iter().filter(is_listed)
}

/// What the upstream and the client have as an answer, in words.
fn became(upstream: &Call<'_>, client: &Call<'_>) -> String {
    format!("{} became {}", upstream.answer_text(), client.answer_text())
}

fn types(result: &Value) -> impl Iterator<Item = &str> {
    elements(&result["content"]).filter_map(|block| block["type"].as_str())
}

fn is_known(block: &Value) -> bool {
    block["type"].as_str().is_some_and(|it| CONTENT.contains(&it))
}

/// The text of a block.
fn texts(block: &Value) -> Option<&str> {
    block.get("text").or_else(|| block.pointer("/resource/text"))?.as_str()
}

/// The results of calls that are errors on both sides or on none.
fn alike<'e>(e: &'e Evidence<'_>) -> impl Iterator<Item = (Pair<'e>, &'e Value, &'e Value)> {
    results(e, CALL).filter(|(_, sent, got)| (sent["isError"] == true) == (got["isError"] == true))
}

/// Compares each block of a known type with that of the client: the same in the order of its type.
fn compare_blocks(e: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&Value, &Value) -> Option<String>) {
    for (pair, sent, got) in alike(e) {
        let blocks = CONTENT.iter().flat_map(|kind| {
            let own = move |result: &'_ Value| {
                elements(&result["content"]).filter(move |it| it["type"] == *kind).cloned().collect::<Vec<_>>()
            };
            own(sent).into_iter().zip(own(got))
        });
        for (sent, got) in blocks {
            let wrong = wrong(&sent, &got);
            j.check_at(wrong.is_none(), pair.name(), pair.places(), || wrong.unwrap_or_default());
        }
    }
}

/// Compares the errors of the upstream with those of the client.
fn compare_errors(e: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&Value, &Value) -> Option<String>) {
    for (pair, upstream) in ITEMS.iter().flat_map(|method| joined(e, method)) {
        let error = |call: &Call<'_>| call.response?.error().cloned();
        if let (Some(sent), Some(got)) = (error(&upstream), error(&pair.call)) {
            let wrong = wrong(&sent, &got);
            j.check_at(wrong.is_none(), pair.name(), pair.places(), || wrong.unwrap_or_default());
        }
    }
}

/// The name of a listed item, and the item.
type Item<'e> = ((&'e str, &'e Value), Call<'e>);

/// The items of a list, in the order in which they came.
fn items<'e>(connections: &'e [Connection<'_>], list: List) -> Vec<Item<'e>> {
    let calls = connections.iter().flat_map(|it| it.calls_of(list.method())).filter(|call| !is_gone(call));
    let items = calls
        .filter_map(|call| Some((call, call.result()?.get(list.member())?)))
        .flat_map(|(call, all)| elements(all).filter_map(move |item| Some(((item[list.key()].as_str()?, item), call))));
    items.collect()
}

/// The item of the gateway that is an item of the upstream: that of the same name, if there is one.
fn seen<'i, 'e>(client: &'i [Item<'e>], upstream: &str) -> Option<&'i Item<'e>> {
    let of = |is_it: &dyn Fn(&str) -> bool| client.iter().find(|((name, _), _)| is_it(name));
    of(&|name| name == upstream).or_else(|| of(&|name| is_named(name, upstream)))
}

/// Whether a list was read up to a page without another one.
fn is_read_to_the_end(connections: &[Connection<'_>], list: List) -> bool {
    let mut pages = connections.iter().flat_map(|it| it.calls_of(list.method())).filter_map(|call| call.result());
    pages.any(|page| page["nextCursor"].is_null())
}

/// The answer of a list with a cursor that no request has.
fn unread<'e>(connections: &'e [Connection<'_>], list: List) -> Option<Call<'e>> {
    let calls = || connections.iter().flat_map(|it| it.calls_of(list.method()));
    let is_read = |cursor: &Value| calls().any(|call| call.request.at("/params/cursor") == cursor);
    let has_more =
        |call: &Call<'_>| call.result().is_some_and(|it| it["nextCursor"].is_string() && !is_read(&it["nextCursor"]));
    calls().find(has_more)
}

/// The items up to the second request for a first page.
fn first_reading<'i, 'e>(items: &'i [Item<'e>]) -> impl Iterator<Item = &'i Item<'e>> {
    let mut begun: Option<EventRef> = None;
    items.iter().take_while(move |(_, call)| {
        let is_first = call.request.params().get("cursor").is_none_or(Value::is_null);
        let place = call.request.place;
        match begun {
            None => begun = Some(place),
            Some(first) if is_first && first != place => return false,
            Some(_) => {}
        }
        true
    })
}

/// Compares members of each item that a client sees with those that the upstream lists.
fn compare_items(e: &Evidence<'_>, j: &mut Judgement, is_meant: impl Fn(&str) -> bool) {
    for list in List::ALL {
        let (upstream, client) = (items(&e.upstream, list), items(&e.connections, list));
        for ((name, item), call) in first_reading(&upstream) {
            let Some(((own, got), seen)) = seen(&client, name) else { continue };
            let is_left_out = |key: &str| !is_meant(key) || OWN_MEMBERS.contains(&key);
            let lost = lost_members(item, got, is_left_out);
            let meta = is_meant("_meta").then(|| lost_meta(&item["_meta"], &got["_meta"])).flatten();
            for wrong in [lost, meta].into_iter().flatten() {
                let places =
                    vec![call.response.unwrap_or(call.request).place, seen.response.unwrap_or(seen.request).place];
                j.check_at(wrong.is_empty(), Some(own), places, || wrong);
            }
        }
    }
}

/// Contents of a resource with the URIs of the upstream, if those of the gateway are theirs with a prefix.
fn renamed(got: &Value, sent: &Value) -> Value {
    let mut got = got.clone();
    for (own, sent) in got.as_array_mut().into_iter().flatten().zip(elements(sent)) {
        let is_same = |(client, upstream): (&str, &str)| is_named(client, upstream);
        if own["uri"].as_str().zip(sent["uri"].as_str()).is_some_and(is_same) {
            own["uri"] = sent["uri"].clone();
        }
    }
    got
}

/// Whether a call asks for progress, and what it gets.
fn progress(connection: &Connection<'_>, call: &Call<'_>) -> (bool, Vec<String>) {
    let token = call.request.at("/params/_meta/progressToken");
    let own =
        |it: &&Message<'_>| it.method() == Some("notifications/progress") && it.at("/params/progressToken") == token;
    let text = |it: &Message<'_>| {
        let number = |key: &str| it.params()[key].as_f64().map(|it| it.to_string()).unwrap_or_default();
        format!("{}/{} {}", number("progress"), number("total"), it.params()["message"].as_str().unwrap_or_default())
    };
    (!token.is_null(), connection.received().filter(own).map(text).collect())
}

/// Whether the client of a connection has cancelled a call: by a notification, or by the end of its stream or process.
fn is_cancelled(connection: &Connection<'_>, call: &Call<'_>) -> bool {
    let has_closed = || match call.http {
        Some(http) => http.is_whole == Some(false),
        None => connection.input_closed.is_some() || connection.closed.is_some(),
    };
    let has_closed = || call.response.is_none() && has_closed();
    connection.cancellations(call.request).next().is_some() || has_closed()
}

/// The notifications of the servers of a method.
fn notified<'e, 't>(connections: &'e [Connection<'t>], method: &str) -> Vec<&'e Message<'t>> {
    connections.iter().flat_map(Connection::received).filter(|it| it.method() == Some(method)).collect()
}

/// The notifications to the client that works: another one, which only listens, gets its own.
fn notified_worker<'e, 't>(e: &'e Evidence<'t>, method: &str) -> Vec<&'e Message<'t>> {
    let works = |it: &&'e Connection<'t>| it.calls_of(CALL).next().is_some();
    let received = e.connections.iter().filter(works).flat_map(Connection::received);
    received.filter(|it| it.method() == Some(method)).collect()
}

/// The questions of the upstream that a client can be asked.
fn asked<'e>(e: &'e Evidence<'_>) -> impl Iterator<Item = Ask<'e>> {
    let is_question = |ask: &Ask<'_>| INPUT_METHODS.contains(&ask.method());
    // A client of the modern era is asked in results.
    e.upstream.iter().flat_map(Connection::asks).filter(move |ask| is_question(ask) && !e.is_modern())
}

/// What is asked, without what belongs to one connection.
fn question(request: &Message<'_>) -> Value {
    let mut params = request.params().clone();
    if let Some(members) = params.as_object_mut() {
        members.remove("_meta");
    }
    if params.is_null() { Value::Object(Map::new()) } else { params }
}

fn client_ask<'e>(e: &'e Evidence<'_>, method: &str) -> Option<Ask<'e>> {
    e.connections.iter().flat_map(Connection::asks).find(|it| it.method() == method)
}

/// The same question to a client.
fn same_ask<'e>(e: &'e Evidence<'_>, ask: &Ask<'_>) -> Option<Ask<'e>> {
    let is_same =
        |it: &Ask<'_>| it.method() == ask.method() && loss("", &question(ask.request), &question(it.request)).is_none();
    e.connections.iter().flat_map(Connection::asks).find(is_same)
}

/// The answered requests that open a connection.
fn opened<'e>(connections: &'e [Connection<'_>]) -> impl Iterator<Item = Call<'e>> {
    let is_opening = |call: &Call<'_>| matches!(call.method(), "initialize" | "server/discover") && call.has_result();
    connections.iter().flat_map(Connection::calls).filter(is_opening)
}

/// What the servers of connections declare.
fn declared<'e>(connections: &'e [Connection<'_>]) -> Vec<(&'e Value, Call<'e>)> {
    opened(connections).filter_map(|call| Some((call.result()?.get("capabilities")?, call))).collect()
}

/// The first of many texts.
fn some<T: AsRef<str>>(all: &[T]) -> String {
    let more = if all.len() > 3 { format!(" and {} more", all.len() - 3) } else { String::new() };
    let all: Vec<_> = all.iter().take(3).map(AsRef::as_ref).collect();
    format!("{}{more}", all.join(", "))
}
