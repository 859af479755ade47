//! A model that answers from a YAML file, for deterministic runs.
//!
//! ```yaml
//! model: reviewer-script
//! rules:
//!   - when: { prompt: { contains: diff } }
//!     turns:
//!       - thinking: I read it first.
//!         calls: [{ tool: read_file, args: { path: change.diff } }]
//!       - "The diff says: {{ result }}"
//!   - when: { result: { contains: denied } }
//!     reply: { error: { status: 429, retryAfter: 1s, times: 1 }, text: Sorry. }
//!   - reply: Hello.
//! ```
//!
//! The first rule that matches answers. An answer depends on the conversation alone, so that one model serves many
//! conversations at once. `turn` counts the answers to the latest message of the user, from 1; a rule with `turns`
//! answers turn 1 with its first reply, and so on. A tool is called by the name that the request gives it.

mod offered_tool;
mod reply;
mod rule;
mod walk;

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, LazyLock},
};

use serde_json::{Value as Json, json};

pub use self::{
    offered_tool::{offered_name, offered_names},
    walk::{WalkedTool, walk},
};
use self::{reply::Reply, rule::Rule};
use super::{Block, Delta, DeltaSink, Message, ModelError, Request, Response, StopReason, ToolCall, Usage, text_of};
use rehearse_document::{
    Diagnostics, Node, Problems, Source,
    keys::KeyTable,
    parse_yaml,
    template::{RenderError, Templates, Text},
    text::shortened,
};

static KEYS: LazyLock<KeyTable> = LazyLock::new(|| KeyTable::parse(include_str!("keys.txt")));
/// What conditions and templates can use.
static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| KEYS.keys("values"));

/// The JSON Schema of model scripts, for editors.
pub fn schema() -> Json {
    let about = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Model script of rehearse",
        "description": "What a scripted model answers.",
    });
    KEYS.schema("model", about)
}

/// A model that answers from a script.
#[derive(Debug)]
pub struct ScriptedModel {
    /// The path of the script.
    file: String,
    name: String,
    rules: Vec<Rule>,
    templates: Templates,
}

impl ScriptedModel {
    /// Reads the script from a file.
    ///
    /// # Errors
    /// The file cannot be read, or every mistake in it with its position.
    pub fn load(path: &Path) -> Result<ScriptedModel, LoadError> {
        let unreadable = |error| LoadError::Unreadable(path.display().to_string(), Arc::new(error));
        Ok(ScriptedModel::parse(&Source::read(path).map_err(unreadable)?)?)
    }

    /// Reads a script.
    ///
    /// # Errors
    /// Every mistake in it, with its position.
    pub fn parse(source: &Arc<Source>) -> Result<ScriptedModel, Diagnostics> {
        let read = parse_yaml(source).and_then(|root| ScriptedModel::read(&root, source));
        read.map_err(|problems| problems.in_source(source))
    }

    fn read(root: &Node, source: &Arc<Source>) -> Result<ScriptedModel, Problems> {
        let fields = KEYS.fields(root, "model")?;
        let mut templates = Templates::new(source, &NAMES);
        let name = fields.read("model", |node| Ok(node.str()?.to_owned()))?;
        let rules = fields.required("rules")?.each(|node| Rule::read(node, &mut templates))?;
        let name = name.unwrap_or_else(|| "scripted".to_owned());
        Ok(ScriptedModel { file: source.name.clone(), name, rules, templates })
    }

    /// The name of the model: `model` in the script.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks for the next message. With `deltas`, thoughts and text come first, word by word.
    ///
    /// # Errors
    /// No rule matches, a template fails, or the script says that the request fails.
    pub async fn generate(&self, request: &Request<'_>, deltas: Option<DeltaSink<'_>>) -> Result<Response, ModelError> {
        let view = view(request);
        let turn = view["turn"].as_u64().unwrap_or(1);
        let position = usize::try_from(turn).unwrap_or(usize::MAX) - 1;
        let Some(reply) = self.rules.iter().find_map(|rule| rule.reply(position, &view, request.tools)) else {
            let last = request.messages.last().map(Message::text).unwrap_or_default();
            let last = format!("the last message is {:?}", shortened(&last, 80));
            return Err(ModelError::NoRule { script: self.file.clone(), turn: position + 1, last });
        };
        if !reply.wait.is_zero() {
            tokio::time::sleep(reply.wait).await;
        }
        let failed = |error: RenderError| ModelError::Script { script: self.file.clone(), why: error.to_string() };
        let render =
            |message: &Text| self.templates.render(message, &minijinja::Value::from(minijinja::value::Serde(&view)));
        if let Some(error) = reply.error(&self.file, render).map_err(failed)? {
            return Err(error);
        }
        let content = self.content(reply, view, request).map_err(failed)?;
        if let Some(deltas) = deltas {
            stream(&content, deltas);
        }
        let calls = content.iter().any(|block| matches!(block, Block::ToolCall(_)));
        let stop = match (&reply.stop, calls) {
            (Some(stop), _) => stop.clone(),
            (None, true) => StopReason::ToolUse,
            (None, false) => StopReason::EndTurn,
        };
        let usage = reply.usage.unwrap_or_else(|| estimate(request, &content));
        Ok(Response { content, stop, usage })
    }

