//! Resources.

use serde_json::{Value, json};

use super::{
    Judge,
    changes::notifies,
    common::{
        each_item, each_works, error_code, excuse, fails_plainly, is_base64, is_refused_elsewhere, items, shown, unique,
    },
};
use crate::{
    Call, Case, CaseGroup, Evidence, Judgement, Level, Material, Message,
    formats::{is_at_or_below, is_scheme},
};

const LIST: &str = "resources/list";
const READ: &str = "resources/read";
const TEMPLATES: &str = "resources/templates/list";
/// The codes for a resource that does not exist.
const NOT_FOUND: [i64; 2] = [-32002, -32602];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("res.list.uri-name", |e, j| each_item(e, j, LIST, |it| is_text(&it["uri"]) && is_text(&it["name"]), shown)),
    ("res.list.uri-unique", |e, j| unique(e, j, LIST)),
    ("res.list.size-nonnegative", |e, j| {
        for (item, uri, call) in items(e, LIST) {
            if let Some(size) = item.get("size") {
                j.check_at(size.is_u64(), Some(uri.to_owned()), call.places(), || format!("`size: {}`", shown(size)));
            }
        }
    }),
    ("res.list.size-correct", size_correct),
    ("res.list.mime-consistent", same_mime),
    ("res.list.custom-scheme-rfc3986", |e, j| {
        // What has no scheme at all is no URI.
        let scheme = |it: &Value| it["uri"].as_str()?.split_once(':').map(|(scheme, _)| is_scheme(scheme));
        each_item(e, j, LIST, |it| scheme(it).unwrap_or(true), |it| shown(&it["uri"]));
    }),
    ("res.read.listed-works", |e, j| {
        each_works(e, j, reads(e), uri);
    }),
    ("res.read.contents-nonempty", |e, j| {
        for (call, result) in contents(e) {
            let is_empty = result["contents"].as_array().is_some_and(Vec::is_empty);
            j.check_at(!is_empty, uri(&call), call.places(), || "no contents".to_owned());
        }
    }),
    ("res.read.text-xor-blob", text_xor_blob),
    ("res.read.blob-base64", |e, j| {
        each_content(e, j, |call, content, j| {
            let Some(blob) = content.get("blob") else { return };
            j.check_at(blob.as_str().is_some_and(is_base64), uri(call), call.places(), || shown(blob));
            // Line breaks are common, and most readers skip them.
            if blob.as_str().is_some_and(|it| is_base64(&it.replace(['\r', '\n'], "")) && !is_base64(it)) {
                j.at_level(Level::Derived);
            }
        });
    }),
    ("res.read.uri-matches", |e, j| {
        each_content(e, j, |call, content, j| {
            let asked = uri(call).unwrap_or_default();
            let found = content["uri"].as_str().unwrap_or_default();
            j.check_at(is_at_or_below(found, &asked), Some(asked.clone()), call.places(), || {
                format!("the URI {found:?}")
            });
        });
    }),
    ("res.read.unknown-error", |e, j| {
        for call in unknown(e) {
            j.check_call(call.error_code().is_some(), &call);
        }
    }),
    ("res.read.unknown-32002", |e, j| unknown_code(e, j, -32002)),
    ("res.read.unknown-32602", |e, j| unknown_code(e, j, -32602)),
    ("res.read.unknown-not-empty", |e, j| {
        for call in unknown(e) {
            let is_empty = call.result().and_then(|it| it["contents"].as_array()).is_some_and(Vec::is_empty);
            j.check_answer(!is_empty, &call, || "empty contents".to_owned());
        }
    }),
    ("res.read.missing-uri", |e, j| error_code(e, j, "bad-params/resources/read", &[-32602, -32020])),
    ("res.read.invalid-uri", |e, j| {
        for call in e.case("unknown-names/invalid-uri").filter(|call| call.response.is_some()) {
            j.check_call(call.error_code().is_some(), &call);
        }
    }),
    ("res.read.traversal", |e, j| {
        for call in e.case("unknown-names/traversal").filter(|call| call.response.is_some()) {
            let is_passwd = call.result().is_some_and(|it| it.to_string().contains("root:x:0:0"));
            j.check_answer(!is_passwd, &call, || "the contents of /etc/passwd".to_owned());
        }
    }),
    ("res.read.idempotent", twice),
    ("res.tmpl.fields", |e, j| {
        each_item(e, j, TEMPLATES, |it| is_text(&it["uriTemplate"]) && is_text(&it["name"]), shown);
    }),
    ("res.list.https-scheme", |e, j| {
        let is_https = |it: &Value| it["uri"].as_str().is_some_and(|uri| uri.starts_with("https://"));
        each_item(e, j, LIST, |it| !is_https(it), |_| "a URI that clients may fetch themselves".to_owned());
    }),
    ("res.read.unknown-data-uri", |e, j| {
        for call in unknown(e).filter(|call| call.error_code().is_some()) {
            let has_uri = call.response.is_some_and(|it| it.at("/error/data/uri") == call.request.at("/params/uri"));
            j.check_answer(has_uri, &call, || "no `data.uri`".to_owned());
        }
    }),
    ("res.tmpl.has-variable", |e, j| {
        each_item(e, j, TEMPLATES, |it| it["uriTemplate"].as_str().is_some_and(|it| it.contains('{')), shown);
    }),
    ("res.tmpl.expand-reads", |e, j| {
        known_or_read(e, j, "templates/expanded");
        j.untested("no completion gives values for the variables of a template");
    }),
    ("res.tmpl.unknown-not-32603", |e, j| {
        // One that makes sense shows that the server can look for it.
        let number =
            |call: &Call<'_>| call.request.case.and_then(|case| case.rsplit('/').next().map(ToOwned::to_owned));
        let worked: Vec<_> = e.case("templates/expanded").filter(|call| call.result().is_some()).collect();
        let is_same = |one: &Call<'_>, other: &Call<'_>| {
            one.request.place.connection == other.request.place.connection && number(one) == number(other)
        };
        let calls = e.case("templates/unknown").filter(|call| call.response.is_some());
        for call in calls.filter(|call| worked.iter().any(|it| is_same(it, call))) {
            j.check_at(call.error_code() != Some(-32603), uri(&call), call.places(), || call.answer_text());
        }
        j.untested("no completion gives values for the variables of a template, or no such expansion can be read");
    }),
    ("res.sub.subscribe-empty", |e, j| empty(e, j, "subscribe/listed")),
    ("res.sub.unsubscribe-empty", |e, j| empty(e, j, "subscribe/end")),
    ("res.sub.unknown-uri", |e, j| is_answered(e, j, "subscribe/unknown")),
    ("res.sub.unsubscribe-not-subscribed", |e, j| is_answered(e, j, "subscribe/not-subscribed")),
    ("res.sub.after-unsubscribe-silent", silent),
    ("res.sub.updated-then-readable", |e, j| {
        known_or_read(e, j, "subscribe/updated");
        j.untested("no resource was updated");
    }),
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

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn uri(call: &Call<'_>) -> Option<String> {
    call.request.at("/params/uri").as_str().map(ToOwned::to_owned)
}

