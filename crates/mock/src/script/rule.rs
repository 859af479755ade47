//! Rules: conditions and their answers.

use std::{sync::Arc, time::Duration};

use super::{
    Action, Body, CallRange, Condition, HttpResponseOptions, InputRequest, Reply, ReplySubject, ScriptReader, Step,
};
use crate::handler::Handler;
use rehearse_document::{Entry, Fields, Node, Problem, Problems};

/// The key of an answer that is a handler, in the script of a builder.
pub(super) const HANDLER_KEY: &str = "handler";

/// A condition and the answer that it selects. The first rule that matches answers.
#[derive(Debug)]
pub struct Rule {
    /// The label of the rule in the journal: `tools.echo.rules[1]`.
    pub label: Arc<str>,
    /// The condition; `None` always holds.
    pub when: Option<Condition>,
    /// The expected number of answers, for the verification.
    pub expect: Option<CallRange>,
    /// The answer.
    pub answer: AnswerSpec,
}

/// The answer of a rule.
#[derive(Debug)]
pub struct AnswerSpec {
    /// Time to wait before the first step.
    pub delay: Duration,
    /// The replies or steps.
    pub plan: AnswerPlan,
    /// How the answer is sent over HTTP.
    pub http: HttpResponseOptions,
}

/// The replies or steps of an answer.
#[derive(Debug)]
pub enum AnswerPlan {
    /// Step after step; the last one is a reply or an exit.
    Steps(Vec<Step>),
    /// One reply for each call, in order. Never empty.
    Sequence {
        /// The replies, in order.
        replies: Vec<Reply>,
        /// The answer after the last reply.
        then: SequenceEnd,
    },
    /// An async function of a builder.
    Handler(Handler),
}

/// The answer after the end of a sequence of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceEnd {
    /// The last reply again.
    Last,
    /// The sequence from its start.
    Cycle,
    /// An error.
    Error,
}

impl AnswerSpec {
    /// The requests to the client, in all steps.
    pub(crate) fn input_requests(&self) -> impl Iterator<Item = &InputRequest> {
        let steps = if let AnswerPlan::Steps(steps) = &self.plan { &steps[..] } else { &[] };
        steps.iter().flat_map(|step| match &step.action {
            Action::RequestInput { requests, .. } => &requests[..],
            _ => &[],
        })
    }
}

impl Rule {
    /// The rules of an item: its `rules`, or one that always answers.
    pub(super) fn read_all(
        fields: &Fields<'_>,
        label: &str,
        subject: &ReplySubject,
        reader: &mut ScriptReader,
    ) -> Result<Vec<Arc<Rule>>, Problems> {
        let plans = [&subject.plans(), reader.handler_key()].concat();
        let Some(rules) = fields.get("rules") else {
            reader.unbind();
            let answer = match AnswerSpec::read(fields, subject, reader)? {
                Some(answer) => Some(answer),
                None => {
                    let reply = subject.default_reply(&mut reader.templates);
                    reply.map(|reply| AnswerSpec::new(AnswerPlan::Steps(vec![Step::from(Action::Reply(reply))])))
                }
            };
            let rule = |answer| Arc::new(Rule { label: label.into(), when: None, expect: None, answer });
            return Ok(answer.into_iter().map(rule).collect());
        };
        if let Some(entry) = fields.at_most_one(&plans)? {
            let problem = Problem::new(entry.key_span, format!("`{}` beside `rules`", entry.key));
            return Err(problem.hint("move it into a last rule without `when`").into());
        }
        let (mut index, mut always) = (0, false);
        rules.each(|node| {
            if always {
                let problem = node.problem("this rule is never reached");
                return Err(problem.hint("the one before it has no `when`: put it last").into());
            }
            always = node.get("when").is_none();
            index += 1;
            Rule::read(node, format!("{label}.rules[{}]", index - 1), subject, reader).map(Arc::new)
        })
    }

