//! `execute_go_code`: programs in Go, with the toolchain of this machine.
//!
//! A program is compiled with the standard library alone; nothing is downloaded. Imports that are missing or not used
//! are errors of the compiler, which the model sees. Unlike a program of [`quickjs`](crate::quickjs) it can read files
//! and use the network; it does not get our environment.

use std::{fs, path::Path, process::Stdio, time::Duration};

use rehearse_system::{process::ProcessGroup, program};
use serde_json::Value;
use tokio::{io::AsyncReadExt, process::Command, time::timeout};

use crate::{
    Definition, Tool,
    codegen::{Language, go_program},
    execution::{CallError, Execution, ExecutionError, Limits, ProgramEnd, ToolCall},
    process::run,
};

/// The name of the tool.
pub const NAME: &str = "execute_go_code";

const DESCRIPTION: &str = include_str!("description.md");
/// The compiled program.
const PROGRAM: &str = "program.exe";
/// How long the compiler may take.
const BUILD_TIME: Duration = Duration::from_secs(180);
/// What the compiler and a program get of our environment.
const ENVIRONMENT: &[&str] =
    &["GOCACHE", "GOROOT", "HOME", "LOCALAPPDATA", "PATH", "TEMP", "TMPDIR", "USERPROFILE", "XDG_CACHE_HOME"];

/// A Go toolchain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    program: String,
    /// Such as `go1.24.3`.
    version: String,
}

impl Toolchain {
    /// Asks `go`, a program or its path, for its version; `None` if it is not there.
    pub async fn find(go: &str) -> Option<Toolchain> {
        let mut command = command(go);
        let output = command.args(["env", "GOVERSION"]).output().await.ok().filter(|output| output.status.success())?;
        let version = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        Some(Toolchain { program: go.to_owned(), version }).filter(|found| found.version.starts_with("go"))
    }

    /// Such as `go1.24.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The version for `go.mod`.
    fn language(&self) -> String {
        let parts: Vec<_> = self.version.trim_start_matches("go").split('.').take(2).collect();
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.len() == 2 && parts.iter().all(is_number) { parts.join(".") } else { "1.22".to_owned() }
    }
}

fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::from(program::command(program, None));
    command.env_clear().envs(program::required_variables());
    command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
        .env("GOTOOLCHAIN", "local")
        .env("GOPROXY", "off")
        .env("GOFLAGS", "")
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off");
    command.kill_on_drop(true).stdin(Stdio::null());
    command
}

/// The tool for a model; `max_timeout` is in seconds.
pub fn definition(toolchain: &Toolchain, tools: &[Tool], max_timeout: u64) -> Definition {
    let description =
        DESCRIPTION.replace("{version}", &toolchain.version).replace("{definitions}", &Language::Go.definitions(tools));
    Definition::new(NAME, description, "The file run.go of the package main, with func Run", max_timeout)
}

/// Compiles a program in `folder`, an empty one that the caller removes, and runs it. `call` answers its tool calls, several at a time; the arguments are not checked.
/// Dropping the future kills the compiler and the program.
///
/// # Errors
/// The files cannot be written, or the toolchain cannot be started.
pub async fn execute<F>(
    toolchain: &Toolchain,
    folder: &Path,
    code: &str,
    tools: &[Tool],
    limits: &Limits,
    call: impl Fn(ToolCall) -> F,
) -> Result<Execution, ExecutionError>
where
    F: Future<Output = Result<Value, CallError>>,
{
    write_program(folder, toolchain, code, tools, limits).map_err(ExecutionError::Files)?;
    if let Some(error) = build(toolchain, folder).await? {
        let (outcome, output) = (ProgramEnd::CompileError(error), String::new());
        return Ok(Execution { outcome, output, content: Vec::new(), time: limits.time });
    }
    let mut program = command(folder.join(PROGRAM));
    program.current_dir(folder);
    let ended = run(program, None, tools, limits, true, call).await?;
    let is_timed_out = ended.is_timed_out;
    Ok(ended.into_execution(limits, |mut message| match message.remove("error") {
        _ if is_timed_out => ProgramEnd::TimedOut(None),
        Some(Value::String(error)) => ProgramEnd::Exception(error),
        _ => ProgramEnd::Success,
    }))
}

fn write_program(
    folder: &Path,
    toolchain: &Toolchain,
    code: &str,
    tools: &[Tool],
    limits: &Limits,
) -> std::io::Result<()> {
    let version = toolchain.language();
    let sdk = folder.join("sdk");
    fs::create_dir_all(sdk.join("mcp"))?;
    fs::write(
        folder.join("go.mod"),
        format!(
            "module program\n\ngo {version}\n\nrequire github.com/modelcontextprotocol/go-sdk v1.0.0\n\n\
         replace github.com/modelcontextprotocol/go-sdk => ./sdk\n"
        ),
    )?;
    fs::write(sdk.join("go.mod"), format!("module github.com/modelcontextprotocol/go-sdk\n\ngo {version}\n"))?;
    fs::write(sdk.join("mcp/content.go"), include_str!("content.go.txt"))?;
    let main = include_str!("main.go.txt").replace("{memory}", &limits.memory.to_string());
    fs::write(folder.join("main.go"), main)?;
    fs::write(folder.join("tools.go"), go_program(tools))?;
    fs::write(folder.join("run.go"), code)
}

/// The errors of the compiler, if there are any.
async fn build(toolchain: &Toolchain, folder: &Path) -> Result<Option<String>, ExecutionError> {
    let start = |source| ExecutionError::Start { program: toolchain.program.clone(), source };
    let mut go = command(&toolchain.program);
    go.args(["build", "-o", PROGRAM, "."]).current_dir(folder);
    go.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut group = ProcessGroup::start_untracked(go).map_err(start)?;
    let mut errors = String::new();
    let building = async {
        if let Some(mut stderr) = group.take_pipes().stderr {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).await.map_err(start)?;
            errors = String::from_utf8_lossy(&bytes).into_owned();
        }
        group.leader_exit().await.ok_or_else(|| start(std::io::ErrorKind::Interrupted.into()))
    };
    let Ok(status) = timeout(BUILD_TIME, building).await else {
        return Ok(Some(format!("the compiler was killed after {} s", BUILD_TIME.as_secs())));
    };
    Ok((!status?.success()).then_some(errors))
}
