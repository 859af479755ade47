//! `--connect --stdio`: release files against the server that they describe.

use super::checked_file::CheckedFile;
use crate::cli::{
    Exit, Failure,
    mcp::{self, connection::ConnectionArgs, target::TargetArgs},
};
use rehearse_client_configs::release::{Offered, compare};
use serde_json::Value as Json;

/// Starts the server once, and compares every release file with it. `Some` is the exit code after a failure that has been
/// printed.
///
/// # Errors
/// There is no release file, or the server cannot be started.
pub(super) fn compare_all(checked: &mut [CheckedFile], command: &str) -> Result<Option<Exit>, Failure> {
    if checked.iter().all(|checked| checked.release.is_none()) {
        let text = "--stdio names the server of a release file: name a server.json or a manifest.json";
        return Err(Failure::Usage(text.to_owned()));
    }
    let connection = ConnectionArgs::default();
    let servers = mcp::servers(&TargetArgs::described(command, &[]), &connection, None)?;
    let surface = match mcp::surface_of(&connection, &servers)? {
        Ok(surface) => surface,
        Err(exit) => return Ok(Some(exit)),
    };
    let info =
        |key: &str| surface.server.as_ref().and_then(|server| server[key].as_str()).unwrap_or_default().to_owned();
    let names = |list: &Option<Vec<Json>>| {
        let names = list.iter().flatten().filter_map(|item| item["name"].as_str());
        names.map(ToOwned::to_owned).collect()
    };
    let (name, version) = (info("name"), info("version"));
    let offered = Offered { name, version, tools: names(&surface.tools), prompts: names(&surface.prompts) };
    for CheckedFile { file, release, .. } in checked {
        if let Some((release, root)) = release {
            file.add(compare(*release, root, &offered));
        }
    }
    Ok(None)
}
