//! `rehearse fuzz --corpus`: a folder of inputs that are worth to be sent again, a file of JSON each.

use std::path::Path;

use super::{Failure, output};
use rehearse_report::fuzz::FuzzInput;

/// The inputs of a folder, in the order of their names. A folder that does not exist has none.
///
/// # Errors
/// The folder or a file cannot be read, or a file is not an input.
pub(super) fn read(folder: &Path) -> Result<Vec<FuzzInput>, Failure> {
    let cannot = |path: &Path, why: String| Failure::cannot(format!("cannot read {}: {why}", path.display()));
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(|error| cannot(folder, error.to_string()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "json"));
    paths.sort();
    let read = |path: &Path| -> Result<FuzzInput, Failure> {
        let bytes = std::fs::read(path).map_err(|error| cannot(path, error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| cannot(path, error.to_string()))
    };
    paths.iter().map(|path| read(path)).collect()
}

/// Adds inputs to a folder. An input is in one file, whatever run has found it.
///
/// # Errors
/// A file cannot be written.
pub(super) fn write(folder: &Path, inputs: &[FuzzInput]) -> Result<(), Failure> {
    let cannot = |why: String| Failure::cannot(format!("cannot write {}: {why}", folder.display()));
    std::fs::create_dir_all(folder).map_err(|error| cannot(error.to_string()))?;
    for input in inputs {
        let mut text = serde_json::to_string_pretty(input).map_err(|error| cannot(error.to_string()))?;
        text.push('\n');
        let path = folder.join(format!("{:016x}.json", digest(text.as_bytes())));
        if !path.exists() {
            output::write_file(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

/// FNV-1a, which is the same on every machine.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
