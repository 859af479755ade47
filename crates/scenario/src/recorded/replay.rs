//! Replays a recording against a server, and compares the answers.

use std::{fs, io, path::Path};

use rehearse_client::{Target, Timeouts};
use rehearse_document::{Diagnostics, Source};
use rehearse_report::{CellResult, Difference, Problem, ScenarioResult, Status};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::{RecordedScenario, SERVER, volatile};
use crate::{
    file::Scenario,
    run::{
        RunOptions,
        cell_run::{self, CellRun, known_values},
    },
    snapshot::{
        self,
        redaction::{apply_at, snapshot_text},
    },
};

/// Where a recording is replayed, and how its scenario is called.
#[derive(Clone, Copy, Debug)]
pub struct ReplayTarget<'a> {
    /// The server.
    pub target: &'a Target,
    /// The same as it stands in a scenario file.
    pub server: &'a Json,
    /// How long to wait for it.
    pub timeouts: Timeouts,
    /// The file of the scenario, which need not exist.
    pub path: &'a Path,
    /// The date, as in 2026-11-27. A date that is today's in the answer is no difference.
    pub today: &'a str,
}

/// What has come of a replay.
#[derive(Debug)]
pub struct Replay {
    /// The result of the second run, in which an answer that differs from the recording fails its step.
    pub result: ScenarioResult,
    /// What is not compared.
    pub notes: Vec<String>,
    recorded: RecordedScenario,
    redactions: Vec<Json>,
    scenario: Scenario,
}

/// Runs a recorded scenario twice, and compares the second run with the recording. What differs between the runs is hidden.
///
/// # Errors
/// The recording has a step that no scenario can have.
pub async fn replay(
    mut recorded: RecordedScenario,
    at: ReplayTarget<'_>,
    options: &RunOptions,
    cancel: &CancellationToken,
) -> Result<Replay, Diagnostics> {
    let options = RunOptions { keep_going: true, repeat: 1, ..options.clone() };
    let plain = parse(&recorded, at, &[], &options)?;
    let Some((cell, reason)) = plain.cells().into_iter().next() else {
        return Ok(Replay::new(recorded, Vec::new(), plain, Vec::new()));
    };
    if let Some(reason) = reason {
        let cells = vec![CellResult::without_steps(cell, Status::NotApplicable, reason)];
        return Ok(Replay::new(recorded, Vec::new(), plain, cells));
    }
    let first = cell_run::run(&plain, cell, &options, cancel).await;
    let mut second = match first.result.status {
        Status::Error | Status::NotRun => CellRun::without_steps(first.result),
        _ => cell_run::run(&plain, cell, &options, cancel).await,
    };
    let mut runs: Vec<_> = recorded.steps.iter().map(|_| None).collect();
    for one in &first.recorded {
        let other = second.recorded.iter().find(|other| other.step == one.step);
        if let (Some(other), Some(run)) = (other, runs.get_mut(one.step)) {
            *run = Some((json_of(&one.text), json_of(&other.text)));
        }
    }
    let mut found: Vec<Json> = Vec::new();
    for (one, other) in runs.iter().flatten() {
        let rules = volatile::redactions(one, other).into_iter().flatten();
        rules.for_each(|rule| {
            if !found.contains(&rule) {
                found.push(rule)
            }
        });
    }
    let date = json!({ "matches": r"\b\d{4}-\d{2}-\d{2}\b", "with": "[date]" });
    let with_date = [found.clone(), vec![date]].concat();
    let (without, with) = (parse(&recorded, at, &found, &options)?, parse(&recorded, at, &with_date, &options)?);
    let (mut notes, mut needs_date, mut failed) = (Vec::new(), false, Vec::new());
    for (index, (step, run)) in recorded.steps.iter_mut().zip(&runs).enumerate() {
        let (Some(name), Some((one, other))) = (&step.snapshot, run) else { continue };
        let (one, other) = (hidden(one, &without), (hidden(other, &without), hidden(other, &with)));
        if one != other.0 {
            notes.push(format!(
                "the answer of {} has another form each time: it is not compared",
                without.steps[index].header()
            ));
            step.snapshot = None;
            continue;
        }
        if step.view.is_null() {
            step.view = run.as_ref().map(|(_, other)| other.clone()).unwrap_or_default();
            continue;
        }
        // A client asks for notifications in its own way.
        let notifications = run.as_ref().and_then(|(_, other)| other.get("notifications"));
        let view = match notifications {
            Some(notifications) => json!({ "result": step.view, "notifications": notifications }),
            None => step.view.clone(),
        };
        let expected = (hidden(&view, &without), hidden(&view, &with));
        let is_dated = other.0.contains(at.today) && expected.1 == other.1;
        if expected.0 != other.0 && is_dated {
            needs_date = true;
        } else if expected.0 != other.0 {
            failed.push((index, name.clone(), Difference { expected: expected.0, actual: other.0 }));
        }
        step.view = view;
    }
    for (index, name, difference) in failed {
        let Some(step) = second.result.steps.get_mut(index) else { continue };
        let message = "the result differs from the recording".to_owned();
        step.problems.push(Problem { message, snapshot: Some(name), difference: Some(difference), pending: None });
        step.status = Status::Failed;
        if second.result.status == Status::Passed {
            second.result.status = Status::Failed;
        }
    }
    let redactions = if needs_date { with_date } else { found };
    let scenario = parse(&recorded, at, &redactions, &options)?;
    let mut replay = Replay::new(recorded, redactions, scenario, vec![second.result]);
    replay.result.source = Some(replay.recorded.text(at.server, &replay.redactions));
    replay.number_lines();
    replay.notes = notes;
    Ok(replay)
}

