//! Running scenarios: the selection of cells, the order of execution and the snapshots.

mod action_runner;
mod agent_runner;
pub(crate) mod cell_run;
mod client_requests;
mod connections;
mod error;
mod eval_runner;
mod evaluation;
mod hooks;
mod host_runner;
mod hub_runner;
mod notification;
mod pause;
mod running_server;
mod snapshot_check;

pub use hooks::{CellServer, RecordSink, TrafficHooks, TrafficJudge};
pub use snapshot_check::{RecordedSnapshot, SnapshotMode};

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use regex::Regex;
use tokio::{
    sync::{Mutex as AsyncMutex, Semaphore},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use self::cell_run::CellRun;
use super::{
    coverage::Usage,
    file::{ModelOptions, Scenario, host::Host},
};
use rehearse_mock::script::BuiltinScript;
use rehearse_report::{Cell, CellResult, RunResult, ScenarioResult, Shard, Status, Totals};

/// The options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// How many cells run at once; at least one.
    pub jobs: usize,
    /// The seed of all randomness.
    pub seed: u64,
    /// What to do with snapshots that differ.
    pub mode: SnapshotMode,
    /// Start no further cell after the first one that does not pass.
    pub fail_fast: bool,
    /// How often each cell runs; at least once.
    pub repeat: u32,
    /// Run the remaining steps of a cell after one has failed.
    pub keep_going: bool,
    /// The mock scripts that scenarios may name.
    pub builtin_scripts: &'static [BuiltinScript],
    /// The `rehearse` binary, which serves mocks over stdio.
    pub rehearse: PathBuf,
    /// What sees the traffic.
    pub hooks: TrafficHooks,
    /// Whether the result says what of the servers was used.
    pub coverage: bool,
    /// The program whose place the client takes.
    pub host: Option<Host>,
    /// The models that play steps.
    pub models: ModelOptions,
    /// The folder with installed hosts.
    pub hosts: Option<PathBuf>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            jobs: 1,
            seed: 1,
            mode: SnapshotMode::Check,
            fail_fast: false,
            repeat: 1,
            keep_going: false,
            builtin_scripts: &[],
            rehearse: "rehearse".into(),
            hooks: TrafficHooks::default(),
            coverage: false,
            host: None,
            models: ModelOptions::default(),
            hosts: None,
        }
    }
}

/// Selects the cells to run.
#[derive(Debug, Default)]
pub struct Selection {
    /// Regular expressions for cell ids, `scenario/transport/protocol`. Without filters all cells are selected.
    pub filters: Vec<Regex>,
    /// The part of them that runs.
    pub shard: Option<Shard>,
    /// How long cells took in an earlier run, by their ids; it makes the parts equally long.
    pub durations: BTreeMap<String, Duration>,
}

/// The selected cells of some scenarios.
#[derive(Debug)]
pub struct Plan {
    scenarios: Vec<PlannedScenario>,
}

/// A scenario with its selected cells, each with the reason if it is not applicable.
#[derive(Debug)]
struct PlannedScenario {
    scenario: Arc<Scenario>,
    cells: Vec<(Cell, Option<String>)>,
}

impl Plan {
    /// Applies a selection. Scenarios without a selected cell are left out.
    pub fn new(scenarios: Vec<Scenario>, selection: &Selection) -> Plan {
        let is_selected =
            |id: &str| selection.filters.is_empty() || selection.filters.iter().any(|filter| filter.is_match(id));
        let scenarios = scenarios.into_iter().map(|scenario| {
            let is_selected = |(cell, _): &(Cell, _)| is_selected(&format!("{}/{cell}", scenario.name));
            let cells = scenario.cells().into_iter().filter(is_selected).collect();
            PlannedScenario { scenario: Arc::new(scenario), cells }
        });
        let mut plan = Plan { scenarios: scenarios.collect() };
        if let Some(shard) = selection.shard {
            let ran = plan.cells().filter(|(.., reason)| reason.is_none());
            let duration = |(scenario, cell, _): (&Scenario, Cell, _)| {
                selection.durations.get(&format!("{}/{cell}", scenario.name)).copied()
            };
            let mut selected = shard.selects(&ran.map(duration).collect::<Vec<_>>()).into_iter();
            for planned in &mut plan.scenarios {
                // Cells that are not applicable belong to the first shard, so that all shards have equal work.
                planned.cells.retain(|(_, reason)| match reason {
                    Some(_) => shard.index == 1,
                    None => selected.next().unwrap_or_default(),
                });
            }
        }
        plan.scenarios.retain(|planned| !planned.cells.is_empty());
        plan
    }

