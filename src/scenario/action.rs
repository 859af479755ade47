//! What a step does.

use std::{path::Path, time::Duration};

use super::{Expect, Step, final_answer::FinalAnswer};
use crate::{
    config::{Entry, Fields, Node, Problems, Source, Value},
    mock::{
        matcher::Matcher,
        template::{Data, Templates, Text},
    },
};

pub(super) const ACTIONS: &[&str] = &[
    "connect",
    "discover",
    "call",
    "cancel",
    "list_resources",
    "list_resource_templates",
    "read_resource",
    "list_prompts",
    "get_prompt",
    "complete",
    "subscribe",
    "unsubscribe",
    "listen",
    "await_notification",
    "set_log_level",
    "ping",
    "request",
    "parallel",
    "raw",
    "final_answer",
];
const CALL_KEYS: &[&str] = &["tool", "args", "logLevel", "task"];

/// What a step does.
#[derive(Debug)]
pub enum Action {
    /// Opens the session; otherwise the first step that needs it does. The result is what the server says of itself.
    Connect,
    /// Lists all tools.
    Discover,
    Call(ToolCall),
    /// A call that is given up after some time; if it is to be a task, the time counts from when it is one.
    Cancel {
        call: ToolCall,
        after: Duration,
    },
    ListResources,
    ListResourceTemplates,
    ReadResource {
        uri: Text,
    },
    ListPrompts,
    GetPrompt {
        name: Text,
        args: Option<Data>,
    },
    Complete(Completion),
    /// Asks for the updates of a resource.
    Subscribe {
        uri: Text,
    },
    Unsubscribe {
        uri: Text,
    },
    /// Asks for notifications of changes.
    Listen(Listen),
    /// Waits for a notification that no step has taken yet.
    AwaitNotification {
        method: Text,
        params: Option<Matcher>,
    },
    SetLogLevel(Text),
    Ping,
    /// Any request, once.
    Request {
        method: Text,
        params: Option<Data>,
    },
    /// Steps that run at the same time.
    Parallel(Vec<Step>),
    /// Bytes that are sent as they are.
    Raw {
        frame: Data,
        is_text: bool,
        headers: Vec<(String, Option<String>)>,
    },
    /// Takes the answer of a subagent out of a dialog. No server is needed for that.
    FinalAnswer(FinalAnswer),
}

/// A tool, its arguments, and how to call it.
#[derive(Debug)]
pub struct ToolCall {
    pub tool: Text,
    pub args: Option<Data>,
    /// The least severe log messages to ask for.
    pub log_level: Option<String>,
    /// The server may make a task of it.
    pub is_task: bool,
}

/// An argument to be completed.
#[derive(Debug)]
pub struct Completion {
    pub of: Completed,
    pub argument: Text,
    pub value: Text,
    /// The values of other arguments.
    pub context: Option<Data>,
}

/// Whose argument is completed.
#[derive(Debug)]
pub enum Completed {
    Prompt(Text),
    Resource(Text),
}

/// Which notifications to ask for.
#[derive(Debug)]
pub struct Listen {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    /// The resources whose updates to ask for.
    pub uris: Vec<Text>,
}

