//! Scripts that are generated. Every one is valid. What breaks the protocol on purpose is `odd` by its name.

use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::{Map, Value as Json, json};

use super::{
    choice::{Few, mostly_usual, pick},
    reply::{Reply, Text},
    step::{Condition, Step, write_steps},
};

pub(crate) const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const META: &str = "io.modelcontextprotocol/";

/// A script that can be written down with [`ScriptPlan::to_json`].
#[derive(Debug, Clone, Arbitrary)]
pub(crate) struct ScriptPlan {
    #[arbitrary(with = mostly_usual)]
    pub offered: Offered,
    page_size: Option<bool>,
    instructions: bool,
    state: bool,
    #[arbitrary(with = mostly_usual)]
    lapses_at_once: bool,
    #[arbitrary(with = mostly_usual)]
    form: Option<FormPlan>,
    #[arbitrary(with = mostly_usual)]
    patch: Option<Patch>,
    tools: Few<Stub, 1, 3>,
    prompts: Few<Stub, 0, 2>,
    resources: Few<Stub, 0, 2>,
    templates: Few<Stub, 0, 2>,
    methods: Few<Stub, 0, 1>,
    completions: Option<Text>,
}

#[derive(Debug, Clone, Copy, Arbitrary, Default, PartialEq, Eq)]
pub(crate) enum Offered {
    #[default]
    All,
    Legacy,
    Modern,
    OneLegacy(u8),
    OneLegacyAndModern(u8),
}

