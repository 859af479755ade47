//! The end of an exchange: the result of a reply of the script.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value as Json;

use super::{
    catalog::Catalog,
    content_block,
    envelope::{CacheScope, Envelope, is_cacheable},
    exchange::{Event, Exchange},
    exchange_end::ExchangeEnd,
    frames::ResponseFrame,
};
use crate::journal::AnswerKind;
use crate::script::{Body, Item, ItemKind, Reply, SequenceEnd, ToolItem};
use rehearse_document::template::{Data, RenderError};
use rehearse_protocol::{
    Era, RpcError,
    message::{self, HEADER_MISMATCH, INTERNAL_ERROR, METHOD_NOT_FOUND, MISSING_CAPABILITY, UNSUPPORTED_VERSION},
};

impl Exchange {
    pub(super) fn sequence(
        &mut self,
        catalog: &Catalog,
        item: &Item,
        replies: &[Reply],
        then: SequenceEnd,
    ) -> Result<ExchangeEnd, RenderError> {
        let index = usize::try_from(self.counts.rule_calls - 1).unwrap_or(usize::MAX);
        let reply = match then {
            SequenceEnd::Last => replies.get(index).or(replies.last()),
            SequenceEnd::Cycle => replies.get(index % replies.len()),
            SequenceEnd::Error => replies.get(index),
        };
        match reply {
            Some(reply) => self.reply(catalog, reply),
            None => {
                let noun = self.rule.item.kind.noun();
                let text = format!("All {} replies of the {noun} {} are used up.", replies.len(), item.name);
                Ok(self.failure(&text))
            }
        }
    }

    pub(super) fn reply(&mut self, catalog: &Catalog, reply: &Reply) -> Result<ExchangeEnd, RenderError> {
        let templates = &catalog.script.templates;
        Ok(match reply {
            Reply::Result(body) => {
                let (members, meta) = self.body(catalog, body)?;
                if self.rule.item.kind == ItemKind::Tool {
                    check_output(&catalog.script.tools[self.rule.item.index], body, &members)?;
                }
                ExchangeEnd::Result(content_block::downgrade(self.origin.version, members), meta)
            }
            Reply::Whole(body) => {
                let (members, meta) = self.body(catalog, body)?;
                // The result of a task has no separate envelope.
                let era = if self.task.is_some() { Era::Legacy } else { self.era() };
                let envelope = Envelope { meta: meta.as_deref(), cache: self.cache_scope(), reply: Some(body) };
                ExchangeEnd::Verbatim(catalog.result(era, &members, envelope))
            }
            Reply::RpcError { code, message, data, status } => {
                let mut error = RpcError::new(*code, templates.render(message, self.context())?);
                if let Some(data) = data {
                    let mut json = String::new();
                    templates.write_json(data, self.context(), &mut json)?;
                    error.data = serde_json::value::RawValue::from_string(json).ok();
                }
                ExchangeEnd::Error(error, *status)
            }
            Reply::Raw(text) => ExchangeEnd::Raw(templates.render(text, self.context())?.into()),
        })
    }

    fn body(&mut self, catalog: &Catalog, body: &Body) -> Result<(String, Option<String>), RenderError> {
        let (templates, is_legacy) = (&catalog.script.templates, self.era() == Era::Legacy);
        let mut json = |data: &Data, out: &mut String| match data.literal() {
            Some(literal) => {
                out.push_str(literal);
                Ok(())
            }
            None => templates.write_json(data, self.context(), out),
        };
        let mut members = String::new();
        for (name, data) in &body.members {
            let before = members.len();
            members.push_str(if members.is_empty() { "\"" } else { ",\"" });
            members.push_str(name);
            members.push_str("\":");
            let value = members.len();
            json(data, &mut members)?;
            // Until 2025-11-25 it is an object or missing, and the text content repeats it.
            if is_legacy && name == "structuredContent" && !members[value..].starts_with('{') {
                members.truncate(before);
            }
        }
        let meta = body.meta.as_ref().map(|data| {
            let mut meta = String::new();
            json(data, &mut meta).map(|()| meta)
        });
        Ok((members, meta.transpose()?))
    }

