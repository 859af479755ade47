//! Servers in a variable: a JSON array of code_agent's server objects, each with its `name`.

use crate::config::{
    Examined, Machine, Source,
    check::{self, Subject},
    dialect::{self, Detected},
    document,
    examine::unreadable,
    read::read_list,
    secret::secrets_of,
};

pub(super) const SERVERS: &str = "CODE_AGENT_MCP_SERVERS";
pub(super) const CONFIG_PATH: &str = "CODE_AGENT_MCP_CONFIG_PATH";

/// Reads and checks the servers of the variable's value.
pub(super) fn examine(text: &str, machine: &Machine) -> Examined {
    let source = Source::new(format!("${SERVERS}"), text);
    let document = match document::read(&source, None) {
        Ok(document) => document,
        Err(problems) => return unreadable(&source, problems),
    };
    let (dialect, root) = (dialect::OF_THE_VARIABLES, &document.root);
    let mut findings = Vec::new();
    document.judge(&source, dialect, &mut findings);
    let config = read_list(root, dialect, &source, &mut findings);
    check::all(&Subject { config: &config, root, source: &source, machine: Some(machine) }, &mut findings);
    findings.sort_by_key(|finding| finding.problem.span.start);
    let secrets = secrets_of(&source, Some(root));
    let detected = Some(Detected { dialect, why: "the variable is its own".into() });
    Examined { source, is_readable: true, detected, config: Some(config), secrets, findings }
}
