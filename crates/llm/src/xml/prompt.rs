//! The part of a system prompt that describes the tools.

use std::{collections::HashSet, fmt::Write};

use serde_json::{Map, Value};

use super::{Options, write};
use crate::{ToolDefinition, validate::display_value};
use rehearse_document::json_schema::{
    Type, View,
    example::{self, Filler},
};

/// The text without tools.
pub const NO_TOOLS: &str = "No tools are currently available.";

/// The maximum depth of described objects.
const MAX_DEPTH: usize = 3;

/// What stands in the example of a call.
const FILLER: Filler = Filler { text: "example_string", number: 0.0, is_short: true, flag: false, any: "value" };

/// A section of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    pub title: &'a str,
    pub content: &'a str,
}

/// A whole system prompt: the introduction, custom sections, and the tools.
pub fn system_prompt(base: &str, sections: &[Section<'_>], tools: &[ToolDefinition<'_>], options: &Options) -> String {
    let own = sections.iter().map(|Section { title, content }| section(title, content));
    let parts = [base.to_owned()].into_iter().chain(own).chain([prompt(tools, options)]);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Describes how to call tools, their results, and each tool with its parameters and examples. Of tools with the same
/// name, only the first is described, as in [`Parser`](super::Parser).
pub fn prompt(tools: &[ToolDefinition<'_>], options: &Options) -> String {
    let mut names = HashSet::new();
    let tools: Vec<_> = tools.iter().filter(|tool| names.insert(tool.name)).map(tool_entry).collect();
    let available = if tools.is_empty() { NO_TOOLS.to_owned() } else { tools.join("\n\n") };
    let usage = section("Tool Usage Instructions", &usage_instructions(options.max_calls_per_message));
    let response = section("Tool Response Format", RESPONSE_FORMAT);
    let guidelines = guidelines(options.max_calls_per_message);
    [usage, response, guidelines, section("Available Tools", &available)].join("\n\n")
}

fn section(title: &str, content: &str) -> String {
    format!("## {title}\n\n{content}")
}

fn usage_instructions(max: usize) -> String {
    let at_most = match max {
        1 => "Call one tool per response.".to_owned(),
        max => format!("Call at most {max} tools per response."),
    };
    format!(
        "You call a tool by writing an element with its name, which has an element for each parameter:\n\n\
         <tool_name>\n\
         <parameter1_name>value1</parameter1_name>\n\
         <parameter2_name>value2</parameter2_name>\n\
         </tool_name>\n\n\
         - {at_most} The call is the only content of the response, besides what you think.\n\
         - Parameters marked (required) are mandatory. A tool without parameters is called with an empty element.\n\
         - Write lists and objects as JSON. Write a text as it is; if it has `<`, `>` or `&` in it, put it into \
         `<![CDATA[` and `]]>`, or write `&lt;`, `&gt;` and `&amp;`.\n\
         - Write no code fence around a call: what stands in a code block is not run.\n\
         - The next message has the tool's output, or its errors.\n\n\
         Example:\n\n\
         <read_file>\n\
         <path>example.txt</path>\n\
         </read_file>"
    )
}

const RESPONSE_FORMAT: &str = "\
The result of a call comes back as JSON:\n\n\
{\"content\": [{\"type\": \"text\", \"text\": \"...\"}], \"isError\": false, \"success\": true}\n\n\
- `content` has blocks of text, images, audio, and resources or links to them.\n\
- `isError` is true, and `success` is false, if the call failed; the content says why.";

fn guidelines(max: usize) -> String {
    let number = match max {
        1 => "Use one tool per message. If there is more to do, take one step after the other.".to_owned(),
        max => format!("Use at most {max} tools per message, and only such as do not need each other's results."),
    };
    format!(
        "# Tool Use Guidelines\n\n\
         1. In <thinking> tags, think about what you know already and what you still need to know.\n\
         2. Choose the tool that fits best, by the descriptions of the tools.\n\
         3. {number}\n\
         4. Write the call in the XML format of the tool.\n\
         5. The user answers with the result: whether it succeeded, its output, or what went wrong.\n\
         6. Wait for this answer before you go on. Never assume that a call succeeded."
    )
}

fn tool_entry(tool: &ToolDefinition<'_>) -> String {
    let input_schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    let schema = View::new(&input_schema);
    let mut entry = format!("### {}\n\n", tool.name);
    if let Some(description) = tool.description.map(str::trim).filter(|description| !description.is_empty()) {
        _ = write!(entry, "{description}\n\n");
    }
    let parameters: String =
        schema.properties().map(|(name, parameter)| parameter_entry(name, parameter, schema)).collect();
    if !parameters.is_empty() {
        _ = write!(entry, "Parameters:\n\n{parameters}\n");
    }
    _ = write!(entry, "Usage:\n\n```\n{}\n```\n\n", usage(tool.name, schema));
    let examples = examples(tool, &input_schema).join("\n\n");
    entry + &format!("Examples:\n\n```\n{examples}\n```")
}

fn parameter_entry(name: &str, parameter: View<'_>, schema: View<'_>) -> String {
    let description = description(parameter).unwrap_or_else(|| "No description".to_owned());
    let mut entry = format!("- {name}{}: {description}\n", mark(schema.is_required(name)));
    let rules = rules(parameter, 0);
    if !rules.is_empty() {
        _ = writeln!(entry, "  - {}", rules.join("; "));
    }
    entry
}

fn mark(is_required: bool) -> &'static str {
    if is_required { " (required)" } else { " (optional)" }
}

/// The description on one line.
fn description(schema: View<'_>) -> Option<String> {
    let words = schema.text("description")?.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(words).filter(|words| !words.is_empty())
}

/// The constraints of the schema.
fn rules(schema: View<'_>, depth: usize) -> Vec<String> {
    const NUMBERS: [(&str, &str); 8] = [
        ("minimum", "at least {}"),
        ("maximum", "at most {}"),
        ("exclusiveMinimum", "more than {}"),
        ("exclusiveMaximum", "less than {}"),
        ("minLength", "at least {} characters"),
        ("maxLength", "at most {} characters"),
        ("minItems", "at least {} items"),
        ("maxItems", "at most {} items"),
    ];
    let types: Vec<_> = schema.types().into_iter().map(Type::as_str).collect();
    let mut rules: Vec<String> = Some(types.join(" or ")).filter(|types| !types.is_empty()).into_iter().collect();
    if let Some(choices) = schema.choices() {
        rules.push(format!("one of: {}", choices.iter().map(display_value).collect::<Vec<_>>().join(", ")));
    }
    let of_kind = [Type::Array, Type::Object].into_iter().find(|kind| schema.types().contains(kind));
    let schema = of_kind.map_or(schema, |kind| schema.as_type(kind));
    for (keyword, rule) in NUMBERS {
        rules.extend(schema.get(keyword).map(|limit| rule.replace("{}", &display_value(limit))));
    }
    rules.extend(schema.text("pattern").map(|pattern| format!("matches the pattern {pattern}")));
    rules.extend(schema.text("format").map(|format| format!("format {format}")));
    if depth < MAX_DEPTH {
        let of_items = schema.item(0).map(|item| self::rules(item, depth + 1)).filter(|rules| !rules.is_empty());
        rules.extend(of_items.map(|rules| format!("each item: {}", rules.join(", "))));
        let member = |(name, member): (&str, View<'_>)| {
            format!("{name}{} {}", mark(schema.is_required(name)), self::rules(member, depth + 1).join(", "))
        };
        let members: Vec<_> = schema.properties().map(member).map(|member| member.trim_end().to_owned()).collect();
        rules.extend((!members.is_empty()).then(|| format!("members: {}", members.join("; "))));
    }
    rules.extend(schema.get("default").map(|value| format!("default {}", display_value(value))));
    rules
}

fn usage(name: &str, schema: View<'_>) -> String {
    let mut usage = format!("<{name}>\n");
    for (parameter, of) in schema.properties() {
        let content = description(of).unwrap_or_else(|| format!("{parameter} value"));
        _ = writeln!(usage, "<{parameter}>{content}</{parameter}>{}", mark(schema.is_required(parameter)));
    }
    usage + &format!("</{name}>")
}

/// The examples of the tool, or one generated from its schema.
fn examples(tool: &ToolDefinition<'_>, input_schema: &Value) -> Vec<String> {
    if tool.examples.is_empty() {
        let schema = View::new(input_schema);
        let arguments: Map<_, _> = schema
            .properties()
            .map(|(name, parameter)| (name.to_owned(), example::value(parameter, &FILLER)))
            .collect();
        return vec![write(tool.name, &arguments, input_schema)];
    }
    let written = |example: &crate::Example<'_>| {
        let description = example.description.map(|text| format!("// {text}\n")).unwrap_or_default();
        description + &write(tool.name, example.arguments, input_schema)
    };
    tool.examples.iter().map(written).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::tests::{calls_and_errors, many, parser_with, raw},
        *,
    };

    #[test]
    fn the_prompt_describes_tools_with_everything_that_a_call_needs() {
        let schema = raw(&json!({ "type": "object", "required": ["path"], "properties": {
            "path": { "type": "string", "description": "Where it\nis." },
            "limit": { "type": "integer", "minimum": 1, "maximum": 9, "default": 5 },
            "mode": { "enum": ["a", "b"] },
            "tags": { "type": "array", "items": { "type": "string", "pattern": "^x" } },
            "at": { "type": "object", "required": ["x"], "properties": { "x": { "type": "number" } } } } }));
        let arguments = json!({ "path": "a<b", "limit": 2 });
        let examples = [crate::Example {
            description: Some("Reads two lines."),
            arguments: arguments.as_object().expect("an object"),
        }];
        let tool = ToolDefinition { description: Some("Reads a file."), ..ToolDefinition::new("read_file", &schema) };
        let text = prompt(&[tool], &Options::default());
        let entry = "## Available Tools\n\n### read_file\n\nReads a file.\n\nParameters:\n\n\
            - path (required): Where it is.\n  - string\n\
            - limit (optional): No description\n  - integer; at least 1; at most 9; default 5\n\
            - mode (optional): No description\n  - one of: a, b\n\
            - tags (optional): No description\n  - array; each item: string, matches the pattern ^x\n\
            - at (optional): No description\n  - object; members: x (required) number\n\n\
            Usage:\n\n```\n<read_file>\n<path>Where it is.</path> (required)\n<limit>limit value</limit> (optional)\n\
            <mode>mode value</mode> (optional)\n<tags>tags value</tags> (optional)\n<at>at value</at> (optional)\n</read_file>\n```\n\n\
            Examples:\n\n```\n<read_file>\n<path>example_string</path>\n<limit>5</limit>\n<mode>a</mode>\n<tags>[]</tags>\n<at>{\"x\":0}</at>\n</read_file>\n```";
        let start = text.find("## Available Tools").expect("a section");
        assert_eq!(&text[start..], entry);
        let text = prompt(&[ToolDefinition { examples: &examples, ..tool }], &Options::default());
        let example = "```\n// Reads two lines.\n<read_file>\n<path>a&lt;b</path>\n<limit>2</limit>\n</read_file>\n```";
        assert!(text.ends_with(example), "{text}");
    }

    #[test]
    fn the_prompt_explains_calls_and_results() {
        let one = prompt(&[], &Options::default());
        for part in [
            "## Tool Usage Instructions\n\n",
            "<tool_name>\n<parameter1_name>value1</parameter1_name>\n<parameter2_name>value2</parameter2_name>\n</tool_name>",
            "Call one tool per response.",
            "Parameters marked (required) are mandatory.",
            "<read_file>\n<path>example.txt</path>\n</read_file>",
            "\"isError\": false, \"success\": true",
            "# Tool Use Guidelines\n\n1. In <thinking> tags",
            "\n6. Wait",
        ] {
            assert!(one.contains(part), "{part}");
        }
        assert!(one.ends_with("## Available Tools\n\nNo tools are currently available."));
        assert!(prompt(&[], &many()).contains("at most 10 tools per response"));
        let section = Section { title: "House", content: "Be kind." };
        let whole = system_prompt("You help.", &[section], &[], &Options::default());
        assert!(whole.starts_with("You help.\n\n## House\n\nBe kind.\n\n## Tool Usage Instructions"));
    }

    #[test]
    fn the_example_of_a_schema_is_a_valid_request() {
        let schema = json!({ "type": "object", "required": ["a", "e", "n"], "properties": {
            "a": { "type": "array" }, "e": { "enum": ["x"] }, "n": { "type": "integer", "minimum": 3 },
            "d": { "default": { "k": "<v>" } }, "u": {}, "b": { "type": "boolean" } } });
        let text = raw(&schema);
        let prompt = prompt(&[ToolDefinition::new("t", &text)], &Options::default());
        let example = prompt.rsplit("```").nth(1).expect("a code block");
        let (found, errors) = calls_and_errors(&parser_with(&[("t", schema)], many()).parse(example));
        let expected = json!({ "a": [], "e": "x", "n": 3, "d": { "k": "<v>" }, "u": "value", "b": false });
        assert_eq!((found, errors), (vec![expected], vec![]));
    }
}
