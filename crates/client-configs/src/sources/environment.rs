//! Servers in a variable: a JSON array of code_agent's server objects, each with its `name`.

use std::path::Path;

use super::report;
use crate::{LintReport, Machine, dialect::VARIABLES_DIALECT, document, lint::unreadable, read::read_list};
use rehearse_document::Source;

pub(super) const SERVERS: &str = "CODE_AGENT_MCP_SERVERS";
pub(super) const CONFIG_PATH: &str = "CODE_AGENT_MCP_CONFIG_PATH";

/// Reads and checks the servers of the variable's value.
pub(super) fn lint(text: &str, machine: &Machine) -> LintReport {
    let source = Source::new(format!("${SERVERS}"), text);
    let document = match document::read(&source, Some(Path::new("variable.json")), None) {
        Ok(document) => document,
        Err(problems) => return unreadable(&source, problems),
    };
    let mut findings = Vec::new();
    document.check_syntax(&document.root, &source, &VARIABLES_DIALECT, &mut findings);
    let config = read_list(&document.root, &VARIABLES_DIALECT, &source, &mut findings);
    report(&source, &document, config, findings, (machine, "set by the environment variable"))
}
