//! The Static Analysis Results Interchange Format, as GitHub and editors read it (OASIS SARIF 2.1.0).

use std::{
    fmt::Write,
    path::{Component, Path},
};

use serde_json::{Value as Json, json};

use super::{Code, File, Finding, Report, Rule, Severity};
use crate::Layout;

/// GitHub shows no more results.
pub(crate) const MOST: usize = 5000;
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

pub(super) fn render(report: &Report, layout: &Layout) -> Vec<u8> {
    let rules: Vec<_> = report.rules.iter().map(rule).collect();
    let results: Vec<_> = report.files.iter().flat_map(|file| results(report, file, layout)).collect();
    log(vec![json!({
        "tool": driver(rules),
        "invocations": [{ "executionSuccessful": true }],
        "columnKind": "unicodeCodePoints",
        "results": results,
    })])
}

/// A log of runs.
pub(crate) fn log(runs: Vec<Json>) -> Vec<u8> {
    let log = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": runs });
    format!("{log:#}\n").into_bytes()
}

/// The tool of a run, with its rules.
pub(crate) fn driver(rules: Vec<Json>) -> Json {
    json!({ "driver": { "name": "rehearse", "version": env!("CARGO_PKG_VERSION"), "rules": rules } })
}

fn rule(Rule { code, help }: &Rule) -> Json {
    json!({
        "id": code.name,
        "shortDescription": { "text": code.title },
        "help": { "text": help, "markdown": help },
        "defaultConfiguration": { "level": level(code) },
    })
}

fn level(code: &Code) -> &'static str {
    match code.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice => "note",
    }
}

fn results(report: &Report, file: &File, layout: &Layout) -> Vec<Json> {
    let uri = uri(&file.path, &layout.directory);
    report.shown(file).map(|finding| result(report, file, finding, &uri)).collect()
}

fn result(report: &Report, file: &File, finding: &Finding, uri: &str) -> Json {
    let ((start_line, start_column), (end_line, end_column)) = file.positions(finding);
    let message = &finding.problem.message;
    let text = match &finding.problem.hint {
        Some(hint) => format!("{message} ({hint})"),
        None => message.to_string(),
    };
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri },
            "region": {
                "startLine": start_line,
                "startColumn": start_column,
                "endLine": end_line,
                "endColumn": end_column,
            },
        },
    });
    if let Some(server) = &finding.server {
        location["logicalLocations"] = json!([{ "name": **server }]);
    }
    json!({
        "ruleId": finding.code.name,
        "ruleIndex": report.rules.iter().position(|rule| rule.code == finding.code),
        "level": level(finding.code),
        "message": { "text": text },
        "locations": [location],
    })
}

/// A path as a URI, relative to the folder if it is below it.
pub(crate) fn uri(path: &str, directory: &Path) -> String {
    let path = Path::new(path);
    let relative = path.strip_prefix(directory).unwrap_or(path);
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
        assert_eq!(uri("/etc/mcp.json"), "file:///etc/mcp.json");
        assert_eq!(uri("<stdin>"), "%3Cstdin%3E");
    }
}
