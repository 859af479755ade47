//! What a step does.

use std::{path::Path, time::Duration};

use super::{
    Expectations, Step,
    agent_step::{AgentStep, EvalOptions},
    final_answer::FinalAnswer,
    host_step::HostStep,
};
use crate::keys::KEYS;
use rehearse_document::{
    Entry, Fields, Node, Problems, Source, Value,
    matcher::Matcher,
    template::{Data, Templates, Text},
    text::shortened,
};
use rehearse_protocol::{List, Protocol, Transport};
use rehearse_report::Cell;

/// How many characters of a prompt are in the title of a step.
const PROMPT: usize = 60;

/// What a step does.
#[derive(Debug)]
pub enum Action {
    /// Opens the session; without this action the first step that needs it does. The result is the server's information.
    Connect,
    /// Lists all tools, prompts, resources and resource templates.
    Discover {
        /// Whether a snapshot must have the same text. Else only a change fails that may break or change what others do.
        strict: bool,
    },
    /// Calls a tool.
    Call(ToolCall),
    /// Calls a tool and cancels the call.
    Cancel {
        /// The call.
        call: ToolCall,
        /// The delay before the cancellation; for a task, from when the server has created it.
        after: Duration,
    },
    /// Lists all items of a list other than the tools.
    List(List),
    /// Reads a resource.
    ReadResource {
        /// The URI of the resource.
        uri: Text,
    },
    /// Gets a prompt.
    GetPrompt {
        /// The name of the prompt.
        name: Text,
        /// The arguments of the prompt.
        args: Option<Data>,
    },
    /// Completes an argument of a prompt or a resource template.
    Complete(Completion),
    /// Subscribes to the updates of a resource.
    Subscribe {
        /// The URI of the resource.
        uri: Text,
    },
    /// Ends the subscription to a resource.
    Unsubscribe {
        /// The URI of the resource.
        uri: Text,
    },
    /// Subscribes to change notifications.
    Listen(ListenFilter),
    /// Waits for a notification that no earlier step has consumed.
    AwaitNotification {
        /// The method of the notification.
        method: Text,
        /// What its parameters must match.
        params: Option<Matcher>,
    },
    /// Sets the minimum level of log messages.
    SetLogLevel(Text),
    /// Sends a ping.
    Ping,
    /// Sends any request.
    Request {
        /// The method of the request.
        method: Text,
        /// Its parameters.
        params: Option<Data>,
    },
    /// Runs several steps at the same time.
    Parallel(Vec<Step>),
    /// Sends bytes without change.
    Raw {
        /// The frame.
        frame: Data,
        /// Whether the frame is a string, which may be invalid JSON.
        is_text: bool,
        /// HTTP headers to set, or to remove (`None`).
        headers: Vec<(String, Option<String>)>,
    },
    /// Extracts the final answer of a subagent from a dialog. This needs no server.
    FinalAnswer(FinalAnswer),
    /// Lets models work with the tools of the server.
    Agent(AgentStep),
    /// Runs a real host with the server.
    Host(Box<HostStep>),
}

/// The call of a tool.
#[derive(Debug)]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: Text,
    /// The arguments.
    pub args: Option<Data>,
    /// The minimum level of log messages during the call.
    pub log_level: Option<String>,
    /// Whether the server may run the call as a task.
    pub is_task: bool,
}

/// The completion of an argument.
#[derive(Debug)]
pub struct Completion {
    /// The prompt or resource template.
    pub target: CompletionTarget,
    /// The name of the argument.
    pub argument: Text,
    /// The start of its value.
    pub value: Text,
    /// The values of other arguments.
    pub context: Option<Data>,
}

/// The owner of an argument.
#[derive(Debug)]
pub enum CompletionTarget {
    /// A prompt, by name.
    Prompt(Text),
    /// A resource template, by URI.
    Resource(Text),
}

/// The change notifications to subscribe to.
#[derive(Debug)]
pub struct ListenFilter {
    /// Changes of these lists.
    pub lists: Vec<List>,
    /// Updates of these resources.
    pub uris: Vec<Text>,
}

