//! The JSON Schema of a dialect's files, for editors: draft-07, which they know best, as for mock scripts.
//!
//! It is made of the dialect's table, and rejects what the program rejects. What a program passes over is allowed.

mod agent;
mod place;
mod server;
mod value;

use serde_json::{Map, Value as Json, json};

use super::{Collection, Companion, Dialect, Field, Files, Key, Profiles, RootKeys};

impl Dialect {
    /// The schema of a file.
    pub fn schema(&self) -> Json {
        let servers = described(self.set("server"), format!("The MCP servers of {}.", self.program));
        let servers = match self.links_to_file {
            true => json!({ "anyOf": [servers, text(), {
                "type": "array", "items": { "anyOf": [text(), { "allOf": [{ "type": "object" }, servers] }] } }] }),
            false => servers,
        };
        let mut part = Map::new();
        for keys in self.roots {
            insert(&mut part, keys, servers.clone(), false);
        }
        if let Some(keys) = self.defaults {
            let of_all = |key: &&Key| matches!(key.field, Field::Timeout | Field::Debug);
            let properties: Map<_, _> =
                self.keys.iter().filter(of_all).map(|key| (key.name.to_owned(), self.value(key))).collect();
            let defaults = json!({ "type": "object", "properties": properties });
            insert(&mut part, keys, described(defaults, "What holds for every server that does not say it."), false);
        }
        for Companion { key, value, required } in self.companions {
            let value = json!({ "type": "string", "examples": [value] });
            insert(&mut part, &[key], value, *required);
        }
        let (RootKeys::Known(known) | RootKeys::Section(known)) = self.root_keys;
        for key in known {
            let of_agent = agent::setting(key).filter(|_| self.describes_agent);
            let any = || described(json!({}), format!("A setting of {}.", self.program));
            insert(&mut part, &[key], of_agent.unwrap_or_else(any), false);
        }
        for (key, keys) in self.global_enable_key.iter().flat_map(|key| self.roots.iter().map(move |keys| (*key, keys)))
        {
            let place: Vec<_> = keys.iter().rev().skip(1).rev().copied().chain([key]).collect();
            let enabled = json!({ "type": "boolean" });
            insert(&mut part, &place, described(enabled, "Whether the servers are used."), false);
        }
        for keys in self.name_lists.iter().flat_map(|lists| [lists.allowed, lists.excluded]) {
            let names = json!({ "type": "array", "items": text() });
            insert(&mut part, keys, described(names, "Names of servers."), false);
        }
        if let Some(Profiles { key, servers, .. }) = self.profiles {
            let of_profile = described(self.set("profileServer"), "The MCP servers of this profile.");
            let profile = json!({ "type": "object", "properties": { servers: of_profile } });
            insert(&mut part, &[key], json!({ "type": "array", "items": profile }), false);
        }
        match (self.strict_files, self.root_keys) {
            (Files::All, RootKeys::Known(_)) => drop(part.insert("additionalProperties".into(), false.into())),
            (Files::All, RootKeys::Section(_)) => {
                self.typos().for_each(|(key, not)| insert(&mut part, &[&key], not, false))
            }
            (Files::None | Files::These(_), _) => {}
        }
        let mut root = part.clone();
        for keys in self.sections {
            insert(&mut root, keys, Json::Object(part.clone()), false);
        }
        root.insert("allOf".into(), json!([self.placement()]));
        let mut definitions = json!({ "server": self.server(self.when_type_missing, self.rejects_unknown_keys) });
        if let Some(Profiles { when_type_missing, rejects_unknown_keys, .. }) = self.profiles {
            definitions["profileServer"] = self.server(when_type_missing, rejects_unknown_keys);
        }
        let mut schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": format!("MCP servers of {}", self.program),
            "description": format!("The file in which {} has its MCP servers.", self.program),
        });
        if let Json::Object(members) = &mut schema {
            members.extend(root);
            members.insert("definitions".into(), definitions);
        }
        schema
    }

    /// An object or array of servers, each as this definition says.
    fn set(&self, definition: &str) -> Json {
        match self.collection {
            Collection::Map => {
                let mut map = json!({ "type": "object", "additionalProperties": reference(definition) });
                if let Some(more) = self.name_characters {
                    map["propertyNames"] = json!({ "pattern": format!("^[A-Za-z0-9{}]*$", escaped(more)) });
                }
                map
            }
            Collection::List { elsewhere } => {
                let described = json!({ "allOf": [{ "required": ["name"] }, reference(definition)] });
                let items = match elsewhere {
                    Some(key) => json!({ "if": { "type": "object", "required": [key] }, "else": described }),
                    None => described,
                };
                json!({ "type": "array", "items": items })
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::by_name;
    use crate::{dialect::all, read::read};
    use rehearse_document::{Source, json};
    use rehearse_protocol::Transport;
    use rehearse_report::findings::Severity;

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
        for Companion { key, value, .. } in dialect.companions {
            file[*key] = (*value).into();
        }
        file
    }

    /// Servers as users write them, right for some programs and wrong for others.
    fn servers() -> Vec<Json> {
        let written = rehearse_testing::table::rows(include_str!("servers.txt"), "servers");
        let mut servers: Vec<Json> =
            written.iter().map(|[server]| serde_json::from_str(server).expect("JSON")).collect();
        for word in "stdio local http sse ws websocket streamable-http streamableHttp remote pigeon".split(' ') {
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
        for dialect in all() {
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
                let lacks_args = dialect.required_keys.contains(&"args") && is_started && !text.contains("args");
                assert_eq!(validator.is_valid(&file), is_right && !lacks_args, "{} {file} {findings:?}", dialect.name);
                *if is_right { &mut accepted } else { &mut rejected } += 1;
            }
        }
        assert!(accepted > 200 && rejected > 200, "{accepted} {rejected}");
    }

    #[test]
    fn servers_in_a_wrong_place_are_wrong_for_a_schema_where_they_are_for_the_reader() {
        let server = || json!({ "command": "x", "args": [], "type": "stdio" });
        let places = "mcpServers servers mcp_servers mcp-servers mcpServer MCPServers McpServers server \
             context_servers contextServers"
            .split(' ')
            .collect::<Vec<_>>();
        let mut files: Vec<_> = places.iter().map(|place| json!({ *place: { "s": server() } })).collect();
        files.extend(places.iter().map(|place| json!({ *place: {} })));
        files.extend(places.iter().map(|place| json!({ *place: "dark" })));
        files.extend([
            json!({}),
            json!([]),
            json!("x"),
            json!({ "s": server() }),
            json!({ "s": server(), "t": { "url": "https://a.example", "type": "http" } }),
            json!({ "s": server(), "theme": "dark" }),
            json!({ "mcp": { "servers": { "s": server() } } }),
            json!({ "settings": { "mcp": { "servers": { "s": server() } } } }),
            json!({ "models": [{ "ref": "a", "mcpServers": { "s": server() } }] }),
            json!({ "models": [{ "ref": "a" }] }),
            json!({ "mcpServers": ["./a.json"] }),
            json!({ "mcpServers": [{ "s": server() }, 7] }),
        ]);
        let (mut accepted, mut rejected) = (0, 0);
        for dialect in all() {
            let validator = validator(dialect);
            for mut file in files.clone() {
                if let Json::Object(members) = &mut file {
                    members.extend(dialect.companions.iter().map(|it| (it.key.to_owned(), it.value.into())));
                }
                let (text, mut findings) = (file.to_string(), Vec::new());
                let source = Source::new("t", text.as_str());
                let root = json::parse(&source).expect("JSON").root;
                read(&root, dialect, &source, &mut findings);
                let is_right = findings.iter().all(|finding| finding.code.severity() != Severity::Error);
                let codes: Vec<_> = findings.iter().map(|finding| finding.code.name).collect();
                assert_eq!(validator.is_valid(&file), is_right, "{} {file} {codes:?}", dialect.name);
                *if is_right { &mut accepted } else { &mut rejected } += 1;
            }
        }
        assert!(accepted > 100 && rejected > 200, "{accepted} {rejected}");
    }

    #[test]
    fn every_schema_is_valid_and_every_key_of_a_server_has_a_description() {
        for dialect in all() {
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
    fn the_schema_of_cpe_has_the_fields_of_a_subagent() {
        let validator = validator(by_name("cpe").expect("cpe"));
        let file = |subagent: Json| json!({ "mcpServers": {}, "subagent": subagent });
        assert!(validator.is_valid(&file(json!({ "name": "a", "description": "b", "outputSchemaPath": "c.json" }))));
        for wrong in
            [json!({ "name": "a" }), json!({ "description": "b" }), json!({ "name": 1, "description": "b" }), json!([])]
        {
            assert!(!validator.is_valid(&file(wrong.clone())), "{wrong}");
        }
    }

    #[test]
    fn names_and_units_are_those_of_the_program() {
        let cpe = by_name("cpe").expect("known");
        for (tools, is_right) in [
            (json!({ "enabledTools": ["a"] }), true),
            (json!({ "enabledTools": ["a"], "disabledTools": ["b"] }), false),
            (json!({ "enabledTools": [] }), false),
        ] {
            let mut server = json!({ "type": "stdio", "command": "x" });
            server.as_object_mut().zip(tools.as_object()).map(|(all, more)| all.extend(more.clone())).expect("objects");
            assert_eq!(validator(cpe).is_valid(&file(cpe, server)), is_right, "{tools}");
        }
        let copilot = validator(by_name("copilot").expect("known"));
        let named = |name: &str| copilot.is_valid(&json!({ "mcpServers": { name: { "command": "x" } } }));
        assert!(named("a-b_C1") && !named("a b") && !named("é"));
        let roo = by_name("roo").expect("known").schema();
        let unit = &roo["definitions"]["server"]["properties"]["timeout"]["description"];
        assert_eq!(unit, "How long to wait for a call, in seconds, from 1 to 3600.");
    }
}
