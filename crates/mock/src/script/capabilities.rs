//! The capabilities of a server.

use serde_json::{Map, Value as Json, json};

use super::{ItemKind, UsedFeatures};
use rehearse_document::{Node, Problems, Value};
use rehearse_protocol::{
    Era,
    names::{APPS_EXTENSION, SKILLS_EXTENSION, TASKS_EXTENSION},
};

/// The `ServerCapabilities` of a server in each era.
#[derive(Clone, Debug)]
pub struct Capabilities {
    legacy: Map<String, Json>,
    modern: Map<String, Json>,
}

impl Capabilities {
    /// The capabilities that the script needs, and no others.
    pub(super) fn from_features(
        uses: &UsedFeatures,
        has: impl Fn(ItemKind) -> bool,
        completions: bool,
        skills: bool,
    ) -> Capabilities {
        let mut members = Map::new();
        if completions {
            members.insert("completions".into(), json!({}));
        }
        if uses.logging {
            members.insert("logging".into(), json!({}));
        }
        let lists = [
            ("prompts", ItemKind::Prompt, has(ItemKind::Prompt)),
            ("resources", ItemKind::Resource, has(ItemKind::Resource) || has(ItemKind::ResourceTemplate)),
            ("tools", ItemKind::Tool, has(ItemKind::Tool)),
        ];
        for (name, kind, declared) in lists {
            let mut settings = Map::new();
            if uses.change(kind) {
                settings.insert("listChanged".into(), true.into());
            }
            if kind == ItemKind::Resource && uses.updates {
                settings.insert("subscribe".into(), true.into());
            }
            if declared {
                members.insert(name.into(), settings.into());
            }
        }
        let mut modern = members.clone();
        let extensions = [
            (APPS_EXTENSION, uses.apps, json!({})),
            (TASKS_EXTENSION, uses.tasks, json!({})),
            (SKILLS_EXTENSION, skills, json!({ "directoryRead": true })),
        ];
        let extensions = extensions.into_iter().filter(|(_, used, _)| *used);
        let extensions: Map<_, _> = extensions.map(|(name, _, settings)| (name.to_owned(), settings)).collect();
        if !extensions.is_empty() {
            modern.insert("extensions".into(), extensions.into());
        }
        Capabilities { legacy: members, modern }
    }

    /// The same with a JSON merge patch (RFC 7396) applied.
    pub(super) fn patched(&self, node: &Node) -> Result<Capabilities, Problems> {
        for entry in node.entries()? {
            if !matches!(entry.node.value, Value::Null | Value::Mapping(_)) {
                return Err(entry.node.problem("a capability must be an object, or null to remove it").into());
            }
        }
        let patch = node.to_json();
        let patched = |members: &Map<String, Json>| match merge(Json::Object(members.clone()), &patch) {
            Json::Object(members) => members,
            _ => Map::new(),
        };
        Ok(Capabilities { legacy: patched(&self.legacy), modern: patched(&self.modern) })
    }

    /// The capabilities of a server that may get another script: its lists may change. An explicit `listChanged` in the
    /// script takes precedence.
    pub(super) fn with_list_changed(mut self) -> Capabilities {
        for members in [&mut self.legacy, &mut self.modern] {
            for list in ["prompts", "resources", "tools"] {
                if let Some(Json::Object(settings)) = members.get_mut(list) {
                    settings.entry("listChanged").or_insert(true.into());
                }
            }
        }
        self
    }

    /// The capabilities that are declared in an era.
    pub fn for_era(&self, era: Era) -> &Map<String, Json> {
        match era {
            Era::Legacy => &self.legacy,
            Era::Modern => &self.modern,
        }
    }

    /// Whether a capability is declared, by the names that lead to it: `["resources", "subscribe"]`.
    pub fn declares(&self, era: Era, path: &[&str]) -> bool {
        let (first, rest) = path.split_first().map_or(("", path), |(first, rest)| (*first, rest));
        let first = self.for_era(era).get(first);
        let last = rest.iter().fold(first, |value, name| value.and_then(|value| value.get(*name)));
        last.is_some_and(|value| *value != Json::Bool(false))
    }
}

/// The target with a JSON merge patch (RFC 7396) applied.
pub(crate) fn merge(target: Json, patch: &Json) -> Json {
    let Json::Object(patch) = patch else { return patch.clone() };
    let mut target = match target {
        Json::Object(target) => target,
        _ => Map::new(),
    };
    for (name, value) in patch {
        if value.is_null() {
            target.shift_remove(name);
        } else {
            let member = target.entry(name).or_insert(Json::Null);
            *member = merge(member.take(), value);
        }
    }
    Json::Object(target)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::script::Script;
    use rehearse_document::Source;
    use rehearse_protocol::Era;

    fn declared_text(text: &str, era: Era) -> String {
        let script = Script::parse(&Source::new("m", text)).unwrap_or_else(|error| panic!("{error}"));
        serde_json::to_string(script.capabilities.for_era(era)).expect("JSON")
    }

    #[test]
    fn only_capabilities_with_items_in_the_script_are_declared() {
        assert_eq!(declared_text("server: { name: s }", Era::Legacy), "{}");
        let text = "
tools:
  - name: t
    steps:
      - log: hi
      - notify: notifications/prompts/list_changed
      - notify: { method: notifications/resources/updated, params: { uri: 'file:///a' } }
      - task: {}
      - reply: x
prompts: [{ name: p, arguments: [{ name: a }] }]
resourceTemplates: [{ uriTemplate: 'file:///{name}' }]
completions: [{ prompt: p, argument: a, values: [x] }]";
        let common =
            r#""completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true},"tools":{}"#;
        assert_eq!(declared_text(text, Era::Legacy), format!("{{{common}}}"));
        let tasks = r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#;
        assert_eq!(declared_text(text, Era::Modern), format!("{{{common},{tasks}}}"));
    }

    #[test]
    fn a_script_that_may_be_loaded_again_declares_that_its_lists_change_unless_it_denies_it() {
        let text = "
tools: [{ name: t }]
prompts: [{ name: p, arguments: [{ name: a }] }]
capabilities: { prompts: { listChanged: false } }";
        let script = Script::parse(&Source::new("m", text)).expect("valid").reloadable();
        let declared = json!(script.capabilities.for_era(Era::Modern));
        assert_eq!(declared, json!({ "prompts": { "listChanged": false }, "tools": { "listChanged": true } }));
    }

    #[test]
    fn a_patch_adds_changes_and_takes_away() {
        let text = "
tools: [{ name: t }]
prompts: [{ name: p, arguments: [{ name: a }] }]
capabilities: { prompts: null, tools: { listChanged: true }, experimental: { x: {} } }";
        assert_eq!(declared_text(text, Era::Legacy), r#"{"tools":{"listChanged":true},"experimental":{"x":{}}}"#);
    }
}
