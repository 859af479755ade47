//! Serving every edit of a script as it is saved.

use std::{
    fs::OpenOptions,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::libc::O_NONBLOCK;

use super::{catalogue, console::Console};
use crate::cli::{Failure, style};
use mcp_rehearsal::builtin_scripts::BUILTIN_SCRIPTS;
use rehearse_document::Source;
use rehearse_mock::{engine::Engine, script::Script};

/// How often the file is looked at. An edit is served when it was the same twice.
const PAUSE: Duration = Duration::from_millis(150);

/// The file of a script that is served.
#[derive(Debug)]
pub(super) struct ScriptWatcher {
    path: PathBuf,
    edits: EditDetector,
}

impl ScriptWatcher {
    /// The script of a file, and what watches it.
    ///
    /// # Errors
    /// The script has mistakes; or it is a built-in script, or comes out of a pipe, where nobody edits it.
    pub(super) fn load(path: &Path) -> Result<(Script, ScriptWatcher), Failure> {
        let shown = path.display();
        match path.metadata() {
            Ok(kind) if kind.is_file() => {}
            Ok(_) => return Err(Failure::Usage(format!("`--watch` needs a file: {shown} is not a regular file"))),
            // What is neither is told as ever.
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

/// Serves every edit; `started` is when the mock was. Never returns.
pub(super) async fn follow(watch: Option<ScriptWatcher>, engine: &Engine, started: Instant, console: &Console) {
    let Some(ScriptWatcher { path, mut edits }) = watch else { return std::future::pending().await };
    loop {
        tokio::time::sleep(PAUSE).await;
        // Editors take the file away for a moment while they replace it.
        let Ok(content) = read(&path) else { continue };
        if !edits.take(content) {
            continue;
        }
        match parse(&path, &edits.taken) {
            Ok(script) => {
                let (good, strong, offer) = (style::GOOD, style::STRONG, catalogue::offer(&script));
                engine.load(script.reloadable(), started.elapsed());
                let path = path.display().to_string();
                let path = style::printable(&path);
                console.say(format!("{good}reloaded{good:#} {strong}{path}{strong:#}: {offer}\n"));
            }
            Err(failure) => {
                let bad = style::BAD;
                console.say(failure.text());
                console.say(format!("{bad}not loaded{bad:#}: still serving the previous script\n"));
            }
        }
    }
}

/// The content of a regular file. To open a pipe does not wait for a writer.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(content)
}

fn parse(path: &Path, content: &[u8]) -> Result<Script, Failure> {
    let path = path.display().to_string();
    match str::from_utf8(content) {
        Ok(text) => Script::parse(&Source::new(path, text)).map_err(Failure::Invalid),
        Err(error) => Err(Failure::Usage(format!("cannot read {path}: {error}"))),
    }
}

/// Tells which contents of a file are new and complete.
#[derive(Debug)]
pub(crate) struct EditDetector {
    taken: Vec<u8>,
    /// Different from what was taken, but perhaps half written.
    fresh: Option<Vec<u8>>,
}

impl EditDetector {
    pub(crate) fn new(content: Vec<u8>) -> EditDetector {
        EditDetector { taken: content, fresh: None }
    }

    /// Whether this content is to be taken: it is not the one that was taken last, and the same as a moment ago.
    pub(crate) fn take(&mut self, content: Vec<u8>) -> bool {
        if content == self.taken {
            self.fresh = None;
            return false;
        }
        if self.fresh.as_ref() != Some(&content) {
            self.fresh = Some(content);
            return false;
        }
        self.fresh = None;
        self.taken = content;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_taken_once_and_only_when_it_no_longer_changes() {
        let mut edits = EditDetector::new(b"one".to_vec());
        let mut take =
            |contents: &[&str]| contents.iter().map(|it| edits.take(it.as_bytes().to_vec())).collect::<Vec<_>>();
        assert_eq!(take(&["one", "one"]), [false, false]);
        assert_eq!(take(&["", "tw", "two", "two", "two"]), [false, false, false, true, false]);
        assert_eq!(take(&["t", "two", "t", "t", "two"]), [false, false, false, true, false]);
    }
}
