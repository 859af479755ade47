//! `server.json` of the MCP registry: its schema of 2025-12-11, and what the registry's validators check besides
//! (modelcontextprotocol/registry, `docs/reference/server-json` and `internal/validators`).

use rehearse_client_configs::codes;
use rehearse_document::Node;
use rehearse_report::findings::Finding;

use super::{
    Folder, check_length, package,
    shape::{Kind, Shape, missing},
    version, wrong,
};

static INPUT: Shape = Shape {
    keys: &[
        ("name", Kind::Text),
        ("type", Kind::Word(&["positional", "named"])),
        ("valueHint", Kind::Text),
        ("isRepeated", Kind::Flag),
        ("description", Kind::Text),
        ("isRequired", Kind::Flag),
        ("format", Kind::Word(&["string", "number", "boolean", "filepath"])),
        ("value", Kind::Text),
        ("isSecret", Kind::Flag),
        ("default", Kind::Text),
        ("placeholder", Kind::Text),
        ("choices", Kind::List(&Kind::Text)),
        ("variables", Kind::Map(&Kind::Any)),
    ],
    is_closed: false,
};
static TRANSPORT: Shape = Shape {
    keys: &[
        ("type*", Kind::Word(&["stdio", "streamable-http", "sse"])),
        ("url", Kind::Text),
        ("headers", Kind::List(&Kind::Object(&INPUT))),
        ("variables", Kind::Map(&Kind::Object(&INPUT))),
    ],
    is_closed: false,
};
static PACKAGE: Shape = Shape {
    keys: &[
        ("registryType*", Kind::Text),
        ("registryBaseUrl", Kind::Text),
        ("identifier*", Kind::Text),
        ("version", Kind::Text),
        ("fileSha256", Kind::Text),
        ("runtimeHint", Kind::Text),
        ("transport*", Kind::Object(&TRANSPORT)),
        ("runtimeArguments", Kind::List(&Kind::Object(&INPUT))),
        ("packageArguments", Kind::List(&Kind::Object(&INPUT))),
        ("environmentVariables", Kind::List(&Kind::Object(&INPUT))),
    ],
    is_closed: false,
};
static REPOSITORY: Shape = Shape {
    keys: &[("url*", Kind::Text), ("source*", Kind::Text), ("id", Kind::Text), ("subfolder", Kind::Text)],
    is_closed: false,
};
static ICON: Shape = Shape {
    keys: &[
        ("src*", Kind::Text),
        ("mimeType", Kind::Word(&["image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"])),
        ("sizes", Kind::List(&Kind::Text)),
        ("theme", Kind::Word(&["light", "dark"])),
    ],
    is_closed: false,
};
static SERVER: Shape = Shape {
    keys: &[
        ("$schema", Kind::Text),
        ("name*", Kind::Text),
        ("title", Kind::Text),
        ("description*", Kind::Text),
        ("version*", Kind::Text),
        ("repository", Kind::Object(&REPOSITORY)),
        ("websiteUrl", Kind::Text),
        ("icons", Kind::List(&Kind::Object(&ICON))),
        ("packages", Kind::List(&Kind::Object(&PACKAGE))),
        ("remotes", Kind::List(&Kind::Object(&TRANSPORT))),
        ("_meta", Kind::Any),
    ],
    is_closed: false,
};

/// Whether this is one: its schema says so, or it says where the server comes from.
pub(super) fn is_one(root: &Node) -> bool {
    is_marked(root) || (root.get("name").is_some() && ["packages", "remotes"].iter().any(|key| root.get(key).is_some()))
}

/// Whether its schema says so, of any version.
pub(super) fn is_marked(root: &Node) -> bool {
    root.get("$schema").and_then(Node::as_str).is_some_and(|url| url.ends_with("/server.schema.json"))
}

pub(super) fn check(root: &Node, folder: &Folder<'_>, findings: &mut Vec<Finding>) {
    SERVER.check(root, findings);
    check_length(root.get("description"), "description", 100, findings);
    check_length(root.get("title"), "title", 100, findings);
    version::check(root.get("version"), true, findings);
    let text = |node: &Node, key: &str| node.get(key).and_then(Node::as_str).map(ToOwned::to_owned);
    if let (Some(node), Some(name)) = (root.get("name"), text(root, "name"))
        && !is_name(&name)
    {
        let hint = "write a domain in reverse, a slash and a name, such as io.github.user/weather";
        findings.push(wrong(node, format!("`{name}` is no name of a server"), hint));
    }
    let items = |node: &'_ Node, key: &str| node.get(key).and_then(Node::as_items).unwrap_or_default().to_vec();
    for icon in items(root, "icons") {
        let src = icon.get("src").and_then(|node| Some((node, node.as_str()?)));
        match src.filter(|(_, src)| !src.starts_with("https://")) {
            Some((node, src)) if src.contains(':') => {
                findings.push(wrong(
                    node,
                    format!("`{src}` is no HTTPS URL"),
                    "put the icon on a web server with HTTPS",
                ));
            }
            Some((node, src)) => {
                findings.push(wrong(node, format!("`{src}` is no URL"), "write the HTTPS URL of the icon"));
                folder.check(src, node.span, findings);
            }
            None => {}
        }
    }
    for package in items(root, "packages") {
        check_package(&package, findings);
    }
    package::check(root, folder, findings);
    for remote in items(root, "remotes") {
        if let Some(node) = remote.get("type").filter(|it| it.as_str() == Some("stdio")) {
            findings.push(wrong(node, "a remote server has no stdio".to_owned(), "streamable-http or sse"));
        }
        let known: Vec<_> = remote.get("variables").and_then(Node::as_entries).unwrap_or_default().to_vec();
        let known: Vec<_> = known.into_iter().map(|entry| entry.key).collect();
        check_url(&remote, &known, "`variables` of this remote", findings);
    }
}

