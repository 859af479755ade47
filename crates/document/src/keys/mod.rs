//! The keys of a file format as a table, from which its reader and its JSON Schema are made.
//!
//! ```text
//! object server `server`                        an object, and what messages call it
//!   name! text  The server's name.  "weather"   a key with its type, a sentence, and examples in JSON
//!   ...common                                   the keys of another object, which is above, and more of its schema
//!   ...answer tool ?                            the same, with `tool` for each `$` in their types, and `?` for `*`
//!   + {"minProperties": 1}                      more of its schema
//! type path {"type": "string"}                  a type
//! ```
//!
//! A key ends with `!` if the object needs it. It needs exactly one of the keys that end with `*`, and has at most one of those
//! that end with `?`. Columns are two spaces apart. The types are in `types.rs`, those of all formats in `common.txt`.

mod types;

use std::collections::{BTreeMap, btree_map};

use serde_json::{Map, Value as Json, json};

use super::{Entry, Fields, Node, Problems};
use rehearse_protocol::{Transport, Version};

/// The keys of all objects of a format.
#[derive(Debug)]
pub struct KeyTable {
    objects: Vec<KeyObject>,
    /// The types by their names.
    types: Vec<(String, String)>,
    /// The lines that are none of a table.
    unread: Vec<String>,
}

/// One object of a format.
#[derive(Debug)]
struct KeyObject {
    name: String,
    what: String,
    keys: Vec<Key>,
    more: Vec<Json>,
}

#[derive(Clone, Debug)]
struct Key {
    name: String,
    presence: Presence,
    value: String,
    sentence: String,
    examples: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Optional,
    Required,
    ExactlyOne,
    AtMostOne,
}

