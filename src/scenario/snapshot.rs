//! Snapshots: what a step brought when it was last accepted, one text for all cells that must agree.
//!
//! The files have the format of insta, so that `cargo insta review` works on them.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::{Scenario, Step};
use crate::{
    client::Protocol,
    config::{Diagnostics, Node, Problem, Problems, Source, Span, Value},
    report::{self, Cell, CellResult, Difference, Status},
    wire::{Era, Version},
};

/// The snapshot of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSpec {
    pub name: String,
    /// In what cells may differ. Empty for full parity.
    pub per: Vec<Per>,
}

/// A property of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    Transport,
    Protocol,
    Era,
}

/// What to do with snapshots that differ or are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Fail.
    Check,
    /// Fail, and leave the new text beside the old one as `.snap.new`.
    Pending,
    /// Accept what all cells agree on.
    Update,
}

/// What a step of one cell brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The position of the step in its cell.
    pub step: usize,
    /// The name of the snapshot's file without the extension.
    pub key: String,
    /// What the step was.
    pub title: String,
    pub text: String,
}

impl SnapshotSpec {
    pub(super) fn read(node: &Node) -> Result<SnapshotSpec, Problems> {
        let (name, per) = match &node.value {
            Value::Mapping(_) => {
                let fields = node.fields("`snapshot`", &["name", "per"])?;
                let read_per = |node: &Node| match node.str()? {
                    "transport" => Ok(Per::Transport),
                    "protocol" => Ok(Per::Protocol),
                    "era" => Ok(Per::Era),
                    _ => Err(node.problem("a snapshot may differ per transport, protocol or era").into()),
                };
                let per = fields.read("per", |node| match node.items() {
                    Ok(_) => node.each(read_per),
                    Err(_) => Ok(vec![read_per(node)?]),
                })?;
                (fields.required("name")?, per.unwrap_or_default())
            }
            _ => (node, Vec::new()),
        };
        let text = name.str()?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if text.is_empty() || !text.chars().all(is_plain) || text.starts_with('.') {
            return Err(name.problem("the name of a snapshot has letters, digits, `-`, `_` and `.` only").into());
        }
        Ok(SnapshotSpec { name: text.to_owned(), per })
    }

    /// The file name, without extension, of the snapshot for a cell in which this version is spoken.
    pub fn key(&self, cell: Cell, version: Option<Version>) -> String {
        let version = version.or(match cell.protocol {
            Protocol::Exact(version) => Some(version),
            Protocol::Auto => None,
        });
        let part = |per: &Per| match per {
            Per::Transport => cell.transport.to_string(),
            Per::Protocol => cell.protocol.to_string(),
            Per::Era => version.map_or(Era::Legacy, Version::era).to_string(),
        };
        let parts = self.per.iter().map(part);
        std::iter::once(self.name.clone()).chain(parts).collect::<Vec<_>>().join("@")
    }

    /// Whether the name of the file is known before the version is negotiated.
    pub(super) fn has_key_for(&self, cell: Cell) -> bool {
        cell.protocol != Protocol::Auto || !self.per.contains(&Per::Era)
    }
}

/// The text of a snapshot file; `None` if there is no such file.
///
/// # Errors
/// The file cannot be read, or is no snapshot.
pub fn read(path: &Path) -> Result<Option<String>, Diagnostics> {
    let name = path.display().to_string();
    let invalid = |text: String, what: String| {
        let problem = Problem::new(Span::default(), what);
        let problem = problem.hint("restore the file, or delete it and accept the result with --update");
        Problems::from(problem).in_source(&Source::new(name.clone(), text))
    };
    let text = match fs::read_to_string(path) {
        Ok(text) => text.replace("\r\n", "\n"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(invalid(String::new(), format!("the snapshot cannot be read: {error}"))),
    };
    let body = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    match body.map(|(_, body)| body.trim_end_matches('\n').to_owned()) {
        Some(body) => Ok(Some(body)),
        None => Err(invalid(text, "not a snapshot: it begins with a head between two lines `---`".into())),
    }
}

/// Checks every snapshot in a folder, if there is one.
///
/// # Errors
/// A file cannot be read, or is no snapshot.
pub(super) fn check_all(folder: &Path) -> Result<(), Diagnostics> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "snap"))
        .try_for_each(|path| read(path).map(drop))
}

