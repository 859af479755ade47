//! What a script offers: tools, resources and prompts. Their MCP members are passed through as they are written.

use base64::Engine as _;

use super::{Reply, Rule, rule::ANSWER_KEYS};
use crate::{
    config::{Entry, Fields, Node, Problems, Value},
    mock::{
        matcher::Schema,
        template::{Data, Templates},
    },
};

const TOOL_MEMBERS: &[&str] =
    &["name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "execution", "_meta"];
const RESOURCE_MEMBERS: &[&str] =
    &["uri", "name", "title", "description", "mimeType", "size", "annotations", "icons", "_meta"];
const PROMPT_MEMBERS: &[&str] = &["name", "title", "description", "arguments", "icons", "_meta"];

/// A tool of the script.
#[derive(Debug)]
pub struct ToolStub {
    pub name: String,
    /// The MCP `Tool` as JSON text.
    pub definition: String,
    /// The compiled `inputSchema`, if the script gives one.
    pub input: Option<Schema>,
    /// The compiled `outputSchema`.
    pub output: Option<Schema>,
    /// Empty if the script does not say how the tool answers.
    pub rules: Vec<Rule>,
}

/// A resource of the script.
#[derive(Debug)]
pub struct ResourceStub {
    pub uri: String,
    /// The MCP `Resource` as JSON text.
    pub definition: String,
    /// The list of resource contents.
    pub contents: Data,
}

/// A prompt of the script.
#[derive(Debug)]
pub struct PromptStub {
    pub name: String,
    /// The MCP `Prompt` as JSON text.
    pub definition: String,
    pub description: Option<String>,
    /// The names of the arguments that must be given.
    pub required: Vec<String>,
    /// The list of prompt messages.
    pub messages: Data,
}

/// The members of an MCP definition as JSON text, in the order of the file.
fn definition(fields: &Fields<'_>, members: &[&str]) -> Result<Vec<String>, Problems> {
    for name in ["title", "description", "mimeType"] {
        fields.read(name, Node::str)?;
    }
    for name in ["annotations", "execution", "_meta", "outputSchema"] {
        fields.read(name, Node::entries)?;
    }
    fields.read("icons", Node::items)?;
    let entries = fields.node().entries()?.iter().filter(|entry| members.contains(&entry.key.as_str()));
    Ok(entries.map(|entry| format!("\"{}\":{}", entry.key, entry.node.to_json_text())).collect())
}

fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

impl ToolStub {
    pub(super) fn read(node: &Node, templates: &mut Templates) -> Result<ToolStub, Problems> {
        let keys = [TOOL_MEMBERS, ANSWER_KEYS, &["rules"]].concat();
        let fields = node.fields("a tool", &keys)?;
        let name = fields.required("name")?.str()?.to_owned();
        let mut members = definition(&fields, TOOL_MEMBERS)?;
        if fields.get("inputSchema").is_none() {
            members.push("\"inputSchema\":{\"type\":\"object\"}".into());
        }
        if let Some(schema) = fields.get("inputSchema")
            && schema.get("type").map(|kind| &kind.value) != Some(&Value::String("object".into()))
        {
            return Err(schema.problem("an inputSchema has `type: object`").into());
        }
        let tool = ToolStub {
            definition: object(&members),
            input: fields.read("inputSchema", Schema::read)?,
            output: fields.read("outputSchema", Schema::read)?,
            rules: Rule::read_all(&fields, &format!("tools.{name}"), templates)?,
            name,
        };
        let unstructured = |reply: &Reply| reply.is_unstructured();
        if tool.output.is_some() && tool.rules.iter().flat_map(|rule| rule.answer.replies()).any(unstructured) {
            let problem = node.problem("a tool with an outputSchema gives `structured` replies or errors");
            return Err(problem.hint("use `result:` for a reply that is wrong on purpose").into());
        }
        match tool.output_violation() {
            None => Ok(tool),
            Some(violation) => {
                let problem = node.problem(format!("a `structured` reply breaks the tool's outputSchema: {violation}"));
                Err(problem.hint("use `result:` for a reply that is wrong on purpose").into())
            }
        }
    }

    fn output_violation(&self) -> Option<String> {
        let schema = self.output.as_ref()?;
        let replies = self.rules.iter().flat_map(|rule| rule.answer.replies());
        let mut literals = replies.filter_map(Reply::literal_structured_content);
        literals.find_map(|literal| {
            let value = serde_json::from_str(literal).ok()?;
            schema.violations(&value).first().map(ToString::to_string)
        })
    }
}

impl ResourceStub {
    pub(super) fn read(node: &Node, templates: &mut Templates) -> Result<ResourceStub, Problems> {
        const CONTENTS: &[&str] = &["text", "blob", "json", "contents"];
        let fields = node.fields("a resource", &[RESOURCE_MEMBERS, CONTENTS].concat())?;
        let uri = fields.required("uri")?.str()?.to_owned();
        let mut members = definition(&fields, RESOURCE_MEMBERS)?;
        if fields.get("name").is_none() {
            members.push(format!("\"name\":{}", fields.required("uri")?.to_json_text()));
        }
        let content = match fields.at_most_one(CONTENTS)? {
            Some(Entry { key, node, .. }) if key == "contents" => {
                node.items()?;
                return Ok(ResourceStub { uri, definition: object(&members), contents: templates.data(node)? });
            }
            Some(Entry { key, node, .. }) if key == "blob" => {
                if base64::engine::general_purpose::STANDARD.decode(node.str()?).is_err() {
                    return Err(node.problem("a `blob` is base64").hint("put readable content under `text`").into());
                }
                ("blob", Data::Literal(node.to_json_text()))
            }
            Some(Entry { key, node, .. }) if key == "json" => ("text", Data::quoted(node, templates)?),
            Some(Entry { node, .. }) => ("text", templates.text_data(node)?),
            None => ("text", Data::Literal("\"\"".into())),
        };
        let mut item = Vec::new();
        for name in ["uri", "mimeType"] {
            if let Some(node) = fields.get(name) {
                item.push((name.to_owned(), Data::Literal(node.to_json_text())));
            }
        }
        item.push((content.0.to_owned(), content.1));
        Ok(ResourceStub { uri, definition: object(&members), contents: Data::Sequence(vec![Data::Mapping(item)]) })
    }
}

impl PromptStub {
    pub(super) fn read(node: &Node, templates: &mut Templates) -> Result<PromptStub, Problems> {
        let fields = node.fields("a prompt", &[PROMPT_MEMBERS, &["messages"]].concat())?;
        let mut required = Vec::new();
        for argument in fields.get("arguments").map_or(Ok(&[][..]), Node::items)? {
            let argument = argument.fields("a prompt argument", &["name", "title", "description", "required"])?;
            let name = argument.required("name")?.str()?;
            if argument.read("required", Node::bool)?.unwrap_or(false) {
                required.push(name.to_owned());
            }
        }
        Ok(PromptStub {
            name: fields.required("name")?.str()?.to_owned(),
            definition: object(&definition(&fields, PROMPT_MEMBERS)?),
            description: fields.read("description", |node| Ok(node.str()?.to_owned()))?,
            required,
            messages: Data::Sequence(fields.read_each("messages", |node| read_message(node, templates))?),
        })
    }
}

fn read_message(node: &Node, templates: &mut Templates) -> Result<Data, Problems> {
    let fields = node.fields("a prompt message", &["role", "content"])?;
    let role = fields.required("role")?;
    if !matches!(role.str()?, "user" | "assistant") {
        return Err(role.problem("the role is `user` or `assistant`").into());
    }
    let content = fields.required("content")?;
    let content = match content.value {
        Value::String(_) => Data::Mapping(vec![
            ("type".into(), Data::Literal("\"text\"".into())),
            ("text".into(), templates.text_data(content)?),
        ]),
        _ => {
            content.entries()?;
            templates.data(content)?
        }
    };
    Ok(Data::Mapping(vec![("role".into(), Data::Literal(role.to_json_text())), ("content".into(), content)]))
}

#[cfg(test)]
mod tests {
    use crate::{config::Source, mock::script::Script};

    fn errors(text: &str) -> String {
        Script::parse(&Source::new("m", text)).expect_err(text).to_string()
    }

    #[test]
    fn a_structured_reply_that_breaks_its_schema_is_refused_when_read() {
        let text =
            "tools: [{ name: t, outputSchema: { type: object, required: [ok] }, reply: { structured: { no: 1 } } }]";
        assert!(errors(text).contains("breaks the tool's outputSchema"), "{}", errors(text));
        let text = "tools: [{ name: t, outputSchema: { type: object }, reply: plain }]";
        assert!(errors(text).contains("gives `structured` replies"), "{}", errors(text));
    }

    #[test]
    fn members_that_break_the_protocol_are_refused() {
        for (text, message) in [
            ("tools: [{ name: t, inputSchema: { type: string } }]", "an inputSchema has `type: object`"),
            ("tools: [{ name: t, description: 5 }]", "expected a text"),
            ("tools: [{ name: t, annotations: x }]", "expected a mapping"),
            ("tools: [{ name: t, reply: { content: [{ type: text }] } }]", "a `text` block needs a `text`"),
            (
                "tools: [{ name: t, reply: { content: [{ type: image, data: aGk= }] } }]",
                "an `image` block needs a `mimeType`",
            ),
            ("tools: [{ name: t, reply: { text: x, _meta: [1] } }]", "expected a mapping"),
            ("tools: [{ name: t, steps: [{ progress: { progress: abc } }, { reply: x }] }]", "`progress` is a number"),
        ] {
            assert!(errors(text).contains(message), "{}", errors(text));
        }
    }

    #[test]
    fn contents_are_checked() {
        assert!(errors("resources: [{ uri: 'file:///a', blob: '***' }]").contains("a `blob` is base64"));
        assert!(errors("resources: [{ uri: 'file:///a', blob: aGk=, text: x }]").contains("both `blob` and `text`"));
        assert!(errors("resources: [{ name: a }]").contains("a resource needs a `uri`"));
        assert!(errors("prompts: [{ name: p, arguments: [{ required: true }] }]").contains("needs a `name`"));
    }
}
