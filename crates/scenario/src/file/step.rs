//! One step of a scenario: an action and the checks of its result.

use std::{path::Path, time::Duration};

use super::{
    Action, Expectations, action::refuse_session_expectations, answers, expectations::ObservableFields,
    model::read_list,
};
use crate::{keys::KEYS, snapshot::SnapshotSpec};
use rehearse_client::AnswerScript;
use rehearse_document::{Fields, Node, Problem, Problems, Source, nearest, template::Templates};
use rehearse_protocol::{Era, Protocol, Transport, Version};
use rehearse_report::Cell;

/// The maximum number of characters of a line in a report.
const LONGEST_LINE: usize = 200;

/// A step of a scenario.
#[derive(Debug)]
pub struct Step {
    /// What the step does.
    pub action: Action,
    /// The index of the server; the first one by default.
    pub server: usize,
    /// Answers of the client during the step, with precedence over those of the scenario.
    pub answers: Option<AnswerScript>,
    /// The expectations of the step.
    pub expect: Option<Expectations>,
    /// The snapshot of the result.
    pub snapshot: Option<SnapshotSpec>,
    /// Values to keep from the result: a name and a JSON pointer.
    pub capture: Vec<(String, String)>,
    /// The timeout of the step [default: that of the server].
    pub timeout: Option<Duration>,
    /// The cells in which the step runs.
    pub only: StepCondition,
    /// The line of the step in the file.
    pub line: usize,
    /// The text of that line.
    pub source: String,
}

/// The key `only`: a condition on the cell. Without conditions it holds in every cell.
#[derive(Debug, Default)]
pub struct StepCondition {
    transports: Vec<Transport>,
    protocols: Vec<Protocol>,
    eras: Vec<Era>,
}

impl StepCondition {
    /// Whether the condition holds for a transport, a requested protocol and the negotiated version, if it is known.
    pub fn holds(&self, transport: Transport, protocol: Protocol, version: Option<Version>) -> bool {
        let era = version.or(match protocol {
            Protocol::Exact(version) => Some(version),
            Protocol::Auto => None,
        });
        (self.transports.is_empty() || self.transports.contains(&transport))
            && (self.protocols.is_empty() || self.protocols.contains(&protocol))
            && (self.eras.is_empty() || era.is_some_and(|version| self.eras.contains(&version.era())))
    }

    /// Whether the condition depends on the negotiated version.
    pub fn needs_version(&self, protocol: Protocol) -> bool {
        !self.eras.is_empty() && protocol == Protocol::Auto
    }

    fn read(node: &Node) -> Result<StepCondition, Problems> {
        let fields = KEYS.fields(node, "only")?;
        Ok(StepCondition {
            transports: fields.read("transport", read_list)?.unwrap_or_default(),
            protocols: fields.read("protocol", read_list)?.unwrap_or_default(),
            eras: fields.read("era", read_list)?.unwrap_or_default(),
        })
    }
}

