//! The surface of a server: its lists, capabilities, instructions and versions.

use std::cmp::Ordering;

use serde_json::{Map, Value as Json};

use rehearse_document::{Node, Problem, Problems, Source, Span, json};
use rehearse_protocol::{List, Version, names::META_SERVER_INFO};

/// The name of the format of a surface file.
pub const FORMAT: &str = "rehearse-surface";
/// The version of the format. A reader refuses others.
pub const VERSION: u32 = 1;

/// All that a server shows to its clients. What is `None` is not known, and is not compared.
///
/// ```
/// use rehearse_diff::Surface;
/// use rehearse_document::Source;
/// use rehearse_protocol::List;
///
/// let source = Source::new("list.json", r#"{ "tools": [{ "name": "b" }, { "name": "a" }] }"#);
/// let (surface, _) = Surface::read(&source).map_err(|problems| problems.in_source(&source))?;
/// assert_eq!(surface.list(List::Tools).expect("tools")[0]["name"], "a");
/// assert_eq!(surface.list(List::Prompts), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surface {
    /// The versions of the protocol that it speaks, oldest first. If one of them has a handshake, it is the newest such: a
    /// handshake does not say whether there are older ones.
    pub protocol_versions: Option<Vec<String>>,
    /// Its `serverInfo`.
    pub server: Option<Json>,
    /// Its capabilities.
    pub capabilities: Option<Json>,
    /// Its instructions; empty if it has none.
    pub instructions: Option<String>,
    /// Its lists, in the order of [`List::ALL`], each by the names of its items.
    lists: [Option<Vec<Json>>; List::ALL.len()],
}

impl Surface {
    /// Reads a surface file, or the JSON of a list result: an object with `tools`, `prompts`, `resources` or
    /// `resourceTemplates`. Also returns the tree, in which a JSON pointer has its position.
    ///
    /// # Errors
    /// It is not JSON, or neither of both, or a surface file of another version.
    pub fn read(source: &Source) -> Result<(Surface, Node), Problems> {
        let node = json::parse(source)?.root;
        Ok((Surface::of(&node)?, node))
    }

    fn of(node: &Node) -> Result<Surface, Problems> {
        let json = node.to_json();
        let is_list = List::ALL.iter().any(|list| json.get(list.member()).is_some_and(Json::is_array));
        match node.get("format") {
            Some(format) if format.as_str() == Some(FORMAT) => {
                let version = node.get("version").unwrap_or(node);
                if version.integer::<u32>()? != VERSION {
                    let problem = version.problem(format!("this program reads version {VERSION} of surface files"));
                    return Err(problem.hint("use a newer rehearse").into());
                }
            }
            None if is_list => {}
            _ => {
                let problem = node.problem("not a surface file, and not the result of a list");
                return Err(problem.hint("`rehearse surface` writes a surface file").into());
            }
        }
        Ok(Surface::from_json(&json))
    }

    /// The surface in a value. What has another shape than it should is not known.
    pub fn from_json(json: &Json) -> Surface {
        let versions = json.get("protocolVersions").and_then(Json::as_array);
        let versions = versions.map(|all| all.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect());
        let mut surface = Surface {
            protocol_versions: versions,
            server: json.get("server").cloned(),
            capabilities: json.get("capabilities").cloned(),
            instructions: json.get("instructions").and_then(Json::as_str).map(ToOwned::to_owned),
            ..Surface::default()
        };
        for list in List::ALL {
            *surface.list_mut(list) = json.get(list.member()).and_then(Json::as_array).cloned();
        }
        surface.sort();
        surface
    }

    /// Adds the result of `initialize` or of `server/discover` (2026-07-28, Discovery). A list that the server does not
    /// have is empty; `initialize` does not say which versions there are.
    pub fn add_handshake(&mut self, result: &Json) {
        if let Some(supported) = result.get("supportedVersions").and_then(Json::as_array) {
            let named = supported.iter().filter_map(|it| Some(it.as_str()?.to_owned()));
            let versions = self.protocol_versions.insert(named.collect());
            // Many servers name only those without a handshake, and have others.
            if !versions.iter().any(|version| is_legacy(version)) {
                self.protocol_versions = None;
            }
        }
        let capabilities = result.get("capabilities").cloned().unwrap_or_else(|| Map::new().into());
        for list in List::ALL.into_iter().filter(|list| capabilities.get(list.capability()).is_none()) {
            self.list_mut(list).get_or_insert_default();
        }
        self.capabilities = Some(capabilities);
        self.instructions = Some(result.get("instructions").and_then(Json::as_str).unwrap_or_default().to_owned());
        let server = result.get("serverInfo").or_else(|| result.get("_meta")?.get(META_SERVER_INFO));
        self.server = server.cloned().or_else(|| self.server.take());
    }

