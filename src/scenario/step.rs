//! One thing to do in a scenario, and what to make of it.

use std::time::Duration;

use super::{
    Cell, Expect, SnapshotSpec, answers,
    model::{read_list, read_one_or_more},
};
use crate::{
    client::{AnswerScript, Protocol},
    config::{Entry, Node, Problem, Problems, Source, Value, nearest},
    mock::template::{Data, Templates, Text},
    transport::Transport,
    wire::{Era, Version},
};

const ACTIONS: &[&str] = &[
    "connect",
    "discover",
    "call",
    "read_resource",
    "list_resources",
    "list_prompts",
    "get_prompt",
    "ping",
    "cancel",
    "parallel",
    "raw",
];
const KEYS: &[&str] = &["server", "answers", "expect", "snapshot", "capture", "timeout", "only"];
const CALL_KEYS: &[&str] = &["tool", "args", "logLevel"];

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

/// What a step does.
#[derive(Debug)]
pub enum Action {
    /// Opens the session; otherwise the first step that needs it does. The result is what the server says of itself.
    Connect,
    /// Lists all tools.
    Discover,
    Call(ToolCall),
    ReadResource {
        uri: Text,
    },
    ListResources,
    ListPrompts,
    GetPrompt {
        name: Text,
        args: Option<Data>,
    },
    Ping,
    /// A call that is given up after some time.
    Cancel {
        call: ToolCall,
        after: Duration,
    },
    /// Steps that run at the same time.
    Parallel(Vec<Step>),
    /// Bytes that are sent as they are.
    Raw {
        frame: Data,
        is_text: bool,
        headers: Vec<(String, Option<String>)>,
    },
}

/// A tool, its arguments, and the least severe log messages to ask for.
#[derive(Debug)]
pub struct ToolCall {
    pub tool: Text,
    pub args: Option<Data>,
    pub log_level: Option<String>,
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
        let read_era = |node: &Node| -> Result<Era, Problems> {
            match node.str()? {
                "legacy" => Ok(Era::Legacy),
                "modern" => Ok(Era::Modern),
                _ => Err(node.problem("the eras are legacy and modern").into()),
            }
        };
        Ok(Only {
            transports: fields.read("transport", read_list)?.unwrap_or_default(),
            protocols: fields.read("protocol", read_list)?.unwrap_or_default(),
            eras: fields.read("era", |node| read_one_or_more(node, read_era))?.unwrap_or_default(),
        })
    }
}

