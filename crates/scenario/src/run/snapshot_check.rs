//! Compares the results of a scenario with its snapshots.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde_json::Value as Json;

use crate::{
    file::{Scenario, Step},
    snapshot::file::{read, remove, write},
};
use rehearse_diff::{Surface, compare};
use rehearse_protocol::List;
use rehearse_report::{
    self as report, Cell, CellResult, Difference, Status,
    diff::{Change, Class},
};

/// What to do with snapshots that differ or are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotMode {
    /// Fail.
    Check,
    /// Fail, and write the new text to a `.snap.new` file.
    Pending,
    /// Accept new texts that are equal in all cells.
    Update,
}

/// The result of one step in one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedSnapshot {
    /// The index of the step in its cell.
    pub step: usize,
    /// The file name of the snapshot without the extension.
    pub key: String,
    /// The title of the step.
    pub title: String,
    /// The text of the snapshot.
    pub text: String,
    /// Whether it is a surface, in which an addition and another order are no difference.
    pub is_surface: bool,
    /// Whether all repetitions of the cell have this text.
    pub is_stable: bool,
}

/// Whether all results of a cell are equal to their snapshots.
pub(crate) fn holds(scenario: &Scenario, recorded: &[RecordedSnapshot]) -> bool {
    let folder = scenario.snapshot_folder();
    let stored = |it: &RecordedSnapshot| read(&folder.join(format!("{}.snap", it.key))).ok().flatten();
    recorded.iter().all(|it| stored(it).is_some_and(|stored| it.differs(&stored).is_none()))
}

impl RecordedSnapshot {
    /// How it differs from the stored text: in a surface the changes that may break something or change what others do,
    /// else nothing but that it does. `None` if it does not.
    fn differs(&self, stored: &str) -> Option<Vec<Change>> {
        if self.text == stored {
            return None;
        }
        match self.is_surface.then(|| changes(stored, &self.text)).flatten() {
            Some(changes) => {
                let bad: Vec<_> = changes.into_iter().filter(|change| change.class >= Class::Behaviour).collect();
                Some(bad).filter(|bad| !bad.is_empty())
            }
            None => Some(Vec::new()),
        }
    }

    /// Whether another cell has the same result.
    fn agrees(&self, text: &str) -> bool {
        self.text == text || self.is_surface && changes(text, &self.text).is_some_and(|changes| changes.is_empty())
    }
}

/// The changes from one list result to another. `None` if they are none, or differ in what is no list.
fn changes(old: &str, new: &str) -> Option<Vec<Change>> {
    let read = |text: &str| -> Option<(Surface, Json)> {
        let mut json: Json = serde_json::from_str(text).ok()?;
        let surface = Surface::from_json(&json);
        let members = json.as_object_mut()?;
        // How a list is divided is not a part of it.
        members.retain(|name, _| name != "pages" && List::ALL.iter().all(|list| list.member() != name));
        Some((surface, json))
    };
    let ((old, one), (mut new, other)) = (read(old)?, read(new)?);
    // A server that has no prompts any more does not list them.
    for list in List::ALL.into_iter().filter(|list| old.list(*list).is_some()) {
        if new.list(list).is_none() {
            new.set(list, Vec::new());
        }
    }
    (one == other).then(|| compare(&old, &new))
}

/// Compares the recorded results of a scenario with its snapshots, and adds the differences to the cell results. Returns
/// the snapshots that it has written.
///
/// # Errors
/// An accepted snapshot cannot be written.
pub(crate) fn check(
    scenario: &Scenario,
    mode: SnapshotMode,
    cells: &mut [CellResult],
    recorded: &[Vec<RecordedSnapshot>],
) -> io::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    let mut by_key: BTreeMap<&str, Vec<(usize, &RecordedSnapshot)>> = BTreeMap::new();
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
            SnapshotMode::Update => accept(scenario, key, cells, &all, stored.as_deref()),
            SnapshotMode::Check | SnapshotMode::Pending => Verdict::Compare,
        };
        if matches!(verdict, Verdict::Accept) {
            if stored.as_ref() != Some(&first.text) {
                write(&path, &source, &first.title, &first.text)?;
                written.push(path.clone());
            }
            remove(&pending(&path));
            continue;
        }
        let is_different = |it: &RecordedSnapshot| stored.as_deref().is_none_or(|stored| it.differs(stored).is_some());
        let differing = all.iter().find(|(_, recorded)| is_different(recorded));
        // A failure to write the file is ignored: the report shows the same text.
        let left = match differing.filter(|_| mode == SnapshotMode::Pending) {
            Some((_, it)) => write(&pending(&path), &source, &it.title, &it.text).ok().map(|()| &it.text),
            None => {
                remove(&pending(&path));
                None
            }
        };
        // The repetitions of an unstable cell are already a problem of its step.
        for (cell, recorded) in all.iter().filter(|(_, recorded)| recorded.is_stable) {
            if let Some(mut problem) = verdict.problem(key, recorded, stored.as_deref()) {
                problem.pending = left.filter(|left| **left == recorded.text).map(|_| pending(&path));
                fail(&mut cells[*cell], recorded.step, problem);
            }
        }
    }
    Ok(written)
}

