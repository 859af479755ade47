//! One side of a comparison: a file, a file in git, or a server.

use std::{path::Path, sync::Arc};

use super::file_calls;
use crate::cli::{
    Exit, Failure,
    mcp::{
        self,
        target::{TargetArgs, TokenArgs, connection::ConnectionArgs},
    },
    sources::SourceArgs,
    trace_file,
};
use rehearse_client_configs::{Machine, PathKind};
use rehearse_diff::{DiffSide, Surface, read_snapshot, read_surface};
use rehearse_document::{Node, Source, text::utf8};
use rehearse_system::program;

/// How many bytes of a file say what it is.
const HEAD: usize = 64;

/// Reads a file, or connects to a server. `Err` inside is the exit code after a failure that has been printed.
///
/// # Errors
/// The text names nothing, a file has mistakes, or a server cannot be reached.
pub(super) fn load(
    text: &str,
    sources: &SourceArgs,
    headers: &[String],
    token: &TokenArgs,
    connection: &ConnectionArgs,
) -> Result<Result<DiffSide, Exit>, Failure> {
    let file = Path::new(text);
    if file.is_file() && !is_program(file) {
        return of_file(file).map(Ok);
    }
    let is_url = text.contains("://");
    if let Some((revision, path)) = text.split_once(':').filter(|_| !is_url && !text.contains(char::is_whitespace)) {
        return of_git(text, revision, path).map(Ok);
    }
    let is_name = sources.named_file().is_some() && !is_url && !text.contains(char::is_whitespace);
    let looks_like_file = is_data(file) && !text.contains(char::is_whitespace);
    if looks_like_file && !is_name {
        return Err(Failure::Usage(format!(
            "there is no file {text}; `rehearse surface -- COMMAND > {text}` writes the surface of a server"
        )));
    }
    let (target, name) = match is_name {
        true => (TargetArgs::of_sources(sources), Some(text)),
        false => (TargetArgs::described(text, headers, token), None),
    };
    let servers = mcp::servers(&target, connection, name)?;
    let surface = match mcp::surface_of(connection, &servers)? {
        Ok(surface) => surface,
        Err(exit) => return Ok(Err(exit)),
    };
    Ok(Ok(DiffSide::new(text, surface, None)))
}

/// Whether the name of a file is that of a surface, a trace or a snapshot.
fn is_data(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "json" || it == "jsonl" || it == "snap")
}

/// Whether a file can be started as it is.
fn is_program(path: &Path) -> bool {
    !is_data(path) && Machine::here().path_kind(path) == PathKind::Program
}

fn of_file(path: &Path) -> Result<DiffSide, Failure> {
    let name = path.display().to_string();
    let source = Source::read(path).map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
    let head: String = source.text.chars().take(HEAD).collect();
    if head.contains("\"rehearse-trace\"") {
        let file = trace_file::read(path)?;
        let surface = read_surface(file.connections.iter().map(|connection| &connection.trace));
        return Ok(DiffSide { calls: file_calls(&file), ..DiffSide::new(&name, surface, None) });
    }
    if !is_data(path) && !head.trim_start().starts_with(['{', '-']) {
        return Err(Failure::Usage(format!(
            "{name} is no surface, trace or snapshot; to compare a server, write the command that starts it, in quotes"
        )));
    }
    let (surface, tree) = of_source(&source)?;
    Ok(DiffSide::new(&name, surface, tree.map(|tree| (source, tree))))
}

/// A file as it was at a revision, which `git show` prints.
fn of_git(text: &str, revision: &str, path: &str) -> Result<DiffSide, Failure> {
    let shown = program::command("git", None).args(["show", "--no-textconv", text]).output();
    let shown = shown.map_err(|error| Failure::cannot(format!("cannot start git for {text}: {error}")))?;
    if !shown.status.success() {
        let said = String::from_utf8_lossy(&shown.stderr);
        let said = said.lines().next().unwrap_or_default().to_owned();
        return Err(Failure::Usage(format!("git has no {path} at {revision}: {said}")));
    }
    let content = utf8(shown.stdout).map_err(|error| Failure::Usage(format!("cannot read {text}: {error}")))?;
    let (surface, _) = of_source(&Source::new(text, content))?;
    Ok(DiffSide::new(text, surface, None))
}

fn of_source(source: &Arc<Source>) -> Result<(Surface, Option<Node>), Failure> {
    let read = match source.text.starts_with("---") {
        true => read_snapshot(source).map(|surface| (surface, None)),
        false => Surface::read(source).map(|(surface, tree)| (surface, Some(tree))),
    };
    read.map_err(|problems| Failure::Invalid(problems.in_source(source)))
}
