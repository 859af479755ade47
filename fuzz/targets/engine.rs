//! Generated scripts and clients against the laws of the engine, as the tests have them, with more time.

#![no_main]

#[path = "../../crates/mock/src/tests/generated/mod.rs"]
mod generated;

use generated::{Law, Play, Said, What, play};
use libfuzzer_sys::fuzz_target;
// `generated` names these as parts of its own crate.
use rehearse_mock::{engine, internals, journal, script};

/// Who knows the protocol besides the laws judges in the tests only; they would be too slow here.
fn judge(said: &Said<'_>) -> Law {
    let has_id = said.message.get("id").is_some();
    match said.what {
        What::Request if !has_id => Err(format!("{}: a request without an id", said.version)),
        What::Notification if has_id => Err(format!("{}: a notification with an id", said.version)),
        _ => Ok(()),
    }
}

fuzz_target!(|input: (bool, Play)| {
    let (with_tasks, generated) = input;
    let generated = if with_tasks { generated.with_tasks() } else { generated };
    if let Err(why) = play(&generated, judge) {
        panic!("{why}\n{}", generated.script.to_json());
    }
});
