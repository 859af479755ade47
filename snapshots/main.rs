//! Replays every scenario of `scenarios/` against the snapshots beside this file, one test for each cell.
//!
//! The tests are made from the files: a new scenario is a new test, and so is a new example in `docs/`. What differs is
//! passed to insta, so that `cargo insta review` can accept it.

mod commands;
mod docs;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use mcp_rehearsal::{
    builtin_scripts::BUILTIN_SCRIPTS,
    report::{Cell, RunResult, Totals},
    scenario::{Plan, RunOptions, Scenario, Selection, find_scenarios, run},
};
use regex::Regex;
use tokio_util::sync::CancellationToken;

fn main() {
    let mut arguments = Arguments::from_args();
    let threads = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    arguments.test_threads = arguments.test_threads.or_else(threads);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = find_scenarios(&root.join("scenarios")).unwrap_or_else(|error| panic!("{error}"));
    let mut trials = Vec::new();
    let mut impossible = Vec::new();
    for file in files {
        let scenario = Scenario::load(&file, BUILTIN_SCRIPTS).unwrap_or_else(|error| panic!("{error}"));
        for (cell, reason) in scenario.cells() {
            match reason {
                None => trials.push(trial(&scenario.name, &file, cell)),
                Some(reason) => impossible.push((cell.to_string(), reason)),
            }
        }
    }
    let reference = ["scripts", "steps", "items", "server"].map(|name| root.join(format!("docs/mock-{name}.md")));
    trials.extend(reference.iter().flat_map(|page| docs::trials(page)));
    trials.push(docs::reference_trial(&reference));
    let scenarios =
        ["scenarios", "scenario-steps", "running-scenarios"].map(|name| root.join(format!("docs/{name}.md")));
    trials.extend(scenarios.iter().flat_map(|page| docs::trials(page)));
    // What a reader types is for `sh`.
    if cfg!(unix) {
        trials.extend(commands::trials(&docs::pages(root)));
    }
    trials.push(Trial::test("only_cells_that_cannot_exist_are_left_out", move || only_known(&impossible)));
    libtest_mimic::run(&arguments, trials).exit();
}

fn only_known(impossible: &[(String, String)]) -> Result<(), Failed> {
    let known = ["sse/2026-07-28", "http/2024-11-05"];
    match impossible.iter().find(|(cell, _)| !known.contains(&cell.as_str())) {
        Some((cell, reason)) => Err(format!("{cell} is left out: {reason}").into()),
        None => Ok(()),
    }
}

fn trial(scenario: &str, file: &Path, cell: Cell) -> Trial {
    let (name, file) = (format!("{scenario}::{}::{}", cell.transport, cell.protocol), file.to_owned());
    let scenario = scenario.to_owned();
    Trial::test(name, move || replay(&scenario, file, cell))
}

fn replay(name: &str, file: PathBuf, cell: Cell) -> Result<(), Failed> {
    let scenario = Scenario::load(&file, BUILTIN_SCRIPTS)?;
    let folder = scenario.snapshot_folder();
    let filter = Regex::new(&format!("^{}$", regex::escape(&format!("{name}/{cell}"))))?;
    let result = play(scenario, &Selection { filters: vec![filter], ..Selection::default() })?;
    judge(&result, &folder)
}

fn play(scenario: Scenario, selection: &Selection) -> Result<RunResult, Failed> {
    let plan = Plan::new(vec![scenario], selection);
    let options = RunOptions {
        builtin_scripts: BUILTIN_SCRIPTS,
        rehearse: env!("CARGO_BIN_EXE_rehearse").into(),
        ..RunOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    Ok(runtime.block_on(run(plan, options, CancellationToken::new(), |_| {})))
}

fn judge(result: &RunResult, folder: &Path) -> Result<(), Failed> {
    let Totals { passed, failed, errors, not_run, .. } = result.totals;
    if passed > 0 && failed + errors + not_run == 0 {
        return Ok(());
    }
    let mut message = String::new();
    for cell in result.scenarios.iter().flat_map(|scenario| &scenario.cells) {
        message.extend(cell.reason.iter().map(|reason| format!("{reason}\n")));
        for step in &cell.steps {
            for problem in &step.problems {
                message.push_str(&format!("line {} {}: {}\n", step.line, step.title, problem.message));
                if let (Some(difference), Some(key)) = (&problem.difference, &problem.snapshot) {
                    let mut settings = insta::Settings::clone_current();
                    settings.set_snapshot_path(folder);
                    settings.set_prepend_module_to_snapshot(false);
                    settings.set_omit_expression(true);
                    settings.bind(|| insta::assert_snapshot!(key.as_str(), difference.actual));
                }
            }
        }
    }
    Err(message.into())
}
