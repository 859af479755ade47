//! What a schema of a tool must be.

use std::{collections::BTreeSet, sync::LazyLock};

use serde_json::{Value as Json, json};

use crate::{keys::KEYS, text_limit::TextLimit};
use rehearse_document::{
    Node, Problems,
    json_schema::{Subschema, Validator, compile, first_mistake, subschemas},
    nearest,
};

/// The schema of schemas of draft-07.
static DRAFT_07: LazyLock<Option<Validator>> = LazyLock::new(|| {
    let draft = "http://json-schema.org/draft-07/schema#";
    compile(&json!({ "$schema": draft, "$ref": draft })).ok()
});

/// How many names are said.
const NAMED: usize = 4;
/// How deep a schema is measured.
const DEEPEST: usize = 200;

/// Which schemas a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    Root,
    Below,
    Anywhere,
}

/// Which `$ref`s are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum References {
    /// Those to another document.
    External,
    /// Those to a schema that surrounds them.
    Recursive,
    Any,
}

/// A version of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draft {
    Draft202012,
    Draft07,
}

/// What a schema must be, or must not have.
#[derive(Clone, Debug)]
pub(crate) enum SchemaLimit {
    /// Keywords that it must not have.
    Keywords(Vec<String>, Depth),
    /// Keywords that every schema must have, if it is of the type.
    Requires(Vec<String>, Depth, Option<String>),
    /// No list of types.
    TypeLists,
    /// No type `null`.
    NullType,
    /// The only formats.
    Formats(Vec<String>),
    MaxDepth(usize),
    /// The most properties in all objects together.
    MaxProperties(usize),
    /// The most values of all enums together.
    MaxEnumValues(usize),
    /// `additionalProperties: false` in each object.
    Closed,
    /// Each property of an object is required.
    AllRequired,
    /// No object without properties.
    NoProperties,
    /// The only types of values in an enum.
    EnumTypes(Vec<String>),
    RootType(String),
    /// What the names of properties in these schemas must be.
    PropertyName(TextLimit, Depth),
    /// No `true` or `false` as a schema; at the root, as that of a property.
    BooleanSchemas(Depth),
    /// Valid JSON Schema; only if `$schema` names another version, or only if it does not.
    Valid(Draft, Option<bool>),
    /// Lists of words; no enum has words of two.
    Apart(Vec<Vec<String>>),
    References(References),
    /// The only dialects of `$schema`.
    Dialects(Vec<String>),
}

impl SchemaLimit {
    /// # Errors
    /// A key is unknown, or none or several say what is limited.
    pub(crate) fn read(node: &Node) -> Result<SchemaLimit, Problems> {
        let fields = KEYS.fields(node, "schemaLimit")?;
        let entry = fields.exactly_one(&KEYS.choices("schemaLimit"))?;
        let value = &entry.node;
        let texts = || value.each(|it| Ok(it.str()?.to_owned()));
        let depth = fields.read("at", |node| {
            choice(node, &[("root", Depth::Root), ("below", Depth::Below), ("anywhere", Depth::Anywhere)])
        })?;
        let depth = depth.unwrap_or(Depth::Anywhere);
        let of_dialect = fields.read("ofDialect", |node| choice(node, &[("same", false), ("other", true)]))?;
        let of_type = fields.read("ofType", |node| Ok(node.str()?.to_owned()))?;
        Ok(match entry.key.as_str() {
            "keywords" => SchemaLimit::Keywords(texts()?, depth),
            "requires" => SchemaLimit::Requires(texts()?, depth, of_type),
            "formats" => SchemaLimit::Formats(texts()?),
            "maxDepth" => SchemaLimit::MaxDepth(value.integer()?),
            "maxProperties" => SchemaLimit::MaxProperties(value.integer()?),
            "maxEnumValues" => SchemaLimit::MaxEnumValues(value.integer()?),
            "enumTypes" => SchemaLimit::EnumTypes(texts()?),
            "rootType" => SchemaLimit::RootType(value.str()?.to_owned()),
            "propertyName" => SchemaLimit::PropertyName(TextLimit::read(value, "textLimit")?, depth),
            "references" => SchemaLimit::References(choice(
                value,
                &[("external", References::External), ("recursive", References::Recursive), ("any", References::Any)],
            )?),
            "dialects" => SchemaLimit::Dialects(texts()?),
            "valid" => {
                let drafts = [("2020-12", Draft::Draft202012), ("draft-07", Draft::Draft07)];
                SchemaLimit::Valid(choice(value, &drafts)?, of_dialect)
            }
            "apart" => SchemaLimit::Apart(value.each(|list| list.each(|it| Ok(it.str()?.to_owned())))?),
            _ if !value.bool()? => return Err(value.problem(format!("`{}` must be true", entry.key)).into()),
            "typeLists" => SchemaLimit::TypeLists,
            "nullType" => SchemaLimit::NullType,
            "closed" => SchemaLimit::Closed,
            "allRequired" => SchemaLimit::AllRequired,
            "noProperties" => SchemaLimit::NoProperties,
            _ => SchemaLimit::BooleanSchemas(depth),
        })
    }