    /// A rule that always answers with one member, which is JSON text.
    pub(super) fn literal(label: Arc<str>, member: &'static str, json: String) -> Rule {
        let reply = Reply::Result(Body::literal(member, json));
        let plan = AnswerPlan::Steps(vec![Step::from(Action::Reply(reply))]);
        Rule { label, when: None, expect: None, answer: AnswerSpec::new(plan) }
    }

    pub(super) fn read(
        node: &Node,
        label: String,
        subject: &ReplySubject,
        reader: &mut ScriptReader,
    ) -> Result<Rule, Problems> {
        let keys = [&subject.rule_keys(), reader.handler_key()].concat();
        Step::refuse_keys(node, "a rule", &keys)?;
        let fields = node.fields("a rule", &keys)?;
        reader.unbind();
        let when = fields.read("when", |node| Condition::read(node, reader))?;
        let expect = fields.read("expect", CallRange::read)?;
        let Some(answer) = AnswerSpec::read(&fields, subject, reader)? else {
            return Err(node.problem("a rule needs `reply`, `replies` or `steps`").into());
        };
        Ok(Rule { label: label.into(), when, expect, answer })
    }
}

impl AnswerSpec {
    fn new(plan: AnswerPlan) -> AnswerSpec {
        AnswerSpec { delay: Duration::ZERO, plan, http: HttpResponseOptions::default() }
    }

    fn read(
        fields: &Fields<'_>,
        subject: &ReplySubject,
        reader: &mut ScriptReader,
    ) -> Result<Option<AnswerSpec>, Problems> {
        let delay = fields.read("delay", Node::duration)?.unwrap_or_default();
        if let Some(then) = fields.get("then")
            && fields.get("replies").is_none()
        {
            return Err(then.problem("`then` needs `replies`").into());
        }
        let plans = [&subject.plans(), reader.handler_key()].concat();
        let Some(Entry { key, node, .. }) = fields.at_most_one(&plans)? else { return Ok(None) };
        let templates = &mut reader.templates;
        let reply = |reply| AnswerPlan::Steps(vec![Step::from(Action::Reply(reply))]);
        let plan = match key.as_str() {
            "reply" => reply(Reply::read(node, subject, templates)?),
            "replies" => {
                let replies = node.each(|node| Reply::read(node, subject, templates))?;
                if replies.is_empty() {
                    return Err(node.problem("`replies` needs at least one reply").into());
                }
                AnswerPlan::Sequence {
                    replies,
                    then: fields.read("then", SequenceEnd::read)?.unwrap_or(SequenceEnd::Last),
                }
            }
            "steps" => AnswerPlan::Steps(Step::read_all(node, subject, reader)?),
            HANDLER_KEY => AnswerPlan::Handler(reader.handler(node, subject)?),
            short => reply(Reply::read_kind(short, node, None, subject, templates)?),
        };
        Ok(Some(AnswerSpec { delay, plan, http: fields.read("http", HttpResponseOptions::read)?.unwrap_or_default() }))
    }

    /// Every reply of the answer.
    pub fn replies(&self) -> impl Iterator<Item = &Reply> {
        let (steps, replies) = match &self.plan {
            AnswerPlan::Steps(steps) => (&steps[..], &[][..]),
            AnswerPlan::Sequence { replies, .. } => (&[][..], &replies[..]),
            AnswerPlan::Handler(_) => (&[][..], &[][..]),
        };
        let in_steps = steps.iter().filter_map(|step| match &step.action {
            Action::Reply(reply) => Some(reply),
            _ => None,
        });
        in_steps.chain(replies)
    }
}

impl SequenceEnd {
    fn read(node: &Node) -> Result<SequenceEnd, Problems> {
        match node.str()? {
            "last" => Ok(SequenceEnd::Last),
            "cycle" => Ok(SequenceEnd::Cycle),
            "error" => Ok(SequenceEnd::Error),
            _ => Err(node.problem("`then` must be `last`, `cycle` or `error`").into()),
        }
    }
}
