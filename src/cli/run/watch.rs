//! `rehearse run --watch`: runs again what an edit concerns.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf, absolute},
    thread::sleep,
    time::{Duration, SystemTime},
};

use crossterm::{
    event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    terminal::{disable_raw_mode, enable_raw_mode},
};

use crate::cli::{Exit, Failure, file_watch::EditDetector, style, terminal_user::Keyboard};
use rehearse_document::{Node, Source, parse_yaml};

/// The polling interval. An edit counts when two polls in a row see it.
const PAUSE: Duration = Duration::from_millis(100);
const KEYS: &str = "a: all, f: only the failed, Enter: the same again, q: quit\n";
/// The keys of a scenario that name files.
const FILE_KEYS: [&str; 8] = ["mock", "subagent", "config", "model", "models", "answer", "dialog", "schema"];

#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// Run again what an edit of scenarios, scripts and configs concerns
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["list", "shard", "output", "from_trace", "coverage"])]
    watch: bool,
    /// With --watch: run all after a change of this file or folder (repeatable)
    #[arg(long, value_name = "PATH", requires = "watch", hide_short_help = true)]
    watch_path: Vec<PathBuf>,
}

impl WatchArgs {
    pub(super) fn is_set(&self) -> bool {
        self.watch
    }
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) exit: Exit,
    /// The files of the failed scenarios.
    pub(super) failed: BTreeSet<PathBuf>,
    pub(super) is_interrupted: bool,
}

impl Outcome {
    pub(super) fn without_run(exit: Exit) -> Outcome {
        Outcome { exit, failed: BTreeSet::new(), is_interrupted: false }
    }
}

/// Runs all scenarios, and then what is edited or asked for, until the end is asked for. `written` is what a run writes,
/// `find` the scenario files, and `run` runs them all or only some.
///
/// # Errors
/// A path does not exist, or nothing can run or be shown. A mistake in a file is only printed.
pub(super) fn watch<'a>(
    args: &WatchArgs,
    written: impl Iterator<Item = &'a Path>,
    find: impl Fn() -> Result<Vec<PathBuf>, Failure>,
    run: impl Fn(Option<&BTreeSet<PathBuf>>) -> Result<Outcome, Failure>,
) -> Result<Exit, Failure> {
    let mut files = WatchedFiles::new(args, written)?;
    // From before the run, so that an edit during the run is seen.
    let mut edits = EditDetector::new(files.states(find()?)?);
    let is_terminal = Keyboard::detect().is_some();
    let (mut wanted, mut failed) = (None::<BTreeSet<PathBuf>>, BTreeSet::new());
    loop {
        let concerned = wanted.clone().unwrap_or_else(|| edits.accepted().scenarios.keys().cloned().collect());
        failed.retain(|path| !concerned.contains(path));
        let (exit, without_run) = match run(wanted.as_ref()) {
            Ok(outcome) if outcome.is_interrupted => return Ok(outcome.exit),
            Ok(outcome) => {
                failed.extend(outcome.failed);
                (outcome.exit, BTreeSet::new())
            }
            Err(mistake @ (Failure::Invalid(_) | Failure::Usage(_))) => {
                failed.extend(concerned.clone());
                (mistake.report(), concerned)
            }
            Err(failure) => return Err(failure),
        };
        style::print(if is_terminal { KEYS } else { "waiting for an edit\n" });
        let raw = is_terminal.then(RawTerminal::enter).transpose()?;
        wanted = loop {
            let key = match &raw {
                Some(raw) => raw.key()?,
                None => {
                    sleep(PAUSE);
                    None
                }
            };
            match key {
                Some(Key::All) => break None,
                Some(Key::Failed) if failed.is_empty() => style::print("nothing has failed\r\n"),
                Some(Key::Failed) => break Some(failed.clone()),
                Some(Key::Same) => break wanted,
                Some(Key::Quit) => return Ok(exit),
                Some(Key::Interrupt) => {
                    style::print("interrupted\r\n");
                    return Ok(Exit::CannotRun);
                }
                None => {}
            }
            // A path that is not there is being replaced.
            let Some(states) = find().ok().and_then(|found| files.states(found).ok()) else { continue };
            if let Some(before) = edits.accept(states) {
                let now = edits.accepted();
                failed.retain(|path| now.scenarios.contains_key(path));
                let mut edited = now.edited_since(&before);
                edited.extend(without_run.iter().filter(|path| now.scenarios.contains_key(*path)).cloned());
                if !edited.is_empty() {
                    break Some(edited);
                }
            }
        };
        drop(raw);
        let count = wanted.as_ref().map_or("all".to_owned(), |files| files.len().to_string());
        style::print(&format!("running again: {count} of {} scenarios\n", edits.accepted().scenarios.len()));
    }
}

/// The time and length of a file.
type Stamp = (SystemTime, u64);

fn stamp(file: &fs::Metadata) -> Option<Stamp> {
    file.is_file().then(|| Some((file.modified().ok()?, file.len())))?
}

#[derive(Debug, PartialEq)]
struct FileStates {
    /// Of each scenario, its own file and those that it names.
    scenarios: BTreeMap<PathBuf, BTreeMap<PathBuf, Stamp>>,
    /// The files of `--watch-path`.
    server: BTreeMap<PathBuf, Stamp>,
}

