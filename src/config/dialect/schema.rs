//! The JSON Schema of a dialect's files, for editors: draft-07, which they know best, as for mock scripts.
//!
//! It is made of the dialect's table, and rejects what the program rejects. What a program passes over is allowed.

use serde_json::{Map, Value as Json, json};

use super::{Beside, Both, Collection, Dialect, Field, Key, Of, Outside, RootKeys, Untyped};
use crate::{
    config::policy::{BothFilters, EmptyFilter, Patterns},
    transport::Transport,
};

impl Dialect {
    /// The schema of a file.
    pub fn schema(&self) -> Json {
        let servers = match self.collection {
            Collection::Map => {
                let mut map = json!({ "type": "object", "additionalProperties": reference("server") });
                if let Some(more) = self.name_characters {
                    map["propertyNames"] = json!({ "pattern": format!("^[A-Za-z0-9{}]*$", escaped(more)) });
                }
                map
            }
            Collection::List { elsewhere } => {
                let described = json!({ "allOf": [{ "required": ["name"] }, reference("server")] });
                let items = match elsewhere {
                    Some(key) => json!({ "if": { "type": "object", "required": [key] }, "else": described }),
                    None => described,
                };
                json!({ "type": "array", "items": items })
            }
        };
        let servers = described(servers, format!("The MCP servers of {}.", self.program));
        let mut root = Map::new();
        for (place, keys) in self.roots.iter().enumerate() {
            // A file of nothing but servers has no such key.
            insert(
                &mut root,
                keys,
                servers.clone(),
                place == 0
                    && self.roots.len() == 1
                    && self.bare.is_none()
                    && !matches!(self.root_keys, RootKeys::Section(_)),
            );
        }
        if let Some(keys) = self.defaults {
            let of_all = |key: &&Key| matches!(key.field, Field::Timeout | Field::Debug);
            let properties: Map<_, _> =
                self.keys.iter().filter(of_all).map(|key| (key.name.to_owned(), self.value(key))).collect();
            let defaults = json!({ "type": "object", "properties": properties });
            insert(&mut root, keys, described(defaults, "What holds for every server that does not say it."), false);
        }
        for Beside { key, value, required } in self.beside {
            let value = json!({ "type": "string", "examples": [value] });
            insert(&mut root, &[key], value, *required);
        }
        let (RootKeys::Known(known) | RootKeys::Section(known) | RootKeys::Only(known)) = self.root_keys;
        for key in known {
            insert(&mut root, &[key], described(json!({}), format!("A setting of {}.", self.program)), false);
        }
        if let RootKeys::Only(_) = self.root_keys {
            root.insert("additionalProperties".into(), false.into());
        }
        let mut schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": format!("MCP servers of {}", self.program),
            "description": format!("The file in which {} has its MCP servers.", self.program),
        });
        if let Json::Object(members) = &mut schema {
            members.extend(root);
            members.insert("definitions".into(), json!({ "server": self.server() }));
        }
        schema
    }

    fn server(&self) -> Json {
        let has = |wanted: fn(&Field) -> bool| any_of(self.places(self.keys, &wanted, &|_| json!({})));
        let command = has(|field| matches!(field, Field::Command | Field::CommandLine));
        let url = has(|field| matches!(field, Field::Url(_)));
        let typed = has(|field| *field == Field::Transport);
        let of_words = |is_process: bool| {
            let words: Vec<_> = self.words(is_process);
            let wanted: fn(&Field) -> bool = |field| *field == Field::Transport;
            any_of(self.places(self.keys, &wanted, &|_| json!({ "enum": words })))
        };
        let known = if self.guesses { json!({ "anyOf": [of_words(true), of_words(false)] }) } else { typed.clone() };
        let untyped = json!({ "not": known });
        let (started, dialled) = match self.both {
            Both::Dialled => (json!({ "allOf": [command, { "not": url }] }), url.clone()),
            Both::Started | Both::Rejected => (command.clone(), json!({ "allOf": [url, { "not": command }] })),
        };
        let process = json!({ "anyOf": [of_words(true), { "allOf": [untyped, started] }] });
        let remote = json!({ "anyOf": [of_words(false), { "allOf": [untyped, dialled] }] });
        let mut rules = vec![
            json!({ "if": process, "then": self.needs(true, &command) }),
            json!({ "if": remote, "then": self.needs(false, &url) }),
        ];
        // A server that is only switched on or off, or is described elsewhere.
        let keys: Vec<_> = self.keys.iter().map(|key| json!({ "required": [key.name] })).collect();
        let elsewhere = json!({ "anyOf": keys, "not": { "anyOf": [command, url, typed] } });
        rules.push(match self.untyped {
            Untyped::Rejected if self.partial => json!({ "anyOf": [typed, elsewhere] }),
            Untyped::Inferred(_) if self.partial => {
                json!({ "if": untyped, "then": { "anyOf": [command, url, elsewhere] } })
            }
            Untyped::Rejected => typed,
            Untyped::Process => json!({ "if": untyped, "then": command }),
            Untyped::Inferred(_) => json!({ "if": untyped, "then": { "anyOf": [command, url] } }),
        });
        if self.both == Both::Rejected {
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
        server
    }

    /// What a server that is started, or one that is dialled, must and must not have.
    fn needs(&self, is_process: bool, how: &Json) -> Json {
        let mut needs = vec![how.clone()];
        let forbidden = self.keys.iter().filter(|key| match key.of {
            Of::Process { strict } => strict && !is_process,
            Of::Remote { strict } => strict && is_process,
            Of::All => false,
        });
        let forbidden: Map<_, _> = forbidden.map(|key| (key.name.to_owned(), false.into())).collect();
        if !forbidden.is_empty() {
            needs.push(json!({ "properties": forbidden }));
        }
        if is_process && self.required.contains(&"args") {
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

    fn words(&self, is_process: bool) -> Vec<&'static str> {
        // Whoever guesses looks at nothing but what is to be started and what is not.
        let counts = |transport: Transport| !(self.guesses && transport == Transport::Sse);
        let fits = |transport: Transport| (transport == Transport::Stdio) == is_process && counts(transport);
        self.transports.iter().filter(|(_, transport)| fits(*transport)).map(|(word, _)| *word).collect()
    }

    fn object(&self, keys: &[Key]) -> Json {
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

    /// The value of a key, with a description that editors show.
    fn value(&self, key: &Key) -> Json {
        let list = || json!({ "type": "array", "items": text() });
        let pairs = |values: Json| json!({ "type": "object", "additionalProperties": values });
        let loose = match self.loose_values {
            true => json!({ "type": ["string", "number", "null"] }),
            false => text(),
        };
        let tools = || match self.policy.empty_filter {
            EmptyFilter::Rejected => json!({ "type": "array", "items": text(), "minItems": 1 }),
            EmptyFilter::Literal => list(),
        };
        let schema = match key.field {
            Field::Transport => {
                let words = json!({ "enum": self.transports.iter().map(|(word, _)| *word).collect::<Vec<_>>() });
                // Editors still offer the words.
                if self.guesses { json!({ "anyOf": [words, text()] }) } else { words }
            }
            Field::Name
            | Field::Command
            | Field::EnvFile
            | Field::Cwd
            | Field::Url(_)
            | Field::AuthKind
            | Field::Bearer
            | Field::ClientId
            | Field::ClientSecret
            | Field::MetadataUrl => text(),
            Field::CommandLine => json!({ "type": "array", "items": text(), "minItems": 1 }),
            Field::Args | Field::AlwaysAllow => list(),
            Field::Env | Field::Headers => pairs(loose),
            // Anything but a number is the default.
            Field::Timeout if self.timeout.is_some_and(|rule| rule.outside == Outside::Clamped) => json!({}),
            Field::Timeout | Field::CallTimeout if self.coerces => or_text(self.number(), "^[0-9.]+$|\\$"),
            Field::Timeout | Field::CallTimeout => self.number(),
            Field::Include | Field::Exclude => tools(),
            Field::Trust | Field::Debug if self.coerces => {
                or_text(json!({ "type": "boolean" }), "^([Tt]rue|[Ff]alse|.*\\$.*)$")
            }
            Field::Enabled => json!({ "type": "boolean", "default": true }),
            Field::Disabled | Field::Trust | Field::Debug => json!({ "type": "boolean", "default": false }),
            Field::Scopes | Field::ScopeText => json!({ "anyOf": [text(), list()] }),
            Field::CallbackPort => json!({ "type": "integer", "minimum": 0, "maximum": u16::MAX }),
            Field::Object(keys) => self.object(keys),
            Field::Own => json!({}),
        };
        described(schema, self.describe(key))
    }

    /// A timeout. What the program takes otherwise or ignores is told by the description.
    fn number(&self) -> Json {
        let mut number = json!({ "type": "number" });
        if let Some(rule) = &self.timeout {
            number["minimum"] = rule.least.into();
            if rule.most != u64::MAX {
                number["maximum"] = rule.most.into();
            }
        }
        number
    }

    fn describe(&self, key: &Key) -> String {
        let program = self.program;
        let unit = match &self.timeout {
            Some(rule) if rule.unit == 1000 => "seconds",
            _ => "milliseconds",
        };
        let range = match &self.timeout {
            Some(rule) if rule.most != u64::MAX => format!(", from {} to {}", rule.least, rule.most),
            Some(rule) if rule.least > 0 => format!(", at least {}", rule.least),
            _ => String::new(),
        };
        let patterns = match self.policy.patterns {
            Patterns::Exact => "",
            Patterns::Globs => " `*` stands for any characters.",
            Patterns::Star => " `*` alone stands for all.",
        };
        let what = match key.field {
            Field::Name => "The name of the server.".into(),
            Field::Transport => match self.untyped {
                Untyped::Rejected => "How the server is reached.".into(),
                Untyped::Process => "How the server is reached. Without it, the server is started.".into(),
                Untyped::Inferred(transport) => {
                    format!("How the server is reached. Without it, a command is started, and a URL is {transport}.")
                }
            },
            Field::Command => "The program that is the server.".into(),
            Field::CommandLine => "The program that is the server, and its arguments.".into(),
            Field::Args => "The arguments of the program, one text each.".into(),
            Field::Env => "Environment variables of the program.".into(),
            Field::EnvFile => "A file with environment variables.".into(),
            Field::Cwd => "The folder in which the program runs.".into(),
            Field::Url(Some(transport)) => format!("The URL of a server that speaks {transport}."),
            Field::Url(None) => "The URL of the server.".into(),
            Field::Headers => "Headers of every request.".into(),
            Field::Timeout => format!("How long to wait for the server, in {unit}{range}."),
            Field::CallTimeout => format!("How long to wait for a call, in {unit}{range}."),
            Field::Include => format!("The tools that there are; no others.{patterns}"),
            Field::Exclude => format!("Tools that there are not.{patterns}"),
            Field::Enabled => "Whether the server is used.".into(),
            Field::Disabled => "Whether the server is left alone.".into(),
            Field::Trust => "Whether every call goes ahead without asking.".into(),
            Field::AlwaysAllow => "The tools that are called without asking.".into(),
            Field::Debug => "Whether more is logged.".into(),
            Field::AuthKind => "What the token is for: `bearer` or `api_key`.".into(),
            Field::Bearer => "The token for `Authorization: Bearer`.".into(),
            Field::ClientId => "The OAuth client's id.".into(),
            Field::ClientSecret => "The OAuth client's secret.".into(),
            Field::Scopes => "The OAuth scopes to ask for.".into(),
            Field::ScopeText => "The OAuth scopes to ask for, in one text with blanks between them.".into(),
            Field::CallbackPort => "The local port to which OAuth returns.".into(),
            Field::MetadataUrl => "Where the metadata of the authorization server are.".into(),
            Field::Object(_) | Field::Own => format!("A setting of {program}."),
        };
        match key.of {
            Of::All => what,
            Of::Process { .. } => format!("{what} For servers that are started."),
            Of::Remote { .. } => format!("{what} For servers at a URL."),
        }
    }
}

fn text() -> Json {
    json!({ "type": "string" })
}

fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/definitions/{name}") })
}

fn described(mut schema: Json, description: impl Into<String>) -> Json {
    schema["description"] = description.into().into();
    schema
}

/// What fits one of these; nothing if there are none.
fn any_of(mut schemas: Vec<Json>) -> Json {
    match schemas.len() {
        0 => false.into(),
        1 => schemas.remove(0),
        _ => json!({ "anyOf": schemas }),
    }
}

/// Characters for a class of a regular expression.
fn escaped(characters: &str) -> String {
    characters.chars().flat_map(|character| ['\\', character]).collect()
}

/// Adds a schema under keys from the root on.
fn insert(object: &mut Map<String, Json>, keys: &[&str], schema: Json, is_required: bool) {
    let Some((first, rest)) = keys.split_first() else { return };
    object.entry("type").or_insert_with(|| "object".into());
    if is_required && let Some(required) = object.entry("required").or_insert_with(|| json!([])).as_array_mut() {
        required.push((*first).into());
    }
    let Some(properties) = object.entry("properties").or_insert_with(|| json!({})).as_object_mut() else { return };
    if rest.is_empty() {
        properties.insert((*first).to_owned(), schema);
    } else if let Some(inner) = properties.entry(*first).or_insert_with(|| json!({})).as_object_mut() {
        insert(inner, rest, schema, is_required);
    }
}

/// A value that may be written as a text of this form too.
fn or_text(value: Json, pattern: &str) -> Json {
    json!({ "anyOf": [value, { "type": "string", "pattern": pattern }] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Source, dialect::ALL, finding::Severity, json, read};

    fn validator(dialect: &Dialect) -> jsonschema::Validator {
        jsonschema::draft7::new(&dialect.schema()).unwrap_or_else(|error| panic!("{}: {error}", dialect.name))
    }

    /// A file with one server.
    fn file(dialect: &Dialect, mut server: Json) -> Json {
        let servers = match dialect.collection {
            Collection::Map => json!({ "s": server }),
            Collection::List { .. } => {
                if let Json::Object(server) = &mut server {
                    server.insert("name".into(), "s".into());
                }
                json!([server])
            }
        };
        let mut file = dialect.roots[0].iter().rev().fold(servers, |inner, key| json!({ *key: inner }));
        for Beside { key, value, .. } in dialect.beside {
            file[*key] = (*value).into();
        }
        file
    }

    /// Servers as somebody might write them, right for some programs and wrong for others.
    fn servers() -> Vec<Json> {
        let mut servers = vec![
            json!({}),
            json!(7),
            json!({ "command": "x", "args": [] }),
            json!({ "command": "x", "args": ["-y"], "env": { "A": "b" } }),
            json!({ "command": ["x", "y"] }),
            json!({ "command": "x", "args": "-y y" }),
            json!({ "command": "x", "args": [], "env": { "PORT": 80 } }),
            json!({ "command": "x", "args": [], "env": { "GONE": null } }),
            json!({ "command": "x", "args": [], "url": "https://a.example" }),
            json!({ "command": "x", "args": [], "cwd": "/w", "timeout": 2000, "nobody": "knows" }),
            json!({ "command": "x", "args": [], "disabled": "true", "enabled": "true" }),
            json!({ "command": "x", "args": [], "includeTools": ["a"], "tools": ["a"], "enabledTools": ["a"] }),
            json!({ "command": "x", "args": [], "timeout": "30" }),
            json!({ "command": "x", "args": [], "headers": {} }),
            json!({ "url": "https://a.example", "headers": { "A": "b" } }),
            json!({ "httpUrl": "https://a.example" }),
            json!({ "serverUrl": "https://a.example" }),
            json!({ "url": 7 }),
            json!({ "connection": { "command": "x" } }),
            json!({ "transport": { "type": "sse", "url": "https://a.example" } }),
            json!({ "transport": "sse", "connection": { "url": "https://a.example" } }),
        ];
        for word in [
            "stdio",
            "local",
            "http",
            "sse",
            "ws",
            "websocket",
            "streamable-http",
            "streamableHttp",
            "remote",
            "pigeon",
        ] {
            servers.push(json!({ "type": word }));
            servers.push(json!({ "type": word, "command": "x", "args": [] }));
            servers.push(json!({ "type": word, "command": ["x"] }));
            servers.push(json!({ "type": word, "url": "https://a.example" }));
            servers.push(json!({ "type": word, "url": "https://a.example", "env": {}, "headers": {} }));
        }
        servers
    }

    #[test]
    fn a_schema_rejects_what_its_program_rejects_and_nothing_else() {
        let (mut accepted, mut rejected) = (0, 0);
        for dialect in ALL {
            let validator = validator(dialect);
            for server in servers() {
                let file = file(dialect, server);
                let (text, mut findings) = (file.to_string(), Vec::new());
                let source = Source::new("t", text.as_str());
                let root = json::parse(&source).expect("JSON").root;
                let servers = read(&root, dialect, &source, &mut findings).servers;
                let is_right = findings.iter().all(|finding| finding.code.severity() != Severity::Error);
                // The reader says nothing of arguments that a program requires.
                let is_started = servers.iter().any(|server| server.transport.value == Transport::Stdio);
                let lacks_args = dialect.required.contains(&"args") && is_started && !text.contains("args");
                assert_eq!(validator.is_valid(&file), is_right && !lacks_args, "{} {file} {findings:?}", dialect.name);
                *if is_right { &mut accepted } else { &mut rejected } += 1;
            }
        }
        assert!(accepted > 200 && rejected > 200, "{accepted} {rejected}");
    }

    #[test]
    fn every_schema_is_valid_and_every_key_of_a_server_has_a_description() {
        for dialect in ALL {
            let schema = dialect.schema();
            assert!(jsonschema::draft7::meta::is_valid(&schema), "{}", dialect.name);
            for key in dialect.keys {
                let described = &schema["definitions"]["server"]["properties"][key.name]["description"];
                assert!(described.as_str().is_some_and(|text| text.ends_with('.')), "{} {}", dialect.name, key.name);
            }
            let no_servers = json!({ dialect.roots[0][0]: 7 });
            assert!(!validator(dialect).is_valid(&no_servers), "{}", dialect.name);
        }
    }

    #[test]
    fn timeouts_names_and_lists_of_tools_are_those_of_the_program() {
        let accepts = |dialect: &str, server: Json| {
            let dialect = super::super::named(dialect).expect(dialect);
            validator(dialect).is_valid(&file(dialect, server))
        };
        assert!(accepts("roo", json!({ "command": "x", "timeout": 3600 })));
        assert!(!accepts("roo", json!({ "command": "x", "timeout": 3601 })));
        let cpe = |more: Json| {
            let mut server = json!({ "type": "stdio", "command": "x" });
            for (key, value) in more.as_object().into_iter().flatten() {
                server[key] = value.clone();
            }
            accepts("cpe", server)
        };
        assert!(cpe(json!({ "enabledTools": ["a"] })) && cpe(json!({ "disabledTools": ["a"] })));
        assert!(!cpe(json!({ "enabledTools": ["a"], "disabledTools": ["b"] })) && !cpe(json!({ "enabledTools": [] })));
        let copilot = validator(super::super::named("copilot").expect("known"));
        let named = |name: &str| copilot.is_valid(&json!({ "mcpServers": { name: { "command": "x" } } }));
        assert!(named("a-b_C1") && !named("a b") && !named("é"));
        let unit = super::super::named("roo").expect("known").schema()["definitions"]["server"]["properties"]["timeout"]
            ["description"]
            .clone();
        assert_eq!(unit, "How long to wait for a call, in seconds, from 1 to 3600.");
    }
}
