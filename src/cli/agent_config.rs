//! The agent of a config, as `serve`, `chat` and `validate-config` read it.

use std::{path::Path, sync::Arc};

use super::{Failure, process_guard::program, sources::diagnostics, style};
use rehearse_agent::{
    CodeEngine, CodeMode,
    setup::{AgentSetup, SetupContext},
};
use rehearse_client_configs::{
    Machine,
    agent::{AgentConfig, CodeModeConfig},
    codes, dialect, lint,
};
use rehearse_code_mode::{MAX_TIMEOUT, go::Toolchain, quickjs::Worker};
use rehearse_document::{Diagnostics, Node, Problems, Source};
use rehearse_report::findings::Finding;

/// Checks a config that defines a subagent, and all files that it names.
///
/// # Errors
/// Everything that is missing or wrong.
pub(super) fn check_agent(root: &Node, folder: &Path) -> Result<(), Problems> {
    let variables = Machine::here().variables;
    let config = AgentConfig::read(root, &variables)?;
    AgentSetup::new(&config, &SetupContext { folder, variables: &variables, model: None }).map(drop)
}

/// Reads the agent of a config. Keys that nothing reads are warnings.
///
/// # Errors
/// Everything that is missing or wrong, with its position.
pub(super) fn read_agent(path: &Path) -> Result<(Arc<Source>, AgentConfig), Failure> {
    let unreadable = |why: String| Failure::Usage(format!("cannot read {}{why}", path.display()));
    let source = Source::read(path).map_err(|error| unreadable(format!(": {error}")))?;
    let report = lint(&source, Some(path), dialect::by_name("cpe"), None);
    let ignored = |finding: &&Finding| [&codes::UNKNOWN_KEY, &codes::EXTRA_KEY].contains(&finding.code);
    for found in diagnostics(report.findings.iter().filter(ignored), &report, false).0 {
        style::warn(&Diagnostics(vec![found]).to_string());
    }
    let root = report.root.as_ref().ok_or_else(|| unreadable(String::new()))?;
    let config = AgentConfig::read(root, &Machine::here().variables);
    let config = config.map_err(|problems| Failure::Invalid(problems.in_source(&source)))?;
    Ok((source, config))
}

/// How a config wants code mode: in Go if this machine has it, else in JavaScript.
///
/// # Errors
/// There is no engine.
pub(super) async fn code_mode(wanted: Option<&CodeModeConfig>) -> Result<Option<CodeMode>, Failure> {
    let Some(wanted) = wanted else { return Ok(None) };
    let engine = match Toolchain::find("go").await {
        Some(toolchain) => CodeEngine::Go(toolchain),
        None if cfg!(feature = "code-mode") => {
            let program = program()?;
            CodeEngine::QuickJs(Worker { program, args: vec!["__code-worker".to_owned()] })
        }
        None => return Err(Failure::cannot("code mode needs `go`, or a build with the feature `code-mode`")),
    };
    let max_timeout = wanted.max_timeout.unwrap_or(MAX_TIMEOUT);
    Ok(Some(CodeMode { engine, excluded: wanted.excluded_tools.clone(), max_timeout }))
}
