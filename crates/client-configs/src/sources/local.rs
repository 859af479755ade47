//! What a file of the user says for one project: `projects.<path>.mcpServers` in Claude Code's `~/.claude.json`.

use super::{File, Precedence, report};
use crate::{Machine, document, read};

/// The servers for the project in this folder, if the file has any.
pub(super) fn of(file: &File, machine: &Machine) -> Option<File> {
    let source = &file.report.source;
    let dialect = file.report.detected.as_ref()?.dialect;
    let projects = dialect.projects.filter(|key| file.precedence == Precedence::User && source.text.contains(key))?;
    let document = document::read(source, file.path.as_deref(), None).ok()?;
    let project = document.root.get(projects)?.get(&machine.directory.to_string_lossy())?;
    dialect.servers(project).filter(|servers| !servers.is_null())?;
    let mut findings = Vec::new();
    let config = read(project, dialect, source, &mut findings);
    let why = "it is the user's file of the program";
    let report = report(source, &document, config, findings, (machine, why));
    Some(File { precedence: Precedence::Local, path: file.path.clone(), report })
}
