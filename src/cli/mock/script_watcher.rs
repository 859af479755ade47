//! `--watch`: reloads an edited script.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{catalogue, console::Console};
use crate::cli::{
    Failure,
    file_watch::{EditDetector, read},
    style,
};
use mcp_rehearsal::builtin_scripts::BUILTIN_SCRIPTS;
use rehearse_document::{Source, text::utf8};
use rehearse_mock::{engine::Engine, script::Script};

/// The polling interval. An edit is served when two polls in a row read it.
const PAUSE: Duration = Duration::from_millis(150);

/// Watches the file of a script.
#[derive(Debug)]
pub(super) struct ScriptWatcher {
    path: PathBuf,
    edits: EditDetector<Vec<u8>>,
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
        if edits.accept(content).is_none() {
            continue;
        }
        match parse(&path, edits.accepted()) {
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

fn parse(path: &Path, content: &[u8]) -> Result<Script, Failure> {
    let path = path.display().to_string();
    match utf8(content.to_owned()) {
        Ok(text) => Script::parse(&Source::new(path, text)).map_err(Failure::Invalid),
        Err(error) => Err(Failure::Usage(format!("cannot read {path}: {error}"))),
    }
}
