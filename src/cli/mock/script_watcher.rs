//! `--watch`: reloads an edited script.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{catalogue, console::Console};
use crate::cli::{Failure, style};
use mcp_rehearsal::builtin_scripts::BUILTIN_SCRIPTS;
use rehearse_document::{Source, text::utf8};
use rehearse_mock::{engine::Engine, script::Script};
use rehearse_system::special_file::open_at_once;

/// The polling interval. An edit is served when two polls in a row read it.
const PAUSE: Duration = Duration::from_millis(150);

/// Watches the file of a script.
#[derive(Debug)]
pub(super) struct ScriptWatcher {
    path: PathBuf,
    edits: EditDetector,
}

impl ScriptWatcher {
    /// Loads a script and its watcher.
    ///
    /// # Errors
    /// The script has mistakes; or it is built in or a pipe, which cannot be edited.
    pub(super) fn load(path: &Path) -> Result<(Script, ScriptWatcher), Failure> {
        let shown = path.display();
        match path.metadata() {
            Ok(kind) if kind.is_file() => {}
            Ok(_) => return Err(Failure::Usage(format!("`--watch` needs a file: {shown} is not a regular file"))),
            Err(_) => {
                Script::load(path, BUILTIN_SCRIPTS)?;
                let why = format!("`--watch` needs a file: the script `{shown}` is built in and never changes");
                return Err(Failure::Usage(why));
            }
        }
        let script = Script::load(path, BUILTIN_SCRIPTS)?.reloadable();
        let edits = EditDetector::new(script.source.text.clone().into_bytes());
        Ok((script, ScriptWatcher { path: path.to_owned(), edits }))
    }
}

/// Serves every edit; `started` is the start of the mock. Never returns.
pub(super) async fn watch(watch: Option<ScriptWatcher>, engine: &Engine, started: Instant, console: &Console) {
    let Some(ScriptWatcher { path, mut edits }) = watch else { return std::future::pending().await };
    loop {
        tokio::time::sleep(PAUSE).await;
        // Editors delete the file for a moment while they replace it.
        let Ok(content) = read(&path) else { continue };
        if !edits.accept(content) {
            continue;
        }
        match parse(&path, &edits.accepted) {
            Ok(script) => {
                let (good, strong, offer) = (style::GOOD, style::STRONG, catalogue::offer(&script));
                engine.load(script.reloadable(), started.elapsed());
                let path = path.display().to_string();
                let path = style::printable(&path);
                console.print(format!("{good}reloaded{good:#} {strong}{path}{strong:#}: {offer}\n"));
            }
            Err(failure) => {
                let bad = style::BAD;
                console.print(failure.text());
                console.print(format!("{bad}not loaded{bad:#}: still serving the previous script\n"));
            }
        }
    }
}

/// Reads a regular file. Opening a pipe does not wait for a writer.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_at_once(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(content)
}

fn parse(path: &Path, content: &[u8]) -> Result<Script, Failure> {
    let path = path.display().to_string();
    match utf8(content.to_owned()) {
        Ok(text) => Script::parse(&Source::new(path, text)).map_err(Failure::Invalid),
        Err(error) => Err(Failure::Usage(format!("cannot read {path}: {error}"))),
    }
}

/// Detects new and complete contents of a file.
#[derive(Debug)]
pub(crate) struct EditDetector {
    accepted: Vec<u8>,
    /// New, but perhaps not completely written.
    pending: Option<Vec<u8>>,
}

impl EditDetector {
    pub(crate) fn new(content: Vec<u8>) -> EditDetector {
        EditDetector { accepted: content, pending: None }
    }

    /// Whether to load this content: it differs from the loaded one, and equals that of the last poll.
    pub(crate) fn accept(&mut self, content: Vec<u8>) -> bool {
        if content == self.accepted {
            self.pending = None;
            return false;
        }
        if self.pending.as_ref() != Some(&content) {
            self.pending = Some(content);
            return false;
        }
        self.pending = None;
        self.accepted = content;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_accepted_once_and_only_when_it_no_longer_changes() {
        let mut edits = EditDetector::new(b"one".to_vec());
        let mut take =
            |contents: &[&str]| contents.iter().map(|it| edits.accept(it.as_bytes().to_vec())).collect::<Vec<_>>();
        assert_eq!(take(&["one", "one"]), [false, false]);
        assert_eq!(take(&["", "tw", "two", "two", "two"]), [false, false, false, true, false]);
        assert_eq!(take(&["t", "two", "t", "t", "two"]), [false, false, false, true, false]);
    }
}