impl Replay {
    fn new(recorded: RecordedScenario, redactions: Vec<Json>, scenario: Scenario, cells: Vec<CellResult>) -> Replay {
        let result = ScenarioResult {
            name: scenario.name.clone(),
            path: scenario.path.clone(),
            source: None,
            description: None,
            cells,
            accepted: Vec::new(),
            warnings: Vec::new(),
            again: None,
        };
        Replay { result, notes: Vec::new(), recorded, redactions, scenario }
    }

    /// Redactions have moved the steps.
    fn number_lines(&mut self) {
        for cell in &mut self.result.cells {
            for (result, step) in cell.steps.iter_mut().zip(&self.scenario.steps) {
                (result.line, result.source) = (step.line, step.source.clone());
            }
        }
    }

    /// Writes the scenario, and the recorded answers as its snapshots. `server` is the server as it stands in the file.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, server: &Json) -> io::Result<()> {
        let path = &self.scenario.path;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, self.recorded.text(server, &self.redactions))?;
        let source = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = self.scenario.snapshot_folder();
        for (step, recorded) in self.scenario.steps.iter().zip(&self.recorded.steps) {
            if let Some(name) = &recorded.snapshot {
                let text = hidden(&recorded.view, &self.scenario);
                snapshot::file::write(&folder.join(format!("{name}.snap")), &source, &step.header(), &text)?;
            }
        }
        Ok(())
    }
}

fn parse(
    recorded: &RecordedScenario,
    at: ReplayTarget<'_>,
    redactions: &[Json],
    options: &RunOptions,
) -> Result<Scenario, Diagnostics> {
    let source = Source::new(at.path.display().to_string(), recorded.text(at.server, redactions));
    let mut scenario = Scenario::parse(&source, at.path, options.builtin_scripts)?;
    let _ = scenario.set_target(SERVER, at.target.clone());
    scenario.servers.iter_mut().for_each(|server| server.timeouts = at.timeouts);
    Ok(scenario)
}

fn json_of(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}

/// The text of a view as a snapshot of a scenario.
fn hidden(view: &Json, scenario: &Scenario) -> String {
    let mut view = view.clone();
    let mut used = vec![false; scenario.redactions.len()];
    // With notifications, the result is a member.
    let result = if view.get("notifications").is_some() { &mut view["result"] } else { &mut view };
    apply_at(result, &scenario.redactions, &mut used);
    snapshot_text(view, &scenario.redactions, &known_values(scenario), &mut used)
}
