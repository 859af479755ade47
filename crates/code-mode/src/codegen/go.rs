//! Go.

use super::comment_lines;
use crate::{
    Tool,
    names::{Names, pascal},
    schema_type::{Definition, Definitions, Field, Object, Type, kind},
};

/// What every file of bindings begins with.
const HEAD: &str = include_str!("bindings.go.txt");
/// The names in it, and those of a program of code mode.
const TAKEN: &[&str] = &["Caller", "Ptr", "Run", "Tools"];

/// A tool as a function.
struct Function {
    name: String,
    input: Option<String>,
    output: String,
    types: String,
    comment: String,
}

/// A file for programs.
pub(super) fn bindings(tools: &[&Tool]) -> String {
    let mut text = HEAD.to_owned();
    for (function, tool) in functions(tools).iter().zip(tools) {
        let input = if function.input.is_some() { "input" } else { "struct{}{}" };
        let is_typed = tool.structured_output().is_some();
        text.push_str(&format!("\n{}\n{}", function.types, function.comment));
        text.push_str(&format!("func (t Tools) {} {{\n", function.signature()));
        text.push_str(&format!(
            "\treturn call[{}](ctx, t.Session, {:?}, {input}, {is_typed})\n}}\n",
            function.output, tool.name
        ));
    }
    text
}

/// What a model reads.
pub(super) fn definitions(tools: &[&Tool]) -> String {
    let text = functions(tools)
        .into_iter()
        .map(|function| format!("{}\n{}func {}\n", function.types, function.comment, function.signature()));
    text.collect::<Vec<_>>().join("\n")
}

impl Function {
    fn signature(&self) -> String {
        let input = self.input.as_ref().map(|name| format!(", input {name}")).unwrap_or_default();
        format!("{}(ctx context.Context{input}) ({}, error)", self.name, self.output)
    }
}

/// The file `tools.go` of a program of code mode.
pub(super) fn program(tools: &[&Tool]) -> String {
    let mut text = "package main\n\nimport \"context\"\n\nvar _ context.Context\n".to_owned();
    for (function, tool) in functions(tools).iter().zip(tools) {
        let input = if function.input.is_some() { "input" } else { "struct{}{}" };
        text.push_str(&format!("\n{}\nfunc {} {{\n", function.types, function.signature()));
        text.push_str(&format!("\treturn call[{}](ctx, {:?}, {input})\n}}\n", function.output, tool.name));
    }
    text
}

fn functions(tools: &[&Tool]) -> Vec<Function> {
    // Types and functions share their names.
    let mut names = Names::with_taken(TAKEN);
    let functions = names.give_all(tools, pascal);
    let function = |(tool, name): (&&Tool, String)| {
        let base = &name;
        let input = Definitions::read(&tool.input_schema);
        let mut types = Vec::new();
        let input = input.has_input().then(|| Writer::write(&input, &format!("{base}Input"), &mut names, &mut types));
        let output = match tool.structured_output() {
            Some(schema) => Writer::write(&Definitions::read(schema), &format!("{base}Output"), &mut names, &mut types),
            None => {
                let output = names.give(&format!("{base}Output"));
                types.push(format!("type {output} = string\n"));
                output
            }
        };
        let comment = tool.description.as_deref().map(|text| comment(text, "")).unwrap_or_default();
        Function { name, input, output, types: types.join("\n"), comment }
    };
    tools.iter().zip(functions).map(function).collect()
}

/// Writes the types of one schema.
struct Writer<'d, 'n> {
    definitions: &'d Definitions,
    /// Of each definition.
    named: Vec<String>,
    names: &'n mut Names,
    /// The declarations, in order.
    types: &'n mut Vec<String>,
}

impl Writer<'_, '_> {
    /// Adds the declarations, and returns the name of the first.
    fn write(definitions: &Definitions, root: &str, names: &mut Names, types: &mut Vec<String>) -> String {
        let name = |(index, definition): (usize, &Definition)| match index {
            0 => names.give(root),
            _ => names.give(&format!("{root}_{}", pascal(&definition.name))),
        };
        let named: Vec<_> = definitions.0.iter().enumerate().map(name).collect();
        let mut writer = Writer { definitions, named, names, types };
        for (index, definition) in definitions.0.iter().enumerate() {
            writer.declare(index, definition);
        }
        writer.named.swap_remove(0)
    }

    fn declare(&mut self, index: usize, definition: &Definition) {
        let name = self.named[index].clone();
        let about = comment(&definition.notes.join("\n"), "");
        match self.struct_fields(&definition.ty) {
            Some(fields) => self.declare_struct(&name, &about, &fields),
            None => {
                let place = self.types.len();
                let ty = self.ty(&definition.ty, &name);
                // A list or a map may contain itself, which an alias must not.
                let equals = if ty.starts_with('[') || ty.starts_with("map") { "" } else { "= " };
                self.types.insert(place, format!("{about}type {name} {equals}{ty}\n"));
            }
        }
    }

    /// The fields of a type that is a structure; `None` for a map or any other type.
    fn struct_fields(&self, ty: &Type) -> Option<Vec<Field>> {
        self.definitions.fields(ty).filter(|fields| !fields.is_empty())
    }

