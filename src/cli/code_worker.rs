//! `rehearse __code-worker`: runs one program of code mode, with a connection to the process that started it.

use std::io::{self, BufReader};

use super::{Exit, Failure};
use rehearse_code_mode::quickjs::work;

pub(super) fn run() -> Result<Exit, Failure> {
    let done = work(BufReader::new(io::stdin()), io::stdout(), io::stderr());
    done.map(|()| Exit::Success).map_err(|error| Failure::cannot(format!("cannot run the program: {error}")))
}
