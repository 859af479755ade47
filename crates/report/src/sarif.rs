//! The Static Analysis Results Interchange Format, as GitHub and editors read it (OASIS SARIF 2.1.0).

use std::{
    fmt::Write,
    path::{Component, Path},
};

use serde_json::{Value as Json, json};

use crate::{
    summary::{Alert, AlertRule, Outcome, Rule, Scan},
    text::{beginning, printable_text},
};

/// GitHub shows no more results.
const MOST: usize = 5000;
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// A log with a run for each scan. Paths are relative to the folder.
pub(crate) fn render<'s>(scans: impl Iterator<Item = &'s Scan>, directory: &Path) -> Vec<u8> {
    let runs: Vec<_> = scans.map(|scan| run(scan, directory)).collect();
    let mut log = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": runs });
    remove_nulls(&mut log);
    format!("{log:#}\n").into_bytes()
}

fn run(scan: &Scan, directory: &Path) -> Json {
    let rules: Vec<_> = scan.rules.iter().map(rule).collect();
    let results: Vec<_> = scan.alerts.iter().take(MOST).map(|alert| result(scan, alert, directory)).collect();
    json!({
        "tool": { "driver": { "name": "rehearse", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
        "automationDetails": scan.category.as_ref().map(|id| json!({ "id": id })),
        "invocations": [{ "executionSuccessful": scan.is_complete }],
        "columnKind": "unicodeCodePoints",
        "results": results,
    })
}

fn rule(AlertRule { id, outcome, rule, area }: &AlertRule) -> Json {
    let Rule { text, help, link } = rule;
    let (help, link) = (help.as_ref().unwrap_or(text), Some(link).filter(|link| !link.is_empty()));
    let level = level(*outcome);
    json!({
        "id": id,
        "shortDescription": { "text": text },
        "helpUri": link,
        "help": {
            "text": link.map_or_else(|| help.clone(), |link| format!("{help} {link}")),
            "markdown": link.map_or_else(|| help.clone(), |link| format!("{help}\n\n[{}]({link})", rule.link_name())),
        },
        "defaultConfiguration": { "level": level },
        // GitHub has another word for a note.
        "properties": {
            "tags": ["mcp", area],
            "problem.severity": if level == "note" { "recommendation" } else { level },
        },
    })
}

fn level(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Warning => "warning",
        Outcome::Info => "note",
        _ => "error",
    }
}

fn result(scan: &Scan, alert: &Alert, directory: &Path) -> Json {
    let (end_line, end_column) = alert.place.end.unzip();
    json!({
        "ruleId": alert.rule,
        "ruleIndex": scan.rules.iter().position(|rule| rule.id == alert.rule),
        "level": level(alert.outcome),
        "message": { "text": printable_text(&beginning(&alert.message)) },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(&alert.place.file, directory) },
                "region": {
                    "startLine": alert.place.line,
                    "startColumn": alert.place.column,
                    "endLine": end_line,
                    "endColumn": end_column,
                },
            },
            "logicalLocations": alert.subject.as_ref().map(|[name, path]| json!([{ "name": name, "fullyQualifiedName": path }])),
        }],
        "partialFingerprints": alert.fingerprint.as_ref().map(|fingerprint| json!({ "rehearse/v1": fingerprint })),
        "suppressions": alert.accepted.as_ref().map(|why| json!([{ "kind": "external", "justification": why }])),
    })
}

/// Removes the members that have no value.
fn remove_nulls(json: &mut Json) {
    match json {
        Json::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Json::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// A path as a URI, relative to the folder if it is below it.
fn uri(path: &str, directory: &Path) -> String {
    let path = Path::new(path);
    let relative = path.strip_prefix(directory).unwrap_or(path);
    if let Some(uri) = relative.to_str().and_then(uri_of_windows) {
        return uri;
    }
    let mut parts = Vec::new();
    for component in relative.components() {
        match component {
            Component::CurDir => {}
            Component::RootDir => parts.push(String::new()),
            Component::ParentDir => parts.push("..".to_owned()),
            Component::Normal(part) => parts.push(encoded(&part.to_string_lossy())),
            Component::Prefix(prefix) => parts.push(encoded(&prefix.as_os_str().to_string_lossy())),
        }
    }
    let scheme = if relative.is_absolute() { "file://" } else { "" };
    format!("{scheme}{}", parts.join("/"))
}

/// A path with a drive or a server: `file:///C:/x`, `file://server/share` (RFC 8089, E.2 and E.3).
fn uri_of_windows(path: &str) -> Option<String> {
    let (root, rest) = match path.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => {
            (format!("file:///{}/", &path[..2]), &path[3..])
        }
        [b'\\', b'\\', ..] => ("file://".to_owned(), &path[2..]),
        _ => return None,
    };
    let parts: Vec<_> = rest.split(['\\', '/']).map(encoded).collect();
    Some(root + &parts.join("/"))
}

/// A segment of a path (RFC 3986, 2.3); a colon would make a scheme of the first.
fn encoded(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => out.push(byte.into()),
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_relative_uri_where_it_can() {
        let uri = |path| uri(path, Path::new("/home/ada"));
        assert_eq!(uri("./a b/ü:%.json"), "a%20b/%C3%BC%3A%25.json");
        assert_eq!(uri("/home/ada/.cursor/mcp.json"), ".cursor/mcp.json");
        assert_eq!(uri("../x.json"), "../x.json");
        if cfg!(unix) {
            assert_eq!(uri("/etc/mcp.json"), "file:///etc/mcp.json");
        }
        assert_eq!(uri("<stdin>"), "%3Cstdin%3E");
        assert_eq!(uri(r"C:\a b\mcp.json"), "file:///C:/a%20b/mcp.json");
        assert_eq!(uri(r"\\files\ada\mcp.json"), "file://files/ada/mcp.json");
    }
}