    fn declare_struct(&mut self, name: &str, about: &str, fields: &[Field]) {
        let place = self.types.len();
        self.types.push(String::new());
        let mut members = Names::default();
        let mut text = format!("{about}type {name} struct {{\n");
        let mut rows: Vec<[String; 3]> = Vec::new();
        for field in fields {
            let is_tag = |c: char| c.is_alphanumeric() || "!#$%&()*+-./:;<=>?@[]^_{|}~ ".contains(c);
            if field.name.is_empty() || !field.name.chars().all(is_tag) {
                text.push_str(&aligned(&mut rows));
                text.push_str(&comment(&format!("The property {:?} has no field.", field.name), "\t"));
                continue;
            }
            let member = members.give(&pascal(&field.name));
            let ty = self.ty(&field.ty, &format!("{name}_{member}"));
            let (is_optional, is_nilable) = (!field.is_required, is_nilable(&ty) || self.is_nilable(&field.ty));
            let is_recursive = matches!(field.ty, Type::Reference(index) if self.definitions.contains_itself(index));
            let is_pointer = !is_nilable && (is_optional || is_recursive);
            let mut about = field.notes.clone();
            about.extend(self.choice(&field.ty));
            if !about.is_empty() {
                text.push_str(&aligned(&mut rows));
                text.push_str(&comment(&about.join("\n"), "\t"));
            }
            let omit = match (is_optional, &*field.name) {
                (true, _) => ",omitempty",
                // `-` alone would leave the field out.
                (false, "-") => ",",
                _ => "",
            };
            let star = if is_pointer { "*" } else { "" };
            rows.push([member, format!("{star}{ty}"), format!("`json:\"{}{omit}\"`", field.name)]);
        }
        text.push_str(&aligned(&mut rows));
        text.push_str("}\n");
        self.types[place] = text;
    }

    /// Which values are allowed, for a comment.
    fn choice(&self, ty: &Type) -> Option<String> {
        let literals = |parts: &[Type]| {
            let values = parts.iter().filter(|part| **part != Type::Null).map(|part| match part {
                Type::Literal(value) => Some(value.to_string()),
                _ => None,
            });
            values.collect::<Option<Vec<_>>>()
        };
        match ty {
            Type::Literal(value) => Some(format!("Must be {value}")),
            Type::Union(parts) => literals(parts).map(|values| format!("Must be one of {}", values.join(", "))),
            Type::Array(item) => self.choice(item),
            _ => None,
        }
    }

    /// Whether `nil` is a value of the type anyway.
    fn is_nilable(&self, ty: &Type) -> bool {
        match self.definitions.resolve(ty) {
            Type::Any | Type::Null | Type::Never | Type::Array(_) | Type::Tuple { .. } => true,
            ty @ Type::Object(_) => self.struct_fields(ty).is_none(),
            ty @ (Type::Union(_) | Type::Intersection(_)) => kind(ty).is_none() && self.struct_fields(ty).is_none(),
            _ => false,
        }
    }

    /// The type; declares structures under names that begin with `name`.
    fn ty(&mut self, ty: &Type, name: &str) -> String {
        if let Some(kind) = kind(ty) {
            return scalar(kind).to_owned();
        }
        match ty {
            Type::Reference(index) => self.named.get(*index).cloned().unwrap_or_default(),
            Type::Array(item) => format!("[]{}", self.ty(item, &format!("{name}Item"))),
            Type::Tuple { items, rest, .. } => {
                let all = || items.iter().chain(rest.as_deref());
                let kinds = all().next().and_then(kind).filter(|first| all().all(|item| kind(item) == Some(first)));
                format!("[]{}", kinds.map_or("any", scalar))
            }
            Type::Object(Object { fields, rest }) if fields.is_empty() => match rest.as_deref() {
                Some(rest) if *rest != Type::Never => format!("map[string]{}", self.ty(rest, &format!("{name}Value"))),
                _ => "map[string]any".to_owned(),
            },
            Type::Union(parts) if parts.contains(&Type::Null) => {
                let rest: Vec<_> = parts.iter().filter(|part| **part != Type::Null).cloned().collect();
                let rest = crate::schema_type::union(rest);
                let ty = self.ty(&rest, name);
                if is_nilable(&ty) || self.is_nilable(&rest) { ty } else { format!("*{ty}") }
            }
            Type::Object(_) | Type::Union(_) | Type::Intersection(_) => match self.struct_fields(ty) {
                Some(fields) => {
                    let name = self.names.give(name);
                    self.declare_struct(&name, "", &fields);
                    name
                }
                None => "any".to_owned(),
            },
            _ => "any".to_owned(),
        }
    }
}

fn is_nilable(ty: &str) -> bool {
    ty.starts_with(['*', '[']) || ty.starts_with("map[") || ty == "any"
}

fn scalar(kind: &str) -> &'static str {
    match kind {
        "boolean" => "bool",
        "integer" => "int64",
        "number" => "float64",
        "string" => "string",
        _ => "any",
    }
}

/// The rows as `gofmt` aligns them.
fn aligned(rows: &mut Vec<[String; 3]>) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (names, types) = (width(0), width(1));
    rows.drain(..).map(|[name, ty, tag]| format!("\t{name:names$} {ty:types$} {tag}\n")).collect()
}

fn comment(text: &str, indent: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    comment_lines(text).iter().map(|line| format!("{indent}// {line}").trim_end().to_owned() + "\n").collect()
}
