//! The Static Analysis Results Interchange Format, as GitHub and editors read it (OASIS SARIF 2.1.0).

use std::{
    borrow::Cow,
    fmt::Write,
    path::{Component, Path},
    sync::Arc,
};

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{File, Layout, Report, explanation, place::Positions};
use crate::config::finding::{Code, Finding, Severity, codes};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Json,
    invocations: Json,
    column_kind: &'static str,
    results: Vec<Found>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    rule_id: &'static str,
    rule_index: Option<usize>,
    level: &'static str,
    message: Text,
    locations: [Location; 1],
}

#[derive(Serialize)]
struct Text {
    text: Cow<'static, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: Physical,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_locations: Option<[Logical; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    artifact_location: Artifact,
    region: Region,
}

#[derive(Serialize)]
struct Artifact {
    uri: Arc<str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
    end_line: usize,
    end_column: usize,
}

#[derive(Serialize)]
struct Logical {
    name: Arc<str>,
}

pub(super) fn render(report: &Report, layout: &Layout) -> Vec<u8> {
    let rules: Vec<_> = codes::ALL.iter().map(|code| rule(code)).collect();
    let run = Run {
        tool: json!({ "driver": { "name": "rehearse", "version": env!("CARGO_PKG_VERSION"), "rules": rules } }),
        invocations: json!([{ "executionSuccessful": true }]),
        column_kind: "unicodeCodePoints",
        results: report.files.iter().flat_map(|file| results(report, file, layout)).collect(),
    };
    let mut bytes =
        serde_json::to_vec_pretty(&Log { schema: SCHEMA, version: "2.1.0", runs: [run] }).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn rule(code: &Code) -> Json {
    let help = explanation(code).unwrap_or(code.title);
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

fn results(report: &Report, file: &File, layout: &Layout) -> Vec<Found> {
    let told: Vec<_> = report.told(file).collect();
    let positions = Positions::of(&file.source, &told);
    let uri = Arc::from(uri(&file.path, &layout.directory));
    told.into_iter().map(|finding| result(finding, &positions, &uri)).collect()
}

fn result(finding: Finding, positions: &Positions, uri: &Arc<str>) -> Found {
    let ((start_line, start_column), (end_line, end_column)) = positions.both(finding.problem.span);
    let message = finding.problem.message;
    let text = match &finding.problem.hint {
        Some(hint) => format!("{message} ({hint})").into(),
        None => message,
    };
    let physical_location = Physical {
        artifact_location: Artifact { uri: Arc::clone(uri) },
        region: Region { start_line, start_column, end_line, end_column },
    };
    let logical_locations = finding.server.map(|name| [Logical { name }]);
    Found {
        rule_id: finding.code.name,
        rule_index: codes::ALL.iter().position(|code| *code == finding.code),
        level: level(finding.code),
        message: Text { text },
        locations: [Location { physical_location, logical_locations }],
    }
}

/// A path as a URI, relative to the folder if it is below it.
fn uri(path: &str, directory: &Path) -> String {
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
