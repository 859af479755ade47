//! Resources.

use serde_json::{Value, json};

use super::Judge;
use super::changes::notifies;
use super::common::{
    bytes_of, each_item, each_works, error_code, excuse, fails_plainly, is_base64, is_empty, is_text, items, shown,
    unique,
};
use super::query::{Calls, Named, Part, Parts, Query, Subject, elements};
use crate::formats::{is_at_or_below, is_scheme};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material, Message};

const LIST: &str = "resources/list";
const READ: &str = "resources/read";
const TEMPLATES: &str = "resources/templates/list";
/// The codes for a resource that does not exist.
const NOT_FOUND: [i64; 2] = [-32002, -32602];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("res.list.uri-name", |e, j| each_item(e, j, LIST, |it| is_text(&it["uri"]) && is_text(&it["name"]), shown)),
    ("res.list.uri-unique", |e, j| unique(e, j, LIST)),
    ("res.list.size-nonnegative", |e, j| {
        items(e, LIST).member("size").must(j, Value::is_u64, |it| format!("`size: {}`", shown(it)))
    }),
    ("res.list.size-correct", |e, j| {
        // The bytes of the only content of each reading.
        for (item, listed, _) in items(e, LIST) {
            let Some(size) = item["size"].as_u64() else { continue };
            let Some(read) = contents(e).find(|it| it.name() == Some(listed)) else { continue };
            let Some([content]) = read.json()["contents"].as_array().map(Vec::as_slice) else { continue };
            let length = match (content["text"].as_str(), content["blob"].as_str().map(bytes_of)) {
                (Some(text), _) => text.len(),
                (None, Some(Some(bytes))) => bytes.len(),
                _ => continue,
            };
            if !j.has_found(listed) {
                let found = || format!("{length} bytes, not {size}");
                j.check_at(length as u64 == size, Some(listed), read.places(), found);
            }
        }
    }),
    ("res.list.mime-consistent", |e, j| {
        let essence = |mime: &str| mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        for result in contents(e) {
            let asked = result.name().unwrap_or_default();
            let listed = items(e, LIST).find(|(_, uri, _)| *uri == asked);
            let Some(listed) = listed.and_then(|(item, ..)| item["mimeType"].as_str()) else { continue };
            for content in elements(&result.json()["contents"]).filter(|it| it["uri"] == *asked) {
                let Some(read) = content["mimeType"].as_str() else { continue };
                let found = || format!("{read:?} after {listed:?} in the list");
                j.check_at(essence(read) == essence(listed), Some(asked), result.places(), found);
            }
        }
    }),
    ("res.list.custom-scheme-rfc3986", |e, j| {
        // What has no scheme at all is no URI.
        let scheme = |it: &Value| it["uri"].as_str()?.split_once(':').map(|(scheme, _)| is_scheme(scheme));
        each_item(e, j, LIST, |it| scheme(it).unwrap_or(true), |it| shown(&it["uri"]));
    }),
    ("res.read.listed-works", |e, j| each_works(e, j, reads(e), uri)),
    ("res.read.contents-nonempty", |e, j| {
        let is_empty = |it: &Value| it["contents"].as_array().is_some_and(Vec::is_empty);
        contents(e).must(j, |it| !is_empty(it), |_| "no contents");
    }),
    ("res.read.text-xor-blob", |e, j| {
        for it in contents(e).each("contents") {
            let (text, blob) = (it.json().get("text").is_some(), it.json().get("blob").is_some());
            j.check_at(text != blob, it.name(), it.places(), || if text { "both" } else { "neither" });
            j.at_level_if(text && blob, Level::Derived);
        }
    }),
    ("res.read.blob-base64", |e, j| {
        for it in contents(e).each("contents").member("blob") {
            let blob = it.json().as_str();
            j.check_at(blob.is_some_and(is_base64), it.name(), it.places(), || shown(it.json()));
            // Line breaks are common, and most readers skip them.
            let is_wrapped = blob.is_some_and(|it| is_base64(&it.replace(['\r', '\n'], "")) && !is_base64(it));
            j.at_level_if(is_wrapped, Level::Derived);
        }
    }),
    ("res.read.uri-matches", |e, j| {
        for it in contents(e).each("contents") {
            let (asked, found) = (it.name().unwrap_or_default(), it.json()["uri"].as_str().unwrap_or_default());
            j.check_at(is_at_or_below(found, asked), Some(asked), it.places(), || format!("the URI {found:?}"));
        }
    }),
    ("res.read.unknown-error", |e, j| unknown(e).must_get(j, Call::has_error)),
    ("res.read.unknown-32002", |e, j| unknown_code(e, j, -32002)),
    ("res.read.unknown-32602", |e, j| unknown_code(e, j, -32602)),
    ("res.read.unknown-not-empty", |e, j| {
        let contents = |call: &Call<'_>| call.result().and_then(|it| it["contents"].as_array()).map(Vec::len);
        unknown(e).must(j, |call| contents(call) != Some(0), |_| "empty contents");
    }),
    ("res.read.missing-uri", |e, j| error_code(e, j, "bad-params/resources/read", &[-32602, -32020])),
    ("res.read.invalid-uri", |e, j| e.case("unknown-names/invalid-uri").responded().must_get(j, Call::has_error)),
    ("res.read.traversal", |e, j| {
        let is_passwd = |call: &Call<'_>| call.result().is_some_and(|it| it.to_string().contains("root:x:0:0"));
        let calls = e.case("unknown-names/traversal").responded();
        calls.must(j, |call| !is_passwd(call), |_| "the contents of /etc/passwd");
    }),
    ("res.read.idempotent", |e, j| {
        let calls: Vec<_> = reads(e).responded().collect();
        for pair in calls.windows(2) {
            if let [first, second] = pair
                && uri(first) == uri(second)
                && first.result().is_some()
            {
                j.check_at(second.result().is_some(), uri(second), second.places(), || second.answer_text());
            }
        }
    }),
    ("res.tmpl.fields", |e, j| {
        each_item(e, j, TEMPLATES, |it| is_text(&it["uriTemplate"]) && is_text(&it["name"]), shown)
    }),
    ("res.list.https-scheme", |e, j| {
        let is_https = |it: &Value| it["uri"].as_str().is_some_and(|uri| uri.starts_with("https://"));
        each_item(e, j, LIST, |it| !is_https(it), |_| "a URI that clients may fetch themselves".to_owned());
    }),
    ("res.read.unknown-data-uri", |e, j| {
        let has_uri =
            |call: &Call<'_>| call.response.map(|it| it.at("/error/data/uri")) == Some(call.request.at("/params/uri"));
        unknown(e).filter(Call::has_error).must(j, has_uri, |_| "no `data.uri`");
    }),
    ("res.tmpl.has-variable", |e, j| {
        each_item(e, j, TEMPLATES, |it| it["uriTemplate"].as_str().is_some_and(|it| it.contains('{')), shown)
    }),
    ("res.tmpl.expand-reads", |e, j| known_or_read(e, j, "templates/expanded")),
    ("res.tmpl.unknown-not-32603", |e, j| {
        // One that makes sense shows that the server can look for it.
        let number =
            |call: &Call<'_>| call.request.case.and_then(|case| case.rsplit('/').next().map(ToOwned::to_owned));
        let worked: Vec<_> = e.case("templates/expanded").filter(|call| call.has_result()).collect();
        let is_same = |one: &Call<'_>, other: &Call<'_>| {
            one.request.place.connection == other.request.place.connection && number(one) == number(other)
        };
        let calls = e.case("templates/unknown").responded().filter(|call| worked.iter().any(|it| is_same(it, call)));
        calls.by(uri).must_get(j, |call| call.error_code() != Some(-32603));
    }),
    ("res.sub.subscribe-empty", |e, j| empty(e, j, "subscribe/listed")),
    ("res.sub.unsubscribe-empty", |e, j| empty(e, j, "subscribe/end")),
    ("res.sub.unknown-uri", |e, j| e.case("subscribe/unknown").filter(Call::is_answered).must_get(j, Call::has_result)),
    ("res.sub.unsubscribe-not-subscribed", |e, j| {
        e.case("subscribe/not-subscribed").filter(Call::is_answered).must_get(j, Call::has_result)
    }),
    ("res.sub.after-unsubscribe-silent", silent),
    ("res.sub.updated-then-readable", |e, j| known_or_read(e, j, "subscribe/updated")),
    ("res.changed.notifies", |e, j| notifies(e, j, LIST, "notifications/resources/list_changed")),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.declares("resources") {
        return Vec::new();
    }
    let read = |name: &str, uri: &str| Case::request(name, CaseGroup::Negative, READ, json!({ "uri": uri }));
    let mut cases = vec![
        read("unknown-names/resource", &format!("rehearse://no/such/{}", material.suffix)),
        read("unknown-names/invalid-uri", "not a uri"),
    ];
    cases.extend(unknown_below(material).map(|uri| read("unknown-names/resource/own-scheme", &uri)));
    let file = material.resources.iter().filter_map(|it| it["uri"].as_str()).find(|uri| uri.starts_with("file://"));
    if let Some(file) = file {
        let base = file.rsplit_once('/').map_or(file, |(base, _)| base);
        cases.push(read("unknown-names/traversal/dots", &format!("{base}/../../../../../../../../etc/passwd")));
        let encoded = "%2e%2e/".repeat(8);
        cases.push(read("unknown-names/traversal/encoded", &format!("{base}/{encoded}etc/passwd")));
    }
    cases
}