fn reads<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    evidence.calls_of(READ).filter(|call| call.request.case.is_none())
}

/// The results that are not questions, also of expanded templates.
fn contents<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    let calls = reads(evidence).chain(evidence.case("templates/expanded"));
    let results = calls.filter_map(|call| Some((call, call.result()?)));
    results.filter(|(_, result)| result["resultType"] != "input_required")
}

fn each_content(evidence: &Evidence<'_>, j: &mut Judgement, judge: impl Fn(&Call<'_>, &Value, &mut Judgement)) {
    for (call, result) in contents(evidence) {
        for content in result["contents"].as_array().into_iter().flatten() {
            judge(&call, content, j);
        }
    }
}

fn text_xor_blob(evidence: &Evidence<'_>, j: &mut Judgement) {
    each_content(evidence, j, |call, content, j| {
        let (text, blob) = (content.get("text").is_some(), content.get("blob").is_some());
        j.check_at(text != blob, uri(call), call.places(), || if text { "both" } else { "neither" }.to_owned());
        if text && blob {
            j.at_level(Level::Derived);
        }
    });
}

/// The bytes of the only content of each reading.
fn size_correct(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (item, listed, _) in items(evidence, LIST) {
        let Some(size) = item["size"].as_u64() else { continue };
        let Some((call, result)) = contents(evidence).find(|(call, _)| uri(call).as_deref() == Some(listed)) else {
            continue;
        };
        let Some([content]) = result["contents"].as_array().map(Vec::as_slice) else { continue };
        let length = match (content["text"].as_str(), content["blob"].as_str()) {
            (Some(text), _) => text.len(),
            (None, Some(blob)) => match base64::Engine::decode(&base64::prelude::BASE64_STANDARD, blob) {
                Ok(bytes) => bytes.len(),
                Err(_) => continue,
            },
            _ => continue,
        };
        if !j.violations.iter().any(|it| it.subject.as_deref() == Some(listed)) {
            j.check_at(length as u64 == size, Some(listed.to_owned()), call.places(), || {
                format!("{length} bytes, not {size}")
            });
        }
    }
}

