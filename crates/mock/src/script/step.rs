//! Steps: the actions of a longer answer.

use std::time::Duration;

use super::{
    InputRequest, ItemKind, LogLevel, PromptItem, Reply, ReplySubject, ResourceItem, ResourceTemplateItem,
    ScriptReader, ToolItem, keys::KEYS, repeat,
};
use rehearse_document::{
    Entry, Node, Problem, Problems, Value,
    template::{Data, NativeExpression, Text},
};
use rehearse_protocol::List;

/// The default time limit for the client's answer to a request.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// One action and its condition.
#[derive(Debug)]
pub struct Step {
    /// An expression; the step is skipped unless it is true.
    pub condition: Option<Box<NativeExpression>>,
    /// The action of the step.
    pub action: Action,
}

/// The action of a step.
#[derive(Debug)]
pub enum Action {
    /// Waits.
    Wait(Duration),
    /// A wait whose length is a template.
    WaitAs(Text),
    /// `notifications/message`, if the client wants this level.
    Log {
        /// The severity.
        level: LogLevel,
        /// The name of the logger.
        logger: Option<Text>,
        /// The data of the message.
        data: Data,
    },
    /// `notifications/progress`, if the client sent a token. The members besides the token.
    Progress(Vec<(&'static str, Data)>),
    /// Input requests to the client, all at once. Never empty.
    RequestInput {
        /// The requests.
        requests: Vec<InputRequest>,
        /// The time limit for the answers.
        limit: Duration,
    },
    /// Values of the server's state; a null removes one.
    Set(Vec<(String, Data)>),
    /// A notification to its subscribers, or to the caller if clients cannot subscribe to it.
    Notify {
        /// The method of the notification.
        method: String,
        /// The parameters of the notification.
        params: Option<Data>,
    },
    /// Changes a list.
    ListChange(ListChange),
    /// Makes the call a task.
    Task(TaskSpec),
    /// The stream of the answer is closed, and can be resumed; with the time after which the client should reconnect.
    Disconnect(Option<Duration>),
    /// Answers.
    Reply(Reply),
    /// The server exits with this code, without an answer.
    Exit(u8),
}

/// A change of a list of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListChange {
    /// Shows the item of this name.
    Enable(ItemKind, String),
    /// Hides the item of this name.
    Disable(ItemKind, String),
    /// Replaces an item; the index counts the script's replacements of this kind.
    Replace(ItemKind, usize),
}

impl ListChange {
    /// The kind of item whose list changes.
    pub fn kind(&self) -> ItemKind {
        match self {
            ListChange::Enable(kind, _) | ListChange::Disable(kind, _) | ListChange::Replace(kind, _) => *kind,
        }
    }
}

/// Continues a call as a task, if the client supports tasks (SEP-2663, Task Creation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// The time to live of the task, from its creation; `None` for no limit.
    pub ttl: Option<Duration>,
    /// The poll interval for the client.
    pub poll_interval: Duration,
    /// Whether a client without tasks is refused.
    pub required: bool,
}

impl From<Action> for Step {
    fn from(action: Action) -> Self {
        Step { condition: None, action }
    }
}

impl Step {
    /// Refuses the keys of steps beside the keys of an item or a rule.
    ///
    /// # Errors
    /// There is one.
    pub(super) fn refuse_keys(node: &Node, what: &str, keys: &[&str]) -> Result<(), Problems> {
        let (actions, entries) = (KEYS.choices("action"), node.as_entries().unwrap_or_default());
        let step = entries.iter().find(|entry| actions.contains(&&*entry.key) && !keys.contains(&&*entry.key));
        step.map_or(Ok(()), |Entry { key, key_span, .. }| {
            let problem = Problem::new(*key_span, format!("{what} has no key `{key}`: it is a step"));
            Err(problem.hint(format!("write `steps: [{{ {key}: … }}, {{ reply: … }}]`")).into())
        })
    }

