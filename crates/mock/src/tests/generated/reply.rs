//! Replies of generated scripts, and the texts in them.

use arbitrary::Arbitrary;
use serde_json::{Value as Json, json};

use super::script::Kind;

#[derive(Debug, Clone, Arbitrary)]
pub(crate) enum Reply {
    Plain(Text),
    Json(Text),
    Structured(Text),
    Content(Content, Text),
    Error(Text),
    RpcError(u8, Text),
    Verbatim(Text),
    Raw(Text),
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum Content {
    Text,
    Image,
    Audio,
    Link,
    Resource,
    Many,
}

/// A text; most are templates of some kind.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum Text {
    Plain,
    Awkward,
    Argument,
    Missing,
    Call,
    State,
    Environment,
    Meta,
    Now,
    Drawn,
    Bound,
    Mixed,
    List,
}

impl Reply {
    pub(super) fn is_odd(&self) -> bool {
        matches!(self, Reply::Verbatim(_) | Reply::Raw(_))
    }

    pub(super) fn to_json(&self, kind: Kind, bound: &str) -> Json {
        match self {
            Reply::Verbatim(text) => return json!({ "result": { "x": text.as_str(bound), "list": [1.0, null] } }),
            Reply::Raw(text) => return json!({ "raw": format!("raw {}", text.as_str(bound)) }),
            Reply::RpcError(code, text) => {
                let text = text.as_str(bound);
                let known = [-32_601, -32_602, -32_603];
                let code = known.get(usize::from(*code % 8)).copied().unwrap_or(-31_000 - i64::from(*code));
                return json!({ "rpcError": { "code": code, "message": text, "data": { "text": text } } });
            }
            _ => {}
        }
        let (Reply::Plain(text)
        | Reply::Json(text)
        | Reply::Structured(text)
        | Reply::Content(_, text)
        | Reply::Error(text)
        | Reply::RpcError(_, text)
        | Reply::Verbatim(text)
        | Reply::Raw(text)) = self;
        let text = text.as_str(bound);
        match (kind, self) {
            (Kind::Method, _) => json!({ "result": { "resultType": "complete", "text": text } }),
            (Kind::Prompt, Reply::Content(content, _)) => {
                json!({ "messages": [{ "role": "user", "content": content.block(text) }] })
            }
            (Kind::Prompt, _) => {
                json!({ "messages": [{ "role": "user", "content": text }, { "role": "assistant", "content": text }], "_meta": { "k": text } })
            }
            (Kind::Resource | Kind::Template, Reply::Json(_)) => json!({ "json": { "value": text } }),
            (Kind::Resource | Kind::Template, Reply::Content(..)) => {
                json!({ "contents": [{ "uri": "file:///other", "text": text }, { "uri": "file:///b", "blob": "aGk=" }] })
            }
            (Kind::Resource | Kind::Template, Reply::Error(_)) => json!({ "blob": "aGk=" }),
            (Kind::Resource | Kind::Template, _) => json!({ "text": text }),
            (Kind::Tool, Reply::Json(_)) => json!({ "json": { "value": text }, "_meta": { "k": text } }),
            (Kind::Tool, Reply::Structured(_)) => json!({ "structured": { "value": text, "list": [text] } }),
            (Kind::Tool, Reply::Content(Content::Many, _)) => {
                let all = [Content::Text, Content::Image, Content::Audio, Content::Link, Content::Resource];
                json!({ "content": all.map(|content| content.block(text)) })
            }
            (Kind::Tool, Reply::Content(content, _)) => json!({ "content": [content.block(text)] }),
            (Kind::Tool, Reply::Error(_)) => json!({ "error": text }),
            (Kind::Tool, _) => json!({ "text": text }),
        }
    }
}

impl Content {
    pub(super) fn block(self, text: &str) -> Json {
        match self {
            Content::Text | Content::Many => json!({ "type": "text", "text": text }),
            Content::Image => json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" }),
            Content::Audio => json!({ "type": "audio", "data": "aGk=", "mimeType": "audio/wav" }),
            Content::Link => json!({ "type": "resource_link", "uri": "file:///a", "name": text }),
            Content::Resource => json!({ "type": "resource", "resource": { "uri": "file:///a", "text": text } }),
        }
    }
}

impl Text {
    /// The text; `bound` is the name of an answer, if there is one.
    pub(crate) fn as_str(self, bound: &str) -> &'static str {
        match self {
            Text::Plain => "plain",
            Text::Awkward => "a\"b\\c\nd\u{0}é\u{1f600}\u{2028}",
            Text::Argument => "{{ args.a | default('none') }}",
            Text::Missing => "{{ args.missing }}",
            Text::Call => "{{ call }}",
            Text::State => "{{ state.n | default(0) + 1 }}",
            Text::Environment => "{{ env.NO_SUCH_VARIABLE | default('unset') }}",
            Text::Meta => "{{ params | length }}",
            Text::Now => "{{ now }}",
            Text::Drawn => "{{ rand(1, 6) }}",
            Text::Bound => match bound {
                "q0" => "{{ q0 }}",
                "q1" => "{{ q1.action | default('no action') }}",
                "q2" => "q2 is {{ q2 }}",
                _ => "unbound",
            },
            Text::Mixed => "{% if call > 1 %}again {{ call }}{% else %}first{% endif %}",
            Text::List => "{{ [args.a | default('x'), 'y'] }}",
        }
    }
}
