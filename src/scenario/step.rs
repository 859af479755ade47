//! One thing to do in a scenario, and what to make of it.

use std::{path::Path, time::Duration};

use super::{
    Action, Expect, SnapshotSpec,
    action::{ACTIONS, refuse_of_session},
    answers,
    expect::Observable,
    model::read_list,
};
use crate::{
    client::{AnswerScript, Protocol},
    config::{Entry, Node, Problem, Problems, Source, nearest},
    mock::template::Templates,
    report::Cell,
    transport::Transport,
    wire::{Era, Version},
};

const KEYS: &[&str] = &["server", "answers", "expect", "snapshot", "capture", "timeout", "only"];

const OTHER_NAMES: &[(&str, &str)] = &[("list_tools", "discover"), ("initialize", "connect"), ("call_tool", "call")];

/// A step of a scenario.
#[derive(Debug)]
pub struct Step {
    pub action: Action,
    /// Which server; the first one unless the file says otherwise.
    pub server: usize,
    /// What the client answers during the step, instead of what the scenario says.
    pub answers: Option<AnswerScript>,
    pub expect: Option<Expect>,
    pub snapshot: Option<SnapshotSpec>,
    /// What to keep from the result under a name, by JSON pointer.
    pub capture: Vec<(String, String)>,
    /// How long the step may take, instead of the server's timeout.
    pub timeout: Option<Duration>,
    /// The cells in which the step exists.
    pub only: Only,
    /// The line of the file where the step stands.
    pub line: usize,
}

/// A condition on the cell. Empty lists hold everywhere.
#[derive(Debug, Default)]
pub struct Only {
    transports: Vec<Transport>,
    protocols: Vec<Protocol>,
    eras: Vec<Era>,
}

impl Only {
    /// Whether the step exists on this transport, asked for with this protocol, in this version (if it is known).
    pub fn holds(&self, transport: Transport, protocol: Protocol, version: Option<Version>) -> bool {
        let era = version.or(match protocol {
            Protocol::Exact(version) => Some(version),
            Protocol::Auto => None,
        });
        (self.transports.is_empty() || self.transports.contains(&transport))
            && (self.protocols.is_empty() || self.protocols.contains(&protocol))
            && (self.eras.is_empty() || era.is_some_and(|version| self.eras.contains(&version.era())))
    }

    /// Whether the condition can be judged only once the version was negotiated.
    pub fn needs_version(&self, protocol: Protocol) -> bool {
        !self.eras.is_empty() && protocol == Protocol::Auto
    }

    fn read(node: &Node) -> Result<Only, Problems> {
        let fields = node.fields("`only`", &["transport", "protocol", "era"])?;
        Ok(Only {
            transports: fields.read("transport", read_list)?.unwrap_or_default(),
            protocols: fields.read("protocol", read_list)?.unwrap_or_default(),
            eras: fields.read("era", read_list)?.unwrap_or_default(),
        })
    }
}