fn write(path: &Path, source: &str, title: &str, text: &str) -> io::Result<()> {
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let head = format!("---\nsource: {}\nexpression: {}\n---\n", quote(source), quote(title));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let unfinished = path.with_extension("tmp");
    fs::write(&unfinished, format!("{head}{text}\n"))?;
    fs::rename(&unfinished, path)
}

/// Whether everything that a cell recorded is what its snapshots say.
pub(super) fn holds(scenario: &Scenario, recorded: &[Recorded]) -> bool {
    let folder = scenario.snapshot_folder();
    let stored = |it: &Recorded| read(&folder.join(format!("{}.snap", it.key))).ok().flatten();
    recorded.iter().all(|it| stored(it).as_ref() == Some(&it.text))
}

/// Compares what the cells of a scenario recorded with its snapshots, and enters differences into their results.
///
/// # Errors
/// A snapshot that was accepted could not be written.
pub(super) fn judge(
    scenario: &Scenario,
    mode: Mode,
    cells: &mut [CellResult],
    recorded: &[Vec<Recorded>],
) -> io::Result<()> {
    let mut by_key: BTreeMap<&str, Vec<(usize, &Recorded)>> = BTreeMap::new();
    for (cell, recorded) in recorded.iter().enumerate() {
        for recorded in recorded {
            by_key.entry(&recorded.key).or_default().push((cell, recorded));
        }
    }
    let folder = scenario.snapshot_folder();
    let source = scenario.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for (key, all) in by_key {
        let path = folder.join(format!("{key}.snap"));
        let stored = read(&path).ok().flatten();
        let (_, first) = all[0];
        let verdict = match mode {
            Mode::Update => accept(scenario, key, cells, &all, stored.as_deref()),
            Mode::Check | Mode::Pending => Verdict::Compare,
        };
        if matches!(verdict, Verdict::Accept) {
            if stored.as_ref() != Some(&first.text) {
                write(&path, &source, &first.title, &first.text)?;
            }
            remove(&pending(&path));
            continue;
        }
        let differing = all.iter().find(|(_, recorded)| stored.as_ref() != Some(&recorded.text));
        // Where nothing can be written the report says the same.
        let left = match differing.filter(|_| mode == Mode::Pending) {
            Some((_, it)) => write(&pending(&path), &source, &it.title, &it.text).ok().map(|()| &it.text),
            None => {
                remove(&pending(&path));
                None
            }
        };
        for (cell, recorded) in &all {
            if let Some(mut problem) = verdict.problem(key, recorded, stored.as_deref()) {
                problem.pending = left.filter(|left| **left == recorded.text).map(|_| pending(&path));
                fail(&mut cells[*cell], recorded.step, problem);
            }
        }
    }
    Ok(())
}

fn pending(path: &Path) -> PathBuf {
    path.with_extension("snap.new")
}

