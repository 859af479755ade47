//! One answer of a script.

use crate::{
    config::{Entry, Node, Problems, Value},
    mock::template::{Data, Templates, Text},
};

const KINDS: &[&str] = &["text", "json", "structured", "content", "error", "rpcError", "result", "raw"];
const KEYS: &[&str] = &["text", "json", "structured", "content", "error", "rpcError", "result", "raw", "_meta"];

/// How a request is answered.
#[derive(Debug)]
pub enum Reply {
    /// A result whose envelope (`resultType`, `_meta`) the engine completes for the era.
    Result(Body),
    /// The `result` member exactly as written.
    Verbatim(Data),
    /// A JSON-RPC error.
    RpcError { code: i64, message: Text, data: Option<Data> },
    /// These bytes instead of a message.
    Raw(Text),
}

/// The members of a result without its envelope.
#[derive(Debug)]
pub struct Body {
    pub members: Vec<(&'static str, Data)>,
    pub meta: Option<Data>,
}

impl Reply {
    /// Reads a reply: a mapping with one of the kinds, or a text as short form of `text:`.
    ///
    /// # Errors
    /// No kind or two kinds; a kind's value is wrong.
    pub fn read(node: &Node, templates: &mut Templates) -> Result<Reply, Problems> {
        if let Value::String(_) = node.value {
            return Ok(Reply::Result(Body { members: vec![text_content(templates.text_data(node)?)], meta: None }));
        }
        let fields = node.fields("a reply", KEYS)?;
        let Entry { key, node: value, .. } = fields.exactly_one(KINDS)?;
        let meta = fields.read("_meta", |node| node.entries().and_then(|_| templates.data(node)))?;
        let members = match key.as_str() {
            "text" => vec![text_content(templates.text_data(value)?)],
            "json" => vec![text_content(Data::quoted(value, templates)?)],
            "structured" => {
                value.entries()?;
                vec![text_content(Data::quoted(value, templates)?), ("structuredContent", templates.data(value)?)]
            }
            "content" => vec![("content", read_content(value, templates)?)],
            "error" => {
                vec![text_content(templates.text_data(value)?), ("isError", Data::Literal("true".into()))]
            }
            "rpcError" => return read_rpc_error(value, templates),
            "result" => {
                value.entries()?;
                return Ok(Reply::Verbatim(templates.data(value)?));
            }
            _ => return Ok(Reply::Raw(templates.text(value)?)),
        };
        Ok(Reply::Result(Body { members, meta }))
    }

    /// Whether the reply is a success without structured content.
    pub fn is_unstructured(&self) -> bool {
        let has = |name| matches!(self, Reply::Result(body) if body.members.iter().any(|(member, _)| *member == name));
        matches!(self, Reply::Result(_)) && !has("structuredContent") && !has("isError")
    }

    /// The `structuredContent` of the reply, if the script gives it without templates.
    pub fn literal_structured_content(&self) -> Option<&str> {
        match self {
            Reply::Result(body) => {
                body.members.iter().find(|(name, _)| *name == "structuredContent").and_then(|(_, data)| data.literal())
            }
            _ => None,
        }
    }
}

fn text_content(text: Data) -> (&'static str, Data) {
    let content = match text {
        Data::Literal(text) => Data::Literal(format!("[{{\"type\":\"text\",\"text\":{text}}}]")),
        text => Data::Sequence(vec![Data::Mapping(vec![
            ("type".into(), Data::Literal("\"text\"".into())),
            ("text".into(), text),
        ])]),
    };
    ("content", content)
}

/// Content blocks as MCP writes them. The kind of block is not limited to those that a version knows.
fn read_content(node: &Node, templates: &mut Templates) -> Result<Data, Problems> {
    for block in node.items()? {
        block.entries()?;
        let Some(kind) = block.get("type") else {
            let problem = block.problem("a content block needs a `type`");
            return Err(problem.hint("text, image, audio, resource or resource_link").into());
        };
        let required: &[&str] = match kind.str()? {
            "text" => &["text"],
            "image" | "audio" => &["data", "mimeType"],
            "resource" => &["resource"],
            "resource_link" => &["uri", "name"],
            _ => &[],
        };
        if let Some(missing) = required.iter().find(|name| block.get(name).is_none()) {
            let kind = kind.str()?;
            let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
            return Err(block.problem(format!("{article} `{kind}` block needs a `{missing}`")).into());
        }
    }
    templates.data(node)
}

fn read_rpc_error(node: &Node, templates: &mut Templates) -> Result<Reply, Problems> {
    let fields = node.fields("`rpcError`", &["code", "message", "data"])?;
    Ok(Reply::RpcError {
        code: fields.required("code")?.integer()?,
        message: templates.text(fields.required("message")?)?,
        data: fields.read("data", |node| templates.data(node))?,
    })
}