impl Action {
    pub(super) fn read(
        key: &str,
        node: &Node,
        source: &Source,
        folder: &Path,
        servers: &[&str],
        templates: &mut Templates,
    ) -> Result<Action, Problems> {
        let what = format!("`{key}`");
        let nothing = |action: Action| node.fields(&what, &[]).map(|_| action);
        match key {
            "connect" => nothing(Action::Connect),
            "discover" => nothing(Action::Discover),
            "call" => Ok(Action::Call(ToolCall::read(&node.fields(&what, CALL_KEYS)?, templates)?)),
            "cancel" => {
                let fields = node.fields(&what, &[CALL_KEYS, &["after"]].concat())?;
                let after = fields.read("after", Node::duration)?.unwrap_or_default();
                Ok(Action::Cancel { call: ToolCall::read(&fields, templates)?, after })
            }
            "list_resources" => nothing(Action::ListResources),
            "list_resource_templates" => nothing(Action::ListResourceTemplates),
            "read_resource" => Ok(Action::ReadResource { uri: templates.text(single(node, &what, "uri")?)? }),
            "list_prompts" => nothing(Action::ListPrompts),
            "get_prompt" => {
                let fields = node.fields(&what, &["name", "args"])?;
                let name = templates.text(fields.required("name")?)?;
                Ok(Action::GetPrompt { name, args: fields.read("args", |node| read_object(node, templates))? })
            }
            "complete" => Ok(Action::Complete(Completion::read(node, &what, templates)?)),
            "subscribe" => Ok(Action::Subscribe { uri: templates.text(single(node, &what, "uri")?)? }),
            "unsubscribe" => Ok(Action::Unsubscribe { uri: templates.text(single(node, &what, "uri")?)? }),
            "listen" => Ok(Action::Listen(Listen::read(node, &what, templates)?)),
            "await_notification" => {
                let (method, params) = match &node.value {
                    Value::String(_) => (node, None),
                    _ => {
                        let fields = node.fields(&what, &["method", "params"])?;
                        (fields.required("method")?, fields.read("params", Matcher::read)?)
                    }
                };
                Ok(Action::AwaitNotification { method: templates.text(method)?, params })
            }
            "set_log_level" => Ok(Action::SetLogLevel(templates.text(single(node, &what, "level")?)?)),
            "ping" => nothing(Action::Ping),
            "request" => {
                let fields = node.fields(&what, &["method", "params"])?;
                let method = templates.text(fields.required("method")?)?;
                Ok(Action::Request { method, params: fields.read("params", |node| read_object(node, templates))? })
            }
            "parallel" => read_parallel(node, source, folder, servers, templates),
            "final_answer" => Ok(Action::FinalAnswer(FinalAnswer::read(node, folder, templates)?)),
            _ => read_raw(node, templates),
        }
    }

    /// The tool call in it, if there is one.
    pub(super) fn call(&self) -> Option<&ToolCall> {
        match self {
            Action::Call(call) | Action::Cancel { call, .. } => Some(call),
            _ => None,
        }
    }

    /// Whether it is done with a server.
    pub(super) fn needs_session(&self) -> bool {
        !matches!(self, Action::FinalAnswer(_))
    }

    /// How it is called in reports: `call echo`.
    pub(super) fn title(&self) -> String {
        let text = |text: &Text| match text {
            Text::Literal(text) => text.clone(),
            Text::Expression(_) | Text::Template { .. } => "{{ … }}".into(),
        };
        match self {
            Action::Connect => "connect".into(),
            Action::Discover => "discover".into(),
            Action::Call(call) => format!("call {}", text(&call.tool)),
            Action::Cancel { call, .. } => format!("cancel {}", text(&call.tool)),
            Action::ListResources => "list_resources".into(),
            Action::ListResourceTemplates => "list_resource_templates".into(),
            Action::ReadResource { uri } => format!("read_resource {}", text(uri)),
            Action::ListPrompts => "list_prompts".into(),
            Action::GetPrompt { name, .. } => format!("get_prompt {}", text(name)),
            Action::Complete(Completion { of: Completed::Prompt(of) | Completed::Resource(of), argument, .. }) => {
                format!("complete {} {}", text(of), text(argument))
            }
            Action::Subscribe { uri } => format!("subscribe {}", text(uri)),
            Action::Unsubscribe { uri } => format!("unsubscribe {}", text(uri)),
            Action::Listen(_) => "listen".into(),
            Action::AwaitNotification { method, .. } => format!("await_notification {}", text(method)),
            Action::SetLogLevel(level) => format!("set_log_level {}", text(level)),
            Action::Ping => "ping".into(),
            Action::Request { method, .. } => format!("request {}", text(method)),
            Action::Parallel(steps) => {
                format!("parallel [{}]", steps.iter().map(Step::title).collect::<Vec<_>>().join(", "))
            }
            Action::Raw { .. } => "raw".into(),
            Action::FinalAnswer(_) => "final_answer".into(),
        }
    }
}

