//! Failed scenarios for code scanning (OASIS SARIF 2.1.0), at the lines of their steps.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    CellResult, CellViolation, RunResult, ScenarioResult, Status,
    check::{RowVerdict, message},
    findings::sarif::{MOST, driver, uri},
    text::printable,
};

const STEP: &str = "scenario-step";
const RULE: &str = "scenario-rule";
const CELL: &str = "scenario-cell";

/// The run of a log.
pub(crate) fn run(result: &RunResult, directory: &Path) -> Value {
    let mut results = Vec::new();
    for scenario in &result.scenarios {
        for cell in &scenario.cells {
            for step in cell.steps.iter().filter(|step| step.status == Status::Failed) {
                let messages: Vec<_> = step.problems.iter().map(|problem| problem.message.as_str()).collect();
                let text = format!("{} in {}: {}", step.title, cell.cell, messages.join("; "));
                results.push(self::result(STEP, scenario, cell, step.line, &text, &step.title, directory));
            }
            for CellViolation { server, row } in cell.violations.iter().filter(|it| it.row.verdict == RowVerdict::Fail)
            {
                let text = format!("{server} violates {} in {}: {}", row.id, cell.cell, message(row));
                results.push(self::result(RULE, scenario, cell, 1, &text, &row.id, directory));
            }
            if let (Status::Error, Some(reason)) = (cell.status, &cell.reason) {
                let text = format!("{} could not run: {reason}", cell.cell);
                results.push(self::result(CELL, scenario, cell, 1, &text, "", directory));
            }
        }
    }
    results.truncate(MOST);
    let rules = vec![
        rule(STEP, "A step of a scenario failed: an expectation was not met, or a result differs from its snapshot."),
        rule(RULE, "A server of a scenario violates the MCP specification."),
        rule(CELL, "A scenario could not run: a server did not start, or a file could not be read."),
    ];
    json!({
        "tool": driver(rules),
        "automationDetails": { "id": "rehearse/run/" },
        "invocations": [{ "executionSuccessful": result.totals.errors == 0 }],
        "columnKind": "unicodeCodePoints",
        "results": results,
    })
}

fn rule(id: &str, text: &str) -> Value {
    json!({
        "id": id,
        "shortDescription": { "text": text },
        "help": { "text": text, "markdown": text },
        "defaultConfiguration": { "level": "error" },
        "properties": { "tags": ["mcp", "scenario"] },
    })
}

fn result(
    rule: &str,
    scenario: &ScenarioResult,
    cell: &CellResult,
    line: usize,
    text: &str,
    step: &str,
    directory: &Path,
) -> Value {
    json!({
        "ruleId": rule,
        "level": "error",
        "message": { "text": printable(text) },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(&scenario.path.to_string_lossy(), directory) },
                "region": { "startLine": line.max(1) },
            },
            "logicalLocations": [{ "name": scenario.name, "fullyQualifiedName": format!("{}/{}", scenario.name, cell.cell) }],
        }],
        // The same for the same failure in every run, wherever the step stands.
        "partialFingerprints": { "rehearse/v1": format!("{rule}/{}/{}/{}", scenario.name, cell.cell, printable(step)) },
    })
}
