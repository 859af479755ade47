//! Property tests of a conformant mock, with any script and any clients.

mod bad_input;
mod generated;
mod stress;

use self::generated::{Run, traffic_of};
use arbitrary::{Arbitrary, Unstructured};
use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed},
};

/// The same cases in every run.
fn config(cases: u32) -> Config {
    let rng_seed = RngSeed::Fixed(1);
    Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: 400, ..Config::default() }
}

fn runs() -> impl Strategy<Value = Run> {
    proptest::collection::vec(any::<u64>(), 50..400).prop_filter_map("too few bytes", |words| {
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        Run::arbitrary(&mut Unstructured::new(&bytes)).ok()
    })
}

fn conformant(run: &Run) -> Result<(), TestCaseError> {
    let found = match traffic_of(run) {
        Ok(traffic) => traffic.iter().flat_map(|it| it.violations()).collect(),
        Err(why) => vec![why],
    };
    prop_assert!(found.is_empty(), "{}\n{}", found.join("\n"), run.script.to_json());
    Ok(())
}

proptest! {
    #![proptest_config(config(120))]

    #[test]
    fn generated_exchanges_are_conformant(run in runs()) {
        conformant(&run)?;
    }

    #[test]
    fn generated_task_exchanges_are_conformant(run in runs()) {
        conformant(&run.with_tasks())?;
    }
}
