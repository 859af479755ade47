//! Programs in a process of their own: this binary, which is its own worker.

use std::{env, process::ExitCode};

use libtest_mimic::{Arguments, Trial};

mod golang;
mod javascript;
mod support;

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some("worker") {
        let (stdin, stdout, stderr) = (std::io::BufReader::new(std::io::stdin()), std::io::stdout(), std::io::stderr());
        return rehearse_code_mode::quickjs::work(stdin, stdout, stderr)
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let trial = |(name, test): &support::Test| {
        let (name, test) = (*name, *test);
        Trial::test(name, move || support::run(test()))
    };
    // Go is not on every machine: REHEARSE_GO names it.
    let go: &[support::Test] = if golang::program().is_some() { golang::TESTS } else { &[] };
    let trials = javascript::TESTS.iter().chain(go).map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