/// A URI next to that of a listed resource, which no template of the server describes.
fn unknown_below(material: &Material) -> Option<String> {
    let listed = material.resources.iter().filter_map(|it| it["uri"].as_str());
    let templates = || material.templates.iter().filter_map(|it| it["uriTemplate"].as_str());
    let mut unknown = listed.filter_map(|uri| {
        let end = uri.rfind(['/', ':'])? + 1;
        Some(format!("{}{}", uri.get(..end)?, material.unknown_name()))
    });
    unknown.find(|uri| {
        let literal = |template: &str| template.split('{').next().unwrap_or_default().to_owned();
        !templates().any(|template| uri.starts_with(&literal(template)))
    })
}

fn uri<'e>(call: &Call<'e>) -> Option<&'e str> {
    call.text("/params/uri")
}

fn reads<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    evidence.calls_of(READ).plain()
}

/// The results that are not questions, also of expanded templates.
fn contents<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Named<'e, (Call<'e>, &'e Value)>> {
    let calls = reads(evidence).chain(evidence.case("templates/expanded"));
    let results = calls.filter_map(|call| Some((call, call.result()?)));
    results.filter(|(_, result)| result["resultType"] != "input_required").by(uri)
}

fn unknown<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    let calls = evidence.case("unknown-names/resource");
    calls.reached()
}

