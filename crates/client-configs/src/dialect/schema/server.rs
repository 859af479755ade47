//! The schema of one server: what its transport needs, and what it must not have.

use serde_json::{Map, Value as Json, json};

use super::any_of;
use crate::{
    dialect::{AppliesTo, CommandAndUrl, Dialect, Field, Key, MissingType},
    policy::BothFilters,
};
use rehearse_protocol::Transport;

impl Dialect {
    /// The schema of a server. The arguments are its schema without a transport key, and whether other keys are
    /// forbidden.
    pub(super) fn server(&self, without_type: MissingType, strict: bool) -> Json {
        let has = |wanted: fn(&Field) -> bool| any_of(self.places(self.keys, &wanted, &|_| json!({})));
        let command = has(|field| matches!(field, Field::Command | Field::CommandLine));
        let url = has(|field| matches!(field, Field::Url(_)));
        let typed = has(|field| *field == Field::Transport);
        let of_words = |is_process: bool| {
            let words: Vec<_> = self.words_for(is_process);
            let wanted: fn(&Field) -> bool = |field| *field == Field::Transport;
            any_of(self.places(self.keys, &wanted, &|_| json!({ "enum": words })))
        };
        let known = if self.ignores_unknown_transport {
            json!({ "anyOf": [of_words(true), of_words(false)] })
        } else {
            typed.clone()
        };
        let untyped = json!({ "not": known });
        let (started, connected) = match self.when_both_given {
            CommandAndUrl::Remote => (json!({ "allOf": [command, { "not": url }] }), url.clone()),
            CommandAndUrl::Process | CommandAndUrl::Rejected => {
                (command.clone(), json!({ "allOf": [url, { "not": command }] }))
            }
        };
        let process = json!({ "anyOf": [of_words(true), { "allOf": [untyped, started] }] });
        let remote = json!({ "anyOf": [of_words(false), { "allOf": [untyped, connected] }] });
        let mut rules = vec![
            json!({ "if": process, "then": self.needs(true, &command) }),
            json!({ "if": remote, "then": self.needs(false, &url) }),
        ];
        // A server that is only switched on or off, or is described elsewhere.
        let keys: Vec<_> = self.keys.iter().map(|key| json!({ "required": [key.name] })).collect();
        let elsewhere = json!({ "anyOf": keys, "not": { "anyOf": [command, url, typed] } });
        rules.push(match without_type {
            MissingType::Rejected if self.allows_partial_server => json!({ "anyOf": [typed, elsewhere] }),
            MissingType::Inferred(_) if self.allows_partial_server => {
                json!({ "if": untyped, "then": { "anyOf": [command, url, elsewhere] } })
            }
            MissingType::Rejected => typed,
            MissingType::Process => json!({ "if": untyped, "then": command }),
            MissingType::Inferred(_) => json!({ "if": untyped, "then": { "anyOf": [command, url] } }),
        });
        for (word, wanted) in self.url_keys {
            let kind = |key: &&Key| key.field == Field::Transport;
            let words = self.keys.iter().filter(kind).map(|key| (key.name.to_owned(), json!({ "const": word })));
            let words: Map<_, _> = words.collect();
            let names: Vec<_> = words.keys().collect();
            let others = self.keys.iter().filter(|key| matches!(key.field, Field::Url(_)) && key.name != *wanted);
            let others: Map<_, _> = others.map(|key| (key.name.to_owned(), false.into())).collect();
            let named = json!({ "required": names, "properties": words });
            rules.push(json!({ "if": named, "then": { "properties": others } }));
        }
        if self.when_both_given == CommandAndUrl::Rejected {
            rules.push(json!({ "not": { "allOf": [command, url] } }));
        }
        if self.policy.both_filters == BothFilters::Rejected {
            let wanted = |wanted: Field| self.keys.iter().find(|key| key.field == wanted).map(|key| key.name);
            if let (Some(include), Some(exclude)) = (wanted(Field::Include), wanted(Field::Exclude)) {
                rules.push(json!({ "not": { "required": [include, exclude] } }));
            }
        }
        let mut server = self.object(self.keys);
        server["description"] = "How to reach one server, and what to make of it.".into();
        server["allOf"] = rules.into();
        if strict {
            server["additionalProperties"] = false.into();
        }
        server
    }

    /// The required and forbidden keys of a server, for a process or for a connection.
    fn needs(&self, is_process: bool, how: &Json) -> Json {
        let mut needs = vec![how.clone()];
        let forbidden = self.keys.iter().filter(|key| match key.applies_to {
            AppliesTo::Process => self.rejects_misplaced_keys && !is_process,
            AppliesTo::Remote => self.rejects_misplaced_keys && is_process,
            AppliesTo::All => false,
        });
        let absent = if self.empty_is_absent { json!({ "enum": ["", []] }) } else { false.into() };
        let forbidden: Map<_, _> = forbidden.map(|key| (key.name.to_owned(), absent.clone())).collect();
        if !forbidden.is_empty() {
            needs.push(json!({ "properties": forbidden }));
        }
        if is_process && self.required_keys.contains(&"args") {
            needs.push(json!({ "required": ["args"] }));
        }
        json!({ "allOf": needs })
    }

    /// For each key of that kind, the schema of a server that has it with such a value.
    fn places(&self, keys: &[Key], wanted: &impl Fn(&Field) -> bool, value: &impl Fn(&Key) -> Json) -> Vec<Json> {
        let with = |key: &Key, schema: Json| {
            let properties: Map<_, _> = std::iter::once((key.name.to_owned(), schema)).collect();
            json!({ "required": [key.name], "properties": properties })
        };
        let mut places = Vec::new();
        for key in keys {
            match key.field {
                Field::Object(keys) => {
                    places.extend(self.places(keys, wanted, value).into_iter().map(|inner| with(key, inner)));
                }
                field if wanted(&field) => places.push(with(key, value(key))),
                _ => {}
            }
        }
        places
    }

    fn words_for(&self, is_process: bool) -> Vec<&'static str> {
        // A program that ignores unknown transports only looks for a command or a URL.
        let counts = |transport: Transport| !(self.ignores_unknown_transport && transport == Transport::Sse);
        let fits = |transport: Transport| (transport == Transport::Stdio) == is_process && counts(transport);
        let mut words: Vec<_> =
            self.transports.iter().filter(|(_, transport)| fits(*transport)).map(|(word, _)| *word).collect();
        words.dedup();
        words
    }

    pub(super) fn object(&self, keys: &[Key]) -> Json {
        let mut properties = Map::new();
        for key in keys {
            let value = self.value(key);
            let value = match properties.remove(key.name) {
                // A key that may be a value or an object.
                Some(other) => json!({ "description": other["description"], "anyOf": [other, value] }),
                None => value,
            };
            properties.insert(key.name.to_owned(), value);
        }
        json!({ "type": "object", "properties": properties })
    }
}