fn pending(path: &Path) -> PathBuf {
    path.with_extension("snap.new")
}

/// The verdict on a snapshot.
enum Verdict {
    /// Every cell must be equal to the stored text.
    Compare,
    /// All cells agree on the new text.
    Accept,
    /// The cells differ. `text` is the stored text or that of most cells; `cell` is one with that text.
    Disagreement { text: String, cell: Cell },
    /// Some cells that share the snapshot have no result.
    Incomplete(&'static str),
}

fn accept(
    scenario: &Scenario,
    key: &str,
    cells: &[CellResult],
    all: &[(usize, &RecordedSnapshot)],
    stored: Option<&str>,
) -> Verdict {
    if all.iter().any(|(_, recorded)| !recorded.is_stable) {
        return Verdict::Incomplete("it is not the same each time");
    }
    let count = |text: &str| all.iter().filter(|(_, recorded)| recorded.agrees(text)).count();
    let known = stored.filter(|text| count(text) > 0);
    let text = known.or_else(|| all.iter().rev().map(|(_, it)| it.text.as_str()).max_by_key(|text| count(text)));
    let text = text.unwrap_or_default();
    if count(text) < all.len() {
        let like = all.iter().find(|(_, recorded)| recorded.agrees(text));
        let cell = cells[like.map_or(0, |(cell, _)| *cell)].cell;
        return Verdict::Disagreement { text: text.to_owned(), cell };
    }
    let mut sharing =
        scenario.cells().into_iter().filter(|(cell, reason)| reason.is_none() && records(scenario, *cell, key));
    let missing = sharing.find(|(cell, _)| !all.iter().any(|(index, _)| cells[*index].cell == *cell));
    match missing {
        None => Verdict::Accept,
        Some((cell, _)) if cells.iter().any(|result| result.cell == cell) => {
            Verdict::Incomplete("some cells that share it ended before this step")
        }
        Some(_) => Verdict::Incomplete("some cells that share it were not selected"),
    }
}

/// Whether a successful run of a cell writes this snapshot with any negotiated version.
fn records(scenario: &Scenario, cell: Cell, key: &str) -> bool {
    let steps = scenario.steps.iter().filter(|step| step.certainly_exists_in(cell));
    let mut steps = steps.flat_map(Step::with_parallel);
    steps.any(|step| step.certain_snapshot(cell).is_some_and(|brought| brought == key))
}

impl Verdict {
    fn problem(&self, key: &str, recorded: &RecordedSnapshot, stored: Option<&str>) -> Option<report::Problem> {
        let (message, expected) = match (self, stored) {
            (Verdict::Accept, _) => return None,
            (Verdict::Disagreement { text, cell }, _) => {
                (format!("the snapshot `{key}` is not accepted: this cell differs from {cell}"), text.as_str())
            }
            (Verdict::Incomplete(why), stored) => {
                (format!("the snapshot `{key}` is not accepted: {why}"), stored.unwrap_or_default())
            }
            (Verdict::Compare, Some(stored)) => (format!("the result differs from the snapshot `{key}`"), stored),
            (Verdict::Compare, None) => (format!("no snapshot `{key}` yet; accept this result with --update"), ""),
        };
        let is_new = matches!(self, Verdict::Compare) && stored.is_none();
        let changes = match is_new {
            true => Vec::new(),
            false => recorded.differs(expected)?,
        };
        // Sentences say more than the lines of two lists.
        let lines = changes.iter().map(|change| format!("\n{}: {} ({})", change.subject, change.message, change.class));
        let difference = Difference { expected: expected.to_owned(), actual: recorded.text.clone() };
        Some(report::Problem {
            message: format!("{message}{}", lines.collect::<String>()),
            snapshot: Some(key.to_owned()),
            difference: changes.is_empty().then_some(difference),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use rehearse_document::Source;
    use rehearse_protocol::{Protocol, Transport};
    use rehearse_report::StepResult;

    struct Fixture {
        folder: tempfile::TempDir,
    }

    const TRANSPORTS: [Transport; 3] = [Transport::Stdio, Transport::Http, Transport::Ws];

    impl Fixture {
        fn new() -> Fixture {
            Fixture { folder: tempfile::tempdir().expect("a folder") }
        }

        /// The differences of cells that bring these texts, in a matrix of `size` cells.
        fn check_some(&self, mode: SnapshotMode, texts: &[&str], size: usize) -> Vec<Option<Difference>> {
            let path = self.folder.path().join("demo.yaml");
            let transports = TRANSPORTS[..size].iter().map(Transport::to_string).collect::<Vec<_>>().join(", ");
            let text = format!(
                "servers: {{ s: {{ mock: basic }} }}\nmatrix: {{ transport: [{transports}], protocol: auto }}\n\
                 steps: [{{ discover: {{}}, snapshot: tools }}]"
            );
            let scenario =
                Scenario::parse(&Source::new("demo.yaml", text), &path, crate::tests::BUILTINS).expect("valid");
            let step = || StepResult {
                title: "discover".into(),
                source: String::new(),
                line: 2,
                status: Status::Passed,
                duration: Duration::ZERO,
                problems: vec![],
                models: vec![],
                trace: vec![],
            };
            let cell = |index: usize| CellResult {
                negotiated: None,
                cell: Cell { transport: TRANSPORTS[index], protocol: Protocol::Auto },
                status: Status::Passed,
                reason: None,
                duration: Duration::ZERO,
                steps: vec![step()],
                stderr: vec![],
                violations: vec![],
            };
            let mut cells: Vec<_> = (0..texts.len()).map(cell).collect();
            let record = |text: &&str| {
                vec![RecordedSnapshot {
                    step: 0,
                    key: "tools".into(),
                    title: "discover".into(),
                    text: (*text).into(),
                    is_surface: false,
                    is_stable: true,
                }]
            };
            let recorded: Vec<_> = texts.iter().map(record).collect();
            check(&scenario, mode, &mut cells, &recorded).expect("writes");
            let difference = |cell: CellResult| {
                let mut step = cell.steps.into_iter().next().expect("a step");
                assert_eq!(cell.status == Status::Failed, !step.problems.is_empty());
                step.problems.pop().and_then(|problem| problem.difference)
            };
            cells.into_iter().map(difference).collect()
        }

        fn check(&self, mode: SnapshotMode, texts: &[&str]) -> Vec<Option<Difference>> {
            self.check_some(mode, texts, texts.len())
        }

        fn file(&self, name: &str) -> Option<String> {
            read(&self.folder.path().join("snapshots/demo").join(name)).expect("a snapshot")
        }
    }

    #[test]
    fn a_missing_snapshot_fails_until_it_is_accepted() {
        let fixture = Fixture::new();
        assert!(fixture.check(SnapshotMode::Check, &["a", "a"]).iter().all(Option::is_some));
        assert_eq!((fixture.file("tools.snap"), fixture.file("tools.snap.new")), (None, None));
        assert!(fixture.check(SnapshotMode::Pending, &["a"]).iter().all(Option::is_some));
        assert_eq!(fixture.file("tools.snap.new").as_deref(), Some("a"));
        assert_eq!(fixture.check(SnapshotMode::Update, &["a\nb", "a\nb"]), [None, None]);
        assert_eq!((fixture.file("tools.snap").as_deref(), fixture.file("tools.snap.new")), (Some("a\nb"), None));
        assert_eq!(fixture.check(SnapshotMode::Check, &["a\nb", "a\nb"]), [None, None]);
    }

    #[test]
    fn the_cell_that_differs_is_the_one_that_fails_even_when_updating() {
        let fixture = Fixture::new();
        fixture.check(SnapshotMode::Update, &["a", "a", "a"]);
        let difference = Some(Difference { expected: "a".into(), actual: "b".into() });
        for mode in [SnapshotMode::Check, SnapshotMode::Update] {
            assert_eq!(fixture.check(mode, &["a", "b", "a"]), [None, difference.clone(), None]);
            assert_eq!(fixture.check(mode, &["b", "a", "a"]), [difference.clone(), None, None], "also the first");
        }
        assert_eq!(fixture.file("tools.snap").as_deref(), Some("a"));
        let fixture = Fixture::new();
        assert_eq!(
            fixture.check(SnapshotMode::Update, &["b", "a", "a"]),
            [difference, None, None],
            "most cells are right"
        );
        assert_eq!(fixture.file("tools.snap"), None);
    }

    #[test]
    fn a_part_of_the_cells_accepts_nothing_for_the_others() {
        let fixture = Fixture::new();
        assert!(fixture.check_some(SnapshotMode::Update, &["a"], 3)[0].is_some());
        assert_eq!(fixture.file("tools.snap"), None);
        fixture.check(SnapshotMode::Update, &["a", "a", "a"]);
        assert_eq!(fixture.check_some(SnapshotMode::Update, &["a"], 3), [None], "nothing new");
        assert!(fixture.check_some(SnapshotMode::Update, &["b"], 3)[0].is_some());
        assert_eq!(fixture.file("tools.snap").as_deref(), Some("a"));
    }
}
