//! One set of servers from several sources.

use std::collections::{HashMap, HashSet};

use super::{File, Kept, Lost, Origin, Unread};
use rehearse_document::Span;
use rehearse_report::findings::Severity;

/// What became of the servers of all files.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) servers: Vec<Kept>,
    pub(super) lost: Vec<Lost>,
    pub(super) unread: Vec<Unread>,
}

/// Takes from each name the server of the highest file that has it, whole; within one file the last one counts. The
/// files come in the order of their precedence.
///
/// A server that cannot be understood has its name nevertheless: the user did not mean the one of a lower file.
pub(super) fn merge(files: &[File]) -> Merged {
    let mut merged = Merged::default();
    let mut winners: HashMap<String, Origin> = HashMap::new();
    for (index, file) in files.iter().enumerate() {
        let Some(config) = file.report.config.as_ref().filter(|_| file.report.is_readable) else { continue };
        let mut last: HashMap<&str, usize> = HashMap::new();
        for (at, server) in config.servers.iter().enumerate() {
            last.insert(&server.name.value, at);
        }
        let mut taken = Vec::new();
        for (at, server) in config.servers.iter().enumerate() {
            let name = &server.name.value;
            let origin = Origin::new(&server.source, server.name.span);
            let in_same_file = last.get(&**name).filter(|last| **last != at);
            let same = in_same_file.map(|last| Origin::new(&server.source, config.servers[*last].name.span));
            match winners.get(name).cloned().or(same) {
                Some(to) => merged.lost.push(Lost { name: name.clone(), origin, to }),
                None => {
                    taken.push((name.clone(), origin));
                    merged.servers.push(Kept { server: server.clone(), dialect: config.dialect, file: index });
                }
            }
        }
        for unread in unread_servers(file) {
            if let Some(to) = winners.get(&unread.name).cloned() {
                merged.lost.push(Lost { name: unread.name, origin: unread.origin, to });
            } else {
                taken.push((unread.name.clone(), unread.origin.clone()));
                merged.unread.push(unread);
            }
        }
        winners.extend(taken);
    }
    merged
}

/// The servers of a file that were left out because of what is wrong with them.
fn unread_servers(file: &File) -> Vec<Unread> {
    let report = &file.report;
    let servers = report.config.iter().flat_map(|config| &config.servers);
    let mut known: HashSet<&str> = servers.map(|server| &*server.name.value).collect();
    let mut unread = Vec::new();
    // What is wrong with the servers of a single project is no matter here.
    let projects = || report.config.iter().flat_map(|config| &config.projects);
    let is_of_project = |span: Span| projects().any(|it| it.span.start <= span.start && span.end <= it.span.end);
    let errors = report.findings.iter().filter(|it| it.code.severity() == Severity::Error);
    for finding in errors.filter(|it| !is_of_project(it.problem.span)) {
        if let Some(name) = finding.server.as_deref().filter(|name| known.insert(name)) {
            let origin = Origin::new(&report.source, finding.problem.span);
            unread.push(Unread { name: name.to_owned(), origin, code: finding.code });
        }
    }
    unread
}
