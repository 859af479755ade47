//! Snapshots: what a step brought when it was last accepted, one text for all cells that must agree.
//!
//! The files have the format of insta, so that `cargo insta review` works on them.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Cell, Scenario,
    result::{CellResult, Difference, Problem, Status},
};
use crate::{
    client::Protocol,
    config::{Node, Problems, Value},
    wire::Era,
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

    /// The file name, without extension, of the snapshot for a cell.
    pub fn key(&self, cell: Cell) -> String {
        let part = |per: &Per| match (per, cell.protocol) {
            (Per::Transport, _) => cell.transport.to_string(),
            (Per::Protocol, protocol) => protocol.to_string(),
            (Per::Era, Protocol::Exact(version)) => version.era().to_string(),
            (Per::Era, Protocol::Auto) => Era::Modern.to_string(),
        };
        let parts = self.per.iter().map(part);
        std::iter::once(self.name.clone()).chain(parts).collect::<Vec<_>>().join("@")
    }
}

/// The text of a snapshot file; `None` if there is no such file or it is no snapshot.
pub fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (_, body) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
    Some(body.trim_end_matches('\n').to_owned())
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
    let same = |it: &Recorded| read(&folder.join(format!("{}.snap", it.key))).as_ref() == Some(&it.text);
    recorded.iter().all(same)
}

/// Compares what the cells of a scenario recorded with its snapshots, and enters differences into their results.
///
/// # Errors
/// A snapshot could not be written.
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
        let stored = read(&path);
        let Some((first_cell, first)) = all.first().map(|(cell, first)| (cells[*cell].cell, *first)) else { continue };
        let accept = mode == Mode::Update;
        if accept && stored.as_ref() != Some(&first.text) {
            write(&path, &source, &first.title, &first.text)?;
        }
        let expected = if accept { Some(&first.text) } else { stored.as_ref() };
        for (cell, recorded) in &all {
            let problem = match expected {
                Some(expected) if *expected == recorded.text => continue,
                Some(expected) => Problem {
                    message: match accept {
                        true => format!("the cell differs from {first_cell} in the snapshot `{key}`"),
                        false => format!("the result differs from the snapshot `{key}`"),
                    },
                    difference: Some(Difference { expected: expected.clone(), actual: recorded.text.clone() }),
                },
                None => Problem {
                    message: format!("there is no snapshot `{key}` yet; accept this result with --update"),
                    difference: Some(Difference { expected: String::new(), actual: recorded.text.clone() }),
                },
            };
            fail(&mut cells[*cell], recorded.step, problem);
        }
        let pending = path.with_extension("snap.new");
        let differing = all.iter().find(|(_, recorded)| stored.as_ref() != Some(&recorded.text));
        match differing.filter(|_| mode == Mode::Pending) {
            Some((_, recorded)) => write(&pending, &source, &recorded.title, &recorded.text)?,
            None => remove(&pending)?,
        }
    }
    Ok(())
}

fn fail(cell: &mut CellResult, step: usize, problem: Problem) {
    if let Some(step) = cell.steps.get_mut(step) {
        step.status = Status::Failed;
        step.problems.push(problem);
    }
    if cell.status == Status::Passed {
        cell.status = Status::Failed;
    }
}

fn remove(path: &PathBuf) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{config::Source, scenario::StepResult, transport::Transport, wire::Version};

    struct Fixture {
        folder: tempfile::TempDir,
        scenario: Scenario,
    }

    impl Fixture {
        fn new() -> Fixture {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("demo.yaml");
            let text = "servers: { s: { mock: basic } }\nsteps: [{ discover: {}, snapshot: tools }]";
            let scenario = Scenario::parse(&Source::new("demo.yaml", text), &path).expect("valid");
            Fixture { folder, scenario }
        }

        fn judge(&self, mode: Mode, texts: &[&str]) -> Vec<Option<Difference>> {
            let step = || StepResult {
                title: "discover".into(),
                line: 2,
                status: Status::Passed,
                duration: Duration::ZERO,
                problems: vec![],
                trace: vec![],
            };
            let transports = [Transport::Stdio, Transport::Http, Transport::Ws];
            let cell = |index: usize| CellResult {
                cell: Cell { transport: transports[index], protocol: Protocol::Auto },
                status: Status::Passed,
                reason: None,
                duration: Duration::ZERO,
                steps: vec![step()],
                stderr: vec![],
            };
            let mut cells: Vec<_> = (0..texts.len()).map(cell).collect();
            let recorded: Vec<_> = texts
                .iter()
                .map(|text| {
                    vec![Recorded { step: 0, key: "tools".into(), title: "discover".into(), text: (*text).into() }]
                })
                .collect();
            judge(&self.scenario, mode, &mut cells, &recorded).expect("writes");
            cells
                .into_iter()
                .map(|cell| {
                    let mut step = cell.steps.into_iter().next().expect("a step");
                    assert_eq!(cell.status == Status::Failed, !step.problems.is_empty());
                    step.problems.pop().and_then(|problem| problem.difference)
                })
                .collect()
        }

        fn file(&self, name: &str) -> Option<String> {
            read(&self.folder.path().join("snapshots/demo").join(name))
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
        assert_eq!(fixture.judge(Mode::Check, &["a", "b", "a"]), [None, difference.clone(), None]);
        assert_eq!(fixture.judge(Mode::Update, &["a", "b", "a"]), [None, difference, None]);
        assert_eq!(fixture.file("tools.snap").as_deref(), Some("a"));
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
        assert_eq!(read(&folder.path().join("demo.snap")).as_deref(), Some(text));
    }

    #[test]
    fn what_may_differ_has_a_file_of_its_own() {
        let spec = |per: &[Per]| SnapshotSpec { name: "info".into(), per: per.to_vec() };
        let cell = Cell { transport: Transport::Ws, protocol: Protocol::Exact(Version::V2025_06_18) };
        assert_eq!(spec(&[]).key(cell), "info");
        assert_eq!(spec(&[Per::Protocol]).key(cell), "info@2025-06-18");
        assert_eq!(spec(&[Per::Transport, Per::Era]).key(cell), "info@ws@legacy");
    }
}