    /// A failure for the caller: a tool error, or a JSON-RPC error for other items.
    pub(super) fn failure(&mut self, text: &str) -> ExchangeEnd {
        self.reason = Some(text.to_owned());
        match self.rule.item.kind {
            ItemKind::Tool => ExchangeEnd::Result(
                format!("\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"isError\":true", Json::from(text)),
                None,
            ),
            _ => ExchangeEnd::Error(RpcError::new(INTERNAL_ERROR, text), None),
        }
    }

    /// The end of the exchange: the response, or the end of the task.
    pub(super) fn conclude(&mut self, outcome: ExchangeEnd, at: Duration) -> Event {
        if let Some(task) = &self.task {
            self.engine.conclude_task(task, &outcome, at);
            return Event::Finish(ResponseFrame::ok(Bytes::new()));
        }
        let kind = match &outcome {
            ExchangeEnd::Result(members, _) if is_tool_error(members) => AnswerKind::ToolError,
            ExchangeEnd::Result(..) => AnswerKind::Result,
            ExchangeEnd::Verbatim(result) if result.starts_with("{\"resultType\":\"input_required\"") => {
                AnswerKind::InputRequired
            }
            ExchangeEnd::Verbatim(_) => AnswerKind::Result,
            ExchangeEnd::Error(..) => AnswerKind::Error,
            ExchangeEnd::Raw(_) => AnswerKind::Raw,
        };
        self.journal_answer(kind, at);
        let era = self.era();
        let id = &self.origin.id;
        Event::Finish(match outcome {
            ExchangeEnd::Result(members, meta) => {
                let envelope = Envelope { meta: meta.as_deref(), cache: self.cache_scope(), reply: None };
                ResponseFrame::ok(message::result(id, &self.catalog.result(era, &members, envelope)))
            }
            ExchangeEnd::Verbatim(result) => ResponseFrame::ok(message::result(id, &result)),
            ExchangeEnd::Error(error, status) => {
                let status = status.unwrap_or_else(|| status_of(era, error.code));
                ResponseFrame::new(status, message::error(Some(id), &error))
            }
            ExchangeEnd::Raw(bytes) => ResponseFrame::ok(bytes),
        })
    }

    /// The cache scope of the result, if it may be cached.
    fn cache_scope(&self) -> Option<CacheScope> {
        let script = &self.catalog.script;
        let cacheable = match self.rule.item.kind {
            ItemKind::Resource | ItemKind::ResourceTemplate => true,
            ItemKind::Method => is_cacheable(&script.item(self.rule.item).name),
            ItemKind::Tool | ItemKind::Prompt => false,
        };
        let depends_on_caller = || self.origin.is_retry || script.uses.caller || script.templates.uses_headers();
        cacheable.then(|| self.catalog.cache_scope(depends_on_caller()))
    }
}

/// Whether members of a result say that a tool failed.
fn is_tool_error(members: &str) -> bool {
    let parsed = || serde_json::from_str::<Json>(&format!("{{{members}}}")).unwrap_or_default();
    members.contains("\"isError\":true") && parsed()["isError"] == true
}

/// The HTTP status of an error (2026-07-28, Streamable HTTP: Sending Messages to the Server).
fn status_of(era: Era, code: i64) -> u16 {
    match code {
        METHOD_NOT_FOUND if era == Era::Modern => 404,
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION if era == Era::Modern => 400,
        _ => 200,
    }
}

/// Checks a rendered reply against the tool's output schema. Literal replies are checked when the script is read.
fn check_output(tool: &ToolItem, body: &Body, members: &str) -> Result<(), RenderError> {
    let is_template = || body.member("structuredContent").is_some_and(|data| data.literal().is_none());
    let Some(schema) = tool.output.as_ref().filter(|_| is_template()) else { return Ok(()) };
    let result: Json = serde_json::from_str(&format!("{{{members}}}")).unwrap_or_default();
    let Some(content) = result.get("structuredContent") else { return Ok(()) };
    match schema.violations(content).first() {
        None => Ok(()),
        Some(violation) => {
            Err(RenderError::new(format!("the structured reply breaks the tool's outputSchema: {violation}")))
        }
    }
}
