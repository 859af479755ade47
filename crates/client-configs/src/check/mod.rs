//! Checks of servers that were read. One file for each part of a server, and for the parts of a file around them.

mod agent;
mod bridge;
mod command;
mod container;
mod environment;
mod input;
mod name;
mod package;
mod path;
mod reference;
mod text;
mod tools;
mod url;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{ClientConfig, ConfiguredServer, Machine, dialect::Dialect, server::Text};
use rehearse_document::{Node, Source, Span};
use rehearse_report::findings::Finding;

/// What is checked.
#[derive(Debug)]
pub(super) struct CheckedConfig<'a> {
    config: &'a ClientConfig,
    root: &'a Node,
    source: &'a Arc<Source>,
    /// `None` if the config need not work on this machine.
    machine: Option<&'a Machine>,
}

impl<'a> CheckedConfig<'a> {
    pub(super) fn new(
        config: &'a ClientConfig,
        root: &'a Node,
        source: &'a Arc<Source>,
        machine: Option<&'a Machine>,
    ) -> Self {
        CheckedConfig { config, root: config.dialect.part(root), source, machine }
    }

    /// Every server, also those of single projects and those that cannot be reached.
    fn servers(&self) -> impl Iterator<Item = &'a ConfiguredServer> {
        let ClientConfig { servers, incomplete, projects, .. } = self.config;
        servers.iter().chain(projects.iter().flat_map(|project| &project.servers)).chain(incomplete)
    }

    fn dialect(&self) -> &'static Dialect {
        self.config.dialect
    }

    /// The machine, unless the server is switched off.
    fn machine_for(&self, server: &ConfiguredServer) -> Option<&Machine> {
        self.machine.filter(|_| server.is_enabled())
    }

    /// A path relative to the folder of the config.
    fn in_folder(&self, path: &str) -> PathBuf {
        Path::new(&self.source.name).parent().unwrap_or(Path::new("")).join(path)
    }

    /// The span of a part of a value; with its quotes if it is all of it.
    fn part(&self, text: Text<'_>, range: std::ops::Range<usize>) -> Span {
        if range.len() == text.at.value.len() {
            return text.at.span;
        }
        self.source.part(text.at.span, &text.at.value, range)
    }
}

/// A check of one server.
type Check = fn(&CheckedConfig<'_>, &ConfiguredServer, &mut Vec<Finding>);

const CHECKS: &[Check] = &[
    name::check,
    command::check,
    package::check,
    path::check,
    bridge::check,
    container::check,
    environment::check,
    url::check,
    tools::check,
    reference::check,
    text::check,
];

/// All findings, in no order.
pub(super) fn all(checked: &CheckedConfig<'_>, findings: &mut Vec<Finding>) {
    for server in checked.servers() {
        let before = findings.len();
        CHECKS.iter().for_each(|check| check(checked, server, findings));
        let about: Arc<str> = Arc::from(&*server.name.value);
        findings[before..].iter_mut().for_each(|finding| finding.server = Some(Arc::clone(&about)));
    }
    name::check_clashes(checked, findings);
    input::check(checked, findings);
    if checked.dialect().describes_agent {
        agent::check(checked, findings);
    }
}
