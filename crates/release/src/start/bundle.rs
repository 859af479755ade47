//! A bundle (modelcontextprotocol/mcpb, `MANIFEST.md` and `src/shared/config.ts`).

use std::{collections::BTreeMap, path::Path, sync::Arc};

use rehearse_client_configs::{Machine, System, server::Pair};
use rehearse_document::{Node, Source};
use rehearse_protocol::Transport;

use super::{Draft, Start, at, plain, set};

/// Folders of a user, beside the home folder.
const FOLDERS: [&str; 3] = ["Desktop", "Documents", "Downloads"];

pub(super) fn start(root: &Node, source: &Arc<Source>, folder: &Path, machine: &Machine) -> Start {
    let name = root.get("name").and_then(Node::as_str).unwrap_or("bundle").to_owned();
    let node = root.get_path(&["server", "mcp_config"]).or_else(|| root.get("server")).unwrap_or(root);
    let mut draft = Draft::new(name, node, source, Transport::Stdio);
    let platform = match machine.system {
        System::Linux => "linux",
        System::MacOs => "darwin",
        System::Windows => "win32",
    };
    let part = |key| node.get_path(&["platform_overrides", platform, key]).or_else(|| node.get(key));
    let env = part("env").and_then(Node::as_entries).unwrap_or_default();
    let mut values = of_machine(folder, machine);
    for setting in root.get("user_config").and_then(Node::as_entries).unwrap_or_default() {
        let name = format!("user_config.{}", setting.key);
        let default = setting.node.get("default").map(|it| match it.as_items() {
            Some(items) => items.iter().filter_map(plain).collect(),
            None => plain(it).into_iter().collect::<Vec<_>>(),
        });
        let default = default.map(|texts| texts.iter().map(|text| replaced(text, &values)).collect::<Vec<_>>());
        // The variable that gets the value can also give it.
        let variable = env.iter().find(|entry| entry.node.as_str() == Some(&format!("${{{name}}}")));
        let variable = variable.map(|entry| entry.key.as_str());
        let given = variable.and_then(|variable| set(machine, variable)).map(|value| vec![value.to_owned()]);
        let is_given = |texts: &Vec<String>| !texts.is_empty() && texts.iter().all(|text| !text.is_empty());
        let is_required = setting.node.get("required").and_then(Node::as_bool) == Some(true);
        match default.clone().filter(is_given).or(given).or(default.filter(|_| !is_required)) {
            Some(texts) => drop(values.insert(name, texts)),
            None if is_required => draft.miss(&setting.node, &name, variable),
            // A host leaves the text as it is.
            None => {}
        }
    }
    let folder = folder.display().to_string();
    draft.server.cwd = Some(at(node, &*folder));
    match part("command").and_then(|it| Some((it, it.as_str()?))) {
        Some((command, text)) => draft.server.command = Some(at(command, replaced(text, &values))),
        // The host manages the execution: `server.type` is `uv`.
        None => {
            let entry = root.get_path(&["server", "entry_point"]).and_then(Node::as_str).unwrap_or_default();
            draft.server.command = Some(at(node, "uv"));
            draft.server.args = ["run", "--directory", &folder, entry].map(|word| at(node, word)).into();
        }
    }
    for arg in part("args").and_then(Node::as_items).unwrap_or_default() {
        let Some(text) = arg.as_str() else { continue };
        let several = text.strip_prefix("${").and_then(|it| values.get(it.strip_suffix('}')?));
        let words = several.cloned().unwrap_or_else(|| vec![replaced(text, &values)]);
        draft.server.args.extend(words.into_iter().map(|word| at(arg, word)));
    }
    for entry in env {
        let Some(value) = entry.node.as_str() else { continue };
        let value = at(&entry.node, replaced(value, &values));
        draft.server.env.push(Pair { name: at(&entry.node, &*entry.key), value });
    }
    draft.into_start()
}

/// The variables of every bundle.
fn of_machine(folder: &Path, machine: &Machine) -> BTreeMap<String, Vec<String>> {
    let separator = if machine.system.is_windows() { "\\" } else { "/" };
    let home = machine.home().unwrap_or_default();
    let known = [
        ("__dirname", folder.display().to_string()),
        ("HOME", home.display().to_string()),
        ("pathSeparator", separator.to_owned()),
        ("/", separator.to_owned()),
    ];
    let folders = FOLDERS.map(|name| (name.to_uppercase(), vec![home.join(name).display().to_string()]));
    known.into_iter().map(|(name, value)| (name.to_owned(), vec![value])).chain(folders).collect()
}

/// A text with its variables replaced. One without a value, or with several, stays.
fn replaced(text: &str, values: &BTreeMap<String, Vec<String>>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        match after.split_once('}').and_then(|(name, more)| Some((&values.get(name)?[..], more))) {
            Some(([value], more)) => {
                out.push_str(value);
                rest = more;
            }
            _ => {
                out.push_str("${");
                rest = after;
            }
        }
    }
    out + rest
}
