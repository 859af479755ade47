//! One answer of a script.

use std::borrow::Cow;

use base64::Engine as _;
use serde_json::Value as Json;

use super::{ItemKind, keys::KEYS};
use rehearse_document::{
    Entry, Node, Problems, Value,
    template::{Data, Templates, Text},
};

/// The members of content blocks and of resource contents that are strings.
pub(super) const TEXTS: &[&str] = &["type", "text", "data", "mimeType", "uri", "name", "title", "description", "blob"];

/// The reply to a request.
#[derive(Debug)]
pub enum Reply {
    /// A result whose envelope (`resultType`, `_meta`) the engine completes for the era.
    Result(Body),
    /// The members of the `result` as written. The engine adds missing members of the envelope.
    Whole(Body),
    /// A JSON-RPC error, and the HTTP status if it differs from the protocol's status for the code.
    RpcError {
        /// The error code.
        code: i64,
        /// The error message.
        message: Text,
        /// The `data` of the error.
        data: Option<Data>,
        /// The HTTP status, if it is not the default for the code.
        status: Option<u16>,
    },
    /// These bytes instead of a message.
    Raw(Text),
}

/// The members of a result without its envelope.
#[derive(Debug)]
pub struct Body {
    /// Names in JSON notation, without quotes.
    pub members: Vec<(Cow<'static, str>, Data)>,
    /// The `_meta` of the result.
    pub meta: Option<Data>,
}

impl Body {
    fn new(members: impl IntoIterator<Item = (&'static str, Data)>, meta: Option<Data>) -> Body {
        Body { members: members.into_iter().map(|(name, data)| (name.into(), data)).collect(), meta }
    }

    /// One member, which is JSON text.
    pub(super) fn literal(member: &'static str, json: String) -> Body {
        Body::new([(member, Data::Literal(json))], None)
    }

    /// Reads a whole result.
    ///
    /// # Errors
    /// It is not an object, or its `_meta` is not.
    fn read(node: &Node, templates: &mut Templates) -> Result<Body, Problems> {
        let (metas, members): (Vec<_>, Vec<_>) = node.entries()?.iter().partition(|entry| entry.key == "_meta");
        let member = |entry: &&Entry| {
            let name = Json::from(entry.key.as_str()).to_string();
            Ok((name[1..name.len() - 1].to_owned().into(), templates.data(&entry.node)?))
        };
        let members = Problems::collect(members.iter().map(member))?;
        let meta = metas.first().map(|entry| entry.node.entries().and_then(|_| templates.data(&entry.node)));
        Ok(Body { members, meta: meta.transpose()? })
    }

    /// The member of a name.
    pub fn member(&self, name: &str) -> Option<&Data> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, data)| data)
    }
}

/// The item that a reply belongs to, and the members that the reply takes from it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplySubject {
    Tool,
    /// The JSON texts of the `uri` and the `mimeType`.
    Resource {
        uri: Option<String>,
        mime_type: Option<String>,
    },
    ResourceTemplate {
        mime_type: Option<String>,
    },
    /// The JSON text of the `description`.
    Prompt {
        description: Option<String>,
    },
    Method,
}

impl ReplySubject {
    /// The subject of the item at `node`.
    pub(super) fn for_item(kind: ItemKind, node: &Node) -> ReplySubject {
        let json = |member: &str| node.get(member).map(Node::to_json_text);
        match kind {
            ItemKind::Tool => ReplySubject::Tool,
            ItemKind::Resource => ReplySubject::Resource { uri: json("uri"), mime_type: json("mimeType") },
            ItemKind::ResourceTemplate => ReplySubject::ResourceTemplate { mime_type: json("mimeType") },
            ItemKind::Prompt => ReplySubject::Prompt { description: json("description") },
            ItemKind::Method => ReplySubject::Method,
        }
    }