fn check_package(package: &Node, findings: &mut Vec<Finding>) {
    let text = |key: &str| package.get(key).and_then(Node::as_str);
    version::check(package.get("version"), false, findings);
    let kind = text("registryType").unwrap_or_default();
    match (kind, package.get("version"), package.get("identifier").zip(text("identifier"))) {
        ("npm" | "pypi" | "nuget" | "cargo", None, _) => findings.push(missing(package, "version")),
        ("oci", Some(node), _) => {
            findings.push(wrong(
                node,
                "the registry rejects `version` of an OCI package".to_owned(),
                "write it as the tag in `identifier`",
            ));
        }
        ("oci", None, Some((node, image))) if !is_pinned(image) => {
            let finding = codes::PACKAGE_UNPINNED.at(node.span, format!("`{image}` has no tag of a version"));
            findings.push(finding.hint("write the tag of the version, such as :1.2.3"));
        }
        ("mcpb", ..) if package.get("fileSha256").is_none() => findings.push(missing(package, "fileSha256")),
        _ => {}
    }
    let named = ["runtimeArguments", "packageArguments", "environmentVariables"];
    let mut known = Vec::new();
    for (key, input) in named.iter().flat_map(|key| {
        package.get(key).and_then(Node::as_items).unwrap_or_default().iter().map(move |input| (*key, input))
    }) {
        let has = |key: &str| input.get(key).is_some();
        let kind = input.get("type").and_then(Node::as_str);
        match (key, kind) {
            ("environmentVariables", _) | (_, Some("named")) if !has("name") => findings.push(missing(input, "name")),
            ("environmentVariables", _) => {}
            (_, None) if !has("type") => findings.push(missing(input, "type")),
            (_, Some("positional")) if !has("value") && !has("valueHint") => findings.push(missing(input, "valueHint")),
            _ => {}
        }
        known.extend(
            ["name", "valueHint"]
                .iter()
                .filter_map(|key| input.get(key)?.as_str())
                .map(|it| it.trim_start_matches('-').to_owned()),
        );
    }
    if let Some(transport) = package.get("transport") {
        check_url(transport, &known, "an argument or environment variable of the package", findings);
    }
}

/// Checks the URL of a transport, and the variables in it.
fn check_url(transport: &Node, known: &[String], what: &str, findings: &mut Vec<Finding>) {
    let needs_url = transport.get("type").and_then(Node::as_str).is_some_and(|it| it != "stdio");
    let Some((node, url)) = transport.get("url").and_then(|node| Some((node, node.as_str()?))) else {
        if needs_url && transport.get("url").is_none() {
            findings.push(missing(transport, "url"));
        }
        return;
    };
    let is_url = url.starts_with("http://") || url.starts_with("https://") || url.starts_with('{');
    if !is_url || url.contains(char::is_whitespace) {
        findings.push(wrong(node, format!("`{url}` is no URL of a server"), "write one with http:// or https://"));
    }
    let variables = url.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0));
    for variable in variables.filter(|it| !known.iter().any(|known| known.trim_start_matches('-') == *it)) {
        let finding = codes::INPUT_UNKNOWN.at(node.span, format!("`{{{variable}}}` is not in {what}"));
        findings.push(finding.hint(format!("describe `{variable}` there")));
    }
}

fn is_name(name: &str) -> bool {
    let is_word = |it: &str, others: &str| {
        !it.is_empty() && it.chars().all(|it| it.is_ascii_alphanumeric() || others.contains(it))
    };
    let parts = name.split_once('/');
    name.len() <= 200 && parts.is_some_and(|(domain, name)| is_word(domain, ".-") && is_word(name, "._-"))
}

/// Whether an image has a digest, or a tag that is not `latest`.
fn is_pinned(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    image.contains('@') || last.split_once(':').is_some_and(|(_, tag)| !tag.is_empty() && tag != "latest")
}
