//! The files in which a host says why something failed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rehearse_client_configs::headless::{FailureSource, Headless, Values};

/// How much of the files is read.
const LONGEST: usize = 4 << 20;

/// The texts of the files that the patterns of the host name, with these patterns' places.
pub(crate) fn read(headless: &Headless, values: &Values) -> Vec<(usize, String)> {
    let mut texts = Vec::new();
    for (number, pattern) in headless.failures.iter().enumerate() {
        let FailureSource::File(path) = &pattern.from else { continue };
        let path = values.expand(&path.replace("{server}", "*"));
        for file in files(Path::new(&path)) {
            let text = fs::read(&file).unwrap_or_default();
            let text = &text[..text.len().min(LONGEST)];
            texts.push((number, String::from_utf8_lossy(text).into_owned()));
        }
    }
    texts
}

/// The files of a path in which `*` stands for any characters of one name.
fn files(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let name = part.as_os_str().to_string_lossy();
        let Some((start, end)) = name.split_once('*') else {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let entries = found.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let is_match =
            |name: &str| name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end);
        found =
            entries.filter(|entry| is_match(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect();
    }
    found.retain(|path| path.is_file());
    found.sort();
    found
}