    /// The blocks of a reply: thoughts, text, calls.
    fn content(&self, reply: &Reply, view: Json, request: &Request<'_>) -> Result<Vec<Block>, RenderError> {
        let context = minijinja::Value::from(minijinja::value::Serde(&view));
        let mut blocks = Vec::new();
        if let Some(thinking) = &reply.thinking {
            let text = self.templates.render(thinking, &context)?;
            blocks.push(Block::Thinking { text, signature: Some("scripted".to_owned()) });
        }
        if let Some(text) = &reply.text {
            blocks.push(Block::text(self.templates.render(text, &context)?));
        }
        let earlier = count_calls(request.messages);
        for (index, call) in reply.calls.iter().enumerate() {
            let mut arguments = String::new();
            match &call.arguments {
                reply::Arguments::Json(data) => self.templates.write_json(data, &context, &mut arguments)?,
                reply::Arguments::Raw(text) => arguments = self.templates.render(text, &context)?,
            }
            let tool = self.templates.render(&call.tool, &context)?;
            let server = call.server.as_ref().map(|server| self.templates.render(server, &context)).transpose()?;
            let offered = offered_name(request.tools, server.as_deref(), &tool).map(str::to_owned);
            let name = offered.unwrap_or(tool);
            let id = format!("call_{}", earlier + index + 1);
            blocks.push(Block::ToolCall(ToolCall { id, name, arguments }));
        }
        Ok(blocks)
    }
}

/// Why a script cannot be loaded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(String, Arc<std::io::Error>),
    /// The script has mistakes.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}

fn count_calls(messages: &[Message]) -> usize {
    messages.iter().flat_map(Message::tool_calls).count()
}

/// What conditions and templates see of a conversation.
fn view(request: &Request<'_>) -> Json {
    let messages = request.messages;
    let start = messages.iter().rposition(|message| matches!(message, Message::User { .. })).unwrap_or(0);
    let turn = 1 + messages[start..].iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
    let results = messages.iter().rev().map_while(|message| match message {
        Message::ToolResult(result) => Some(result),
        _ => None,
    });
    let results: Vec<_> = results.collect();
    let last = results.first();
    let mut by_tool: HashMap<&str, Vec<String>> = HashMap::new();
    for result in results.iter().rev() {
        by_tool.entry(&result.tool).or_default().push(text_of(&result.content));
    }
    let by_tool: HashMap<_, _> = by_tool.into_iter().map(|(tool, texts)| (tool, texts.join("\n"))).collect();
    json!({
        "turn": turn,
        "prompt": messages.get(start).map(Message::text).unwrap_or_default(),
        "system": request.system.unwrap_or_default(),
        "tools": request.tools.iter().map(|tool| tool.name).collect::<Vec<_>>(),
        "tool": last.map(|result| &result.tool),
        "result": last.map(|result| text_of(&result.content)),
        "results": by_tool,
        "failed": last.is_some_and(|result| result.is_error),
        "calls": count_calls(messages),
        "media": messages.get(start).map_or(0, |message| {
            message.content().iter().filter(|block| matches!(block, Block::Media(_))).count()
        }),
    })
}

/// Streams the texts of an answer word by word.
fn stream(content: &[Block], deltas: DeltaSink<'_>) {
    for block in content {
        let (text, delta): (_, fn(String) -> Delta) = match block {
            Block::Text { text } => (text, Delta::Text),
            Block::Thinking { text, .. } => (text, Delta::Thinking),
            _ => continue,
        };
        text.split_inclusive(' ').for_each(|word| deltas(delta(word.to_owned())));
    }
}

/// The tokens of a request and its answer, as one for four bytes.
fn estimate(request: &Request<'_>, content: &[Block]) -> Usage {
    let size = |blocks: &[Block]| -> usize {
        let length = |block: &Block| match block {
            Block::Text { text } | Block::Thinking { text, .. } => text.len(),
            Block::ToolCall(call) => call.name.len() + call.arguments.len(),
            Block::Media(media) => media.data.len(),
        };
        blocks.iter().map(length).sum()
    };
    let input: usize = request.messages.iter().map(|message| size(message.content())).sum();
    let input = input + request.system.map_or(0, str::len);
    let tokens = |bytes: usize| bytes.div_ceil(4) as u64;
    Usage { input_tokens: tokens(input), output_tokens: tokens(size(content)), ..Usage::default() }
}

#[cfg(test)]
mod tests;
