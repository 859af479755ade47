//! `execute_code`: programs in JavaScript, on an embedded QuickJS.
//!
//! The program is the body of an async function. It runs in a process of its own, [`work`], which has no files, no
//! processes and no network, but the tools.

#[cfg(feature = "quickjs")]
mod worker;

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};
use tokio::process::Command;

#[cfg(feature = "quickjs")]
pub use self::worker::{WorkerError, work};
use rehearse_system::program;

use crate::{
    Definition, Tool,
    codegen::{Language, javascript_functions},
    execution::{CallError, Execution, ExecutionError, Limits, ProgramEnd, ToolCall},
    process::run,
};

/// The name of the tool.
pub const NAME: &str = "execute_code";

/// The worker stops its program itself, unless that is in a loop of the engine.
const GRACE: Duration = Duration::from_secs(1);
const DESCRIPTION: &str = include_str!("description.md");

/// A program that calls [`work`] with its standard streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub program: PathBuf,
    pub args: Vec<String>,
}

/// The tool for a model; `max_timeout` is in seconds.
pub fn definition(tools: &[Tool], max_timeout: u64) -> Definition {
    let description = DESCRIPTION.replace("{definitions}", &Language::TypeScript.definitions(tools));
    Definition::new(NAME, description, "The body of an async function in JavaScript", max_timeout)
}

/// Runs a program. `call` answers its tool calls, several at a time; the arguments are not checked. Dropping the future
/// kills the process.
///
/// # Errors
/// The worker cannot be started.
pub async fn execute<F>(
    worker: &Worker,
    code: &str,
    tools: &[Tool],
    limits: &Limits,
    call: impl Fn(ToolCall) -> F,
) -> Result<Execution, ExecutionError>
where
    F: Future<Output = Result<Value, CallError>>,
{
    let mut command = Command::new(&worker.program);
    command.args(&worker.args).env_clear().envs(program::required_variables()).current_dir("/");
    let first = json!({
        "code": code,
        "tools": javascript_functions(tools),
        "milliseconds": u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX),
        "memory": limits.memory,
    });
    let limits = &Limits { grace: limits.grace.min(GRACE), ..*limits };
    let ended = run(command, Some(first), tools, limits, false, call).await?;
    Ok(ended.into_execution(limits, |mut message| {
        let text = message.remove("message").and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
        match message.get("end").and_then(Value::as_str) {
            Some("success") => ProgramEnd::Success,
            Some("exception") => ProgramEnd::Exception(text),
            Some("compile error") => ProgramEnd::CompileError(text),
            _ => ProgramEnd::TimedOut(Some(text).filter(|text| !text.is_empty())),
        }
    }))
}