    pub(super) fn read_all(
        node: &Node,
        subject: &ReplySubject,
        reader: &mut ScriptReader,
    ) -> Result<Vec<Step>, Problems> {
        let steps = node.each(|node| Step::read(node, subject, reader))?;
        let ends = |step: &Step| step.condition.is_none() && matches!(step.action, Action::Reply(_) | Action::Exit(_));
        match steps.iter().position(ends) {
            Some(end) if end + 1 == steps.len() => Ok(steps),
            Some(end) => Err(node.items()?[end + 1].problem("nothing may follow a `reply` or an `exit`").into()),
            None => Err(node.problem("the last step must be a `reply` or an `exit`").into()),
        }
    }

    fn read(node: &Node, subject: &ReplySubject, reader: &mut ScriptReader) -> Result<Step, Problems> {
        let fields = KEYS.fields(node, "action")?;
        let condition = fields.read("if", |node| reader.templates.condition(node))?;
        let Entry { key, node, .. } = fields.exactly_one(&KEYS.choices("action"))?;
        Ok(Step { condition, action: Action::read(key, node, subject, reader)? })
    }
}

impl Action {
    fn read(key: &str, node: &Node, subject: &ReplySubject, reader: &mut ScriptReader) -> Result<Action, Problems> {
        Ok(match key {
            "wait" => match &node.value {
                Value::String(text) if text.contains("{{") => Action::WaitAs(reader.templates.text(node)?),
                _ => Action::Wait(node.duration()?),
            },
            "log" => Action::read_log(node, reader)?,
            "progress" => Action::read_progress(node, reader)?,
            "elicit" | "sample" | "roots" | "ask" => {
                if *subject == ReplySubject::Method {
                    return Err(node.problem("only tools, prompts and resources can ask the client").into());
                }
                reader.uses.input_requests = true;
                Action::read_ask(key, node, reader)?
            }
            "set" => {
                let values = node.entries()?.iter();
                let values = values.map(|entry| Ok((entry.key.clone(), reader.templates.data(&entry.node)?)));
                Action::Set(Problems::collect(values)?)
            }
            "notify" => Action::read_notify(node, reader)?,
            "enable" | "disable" | "replace" => Action::read_change(key, node, reader)?,
            "task" => {
                if *subject != ReplySubject::Tool {
                    return Err(node.problem("only a tool can run as a task").into());
                }
                reader.uses.tasks = true;
                Action::Task(TaskSpec::read(node)?)
            }
            "disconnect" => {
                let fields = KEYS.fields(node, "disconnect")?;
                Action::Disconnect(fields.read("retry", Node::duration)?)
            }
            "reply" => Action::Reply(Reply::read(node, subject, &mut reader.templates)?),
            "exit" if node.is_null() => Action::Exit(1),
            "exit" => Action::Exit(node.integer()?),
            _ => return Err(node.problem(format!("{key} is no step")).into()),
        })
    }

    fn read_log(node: &Node, reader: &mut ScriptReader) -> Result<Action, Problems> {
        reader.uses.logging = true;
        if let Value::String(_) = node.value {
            return Ok(Action::Log { level: LogLevel::INFO, logger: None, data: reader.templates.data(node)? });
        }
        let fields = KEYS.fields(node, "log")?;
        Ok(Action::Log {
            level: fields.read("level", LogLevel::read)?.unwrap_or(LogLevel::INFO),
            logger: fields.read("logger", |node| reader.templates.text(node))?,
            data: reader.templates.data(fields.required("data")?)?,
        })
    }

    fn read_progress(node: &Node, reader: &mut ScriptReader) -> Result<Action, Problems> {
        let fields = KEYS.fields(node, "progress")?;
        let is_number = |node: &Node| match &node.value {
            Value::Number(_) => true,
            Value::String(text) => text.contains("{{"),
            _ => false,
        };
        fields.required("progress")?;
        let numbers = ["progress", "total"].into_iter().filter_map(|name| Some((name, fields.get(name)?)));
        for (name, node) in numbers {
            if !is_number(node) {
                return Err(node.problem(format!("`{name}` is a number")).into());
            }
        }
        let mut members = Vec::new();
        for name in ["progress", "total", "message"] {
            if let Some(node) = fields.get(name) {
                let is_text = name == "message";
                let templates = &mut reader.templates;
                members.push((name, if is_text { templates.text_data(node)? } else { templates.data(node)? }));
            }
        }
        Ok(Action::Progress(members))
    }