impl FileStates {
    /// The scenarios that the edits concern.
    fn edited_since(&self, before: &FileStates) -> BTreeSet<PathBuf> {
        let is_edited =
            |path: &&PathBuf| self.server != before.server || self.scenarios.get(*path) != before.scenarios.get(*path);
        self.scenarios.keys().filter(is_edited).cloned().collect()
    }
}

struct WatchedFiles {
    roots: Vec<PathBuf>,
    written: Vec<PathBuf>,
    /// The files that each scenario names, as of its stamp.
    named: BTreeMap<PathBuf, (Stamp, BTreeSet<PathBuf>)>,
}

impl WatchedFiles {
    fn new<'a>(args: &WatchArgs, written: impl Iterator<Item = &'a Path>) -> Result<WatchedFiles, Failure> {
        let whole = |path: &Path| absolute(path).map_err(|error| unwatchable(path, &error));
        let roots = args.watch_path.iter().map(|path| whole(path)).collect::<Result<_, _>>()?;
        let written = written.map(whole).collect::<Result<_, _>>()?;
        Ok(WatchedFiles { roots, written, named: BTreeMap::new() })
    }

    fn states(&mut self, found: Vec<PathBuf>) -> Result<FileStates, Failure> {
        let mut server = BTreeMap::new();
        for root in &self.roots {
            self.add(root, &mut server).map_err(|error| unwatchable(root, &error))?;
        }
        let scenarios = found.into_iter().map(|path| (path.clone(), self.scenario(path))).collect();
        Ok(FileStates { scenarios, server })
    }

    fn scenario(&mut self, path: PathBuf) -> BTreeMap<PathBuf, Stamp> {
        let stamp_of = |path: &Path| fs::metadata(path).ok().as_ref().and_then(stamp);
        let Some(own) = stamp_of(&path) else { return BTreeMap::new() };
        if self.named.get(&path).is_none_or(|(known, _)| *known != own) {
            self.named.insert(path.clone(), (own, named_files(&path)));
        }
        let named = self.named.get(&path).into_iter().flat_map(|(_, named)| named);
        let named = named.filter_map(|path| Some((path.clone(), stamp_of(path)?)));
        named.chain([(path.clone(), own)]).collect()
    }

    /// Adds the files of a path.
    fn add(&self, path: &Path, found: &mut BTreeMap<PathBuf, Stamp>) -> io::Result<()> {
        let metadata = fs::metadata(path)?;
        found.extend(stamp(&metadata).map(|stamp| (path.to_owned(), stamp)));
        if metadata.is_dir() {
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                // A link to a folder may lead back.
                let is_linked = entry.file_type()?.is_symlink() && entry.path().is_dir();
                if !is_linked && !is_ignored(&entry.file_name()) && !self.written.contains(&entry.path()) {
                    // What cannot be read cannot be watched.
                    let _ = self.add(&entry.path(), found);
                }
            }
        }
        Ok(())
    }
}

/// Whether a file is hidden, is a snapshot, or belongs to a dependency.
fn is_ignored(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') || name.ends_with(".snap") || name.ends_with(".snap.new") || name == "node_modules"
}

fn unwatchable(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("cannot watch {}: {error}", path.display()))
}

/// The files that a scenario may name. A text that is no path names a file that does not exist.
fn named_files(scenario: &Path) -> BTreeSet<PathBuf> {
    fn visit(node: &Node, folder: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in node.as_entries().unwrap_or_default() {
            let script = entry.node.as_str().and_then(|text| text.strip_prefix("scripted:"));
            let file = script.or(entry.node.as_str().filter(|_| FILE_KEYS.contains(&&*entry.key)));
            found.extend(file.map(|name| folder.join(name)));
            visit(&entry.node, folder, found);
        }
        node.as_items().unwrap_or_default().iter().for_each(|item| visit(item, folder, found));
    }
    let mut found = BTreeSet::new();
    if let Some(root) = Source::read(scenario).ok().and_then(|source| parse_yaml(&source).ok()) {
        visit(&root, scenario.parent().unwrap_or(Path::new("")), &mut found);
    }
    found
}

/// What a key asks for.
enum Key {
    All,
    Failed,
    Same,
    Quit,
    Interrupt,
}

/// The terminal while it gives each key at once.
struct RawTerminal(());

impl RawTerminal {
    fn enter() -> Result<RawTerminal, Failure> {
        enable_raw_mode().map(|()| RawTerminal(())).map_err(|error| unreadable(&error))
    }

    /// Waits for a key, and not longer than a poll.
    fn key(&self) -> Result<Option<Key>, Failure> {
        let next = || event::poll(PAUSE)?.then(event::read).transpose();
        let Some(Event::Key(key)) = next().map_err(|error| unreadable(&error))? else { return Ok(None) };
        Ok(match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            _ if key.kind == KeyEventKind::Release => None,
            (KeyCode::Char('c' | 'd'), true) => Some(Key::Interrupt),
            // Enter that was typed before this mode is a line feed.
            (KeyCode::Enter, _) | (KeyCode::Char('j'), true) => Some(Key::Same),
            (KeyCode::Char('a'), false) => Some(Key::All),
            (KeyCode::Char('f'), false) => Some(Key::Failed),
            (KeyCode::Char('q'), false) => Some(Key::Quit),
            _ => None,
        })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = disable_raw_mode();
    }
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::cannot(format!("cannot read the terminal: {error}"))
}