    /// Every selected cell with its scenario, and the reason if it is not applicable.
    pub fn cells(&self) -> impl Iterator<Item = (&Scenario, Cell, Option<&str>)> {
        self.scenarios.iter().flat_map(|PlannedScenario { scenario, cells }| {
            cells.iter().map(|(cell, reason)| (&**scenario, *cell, reason.as_deref()))
        })
    }

    /// Whether no cell is selected.
    pub fn is_empty(&self) -> bool {
        self.scenarios.is_empty()
    }
}

/// An event of a run, for a live display.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// A cell has started.
    Started {
        /// The name of the scenario.
        scenario: String,
        /// The cell.
        cell: Cell,
    },
    /// A cell has ended. With [`SnapshotMode::Update`] it may still differ from the other cells.
    Finished {
        /// The name of the scenario.
        scenario: String,
        /// The cell.
        cell: Cell,
        /// How the cell ended.
        status: Status,
        /// How long the cell took.
        duration: Duration,
    },
}

/// Runs a plan. Everything that it started has ended when this returns, even after `cancel`.
pub async fn run(
    plan: Plan,
    options: RunOptions,
    cancel: CancellationToken,
    events: impl Fn(RunEvent) + Send + Sync + 'static,
) -> RunResult {
    let started = Instant::now();
    let (options, events) = (Arc::new(options), Arc::new(events));
    let slots = Arc::new(Semaphore::new(options.jobs.max(1)));
    // Commands that listen on the same address run one after the other.
    let mut addresses: BTreeMap<String, Arc<AsyncMutex<()>>> = BTreeMap::new();
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let mut usage = options.coverage.then(Usage::default);
    let mut ran: Vec<Vec<Option<CellRun>>> = Vec::new();
    for (index, PlannedScenario { scenario, cells }) in plan.scenarios.iter().enumerate() {
        ran.push((0..cells.len()).map(|_| None).collect());
        for (position, (cell, reason)) in cells.iter().enumerate() {
            let cell = *cell;
            if let Some(reason) = reason {
                let result = CellResult::without_steps(cell, Status::NotApplicable, reason.clone());
                ran[index][position] = Some(CellRun::without_steps(result));
                continue;
            }
            let (scenario, options, events) = (scenario.clone(), options.clone(), events.clone());
            let (slots, stop, cancel) = (slots.clone(), stop.clone(), cancel.clone());
            let own: BTreeSet<_> =
                scenario.servers.iter().filter_map(|server| server.fixed_address(cell.transport)).collect();
            // In order, so that no two cells wait for each other.
            let own: Vec<_> = own.into_iter().map(|address| addresses.entry(address).or_default().clone()).collect();
            tasks.spawn(async move {
                let mut turns = Vec::new();
                for address in own {
                    turns.push(address.lock_owned().await);
                }
                let _slot = slots.acquire().await;
                let not_run = |why: &str| {
                    let result = CellResult::without_steps(cell, Status::NotRun, why);
                    (index, position, CellRun::without_steps(result))
                };
                if cancel.is_cancelled() {
                    return not_run("interrupted");
                }
                if stop.is_cancelled() {
                    return not_run("an earlier cell failed");
                }
                events(RunEvent::Started { scenario: scenario.name.clone(), cell });
                let ran = cell_run::run(&scenario, cell, &options, &cancel).await;
                let CellResult { mut status, duration, .. } = ran.result;
                let is_accepted =
                    options.mode == SnapshotMode::Update || snapshot_check::holds(&scenario, &ran.recorded);
                if status == Status::Passed && !is_accepted {
                    status = Status::Failed;
                }
                if options.fail_fast && status != Status::Passed {
                    stop.cancel();
                }
                events(RunEvent::Finished { scenario: scenario.name.clone(), cell, status, duration });
                (index, position, ran)
            });
        }
    }
    while let Some(joined) = tasks.join_next().await {
        if let Ok((index, position, mut finished)) = joined {
            if let Some(usage) = &mut usage {
                usage.merge(std::mem::take(&mut finished.usage));
            }
            ran[index][position] = Some(finished);
        }
    }
    let results = plan.scenarios.iter().zip(ran).map(|(planned, ran)| scenario_result(planned, ran, options.mode));
    let scenarios: Vec<_> = results.collect();
    RunResult {
        duration: started.elapsed(),
        totals: Totals::count(&scenarios),
        scenarios,
        coverage: usage.map(|usage| usage.coverage()),
        ..RunResult::new(options.seed)
    }
}

