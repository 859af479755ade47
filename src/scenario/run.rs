//! Running many scenarios: which cells, how many at once, and what becomes of their snapshots.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use regex::Regex;
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    Scenario,
    cell::{self, Ran},
    snapshot::{self, Mode},
};
use crate::report::{Cell, CellResult, RunResult, ScenarioResult, Status, Totals};

/// The shape of [`RunResult`].
const FORMAT: u32 = 1;

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many cells run at once; at least one.
    pub jobs: usize,
    pub seed: u64,
    pub mode: Mode,
    /// Start nothing new after the first cell that does not pass.
    pub fail_fast: bool,
    /// Go on with the steps of a cell after one has failed.
    pub keep_going: bool,
    /// The `rehearse` binary, which serves mocks over stdio.
    pub rehearse: PathBuf,
}

/// Which cells to run.
#[derive(Debug, Default)]
pub struct Selection {
    /// A cell is selected if its id, `scenario/transport/protocol`, matches one of these; none selects all.
    pub filters: Vec<Regex>,
    /// The part `index` (from 1) of `count` parts.
    pub shard: Option<(usize, usize)>,
}

/// A text that is no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no shard: write i/n with 1 ≤ i ≤ n, for example 1/4")]
pub struct SelectionError(pub String);

impl Selection {
    /// Reads `i/n`.
    ///
    /// # Errors
    /// The text is something else.
    pub fn parse_shard(text: &str) -> Result<(usize, usize), SelectionError> {
        let parts = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        parts.filter(|(index, count)| (1..=*count).contains(index)).ok_or_else(|| SelectionError(text.to_owned()))
    }
}

/// The selected cells of some scenarios.
#[derive(Debug)]
pub struct Plan {
    scenarios: Vec<Planned>,
}

/// A scenario with those of its cells that are selected, and why a cell does not exist, if it does not.
#[derive(Debug)]
struct Planned {
    scenario: Arc<Scenario>,
    cells: Vec<(Cell, Option<String>)>,
}

impl Plan {
    /// Scenarios of which no cell is selected are left out.
    pub fn new(scenarios: Vec<Scenario>, selection: &Selection) -> Plan {
        let mut number = 0;
        let mut selected = |scenario: &Scenario, cell: Cell, exists: bool| {
            let id = format!("{}/{cell}", scenario.name);
            if !selection.filters.is_empty() && !selection.filters.iter().any(|filter| filter.is_match(&id)) {
                return false;
            }
            // What does not exist is shown by the first part, and leaves the others as even as they can be.
            if !exists {
                return selection.shard.is_none_or(|(index, _)| index == 1);
            }
            number += 1;
            selection.shard.is_none_or(|(index, count)| (number - 1) % count == index - 1)
        };
        let scenarios = scenarios.into_iter().filter_map(|scenario| {
            let cells: Vec<_> = scenario
                .cells()
                .into_iter()
                .filter(|(cell, reason)| selected(&scenario, *cell, reason.is_none()))
                .collect();
            (!cells.is_empty()).then(|| Planned { scenario: Arc::new(scenario), cells })
        });
        Plan { scenarios: scenarios.collect() }
    }

    /// Every selected cell: the scenario, the cell, and why it does not exist, if it does not.
    pub fn cells(&self) -> impl Iterator<Item = (&Scenario, Cell, Option<&str>)> {
        self.scenarios.iter().flat_map(|Planned { scenario, cells }| {
            cells.iter().map(|(cell, reason)| (&**scenario, *cell, reason.as_deref()))
        })
    }

    pub fn is_empty(&self) -> bool {
        self.scenarios.is_empty()
    }
}

/// What happens during a run, for a live display.
#[derive(Debug, Clone)]
pub enum Event {
    Started {
        scenario: String,
        cell: Cell,
    },
    /// A cell has ended. With [`Mode::Update`] it may still turn out to differ from the others.
    Finished {
        scenario: String,
        cell: Cell,
        status: Status,
        duration: Duration,
    },
}