fn unknown_code(e: &Evidence<'_>, j: &mut Judgement, code: i64) {
    for call in unknown(e) {
        let excuse = excuse(&call).filter(|_| fails_plainly(e, &call));
        match (call.error_code(), excuse) {
            (_, Some(excuse)) => j.untested(excuse),
            (Some(found), None) => j.check_call(found == code, &call),
            (None, None) => {}
        }
    }
}

/// Checks that what is read has a result, or is not there any more.
fn known_or_read(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    let works = reads(e).any(|call| call.has_result());
    let is_gone = |call: &Call<'_>| call.error_code().is_some_and(|it| NOT_FOUND.contains(&it));
    for call in e.case(case).responded() {
        match excuse(&call).filter(|_| !works) {
            Some(excuse) => j.untested(excuse),
            None => j.check_at(call.has_result() || is_gone(&call), uri(&call), call.places(), || call.answer_text()),
        }
    }
}

/// Checks that the result of a request for a subscription is empty. That one works has a check of its own.
fn empty(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    let results = e.case(case).filter_map(|call| Some((call, call.result()?)));
    results.by(uri).must(j, is_empty, shown);
}

/// Updates of a resource after the end of its subscription.
fn silent(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        let is_end = |call: &Call<'_>| call.request.case.is_some_and(|case| case.starts_with("subscribe/end"));
        let ended = connection.calls().filter(|call| is_end(call) && call.has_result());
        for (call, end) in ended.filter_map(|call| Some((call, call.response?))) {
            let uri = call.request.at("/params/uri");
            let updates = connection.messages.iter().filter(|it| {
                it.is_from_server()
                    && it.method() == Some("notifications/resources/updated")
                    && it.at("/params/uri") == uri
            });
            let mut updates = updates.peekable();
            // An update that was on its way comes before the second answer to a later request.
            let later = connection.calls().filter(|it| it.request.place > end.place);
            let Some(read) = later.filter_map(|call| call.response).nth(1).map(|it| it.place) else { continue };
            let is_renewed = |it: &Message<'_>| {
                let mut renewed = connection.calls().filter(|call| call.method() == "resources/subscribe");
                renewed.any(|call| {
                    let place = call.request.place;
                    place > end.place && place < it.place && call.request.at("/params/uri") == uri
                })
            };
            let is_updated = updates.peek().is_some_and(|it| it.place < call.request.place);
            let late = updates.find(|it| it.place > read && !is_renewed(it));
            // Without an update before, nothing shows that there is anything to be silent about.
            if is_updated || late.is_some() {
                j.check_subject(late.is_none(), uri.as_str().unwrap_or_default(), late.unwrap_or(end), || "an update");
            }
        }
    }
    j.untested("no subscribed resource was updated");
}
