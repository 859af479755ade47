//! The command line: the only place with clap, colour, printing and exit codes. One file per subcommand.
//!
//! Results go to stdout, everything else to stderr. Both are coloured only on a terminal, and as `NO_COLOR`, `CLICOLOR`
//! and `CLICOLOR_FORCE` say.

mod background;
mod config;
mod conformance;
mod failure;
mod final_answer;
mod format;
mod input;
mod mcp;
mod mock;
mod output;
mod process_guard;
mod repl;
mod run;
mod schema;
mod signals;
mod style;
mod terminal_user;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::{failure::Failure, format::Format};
use crate::client::Guard;

/// What the exit code of `rehearse` says. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: everything held, or the work is done.
    Success,
    /// 1: a violation, a mismatch, or an expectation that was not met.
    Violation,
    /// 2: wrong usage, or a file that does not parse or validate. Nothing was run.
    Usage,
    /// 3: it could not run: a server did not start, a port is taken, a file cannot be written; or it was interrupted.
    CannotRun,
    /// 4: nothing was selected.
    NothingSelected,
    /// The code with which a mock's script lets the server die.
    Scripted(u8),
    /// The code with which a command failed that was run.
    Command(u8),
}

impl Exit {
    /// The code of the process.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Violation => 1,
            Exit::Usage => 2,
            Exit::CannotRun => 3,
            Exit::NothingSelected => 4,
            Exit::Scripted(code) | Exit::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

const EXIT_CODES: &str = "\
Exit codes:
  0  everything held
  1  a violation, a mismatch, or an expectation that was not met
  2  wrong usage, or a file that does not parse or validate
  3  could not run: a command cannot be started, a port is taken; or it was interrupted
  4  nothing was selected

`rehearse --validate-config [FILE]` is `rehearse validate-config [FILE]`.";

/// Rehearse an MCP client or server before it meets the real world.
#[derive(Debug, Parser)]
#[command(name = "rehearse", version, styles = style::HELP, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Mock(mock::MockArgs),
    Run(run::RunArgs),
    ValidateConfig(config::ValidateArgs),
    Config(config::ConfigArgs),
    Mcp(Box<mcp::McpArgs>),
    Repl(Box<repl::ReplArgs>),
    Schema(schema::SchemaArgs),
    ConformanceClient(conformance::ConformanceArgs),
    FinalAnswer(final_answer::FinalAnswerArgs),
    /// Kill what a run has left behind that was itself killed
    #[command(hide = true)]
    Guard,
    /// Be a mock on stdio for the one that serves it elsewhere
    #[command(hide = true)]
    Relay(mock::RelayArgs),
}

impl Command {
    fn run(self) -> Result<Exit, Failure> {
        if self.talks_to_servers() {
            // What is read before that may never come, such as standard input.
            signals::catch().map_err(|error| Failure::cannot(format!("signals cannot be handled: {error}")))?;
        }
        match self {
            Command::Mock(args) => mock::run(args),
            Command::Run(args) => run::run(args),
            Command::ValidateConfig(args) => config::validate(args),
            Command::Config(args) => config::run(&args),
            Command::Mcp(args) => mcp::run(&args),
            Command::Repl(args) => repl::run(*args),
            Command::Schema(args) => schema::run(&args),
            Command::ConformanceClient(args) => conformance::run(args),
            Command::FinalAnswer(args) => final_answer::run(&args),
            Command::Guard => {
                Guard::watch(std::io::stdin().lock());
                Ok(Exit::Success)
            }
            Command::Relay(args) => mock::relay(&args),
        }
    }

    /// Whether being interrupted has an exit code of its own, at any moment.
    fn talks_to_servers(&self) -> bool {
        matches!(self, Command::Mcp(_) | Command::Repl(_) | Command::Run(_))
    }
}

/// Runs the command that the arguments of this process ask for, and gives the exit code.
pub fn main() -> ExitCode {
    let exit = match Cli::try_parse_from(config::without_flag_form(std::env::args_os())) {
        Ok(cli) => cli.command.run().unwrap_or_else(Failure::report),
        Err(error) => {
            // Help that nobody reads any more is no failure.
            let _ = error.print();
            if error.use_stderr() { Exit::Usage } else { Exit::Success }
        }
    };
    exit.into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_exit_code_is_in_the_help() {
        for exit in [Exit::Success, Exit::Violation, Exit::Usage, Exit::CannotRun, Exit::NothingSelected] {
            assert!(EXIT_CODES.contains(&format!("\n  {}  ", exit.code())), "{exit:?}");
        }
    }
}