    /// A surface of which only this list is known, in this order.
    pub fn of_list(list: List, items: Vec<Json>) -> Surface {
        let mut surface = Surface::default();
        *surface.list_mut(list) = Some(items);
        surface
    }

    /// Sets a list.
    pub fn set(&mut self, list: List, items: Vec<Json>) {
        *self.list_mut(list) = Some(items);
        self.sort();
    }

    /// A list; `None` if it is not known.
    pub fn list(&self, list: List) -> Option<&[Json]> {
        self.lists[list as usize].as_deref()
    }

    pub(crate) fn list_mut(&mut self, list: List) -> &mut Option<Vec<Json>> {
        &mut self.lists[list as usize]
    }

    /// The item of a list with this name or URI.
    pub fn item(&self, list: List, name: &str) -> Option<&Json> {
        self.list(list)?.iter().find(|item| item[list.key()] == name)
    }

    /// Brings the lists and the versions into their order.
    pub fn sort(&mut self) {
        self.protocol_versions.iter_mut().for_each(|versions| versions.sort());
        for list in List::ALL {
            let name = |item: &Json| item[list.key()].as_str().unwrap_or_default().to_owned();
            let order = |one: &Json, other: &Json| match name(one).cmp(&name(other)) {
                Ordering::Equal => one.to_string().cmp(&other.to_string()),
                order => order,
            };
            self.list_mut(list).iter_mut().for_each(|items| items.sort_by(order));
        }
    }

    /// The name and the version that the server gives itself.
    pub fn server_name(&self) -> Option<String> {
        let server = self.server.as_ref()?;
        let name = server["name"].as_str()?;
        Some(server["version"].as_str().map_or_else(|| name.to_owned(), |version| format!("{name} {version}")))
    }

    /// The surface as a value: lists sorted, the keys of objects in the order of the alphabet.
    pub fn to_json(&self) -> Json {
        let mut json = Map::new();
        json.insert("format".into(), FORMAT.into());
        json.insert("version".into(), VERSION.into());
        json.insert("server".into(), self.server.clone().unwrap_or_default());
        json.insert("protocolVersions".into(), Json::from(self.protocol_versions.clone()));
        json.insert("capabilities".into(), self.capabilities.clone().unwrap_or_default());
        json.insert("instructions".into(), Json::from(self.instructions.clone()));
        for list in List::ALL {
            json.insert(list.member().into(), Json::from(self.list(list).map(<[Json]>::to_vec)));
        }
        json.retain(|_, value| !value.is_null());
        sorted(&Json::Object(json))
    }

    /// The text of a surface file, with a final newline: the same for the same surface.
    pub fn to_text(&self) -> String {
        // The marks of the format come first.
        let Json::Object(mut json) = self.to_json() else { return String::new() };
        json.retain(|key, _| key != "format" && key != "version");
        let rest = format!("{:#}", Json::Object(json));
        let rest = rest.strip_prefix('{').unwrap_or(&rest);
        format!("{{\n  \"format\": \"{FORMAT}\",\n  \"version\": {VERSION},{rest}\n")
    }
}

/// Whether a version has a handshake. Versions are in order as texts.
pub(crate) fn is_legacy(version: &str) -> bool {
    version < Version::LATEST.as_str()
}

/// The value with the keys of its objects in the order of the alphabet.
fn sorted(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let mut keys: Vec<_> = members.keys().collect();
            keys.sort();
            keys.into_iter().map(|key| (key.clone(), sorted(&members[key]))).collect::<Map<_, _>>().into()
        }
        Json::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// The text of a snapshot of the step `discover`, whose first lines are YAML between two `---`.
///
/// # Errors
/// The text is no snapshot, or one of another step.
pub fn read_snapshot(source: &Source) -> Result<Surface, Problems> {
    let problem = |what: &'static str| Problems::from(Problem::new(Span::default(), what));
    let text = source.text.replace("\r\n", "\n");
    let body = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    let (_, body) = body.ok_or_else(|| problem("not a snapshot: the header between two `---` lines is missing"))?;
    let json = body.find('{').map(|start| &body[start..]).unwrap_or_default();
    match serde_json::from_str::<Json>(json) {
        Ok(json) => Ok(Surface::from_json(&json)),
        Err(_) => Err(problem("not a snapshot of the step `discover`")),
    }
}
