//! `docs/hosts.md`: what was measured of hosts (`interop/hosts/measured`), and what their rules say of the rest. No rule
//! contradicts a measurement.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Value as Json, json};

use crate::{
    builtin, builtins,
    condition::{Condition, ItemText, Size, Work},
    profile::Rule,
    text_limit::TextLimit,
};
use rehearse_protocol::{List, Transport};
use rehearse_report::profile::{ProfileKind, RuleLevel};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: PathBuf) -> Json {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

/// Each host in each version that was measured, by the names of their files.
fn measurements() -> Vec<Json> {
    let files = std::fs::read_dir(root().join("interop/hosts/measured")).expect("the folder");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn text<'a>(value: &'a Json, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn rules(host: &str) -> impl Iterator<Item = &'static Rule> {
    builtin(host).into_iter().flat_map(|profile| &profile.rules)
}

/// What a rule says, as findings.
fn claims(rule: &Rule) -> Vec<(String, Json)> {
    let one = |key: &str, value: Json| vec![(key.to_owned(), value)];
    let each = |prefix: &str, names: &[(&str, &str)], known: &dyn Fn(&str) -> bool| -> Vec<(String, Json)> {
        names.iter().map(|(name, key)| (format!("{prefix}.{key}"), known(name).into())).collect()
    };
    match &rule.condition {
        Condition::Name { list: List::Tools, limit: TextLimit::MaxLength(max), is_prefixed: true } => {
            one("name.length", json!({ "works": max }))
        }
        Condition::Count { list: List::Tools, max } => one("tools.count", json!({ "works": max })),
        Condition::Text { of: ItemText::Description, limit: TextLimit::MaxLength(max) } => {
            one("tools.description", json!({ "works": max }))
        }
        // Advice about instructions is no limit of the host.
        Condition::Instructions(TextLimit::MaxLength(max)) if rule.level > RuleLevel::Advice => {
            one("instructions", json!({ "works": max }))
        }
        Condition::ResultSize(Size::Characters(max)) => one("result.length", json!({ "works": max })),
        Condition::Time { of, max } => {
            let key = match of {
                Work::Start => "time.start",
                Work::List => "time.list",
                Work::Call => "time.call",
            };
            one(key, json!({ "works": max.as_secs() }))
        }
        Condition::Transports(known) => {
            let is_known = |name: &str| known.iter().any(|it: &Transport| it.to_string() == name);
            each("transport", &[("stdio", "stdio"), ("http", "http"), ("sse", "sse")], &is_known)
        }
        Condition::ProtocolVersions(known) => {
            let is_known = |name: &str| known.iter().any(|it| it == name);
            each("version", &[("2024-11-05", "2024-11-05"), ("2026-07-28", "2026-07-28")], &is_known)
        }
        Condition::Content(known) => {
            let kinds = [("text", "text"), ("image", "image"), ("audio", "audio"), ("resource", "resource")];
            let kinds: Vec<_> = kinds.into_iter().chain([("resource_link", "link")]).collect();
            each("result", &kinds, &|name| known.iter().any(|it| it == name))
        }
        Condition::Feature(feature) => match feature.name() {
            "instructions" => one("instructions", json!({ "works": 0 })),
            "structuredContent" => one("result.data", false.into()),
            "pagination" => one("tools.pages", false.into()),
            "listChanged" => one("tools.listChanged", false.into()),
            name @ ("prompts" | "resources" | "resourceTemplates" | "progress" | "logging") => {
                one(&format!("asks.{name}"), false.into())
            }
            name => one(&format!("feature.{name}"), false.into()),
        },
        _ => Vec::new(),
    }
}

/// Whether both can be true.
fn agree(claim: &Json, found: &Json) -> bool {
    let number = |key: &str| found[key].as_u64();
    match (claim["works"].as_u64(), found) {
        (Some(most), _) => number("works").is_none_or(|it| it <= most) && number("fails").is_none_or(|it| most < it),
        (None, Json::String(word)) => *claim == Json::Bool(word == "comes through"),
        (None, _) => claim == found,
    }
}

/// A finding as the text of a cell.
fn cell(key: &str, found: &Json) -> String {
    let unit = if key.starts_with("time.") { " s" } else { "" };
    let number = |key: &str| found[key].as_u64();
    let sign = match found {
        Json::Bool(true) => "✓",
        Json::Bool(false) => "✗",
        Json::String(text) if key == "version.preferred" => text.as_str(),
        Json::String(text) => match text.as_str() {
            "comes through" | "kept" => "✓",
            "blocks the server" => "‼",
            "left out" | "not called" => "✗",
            text if text.contains("does not") => "✗",
            _ => "▲",
        },
        _ if number("works") == Some(0) => "✗",
        _ => "",
    };
    match (number("works"), number("fails")) {
        _ if !sign.is_empty() => sign.to_owned(),
        (Some(most), None) => format!("{most}{unit} or more"),
        (Some(most), Some(least)) if least > most + 1 => format!("{most} to {least}{unit}"),
        (Some(most), Some(_)) => format!("{most}{unit}"),
        _ => {
            let kept = text(found, "kept").chars().map(|it| if it == ' ' { '␣' } else { it });
            kept.map(|it| format!("`{it}`")).collect::<Vec<_>>().join(" ")
        }
    }
}

/// What the rules of a host say, by finding: the cell, and when it was seen.
fn cited(host: &str) -> BTreeMap<String, (String, &'static str)> {
    let mut rules: Vec<_> = rules(host).collect();
    // Of two rules about one thing, the harder one is shown.
    rules.sort_by_key(|rule| rule.level);
    let mut cells = BTreeMap::new();
    for rule in rules {
        for (key, claim) in claims(rule) {
            let text = match claim["works"].as_u64() {
                Some(most) if most > 0 => cell(&key, &json!({ "works": most, "fails": most + 1 })),
                _ => cell(&key, &claim),
            };
            cells.insert(key, (format!("[{text}]({})", rule.source), rule.seen.as_str()));
        }
    }
    cells
}

fn table(heads: Vec<String>, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let below = heads.iter().map(|_| "---".to_owned()).collect();
    [heads, below].into_iter().chain(rows).map(line).collect()
}

/// The hosts as rows; and the constructs of schemas, with the hosts as columns.
fn tables(measured: &[Json]) -> String {
    let title = |it: &Json| format!("{} {}", text(it, "title"), text(it, "version"));
    let mut page = String::new();
    let columns = read(root().join("interop/hosts/columns.json"));
    for group in columns.as_array().into_iter().flatten() {
        let keys: Vec<_> = group[1].as_array().into_iter().flatten().collect();
        let words = |at: usize| keys.iter().map(move |it| it[at].as_str().unwrap_or_default());
        let mut rows = Vec::new();
        for it in measured {
            let cited = cited(text(it, "host"));
            let cells = words(0).map(|key| match &it["found"][key] {
                Json::Null => cited.get(key).map(|(text, _)| text.clone()).unwrap_or_default(),
                found => cell(key, found),
            });
            let head = [title(it), format!("measured {}", text(it, "date"))];
            rows.push(head.into_iter().chain(cells).collect::<Vec<_>>());
        }
        let is_measured = |name: &str| measured.iter().any(|it| text(it, "host") == name);
        for host in builtins().iter().filter(|it| it.kind == ProfileKind::Host && !is_measured(&it.name)) {
            let cited = cited(&host.name);
            let Some(seen) = words(0).filter_map(|key| cited.get(key)).map(|(_, seen)| *seen).max() else { continue };
            let cells = words(0).map(|key| cited.get(key).map(|(text, _)| text.clone()).unwrap_or_default());
            rows.push([host.title.clone(), format!("cited {seen}")].into_iter().chain(cells).collect());
        }
        rows.sort();
        let heads = ["host", "seen"].into_iter().chain(words(1)).map(str::to_owned).collect();
        page.push_str(&format!("\n## {}\n\n{}", group[0].as_str().unwrap_or_default(), table(heads, rows)));
    }
    page.push_str("\n## Input schemas\n");
    for (group, heading) in [("schema.valid.", "Valid in JSON Schema 2020-12"), ("schema.invalid.", "Not valid")] {
        let found = measured.iter().filter_map(|it| it["found"].as_object());
        let keys: std::collections::BTreeSet<_> = found.flat_map(|found| found.keys()).collect();
        let row = |key: &String| {
            let name = key.strip_prefix(group)?.to_owned();
            Some(std::iter::once(name).chain(measured.iter().map(|it| cell(key, &it["found"][key]))).collect())
        };
        let heads = std::iter::once("construct".to_owned()).chain(measured.iter().map(title)).collect();
        page.push_str(&format!("\n### {heading}\n\n{}", table(heads, keys.into_iter().filter_map(row))));
    }
    page
}

#[test]
fn the_page_about_hosts_is_that_of_the_measurements() {
    let path = root().join("docs/hosts.md");
    let page = std::fs::read_to_string(&path).expect("the page").replace("\r\n", "\n");
    let (before, _) = page.split_once("<!-- tables -->\n").expect("the mark");
    let written = format!("{before}<!-- tables -->\n{}", tables(&measurements()));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &written).expect("writes");
    }
    assert_eq!(page, written, "UPDATE_DOCS=1 writes the page");
}

