//! TypeScript.

use serde_json::Value;

use super::comment_lines;
use crate::{
    Tool,
    names::{Names, is_javascript_property, javascript, pascal},
    schema_type::{Definitions, Field, Object, Type, distinct},
};

/// What every file of bindings begins with.
const HEAD: &str = include_str!("bindings.ts.txt");
/// The names in it, and those of the library that it uses.
const TAKEN: &[&str] = &["ToolClient", "ToolError", "Tools", "tools", "callTool", "Promise", "Error"];

/// A tool as a function.
struct Function {
    name: String,
    input: String,
    output: String,
    has_input: bool,
    input_is_optional: bool,
    /// The definitions of both.
    types: String,
    comment: String,
}

/// A file for programs.
pub(super) fn bindings(tools: &[&Tool]) -> String {
    let functions = functions(tools, "export ");
    let mut text = HEAD.to_owned();
    functions.iter().for_each(|function| text.push_str(&format!("\n{}", function.types)));
    text.push_str("\n/** The tools. */\nexport interface Tools {\n");
    for function in &functions {
        text.push_str(&indented(&function.comment, "  "));
        text.push_str(&format!("  {}{};\n", function.name, function.signature()));
    }
    text.push_str("}\n\n/** The tools of the server that the client is connected to. */\n");
    text.push_str("export function tools(client: ToolClient): Tools {\n  return {\n");
    for (function, tool) in functions.iter().zip(tools) {
        let (parameter, input) = match function.has_input {
            true if function.input_is_optional => ("input = {}", "input"),
            true => ("input", "input"),
            false => ("", "{}"),
        };
        let is_typed = tool.structured_output().is_some();
        let call = format!("callTool(client, {}, {input}, {is_typed})", quoted(&tool.name));
        text.push_str(&format!(
            "    {}: async ({parameter}) => (await {call}) as {},\n",
            function.name, function.output
        ));
    }
    text.push_str("  };\n}\n");
    text
}

/// What a model reads.
pub(super) fn definitions(tools: &[&Tool]) -> String {
    let text = functions(tools, "").into_iter().map(|function| {
        let signature = function.signature();
        format!("{}{}declare function {}{signature};\n", function.types, function.comment, function.name)
    });
    text.collect::<Vec<_>>().join("\n")
}

impl Function {
    fn signature(&self) -> String {
        let mark = if self.input_is_optional { "?" } else { "" };
        let parameter = if self.has_input { format!("input{mark}: {}", self.input) } else { String::new() };
        format!("({parameter}): Promise<{}>", self.output)
    }
}

/// The names of the functions.
pub(super) fn function_names(tools: &[&Tool]) -> Vec<String> {
    functions(tools, "").into_iter().map(|function| function.name).collect()
}

fn functions(tools: &[&Tool], export: &str) -> Vec<Function> {
    let mut values = Names::with_taken(TAKEN);
    let mut types = Names::with_taken(TAKEN);
    let names = values.give_all(tools, javascript);
    let function = |(tool, name): (&&Tool, String)| {
        // The types have the number of the function.
        let number = name.strip_prefix(&javascript(&tool.name)).unwrap_or_default();
        let base = format!("{}{number}", pascal(&tool.name));
        let input = Definitions::read(&tool.input_schema);
        let has_input = input.has_input();
        let input_is_optional = match input.resolve(input.get(0)) {
            Type::Object(object) => object.fields.iter().all(|field| !field.is_required),
            ty => *ty == Type::Any,
        };
        let mut text = String::new();
        let mut input_name = String::new();
        if has_input {
            let writer = Writer::new(&input, &format!("{base}Input"), &mut types);
            input_name.clone_from(&writer.names[0]);
            text.push_str(&writer.definitions(export));
        }
        let output_name = match tool.structured_output() {
            Some(schema) => {
                let output = Definitions::read(schema);
                let writer = Writer::new(&output, &format!("{base}Output"), &mut types);
                text.push_str(&writer.definitions(export));
                writer.names[0].clone()
            }
            None => {
                let name = types.give(&format!("{base}Output"));
                text.push_str(&format!("{export}type {name} = string;\n"));
                name
            }
        };
        let lines = tool.description.as_deref().map(comment_lines).unwrap_or_default();
        let comment = comment(&lines, "");
        Function { name, input: input_name, output: output_name, has_input, input_is_optional, types: text, comment }
    };
    tools.iter().zip(names).map(function).collect()
}

