//! What can be wrong with servers that were understood. One file for each part of a server, and for each part of a file
//! that they have to do with.

mod agent;
mod backslash;
mod command;
mod container;
mod environment;
mod input;
mod lookalike;
mod name;
mod reference;
mod text;
mod tools;
mod url;

#[cfg(test)]
mod tests;

use std::{
    cell::{LazyCell, RefCell},
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    ClientConfig, Machine, Node, Source, Span,
    dialect::Dialect,
    finding::Finding,
    server::{ServerConfig, Text},
};

/// What is checked.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    config: &'a ClientConfig,
    root: &'a Node,
    source: &'a Arc<Source>,
    /// `None` if the config need not work on this machine.
    machine: Option<&'a Machine>,
    /// Whether the machine has these programs, as far as it was asked.
    programs: RefCell<HashMap<String, bool>>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(
        config: &'a ClientConfig,
        root: &'a Node,
        source: &'a Arc<Source>,
        machine: Option<&'a Machine>,
    ) -> Self {
        let root = config.dialect.part(root);
        Subject { config, root, source, machine, programs: RefCell::default() }
    }

    /// Every server, also those of single projects and those that cannot be reached.
    fn servers(&self) -> impl Iterator<Item = &'a ServerConfig> {
        let ClientConfig { servers, unclear, projects, .. } = self.config;
        servers.iter().chain(projects.iter().flat_map(|project| &project.servers)).chain(unclear)
    }

    fn dialect(&self) -> &'static Dialect {
        self.config.dialect
    }

    /// The machine, unless the server is not to be started.
    fn machine_for(&self, server: &ServerConfig) -> Option<&Machine> {
        self.machine.filter(|_| server.is_enabled())
    }

    /// Whether the machine has a program, for which it is asked once.
    fn has_program(&self, machine: &Machine, name: &str) -> bool {
        let mut programs = self.programs.borrow_mut();
        if let Some(known) = programs.get(name) {
            return *known;
        }
        let has = machine.has_program(name);
        programs.insert(name.to_owned(), has);
        has
    }

    /// Where a path leads from the folder of the config.
    fn beside(&self, path: &str) -> PathBuf {
        Path::new(&self.source.name).parent().unwrap_or(Path::new("")).join(path)
    }

    /// Where a part of a text stands; with its quotes if it is all of it.
    fn part(&self, text: Text<'_>, range: std::ops::Range<usize>) -> Span {
        if range.len() == text.at.value.len() {
            return text.at.span;
        }
        self.source.part(text.at.span, &text.at.value, range)
    }
}

/// A check of one server.
type Check = fn(&Subject<'_>, &ServerConfig, &mut Vec<Finding>);

const CHECKS: &[Check] = &[
    name::check,
    command::check,
    container::check,
    environment::check,
    url::check,
    tools::check,
    reference::check,
    text::check,
];

/// Everything that there is to say, in no order.
pub(super) fn all(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for server in subject.servers() {
        let before = findings.len();
        CHECKS.iter().for_each(|check| check(subject, server, findings));
        lookalike::clear(subject, before, findings);
        backslash::check(subject, server, before, findings);
        let about = LazyCell::new(|| Arc::from(&*server.name.value));
        findings[before..].iter_mut().for_each(|finding| finding.server = Some(Arc::clone(&about)));
    }
    name::clashes(subject, findings);
    input::check(subject, findings);
    if subject.dialect().agent {
        agent::check(subject, findings);
    }
}
