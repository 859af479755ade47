//! Input requests of a server to its client.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{ScriptReader, keys::KEYS, reply};
use rehearse_document::{
    Node, Problems, Span, Value,
    json_schema::Schema,
    template::{Data, SCRIPT_NAMES},
};
use rehearse_protocol::Version;

/// The members of a request that are strings.
const TEXTS: &[&str] = &["mode", "message", "url", "elicitationId", "systemPrompt", "includeContext"];

/// One input request. Its name is the key in `inputRequests`, and the name of the response in templates.
#[derive(Debug)]
pub struct InputRequest {
    /// The key in `inputRequests`, and the name of the response in templates.
    pub name: String,
    /// The kind of the request.
    pub method: &'static str,
    /// The params of the request.
    pub params: Data,
    /// The capabilities that a client must declare for the request.
    pub needs: Json,
    /// The first version with such requests.
    pub since: Version,
    /// Whether the request is skipped for a client without the capability, instead of being refused.
    pub optional: bool,
    /// The schema of the content of an accepted form.
    pub form: Option<Schema>,
}

impl InputRequest {
    /// Reads a request; `key` is its name in an object of requests.
    pub(super) fn read(
        kind: &str,
        node: &Node,
        key: Option<(&str, Span)>,
        reader: &mut ScriptReader,
        limit: &mut Duration,
    ) -> Result<InputRequest, Problems> {
        let (method, object) = match kind {
            "elicit" => ("elicitation/create", "Elicit"),
            "sample" => ("sampling/createMessage", "Sample"),
            _ => ("roots/list", "Roots"),
        };
        let members = KEYS.keys(&format!("{kind}Params"));
        let fields = match key {
            Some(_) => KEYS.fields(node, &format!("asked{object}"))?,
            None => KEYS.fields(node, kind)?,
        };
        let (name, span) = match (key, fields.get("as")) {
            (Some((name, span)), _) => (name, span),
            (None, Some(node)) => (node.str()?, node.span),
            (None, None) => (kind, node.span),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(rehearse_document::Problem::new(
                span,
                "the name of an answer is a word of letters, digits and _",
            )
            .into());
        }
        if SCRIPT_NAMES.contains(&name) || !reader.templates.bind(name) {
            let problem = rehearse_document::Problem::new(span, format!("there is a `{name}` already"));
            return Err(problem.hint("give the answer a name of its own with `as: …`").into());
        }
        if let Some(timeout) = fields.read("timeout", Node::duration)? {
            *limit = timeout;
        }
        let optional = fields.read("optional", Node::bool)?.unwrap_or(false);
        let text = |name: &str| fields.get(name).and_then(|node| node.as_str());
        let mut form = None;
        let (needs, since) = match kind {
            "elicit" if text("mode") == Some("url") => {
                fields.required("url")?;
                fields.required("message")?;
                (json!({ "elicitation": { "url": {} } }), Version::V2025_11_25)
            }
            "elicit" => {
                fields.required("message")?;
                form = Some(Schema::read(fields.required("requestedSchema")?)?);
                (json!({ "elicitation": {} }), Version::V2025_06_18)
            }
            "sample" => {
                fields.required("messages")?.items()?;
                match fields.get("tools").is_some() || fields.get("toolChoice").is_some() {
                    true => (json!({ "sampling": { "tools": {} } }), Version::V2025_11_25),
                    false => (json!({ "sampling": {} }), Version::V2024_11_05),
                }
            }
            _ => (json!({ "roots": {} }), Version::V2024_11_05),
        };
        let mut params = Vec::new();
        if let Value::Mapping(entries) = &node.value {
            for entry in entries.iter().filter(|entry| members.contains(&entry.key.as_str())) {
                let data = match &*entry.key {
                    key if TEXTS.contains(&key) => reader.templates.text_data(&entry.node)?,
                    "messages" => reader.templates.mcp_data(&entry.node, reply::TEXTS)?,
                    _ => reader.templates.data(&entry.node)?,
                };
                params.push((entry.key.clone(), data));
            }
        }
        if kind == "sample" && fields.get("maxTokens").is_none() {
            params.push(("maxTokens".into(), Data::Literal("1000".into())));
        }
        Ok(InputRequest { name: name.to_owned(), method, params: Data::Mapping(params), needs, since, optional, form })
    }

    /// Whether a client with these capabilities supports the request. The capabilities may be of a later version than
    /// the one that was negotiated.
    pub fn can_ask(&self, version: Version, capabilities: &Json) -> bool {
        if version < self.since {
            return false;
        }
        // A client that names no mode of elicitation has forms (2026-07-28, Elicitation: Capabilities).
        let forms = |elicitation: &Json| elicitation.get("form").is_some() || elicitation.get("url").is_none();
        match self.form {
            Some(_) => capabilities.get("elicitation").is_some_and(forms),
            None => includes(capabilities, &self.needs),
        }
    }
}

/// Whether every member of `needs` is present, at every level.
pub(crate) fn includes(capabilities: &Json, needs: &Json) -> bool {
    match needs {
        Json::Object(needs) => {
            needs.iter().all(|(name, inner)| capabilities.get(name).is_some_and(|it| includes(it, inner)))
        }
        _ => true,
    }
}
