//! The replies of a model script.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use super::KEYS;
use crate::{
    api::anthropic::read_stop,
    model::{ModelError, StopReason, Usage},
};
use rehearse_document::{
    Node, Problems, Value,
    template::{Data, Templates, Text},
};

/// One answer of a scripted model.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) thinking: Option<Text>,
    pub(super) text: Option<Text>,
    pub(super) calls: Vec<Call>,
    /// Time until the answer.
    pub(super) wait: Duration,
    error: Option<Failure>,
    pub(super) stop: Option<StopReason>,
    pub(super) usage: Option<Usage>,
}

/// A tool call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) server: Option<Text>,
    pub(super) tool: Text,
    pub(super) arguments: Arguments,
}

#[derive(Debug)]
pub(super) enum Arguments {
    Json(Data),
    /// Text that need not be JSON.
    Raw(Text),
}

/// An error of the provider.
#[derive(Debug)]
struct Failure {
    /// The HTTP status; none for a connection that breaks.
    status: Option<u16>,
    /// `None` says what the status means.
    message: Option<Text>,
    retry_after: Option<Duration>,
    /// How many requests fail; all if there is none.
    left: Option<AtomicU32>,
}

impl Reply {
    pub(super) fn read(node: &Node, templates: &mut Templates) -> Result<Reply, Problems> {
        if let Value::String(_) = node.value {
            return Ok(Reply { text: Some(templates.text(node)?), ..Reply::default() });
        }
        let fields = KEYS.fields(node, "answer")?;
        let reply = Reply {
            thinking: fields.read("thinking", |node| templates.text(node))?,
            text: fields.read("text", |node| templates.text(node))?,
            calls: fields.read_each("calls", |node| Call::read(node, templates))?,
            wait: fields.read("wait", Node::duration)?.unwrap_or_default(),
            error: fields.read("error", |node| Failure::read(node, templates))?,
            stop: fields.read("stop", |node| Ok(read_stop(node.str()?)))?,
            usage: fields.read("usage", |node| {
                let fields = KEYS.fields(node, "usage")?;
                let tokens = |key| Ok::<u64, Problems>(fields.read(key, Node::integer)?.unwrap_or_default());
                Ok(Usage { input_tokens: tokens("input")?, output_tokens: tokens("output")?, ..Usage::default() })
            })?,
        };
        if reply.text.is_none() && reply.thinking.is_none() && reply.calls.is_empty() && reply.error.is_none() {
            return Err(node.problem("a reply needs `text`, `thinking`, `calls` or `error`").into());
        }
        Ok(reply)
    }

    /// The error that this request gets, if it gets one; `render` makes its message of a template.
    ///
    /// # Errors
    /// That of `render`.
    pub(super) fn error<E>(
        &self,
        script: &str,
        render: impl FnOnce(&Text) -> Result<String, E>,
    ) -> Result<Option<ModelError>, E> {
        let Some(failure) = &self.error else { return Ok(None) };
        let take = |left: u32| left.checked_sub(1);
        let is_over = |left: &AtomicU32| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err();
        if failure.left.as_ref().is_some_and(is_over) {
            return Ok(None);
        }
        let message = match (&failure.message, failure.status) {
            (Some(message), _) => render(message)?,
            (None, Some(status)) => default_message(status),
            (None, None) => "connection reset".to_owned(),
        };
        let endpoint = script.to_owned();
        Ok(Some(match failure.status {
            Some(status) => ModelError::Rejected { endpoint, status, message, retry_after: failure.retry_after },
            None => ModelError::Unreachable { endpoint, why: message },
        }))
    }
}

impl Call {
    fn read(node: &Node, templates: &mut Templates) -> Result<Call, Problems> {
        let fields = KEYS.fields(node, "call")?;
        let server = fields.read("server", |node| templates.text(node))?;
        let tool = templates.text(fields.required("tool")?)?;
        let arguments = match fields.at_most_one(&KEYS.choices("call"))? {
            Some(entry) if entry.key == "raw" => Arguments::Raw(templates.text(&entry.node)?),
            Some(entry) => {
                entry.node.entries()?;
                Arguments::Json(templates.data(&entry.node)?)
            }
            None => Arguments::Json(Data::Literal("{}".to_owned())),
        };
        Ok(Call { server, tool, arguments })
    }
}

impl Failure {
    fn read(node: &Node, templates: &mut Templates) -> Result<Failure, Problems> {
        if let Value::String(_) = &node.value {
            let message = Some(templates.text(node)?);
            return Ok(Failure { status: None, message, retry_after: None, left: None });
        }
        let fields = KEYS.fields(node, "error")?;
        let status: Option<u16> = fields.read("status", |node| match node.integer()? {
            status @ 400..=599 => Ok(status),
            _ => Err(node.problem("the status of an error must be from 400 to 599").into()),
        })?;
        let message = fields.read("message", |node| templates.text(node))?;
        let times: Option<u32> = fields.read("times", Node::integer)?;
        let retry_after = fields.read("retryAfter", Node::duration)?;
        Ok(Failure { status, message, retry_after, left: times.map(AtomicU32::new) })
    }
}

fn default_message(status: u16) -> String {
    match status {
        401 => "invalid API key",
        429 => "rate limit exceeded",
        529 | 503 => "overloaded",
        _ => "the request failed",
    }
    .to_owned()
}