impl KeyTable {
    /// Reads a table of ours. What is no line of a table is left out; [`KeyTable::unread`] has it.
    pub fn parse(text: &str) -> KeyTable {
        let mut table = KeyTable { objects: Vec::new(), types: Vec::new(), unread: Vec::new() };
        let words = |name: &str, words: Vec<&str>| format!("type {name} {}\n", json!({ "enum": words }));
        let versions = words("version", Version::ALL.map(Version::as_str).to_vec());
        let transports = words("transport", Transport::ALL.map(Transport::as_str).to_vec());
        let texts = [&versions, &transports, include_str!("common.txt"), text];
        for line in texts.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty()) {
            if table.read_line(line).is_none() {
                table.unread.push(line.to_owned());
            }
        }
        table
    }

    /// The lines that could not be read.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        if let Some(line) = line.strip_prefix("  ") {
            return self.add(line);
        }
        let (kind, rest) = line.split_once(' ')?;
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, rest));
        match kind {
            "object" => {
                let (name, what) = (name.to_owned(), rest.to_owned());
                self.objects.push(KeyObject { name, what, keys: Vec::new(), more: Vec::new() });
            }
            "type" => self.types.push((name.to_owned(), rest.to_owned())),
            _ => return None,
        }
        Some(())
    }

    /// Adds a line to the last object.
    fn add(&mut self, line: &str) -> Option<()> {
        let (mut keys, mut more) = (Vec::new(), Vec::new());
        if let Some(part) = line.strip_prefix("...") {
            let mut words = part.split(' ');
            let (name, word, mark) = (words.next(), words.next().unwrap_or("$"), words.next());
            let part = self.objects.iter().find(|object| Some(&*object.name) == name)?;
            (keys, more) = (part.keys.clone(), part.more.clone());
            for key in &mut keys {
                key.value = key.value.replace('$', word);
                if mark == Some("?") && key.presence == Presence::ExactlyOne {
                    key.presence = Presence::AtMostOne;
                }
            }
        } else if let Some(schema) = line.strip_prefix("+ ") {
            more.push(serde_json::from_str::<Json>(schema).ok()?);
        } else {
            keys.push(Key::parse(line)?);
        }
        let object = self.objects.last_mut()?;
        object.more.extend(more);
        for key in keys {
            match object.keys.iter_mut().find(|known| known.name == key.name) {
                Some(known) => *known = key,
                None => object.keys.push(key),
            }
        }
        Some(())
    }

    fn object(&self, name: &str) -> Option<&KeyObject> {
        self.objects.iter().find(|object| object.name == name)
    }

    /// The keys of an object.
    pub fn keys(&self, object: &str) -> Vec<&str> {
        self.object(object).into_iter().flat_map(|object| &object.keys).map(|key| &*key.name).collect()
    }

    /// The keys of an object that exclude each other.
    pub fn choices(&self, object: &str) -> Vec<&str> {
        let keys = self.object(object).into_iter().flat_map(|object| &object.keys);
        keys.filter(|key| matches!(key.presence, Presence::ExactlyOne | Presence::AtMostOne))
            .map(|key| &*key.name)
            .collect()
    }

    /// The object at `node`.
    ///
    /// # Errors
    /// It is none, or has an unknown key.
    pub fn fields<'n>(&self, node: &'n Node, object: &str) -> Result<Fields<'n>, Problems> {
        self.fields_as(node, object, self.object(object).map_or(object, |object| &object.what))
    }

    /// Like [`KeyTable::fields`]; `what` names the object in messages.
    ///
    /// # Errors
    /// Like [`KeyTable::fields`].
    pub fn fields_as<'n>(&self, node: &'n Node, object: &str, what: &str) -> Result<Fields<'n>, Problems> {
        node.fields(what, &self.keys(object))
    }

    /// The entry of the object at `node` that is its choice.
    ///
    /// # Errors
    /// Like [`KeyTable::fields`]; or it has no choice, or two.
    pub fn choice<'n>(&self, node: &'n Node, object: &str) -> Result<&'n Entry, Problems> {
        self.fields(node, object)?.exactly_one(&self.choices(object))
    }

    /// The keys of an object as a table of a page in Markdown.
    pub fn to_markdown(&self, object: &str) -> String {
        let row = |key: &Key| {
            let examples = key.examples.as_array().into_iter().flatten();
            let examples: Vec<_> = examples.map(|example| format!("`{example}`")).collect();
            format!("| `{}` | {} | {} |\n", key.name, key.sentence, examples.join(", "))
        };
        let rows: String = self.object(object).into_iter().flat_map(|object| &object.keys).map(row).collect();
        format!("| key | meaning | example |\n| --- | --- | --- |\n{rows}")
    }

    /// The JSON Schema of a file that is an object of this name, with `about`: its dialect, title and description.
    pub fn schema(&self, root: &str, about: Json) -> Json {
        let place =
            if about["$schema"].as_str().is_some_and(|it| it.contains("draft-07")) { "definitions" } else { "$defs" };
        let mut schema = types::with(about, self.definition(root));
        let mut used = types::references(&schema);
        let mut definitions = BTreeMap::new();
        while let Some(name) = used.pop() {
            if let btree_map::Entry::Vacant(place) = definitions.entry(name) {
                let definition = self.definition(place.key());
                used.extend(types::references(&definition));
                place.insert(definition);
            }
        }
        schema[place] = json!(definitions);
        types::resolved(&schema, place)
    }

    fn definition(&self, name: &str) -> Json {
        match self.object(name) {
            Some(object) => object.schema(),
            None => self
                .types
                .iter()
                .find(|(known, _)| known == name)
                .map_or(json!(false), |(_, value)| types::schema(value)),
        }
    }
}

impl KeyObject {
    fn schema(&self) -> Json {
        let named = |presence| self.keys.iter().filter(move |key| key.presence == presence).map(|key| &*key.name);
        let properties: Map<_, _> = self.keys.iter().map(|key| (key.name.clone(), key.schema())).collect();
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        let required: Vec<_> = named(Presence::Required).collect();
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        let one: Vec<_> = named(Presence::ExactlyOne).map(|key| json!({ "required": [key] })).collect();
        if !one.is_empty() {
            schema["oneOf"] = one.into();
        }
        let some: Vec<_> = named(Presence::AtMostOne).collect();
        let pairs = some.iter().enumerate().flat_map(|(at, first)| some[at + 1..].iter().map(move |it| [first, it]));
        let pairs: Vec<_> = pairs.map(|pair| json!({ "required": pair })).collect();
        if !pairs.is_empty() {
            schema["not"] = json!({ "anyOf": pairs });
        }
        self.more.iter().cloned().fold(schema, types::with)
    }
}

