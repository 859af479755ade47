//! `manifest.json` of an MCP bundle (modelcontextprotocol/mcpb, `MANIFEST.md` and the schemas of 0.1 to 0.4).

use rehearse_client_configs::codes;
use rehearse_document::{Node, Value};
use rehearse_report::findings::Finding;

use super::{
    Folder, Package,
    package::check_version,
    shape::{Kind, Shape, missing},
    version, wrong,
};

static AUTHOR: Shape =
    Shape { keys: &[("name*", Kind::Text), ("email", Kind::Text), ("url", Kind::Text)], is_closed: true };
static REPOSITORY: Shape = Shape { keys: &[("type*", Kind::Text), ("url*", Kind::Text)], is_closed: true };
static ICON: Shape =
    Shape { keys: &[("src*", Kind::Text), ("size*", Kind::Text), ("theme", Kind::Text)], is_closed: true };
static COMMAND: Shape = Shape {
    keys: &[
        ("command", Kind::Text),
        ("args", Kind::List(&Kind::Text)),
        ("env", Kind::Map(&Kind::Text)),
        ("platform_overrides", Kind::Map(&Kind::Object(&COMMAND))),
    ],
    is_closed: true,
};
static SERVER: Shape = Shape {
    keys: &[
        ("type*", Kind::Word(&["python", "node", "binary", "uv"])),
        ("entry_point*", Kind::Text),
        ("mcp_config", Kind::Object(&COMMAND)),
    ],
    is_closed: true,
};
static TOOL: Shape = Shape { keys: &[("name*", Kind::Text), ("description", Kind::Text)], is_closed: true };
static PROMPT: Shape = Shape {
    keys: &[
        ("name*", Kind::Text),
        ("description", Kind::Text),
        ("arguments", Kind::List(&Kind::Text)),
        ("text*", Kind::Text),
    ],
    is_closed: true,
};
static SETTING: Shape = Shape {
    keys: &[
        ("type*", Kind::Word(&["string", "number", "boolean", "directory", "file"])),
        ("title*", Kind::Text),
        ("description*", Kind::Text),
        ("required", Kind::Flag),
        ("default", Kind::Any),
        ("multiple", Kind::Flag),
        ("sensitive", Kind::Flag),
        ("min", Kind::Number),
        ("max", Kind::Number),
    ],
    is_closed: true,
};
static COMPATIBILITY: Shape = Shape {
    keys: &[
        ("claude_desktop", Kind::Text),
        ("platforms", Kind::List(&Kind::Word(&["darwin", "win32", "linux"]))),
        ("runtimes", Kind::Map(&Kind::Text)),
    ],
    // `MANIFEST.md`: any client may stand there.
    is_closed: false,
};
static MANIFEST: Shape = Shape {
    keys: &[
        ("$schema", Kind::Text),
        ("dxt_version", Kind::Text),
        ("manifest_version", Kind::Word(&["0.1", "0.2", "0.3", "0.4"])),
        ("name*", Kind::Text),
        ("display_name", Kind::Text),
        ("version*", Kind::Text),
        ("description*", Kind::Text),
        ("long_description", Kind::Text),
        ("author*", Kind::Object(&AUTHOR)),
        ("repository", Kind::Object(&REPOSITORY)),
        ("homepage", Kind::Text),
        ("documentation", Kind::Text),
        ("support", Kind::Text),
        ("icon", Kind::Text),
        ("icons", Kind::List(&Kind::Object(&ICON))),
        ("screenshots", Kind::List(&Kind::Text)),
        ("localization", Kind::Any),
        ("server*", Kind::Object(&SERVER)),
        ("tools", Kind::List(&Kind::Object(&TOOL))),
        ("tools_generated", Kind::Flag),
        ("prompts", Kind::List(&Kind::Object(&PROMPT))),
        ("prompts_generated", Kind::Flag),
        ("keywords", Kind::List(&Kind::Text)),
        ("license", Kind::Text),
        ("privacy_policies", Kind::List(&Kind::Text)),
        ("compatibility", Kind::Object(&COMPATIBILITY)),
        ("user_config", Kind::Map(&Kind::Object(&SETTING))),
        ("_meta", Kind::Any),
    ],
    is_closed: true,
};

