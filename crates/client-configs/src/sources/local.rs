//! What a file of the user says for one project: `projects.<path>.mcpServers` in Claude Code's `~/.claude.json`.

use super::{File, Precedence, report};
use crate::{Machine, System, document, read};
use rehearse_document::Node;

/// The servers for the project in this folder, if the file has any.
pub(super) fn of(file: &File, machine: &Machine) -> Option<File> {
    let source = &file.report.source;
    let dialect = file.report.detected.as_ref()?.dialect;
    let projects = dialect.projects.filter(|key| file.precedence == Precedence::User && source.text.contains(key))?;
    let document = document::read(source, file.path.as_deref(), None).ok()?;
    let folder = machine.directory.to_string_lossy();
    let is_here = |key: &str| match machine.system {
        System::Windows => key.replace('/', "\\").eq_ignore_ascii_case(&folder.replace('/', "\\")),
        System::Linux | System::MacOs => key == folder,
    };
    let projects = document.root.get(projects)?.as_entries()?;
    // On Windows several keys may mean one folder, and one of them has the servers: slashes and the case of the drive are
    // those of the shell that started the program (anthropics/claude-code#18122, #88418).
    let has_servers = |project: &&Node| dialect.servers(project).is_some_and(|servers| !servers.is_null());
    let project = projects.iter().filter(|entry| is_here(&entry.key)).map(|entry| &entry.node).find(has_servers)?;
    let mut findings = Vec::new();
    let config = read(project, dialect, source, &mut findings);
    let why = "it is the user's file of the program";
    let report = report(source, &document, config, findings, (machine, why));
    Some(File { precedence: Precedence::Local, path: file.path.clone(), report })
}
