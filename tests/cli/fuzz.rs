//! Runs of `rehearse fuzz` for tests of reports. The rest is in `tests/console/fuzz.md`.

use crate::rehearse::{Rehearse, Run};

/// In a folder with the servers of the page.
fn run(server: &[&str], args: &[&str]) -> Rehearse {
    Rehearse::new().files_of("fuzz").args(["fuzz"].iter().chain(server).chain(args).copied())
}

pub(crate) fn fuzz(args: &[&str]) -> Rehearse {
    run(&["--cases", "150", "--stdio", &format!("'{}' mock mock.yaml", Rehearse::BINARY)], args)
}

pub(crate) fn sequence() -> Run {
    let server = format!("'{}' mock sequence.yaml", Rehearse::BINARY);
    run(&["--cases", "60", "--stdio", &server], &["--format", "json"]).run().code(1)
}

/// A run with the server in a config.
pub(crate) fn of_config(args: &[&str]) -> Rehearse {
    let server = serde_json::json!({ "command": Rehearse::BINARY, "args": ["mock", "mock.yaml"] });
    let config = serde_json::json!({ "mcpServers": { "planted": server } }).to_string();
    run(&["--cases", "150", "--mcp-config", ".mcp.json"], args).file(".mcp.json", &config)
}