impl Key {
    fn parse(line: &str) -> Option<Key> {
        let mut columns = line.splitn(3, "  ");
        let (name, value) = columns.next()?.split_once(' ')?;
        let presence = match name.chars().last() {
            Some('!') => Presence::Required,
            Some('*') => Presence::ExactlyOne,
            Some('?') => Presence::AtMostOne,
            _ => Presence::Optional,
        };
        let name = name.trim_end_matches(['!', '*', '?']).to_owned();
        let sentence = columns.next()?.to_owned();
        let examples = format!("[{}]", columns.next().unwrap_or_default());
        let examples = serde_json::from_str(&examples).ok()?;
        Some(Key { name, presence, value: value.to_owned(), sentence, examples })
    }

    /// The schema of its value, for editors with a description and examples. A reference has them too, although draft-07
    /// ignores them there.
    fn schema(&self) -> Json {
        let mut about = json!({ "description": self.sentence });
        if self.examples != json!([]) {
            about["examples"] = self.examples.clone();
        }
        types::with(types::schema(&self.value), about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, parse_yaml};

    const TABLE: &str = "
object plan a plan of $
  reply? $Reply  The answer.
  steps? [step]+  The steps.
object tool a tool
  name! text  Its name.  \"echo\"
  ...plan tool
  delay duration  How long to wait.  \"5s\", \"1m\"
object step a step
  wait* duration | 1..9 = 5  Waits.
  exit* \"now\" | \"later\"  Ends.
  + {\"minProperties\": 1}
type toolReply text | {any}
";

    #[test]
    fn the_reader_and_the_schema_have_the_keys_of_the_table() {
        let table = KeyTable::parse(TABLE);
        assert_eq!(table.unread(), [""; 0]);
        let wrong = ["keys a", "object b b", "  name", "  name text", "  name text  A name.  \"", "  ...c", "  + {"];
        assert_eq!(KeyTable::parse(&wrong.join("\n")).unread(), [&wrong[..1], &wrong[2..]].concat());
        assert_eq!(table.keys("tool"), ["name", "reply", "steps", "delay"]);
        assert_eq!(table.choices("step"), ["wait", "exit"]);
        let node = parse_yaml(&Source::new("a", "{ name: a, rply: b }")).expect("YAML");
        let problems = table.fields(&node, "tool").expect_err("an unknown key").in_source(&Source::new("a", ""));
        assert!(problems.to_string().contains("a tool has no key `rply` (did you mean `reply`?)"), "{problems}");

        let schema = table.schema("tool", json!({ "$schema": "https://json-schema.org/draft/2020-12/schema" }));
        let validator = crate::json_schema::compile(&schema).expect("a schema");
        for (value, is_valid) in [
            (json!({ "name": "a", "reply": "b", "delay": "5s" }), true),
            (json!({ "name": "a", "steps": [{ "wait": "1s" }, { "wait": 9 }, { "exit": "now" }] }), true),
            (json!({ "name": "a", "reply": { "b": 1 } }), true),
            (json!({ "reply": "b" }), false),
            (json!({ "name": "a", "other": 1 }), false),
            (json!({ "name": "a", "reply": "b", "steps": [{ "wait": 1 }] }), false),
            (json!({ "name": "a", "steps": [] }), false),
            (json!({ "name": "a", "steps": [{}] }), false),
            (json!({ "name": "a", "steps": [{ "wait": 10 }] }), false),
            (json!({ "name": "a", "steps": [{ "wait": 1, "exit": "now" }] }), false),
            (json!({ "name": "a", "steps": [{ "exit": "soon" }] }), false),
        ] {
            assert_eq!(validator.is_valid(&value), is_valid, "{value}");
        }
        assert_eq!(schema["properties"]["delay"]["examples"], json!(["5s", "1m"]));
        assert_eq!(schema["$defs"]["step"]["properties"]["wait"]["default"], 5);
        assert!(schema["$defs"].get("matcher").is_none(), "only what is used");
    }
}
