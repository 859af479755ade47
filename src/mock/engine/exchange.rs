//! An answer that is under way.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value as Json;

use super::Engine;
use crate::{
    mock::{
        script::{Body, LogLevel, Plan, Reply, Rule, Step, Then, ToolStub},
        template::{Context, Data, RenderError},
    },
    wire::{
        Era, Id, RpcError,
        message::{self, INTERNAL_ERROR},
    },
};

/// What a client wants to hear before the answer.
#[derive(Debug)]
pub(super) struct Progress {
    /// The token of the request as JSON text.
    pub(super) token: Option<String>,
    pub(super) log_level: Option<LogLevel>,
}

/// The answer to one tool call, step after step. Dropping it cancels it.
#[derive(Debug)]
pub struct Exchange {
    engine: Arc<Engine>,
    id: Id,
    era: Era,
    /// The tool, and the rule of the tool, by position in the script.
    rule: (usize, usize),
    /// Which call of the rule this is, counted from 1.
    nth: u64,
    progress: Progress,
    context: Lazy,
    /// The next step; `None` before the rule's delay.
    next: Option<usize>,
}

/// What an exchange wants done. After `Finish` and `Exit` there is nothing more to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Ask again after this time.
    Wait(Duration),
    /// A notification on the way.
    Send(Bytes),
    /// The response.
    Finish(Bytes),
    /// The server dies here; a process exits with this code.
    Exit(u8),
}

/// A template context that is built when the first template needs it.
#[derive(Debug)]
enum Lazy {
    Raw(Option<Context>),
    Built(minijinja::Value),
}

impl Lazy {
    fn get(&mut self) -> &minijinja::Value {
        if let Lazy::Raw(context) = self {
            *self = Lazy::Built(context.take().map_or(minijinja::Value::UNDEFINED, Context::into_value));
        }
        match self {
            Lazy::Built(value) => value,
            Lazy::Raw(_) => &minijinja::Value::UNDEFINED,
        }
    }
}

impl Exchange {
    pub(super) fn new(
        engine: Arc<Engine>,
        id: Id,
        era: Era,
        rule: (usize, usize),
        nth: u64,
        progress: Progress,
        context: Context,
    ) -> Self {
        engine.in_flight.fetch_add(1, Ordering::Relaxed);
        Exchange { engine, id, era, rule, nth, progress, context: Lazy::Raw(Some(context)), next: None }
    }

    /// The id of the request that is being answered.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// The next thing to do.
    pub fn next_event(&mut self) -> Event {
        let engine = self.engine.clone();
        let tool = &engine.script().tools[self.rule.0];
        let rule = &tool.rules[self.rule.1];
        self.step(&engine, tool, rule).unwrap_or_else(|error| {
            let error = RpcError::new(INTERNAL_ERROR, error.to_string());
            Event::Finish(message::error(Some(&self.id), &error))
        })
    }

    fn step(&mut self, engine: &Engine, tool: &ToolStub, rule: &Rule) -> Result<Event, RenderError> {
        let Some(next) = self.next else {
            self.next = Some(0);
            if !rule.answer.delay.is_zero() {
                return Ok(Event::Wait(rule.answer.delay));
            }
            return self.step(engine, tool, rule);
        };
        let steps = match &rule.answer.plan {
            Plan::Steps(steps) => &steps[next..],
            Plan::Sequence { replies, then } => return self.sequence(engine, tool, replies, *then),
        };
        for (offset, step) in steps.iter().enumerate() {
            self.next = Some(next + offset + 1);
            match step {
                Step::Wait(time) => return Ok(Event::Wait(*time)),
                Step::Log { level, logger, data } => {
                    if self.progress.log_level.is_none_or(|wanted| *level < wanted) {
                        continue;
                    }
                    let mut params = format!("{{\"level\":\"{}\",", level.as_str());
                    if let Some(logger) = logger {
                        let logger = engine.script().templates.render(logger, self.context.get())?;
                        params.push_str(&format!("\"logger\":{},", Json::from(logger)));
                    }
                    params.push_str("\"data\":");
                    engine.script().templates.write_json(data, self.context.get(), &mut params)?;
                    params.push('}');
                    return Ok(Event::Send(message::notification("notifications/message", &params)));
                }
                Step::Progress(members) => {
                    let Some(token) = &self.progress.token else { continue };
                    let mut params = format!("{{\"progressToken\":{token}");
                    for (name, data) in members {
                        params.push_str(&format!(",\"{name}\":"));
                        engine.script().templates.write_json(data, self.context.get(), &mut params)?;
                    }
                    params.push('}');
                    return Ok(Event::Send(message::notification("notifications/progress", &params)));
                }
                Step::Reply(reply) => return self.reply(engine, tool, reply),
                Step::Exit(code) => return Ok(Event::Exit(*code)),
            }
        }
        Err(RenderError::internal("the exchange has already finished"))
    }

