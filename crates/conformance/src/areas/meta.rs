//! `_meta`, icons, annotations and names.

use rehearse_protocol::{List, Version, names::PREFIX};
use serde_json::{Map, Value, json};

use super::Judge;
use super::common::shown;
use super::query::{Calls, Parts, Query};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Material, Message};

type Form = fn(&str) -> bool;
const TRACE_KEYS: [(&str, Form); 3] = [("traceparent", is_traceparent), ("tracestate", is_list), ("baggage", is_list)];
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
/// The top-level domains that names of companies and projects mostly have.
const TOP_DOMAINS: [&str; 8] = ["com", "org", "net", "io", "dev", "ai", "app", "edu"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("meta.key.prefix-syntax", |e, j| keys(e, j, |prefix, _| Some(prefix.is_none_or(is_prefix)))),
    ("meta.key.name-syntax", |e, j| keys(e, j, |_, name| Some(is_name(name)))),
    ("meta.key.reserved-prefix", |e, j| {
        keys(e, j, |prefix, name| Some(!is_reserved(e.version, prefix) || is_defined(name)))
    }),
    ("meta.key.reverse-dns", |e, j| keys(e, j, |prefix, _| prefix.filter(|it| it.contains('.')).map(is_reverse_dns))),
    ("meta.key.trace-context", trace_context),
    ("meta.value.is-object", |e, j| each(e, j, |members| members.get("_meta"), Value::is_object)),
    ("meta.request.unknown-key-ignored", |e, j| e.case("lists/unknown-meta").responded().must_get(j, Call::has_result)),
    ("meta.request.trace-accepted", |e, j| e.case("lists/trace-context").reached().must_get(j, Call::has_result)),
    ("meta.icons.src-present", |e, j| icons(e, j, |icon| Some(icon["src"].is_string()))),
    ("meta.icons.src-scheme", |e, j| icons(e, j, |icon| Some(is_icon_url(icon["src"].as_str().unwrap_or("data:"))))),
    ("meta.icons.data-uri-valid", |e, j| {
        icons(e, j, |icon| Some(is_image(icon["src"].as_str()?.strip_prefix("data:")?)))
    }),
    ("meta.icons.sizes-format", |e, j| icons(e, j, |icon| icon.get("sizes").map(are_sizes))),
    ("meta.icons.theme-enum", |e, j| {
        icons(e, j, |icon| icon.get("theme").map(|theme| theme == "light" || theme == "dark"))
    }),
    ("meta.impl.name-version", |e, j| {
        server_info(e, j, |info| Some(info["name"].is_string() && info["version"].is_string()))
    }),
    ("meta.impl.website-uri", |e, j| {
        server_info(e, j, |info| {
            let url = info.get("websiteUrl")?;
            Some(url.as_str().is_some_and(|url| url::Url::parse(url).is_ok_and(|url| url.scheme().starts_with("http"))))
        });
    }),
    ("meta.title.string", |e, j| {
        for (method, key, name) in List::ALL.map(|it| (it.method(), it.member(), it.key())) {
            for (call, item) in e.results_of(method).each(key) {
                let Some(title) = item.get("title") else { continue };
                let found = || format!("`title: {}`", shown(title));
                j.check_at(title.is_string(), item[name].as_str(), call.places(), found);
            }
        }
    }),
    ("meta.annotations.audience", |e, j| {
        let is_role = |role: &Value| role == "user" || role == "assistant";
        annotations(e, j, "audience", |it| it.as_array().is_some_and(|roles| roles.iter().all(is_role)));
    }),
    ("meta.annotations.priority", |e, j| {
        annotations(e, j, "priority", |it| it.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it)))
    }),
    ("meta.annotations.last-modified", |e, j| annotations(e, j, "lastModified", |it| it.as_str().is_none_or(is_time))),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let Some(method) = material.served_list() else { return Vec::new() };
    let params = json!({ "_meta": { "com.example.rehearse/x": 1 } });
    let mut cases = vec![Case::request("lists/unknown-meta", CaseGroup::Main, method, params)];
    if material.is_modern() {
        let case = Case::request("lists/trace-context", CaseGroup::Main, method, json!({}));
        cases.push(case.meta("traceparent", Some(json!(TRACE))).meta("baggage", Some(json!("rehearse=1"))));
    }
    cases
}