fn same_mime(evidence: &Evidence<'_>, j: &mut Judgement) {
    let essence = |mime: &str| mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    for (call, result) in contents(evidence) {
        let asked = uri(&call).unwrap_or_default();
        let listed = items(evidence, LIST).find(|(_, uri, _)| *uri == asked);
        let Some(listed) = listed.and_then(|(item, ..)| item["mimeType"].as_str()) else { continue };
        for content in result["contents"].as_array().into_iter().flatten().filter(|it| it["uri"] == *asked) {
            if let Some(read) = content["mimeType"].as_str() {
                let is_same = essence(read) == essence(listed);
                j.check_at(is_same, Some(asked.clone()), call.places(), || {
                    format!("{read:?} after {listed:?} in the list")
                });
            }
        }
    }
}

fn unknown<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    let calls = evidence.case("unknown-names/resource");
    calls.filter(|call| call.response.is_some() && !is_refused_elsewhere(call))
}

fn unknown_code(evidence: &Evidence<'_>, j: &mut Judgement, code: i64) {
    for call in unknown(evidence) {
        let excuse = excuse(&call).filter(|_| fails_plainly(evidence, &call));
        match (call.error_code(), excuse) {
            (_, Some(excuse)) => j.untested(excuse),
            (Some(found), None) => j.check_call(found == code, &call),
            (None, None) => {}
        }
    }
}

/// Checks that what is read has a result, or is not there any more.
fn known_or_read(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    let works = reads(evidence).any(|call| call.result().is_some());
    let is_gone = |call: &Call<'_>| call.error_code().is_some_and(|it| NOT_FOUND.contains(&it));
    for call in evidence.case(case).filter(|call| call.response.is_some()) {
        match excuse(&call).filter(|_| !works) {
            Some(excuse) => j.untested(excuse),
            None => {
                let is_known = call.result().is_some() || is_gone(&call);
                j.check_at(is_known, uri(&call), call.places(), || call.answer_text());
            }
        }
    }
}

fn twice(evidence: &Evidence<'_>, j: &mut Judgement) {
    let calls: Vec<_> = reads(evidence).filter(|call| call.response.is_some()).collect();
    for pair in calls.windows(2) {
        if let [first, second] = pair
            && uri(first) == uri(second)
            && first.result().is_some()
        {
            j.check_at(second.result().is_some(), uri(second), second.places(), || second.answer_text());
        }
    }
}

/// Checks that the result of a request for a subscription is empty. That one works has a check of its own.
fn empty(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in evidence.case(case) {
        let Some(result) = call.result() else { continue };
        let is_empty = result.as_object().is_some_and(|it| it.keys().all(|key| key == "_meta"));
        j.check_at(is_empty, uri(&call), call.places(), || shown(result));
    }
}

/// Notes whether the server accepted or refused it.
fn is_answered(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in evidence.case(case).filter(Call::is_answered) {
        j.check_answer(call.result().is_some(), &call, || call.answer_text());
    }
}

/// Updates of a resource after the end of its subscription.
fn silent(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        let is_end = |call: &Call<'_>| call.request.case.is_some_and(|case| case.starts_with("subscribe/end"));
        let ended = connection.calls().filter(|call| is_end(call) && call.result().is_some());
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
                j.check_subject(late.is_none(), uri.as_str().unwrap_or_default(), late.unwrap_or(end), || {
                    "an update".to_owned()
                });
            }
        }
    }
    j.untested("no subscribed resource was updated");
}
