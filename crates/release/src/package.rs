//! The package beside a release file: `package.json` or `pyproject.toml` with its readme. The registry of MCP takes a
//! package only if it names the server (modelcontextprotocol/registry, `internal/validators/registries`).

use std::path::Path;

use rehearse_client_configs::{Machine, codes};
use rehearse_document::{Node, Source, json, toml};
use rehearse_report::findings::Finding;

use super::Folder;

/// What a package says of itself.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// The name of its file.
    pub file: &'static str,
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    /// The URL of its source, as a browser opens it.
    pub repository: Option<String>,
    /// The server that it is, where a key of its file says it.
    pub server: Option<String>,
    /// The name of its readme and what it says, if that names the server.
    readme: Option<(String, String)>,
}

impl Package {
    /// The package of a folder; `None` if there is none, or one that is not published.
    pub fn beside(folder: &Path, machine: &Machine) -> Option<Package> {
        let folder = Folder { path: folder, machine: Some(machine) };
        Package::npm(&folder).or_else(|| Package::pypi(&folder))
    }

    fn npm(folder: &Folder<'_>) -> Option<Package> {
        let file = "package.json";
        let root = json::parse(&Source::new(file, folder.read(file)?)).ok()?.root;
        let text = |key: &str| text_of(root.get(key));
        let is_private = root.get("private").and_then(Node::as_bool) == Some(true);
        let repository = text("repository").or_else(|| text_of(root.get_path(&["repository", "url"])));
        Some(Package {
            file,
            name: text("name").filter(|_| !is_private)?,
            version: text("version"),
            description: text("description"),
            repository: repository.as_deref().map(browsed),
            server: text("mcpName"),
            readme: None,
        })
    }

    fn pypi(folder: &Folder<'_>) -> Option<Package> {
        let file = "pyproject.toml";
        let root = toml::parse(&Source::new(file, folder.read(file)?)).ok()?;
        let project = root.get("project")?;
        let text = |key: &str| text_of(project.get(key));
        let url = |name: &&str| text_of(project.get_path(&["urls", name]));
        let readme = text("readme").or_else(|| text_of(project.get_path(&["readme", "file"])));
        let readme = readme.and_then(|name| Some((folder.read(&name)?, name)));
        Some(Package {
            file,
            name: text("name")?,
            version: text("version"),
            description: text("description"),
            repository: ["Repository", "repository", "Source", "source"].iter().find_map(url).as_deref().map(browsed),
            server: None,
            readme: readme.map(|(text, name)| (name, text)),
        })
    }
}

fn text_of(node: Option<&Node>) -> Option<String> {
    node.and_then(Node::as_str).map(ToOwned::to_owned)
}

/// `git+https://github.com/ada/weather.git` and `github:ada/weather` as a browser has them.
fn browsed(url: &str) -> String {
    let url = url.trim_start_matches("git+").trim_end_matches(".git");
    let of_github = url.strip_prefix("github:").or_else(|| url.strip_prefix("git@github.com:"));
    match of_github.or_else(|| url.strip_prefix("git://github.com/")) {
        Some(path) => format!("https://github.com/{path}"),
        None => url.to_owned(),
    }
}

/// Compares the packages of a `server.json` with those in its folder.
pub(super) fn check(root: &Node, folder: &Folder<'_>, findings: &mut Vec<Finding>) {
    let packages = root.get("packages").and_then(Node::as_items).unwrap_or_default();
    for (kind, found) in [("npm", Package::npm(folder)), ("pypi", Package::pypi(folder))] {
        let Some(found) = found else { continue };
        let of_kind: Vec<_> =
            packages.iter().filter(|it| text_of(it.get("registryType")).is_some_and(|it| it == kind)).collect();
        let is_same = |package: &&&Node| {
            text_of(package.get("identifier")).is_some_and(|name| plain(&name) == plain(&found.name))
        };
        match (of_kind.iter().find(is_same), &of_kind[..]) {
            (Some(package), _) | (None, [package]) => compare(root, package, &found, findings),
            // The folder has another package than those.
            _ => {}
        }
    }
}

/// A name as PyPI compares them (PEP 503).
fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

fn compare(root: &Node, package: &Node, found: &Package, findings: &mut Vec<Finding>) {
    let file = found.file;
    let named = |node: Option<&Node>| Some((node?.span, node?.as_str()?.to_owned()));
    if let Some((span, name)) = named(package.get("identifier")).filter(|(_, name)| plain(name) != plain(&found.name)) {
        let message = format!("{file} beside this file is of the package `{}`, not `{name}`", found.name);
        findings.push(codes::RELEASE_OTHER_PACKAGE.at(span, message).hint("give both one name"));
    }
    check_version(package.get("version"), found, findings);
    let Some((span, server)) = named(root.get("name")) else { return };
    let (message, hint) = match (&found.server, &found.readme) {
        (Some(other), _) if *other != server => {
            (format!("`mcpName` in {file} is `{other}`"), format!("write \"mcpName\": \"{server}\" there"))
        }
        (None, None) if file == "package.json" => {
            (format!("{file} has no `mcpName`"), format!("add \"mcpName\": \"{server}\" there"))
        }
        (None, Some((readme, text))) if !text.contains(&format!("mcp-name: {server}")) => {
            (format!("{readme} does not say `mcp-name: {server}`"), format!("add <!-- mcp-name: {server} --> there"))
        }
        _ => return,
    };
    let message = format!("{message}, so the registry refuses the package for this server");
    findings.push(codes::RELEASE_PACKAGE.at(span, message).hint(hint));
}

/// Compares the version that a release file gives with that of the package beside it.
pub(super) fn check_version(node: Option<&Node>, found: &Package, findings: &mut Vec<Finding>) {
    let Some((node, version)) = node.and_then(|node| Some((node, node.as_str()?))) else { return };
    // Some are given a version only when they are published.
    let other = found.version.as_deref().filter(|other| *other != version && !other.starts_with("0.0.0"));
    if let Some(other) = other {
        let message = format!("this says version {version}, and {} beside it {other}", found.file);
        findings
            .push(codes::RELEASE_OTHER_PACKAGE.at(node.span, message).hint("give both the version of this release"));
    }
}