/// A member of any object of a result or of params, but not of what a tool made up: structured content, schemas.
pub(super) fn each(
    e: &Evidence<'_>,
    j: &mut Judgement,
    member: impl Fn(&Map<String, Value>) -> Option<&Value>,
    holds: impl Fn(&Value) -> bool,
) {
    for message in e.own() {
        visit(message, &mut |members| {
            if let Some(value) = member(members) {
                j.check(holds(value), message, || shown(value));
            }
        });
    }
}

/// The objects of the protocol in a message.
fn visit<'m>(message: &'m Message<'_>, act: &mut impl FnMut(&'m Map<String, Value>)) {
    const FOREIGN: [&str; 7] =
        ["structuredContent", "inputSchema", "outputSchema", "requestedSchema", "data", "arguments", "_meta"];
    fn walk<'m>(value: &'m Value, act: &mut impl FnMut(&'m Map<String, Value>)) {
        match value {
            Value::Object(members) => {
                act(members);
                members.iter().filter(|(key, _)| !FOREIGN.contains(&key.as_str())).for_each(|(_, it)| walk(it, act));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, act)),
            _ => {}
        }
    }
    if let Some(result) = message.result() {
        walk(result, act);
    }
    walk(message.params(), act);
}

pub(super) fn keys(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(Option<&str>, &str) -> Option<bool>) {
    for message in e.own() {
        visit(message, &mut |members| {
            for key in members.get("_meta").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
                let (prefix, name) = match key.rsplit_once('/') {
                    Some((prefix, name)) => (Some(prefix), name),
                    None => (None, key.as_str()),
                };
                // The whole key stands for itself where its prefix is judged.
                let holds = holds(
                    prefix,
                    if prefix.is_some_and(|it| it.contains("modelcontextprotocol")) { key } else { name },
                );
                let Some(holds) = holds else { continue };
                j.check_subject(holds, key, message, || format!("the key {key:?}"));
            }
        });
    }
}

pub(super) fn is_prefix(prefix: &str) -> bool {
    prefix.split('.').all(|label| {
        label.starts_with(|it: char| it.is_ascii_alphabetic())
            && label.ends_with(|it: char| it.is_ascii_alphanumeric())
            && label.chars().all(|it| it.is_ascii_alphanumeric() || it == '-')
    })
}

pub(super) fn is_name(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or_default();
    name.is_empty()
        || (name.starts_with(|it: char| it.is_ascii_alphanumeric())
            && name.ends_with(|it: char| it.is_ascii_alphanumeric())
            && name.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.')))
}

pub(super) fn is_reserved(version: Version, prefix: Option<&str>) -> bool {
    let Some(prefix) = prefix else { return false };
    let is_ours = |label: &str| matches!(label, "mcp" | "modelcontextprotocol");
    let mut labels = prefix.split('.');
    match version {
        Version::V2025_06_18 => labels.rev().nth(1).is_some_and(is_ours),
        _ => labels.nth(1).is_some_and(is_ours),
    }
}

pub(super) fn is_defined(key: &str) -> bool {
    key.starts_with(PREFIX)
}

pub(super) fn icons(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value) -> Option<bool>) {
    for message in e.own() {
        visit(message, &mut |members| {
            for icon in members.get("icons").and_then(Value::as_array).into_iter().flatten() {
                let owner = members.get("name").and_then(Value::as_str).unwrap_or_default();
                let Some(holds) = holds(icon) else { continue };
                j.check_subject(holds, owner, message, || shown(icon));
            }
        });
    }
}

/// Whether a text begins as the URL of an icon does.
pub(super) fn is_icon_url(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["https:", "http:", "data:"].iter().any(|scheme| text.starts_with(scheme))
}