    pub(super) fn kind(&self) -> ItemKind {
        match self {
            ReplySubject::Tool => ItemKind::Tool,
            ReplySubject::Resource { .. } => ItemKind::Resource,
            ReplySubject::ResourceTemplate { .. } => ItemKind::ResourceTemplate,
            ReplySubject::Prompt { .. } => ItemKind::Prompt,
            ReplySubject::Method => ItemKind::Method,
        }
    }

    /// What the table of keys calls it: a resource template is answered as a resource is.
    fn key(&self) -> &'static str {
        match self.kind() {
            ItemKind::ResourceTemplate => ItemKind::Resource.key(),
            kind => kind.key(),
        }
    }

    /// The keys of a rule.
    pub(super) fn rule_keys(&self) -> Vec<&'static str> {
        KEYS.keys(&format!("{}Rule", self.key()))
    }

    /// The keys of a rule or an item that hold its answer.
    pub(super) fn plans(&self) -> Vec<&'static str> {
        KEYS.choices(&format!("{}Rule", self.key()))
    }

    /// The default reply of an item: an empty resource or prompt; none for other items.
    pub(super) fn default_reply(&self, templates: &mut Templates) -> Option<Reply> {
        let members = match self {
            ReplySubject::Tool | ReplySubject::Method => return None,
            ReplySubject::Prompt { .. } => self.prompt(Data::Literal("[]".into())),
            _ => vec![self.contents("text", Data::Literal("\"\"".into()), templates)],
        };
        Some(Reply::Result(Body::new(members, None)))
    }

    fn prompt(&self, messages: Data) -> Vec<(&'static str, Data)> {
        let description = match self {
            ReplySubject::Prompt { description } => description.as_ref(),
            _ => None,
        };
        let description = description.map(|json| ("description", Data::Literal(json.clone())));
        description.into_iter().chain([("messages", messages)]).collect()
    }

    /// One resource content.
    fn contents(&self, member: &str, content: Data, templates: &mut Templates) -> (&'static str, Data) {
        let (uri, mime_type) = match self {
            ReplySubject::Resource { uri, mime_type } => (uri.clone().map(Data::Literal), mime_type.as_ref()),
            ReplySubject::ResourceTemplate { mime_type } => (templates.expression("uri"), mime_type.as_ref()),
            _ => (None, None),
        };
        let uri = uri.map(|uri| ("uri".to_owned(), uri));
        let mime_type = mime_type.map(|json| ("mimeType".to_owned(), Data::Literal(json.clone())));
        let members = uri.into_iter().chain(mime_type).chain([(member.to_owned(), content)]);
        ("contents", Data::Sequence(vec![Data::Mapping(members.collect())]))
    }
}

impl Reply {
    /// Reads a reply: an object with one of the kinds, or a string as the short form of `text:`.
    ///
    /// # Errors
    /// No kind or two kinds; a kind's value is wrong.
    pub(super) fn read(node: &Node, subject: &ReplySubject, templates: &mut Templates) -> Result<Reply, Problems> {
        let object = format!("{}Reply", subject.key());
        let kinds = KEYS.choices(&object);
        if let Value::String(_) = node.value
            && kinds.contains(&"text")
        {
            return Reply::read_kind("text", node, None, subject, templates);
        }
        let fields = KEYS.fields(node, &object)?;
        let Entry { key, node: value, .. } = fields.exactly_one(&kinds)?;
        let meta = fields.read("_meta", |node| {
            node.entries()?;
            match KEYS.keys("kinds").contains(&key.as_str()) {
                false => templates.data(node),
                true => Err(node
                    .problem(format!("there is no `_meta` beside `{key}`"))
                    .hint("write it into the reply")
                    .into()),
            }
        })?;
        Reply::read_kind(key, value, meta, subject, templates)
    }

