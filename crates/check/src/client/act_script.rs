//! An act, parsed and ready to be served.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use rehearse_document::{Source, json_schema::example, nearest};
use rehearse_mock::script::{ItemKind, Script, ScriptError};
use rehearse_protocol::List;
use serde_json::Value as Json;

use super::{ACTS, Act, ClientError};
use crate::selects;

/// An act: a script, and its name.
#[derive(Debug)]
pub struct ActScript {
    /// Its name, or the path of its file.
    pub name: String,
    /// The acts that it stands for: itself, or those of a composite act.
    pub acts: Vec<String>,
    /// What the server does.
    pub script: Script,
}

impl ActScript {
    /// The acts that these patterns select, or the file of a script in place of a pattern; all if there are none. Acts
    /// with which others are compared are there as well, `clean` as the first.
    ///
    /// # Errors
    /// An act does not exist, or its script has mistakes.
    pub fn select(patterns: &[String]) -> Result<Vec<ActScript>, ClientError> {
        let is_wanted = |name: &str| patterns.is_empty() || patterns.iter().any(|it| selects(it, name));
        let mut acts = Vec::new();
        for Act { name, script } in ACTS {
            let source = Source::new(format!("{name}.yaml"), *script);
            acts.push(ActScript::parse((*name).to_owned(), &source)?);
        }
        let wanted = acts.iter().filter(|act| is_wanted(&act.name));
        let usual: BTreeSet<_> = wanted.filter_map(|act| act.script.act.like.clone()).collect();
        acts.retain(|act| act.name == ACTS[0].name || usual.contains(&act.name) || is_wanted(&act.name));
        for asked in patterns.iter().filter(|asked| !ACTS.iter().any(|act| selects(asked, act.name))) {
            if !Path::new(asked).is_file() {
                let names: Vec<_> = ACTS.iter().map(|act| act.name).collect();
                return Err(ClientError::UnknownAct { name: asked.clone(), near: nearest(asked, &names) });
            }
            acts.push(ActScript::new(asked.clone(), Script::load(Path::new(asked), &[])?));
        }
        Ok(acts)
    }

    /// # Errors
    /// The script has mistakes.
    pub fn parse(name: String, source: &Arc<Source>) -> Result<ActScript, ScriptError> {
        Ok(ActScript::new(name, Script::parse(source).map_err(ScriptError::Invalid)?))
    }

    /// An act by itself.
    pub(super) fn new(name: String, script: Script) -> ActScript {
        ActScript { acts: vec![name.clone()], name, script }
    }

    /// The tools, with example arguments.
    pub fn tools(&self) -> Vec<(String, Json)> {
        let declared = self.script.tools.iter().take(self.script.declared(ItemKind::Tool));
        let arguments = |definition: &str| {
            let definition: Json = serde_json::from_str(definition).unwrap_or_default();
            Json::Object(example::object(&definition["inputSchema"]))
        };
        declared.map(|tool| (tool.item.name.clone(), arguments(&tool.definition))).collect()
    }

    /// The names of the declared items of a kind.
    pub fn names(&self, kind: ItemKind) -> Vec<String> {
        self.script.names(kind).map(ToOwned::to_owned).collect()
    }

    /// The methods that a client must have used before the act is over.
    pub fn needs(&self) -> Vec<String> {
        let usual = [List::Tools, List::Resources, List::Prompts].into_iter();
        let usual = usual.filter(|list| self.script.declared((*list).into()) > 0);
        let usual = usual.flat_map(|list| [list.method(), list.item_method()]);
        self.script.act.needs.clone().unwrap_or_else(|| usual.map(ToOwned::to_owned).collect())
    }
}