/// Whether a prefix is not that of a domain which was left in its usual order.
fn is_reverse_dns(prefix: &str) -> bool {
    let is_top = |label: Option<&str>| label.is_some_and(|label| TOP_DOMAINS.contains(&label));
    is_top(prefix.split('.').next()) || !is_top(prefix.rsplit('.').next())
}

pub(super) fn trace_context(e: &Evidence<'_>, j: &mut Judgement) {
    for message in e.own() {
        visit(message, &mut |members| {
            let Some(meta) = members.get("_meta") else { return };
            for (key, holds) in TRACE_KEYS {
                let Some(value) = meta.get(key) else { continue };
                let holds = value.as_str().is_some_and(holds);
                j.check_subject(holds, key, message, || format!("`{key}: {}`", shown(value)));
            }
        });
    }
}

/// Version, trace id, parent id and flags, in hexadecimal digits.
fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    let parts: Vec<_> = text.split('-').collect();
    let is_zero = |part: &str| part.bytes().all(|it| it == b'0');
    match parts.as_slice() {
        [version, trace, parent, flags, rest @ ..] => {
            [*version, *trace, *parent, *flags].into_iter().all(is_hex)
                && (version.len(), trace.len(), parent.len(), flags.len()) == (2, 32, 16, 2)
                && *version != "ff"
                && !is_zero(trace)
                && !is_zero(parent)
                && (rest.is_empty() || *version != "00")
        }
        _ => false,
    }
}

/// A list of `key=value`, with commas between them.
fn is_list(text: &str) -> bool {
    let is_key =
        |key: &str| !key.trim().is_empty() && !key.trim().contains(|it: char| it.is_whitespace() || !it.is_ascii());
    text.split(',').all(|it| it.trim().is_empty() || it.split_once('=').is_some_and(|(key, _)| is_key(key)))
}

/// Whether what follows `data:` is an image: in base64, or SVG as text.
fn is_image(rest: &str) -> bool {
    let Some((head, data)) = rest.split_once(',') else { return false };
    let mime = head.split(';').next().unwrap_or_default().to_ascii_lowercase();
    if !head.ends_with(";base64") {
        return mime == "image/svg+xml";
    }
    let Ok(bytes) = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, data) else { return false };
    match mime.as_str() {
        "image/png" => bytes.starts_with(b"\x89PNG"),
        "image/jpeg" | "image/jpg" => bytes.starts_with(b"\xff\xd8\xff"),
        "image/webp" => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
        "image/gif" => bytes.starts_with(b"GIF8"),
        _ => true,
    }
}

fn are_sizes(sizes: &Value) -> bool {
    let is_size = |size: &str| {
        size == "any"
            || size.split_once('x').is_some_and(|(width, height)| {
                [width, height].iter().all(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
            })
    };
    sizes.as_array().is_none_or(|sizes| sizes.iter().all(|size| size.as_str().is_none_or(is_size)))
}

fn server_info(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value) -> Option<bool>) {
    for call in e.calls().filter(|call| call.has_result()) {
        let result = call.result().unwrap_or(&Value::Null);
        let info = match call.method() {
            "initialize" if !e.is_modern() => result.get("serverInfo").unwrap_or(&Value::Null),
            _ if !e.is_modern() => continue,
            _ => match result.pointer("/_meta/io.modelcontextprotocol~1serverInfo") {
                Some(info) => info,
                None => continue,
            },
        };
        let is_known = j.violations.iter().any(|it| it.found == shown(info));
        let Some(holds) = holds(info).filter(|_| !is_known) else { continue };
        j.check_at(holds, None, call.places(), || shown(info));
    }
}

fn annotations(e: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    for message in e.received() {
        visit(message, &mut |members| {
            if let Some(value) = members.get("annotations").and_then(|it| it.get(key)) {
                j.check(holds(value), message, || format!("`{key}: {}`", shown(value)));
            }
        });
    }
}

/// Whether a text begins as an ISO 8601 date and has a time.
fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }).collect();
    shape.starts_with("0000-00-00T00:00")
}
