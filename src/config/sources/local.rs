//! What a file of the user says for one project: `projects.<path>.mcpServers` in Claude Code's `~/.claude.json`.

use super::{File, Rank, examined};
use crate::config::{Machine, document, read};

/// The servers for the project in this folder, if the file has any.
pub(super) fn of(file: &File, machine: &Machine) -> Option<File> {
    let source = &file.examined.source;
    let dialect = file.examined.detected.as_ref()?.dialect;
    let projects = dialect.projects.filter(|key| file.rank == Rank::User && source.text.contains(key))?;
    let document = document::read(source, file.path.as_deref()).ok()?;
    let project = document.root.get(projects)?.get(&machine.directory.to_string_lossy())?;
    dialect.servers(project).filter(|servers| !servers.is_null())?;
    let mut findings = Vec::new();
    let config = read(project, dialect, source, &mut findings);
    let why = "it is the file that the program has for its user";
    let examined = examined(source, &document, config, findings, (machine, why));
    Some(File { rank: Rank::Local, path: file.path.clone(), examined })
}