impl Offered {
    pub(crate) fn versions(self) -> Vec<&'static str> {
        let one = |which| pick(&LEGACY, which).copied();
        match self {
            Offered::All => LEGACY.into_iter().chain([MODERN]).collect(),
            Offered::Legacy => LEGACY.to_vec(),
            Offered::Modern => vec![MODERN],
            Offered::OneLegacy(which) => one(which).into_iter().collect(),
            Offered::OneLegacyAndModern(which) => one(which).into_iter().chain([MODERN]).collect(),
        }
    }
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum FormPlan {
    Auto,
    Json,
    Sse,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Patch {
    ListsChange,
    Logging,
    NoTools,
    Experimental,
    Completions,
}

#[derive(Debug, Clone, Arbitrary)]
struct Stub {
    #[arbitrary(with = mostly_usual)]
    disabled: bool,
    described: bool,
    schema: bool,
    #[arbitrary(with = mostly_usual)]
    delayed: bool,
    #[arbitrary(with = often_steps)]
    answer: Answer,
}

fn often_steps(u: &mut Unstructured<'_>) -> Result<Answer> {
    match u.int_in_range(0..=5)? {
        0..=2 => Ok(Answer::Interactive(u.arbitrary()?, u.arbitrary()?)),
        3 => Ok(Answer::Task(u.arbitrary()?, u.arbitrary()?)),
        _ => Answer::arbitrary(u),
    }
}

#[derive(Debug, Clone, Arbitrary)]
enum Answer {
    Nothing,
    Reply(Reply),
    Replies(Few<Reply, 1, 3>, Then),
    Steps(Few<Step, 0, 6>, End),
    Interactive(Few<Step, 2, 5>, Reply),
    Task(Few<Step, 1, 4>, Reply),
    Rules(Few<(When, Few<Step, 0, 3>, Reply), 1, 3>),
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Then {
    Last,
    Cycle,
    Error,
}

#[derive(Debug, Clone, Arbitrary)]
enum End {
    Reply(Reply),
    Maybe(Condition, Reply, Reply),
    Exit,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum When {
    Argument,
    Call(u8),
    Every(u8),
    State,
    Legacy,
    Modern,
    Version(u8),
    Probability,
    Later,
    Sampling,
    Header,
    Token,
}

/// What an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
    Template,
    Method,
}

/// What a script offers, by the names that requests use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub tools: Vec<String>,
    pub prompts: Vec<String>,
    pub resources: Vec<String>,
    pub templates: Vec<String>,
    pub methods: Vec<String>,
}

impl Names {
    pub(crate) fn of(&self, kind: Kind) -> &[String] {
        match kind {
            Kind::Tool => &self.tools,
            Kind::Prompt => &self.prompts,
            Kind::Resource => &self.resources,
            Kind::Template => &self.templates,
            Kind::Method => &self.methods,
        }
    }
}

/// Whether what has this name may break the protocol.
pub(crate) fn is_odd(name: &str) -> bool {
    name.contains("odd")
}

impl ScriptPlan {
    /// The same script, in which every tool runs as a task.
    pub(crate) fn with_tasks(mut self) -> ScriptPlan {
        self.offered = Offered::All;
        self.patch = None;
        for tool in &mut self.tools.0 {
            if let Answer::Interactive(steps, reply) = &tool.answer {
                tool.answer = Answer::Task(Few(steps.0.clone()), reply.clone());
            }
        }
        self
    }

    pub(crate) fn names(&self) -> Names {
        let named = |stubs: &[Stub], name: &dyn Fn(&str, usize) -> String| {
            let odd = |stub: &Stub| if stub.answer.is_odd() { "odd" } else { "" };
            stubs.iter().enumerate().map(|(index, stub)| name(odd(stub), index)).collect()
        };
        Names {
            tools: named(&self.tools, &|odd, index| format!("{odd}tool{index}")),
            prompts: named(&self.prompts, &|odd, index| format!("{odd}prompt{index}")),
            resources: named(&self.resources, &|odd, index| format!("file:///{odd}r{index}")),
            templates: named(&self.templates, &|odd, index| format!("item://{odd}x{index}/{{id}}{{?q}}")),
            methods: named(&self.methods, &|_, index| format!("odd/method{index}")),
        }
    }

    /// The script as a file has it.
    pub(crate) fn to_json(&self) -> Json {
        let names = self.names();
        let list = |kind: Kind, stubs: &[Stub]| {
            let stubs = stubs.iter().zip(names.of(kind)).map(|(stub, name)| stub.to_json(kind, name, &names));
            stubs.collect::<Vec<_>>()
        };
        let mut script = Map::new();
        script.insert("server".into(), json!({ "name": "generated", "version": "1.0.0", "title": "Ge\"n" }));
        script.insert("protocol".into(), json!(self.offered.versions()));
        for (key, kind, stubs) in [
            ("tools", Kind::Tool, &self.tools[..]),
            ("prompts", Kind::Prompt, &self.prompts[..]),
            ("resources", Kind::Resource, &self.resources[..]),
            ("resourceTemplates", Kind::Template, &self.templates[..]),
            ("methods", Kind::Method, &self.methods[..]),
        ] {
            script.insert(key.into(), list(kind, stubs).into());
        }
        if let Some(two) = self.page_size {
            script.insert("pageSize".into(), if two { 2 } else { 1 }.into());
        }
        if self.instructions {
            script.insert("instructions".into(), "Be \"nice\".\n".into());
        }
        if self.state {
            script.insert("state".into(), json!({ "n": 1, "list": [] }));
        }
        if self.lapses_at_once {
            script.insert("requestState".into(), json!({ "ttl": "0ms" }));
        }
        if let Some(form) = self.form {
            let form = match form {
                FormPlan::Auto => "auto",
                FormPlan::Json => "json",
                FormPlan::Sse => "sse",
            };
            script.insert("http".into(), json!({ "answers": form }));
        }
        if let Some(patch) = self.patch {
            script.insert("capabilities".into(), patch.to_json());
        }
        if let Some(values) = self.completions {
            // Only a prompt with a schema has arguments.
            let prompts = names.prompts.iter().zip(self.prompts.iter()).filter(|(_, prompt)| prompt.schema);
            let prompt = prompts.map(|(name, _)| ("prompt", name));
            let template = names.templates.iter().map(|name| ("resource", name));
            let values = if let Text::List = values { json!(values.as_str("")) } else { json!(["Paris", "pa", "x"]) };
            let all =
                prompt.chain(template).map(|(key, name)| json!({ key: name, "argument": "id", "values": values }));
            script.insert("completions".into(), all.collect::<Vec<_>>().into());
        }
        Json::Object(script)
    }
}

impl Patch {
    fn to_json(self) -> Json {
        match self {
            Patch::ListsChange => {
                json!({ "tools": { "listChanged": true }, "resources": { "listChanged": true, "subscribe": true } })
            }
            Patch::Logging => json!({ "logging": {} }),
            Patch::NoTools => json!({ "tools": null }),
            Patch::Experimental => json!({ "experimental": { "x/y": { "z": 1 } } }),
            Patch::Completions => json!({ "completions": {} }),
        }
    }
}

impl Stub {
    fn to_json(&self, kind: Kind, name: &str, names: &Names) -> Json {
        let mut stub = Map::new();
        let key = match kind {
            Kind::Tool | Kind::Prompt => "name",
            Kind::Resource => "uri",
            Kind::Template => "uriTemplate",
            Kind::Method => "method",
        };
        stub.insert(key.into(), name.into());
        if self.disabled && kind != Kind::Method {
            stub.insert("enabled".into(), false.into());
        }
        if self.described && kind != Kind::Method {
            stub.insert("description".into(), "Says \"hi\"\u{2028}.".into());
            stub.insert("title".into(), "T".into());
        }
        if self.schema {
            match kind {
                Kind::Tool => {
                    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
                    stub.insert("inputSchema".into(), schema);
                }
                Kind::Prompt => {
                    stub.insert("arguments".into(), json!([{ "name": "a", "required": true }, { "name": "id" }]));
                }
                Kind::Resource | Kind::Template => {
                    stub.insert("mimeType".into(), "text/plain".into());
                }
                Kind::Method => {}
            }
        }
        if self.delayed {
            stub.insert("delay".into(), "20ms".into());
        }
        self.answer.write(kind, names, &mut stub);
        Json::Object(stub)
    }
}

impl Answer {
    fn is_odd(&self) -> bool {
        match self {
            Answer::Nothing => false,
            Answer::Reply(reply)
            | Answer::Steps(_, End::Reply(reply))
            | Answer::Interactive(_, reply)
            | Answer::Task(_, reply) => reply.is_odd(),
            Answer::Replies(replies, _) => replies.iter().any(Reply::is_odd),
            Answer::Steps(_, End::Maybe(_, a, b)) => a.is_odd() || b.is_odd(),
            Answer::Steps(_, End::Exit) => false,
            Answer::Rules(rules) => rules.iter().any(|(.., reply)| reply.is_odd()),
        }
    }

    fn write(&self, kind: Kind, names: &Names, stub: &mut Map<String, Json>) {
        match self {
            Answer::Nothing => {}
            Answer::Reply(reply) => {
                stub.insert("reply".into(), reply.to_json(kind, ""));
            }
            Answer::Replies(replies, then) => {
                let replies = replies.iter().map(|reply| reply.to_json(kind, ""));
                stub.insert("replies".into(), replies.collect::<Vec<_>>().into());
                let then = match then {
                    Then::Last => "last",
                    Then::Cycle => "cycle",
                    Then::Error => "error",
                };
                stub.insert("then".into(), then.into());
            }
            Answer::Steps(steps, end) => {
                let (mut steps, bound) = write_steps(steps, kind, names);
                match end {
                    End::Reply(reply) => steps.push(json!({ "reply": reply.to_json(kind, &bound) })),
                    End::Maybe(condition, first, last) => {
                        let first = first.to_json(kind, &bound);
                        steps.push(json!({ "if": condition.as_str(), "reply": first }));
                        steps.push(json!({ "reply": last.to_json(kind, &bound) }));
                    }
                    End::Exit => steps.push(json!({ "exit": 3 })),
                }
                stub.insert("steps".into(), steps.into());
            }
            Answer::Interactive(steps, reply) => {
                let (mut steps, bound) = write_steps(steps, kind, names);
                steps.push(json!({ "reply": reply.to_json(kind, &bound) }));
                stub.insert("steps".into(), steps.into());
            }
            Answer::Task(steps, reply) => {
                let (mut steps, bound) = write_steps(steps, kind, names);
                if kind == Kind::Tool {
                    steps.insert(0, json!({ "task": {} }));
                }
                steps.push(json!({ "reply": reply.to_json(kind, &bound) }));
                stub.insert("steps".into(), steps.into());
            }
            Answer::Rules(rules) => {
                let last = rules.len() - 1;
                let rule = |(index, (when, steps, reply)): (usize, &(When, Few<Step, 0, 3>, Reply))| {
                    let (mut steps, bound) = write_steps(steps, kind, names);
                    steps.push(json!({ "reply": reply.to_json(kind, &bound) }));
                    let mut rule = json!({ "steps": steps });
                    if index < last {
                        rule["when"] = when.to_json();
                    }
                    rule
                };
                stub.insert("rules".into(), rules.iter().enumerate().map(rule).collect::<Vec<_>>().into());
            }
        }
    }
}

impl When {
    fn to_json(self) -> Json {
        match self {
            When::Argument => json!({ "args": { "a": { "exists": true } } }),
            When::Call(number) => json!({ "call": number % 4 }),
            When::Every(number) => json!({ "call": { "every": number % 3 + 1 } }),
            When::State => json!({ "state": { "n": { "exists": true } } }),
            When::Legacy => json!({ "era": "legacy" }),
            When::Modern => json!({ "era": "modern" }),
            When::Version(which) => json!({ "version": pick(&LEGACY, which).copied().unwrap_or(MODERN) }),
            When::Probability => json!({ "probability": 0.5 }),
            When::Later => json!({ "time": { "after": "1s" } }),
            When::Sampling => json!({ "capabilities": { "sampling": { "exists": true } } }),
            When::Header => json!({ "headers": { "Mcp-Method": { "exists": true } } }),
            When::Token => json!({ "params": { "_meta": { "progressToken": { "exists": true } } } }),
        }
    }
}