impl Step {
    pub(super) fn read(
        node: &Node,
        source: &Source,
        servers: &[&str],
        templates: &mut Templates,
    ) -> Result<Step, Problems> {
        let fields = node.fields("a step", &[ACTIONS, KEYS].concat())?;
        let Entry { key, node: value, .. } = fields.exactly_one(ACTIONS)?;
        let action = Action::read(key, value, source, servers, templates)?;
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
        let is_raw = matches!(action, Action::Raw { .. });
        let expect = fields.read("expect", |node| Expect::read(node, is_raw))?;
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

    /// Whether the step exists in a cell, as far as that can be said before the version is negotiated.
    pub(super) fn may_exist_in(&self, cell: Cell) -> bool {
        self.only.needs_version(cell.protocol) || self.only.holds(cell.transport, cell.protocol, None)
    }

    /// How the step is called in reports: `call echo`.
    pub fn title(&self) -> String {
        let text = |text: &Text| match text {
            Text::Literal(text) => text.clone(),
            Text::Expression(_) | Text::Template { .. } => "{{ … }}".into(),
        };
        match &self.action {
            Action::Connect => "connect".into(),
            Action::Discover => "discover".into(),
            Action::Call(call) => format!("call {}", text(&call.tool)),
            Action::ReadResource { uri } => format!("read_resource {}", text(uri)),
            Action::ListResources => "list_resources".into(),
            Action::ListPrompts => "list_prompts".into(),
            Action::GetPrompt { name, .. } => format!("get_prompt {}", text(name)),
            Action::Ping => "ping".into(),
            Action::Cancel { call, .. } => format!("cancel {}", text(&call.tool)),
            Action::Parallel(steps) => {
                format!("parallel [{}]", steps.iter().map(Step::title).collect::<Vec<_>>().join(", "))
            }
            Action::Raw { .. } => "raw".into(),
        }
    }
}

impl Action {
    fn read(
        key: &str,
        node: &Node,
        source: &Source,
        servers: &[&str],
        templates: &mut Templates,
    ) -> Result<Action, Problems> {
        let nothing = |action: Action| node.fields(&format!("`{key}`"), &[]).map(|_| action);
        match key {
            "connect" => nothing(Action::Connect),
            "discover" => nothing(Action::Discover),
            "call" => Ok(Action::Call(ToolCall::read(node, "`call`", &[], templates)?)),
            "read_resource" => {
                let uri = match &node.value {
                    Value::String(_) => node,
                    _ => node.fields("`read_resource`", &["uri"])?.required("uri")?,
                };
                Ok(Action::ReadResource { uri: templates.text(uri)? })
            }
            "list_resources" => nothing(Action::ListResources),
            "list_prompts" => nothing(Action::ListPrompts),
            "get_prompt" => {
                let fields = node.fields("`get_prompt`", &["name", "args"])?;
                let name = templates.text(fields.required("name")?)?;
                Ok(Action::GetPrompt { name, args: fields.read("args", |node| read_object(node, templates))? })
            }
            "ping" => nothing(Action::Ping),
            "cancel" => {
                let call = ToolCall::read(node, "`cancel`", &["after"], templates)?;
                let after = node.get("after").map(Node::duration).transpose()?.unwrap_or_default();
                Ok(Action::Cancel { call, after })
            }
            "parallel" => {
                let steps = node.each(|node| {
                    let step = Step::read(node, source, servers, templates)?;
                    refuse_of_session(step.expect.as_ref(), node)?;
                    if let Some(answers) = node.get("answers") {
                        let problem = answers.problem("steps in parallel share their `answers`");
                        return Err(problem.hint("write them beside `parallel`").into());
                    }
                    match step.action {
                        Action::Parallel(_) | Action::Connect => {
                            Err(node.problem("this cannot run in parallel").into())
                        }
                        _ => Ok(step),
                    }
                })?;
                if steps.is_empty() {
                    return Err(node.problem("`parallel` needs at least one step").into());
                }
                Ok(Action::Parallel(steps))
            }
            _ => read_raw(node, templates),
        }
    }
}

/// What belongs to a session cannot be expected of steps that share it at the same time.
fn refuse_of_session(expect: Option<&Expect>, node: &Node) -> Result<(), Problems> {
    match expect.and_then(Expect::of_session) {
        Some(key) => Err(node.problem(format!("`{key}` cannot be expected of steps in parallel")).into()),
        None => Ok(()),
    }
}

impl ToolCall {
    fn read(node: &Node, what: &str, more: &[&str], templates: &mut Templates) -> Result<ToolCall, Problems> {
        let fields = node.fields(what, &[CALL_KEYS, more].concat())?;
        Ok(ToolCall {
            tool: templates.text(fields.required("tool")?)?,
            args: fields.read("args", |node| read_object(node, templates))?,
            log_level: fields.read("logLevel", |node| Ok(node.str()?.to_owned()))?,
        })
    }
}

fn read_object(node: &Node, templates: &mut Templates) -> Result<Data, Problems> {
    node.entries()?;
    templates.data(node)
}

/// A frame as text, or as data that is sent as JSON; or a mapping with `frame` and HTTP `headers`.
fn read_raw(node: &Node, templates: &mut Templates) -> Result<Action, Problems> {
    let (frame, headers) = match node.get("frame") {
        Some(frame) => {
            let fields = node.fields("`raw`", &["frame", "headers"])?;
            let entries = fields.get("headers").map(Node::entries).transpose()?.unwrap_or_default();
            let value = |entry: &Entry| match entry.node.value {
                Value::Null => Ok((entry.key.clone(), None)),
                _ => Ok((entry.key.clone(), Some(entry.node.str()?.to_owned()))),
            };
            (frame, Problems::collect(entries.iter().map(value))?)
        }
        None => (node, Vec::new()),
    };
    let is_text = matches!(frame.value, Value::String(_));
    let frame = if is_text { templates.text_data(frame)? } else { templates.data(frame)? };
    Ok(Action::Raw { frame, is_text, headers })
}