impl ToolCall {
    fn read(fields: &Fields<'_>, templates: &mut Templates) -> Result<ToolCall, Problems> {
        Ok(ToolCall {
            tool: templates.text(fields.required("tool")?)?,
            args: fields.read("args", |node| read_object(node, templates))?,
            log_level: fields.read("logLevel", |node| Ok(node.str()?.to_owned()))?,
            is_task: fields.read("task", Node::bool)?.unwrap_or(false),
        })
    }
}

impl Completion {
    fn read(node: &Node, what: &str, templates: &mut Templates) -> Result<Completion, Problems> {
        let fields = node.fields(what, &["prompt", "resource", "argument", "value", "context"])?;
        let of = fields.exactly_one(&["prompt", "resource"])?;
        let (is_prompt, of) = (of.key == "prompt", templates.text(&of.node)?);
        let value = fields.read("value", |node| templates.text(node))?;
        Ok(Completion {
            of: if is_prompt { Completed::Prompt(of) } else { Completed::Resource(of) },
            argument: templates.text(fields.required("argument")?)?,
            value: value.unwrap_or_else(|| Text::Literal(String::new())),
            context: fields.read("context", |node| read_object(node, templates))?,
        })
    }
}

impl Listen {
    fn read(node: &Node, what: &str, templates: &mut Templates) -> Result<Listen, Problems> {
        let fields = node.fields(what, &["tools", "prompts", "resources", "uris"])?;
        let list = |key: &str| Ok::<_, Problems>(fields.read(key, Node::bool)?.unwrap_or(false));
        let (tools, prompts, resources) = (list("tools")?, list("prompts")?, list("resources")?);
        let uris = fields.read("uris", |node| node.one_or_more(|node| templates.text(node)))?;
        let listen = Listen { tools, prompts, resources, uris: uris.unwrap_or_default() };
        match listen {
            Listen { tools: false, prompts: false, resources: false, uris } if uris.is_empty() => {
                let problem = node.problem("nothing to listen to");
                Err(problem.hint("for example `tools: true`, or `uris: [file:///notes.md]`").into())
            }
            listen => Ok(listen),
        }
    }
}

/// The value at the one key that the mapping has, or the text that stands in its place.
fn single<'n>(node: &'n Node, what: &str, key: &str) -> Result<&'n Node, Problems> {
    match &node.value {
        Value::String(_) => Ok(node),
        _ => node.fields(what, &[key])?.required(key),
    }
}

fn read_object(node: &Node, templates: &mut Templates) -> Result<Data, Problems> {
    node.entries()?;
    templates.data(node)
}

fn read_parallel(
    node: &Node,
    source: &Source,
    folder: &Path,
    servers: &[&str],
    templates: &mut Templates,
) -> Result<Action, Problems> {
    let steps = node.each(|node| {
        let step = Step::read(node, source, folder, servers, templates)?;
        refuse_of_session(step.expect.as_ref(), node)?;
        if let Some(answers) = node.get("answers") {
            let problem = answers.problem("steps in parallel share their `answers`");
            return Err(problem.hint("write them beside `parallel`").into());
        }
        match step.action {
            Action::Parallel(_) | Action::Connect => Err(node.problem("this cannot run in parallel").into()),
            _ => Ok(step),
        }
    })?;
    if steps.is_empty() {
        return Err(node.problem("`parallel` needs at least one step").into());
    }
    Ok(Action::Parallel(steps))
}

/// What belongs to a session cannot be expected of steps that share it at the same time.
pub(super) fn refuse_of_session(expect: Option<&Expect>, node: &Node) -> Result<(), Problems> {
    match expect.and_then(Expect::of_session) {
        Some(key) => Err(node.problem(format!("`{key}` cannot be expected of steps in parallel")).into()),
        None => Ok(()),
    }
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