/// Runs a plan. Whatever was started is gone when this returns, also if `cancel` ended it.
pub async fn run(
    plan: Plan,
    options: Options,
    cancel: CancellationToken,
    events: impl Fn(Event) + Send + Sync + 'static,
) -> RunResult {
    let started = Instant::now();
    let (options, events) = (Arc::new(options), Arc::new(events));
    let slots = Arc::new(Semaphore::new(options.jobs.max(1)));
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let mut ran: Vec<Vec<Option<Ran>>> = Vec::new();
    for (index, Planned { scenario, cells }) in plan.scenarios.iter().enumerate() {
        ran.push((0..cells.len()).map(|_| None).collect());
        for (position, (cell, reason)) in cells.iter().enumerate() {
            let cell = *cell;
            if let Some(reason) = reason {
                let result = CellResult::without_steps(cell, Status::NotApplicable, reason.clone());
                ran[index][position] = Some(Ran::idle(result));
                continue;
            }
            let (scenario, options, events) = (scenario.clone(), options.clone(), events.clone());
            let (slots, stop, cancel) = (slots.clone(), stop.clone(), cancel.clone());
            tasks.spawn(async move {
                let _slot = slots.acquire().await;
                let not_run = |why: &str| {
                    let result = CellResult::without_steps(cell, Status::NotRun, why);
                    (index, position, Ran::idle(result))
                };
                if cancel.is_cancelled() {
                    return not_run("interrupted");
                }
                if stop.is_cancelled() {
                    return not_run("an earlier cell failed");
                }
                events(Event::Started { scenario: scenario.name.clone(), cell });
                let ran = cell::run(&scenario, cell, &options, &cancel).await;
                let CellResult { mut status, duration, .. } = ran.result;
                let judged = options.mode == Mode::Update || snapshot::holds(&scenario, &ran.recorded);
                if status == Status::Passed && !judged {
                    status = Status::Failed;
                }
                if options.fail_fast && status != Status::Passed {
                    stop.cancel();
                }
                events(Event::Finished { scenario: scenario.name.clone(), cell, status, duration });
                (index, position, ran)
            });
        }
    }
    while let Some(joined) = tasks.join_next().await {
        if let Ok((index, position, finished)) = joined {
            ran[index][position] = Some(finished);
        }
    }
    let judged = plan.scenarios.iter().zip(ran).map(|(planned, ran)| judge(planned, ran, options.mode));
    let scenarios: Vec<_> = judged.collect();
    RunResult {
        format: FORMAT,
        seed: options.seed,
        duration: started.elapsed(),
        totals: Totals::count(&scenarios),
        scenarios,
    }
}

fn judge(planned: &Planned, ran: Vec<Option<Ran>>, mode: Mode) -> ScenarioResult {
    let Planned { scenario, cells } = planned;
    let warnings = unused_redactions(planned, &ran);
    let (mut results, mut recorded) = (Vec::new(), Vec::new());
    for ((cell, _), ran) in cells.iter().zip(ran) {
        let crashed = || CellResult::without_steps(*cell, Status::Error, "the cell crashed; this is a bug of rehearse");
        let ran = ran.unwrap_or_else(|| Ran::idle(crashed()));
        results.push(ran.result);
        recorded.push(ran.recorded);
    }
    if let Err(error) = snapshot::judge(scenario, mode, &mut results, &recorded) {
        for result in &mut results {
            result.status = Status::Error;
            result.reason = Some(format!("a snapshot cannot be written: {error}"));
        }
    }
    let passed = results.iter_mut().flat_map(|cell| &mut cell.steps).filter(|step| step.status == Status::Passed);
    passed.for_each(|step| step.trace.clear());
    ScenarioResult {
        name: scenario.name.clone(),
        path: scenario.path.clone(),
        description: scenario.description.clone(),
        cells: results,
        warnings,
    }
}

/// Says which redactions have hidden nothing, once every cell has come to its end.
fn unused_redactions(planned: &Planned, ran: &[Option<Ran>]) -> Vec<String> {
    let Planned { scenario, cells } = planned;
    let has_ended = |ran: &Option<Ran>| {
        ran.as_ref().is_some_and(|ran| matches!(ran.result.status, Status::Passed | Status::NotApplicable))
    };
    if cells.len() < scenario.cells().len() || !ran.iter().all(has_ended) {
        return Vec::new();
    }
    let is_used = |index: usize| ran.iter().flatten().any(|ran| ran.redacted.get(index).is_some_and(|used| *used));
    let unused = scenario.redactions.iter().enumerate().filter(|(index, _)| !is_used(*index));
    let path = scenario.path.display();
    unused.map(|(_, it)| format!("{path}:{}  the redaction matches nothing in any snapshot", it.line)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Source;

    fn scenario(name: &str) -> Scenario {
        let source = Source::new(name, "servers: { s: { mock: basic } }\nsteps: [{ connect: {} }]");
        Scenario::parse(&source, &Path::new("x").join(format!("{name}.yaml"))).expect("valid")
    }

    fn ids(selection: &Selection) -> Vec<String> {
        let plan = Plan::new(vec![scenario("a"), scenario("b")], selection);
        plan.cells().map(|(scenario, cell, _)| format!("{}/{cell}", scenario.name)).collect()
    }

    #[test]
    fn filters_select_by_id_and_shards_split_without_loss() {
        let filter = |pattern: &str| Selection { filters: vec![Regex::new(pattern).expect(pattern)], shard: None };
        assert_eq!(ids(&filter("^a/http/")), ["a/http/2025-11-25", "a/http/2026-07-28"]);
        assert!(ids(&filter("nothing")).is_empty());
        let mut sharded: Vec<_> =
            (1..=3).flat_map(|index| ids(&Selection { shard: Some((index, 3)), ..Selection::default() })).collect();
        sharded.sort();
        assert_eq!(sharded, {
            let mut all = ids(&Selection::default());
            all.sort();
            all
        });
    }

    #[test]
    fn a_shard_is_written_as_a_fraction() {
        assert_eq!(Selection::parse_shard("2/3"), Ok((2, 3)));
        for text in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(Selection::parse_shard(text).is_err(), "{text}");
        }
    }
}