    /// Reads the value of one kind of reply.
    ///
    /// # Errors
    /// The value is wrong.
    pub(super) fn read_kind(
        kind: &str,
        value: &Node,
        meta: Option<Data>,
        subject: &ReplySubject,
        templates: &mut Templates,
    ) -> Result<Reply, Problems> {
        let is_tool = matches!(subject, ReplySubject::Tool);
        let members = match kind {
            "rpcError" => return read_rpc_error(value, templates),
            "result" => return Ok(Reply::Whole(Body::read(value, templates)?)),
            "raw" => return Ok(Reply::Raw(templates.text(value)?)),
            "text" if is_tool => vec![text_content(templates.text_data(value)?)],
            "json" if is_tool => vec![text_content(templates.quoted_data(value)?)],
            "structured" => {
                vec![text_content(templates.quoted_data(value)?), ("structuredContent", templates.data(value)?)]
            }
            "content" => vec![("content", read_content(value, templates)?)],
            "error" => vec![text_content(templates.text_data(value)?), ("isError", Data::Literal("true".into()))],
            "messages" => subject.prompt(Data::Sequence(value.each(|message| read_message(message, templates))?)),
            "contents" => {
                value.items()?;
                vec![("contents", templates.mcp_data(value, TEXTS)?)]
            }
            "blob" => {
                let text = value.str()?;
                if !text.contains("{{") && base64::engine::general_purpose::STANDARD.decode(text).is_err() {
                    return Err(value
                        .problem("a `blob` must be base64")
                        .hint("one line without spaces; readable content goes under `text`")
                        .into());
                }
                let blob = templates.text_data(value)?;
                vec![subject.contents("blob", blob, templates)]
            }
            "json" => {
                let json = templates.quoted_data(value)?;
                vec![subject.contents("text", json, templates)]
            }
            _ => {
                let text = templates.text_data(value)?;
                vec![subject.contents("text", text, templates)]
            }
        };
        Ok(Reply::Result(Body::new(members, meta)))
    }

    /// Whether the reply is a success without structured content.
    pub fn is_unstructured(&self) -> bool {
        let Reply::Result(body) = self else { return false };
        body.member("structuredContent").is_none() && body.member("isError").is_none()
    }

    /// The `structuredContent` of the reply, if the script gives it without templates.
    pub fn literal_structured_content(&self) -> Option<&str> {
        match self {
            Reply::Result(body) => body.member("structuredContent").and_then(Data::literal),
            _ => None,
        }
    }
}

fn text_content(text: Data) -> (&'static str, Data) {
    let content = match text {
        Data::Literal(text) => Data::Literal(format!("[{{\"type\":\"text\",\"text\":{text}}}]")),
        text => Data::Sequence(vec![text_block(text)]),
    };
    ("content", content)
}

fn text_block(text: Data) -> Data {
    Data::Mapping(vec![("type".into(), Data::Literal("\"text\"".into())), ("text".into(), text)])
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
    templates.mcp_data(node, TEXTS)
}

fn read_message(node: &Node, templates: &mut Templates) -> Result<Data, Problems> {
    let fields = KEYS.fields(node, "message")?;
    let role = fields.required("role")?;
    if !matches!(role.str()?, "user" | "assistant") {
        return Err(role.problem("the role must be `user` or `assistant`").into());
    }
    let content = fields.required("content")?;
    let content = match content.value {
        Value::String(_) => text_block(templates.text_data(content)?),
        _ => {
            content.entries()?;
            templates.mcp_data(content, TEXTS)?
        }
    };
    Ok(Data::Mapping(vec![("role".into(), Data::Literal(role.to_json_text())), ("content".into(), content)]))
}

fn read_rpc_error(node: &Node, templates: &mut Templates) -> Result<Reply, Problems> {
    let fields = KEYS.fields(node, "rpcError")?;
    let read_status = |node: &Node| match node.integer()? {
        status @ 200..=599 => Ok(status),
        _ => Err(node.problem("an HTTP status must be from 200 to 599").into()),
    };
    Ok(Reply::RpcError {
        code: fields.required("code")?.integer()?,
        message: templates.text(fields.required("message")?)?,
        data: fields.read("data", |node| templates.data(node))?,
        status: fields.read("status", read_status)?,
    })
}