/// The variables that a host replaces besides `user_config`.
const VARIABLES: [&str; 7] = ["__dirname", "HOME", "DESKTOP", "DOCUMENTS", "DOWNLOADS", "pathSeparator", "/"];

/// Whether this is one: manifests of web pages and browser extensions have the same name.
pub(super) fn is_one(root: &Node) -> bool {
    is_versioned(root) || root.get_path(&["server", "mcp_config"]).is_some()
}

/// Whether this is one for certain.
pub(super) fn is_marked(root: &Node) -> bool {
    is_versioned(root) && root.get("server").is_some()
}

fn is_versioned(root: &Node) -> bool {
    ["manifest_version", "dxt_version"].iter().any(|key| root.get(key).is_some_and(|it| it.as_str().is_some()))
}

pub(super) fn check(root: &Node, folder: &Folder<'_>, findings: &mut Vec<Finding>) {
    MANIFEST.check(root, findings);
    if root.get("manifest_version").is_none() && root.get("dxt_version").is_none() {
        findings.push(missing(root, "manifest_version"));
    }
    version::check(root.get("version"), true, findings);
    if let Some(package) = folder.machine.and_then(|machine| Package::beside(folder.path, machine)) {
        check_version(root.get("version"), &package, findings);
    }
    if let Some(entry) = root.as_entries().unwrap_or_default().iter().find(|entry| entry.key == "dxt_version") {
        let finding = codes::UNKNOWN_KEY.at(entry.key_span, "`dxt_version` is the old name of `manifest_version`");
        findings.push(finding.hint("write `manifest_version`, and the file as a .mcpb"));
    }
    let server = root.get("server");
    let kind = server.and_then(|it| it.get("type")?.as_str());
    // The host knows how to start a project of uv.
    if let Some(server) =
        server.filter(|it| kind.is_some_and(|it| it != "uv") && it.get_path(&["mcp_config", "command"]).is_none())
    {
        findings.push(missing(server, "mcp_config.command"));
    }
    let items = |key: &str| root.get(key).and_then(Node::as_items).unwrap_or_default();
    let icons = items("icons").iter().filter_map(|icon| icon.get("src"));
    let files = [server.and_then(|it| it.get("entry_point")), root.get("icon")].into_iter().flatten();
    for node in files.chain(icons).chain(items("screenshots")) {
        if let Some(path) = node.as_str() {
            folder.check(path, node.span, findings);
        }
    }
    if let Some(config) = server.and_then(|it| it.get("mcp_config")) {
        check_references(config, root.get("user_config"), findings);
    }
    for prompt in items("prompts") {
        let known = prompt.get("arguments").and_then(Node::as_items).unwrap_or_default();
        let Some((node, text)) = prompt.get("text").and_then(|node| Some((node, node.as_str()?))) else { continue };
        for name in references(text).filter_map(|it| it.strip_prefix("arguments.")) {
            if !known.iter().any(|it| it.as_str() == Some(name)) {
                let finding = codes::INPUT_UNKNOWN.at(node.span, format!("`{name}` is no argument of the prompt"));
                findings.push(finding.hint("add it to `arguments`"));
            }
        }
    }
}

/// What stands in `${…}`.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|part| Some(part.split_once('}')?.0))
}

fn check_references(node: &Node, settings: Option<&Node>, findings: &mut Vec<Finding>) {
    match &node.value {
        Value::String(text) => {
            for reference in references(text) {
                let setting = reference.strip_prefix("user_config.");
                let is_known = setting.map_or_else(
                    || VARIABLES.contains(&reference),
                    |it| settings.is_some_and(|all| all.get(it).is_some()),
                );
                match setting {
                    _ if is_known => {}
                    Some(setting) => {
                        let finding = codes::INPUT_UNKNOWN.at(node.span, format!("`user_config` has no `{setting}`"));
                        findings.push(finding.hint("describe it there, or correct the name"));
                    }
                    None => findings.push(wrong(
                        node,
                        format!("no host replaces `${{{reference}}}`"),
                        "use ${__dirname}, ${HOME} or ${user_config.NAME}; the environment of the user is not read",
                    )),
                }
            }
        }
        Value::Sequence(items) => items.iter().for_each(|item| check_references(item, settings, findings)),
        Value::Mapping(entries) => entries.iter().for_each(|entry| check_references(&entry.node, settings, findings)),
        _ => {}
    }
}