impl Action {
    pub(crate) fn read(
        key: &str,
        node: &Node,
        source: &Source,
        folder: &Path,
        servers: &[&str],
        templates: &mut Templates,
    ) -> Result<Action, Problems> {
        let what = format!("`{key}`");
        let nothing = |action: Action| KEYS.fields_as(node, "nothing", &what).map(|_| action);
        match key {
            "connect" => nothing(Action::Connect),
            "discover" => {
                let strict = KEYS.fields(node, key)?.read("strict", Node::bool)?.unwrap_or_default();
                Ok(Action::Discover { strict })
            }
            "call" => Ok(Action::Call(ToolCall::read(&KEYS.fields(node, key)?, templates)?)),
            "cancel" => {
                let fields = KEYS.fields(node, key)?;
                let after = fields.read("after", Node::duration)?.unwrap_or_default();
                Ok(Action::Cancel { call: ToolCall::read(&fields, templates)?, after })
            }
            "read_resource" => {
                Ok(Action::ReadResource { uri: templates.text(only_value(node, "uri", &what, "uri")?)? })
            }
            "get_prompt" => {
                let fields = KEYS.fields(node, key)?;
                let name = templates.text(fields.required("name")?)?;
                Ok(Action::GetPrompt { name, args: fields.read("args", |node| read_object(node, templates))? })
            }
            "complete" => Ok(Action::Complete(Completion::read(node, templates)?)),
            "subscribe" => Ok(Action::Subscribe { uri: templates.text(only_value(node, "uri", &what, "uri")?)? }),
            "unsubscribe" => Ok(Action::Unsubscribe { uri: templates.text(only_value(node, "uri", &what, "uri")?)? }),
            "listen" => Ok(Action::Listen(ListenFilter::read(node, templates)?)),
            "await_notification" => {
                let (method, params) = match &node.value {
                    Value::String(_) => (node, None),
                    _ => {
                        let fields = KEYS.fields(node, key)?;
                        (fields.required("method")?, fields.read("params", Matcher::read)?)
                    }
                };
                Ok(Action::AwaitNotification { method: templates.text(method)?, params })
            }
            "set_log_level" => Ok(Action::SetLogLevel(templates.text(only_value(node, key, &what, "level")?)?)),
            "ping" => nothing(Action::Ping),
            "request" => {
                let fields = KEYS.fields(node, key)?;
                let method = templates.text(fields.required("method")?)?;
                Ok(Action::Request { method, params: fields.read("params", |node| read_object(node, templates))? })
            }
            "parallel" => read_parallel(node, source, folder, servers, templates),
            "final_answer" => Ok(Action::FinalAnswer(FinalAnswer::read(node, folder, templates)?)),
            "agent" => Ok(Action::Agent(AgentStep::read(node, folder, templates)?)),
            "host" => Ok(Action::Host(Box::new(HostStep::read(node, folder, templates)?))),
            _ => match List::of_step(key) {
                Some(list) => nothing(Action::List(list)),
                None => read_raw(node, templates),
            },
        }
    }

    /// The tool call of the action.
    pub(crate) fn call(&self) -> Option<&ToolCall> {
        match self {
            Action::Call(call) | Action::Cancel { call, .. } => Some(call),
            _ => None,
        }
    }

    /// How models play the action, if they do.
    pub(crate) fn eval(&self) -> Option<&EvalOptions> {
        match self {
            Action::Agent(step) => step.eval(),
            _ => None,
        }
    }

    /// Whether the action can be in a cell of this transport and version: a host chooses its version.
    pub(crate) fn fits(&self, cell: Cell) -> bool {
        let is_of_hosts = matches!(cell.transport, Transport::Stdio | Transport::Http);
        !matches!(self, Action::Host(_)) || is_of_hosts && cell.protocol == Protocol::Auto
    }

    /// Whether the action needs a server.
    pub(crate) fn needs_session(&self) -> bool {
        !matches!(self, Action::FinalAnswer(_))
    }

    /// Whether the servers of a config can do it.
    pub(crate) fn exists_for_config(&self) -> bool {
        match self {
            Action::Call(call) => call.log_level.is_none() && !call.is_task,
            Action::Discover { .. } | Action::Parallel(_) | Action::FinalAnswer(_) | Action::Agent(_) => true,
            _ => false,
        }
    }