impl Step {
    pub(super) fn read(
        node: &Node,
        source: &Source,
        folder: &Path,
        servers: &[&str],
        templates: &mut Templates,
    ) -> Result<Step, Problems> {
        refuse_other_names(node)?;
        let fields = node.fields("a step", &[ACTIONS, KEYS].concat())?;
        let Entry { key, node: value, .. } = fields.exactly_one(ACTIONS)?;
        let action = Action::read(key, value, source, folder, servers, templates)?;
        let line = source.position(node.span.start).0;
        let server = fields.read("server", |node| {
            let name = node.str()?;
            servers.iter().position(|server| *server == name).ok_or_else(|| {
                let problem = node.problem(format!("there is no server `{name}`"));
                let near = nearest(name, servers).map(|near| format!("did you mean `{near}`?"));
                problem.hint(near.unwrap_or_else(|| format!("servers are {}", servers.join(", ")))).into()
            })
        })?;
        let snapshot = fields.read("snapshot", SnapshotSpec::read)?;
        let capture = fields.get("capture").map(Node::entries).transpose()?.unwrap_or_default();
        let capture = capture.iter().map(|entry| {
            let pointer = entry.node.str()?;
            if !pointer.is_empty() && !pointer.starts_with('/') {
                let problem = entry.node.problem("a capture is a JSON pointer into the result");
                return Err(problem.hint("for example /content/0/text").into());
            }
            Ok((entry.key.clone(), pointer.to_owned()))
        });
        let observable = Observable {
            status: matches!(action, Action::Raw { .. }),
            task: action.call().is_some_and(|call| call.is_task),
        };
        let expect = fields.read("expect", |node| Expect::read(node, observable))?;
        if let Some(entry) = ["server", "answers", "timeout"].iter().find_map(|key| fields.entry(key))
            && !action.needs_session()
        {
            let message = format!("`{}` is for steps with a server, and `{key}` needs none", entry.key);
            return Err(Problem::new(entry.key_span, message).hint("leave it out").into());
        }
        if let Action::Parallel(_) = action {
            if let Some(entry) = ["timeout", "capture"].iter().find_map(|key| fields.entry(key)) {
                let message = format!("steps in parallel have no common `{}`", entry.key);
                return Err(Problem::new(entry.key_span, message).hint("set it on the steps inside").into());
            }
            refuse_of_session(expect.as_ref(), node)?;
        }
        Ok(Step {
            action,
            server: server.unwrap_or(0),
            answers: fields.read("answers", answers::read)?,
            expect,
            snapshot,
            capture: Problems::collect(capture)?,
            timeout: fields.read("timeout", Node::duration)?,
            only: fields.read("only", Only::read)?.unwrap_or_default(),
            line,
        })
    }

    /// The step, and the steps that it runs in parallel.
    pub(super) fn with_parallel(&self) -> impl Iterator<Item = &Step> {
        let inside = match &self.action {
            Action::Parallel(steps) => &steps[..],
            _ => &[],
        };
        std::iter::once(self).chain(inside)
    }

    /// The same, each with its place in the file, if this is that of the step.
    pub(super) fn with_nodes<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (&'a Step, &'a Node)> {
        let inside = node.get("parallel").and_then(|node| node.as_items()).unwrap_or_default();
        self.with_parallel().zip(std::iter::once(node).chain(inside))
    }

    /// The key of the snapshot that the step brings in a cell if all goes well; none if that depends on the negotiation.
    pub(super) fn certain_snapshot(&self, cell: Cell) -> Option<String> {
        let spec = self.snapshot.as_ref().filter(|spec| spec.has_key_for(cell))?;
        self.certainly_exists_in(cell).then(|| spec.key(cell, None))
    }

    /// Whether the step exists in a cell, whatever is negotiated.
    pub(super) fn certainly_exists_in(&self, cell: Cell) -> bool {
        !self.only.needs_version(cell.protocol) && self.may_exist_in(cell)
    }

    /// Whether the step exists in a cell, as far as that can be said before the version is negotiated.
    pub(super) fn may_exist_in(&self, cell: Cell) -> bool {
        self.only.needs_version(cell.protocol) || self.only.holds(cell.transport, cell.protocol, None)
    }

    /// Whether the step can do what it says only in 2026-07-28, but may exist in this cell in another version.
    pub(super) fn is_too_old_for(&self, cell: Cell) -> bool {
        let is_modern = match cell.protocol {
            Protocol::Exact(version) => version.era() == Era::Modern,
            Protocol::Auto => self.only.eras == [Era::Modern],
        };
        self.action.call().is_some_and(|call| call.is_task) && !is_modern && self.may_exist_in(cell)
    }

    /// How the step is called in reports: `call echo`.
    pub fn title(&self) -> String {
        self.action.title()
    }
}

/// What people look for under the name that the protocol has for it.
fn refuse_other_names(node: &Node) -> Result<(), Problems> {
    let entries = node.as_entries().unwrap_or_default();
    let other = entries.iter().find_map(|entry| {
        let (_, name) = OTHER_NAMES.iter().find(|(other, _)| *other == entry.key)?;
        Some((entry, name))
    });
    match other {
        None => Ok(()),
        Some((entry, name)) => {
            let problem = Problem::new(entry.key_span, format!("a step has no key `{}`", entry.key));
            Err(problem.hint(format!("did you mean `{name}`?")).into())
        }
    }
}
