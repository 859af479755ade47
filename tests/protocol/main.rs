//! What a conformant mock does, whatever its script says and whatever its clients do.

mod generated;
mod oracle;

use arbitrary::{Arbitrary, Unstructured};
use generated::{Play, play};
use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed},
};

fn plays() -> impl Strategy<Value = Play> {
    proptest::collection::vec(any::<u64>(), 50..400).prop_filter_map("too few bytes", |words| {
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        Play::arbitrary(&mut Unstructured::new(&bytes)).ok()
    })
}

proptest! {
    #![proptest_config(Config { cases: 200, rng_seed: RngSeed::Fixed(1), failure_persistence: None, max_shrink_iters: 400, ..Config::default() })]

    #[test]
    fn what_a_generated_play_brings_is_conformant(generated in plays()) {
        if let Err(why) = play(&generated, oracle::judge) {
            return Err(TestCaseError::fail(format!("{why}\n{}", generated.script.to_json())));
        }
    }
}