    fn sequence(
        &mut self,
        engine: &Engine,
        tool: &ToolStub,
        replies: &[Reply],
        then: Then,
    ) -> Result<Event, RenderError> {
        let index = usize::try_from(self.nth - 1).unwrap_or(usize::MAX);
        let reply = match then {
            Then::Last => replies.get(index).or(replies.last()),
            Then::Cycle => replies.get(index % replies.len()),
            Then::Error => replies.get(index),
        };
        match reply {
            Some(reply) => self.reply(engine, tool, reply),
            None => {
                let text = format!("All {} replies of the tool {} are used up.", replies.len(), tool.name);
                let members =
                    format!("\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"isError\":true", Json::from(text));
                Ok(Event::Finish(message::result(&self.id, &engine.result(self.era, &members, None, false))))
            }
        }
    }

    fn reply(&mut self, engine: &Engine, tool: &ToolStub, reply: &Reply) -> Result<Event, RenderError> {
        let templates = &engine.script().templates;
        let frame = match reply {
            Reply::Result(body) => {
                let (members, meta) = self.body(engine, body)?;
                check_output(tool, body, &members)?;
                message::result(&self.id, &engine.result(self.era, &members, meta.as_deref(), false))
            }
            Reply::Verbatim(data) => {
                let mut result = String::new();
                templates.write_json(data, self.context.get(), &mut result)?;
                message::result(&self.id, &result)
            }
            Reply::RpcError { code, message, data } => {
                let mut error = RpcError::new(*code, templates.render(message, self.context.get())?);
                if let Some(data) = data {
                    let mut json = String::new();
                    templates.write_json(data, self.context.get(), &mut json)?;
                    error.data = serde_json::value::RawValue::from_string(json).ok();
                }
                message::error(Some(&self.id), &error)
            }
            Reply::Raw(text) => templates.render(text, self.context.get())?.into(),
        };
        Ok(Event::Finish(frame))
    }

    fn body(&mut self, engine: &Engine, body: &Body) -> Result<(String, Option<String>), RenderError> {
        let templates = &engine.script().templates;
        let mut json = |data: &Data, out: &mut String| match data.literal() {
            Some(literal) => {
                out.push_str(literal);
                Ok(())
            }
            None => templates.write_json(data, self.context.get(), out),
        };
        let mut members = String::new();
        for (name, data) in &body.members {
            let separator = if members.is_empty() { "" } else { "," };
            members.push_str(&format!("{separator}\"{name}\":"));
            json(data, &mut members)?;
        }
        let meta = body.meta.as_ref().map(|data| {
            let mut meta = String::new();
            json(data, &mut meta).map(|()| meta)
        });
        Ok((members, meta.transpose()?))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.engine.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A conformant mock keeps to its own output schema; literal replies were checked when the script was read.
fn check_output(tool: &ToolStub, body: &Body, members: &str) -> Result<(), RenderError> {
    let is_template = |(name, data): &(&str, Data)| *name == "structuredContent" && data.literal().is_none();
    let Some(schema) = tool.output.as_ref().filter(|_| body.members.iter().any(is_template)) else { return Ok(()) };
    let result: Json = serde_json::from_str(&format!("{{{members}}}")).unwrap_or_default();
    match schema.violations(&result["structuredContent"]).first() {
        None => Ok(()),
        Some(violation) => {
            Err(RenderError::internal(format!("the structured reply breaks the tool's outputSchema: {violation}")))
        }
    }
}
