//! Property tests of a conformant mock, with any script and any clients.

mod bad_input;
mod generated;
mod oracle;
mod storm;

use self::generated::{Play, play};
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

fn plays() -> impl Strategy<Value = Play> {
    proptest::collection::vec(any::<u64>(), 50..400).prop_filter_map("too few bytes", |words| {
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        Play::arbitrary(&mut Unstructured::new(&bytes)).ok()
    })
}

fn conformant(generated: &Play) -> Result<(), TestCaseError> {
    let why = |why| TestCaseError::fail(format!("{why}\n{}", generated.script.to_json()));
    play(generated, oracle::judge).map_err(why)
}

proptest! {
    #![proptest_config(config(120))]

    #[test]
    fn generated_exchanges_are_conformant(generated in plays()) {
        conformant(&generated)?;
    }

    #[test]
    fn generated_task_exchanges_are_conformant(generated in plays()) {
        conformant(&generated.with_tasks())?;
    }
}
