//! Rules: when to answer, and with which steps.

use std::{sync::Arc, time::Duration};

use super::Reply;
use crate::{
    config::{Entry, Fields, Node, Problems, Value},
    mock::{
        matcher::Matcher,
        template::{Data, Templates, Text},
    },
};

/// The keys by which a tool or a rule says how it answers.
pub(super) const ANSWER_KEYS: &[&str] = &["delay", "reply", "replies", "then", "steps"];
const RULE_KEYS: &[&str] = &["when", "delay", "reply", "replies", "then", "steps"];
const LOG_LEVELS: &[&str] = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A condition and the answer that it selects. The first rule that matches answers.
#[derive(Debug)]
pub struct Rule {
    /// Where the rule stands, as it is shown in the journal: `tools.echo.rules[1]`.
    pub label: Arc<str>,
    /// What the arguments must match; `None` matches always.
    pub when: Option<Matcher>,
    pub answer: Answer,
}

#[derive(Debug)]
pub struct Answer {
    /// Time to wait before the first step.
    pub delay: Duration,
    pub plan: Plan,
}

#[derive(Debug)]
pub enum Plan {
    /// Step after step; the last one is a reply or an exit.
    Steps(Vec<Step>),
    /// One reply a call, in sequence. Never empty.
    Sequence { replies: Vec<Reply>, then: Then },
}

/// What answers once a sequence of replies is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The last reply again.
    Last,
    /// The sequence from its start.
    Cycle,
    /// A tool error.
    Error,
}

#[derive(Debug)]
pub enum Step {
    Wait(Duration),
    /// `notifications/message`, if the client wants this level.
    Log {
        level: LogLevel,
        logger: Option<Text>,
        data: Data,
    },
    /// `notifications/progress`, if the client sent a token. The members besides the token.
    Progress(Vec<(&'static str, Data)>),
    Reply(Reply),
    /// The server dies without an answer; a process exits with this code.
    Exit(u8),
}

/// A severity of RFC 5424, least severe first (2025-11-25, Logging: Log Levels).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogLevel(u8);

impl LogLevel {
    pub const LEAST: LogLevel = LogLevel(0);

    pub fn parse(name: &str) -> Option<LogLevel> {
        LOG_LEVELS.iter().position(|level| *level == name).map(|index| LogLevel(index as u8))
    }

    pub fn as_str(self) -> &'static str {
        LOG_LEVELS[usize::from(self.0)]
    }

    pub fn as_u8(self) -> u8 {
        self.0
    }

    /// The level with this number, or the most severe one.
    pub fn from_u8(number: u8) -> LogLevel {
        LogLevel(number.min(LOG_LEVELS.len() as u8 - 1))
    }
}

impl Rule {
    /// The rules of a stub: its `rules`, or one that always answers.
    pub(super) fn read_all(fields: &Fields<'_>, label: &str, templates: &mut Templates) -> Result<Vec<Rule>, Problems> {
        let Some(rules) = fields.get("rules") else {
            return Ok(match Answer::read(fields, templates)? {
                Some(answer) => vec![Rule { label: label.into(), when: None, answer }],
                None => Vec::new(),
            });
        };
        if let Some(entry) = fields.at_most_one(&["reply", "replies", "steps"])? {
            let problem = crate::config::Problem::new(entry.key_span, format!("`{}` beside `rules`", entry.key));
            return Err(problem.hint("move it into a last rule without `when`").into());
        }
        let mut index = 0;
        rules.each(|node| {
            index += 1;
            Rule::read(node, format!("{label}.rules[{}]", index - 1), templates)
        })
    }

    fn read(node: &Node, label: String, templates: &mut Templates) -> Result<Rule, Problems> {
        let fields = node.fields("a rule", RULE_KEYS)?;
        let when = match fields.get("when") {
            Some(node) => node.fields("`when`", &["args"])?.read("args", Matcher::read)?,
            None => None,
        };
        let Some(answer) = Answer::read(&fields, templates)? else {
            return Err(node.problem("a rule needs `reply`, `replies` or `steps`").into());
        };
        Ok(Rule { label: label.into(), when, answer })
    }
}

impl Answer {
    fn read(fields: &Fields<'_>, templates: &mut Templates) -> Result<Option<Answer>, Problems> {
        let delay = fields.read("delay", Node::duration)?.unwrap_or_default();
        if let Some(then) = fields.get("then")
            && fields.get("replies").is_none()
        {
            return Err(then.problem("`then` says what follows `replies`, of which there are none").into());
        }
        let Some(Entry { key, node, .. }) = fields.at_most_one(&["reply", "replies", "steps"])? else {
            return Ok(None);
        };
        let plan = match key.as_str() {
            "reply" => Plan::Steps(vec![Step::Reply(Reply::read(node, templates)?)]),
            "replies" => {
                let replies = node.each(|node| Reply::read(node, templates))?;
                if replies.is_empty() {
                    return Err(node.problem("`replies` needs at least one reply").into());
                }
                Plan::Sequence { replies, then: fields.read("then", Then::read)?.unwrap_or(Then::Last) }
            }
            _ => Plan::Steps(Step::read_all(node, templates)?),
        };
        Ok(Some(Answer { delay, plan }))
    }

