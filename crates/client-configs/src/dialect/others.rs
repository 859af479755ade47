//! Files that look like configs, and that no dialect is for.

use std::path::Path;

use super::{by_path, without_ending};
use rehearse_document::{Node, Span};
use crate::finding::{codes, Finding};

/// A file that no dialect is for, and by what it is known: a part of its name or of its `$schema`, or keys at its root.
struct Other {
    what: &'static str,
    names: &'static [&'static str],
    schemas: &'static [&'static str],
    /// All of one of these.
    keys: &'static [&'static [&'static str]],
}

const OTHERS: [Other; 5] = [
    Other { what: "a file of Crush, which is not known here", names: &[], schemas: &["charm.land/crush"], keys: &[] },
    Other {
        what: "a file of mcp-agent, which is not known here",
        names: &["mcp_agent.", "mcp-agent."],
        schemas: &["mcp-agent"],
        keys: &[&["execution_engine"]],
    },
    Other {
        what: "the manifest of an extension for Claude Desktop",
        names: &[],
        schemas: &[],
        keys: &[&["manifest_version", "server"], &["dxt_version", "server"]],
    },
    Other { what: "a server's entry in the MCP registry", names: &[], schemas: &["/server.schema.json"], keys: &[] },
    Other {
        what: "a file of settings of Claude Code, which looks for no servers in it",
        names: &[],
        schemas: &["claude-code-settings"],
        keys: &[],
    },
];

/// Says that a file is one that no dialect is for.
pub(crate) fn of_other_program(path: Option<&Path>, root: &Node) -> Option<Finding> {
    if path.is_some_and(|path| by_path(&without_ending(path)).is_some()) {
        return None;
    }
    let name = path.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let schema = root.get("$schema").and_then(Node::as_str).unwrap_or_default();
    let has = |key: &&str| root.get(key).is_some();
    let is_it = |it: &&Other| {
        it.names.iter().any(|part| name.contains(part))
            || it.schemas.iter().any(|part| schema.contains(part))
            || it.keys.iter().any(|keys| keys.iter().all(has))
    };
    let Other { what, .. } = OTHERS.iter().find(is_it)?;
    let place = root.get("$schema").map_or(Span { start: root.span.start, end: root.span.start }, |node| node.span);
    let message = format!("this is {what}: nothing in it is checked");
    Some(codes::NO_SERVERS.at(place, message).hint("if another program reads it, name that with `--dialect`"))
}