/// What becomes of a snapshot.
enum Verdict {
    /// Every cell is held to the stored text.
    Compare,
    /// All cells agree on the new text.
    Accept,
    /// The cells do not agree; this text is that of most, or the stored one, and that of this cell.
    Disagreement { text: String, cell: Cell },
    /// Cells that share the snapshot have not shown what they bring.
    Incomplete(&'static str),
}

fn accept(
    scenario: &Scenario,
    key: &str,
    cells: &[CellResult],
    all: &[(usize, &Recorded)],
    stored: Option<&str>,
) -> Verdict {
    let count = |text: &str| all.iter().filter(|(_, recorded)| recorded.text == text).count();
    let known = stored.filter(|text| count(text) > 0);
    let text = known.or_else(|| all.iter().rev().map(|(_, it)| it.text.as_str()).max_by_key(|text| count(text)));
    let text = text.unwrap_or_default();
    if count(text) < all.len() {
        let like = all.iter().find(|(_, recorded)| recorded.text == text);
        let cell = cells[like.map_or(0, |(cell, _)| *cell)].cell;
        return Verdict::Disagreement { text: text.to_owned(), cell };
    }
    let mut sharing =
        scenario.cells().into_iter().filter(|(cell, reason)| reason.is_none() && records(scenario, *cell, key));
    let missing = sharing.find(|(cell, _)| !all.iter().any(|(index, _)| cells[*index].cell == *cell));
    match missing {
        None => Verdict::Accept,
        Some((cell, _)) if cells.iter().any(|result| result.cell == cell) => {
            Verdict::Incomplete("not every cell that shares it came as far")
        }
        Some(_) => Verdict::Incomplete("cells that share it were not selected"),
    }
}

/// Whether a cell brings this snapshot if all goes well, as far as that is known beforehand.
fn records(scenario: &Scenario, cell: Cell, key: &str) -> bool {
    let steps = scenario.steps.iter().filter(|step| step.certainly_exists_in(cell));
    let mut steps = steps.flat_map(Step::with_parallel);
    steps.any(|step| step.certain_snapshot(cell).is_some_and(|brought| brought == key))
}

impl Verdict {
    fn problem(&self, key: &str, recorded: &Recorded, stored: Option<&str>) -> Option<report::Problem> {
        let (message, expected) = match (self, stored) {
            (Verdict::Accept, _) => return None,
            (Verdict::Disagreement { text, cell }, _) => {
                (format!("the cell differs from {cell} in the snapshot `{key}`, so nothing is accepted"), text.as_str())
            }
            (Verdict::Incomplete(why), stored) => {
                (format!("the snapshot `{key}` is not accepted: {why}"), stored.unwrap_or_default())
            }
            (Verdict::Compare, Some(stored)) => (format!("the result differs from the snapshot `{key}`"), stored),
            (Verdict::Compare, None) => {
                (format!("there is no snapshot `{key}` yet; accept this result with --update"), "")
            }
        };
        let difference = Difference { expected: expected.to_owned(), actual: recorded.text.clone() };
        let is_new = matches!(self, Verdict::Compare) && stored.is_none();
        (is_new || difference.expected != difference.actual).then(|| report::Problem {
            message,
            snapshot: Some(key.to_owned()),
            difference: Some(difference),
            pending: None,
        })
    }
}

fn fail(cell: &mut CellResult, step: usize, problem: report::Problem) {
    if let Some(step) = cell.steps.get_mut(step) {
        step.status = Status::Failed;
        step.problems.push(problem);
    }
    if cell.status == Status::Passed {
        cell.status = Status::Failed;
    }
}

fn remove(path: &Path) {
    // What is not there, or cannot be removed, changes no verdict.
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{config::Source, report::StepResult, transport::Transport, wire::Version};

    struct Fixture {
        folder: tempfile::TempDir,
    }

    const TRANSPORTS: [Transport; 3] = [Transport::Stdio, Transport::Http, Transport::Ws];

    impl Fixture {
        fn new() -> Fixture {
            Fixture { folder: tempfile::tempdir().expect("a folder") }
        }

        /// The differences of cells that bring these texts, in a matrix of `size` cells.
        fn judge_some(&self, mode: Mode, texts: &[&str], size: usize) -> Vec<Option<Difference>> {
            let path = self.folder.path().join("demo.yaml");
            let transports = TRANSPORTS[..size].iter().map(Transport::to_string).collect::<Vec<_>>().join(", ");
            let text = format!(
                "servers: {{ s: {{ mock: basic }} }}\nmatrix: {{ transport: [{transports}], protocol: auto }}\n\
                 steps: [{{ discover: {{}}, snapshot: tools }}]"
            );
            let scenario = Scenario::parse(&Source::new("demo.yaml", text), &path).expect("valid");
            let step = || StepResult {
                title: "discover".into(),
                line: 2,
                status: Status::Passed,
                duration: Duration::ZERO,
                problems: vec![],
                trace: vec![],
            };
            let cell = |index: usize| CellResult {
                cell: Cell { transport: TRANSPORTS[index], protocol: Protocol::Auto },
                status: Status::Passed,
                reason: None,
                duration: Duration::ZERO,
                steps: vec![step()],
                stderr: vec![],
            };
            let mut cells: Vec<_> = (0..texts.len()).map(cell).collect();
            let record = |text: &&str| {
                vec![Recorded { step: 0, key: "tools".into(), title: "discover".into(), text: (*text).into() }]
            };
            let recorded: Vec<_> = texts.iter().map(record).collect();
            judge(&scenario, mode, &mut cells, &recorded).expect("writes");
            let difference = |cell: CellResult| {
                let mut step = cell.steps.into_iter().next().expect("a step");
                assert_eq!(cell.status == Status::Failed, !step.problems.is_empty());
                step.problems.pop().and_then(|problem| problem.difference)
            };
            cells.into_iter().map(difference).collect()
        }

        fn judge(&self, mode: Mode, texts: &[&str]) -> Vec<Option<Difference>> {
            self.judge_some(mode, texts, texts.len())
        }

        fn file(&self, name: &str) -> Option<String> {
            read(&self.folder.path().join("snapshots/demo").join(name)).expect("a snapshot")
        }
    }

    #[test]
    fn a_missing_snapshot_fails_until_it_is_accepted() {
        let fixture = Fixture::new();
        assert!(fixture.judge(Mode::Check, &["a", "a"]).iter().all(Option::is_some));
        assert_eq!((fixture.file("tools.snap"), fixture.file("tools.snap.new")), (None, None));
        assert!(fixture.judge(Mode::Pending, &["a"]).iter().all(Option::is_some));
        assert_eq!(fixture.file("tools.snap.new").as_deref(), Some("a"));
        assert_eq!(fixture.judge(Mode::Update, &["a\nb", "a\nb"]), [None, None]);
        assert_eq!((fixture.file("tools.snap").as_deref(), fixture.file("tools.snap.new")), (Some("a\nb"), None));
        assert_eq!(fixture.judge(Mode::Check, &["a\nb", "a\nb"]), [None, None]);
    }

    #[test]
    fn the_cell_that_differs_is_the_one_that_fails_even_when_updating() {
        let fixture = Fixture::new();
        fixture.judge(Mode::Update, &["a", "a", "a"]);
        let difference = Some(Difference { expected: "a".into(), actual: "b".into() });
        for mode in [Mode::Check, Mode::Update] {
            assert_eq!(fixture.judge(mode, &["a", "b", "a"]), [None, difference.clone(), None]);
            assert_eq!(fixture.judge(mode, &["b", "a", "a"]), [difference.clone(), None, None], "also the first");
        }
        assert_eq!(fixture.file("tools.snap").as_deref(), Some("a"));
        let fixture = Fixture::new();
        assert_eq!(fixture.judge(Mode::Update, &["b", "a", "a"]), [difference, None, None], "most cells are right");
        assert_eq!(fixture.file("tools.snap"), None);
    }

    #[test]
    fn a_part_of_the_cells_accepts_nothing_for_the_others() {
        let fixture = Fixture::new();
        assert!(fixture.judge_some(Mode::Update, &["a"], 3)[0].is_some());
        assert_eq!(fixture.file("tools.snap"), None);
        fixture.judge(Mode::Update, &["a", "a", "a"]);
        assert_eq!(fixture.judge_some(Mode::Update, &["a"], 3), [None], "nothing new");
        assert!(fixture.judge_some(Mode::Update, &["b"], 3)[0].is_some());
        assert_eq!(fixture.file("tools.snap").as_deref(), Some("a"));
    }

    #[test]
    fn a_file_that_is_no_snapshot_is_a_mistake_and_line_ends_do_not_matter() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("demo.snap");
        fs::write(&path, "---\r\nsource: x\r\n---\r\na\r\nb\r\n").expect("writes");
        assert_eq!(read(&path), Ok(Some("a\nb".into())));
        for broken in [&b"no head"[..], b"<<<<<<< HEAD\n---\n", b"---\n\xff"] {
            fs::write(&path, broken).expect("writes");
            let shown = check_all(folder.path()).expect_err("a mistake").to_string();
            assert!(shown.contains("demo.snap:1:1: "), "{shown}");
        }
        assert_eq!(read(&folder.path().join("none.snap")), Ok(None));
    }