fn scenario_result(planned: &PlannedScenario, ran: Vec<Option<CellRun>>, mode: SnapshotMode) -> ScenarioResult {
    let PlannedScenario { scenario, cells } = planned;
    let warnings = unused_redactions(planned, &ran);
    let (mut results, mut recorded) = (Vec::new(), Vec::new());
    for ((cell, _), ran) in cells.iter().zip(ran) {
        let crashed =
            || CellResult::without_steps(*cell, Status::Error, "the cell panicked; this is a bug in rehearse");
        let ran = ran.unwrap_or_else(|| CellRun::without_steps(crashed()));
        results.push(ran.result);
        recorded.push(ran.recorded);
    }
    let accepted = snapshot_check::check(scenario, mode, &mut results, &recorded).unwrap_or_else(|error| {
        for result in &mut results {
            result.status = Status::Error;
            result.reason = Some(format!("cannot write a snapshot: {error}"));
        }
        Vec::new()
    });
    let passed = results.iter_mut().flat_map(|cell| &mut cell.steps).filter(|step| step.status == Status::Passed);
    passed.for_each(|step| step.trace.clear());
    let has_failed = results.iter().any(|cell| matches!(cell.status, Status::Failed | Status::Error));
    // The file may have changed, or be gone; then the lines of the steps say enough.
    let source = has_failed.then(|| std::fs::read_to_string(&scenario.path).ok()).flatten();
    ScenarioResult {
        name: scenario.name.clone(),
        path: scenario.path.clone(),
        source,
        description: scenario.description.clone(),
        cells: results,
        accepted,
        warnings,
        again: None,
    }
}

/// Warnings about redactions that matched nothing, if every cell ran to its end.
fn unused_redactions(planned: &PlannedScenario, ran: &[Option<CellRun>]) -> Vec<String> {
    let PlannedScenario { scenario, cells } = planned;
    let has_ended = |ran: &Option<CellRun>| {
        ran.as_ref().is_some_and(|ran| matches!(ran.result.status, Status::Passed | Status::NotApplicable))
    };
    if cells.len() < scenario.cells().len() || !ran.iter().all(has_ended) {
        return Vec::new();
    }
    let is_used = |index: usize| ran.iter().flatten().any(|ran| ran.redacted.get(index).is_some_and(|used| *used));
    let unused = scenario.redactions.iter().enumerate().filter(|(index, _)| !is_used(*index));
    let path = scenario.path.display();
    unused.map(|(_, it)| format!("{path}:{}  the redaction matches no snapshot", it.line)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use rehearse_document::Source;

    fn scenario(name: &str) -> Scenario {
        let source = Source::new(name, "servers: { s: { mock: basic } }\nsteps: [{ connect: {} }]");
        Scenario::parse(&source, &Path::new("x").join(format!("{name}.yaml")), crate::tests::BUILTINS).expect("valid")
    }

    fn ids(selection: &Selection) -> Vec<String> {
        let plan = Plan::new(vec![scenario("a"), scenario("b")], selection);
        plan.cells().map(|(scenario, cell, _)| format!("{}/{cell}", scenario.name)).collect()
    }

    #[test]
    fn filters_select_by_id_and_shards_split_without_loss() {
        let filter =
            |pattern: &str| Selection { filters: vec![Regex::new(pattern).expect(pattern)], ..Selection::default() };
        assert_eq!(ids(&filter("^a/http/")), ["a/http/2025-11-25", "a/http/2026-07-28"]);
        assert!(ids(&filter("nothing")).is_empty());
        let of_shard = |index, durations: &BTreeMap<String, Duration>| {
            ids(&Selection { shard: Shard::new(index, 3), durations: durations.clone(), ..Selection::default() })
        };
        let mut sharded: Vec<_> = (1..=3).flat_map(|index| of_shard(index, &BTreeMap::new())).collect();
        sharded.sort();
        assert_eq!(sharded, {
            let mut all = ids(&Selection::default());
            all.sort();
            all
        });
        let slow = BTreeMap::from([("b/http/2026-07-28".to_owned(), Duration::from_secs(9))]);
        let quick = ids(&Selection::default()).into_iter().map(|id| (id, Duration::from_millis(1)));
        let durations = quick.chain(slow).collect();
        // With those that are not applicable.
        assert_eq!(of_shard(1, &durations), ["a/sse/2026-07-28", "b/http/2026-07-28", "b/sse/2026-07-28"]);
    }
}
