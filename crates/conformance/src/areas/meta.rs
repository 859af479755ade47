//! `_meta`, icons, annotations and names.

use rehearse_protocol::Version;
use serde_json::{Map, Value, json};

use super::{
    Judge,
    common::{LISTS, shown},
};
use crate::{Case, Evidence, Judgement, Lane, Material, Message};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("meta.key.prefix-syntax", |e, j| keys(e, j, |prefix, _| prefix.is_none_or(is_prefix))),
    ("meta.key.name-syntax", |e, j| keys(e, j, |_, name| is_name(name))),
    ("meta.key.reserved-prefix", |e, j| keys(e, j, |prefix, name| !is_reserved(e.version, prefix) || is_defined(name))),
    ("meta.value.is-object", |e, j| {
        each(e, j, |members| members.get("_meta"), |meta| meta.is_object());
    }),
    ("meta.request.unknown-key-ignored", |e, j| {
        for call in e.case("lists/unknown-meta").filter(|call| call.response.is_some()) {
            j.check_call(call.result().is_some(), &call);
        }
    }),
    ("meta.icons.src-present", |e, j| icons(e, j, |icon| icon["src"].is_string())),
    ("meta.icons.src-scheme", |e, j| {
        icons(e, j, |icon| {
            let src = icon["src"].as_str().unwrap_or("data:").to_ascii_lowercase();
            ["https:", "http:", "data:"].iter().any(|scheme| src.starts_with(scheme))
        });
    }),
    ("meta.icons.sizes-format", |e, j| icons(e, j, |icon| icon.get("sizes").is_none_or(are_sizes))),
    ("meta.icons.theme-enum", |e, j| {
        icons(e, j, |icon| icon.get("theme").is_none_or(|theme| theme == "light" || theme == "dark"));
    }),
    ("meta.impl.name-version", |e, j| {
        server_info(e, j, |info| Some(info["name"].is_string() && info["version"].is_string()));
    }),
    ("meta.impl.website-uri", |e, j| {
        server_info(e, j, |info| {
            let url = info.get("websiteUrl")?;
            Some(url.as_str().is_some_and(|url| url::Url::parse(url).is_ok_and(|url| url.scheme().starts_with("http"))))
        });
    }),
    ("meta.title.string", titles),
    ("meta.annotations.audience", |e, j| {
        annotations(e, j, "audience", |it| {
            it.as_array().is_some_and(|roles| roles.iter().all(|role| role == "user" || role == "assistant"))
        });
    }),
    ("meta.annotations.priority", |e, j| {
        annotations(e, j, "priority", |it| it.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it)));
    }),
    ("meta.annotations.last-modified", |e, j| {
        annotations(e, j, "lastModified", |it| it.as_str().is_none_or(is_time));
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let Some(method) = material.list_methods().first().copied() else { return Vec::new() };
    let params = json!({ "_meta": { "com.example.rehearse/x": 1 } });
    vec![Case::request("lists/unknown-meta", Lane::Main, method, params)]
}

/// A member of any object of a result or of params, but not of what a tool made up: structured content, schemas.
fn each(
    evidence: &Evidence<'_>,
    j: &mut Judgement,
    member: impl Fn(&Map<String, Value>) -> Option<&Value>,
    holds: impl Fn(&Value) -> bool,
) {
    for message in evidence.received() {
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

fn keys(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(Option<&str>, &str) -> bool) {
    for message in evidence.received() {
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
                j.check_subject(holds, key, message, || format!("the key {key:?}"));
            }
        });
    }
}

fn is_prefix(prefix: &str) -> bool {
    prefix.split('.').all(|label| {
        label.starts_with(|it: char| it.is_ascii_alphabetic())
            && label.ends_with(|it: char| it.is_ascii_alphanumeric())
            && label.chars().all(|it| it.is_ascii_alphanumeric() || it == '-')
    })
}

fn is_name(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or_default();
    name.is_empty()
        || (name.starts_with(|it: char| it.is_ascii_alphanumeric())
            && name.ends_with(|it: char| it.is_ascii_alphanumeric())
            && name.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.')))
}

fn is_reserved(version: Version, prefix: Option<&str>) -> bool {
    let Some(prefix) = prefix else { return false };
    let is_ours = |label: &str| matches!(label, "mcp" | "modelcontextprotocol");
    let mut labels = prefix.split('.');
    match version {
        Version::V2025_06_18 => labels.rev().nth(1).is_some_and(is_ours),
        _ => labels.nth(1).is_some_and(is_ours),
    }
}

fn is_defined(key: &str) -> bool {
    key.starts_with("io.modelcontextprotocol/")
}

fn icons(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value) -> bool) {
    for message in evidence.received() {
        visit(message, &mut |members| {
            for icon in members.get("icons").and_then(Value::as_array).into_iter().flatten() {
                let owner = members.get("name").and_then(Value::as_str).unwrap_or_default();
                j.check_subject(holds(icon), owner, message, || shown(icon));
            }
        });
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

fn server_info(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value) -> Option<bool>) {
    for call in evidence.calls().filter(|call| call.result().is_some()) {
        let result = call.result().unwrap_or(&Value::Null);
        let info = match call.method() {
            "initialize" => result.get("serverInfo").unwrap_or(&Value::Null),
            _ if !evidence.is_modern() => continue,
            _ => match result.pointer("/_meta/io.modelcontextprotocol~1serverInfo") {
                Some(info) => info,
                None => continue,
            },
        };
        let is_known = j.violations.iter().any(|it| it.found == shown(info));
        if let Some(holds) = holds(info).filter(|_| !is_known) {
            j.check_at(holds, None, call.places(), || shown(info));
        }
    }
}

fn titles(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (method, key, name) in LISTS {
        for (call, result) in evidence.results_of(method) {
            for item in result[key].as_array().into_iter().flatten() {
                if let Some(title) = item.get("title") {
                    let subject = item[name].as_str().map(ToOwned::to_owned);
                    j.check_at(title.is_string(), subject, call.places(), || format!("`title: {}`", shown(title)));
                }
            }
        }
    }
}

fn annotations(evidence: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    for message in evidence.received() {
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