/// Writes the types of one schema.
struct Writer<'d> {
    definitions: &'d Definitions,
    /// Of each definition.
    names: Vec<String>,
}

impl<'d> Writer<'d> {
    fn new(definitions: &'d Definitions, root: &str, types: &mut Names) -> Writer<'d> {
        let name = |(index, definition): (usize, &crate::schema_type::Definition)| match index {
            0 => types.give(root),
            _ => types.give(&format!("{root}{}", pascal(&definition.name))),
        };
        Writer { definitions, names: definitions.0.iter().enumerate().map(name).collect() }
    }

    fn definitions(&self, export: &str) -> String {
        let mut text = String::new();
        for (definition, name) in self.definitions.0.iter().zip(&self.names) {
            text.push_str(&comment(&definition.notes, ""));
            text.push_str(&format!("{export}type {name} = {};\n", self.ty(&definition.ty, "")));
        }
        text
    }

    fn ty(&self, ty: &Type, indent: &str) -> String {
        match ty {
            Type::Any => "unknown".to_owned(),
            Type::Never => "never".to_owned(),
            Type::Null => "null".to_owned(),
            Type::Boolean => "boolean".to_owned(),
            Type::Integer | Type::Number => "number".to_owned(),
            Type::String => "string".to_owned(),
            Type::Literal(value) => literal(value),
            Type::Array(item) => format!("{}[]", self.operand(item, indent)),
            Type::Tuple { items, required, rest } => {
                let item = |(index, item)| match index < *required {
                    true => self.ty(item, indent),
                    false => format!("{}?", self.operand(item, indent)),
                };
                let rest = rest.iter().map(|rest| format!("...{}[]", self.operand(rest, indent)));
                let items = items.iter().enumerate().map(item).chain(rest);
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
            Type::Object(object) => self.object(object, indent),
            Type::Union(parts) => self.joined(parts, " | ", indent),
            Type::Intersection(parts) => self.joined(parts, " & ", indent),
            Type::Reference(index) => self.names.get(*index).cloned().unwrap_or_default(),
        }
    }

    /// A type before `[]` or `?`, or between `|` or `&`.
    fn operand(&self, ty: &Type, indent: &str) -> String {
        match ty {
            Type::Union(_) | Type::Intersection(_) => format!("({})", self.ty(ty, indent)),
            _ => self.ty(ty, indent),
        }
    }

    fn joined(&self, parts: &[Type], operator: &str, indent: &str) -> String {
        distinct(parts.iter().map(|part| self.operand(part, indent))).join(operator)
    }

    fn object(&self, object: &Object, indent: &str) -> String {
        let inner = format!("{indent}  ");
        let rest = object.rest.as_deref();
        if object.fields.is_empty() {
            return format!("{{ [key: string]: {} }}", self.ty(rest.unwrap_or(&Type::Any), indent));
        }
        let mut text = "{\n".to_owned();
        for Field { name, ty, is_required, notes } in &object.fields {
            text.push_str(&comment(notes, &inner));
            let name = if is_javascript_property(name) { name.clone() } else { quoted(name) };
            let mark = if *is_required { "" } else { "?" };
            text.push_str(&format!("{inner}{name}{mark}: {};\n", self.ty(ty, &inner)));
        }
        if object.has_rest() {
            // A type of its own would have to fit the properties above.
            text.push_str(&format!("{inner}[key: string]: unknown;\n"));
        }
        text.push_str(&format!("{indent}}}"));
        text
    }
}

fn quoted(name: &str) -> String {
    literal(&Value::from(name))
}

/// A scalar without control characters, which JSON allows in part.
fn literal(value: &Value) -> String {
    let escaped = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    value.to_string().chars().map(escaped).collect()
}

/// A comment before a declaration; empty without lines.
fn comment(lines: &[String], indent: &str) -> String {
    let lines = lines.iter().flat_map(|line| comment_lines(line));
    let lines: Vec<_> = lines.map(|line| line.replace("*/", "*\\/")).collect();
    match &lines[..] {
        [] => String::new(),
        [line] => format!("{indent}/** {line} */\n"),
        lines => {
            let lines = lines.iter().map(|line| format!("{indent} * {line}").trim_end().to_owned() + "\n");
            format!("{indent}/**\n{}{indent} */\n", lines.collect::<String>())
        }
    }
}

fn indented(text: &str, indent: &str) -> String {
    text.lines().map(|line| format!("{indent}{line}\n")).collect()
}
