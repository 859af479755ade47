//! This machine, as a report has it.

use std::{env::consts, thread};

use rehearse_report::bench::Machine;
use rehearse_system::usage::system_state;

/// This machine, as it is before a run.
pub(crate) fn machine() -> Machine {
    let state = system_state();
    Machine {
        system: format!("{} {}", consts::OS, state.release.unwrap_or_default()).trim_end().to_owned(),
        processor: state.processor.unwrap_or_else(|| consts::ARCH.to_owned()),
        processors: thread::available_parallelism().map_or(1, usize::from),
        load: state.load,
    }
}