    /// Every reply of the answer.
    pub fn replies(&self) -> impl Iterator<Item = &Reply> {
        let (steps, replies) = match &self.plan {
            Plan::Steps(steps) => (&steps[..], &[][..]),
            Plan::Sequence { replies, .. } => (&[][..], &replies[..]),
        };
        let in_steps = steps.iter().filter_map(|step| match step {
            Step::Reply(reply) => Some(reply),
            _ => None,
        });
        in_steps.chain(replies)
    }
}

impl Then {
    fn read(node: &Node) -> Result<Then, Problems> {
        match node.str()? {
            "last" => Ok(Then::Last),
            "cycle" => Ok(Then::Cycle),
            "error" => Ok(Then::Error),
            _ => Err(node.problem("`then` is `last`, `cycle` or `error`").into()),
        }
    }
}

impl Step {
    fn read_all(node: &Node, templates: &mut Templates) -> Result<Vec<Step>, Problems> {
        let steps = node.each(|node| Step::read(node, templates))?;
        let ends = |step: &Step| matches!(step, Step::Reply(_) | Step::Exit(_));
        match steps.iter().position(ends) {
            Some(end) if end + 1 == steps.len() => Ok(steps),
            Some(end) => Err(node.items()?[end + 1].problem("nothing follows a `reply` or an `exit`").into()),
            None => Err(node.problem("the last step must be a `reply` or an `exit`").into()),
        }
    }

    fn read(node: &Node, templates: &mut Templates) -> Result<Step, Problems> {
        const KINDS: &[&str] = &["wait", "log", "progress", "reply", "exit"];
        let Entry { key, node, .. } = node.fields("a step", KINDS)?.exactly_one(KINDS)?;
        Ok(match key.as_str() {
            "wait" => Step::Wait(node.duration()?),
            "log" => Step::read_log(node, templates)?,
            "progress" => {
                let fields = node.fields("`progress`", &["progress", "total", "message"])?;
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
                        members.push((name, templates.data(node)?));
                    }
                }
                Step::Progress(members)
            }
            "reply" => Step::Reply(Reply::read(node, templates)?),
            _ if node.is_null() => Step::Exit(1),
            _ => Step::Exit(node.integer()?),
        })
    }

    fn read_log(node: &Node, templates: &mut Templates) -> Result<Step, Problems> {
        if let Value::String(_) = node.value {
            let level = LogLevel::parse("info").unwrap_or(LogLevel::LEAST);
            return Ok(Step::Log { level, logger: None, data: templates.data(node)? });
        }
        let fields = node.fields("`log`", &["level", "logger", "data"])?;
        let level = fields.read("level", |node| {
            let level = LogLevel::parse(node.str()?);
            level.ok_or_else(|| node.problem(format!("the log levels are {}", LOG_LEVELS.join(", "))).into())
        })?;
        Ok(Step::Log {
            level: level.or_else(|| LogLevel::parse("info")).unwrap_or(LogLevel::LEAST),
            logger: fields.read("logger", |node| templates.text(node))?,
            data: templates.data(fields.required("data")?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Source, mock::script::Script};

    fn errors(answer: &str) -> String {
        let text = format!("tools:\n- name: t\n  {answer}");
        Script::parse(&Source::new("m", text)).expect_err(answer).to_string()
    }

    #[test]
    fn an_answer_has_one_plan_and_its_steps_end_with_a_reply() {
        assert_eq!(
            errors("reply: a\n  steps: [{ reply: b }]"),
            "m:4:3: a tool has both `reply` and `steps` (keep one of them)"
        );
        assert_eq!(errors("steps: [{ wait: 5ms }]"), "m:3:10: the last step must be a `reply` or an `exit`");
        assert_eq!(errors("steps: [{ reply: a }, { wait: 1s }]"), "m:3:25: nothing follows a `reply` or an `exit`");
        assert_eq!(
            errors("steps: [{ wait: 5, reply: a }]"),
            "m:3:22: a step has both `wait` and `reply` (keep one of them)"
        );
        assert_eq!(
            errors("delay: 5"),
            "m:3:10: expected a duration, found the number 5 (write a number with a unit: 250ms, 5s or 1m)"
        );
        assert_eq!(
            errors("then: cycle\n  reply: a"),
            "m:3:9: `then` says what follows `replies`, of which there are none"
        );
        assert_eq!(
            errors("rules: [{ when: { arg: 1 }, reply: a }]"),
            "m:3:21: `when` has no key `arg` (did you mean `args`?)"
        );
        assert_eq!(errors("steps: [{ log: { level: loud, data: x } }, { reply: a }]").lines().count(), 1);
        assert_eq!(
            errors("reply: { text: a, json: b }"),
            "m:3:21: a reply has both `text` and `json` (keep one of them)"
        );
    }

    #[test]
    fn log_levels_are_ordered_by_severity() {
        let level = |name| LogLevel::parse(name).expect(name);
        assert!(level("debug") < level("info") && level("error") < level("emergency"));
        assert_eq!(LogLevel::from_u8(level("warning").as_u8()).as_str(), "warning");
        assert_eq!(LogLevel::parse("loud"), None);
    }
}
