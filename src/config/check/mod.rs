//! What can be wrong with servers that were understood. One file for each part of a server.

mod agent;
mod command;
mod input;
mod name;
mod reference;
mod text;
mod tools;
mod url;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{
    ClientConfig, Machine, Node, Source, Span,
    dialect::Dialect,
    finding::Finding,
    server::{ServerConfig, Text},
};

/// What is checked.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) config: &'a ClientConfig,
    pub(super) root: &'a Node,
    pub(super) source: &'a Arc<Source>,
    /// `None` if the config need not work on this machine.
    pub(super) machine: Option<&'a Machine>,
}

impl Subject<'_> {
    fn dialect(&self) -> &'static Dialect {
        self.config.dialect
    }

    /// The machine, unless the server is not to be started.
    fn machine_for(&self, server: &ServerConfig) -> Option<&Machine> {
        self.machine.filter(|_| server.is_enabled())
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

const CHECKS: &[Check] = &[name::check, command::check, url::check, tools::check, reference::check, text::check];

/// Everything that there is to say, in no order.
pub(super) fn all(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let subject = &Subject { root: subject.dialect().part(subject.root), ..*subject };
    for server in &subject.config.servers {
        let mut found = Vec::new();
        CHECKS.iter().for_each(|check| check(subject, server, &mut found));
        findings.extend(found.into_iter().map(|finding| finding.about(&server.name.value)));
    }
    name::clashes(subject, findings);
    input::check(subject, findings);
    if subject.dialect().agent {
        agent::check(subject, findings);
    }
}