    fn read_ask(key: &str, node: &Node, reader: &mut ScriptReader) -> Result<Action, Problems> {
        let mut limit = ANSWER_LIMIT;
        let requests = if key == "ask" {
            let entries = node.entries()?.iter();
            let requests = entries.map(|entry| {
                let Entry { key, node, .. } = KEYS.choice(&entry.node, "inputRequest")?;
                InputRequest::read(key, node, Some((&entry.key, entry.key_span)), reader, &mut limit)
            });
            Problems::collect(requests)?
        } else {
            vec![InputRequest::read(key, node, None, reader, &mut limit)?]
        };
        if requests.is_empty() {
            return Err(node.problem("`ask` needs at least one input request").into());
        }
        Ok(Action::RequestInput { requests, limit })
    }

    fn read_notify(node: &Node, reader: &mut ScriptReader) -> Result<Action, Problems> {
        let (method, params) = match node.value {
            Value::String(_) => (node, None),
            _ => {
                let fields = KEYS.fields(node, "notify")?;
                (fields.required("method")?, fields.get("params"))
            }
        };
        let name = method.str()?;
        if !name.starts_with("notifications/") {
            let problem = method.problem("the method of a notification must begin with `notifications/`");
            return Err(problem.hint("for example notifications/resources/updated").into());
        }
        match name {
            "notifications/resources/updated" => {
                reader.uses.updates = true;
                if params.and_then(|params| params.get("uri")).is_none() {
                    return Err(node.problem("notifications/resources/updated needs `params: { uri: … }`").into());
                }
            }
            _ => {
                if let Some(list) = List::of_change(name) {
                    reader.uses.changes(list.into());
                }
            }
        }
        let params = params.map(|params| params.entries().and_then(|_| reader.templates.data(params))).transpose()?;
        Ok(Action::Notify { method: name.to_owned(), params })
    }

    fn read_change(key: &str, node: &Node, reader: &mut ScriptReader) -> Result<Action, Problems> {
        let fields = KEYS.fields_as(node, "change", &format!("`{key}`"))?;
        let Entry { key: kind, node, .. } = fields.exactly_one(&KEYS.choices("change"))?;
        let kind = ItemKind::of_key(kind).unwrap_or(ItemKind::Tool);
        reader.uses.changes(kind);
        Ok(Action::ListChange(match key {
            "enable" | "disable" => {
                let name = node.str()?.to_owned();
                reader.mentioned.push((kind, name.clone(), node.span));
                if key == "enable" { ListChange::Enable(kind, name) } else { ListChange::Disable(kind, name) }
            }
            _ => {
                if let Some(repeat) = node.get(repeat::KEY) {
                    return Err(repeat.problem("a replacement is one, and cannot repeat").into());
                }
                let bound = reader.templates.bound();
                // A replacement may itself replace others, which are then in the list before it.
                let index = match kind {
                    ItemKind::Tool => {
                        let tool = ToolItem::read(node, reader)?;
                        append(&mut reader.replacements.tools, tool)
                    }
                    ItemKind::Prompt => {
                        let prompt = PromptItem::read(node, reader)?;
                        append(&mut reader.replacements.prompts, prompt)
                    }
                    ItemKind::Resource => {
                        let resource = ResourceItem::read(node, reader)?;
                        append(&mut reader.replacements.resources, resource)
                    }
                    _ => {
                        let template = ResourceTemplateItem::read(node, reader)?;
                        append(&mut reader.replacements.resource_templates, template)
                    }
                };
                reader.templates.rebind(bound);
                ListChange::Replace(kind, index)
            }
        }))
    }
}

/// Appends an item; its position.
fn append<T>(list: &mut Vec<T>, item: T) -> usize {
    list.push(item);
    list.len() - 1
}

impl TaskSpec {
    fn read(node: &Node) -> Result<TaskSpec, Problems> {
        let fields = KEYS.fields(node, "task")?;
        Ok(TaskSpec {
            ttl: fields.read("ttl", Node::duration)?,
            poll_interval: fields.read("pollInterval", Node::duration)?.unwrap_or(Duration::from_millis(500)),
            required: fields.read("required", Node::bool)?.unwrap_or(false),
        })
    }
}
