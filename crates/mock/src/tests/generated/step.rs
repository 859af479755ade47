//! Steps of generated scripts.

use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::{Value as Json, json};

use super::{
    choice::{Few, mostly_usual, pick},
    reply::Text,
    script::{Kind, LEVELS, Names},
};

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum Condition {
    FirstCall,
    HasArgument,
    HasState,
    Fails,
}

#[derive(Debug, Clone, Arbitrary)]
pub(crate) struct Step {
    #[arbitrary(with = mostly_usual)]
    condition: Option<Condition>,
    #[arbitrary(with = often_interactive)]
    action: Action,
}

pub(crate) fn often_interactive(u: &mut Unstructured<'_>) -> Result<Action> {
    Ok(match u.int_in_range(0..=11)? {
        0 => Action::Elicit(u.arbitrary()?),
        1 => Action::Sample(u.arbitrary()?),
        2 => Action::Ask(u.arbitrary()?),
        3 => Action::Task { ends: u.arbitrary()?, required: u.ratio(1, 8)? },
        4 => Action::Notify(u.arbitrary()?),
        5 => Action::Change(u.arbitrary()?, u.arbitrary()?, u.arbitrary()?),
        _ => u.arbitrary()?,
    })
}

#[derive(Debug, Clone, Arbitrary)]
pub(crate) enum Action {
    Wait(u8),
    WaitAs(Text),
    Log(u8, Text),
    Progress(bool, Text),
    /// A template, of a number or of something else.
    ProgressOf(bool),
    Elicit(AskPlan),
    Sample(AskPlan),
    Roots(AskPlan),
    Ask(Few<(AskPlan, u8), 1, 3>),
    Set(Text),
    Unset,
    Notify(u8),
    Change(u8, u8, u8),
    Task {
        ends: bool,
        required: bool,
    },
    Disconnect(bool),
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) struct AskPlan {
    optional: bool,
    /// Asks for what only some clients have: a URL, tools in sampling.
    special: bool,
    text: Text,
}

/// The steps, and the name of an answer that is bound after them.
pub(crate) fn write_steps(steps: &[Step], kind: Kind, names: &Names) -> (Vec<Json>, String) {
    let (mut all, mut bound) = (Vec::new(), String::new());
    for (index, step) in steps.iter().enumerate() {
        let name = format!("q{index}");
        let Some((key, mut value)) = step.action.to_json(kind, names, &name, index, &bound) else { continue };
        let asks = ["elicit", "sample", "roots"].contains(&key);
        if asks {
            value["as"] = name.clone().into();
        }
        if (asks || key == "ask") && step.condition.is_none() {
            bound = if asks { name } else { format!("{name}_0") };
        }
        let mut step_json = json!({ key: value });
        if let Some(condition) = step.condition {
            step_json["if"] = condition.as_str().into();
        }
        all.push(step_json);
    }
    (all, bound)
}

impl Condition {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Condition::FirstCall => "call == 1",
            Condition::HasArgument => "args.a is defined",
            Condition::HasState => "state.n is defined and state.n > 1",
            Condition::Fails => "args.missing.deeper",
        }
    }
}

