//! The Static Analysis Results Interchange Format (OASIS SARIF 2.1.0), as GitHub reads it. A violation of a protocol has
//! no line, so it stands at the server's entry in its config file.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

use super::{CheckResult, CheckedRow, CheckedServer, ConfigPlace, FoundViolation, RowVerdict};
use crate::findings::sarif::{MOST, driver, uri};

/// The run of a log.
pub(crate) fn run(result: &CheckResult, directory: &Path) -> Value {
    let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
    let mut results: BTreeMap<String, Value> = BTreeMap::new();
    for server in &result.servers {
        let Some(place) = &server.place else { continue };
        for (row, versions) in violated(server) {
            rules.entry(&row.id).or_insert_with(|| rule(row));
            for violation in row.violations.iter().filter(|violation| violation.verdict <= RowVerdict::Warn) {
                let fingerprint = fingerprint(row, place, violation.subject.as_deref());
                let found = || self::result(row, &versions, place, violation, &fingerprint, directory);
                if results.len() < MOST {
                    results.entry(fingerprint.clone()).or_insert_with(found);
                }
            }
        }
    }
    let servers: Vec<_> =
        result.servers.iter().filter_map(|server| Some(server.place.as_ref()?.server.as_str())).collect();
    json!({
        "tool": driver(rules.into_values().collect()),
        // Two runs of one category replace each other.
        "automationDetails": { "id": format!("rehearse/check/{}/", servers.join(",")) },
        "invocations": [{ "executionSuccessful": result.servers.iter().all(|server| server.error.is_none()) }],
        "columnKind": "unicodeCodePoints",
        "results": results.into_values().collect::<Vec<_>>(),
    })
}

/// The violated rows of a server, each once, with the versions in which it is violated.
fn violated(server: &CheckedServer) -> Vec<(&CheckedRow, Vec<&'static str>)> {
    let mut found: Vec<(&CheckedRow, Vec<&'static str>)> = Vec::new();
    for version in &server.versions {
        let is_violated =
            |row: &&CheckedRow| matches!(row.verdict, RowVerdict::Fail | RowVerdict::Warn | RowVerdict::Accepted);
        for row in version.rows.iter().filter(is_violated) {
            match found.iter_mut().find(|(known, _)| known.id == row.id) {
                Some((_, versions)) => versions.push(version.version.as_str()),
                None => found.push((row, vec![version.version.as_str()])),
            }
        }
    }
    found
}

fn rule(row: &CheckedRow) -> Value {
    let help = row.help.as_deref().unwrap_or(&row.rule);
    json!({
        "id": row.id,
        "shortDescription": { "text": row.rule },
        "helpUri": row.spec,
        "help": { "text": format!("{help} {}", row.spec), "markdown": format!("{help}\n\n[Specification]({})", row.spec) },
        "defaultConfiguration": { "level": level(row.verdict) },
        "properties": { "tags": ["mcp", row.area()], "problem.severity": level(row.verdict) },
    })
}

fn level(verdict: RowVerdict) -> &'static str {
    if verdict == RowVerdict::Warn { "warning" } else { "error" }
}

fn result(
    row: &CheckedRow,
    versions: &[&str],
    place: &ConfigPlace,
    violation: &FoundViolation,
    fingerprint: &str,
    directory: &Path,
) -> Value {
    let subject = violation.subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
    let text = format!("{} {subject}found {} (MCP {})", row.rule, violation.found, versions.join(", "));
    let name = violation.subject.as_deref().unwrap_or(&place.server);
    let mut result = json!({
        "ruleId": row.id,
        "level": level(violation.verdict),
        "message": { "text": text },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(&place.file, directory) },
                "region": { "startLine": place.line, "startColumn": place.column },
            },
            "logicalLocations": [{ "name": name, "fullyQualifiedName": format!("{}/{name}", place.server) }],
        }],
        "partialFingerprints": { "rehearse/v1": fingerprint },
    });
    if let Some(reason) = &violation.accepted {
        result["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
    }
    result
}

/// The same for the same violation in every run, wherever the entry of the server stands.
fn fingerprint(row: &CheckedRow, place: &ConfigPlace, subject: Option<&str>) -> String {
    format!("{}/{}/{}", row.id, place.server, subject.unwrap_or_default())
}