    /// How a schema breaks it, as the end of a sentence that begins with its name.
    pub(crate) fn violation(&self, schema: &Json) -> Option<String> {
        match self {
            SchemaLimit::RootType(wanted) => {
                (schema["type"] != wanted.as_str()).then(|| format!("does not have the type {wanted} at its root"))
            }
            SchemaLimit::MaxDepth(max) => {
                let depth = depth(schema, 0);
                (depth > *max).then(|| format!("has {depth} levels, and {max} are allowed"))
            }
            SchemaLimit::MaxProperties(max) => {
                let count = count(schema, |it| it.get("properties")?.as_object().map(serde_json::Map::len));
                (count > *max).then(|| format!("has {count} properties, and {max} are allowed"))
            }
            SchemaLimit::MaxEnumValues(max) => {
                let count = count(schema, |it| it.get("enum")?.as_array().map(Vec::len));
                (count > *max).then(|| format!("has {count} values in its enums, and {max} are allowed"))
            }
            SchemaLimit::BooleanSchemas(Depth::Root) => {
                let mut properties = schema["properties"].as_object()?.iter();
                let (name, value) = properties.find(|(_, value)| value.is_boolean())?;
                Some(format!("has {value} as the schema of the property {name}"))
            }
            SchemaLimit::BooleanSchemas(_) => {
                has_boolean_schema(schema).then(|| "has true or false in place of a schema".to_owned())
            }
            SchemaLimit::Valid(draft, is_other) => {
                let names_other = schema["$schema"].as_str().is_some_and(|it| !it.contains(draft.as_str()));
                if is_other.is_some_and(|it| it != names_other) {
                    return None;
                }
                let mistake = draft.first_mistake(schema)?;
                Some(format!("is not valid JSON Schema {} at {mistake}", draft.as_str()))
            }
            SchemaLimit::References(References::Recursive) => {
                is_recursive(schema).then(|| "refers to itself".to_owned())
            }
            SchemaLimit::Dialects(known) => {
                let named = schema.get("$schema")?.as_str()?;
                (!known.iter().any(|it| named.contains(it.as_str()))).then(|| format!("names the dialect {named}"))
            }
            _ => {
                let mut found = BTreeSet::new();
                let mut is_root = true;
                subschemas(schema, &mut |it| {
                    self.add(&it, std::mem::take(&mut is_root), &mut found);
                });
                (!found.is_empty()).then(|| self.sentence(&found))
            }
        }
    }

