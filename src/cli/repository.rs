//! The repository around the current folder, to which GitHub wants paths to be relative.

use std::path::{Path, PathBuf};

use super::{Failure, mcp::target::Server, style};
use rehearse_report::{check::ConfigPlace, summary::Results};

/// Why there is no SARIF.
pub(super) const NO_PLACE: &str = "SARIF needs a place in a file of this repository for each result, and there is none, so no report is written; check \
     a server of a config in it with --mcp-config FILE, or take the format junit";

/// The folder of the repository, or the current folder outside of one.
pub(super) fn root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let root = here.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&here);
    root.canonicalize().unwrap_or_else(|_| root.to_owned())
}

/// The whole path of a file in a folder.
pub(super) fn inside(folder: &Path, file: &Path) -> Option<PathBuf> {
    file.canonicalize().ok().filter(|file| file.starts_with(folder))
}

/// Where a config file describes the server.
pub(super) fn place(server: &Server) -> Option<ConfigPlace> {
    if server.is_from_command_line() {
        return None;
    }
    let (line, column) = server.written.source.position(server.written.name.span.start);
    Some(ConfigPlace { file: server.written.source.name.clone(), line, column, server: server.name().to_owned() })
}

/// Checks that a SARIF report will have places.
///
/// # Errors
/// No server is described in a file of the repository: a result without a place would make the whole file invalid.
pub(super) fn check_places(servers: &[Server]) -> Result<(), Failure> {
    let root = root();
    let places = servers.iter().filter_map(place);
    match places.into_iter().any(|place| inside(&root, Path::new(&place.file)).is_some()) {
        true => Ok(()),
        false => Err(Failure::Usage(NO_PLACE.to_owned())),
    }
}

/// Removes the places of servers outside of a folder; each has its target.
pub(super) fn keep_places_in<'r>(
    folder: &Path,
    servers: impl Iterator<Item = (&'r String, &'r mut Option<ConfigPlace>)>,
) {
    for (target, place) in servers {
        let file = place.as_ref().and_then(|place| inside(folder, Path::new(&place.file)));
        match (place.as_mut(), file) {
            (Some(place), Some(file)) => place.file = file.display().to_string(),
            _ => {
                let target = style::printable(target);
                style::print(&format!("warning: {target} is not in the SARIF report: no file here describes it\n"));
                *place = None;
            }
        }
    }
}

/// Makes the paths of scenarios relative to the repository, as far as their files are in it.
pub(super) fn make_relative(results: &mut Results) {
    let root = root();
    for scenario in results.run.iter_mut().flat_map(|run| &mut run.scenarios) {
        if let Some(path) = inside(&root, &scenario.path)
            && let Ok(relative) = path.strip_prefix(&root)
        {
            scenario.path = relative.to_owned();
        }
    }
    for place in results.diff.iter_mut().flat_map(|diff| &mut diff.changes).filter_map(|change| change.place.as_mut()) {
        if let Some(path) = inside(&root, Path::new(&place.file))
            && let Ok(relative) = path.strip_prefix(&root)
        {
            place.file = relative.display().to_string();
        }
    }
}