/// Of the rules about one finding, one at least agrees with it, or says itself that it was tried. That a host asks for
/// something does not say that it is of use there.
#[test]
fn no_rule_contradicts_a_measurement() {
    let measured = measurements();
    for it in &measured {
        let (host, version) = (text(it, "host"), text(it, "version"));
        let is_tried = |rule: &Rule| rule.measured.as_ref().is_some_and(|tried| tried.version == version);
        let mut said: BTreeMap<String, Vec<(&Rule, Json)>> = BTreeMap::new();
        for rule in rules(host) {
            claims(rule).into_iter().for_each(|(key, claim)| said.entry(key).or_default().push((rule, claim)));
        }
        for (key, said) in said.iter().filter(|(key, _)| !key.starts_with("asks.") && it["found"].get(key).is_some()) {
            let found = &it["found"][key];
            let is_so = said.iter().any(|(rule, claim)| is_tried(rule) || agree(claim, found));
            let ids: Vec<_> = said.iter().map(|(rule, claim)| format!("{} says {claim}", rule.id)).collect();
            assert!(is_so, "{host} {version}, {key}: {}; found {found}", ids.join(", "));
        }
    }
    for profile in builtins() {
        for (rule, tried) in profile.rules.iter().filter_map(|rule| Some((rule, rule.measured.as_ref()?))) {
            let is_it = |it: &Json| text(it, "host") == profile.name && text(it, "version") == tried.version;
            assert!(measured.iter().any(is_it), "{}/{} was measured with {}", profile.name, rule.id, tried.version);
        }
    }
}