    /// Adds what a schema within breaks: keywords, names or values.
    fn add(&self, Subschema { json, property, .. }: &Subschema<'_>, is_root: bool, found: &mut BTreeSet<String>) {
        let is_at = |depth: Depth| match depth {
            Depth::Root => is_root,
            Depth::Below => !is_root,
            Depth::Anywhere => true,
        };
        let place = || if property.is_empty() { "a schema".to_owned() } else { format!("`{property}`") };
        let is_of_type = |wanted: &str| match &json["type"] {
            Json::Array(types) => types.iter().any(|it| it == wanted),
            one => one == wanted,
        };
        let is_object = || is_of_type("object") || json.get("properties").is_some();
        match self {
            SchemaLimit::Keywords(keywords, depth) if is_at(*depth) => {
                found.extend(keywords.iter().filter(|it| json.get(it.as_str()).is_some()).cloned());
            }
            SchemaLimit::Requires(keywords, depth, of_type) if is_at(*depth) => {
                let is_meant = of_type.as_deref().is_none_or(is_of_type);
                let missing = keywords.iter().filter(|it| is_meant && json.get(it.as_str()).is_none());
                found.extend(
                    missing.map(|keyword| {
                        format!("{keyword} in {}", if is_root { "the root".to_owned() } else { place() })
                    }),
                );
            }
            SchemaLimit::TypeLists if json["type"].is_array() => drop(found.insert(place())),
            SchemaLimit::NullType if is_of_type("null") => drop(found.insert(place())),
            SchemaLimit::Formats(known) => {
                let format = json.get("format").and_then(Json::as_str);
                found.extend(format.filter(|it| !known.iter().any(|known| known == it)).map(ToOwned::to_owned));
            }
            SchemaLimit::Closed if is_object() && json.get("additionalProperties") != Some(&Json::Bool(false)) => {
                found.insert(if is_root { "the root".to_owned() } else { place() });
            }
            SchemaLimit::AllRequired => {
                let required = json.get("required").and_then(Json::as_array);
                let names =
                    json.get("properties").and_then(Json::as_object).into_iter().flat_map(serde_json::Map::keys);
                let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|it| it == name.as_str()));
                found.extend(names.filter(|name| !is_required(name)).map(|name| format!("`{name}`")));
            }
            SchemaLimit::NoProperties if is_of_type("object") => {
                let has_some = json.get("properties").and_then(Json::as_object).is_some_and(|it| !it.is_empty());
                if !has_some {
                    found.insert(if is_root { "the root".to_owned() } else { place() });
                }
            }
            SchemaLimit::EnumTypes(known) => {
                let values = json.get("enum").and_then(Json::as_array).into_iter().flatten();
                let types = values.map(type_of).filter(|it| !known.iter().any(|known| known == it));
                found.extend(types.map(ToOwned::to_owned));
            }
            SchemaLimit::Apart(lists) => {
                let values: Vec<_> =
                    json.get("enum").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
                let has = |list: &[String]| {
                    list.iter().find_map(|word| values.iter().find(|it| it.eq_ignore_ascii_case(word)))
                };
                let words: Vec<_> = lists.iter().filter_map(|list| has(list)).copied().collect();
                found.extend((words.len() > 1).then(|| format!("{} in {}", words.join(" and "), place())));
            }
            SchemaLimit::PropertyName(limit, depth) if is_at(*depth) => {
                let names =
                    json.get("properties").and_then(Json::as_object).into_iter().flat_map(serde_json::Map::keys);
                found.extend(names.filter_map(|name| Some(format!("`{name}` {}", limit.violation(Some(name))?))));
            }
            SchemaLimit::References(which) => {
                let target = json.get("$ref").and_then(Json::as_str);
                let is_refused = |it: &&str| *which == References::Any || !it.starts_with('#');
                found.extend(target.filter(is_refused).map(ToOwned::to_owned));
            }
            _ => {}
        }
    }

    fn sentence(&self, found: &BTreeSet<String>) -> String {
        let shown: Vec<_> = found.iter().take(NAMED).map(String::as_str).collect();
        let more = found.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let all = format!("{}{more}", shown.join(", "));
        match self {
            SchemaLimit::Keywords(_, Depth::Root) => format!("has {all} at its root"),
            SchemaLimit::Keywords(..) => format!("has {all}"),
            SchemaLimit::Requires(..) => format!("lacks {all}"),
            SchemaLimit::TypeLists => format!("has a list of types in {all}"),
            SchemaLimit::NullType => format!("has the type null in {all}"),
            SchemaLimit::Formats(_) => format!("has the format {all}"),
            SchemaLimit::Closed => format!("does not have additionalProperties: false in {all}"),
            SchemaLimit::AllRequired => format!("does not require {all}"),
            SchemaLimit::NoProperties => format!("has an object without properties: {all}"),
            SchemaLimit::EnumTypes(_) => format!("has an enum with values of type {all}"),
            SchemaLimit::Apart(_) => format!("takes both {all}"),
            SchemaLimit::PropertyName(..) => format!("has a property whose name is not accepted: {all}"),
            SchemaLimit::References(_) => format!("refers to {all}"),
            _ => all,
        }
    }
}