    #[test]
    fn a_written_snapshot_is_one_of_insta() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "{\n  \"a\": \"---\",\n  \"b\": \" \"\n}";
        write(&folder.path().join("demo.snap"), "demo.yaml", "call \"x\"", text).expect("writes");
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path(folder.path());
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!("demo", text));
        assert_eq!(read(&folder.path().join("demo.snap")), Ok(Some(text.to_owned())));
    }

    #[test]
    fn what_may_differ_has_a_file_of_its_own() {
        let spec = |per: &[Per]| SnapshotSpec { name: "info".into(), per: per.to_vec() };
        let cell = Cell { transport: Transport::Ws, protocol: Protocol::Exact(Version::V2025_06_18) };
        assert_eq!(spec(&[]).key(cell, None), "info");
        assert_eq!(spec(&[Per::Protocol]).key(cell, None), "info@2025-06-18");
        let auto = Cell { protocol: Protocol::Auto, ..cell };
        assert_eq!(spec(&[Per::Era]).key(auto, Some(Version::V2026_07_28)), "info@modern");
        assert_eq!(spec(&[Per::Era]).key(auto, Some(Version::V2025_03_26)), "info@legacy");
        assert_eq!(spec(&[Per::Transport, Per::Era]).key(cell, None), "info@ws@legacy");
    }
}
