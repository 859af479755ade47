//! `rehearse check` within its budget. The rest is in `tests/console/check.md`.

use std::time::{Duration, Instant};

use crate::rehearse::Rehearse;

#[test]
fn a_server_that_never_answers_costs_no_more_than_the_budget() {
    let silent = "sh -c 'while read -r line; do case $line in *initialize\\\"*) \
                  echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"result\\\":{\\\"protocolVersion\\\":\\\"2025-11-25\\\",\
                  \\\"capabilities\\\":{\\\"tools\\\":{}},\\\"serverInfo\\\":{\\\"name\\\":\\\"s\\\",\\\"version\\\":\\\"1\\\"}}}\";; \
                  esac; done'";
    let started = Instant::now();
    let run = Rehearse::new().args([
        "check",
        "--stdio",
        silent,
        "--budget",
        "3s",
        "--timeout",
        "1s",
        "--protocol",
        "2025-11-25",
    ]);
    let checks = ["--only", "rpc.timeout", "--only", "tools", "--only", "ping"];
    let run = run.args(checks).run().code(1).stdout_has("\n  rpc.timeout.answers-every-request   ");
    let failed = run.stdout_text().lines().filter(|line| line.starts_with("✗ "));
    assert_eq!(failed.count(), 1, "{}", run.stdout_text());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
