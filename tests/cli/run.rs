//! `rehearse run`: signals. The rest is in `tests/console/run.md`, and of first files in `tests/console/init.md`.

use crate::{
    orphans::{gone, started},
    rehearse::Rehearse,
};

const MOCK: &str = "
server: { name: stories }
tools:
  - { name: never, delay: 60s, reply: never }
";

const NEVER: &str = "
servers: { s: { mock: mock.yaml } }
matrix: { transport: [stdio, http], protocol: [2025-11-25] }
steps:
  - { call: { tool: never } }
";

fn story(scenario: &str) -> Rehearse {
    Rehearse::new().file("mock.yaml", MOCK).file("demo.yaml", scenario).env("CI", "").args(["run", "demo.yaml"])
}

#[test]
fn an_interrupted_run_stops_its_servers_and_reports_its_results() {
    let story = story(NEVER).args(["--trace", "--seed", "7"]);
    let (running, processes) = started(story, ["mock.yaml --seed 7", " guard"]);
    running.signal("INT");
    running.end().stderr_has("interrupted").stdout_has("2 not run").code(3);
    gone(&processes);
}