impl Draft {
    /// Where a schema is not valid in it, as a JSON pointer.
    fn first_mistake(self, schema: &Json) -> Option<String> {
        match self {
            Draft::Draft202012 => first_mistake(schema),
            Draft::Draft07 => {
                let error = DRAFT_07.as_ref()?.iter_errors(schema).next()?;
                Some(error.instance_path().to_string())
            }
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Draft::Draft202012 => "2020-12",
            Draft::Draft07 => "draft-07",
        }
    }
}

/// The value of a word.
fn choice<T: Clone>(node: &Node, choices: &[(&str, T)]) -> Result<T, Problems> {
    let text = node.str()?;
    if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(value.clone());
    }
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    let near = nearest(text, &names).map(|near| format!("did you mean {near}?"));
    let hint = near.unwrap_or_else(|| format!("write {}", names.join(", ")));
    Err(node.problem(format!("unknown word `{text}`")).hint(hint).into())
}

fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// How many levels of objects and arrays a schema describes; the root is the first.
fn depth(schema: &Json, above: usize) -> usize {
    if above >= DEEPEST {
        return above;
    }
    let properties = schema.get("properties").and_then(Json::as_object).into_iter().flat_map(|it| it.values());
    let items = schema.get("items").into_iter();
    let alternatives = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let below = properties.chain(items).filter(|it| it.get("properties").is_some() || it.get("items").is_some());
    let deeper = below.map(|it| depth(it, above + 1)).max();
    let beside = alternatives.map(|it| depth(it, above)).max();
    deeper.max(beside).unwrap_or(above + 1).max(above + 1)
}

fn count(schema: &Json, of: impl Fn(&Json) -> Option<usize>) -> usize {
    let mut count = 0;
    subschemas(schema, &mut |it| count += of(it.json).unwrap_or_default());
    count
}

/// Whether a property, an item or an alternative is no object. `additionalProperties` is often a boolean, and is not meant.
fn has_boolean_schema(schema: &Json) -> bool {
    let mut found = schema.is_boolean();
    subschemas(schema, &mut |it| {
        let named = it.json.get("properties").and_then(Json::as_object).into_iter().flat_map(|it| it.values());
        let items = it.json.get("items").into_iter();
        let lists = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| it.json.get(key)?.as_array()).flatten();
        found |= named.chain(items).chain(lists).any(Json::is_boolean);
    });
    found
}

/// Whether a `$ref` leads to a schema that surrounds it.
fn is_recursive(schema: &Json) -> bool {
    fn visit(root: &Json, schema: &Json, open: &mut Vec<String>) -> bool {
        if open.len() > DEEPEST {
            return true;
        }
        let mut targets = Vec::new();
        subschemas(schema, &mut |it| targets.extend(it.json.get("$ref").and_then(Json::as_str).map(ToOwned::to_owned)));
        targets.sort();
        targets.dedup();
        targets.into_iter().any(|target| {
            let Some(pointer) = target.strip_prefix('#') else { return false };
            if pointer.is_empty() || open.contains(&target) {
                return true;
            }
            let Some(found) = root.pointer(pointer) else { return false };
            open.push(target);
            let found = visit(root, found, open);
            open.pop();
            found
        })
    }
    // The definitions themselves are not the way into the schema.
    let mut shown = schema.clone();
    for key in ["$defs", "definitions"] {
        shown.as_object_mut().map(|members| members.shift_remove(key));
    }
    visit(schema, &shown, &mut Vec::new())
}
