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
    // Go is not on every machine; the report says which tests did not run.
    let has_go = support::block_on(golang::toolchain()).is_some();
    let trial = |(name, test): &support::Test| {
        let (name, test) = (*name, *test);
        Trial::test(name, move || support::run(test()))
    };
    let go = golang::TESTS.iter().map(|test| trial(test).with_kind("go").with_ignored_flag(!has_go));
    let trials = javascript::TESTS.iter().map(trial).chain(go).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