    /// The title of the action in reports: `call echo`.
    pub(crate) fn title(&self) -> String {
        let text = |text: &Text| match text {
            Text::Literal(text) => text.clone(),
            Text::Expression(_) | Text::Template { .. } => "{{ … }}".into(),
        };
        match self {
            Action::Connect => "connect".into(),
            Action::Discover { .. } => "discover".into(),
            Action::Call(call) => format!("call {}", text(&call.tool)),
            Action::Cancel { call, .. } => format!("cancel {}", text(&call.tool)),
            Action::List(list) => list.step().into(),
            Action::ReadResource { uri } => format!("read_resource {}", text(uri)),
            Action::GetPrompt { name, .. } => format!("get_prompt {}", text(name)),
            Action::Complete(Completion {
                target: CompletionTarget::Prompt(of) | CompletionTarget::Resource(of),
                argument,
                ..
            }) => {
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
            Action::Agent(step) => match step.prompt().filter(|_| step.eval().is_some()) {
                Some(prompt) => format!("agent {:?}", shortened(prompt.lines().next().unwrap_or_default(), PROMPT)),
                None => "agent".into(),
            },
            Action::Host(step) => format!("host {}", step.host.name),
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
    fn read(node: &Node, templates: &mut Templates) -> Result<Completion, Problems> {
        let fields = KEYS.fields(node, "complete")?;
        let of = fields.exactly_one(&KEYS.choices("complete"))?;
        let (is_prompt, of) = (of.key == "prompt", templates.text(&of.node)?);
        let value = fields.read("value", |node| templates.text(node))?;
        Ok(Completion {
            target: if is_prompt { CompletionTarget::Prompt(of) } else { CompletionTarget::Resource(of) },
            argument: templates.text(fields.required("argument")?)?,
            value: value.unwrap_or_else(|| Text::Literal(String::new())),
            context: fields.read("context", |node| read_object(node, templates))?,
        })
    }
}

impl ListenFilter {
    fn read(node: &Node, templates: &mut Templates) -> Result<ListenFilter, Problems> {
        let fields = KEYS.fields(node, "listen")?;
        let mut lists = List::WATCHED.to_vec();
        let wanted = lists.iter().map(|list| fields.read(list.member(), Node::bool));
        let mut wanted = Problems::collect(wanted)?.into_iter();
        lists.retain(|_| wanted.next().flatten() == Some(true));
        let uris = fields.read("uris", |node| node.one_or_more(|node| templates.text(node)))?.unwrap_or_default();
        if lists.is_empty() && uris.is_empty() {
            let problem = node.problem("nothing to listen to");
            return Err(problem.hint("for example `tools: true`, or `uris: [file:///notes.md]`").into());
        }
        Ok(ListenFilter { lists, uris })
    }
}

/// The value of the only key, or the string that replaces the object.
fn only_value<'n>(node: &'n Node, object: &str, what: &str, key: &str) -> Result<&'n Node, Problems> {
    match &node.value {
        Value::String(_) => Ok(node),
        _ => KEYS.fields_as(node, object, what)?.required(key),
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
        refuse_session_expectations(step.expect.as_ref(), node)?;
        if let Some(answers) = node.get("answers") {
            let problem = answers.problem("parallel steps share their `answers`");
            return Err(problem.hint("move them next to `parallel`").into());
        }
        match step.action {
            Action::Agent(agent) if agent.eval().is_some() => {
                Err(node.problem("a step with `models` cannot run in parallel").into())
            }
            Action::Parallel(_) | Action::Connect | Action::Host(_) => {
                Err(node.problem("this action cannot run in parallel").into())
            }
            _ => Ok(step),
        }
    })?;
    if steps.is_empty() {
        return Err(node.problem("`parallel` needs at least one step").into());
    }
    Ok(Action::Parallel(steps))
}

/// Rejects expectations about the whole session, which parallel steps share.
pub(crate) fn refuse_session_expectations(expect: Option<&Expectations>, node: &Node) -> Result<(), Problems> {
    match expect.and_then(Expectations::session_key) {
        Some(key) => Err(node.problem(format!("`{key}` cannot be expected of parallel steps")).into()),
        None => Ok(()),
    }
}

/// A frame as a string or as data that is sent as JSON; or an object with `frame` and HTTP `headers`.
fn read_raw(node: &Node, templates: &mut Templates) -> Result<Action, Problems> {
    let (frame, headers) = match node.get("frame") {
        Some(frame) => {
            let fields = KEYS.fields(node, "raw")?;
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