impl Step {
    pub(crate) fn read(
        node: &Node,
        source: &Source,
        folder: &Path,
        servers: &[&str],
        templates: &mut Templates,
    ) -> Result<Step, Problems> {
        refuse_root_keys(node)?;
        let (fields, mut problems) = Fields::with_unknown(node, "a step", &KEYS.keys("step"))?;
        let actions = KEYS.choices("step");
        // Of a step with an unknown key, the action may be meant by it.
        let entry = match problems.0.is_empty() {
            true => Some(fields.exactly_one(&actions)?),
            false => problems.keep(fields.at_most_one(&actions)).flatten(),
        };
        let action = entry
            .and_then(|entry| problems.keep(Action::read(&entry.key, &entry.node, source, folder, servers, templates)));
        let line = source.position(node.span.start).0;
        let text = source.text.lines().nth(line - 1).unwrap_or_default().trim();
        let server = problems.keep(fields.read("server", |node| {
            let name = node.str()?;
            servers.iter().position(|server| *server == name).ok_or_else(|| {
                let problem = node.problem(format!("unknown server `{name}`"));
                let near = nearest(name, servers).map(|near| format!("did you mean `{near}`?"));
                problem.hint(near.unwrap_or_else(|| format!("use one of {}", servers.join(", ")))).into()
            })
        }));
        let snapshot = problems.keep(fields.read("snapshot", SnapshotSpec::read));
        let capture = problems.keep(fields.get("capture").map(Node::entries).transpose()).flatten().unwrap_or_default();
        let capture = capture.iter().map(|entry| {
            let pointer = entry.node.str()?;
            if !pointer.is_empty() && !pointer.starts_with('/') {
                let problem = entry.node.problem("a capture must be a JSON pointer into the result");
                return Err(problem.hint("for example /content/0/text").into());
            }
            Ok((entry.key.clone(), pointer.to_owned()))
        });
        let capture = problems.keep(Problems::collect(capture));
        let answers = problems.keep(fields.read("answers", answers::read));
        let timeout = problems.keep(fields.read("timeout", Node::duration));
        let only = problems.keep(fields.read("only", StepCondition::read));
        let (Some(entry), Some(action)) = (entry, action) else { return Err(problems) };
        let key = &entry.key;
        let observable = ObservableFields {
            status: matches!(action, Action::Raw { .. }),
            task: action.call().is_some_and(|call| call.is_task),
            progress: action.call().is_some_and(|call| !call.is_task),
            refusal: action.call().is_none(),
            agent: matches!(action, Action::Agent(_)),
            host: matches!(action, Action::Host(_)),
        };
        let expect = problems.keep(fields.read("expect", |node| Expectations::read(node, observable)));
        let (Some(server), Some(snapshot), Some(capture), Some(answers), Some(timeout), Some(only), Some(expect), []) =
            (server, snapshot, capture, answers, timeout, only, expect, &problems.0[..])
        else {
            problems.0.sort_by_key(|problem| problem.span.start);
            return Err(problems);
        };
        if let Some(entry) = ["server", "answers", "timeout"].iter().find_map(|key| fields.entry(key))
            && !action.needs_session()
        {
            let message = format!("`{}` has no effect: `{key}` uses no server", entry.key);
            return Err(Problem::new(entry.key_span, message).hint("remove it").into());
        }
        if let (Some(entry), Action::Host(_)) = (fields.entry("answers"), &action) {
            return Err(Problem::new(entry.key_span, "`answers` has no effect: the host answers")
                .hint("remove it")
                .into());
        }
        if expect.as_ref().is_some_and(|expect| expect.judge().is_some()) && action.eval().is_none() {
            return Err(node.problem("`judge` needs an `agent` with `models`").into());
        }
        if let Some(entry) = ["snapshot", "capture"].iter().find_map(|key| fields.entry(key))
            && action.eval().is_some()
        {
            let message = format!("a step with `models` cannot have `{}`: each run has another result", entry.key);
            return Err(Problem::new(entry.key_span, message).hint("say with `expect` what each must be like").into());
        }
        if let Action::Parallel(_) = action {
            if let Some(entry) = ["timeout", "capture"].iter().find_map(|key| fields.entry(key)) {
                let message = format!("`parallel` cannot have `{}`", entry.key);
                return Err(Problem::new(entry.key_span, message).hint("set it on the steps inside").into());
            }
            refuse_session_expectations(expect.as_ref(), node)?;
        }
        Ok(Step {
            action,
            server: server.unwrap_or(0),
            answers,
            expect,
            snapshot,
            capture,
            timeout,
            only: only.unwrap_or_default(),
            line,
            source: text.chars().take(LONGEST_LINE).collect(),
        })
    }

    /// The step, and the steps that it runs in parallel.
    pub(crate) fn with_parallel(&self) -> impl Iterator<Item = &Step> {
        let inside = match &self.action {
            Action::Parallel(steps) => &steps[..],
            _ => &[],
        };
        std::iter::once(self).chain(inside)
    }

    /// The same, each with its node in the file; `node` is that of the step.
    pub(crate) fn with_nodes<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (&'a Step, &'a Node)> {
        let inside = node.get("parallel").and_then(|node| node.as_items()).unwrap_or_default();
        self.with_parallel().zip(std::iter::once(node).chain(inside))
    }

    /// The key of the snapshot that a successful step writes in a cell; `None` if that depends on the negotiated version.
    pub(crate) fn certain_snapshot(&self, cell: Cell) -> Option<String> {
        let spec = self.snapshot.as_ref().filter(|spec| spec.has_key_for(cell))?;
        self.certainly_exists_in(cell).then(|| spec.key(cell, None))
    }

    /// Whether the step runs in a cell with any negotiated version.
    pub(crate) fn certainly_exists_in(&self, cell: Cell) -> bool {
        !self.only.needs_version(cell.protocol) && self.may_exist_in(cell)
    }

    /// Whether the step runs in a cell with some negotiated version.
    pub(crate) fn may_exist_in(&self, cell: Cell) -> bool {
        self.only.needs_version(cell.protocol) || self.only.holds(cell.transport, cell.protocol, None)
    }

    /// Whether the step needs 2026-07-28 but may run in this cell in another version.
    pub(crate) fn is_too_old_for(&self, cell: Cell) -> bool {
        let is_modern = match cell.protocol {
            Protocol::Exact(version) => version.era() == Era::Modern,
            Protocol::Auto => self.only.eras == [Era::Modern],
        };
        self.action.call().is_some_and(|call| call.is_task) && !is_modern && self.may_exist_in(cell)
    }

    /// The title of the step in a snapshot, with the arguments of a call: `call echo {"text":"a"}`.
    pub(crate) fn header(&self) -> String {
        let args = self.action.call().and_then(|call| call.args.as_ref()?.literal());
        self.title() + &args.map(|args| format!(" {args}")).unwrap_or_default()
    }

    /// The title of the step in reports: `call echo`.
    pub fn title(&self) -> String {
        self.action.title()
    }
}

/// Rejects a key of the whole scenario.
fn refuse_root_keys(node: &Node) -> Result<(), Problems> {
    let entries = node.as_entries().unwrap_or_default();
    match entries.iter().find(|entry| entry.key == "redact") {
        None => Ok(()),
        Some(entry) => {
            let problem = Problem::new(entry.key_span, "a step has no key `redact`");
            Err(problem.hint("`redact` applies to all steps: write it beside `steps`").into())
        }
    }
}
