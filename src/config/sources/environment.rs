//! Servers in a variable: a JSON array of code_agent's server objects, each with its `name`.

use std::path::Path;

use super::examined;
use crate::config::{
    Examined, Machine, Source, dialect::OF_THE_VARIABLES, document, examine::unreadable, read::read_list,
};

pub(super) const SERVERS: &str = "CODE_AGENT_MCP_SERVERS";
pub(super) const CONFIG_PATH: &str = "CODE_AGENT_MCP_CONFIG_PATH";

/// Reads and checks the servers of the variable's value.
pub(super) fn examine(text: &str, machine: &Machine) -> Examined {
    let source = Source::new(format!("${SERVERS}"), text);
    let document = match document::read(&source, Some(Path::new("variable.json"))) {
        Ok(document) => document,
        Err(problems) => return unreadable(&source, problems),
    };
    let mut findings = Vec::new();
    document.judge(&document.root, &source, OF_THE_VARIABLES, false, &mut findings);
    let config = read_list(&document.root, OF_THE_VARIABLES, &source, &mut findings);
    examined(&source, &document, config, findings, (machine, "the variable is its own"))
}
