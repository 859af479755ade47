//! Where the servers of a file must be, and where users put them by mistake.

use serde_json::{Value as Json, json};

use super::{any_of, reference};
use crate::dialect::{Dialect, NOTES, Profiles, RootKeys};

/// What people write for the place of servers. The linter compares distances; a schema needs a list.
const NEAR: &[&str] = &[
    "mcpServers",
    "mcpservers",
    "mcp_servers",
    "mcp-servers",
    "MCPServers",
    "McpServers",
    "MCP_SERVERS",
    "mcpServer",
    "mcp_server",
    "mcp-server",
    "servers",
    "Servers",
    "server",
    "context_servers",
    "context-servers",
    "contextServers",
    "context_server",
];

impl Dialect {
    /// Keys at the root of a file that users mistake for that of the servers, and what they must not have.
    pub(super) fn typos(&self) -> impl Iterator<Item = (String, Json)> {
        let own = |name: &str| self.roots.iter().any(|keys| keys[0] == name);
        let objects = json!({ "type": "object", "minProperties": 1, "additionalProperties": { "type": "object" } });
        NEAR.iter().filter(move |name| !own(name)).map(move |name| ((*name).to_owned(), json!({ "not": objects })))
    }

    /// What holds for the whole of a file.
    pub(super) fn placement(&self) -> Json {
        let sections =
            self.sections.iter().flat_map(|section| self.roots.iter().map(|keys| [*section, *keys].concat()));
        let mut places: Vec<_> = self.roots.iter().map(|keys| at(keys)).collect();
        places.extend(sections.map(|keys| at(&keys)));
        if let Some(Profiles { key, servers, .. }) = self.profiles {
            let some = json!({ "contains": { "type": "object", "required": [servers] } });
            places.push(json!({ "required": [key], "properties": { key: some } }));
        }
        let mut allowed = vec![any_of(places)];
        if self.may_be_empty {
            let (RootKeys::Known(known) | RootKeys::Section(known)) = self.root_keys;
            let names = [known, NOTES].concat();
            let beside = json!({ "anyOf": [{ "enum": names }, { "pattern": "^[_/#]" }] });
            allowed.push(json!({ "type": "object", "propertyNames": beside }));
        }
        if self.bare_map_note.is_some() {
            allowed.push(json!({ "allOf": [servers(), { "additionalProperties": reference("server") }] }));
        }
        if let RootKeys::Section(_) = self.root_keys {
            let own = |name: &str| self.roots.iter().any(|keys| keys[0] == name);
            let near = NEAR.iter().filter(|name| !own(name));
            let mut wrong: Vec<_> = near
                .map(|name| json!({ "required": [name], "properties": { *name: { "type": ["object", "array"] } } }))
                .collect();
            wrong.push(servers());
            allowed.push(json!({ "not": { "anyOf": wrong }, "additionalProperties": { "not": servers() } }));
        }
        any_of(allowed)
    }
}

/// An object that has something under these keys.
fn at(keys: &[&str]) -> Json {
    keys.iter()
        .rev()
        .fold(json!({}), |inner, key| json!({ "type": "object", "required": [*key], "properties": { *key: inner } }))
}

/// What looks like servers and nothing else.
fn servers() -> Json {
    let has = |key: &str| json!({ "required": [key] });
    let server = json!({ "type": "object", "anyOf": [has("command"), has("url")] });
    json!({ "type": "object", "minProperties": 1, "additionalProperties": server })
}
