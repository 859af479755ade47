//! `rehearse init --server-json`: the file with which a server is published in the MCP registry.

use std::slice;

use super::{InitArgs, package::source_of};
use crate::cli::{
    Exit, Failure,
    mcp::{self, target::connection::ConnectionArgs},
    output, style,
};
use rehearse_client::Target;
use rehearse_client_configs::Machine;
use rehearse_diff::Surface;
use rehearse_document::{Node, Source, Span};
use rehearse_release::{Package, check};
use rehearse_system::program::quoted;
use serde_json::json;

const FILE: &str = "server.json";
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// What to do without a package.
const WITHOUT_PACKAGE: &str = "the command says nothing of a package: use one of npx -y NAME@VERSION, uvx NAME==VERSION \
                               and docker run -i --rm IMAGE:TAG, or fill it in";

pub(super) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    let path = args.folder.strip_prefix(".").unwrap_or(&args.folder).join(FILE);
    if path.exists() && !args.force {
        return Err(Failure::Usage(format!("{} exists; --force overwrites it", path.display())));
    }
    let server = args.target.one("--stdio or --http")?;
    let surface = match mcp::surface_of(&ConnectionArgs::default(), slice::from_ref(&server))? {
        Ok(surface) => surface,
        Err(exit) => return Ok(exit),
    };
    let (target, machine) = (&server.resolved.config.target, Machine::here());
    let text = text_of(&surface, target, Package::beside(&args.folder, &machine));
    output::write_file(&path, text.as_bytes())?;
    let source = Source::new(FILE, text);
    let report = check(&source, &path, Some(&machine));
    let warn = |key: &str, what: &str| style::warn(&format!("{FILE}: {key}: {what}"));
    let root = report.as_ref().and_then(|report| report.root.as_ref());
    for finding in report.iter().flat_map(|report| &report.findings) {
        let key = root.map(|root| key_at(root, finding.problem.span)).unwrap_or_default();
        let hint = finding.problem.hint.as_deref().unwrap_or_default();
        warn(if key.is_empty() { "the file" } else { &key }, &format!("{}: {hint}", finding.problem.message));
    }
    if source_of(target).is_none() {
        warn("packages", WITHOUT_PACKAGE);
    }
    let place = path.display().to_string();
    output::write(
        format!("wrote {place}\n\nNext:\n  rehearse validate-config {} --connect\n", quoted(&place)).as_bytes(),
    )?;
    Ok(Exit::Success)
}

/// What the server says of itself, and before that its package.
fn text_of(surface: &Surface, target: &Target, package: Option<Package>) -> String {
    let mut info = surface.server.clone().unwrap_or_default();
    let Package { name, version, description, repository, server, .. } = package.unwrap_or_default();
    let of_github = repository.as_deref().and_then(|url| url.strip_prefix("https://github.com/")?.split('/').next());
    // The registry gives each owner on GitHub the names that begin with it.
    let named = of_github.map(|owner| format!("io.github.{owner}/{}", name.rsplit('/').next().unwrap_or_default()));
    for (key, value) in [("name", server.or(named)), ("version", version)] {
        if let Some(value) = value {
            info[key] = value.into();
        }
    }
    if let Some(description) = description.filter(|_| info["description"].as_str().is_none_or(str::is_empty)) {
        info["description"] = description.into();
    }
    let text = |key: &str| info[key].as_str().unwrap_or_default();
    let mut file = json!({ "$schema": SCHEMA, "name": text("name") });
    let source = repository
        .as_deref()
        .and_then(|url| ["github", "gitlab"].into_iter().find(|it| url.contains(&format!("://{it}.com/"))));
    if let (Some(url), Some(source)) = (&repository, source) {
        file["repository"] = json!({ "url": url, "source": source });
    }
    for key in ["title", "description", "version", "websiteUrl"] {
        // Two of them are required.
        if !text(key).is_empty() || matches!(key, "description" | "version") {
            file[key] = text(key).into();
        }
    }
    if let Some((key, item)) = source_of(target) {
        file[key] = json!([item]);
    }
    format!("{file:#}\n")
}

/// The key of a value: `packages[0].version`.
fn key_at(root: &Node, span: Span) -> String {
    let (mut key, mut node) = (String::new(), root);
    loop {
        let has = |it: &Node| it.span.start <= span.start && span.start < it.span.end;
        let entry = node.as_entries().unwrap_or_default().iter().find(|entry| has(&entry.node));
        let item = node.as_items().unwrap_or_default().iter().enumerate().find(|(_, item)| has(item));
        let (part, next) = match (entry, item) {
            (Some(entry), _) => (format!("{}{}", if key.is_empty() { "" } else { "." }, entry.key), &entry.node),
            (None, Some((number, item))) => (format!("[{number}]"), item),
            (None, None) => return key,
        };
        key.push_str(&part);
        node = next;
    }
}