impl Action {
    /// The key of the step and its value; `None` where the script has nothing for it. Numbers grow with `index`.
    pub(super) fn to_json(
        &self,
        kind: Kind,
        names: &Names,
        name: &str,
        index: usize,
        bound: &str,
    ) -> Option<(&'static str, Json)> {
        Some(match self {
            Action::Wait(time) => ("wait", format!("{time}ms").into()),
            Action::WaitAs(Text::Call) => ("wait", "{{ call }}ms".into()),
            Action::WaitAs(text) => ("wait", format!("{{{{ 5 }}}}{}", text.as_str(bound)).into()),
            Action::Log(level, text) => {
                let level = pick(&LEVELS, *level).copied().unwrap_or("info");
                ("log", json!({ "level": level, "logger": text.as_str(bound), "data": { "text": text.as_str(bound) } }))
            }
            Action::Progress(bare, text) => match bare {
                true => ("progress", json!({ "progress": index * 1000 })),
                false => (
                    "progress",
                    json!({ "progress": format!("{{{{ {index} * 1000 + 1.5 }}}}"), "total": 99, "message": text.as_str(bound) }),
                ),
            },
            Action::ProgressOf(true) => ("progress", json!({ "progress": format!("{{{{ {index} * 1000 + call }}}}") })),
            Action::ProgressOf(false) => ("progress", json!({ "progress": "{{ params }}" })),
            Action::Elicit(_) | Action::Sample(_) | Action::Roots(_) | Action::Ask(_) if kind == Kind::Method => {
                return None;
            }
            Action::Elicit(ask) => ("elicit", ask.question(0, bound).1),
            Action::Sample(ask) => ("sample", ask.question(1, bound).1),
            Action::Roots(ask) => ("roots", ask.question(2, bound).1),
            Action::Ask(asks) => {
                let question = |(index, (ask, which)): (usize, &(AskPlan, u8))| {
                    let (key, question) = ask.question(*which, bound);
                    (format!("{name}_{index}"), json!({ key: question }))
                };
                ("ask", Json::Object(asks.iter().enumerate().map(question).collect()))
            }
            Action::Set(text) => ("set", json!({ "n": text.as_str(bound), "m": [text.as_str(bound)] })),
            Action::Unset => ("set", json!({ "n": null })),
            Action::Notify(which) => ("notify", notification(*which, names)),
            Action::Change(what, which, kind) => return change(*what, *which, *kind, names),
            Action::Task { .. } if kind != Kind::Tool => return None,
            Action::Task { ends, required } => {
                let mut task = json!({ "required": required, "pollInterval": "5ms" });
                if *ends {
                    task["ttl"] = "1s".into();
                }
                ("task", task)
            }
            Action::Disconnect(true) => ("disconnect", json!({ "retry": "10ms" })),
            Action::Disconnect(false) => ("disconnect", json!({})),
        })
    }
}

impl AskPlan {
    pub(super) fn question(self, which: u8, bound: &str) -> (&'static str, Json) {
        let text = self.text.as_str(bound);
        let (key, mut question) = match (which % 3, self.special) {
            (0, false) => {
                let schema =
                    json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
                ("elicit", json!({ "message": text, "requestedSchema": schema }))
            }
            (0, true) => (
                "elicit",
                json!({ "mode": "url", "message": text, "url": "https://example.com/", "elicitationId": "e1" }),
            ),
            (1, special) => {
                let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
                let mut sample = json!({ "messages": [message], "maxTokens": 5, "systemPrompt": text });
                if special {
                    sample["tools"] = json!([{ "name": "x", "inputSchema": { "type": "object" } }]);
                }
                ("sample", sample)
            }
            _ => ("roots", json!({})),
        };
        question["optional"] = self.optional.into();
        (key, question)
    }
}

pub(crate) fn notification(which: u8, names: &Names) -> Json {
    let uri = pick(&names.resources, which / 5).map_or("item://x/1", String::as_str);
    match which % 5 {
        0 => "notifications/tools/list_changed".into(),
        1 => "notifications/prompts/list_changed".into(),
        2 => "notifications/resources/list_changed".into(),
        3 => json!({ "method": "notifications/resources/updated", "params": { "uri": uri } }),
        _ => json!({ "method": "notifications/odd/own", "params": { "call": "{{ call }}" } }),
    }
}

pub(crate) fn change(what: u8, which: u8, kind: u8, names: &Names) -> Option<(&'static str, Json)> {
    let (key, kind) = match kind % 4 {
        0 => ("tool", Kind::Tool),
        1 => ("prompt", Kind::Prompt),
        2 => ("resource", Kind::Resource),
        _ => ("resourceTemplate", Kind::Template),
    };
    let name = pick(names.of(kind), which)?;
    Some(match what % 4 {
        0 => ("enable", json!({ key: name })),
        1 => ("disable", json!({ key: name })),
        more => {
            let name = if more == 2 { name.clone() } else { format!("{name}new") };
            let stub = match kind {
                Kind::Tool => json!({ "name": name, "reply": "replaced {{ call }}" }),
                Kind::Prompt => json!({ "name": name, "messages": [{ "role": "user", "content": "replaced" }] }),
                Kind::Resource => json!({ "uri": name, "text": "replaced" }),
                _ => json!({ "uriTemplate": name, "text": "replaced {{ args.id }}" }),
            };
            ("replace", json!({ key: stub }))
        }
    })
}
