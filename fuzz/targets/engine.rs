//! Generated scripts and clients against the engine, as the tests have them, with more time.

#![no_main]

#[path = "../../crates/mock/src/tests/generated/mod.rs"]
mod generated;

use generated::{Run, traffic_of};
use libfuzzer_sys::fuzz_target;
// `generated` names these as parts of its own crate.
use rehearse_mock::{engine, internals, journal, script};

fuzz_target!(|input: (bool, u8, Run)| {
    let (with_tasks, number, run) = input;
    let run = if with_tasks { run.with_tasks() } else { run };
    let traffic = traffic_of(&run).unwrap_or_else(|why| panic!("{why}\n{}", run.script.to_json()));
    // The judges take most of the time.
    if number.is_multiple_of(8) {
        let found: Vec<_> = traffic.iter().flat_map(|it| it.violations()).collect();
        assert!(found.is_empty(), "{}\n{}", found.join("\n"), run.script.to_json());
    }
});
