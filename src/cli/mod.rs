//! The command line: the only place with clap, colour, printing and exit codes. One file per subcommand.
//!
//! Results go to stdout, everything else to stderr. Both are coloured only on a terminal, and as `NO_COLOR`, `CLICOLOR`
//! and `CLICOLOR_FORCE` say.

mod agent_config;
mod background;
mod bench;
mod check;
#[cfg(feature = "code-mode")]
mod code_worker;
mod completions;
mod config;
mod conversation;
mod diff;
mod failure;
mod file_watch;
mod final_answer;
mod format;
mod fuzz;
mod fuzz_corpus;
mod host;
mod hosts_args;
mod init;
mod input;
mod job;
mod log;
mod mcp;
mod mcp_command;
mod mock;
mod model;
mod output;
mod process_guard;
mod profile;
mod record;
mod repl;
mod replay;
mod report;
mod repository;
mod run;
mod scenario_server;
mod schema;
mod secrets;
mod serve;
mod shard;
mod signals;
mod sinks;
mod sources;
mod spans;
mod style;
mod terminal_user;
mod tool_permission_args;
mod trace;
mod trace_file;
mod usage_hint;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ContextKind};

use self::{failure::Failure, format::Format};
use rehearse_system::process::ReaperProcess;

/// The exit codes of `rehearse`. They are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: success.
    Success,
    /// 1: a check failed.
    Violation,
    /// 2: wrong usage, or a file with mistakes. Nothing was run.
    Usage,
    /// 3: could not run: a server did not start, a port is taken, a file cannot be written; or interrupted.
    CannotRun,
    /// 4: nothing was selected.
    NothingSelected,
    /// The code of a mock script's `exit` step.
    Scripted(u8),
    /// The code of a command that `--exec` ran and that failed.
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

macro_rules! examples {
    () => {
        "\
Examples:
  rehearse mock basic --listen 8888                         a mock server for your client
  rehearse check -- node server.js                          your server against the specification
  rehearse run scenarios/                                   snapshot tests of your server
  rehearse mcp list-tools --http http://127.0.0.1:8888/mcp  a look at any server"
    };
}

const AFTER_HELP: &str = concat!(
    examples!(),
    "

Exit codes:
  0  success
  1  a check failed: an expectation, a snapshot, a config error
  2  wrong usage, or a file with mistakes; nothing was run
  3  could not run: a server did not start, a port is taken; or interrupted
  4  nothing was selected

`rehearse --validate-config [FILE]` is short for `rehearse validate-config [FILE]`."
);

/// Test MCP clients and servers: mock servers, snapshot tests and config checks
#[derive(Debug, Parser)]
#[command(name = "rehearse", version, styles = style::HELP, max_term_width = 100, after_help = examples!(), after_long_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Messages on standard error as text or as JSON: human or json
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    #[arg(hide_short_help = true, hide_default_value = true)]
    log_format: Format,
}

#[derive(Debug, Subcommand)]
enum Command {
    Mock(mock::MockArgs),
    Run(Box<run::RunArgs>),
    Check(Box<check::CheckArgs>),
    Diff(Box<diff::DiffArgs>),
    Surface(Box<mcp::SurfaceArgs>),
    Fuzz(Box<fuzz::FuzzArgs>),
    Host(Box<host::HostArgs>),
    Bench(bench::BenchArgs),
    Report(report::ReportArgs),
    Mcp(Box<mcp_command::McpArgs>),
    Record(record::RecordArgs),
    Trace(trace::TraceArgs),
    Serve(serve::ServeArgs),
    Model(model::ModelArgs),
    #[command(visible_aliases = ["convo", "conv"])]
    Conversation(conversation::ConversationArgs),
    #[command(aliases = ["lint", "validate"])]
    ValidateConfig(config::ValidateArgs),
    Config(config::ConfigArgs),
    Repl(Box<repl::ReplArgs>),
    Chat(Box<repl::ChatArgs>),
    Init(Box<init::InitArgs>),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Man(completions::ManArgs),
    FinalAnswer(final_answer::FinalAnswerArgs),
    Codegen(Box<mcp::CodegenArgs>),
    /// Run a program of a model, for the process that started this one
    #[cfg(feature = "code-mode")]
    #[command(hide = true, name = "__code-worker")]
    CodeWorker,
    /// Kill the processes of a run that was killed
    #[command(hide = true)]
    Guard,
    /// Serve a mock of another process on stdio
    #[command(hide = true)]
    Relay(mock::RelayArgs),
    /// Request a page in place of a browser, for a client that is checked
    #[command(hide = true)]
    Browse(check::BrowseArgs),
}

impl Command {
    fn run(self) -> Result<Exit, Failure> {
        if self.talks_to_servers() {
            // Before any blocking read, such as of standard input.
            signals::catch().map_err(|error| Failure::cannot(format!("cannot handle signals: {error}")))?;
        }
        match self {
            Command::Mock(args) => mock::run(args),
            Command::Run(args) => run::run(*args),
            Command::Check(args) => check::run(&args),
            Command::Diff(args) => diff::run(&args),
            Command::Surface(args) => mcp::write_surface(&args),
            Command::Fuzz(args) => fuzz::run(&args),
            Command::Host(args) => host::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::Report(args) => report::run(&args),
            Command::ValidateConfig(args) => config::validate(args),
            Command::Config(args) => config::run(args),
            Command::Mcp(args) => mcp_command::run(&args),
            Command::Record(args) => record::run(&args),
            Command::Trace(args) => trace::run(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Model(args) => model::run(args),
            Command::Conversation(args) => conversation::run(&args),
            Command::Repl(args) => repl::run(*args),
            Command::Chat(args) => repl::chat(*args),
            Command::Init(args) => init::run(&args),
            Command::Schema(args) => schema::run(&args),
            Command::Completions(args) => completions::print(&args, full_help(Cli::command())),
            Command::Man(args) => completions::write_pages(&args, full_help(Cli::command())),
            Command::FinalAnswer(args) => final_answer::run(&args),
            Command::Codegen(args) => mcp::write_bindings(&args),
            #[cfg(feature = "code-mode")]
            Command::CodeWorker => code_worker::run(),
            Command::Guard => {
                ReaperProcess::watch(std::io::stdin().lock());
                Ok(Exit::Success)
            }
            Command::Relay(args) => mock::relay(&args),
            Command::Browse(args) => check::browse(&args),
        }
    }

    /// Whether a signal ends the command with its own exit code at any time.
    fn talks_to_servers(&self) -> bool {
        matches!(
            self,
            Command::Check(_)
                | Command::Codegen(_)
                | Command::Init(_)
                | Command::Diff(_)
                | Command::Host(_)
                | Command::Surface(_)
                | Command::Mcp(_)
                | Command::Record(_)
                | Command::Repl(_)
                | Command::Run(_)
                | Command::Serve(_)
        )
    }
}

/// Runs the command of this process and returns its exit code.
pub(crate) fn main() -> ExitCode {
    let args = config::replace_validate_flag(std::env::args_os());
    let is_full = args.iter().any(|arg| arg == "--help" || arg == "help");
    let command = if is_full { full_help(Cli::command()) } else { Cli::command() };
    let exit = match command.try_get_matches_from(&args).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            if cli.log_format == Format::Json {
                log::use_json();
            }
            cli.command.run()
        }
        Err(mut error) if error.use_stderr() => {
            let hint = usage_hint::usage_hint(&error, &Cli::command(), &args);
            if hint.is_some() {
                error.remove(ContextKind::Suggested);
            }
            usage_hint::remove_wrong_tip(&mut error);
            let _ = error.print();
            if let Some(hint) = hint {
                style::print(&format!("{STRONG}hint:{STRONG:#} {hint}\n", STRONG = style::STRONG));
            }
            Ok(Exit::Usage)
        }
        Err(help) => output::write_styled(help.render().ansi().to_string().as_bytes()).map(|()| Exit::Success),
    };
    let exit = exit.and_then(|exit| output::check_writes().map(|()| exit)).unwrap_or_else(Failure::report);
    exit.into()
}

/// Makes `--help` list every option in the compact layout of `-h`, which clap uses only where both are the same.
fn full_help(command: clap::Command) -> clap::Command {
    let (about, after) = (command.get_long_about().cloned(), command.get_after_long_help().cloned());
    let mut command = command.mut_args(|arg| arg.hide_short_help(false));
    if let Some(about) = about {
        command = command.about(about).long_about(None);
    }
    if let Some(after) = after {
        // The dialects are read only if they are shown.
        let after = match after.to_string() {
            text if text.contains(sources::dialect_name::DIALECTS) => {
                text.replace(sources::dialect_name::DIALECTS, &sources::dialect_name::dialects()).into()
            }
            _ => after,
        };
        command = command.after_help(after).after_long_help(None);
    }
    command.mut_subcommands(full_help)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_fits_a_screen() {
        fn check(command: &clap::Command, path: &[&str]) {
            for (flag, max_lines, root) in [("-h", 40, Cli::command()), ("--help", 84, full_help(Cli::command()))] {
                let help = root.try_get_matches_from([path, &[flag]].concat()).expect_err("help").to_string();
                assert!(help.lines().count() <= max_lines, "{} lines: {help}", help.lines().count());
            }
            command.get_subcommands().for_each(|command| check(command, &[path, &[command.get_name()]].concat()));
        }
        check(&Cli::command(), &["rehearse"]);
    }

    /// What every command that opens a session has.
    const SESSION: [&str; 12] = [
        "mcp-config",
        "config",
        "dialect",
        "stdio",
        "http",
        "sse",
        "ws",
        "header",
        "token",
        "env",
        "timeout",
        "start-timeout",
    ];

    /// Commands that name a server and open no session of MCP with it, or only where they run scenarios.
    const OTHERS: [&str; 3] = ["rehearse mcp auth", "rehearse mcp list-servers", "rehearse run"];

    #[test]
    fn every_command_that_opens_a_session_has_the_same_options() {
        fn check(command: &clap::Command, path: &str, values: &mut BTreeMap<String, String>) {
            let longs: Vec<_> = command.get_arguments().filter_map(|it| Some((it.get_long()?, it))).collect();
            let has = |name: &str| longs.iter().any(|(long, _)| *long == name);
            if has("http") && !OTHERS.contains(&path) {
                let missing: Vec<_> = SESSION.iter().filter(|name| !has(name)).collect();
                assert!(missing.is_empty(), "{path}: {missing:?}");
                let protocol = longs.iter().find(|(long, _)| *long == "protocol").expect("--protocol").1;
                assert_eq!(protocol.get_all_aliases(), Some(vec!["protocol-version"]), "{path}");
                // Such an option takes the same thing everywhere.
                let is_same =
                    |long: &str| SESSION.contains(&long) || ["protocol", "allow-tool", "tool-args"].contains(&long);
                for (long, option) in longs.iter().filter(|(long, _)| is_same(long)) {
                    let names = option.get_value_names().unwrap_or_default();
                    let value = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
                    let known = values.entry((*long).to_owned()).or_insert_with(|| value.clone());
                    assert_eq!(*known, value, "{path} --{long}");
                }
            }
            for command in command.get_subcommands() {
                check(command, &format!("{path} {}", command.get_name()), values);
            }
        }
        let mut values = BTreeMap::new();
        check(&Cli::command(), "rehearse", &mut values);
        assert!(values.contains_key("tool-args"));
    }

    #[test]
    fn every_exit_code_is_in_the_help() {
        for exit in [Exit::Success, Exit::Violation, Exit::Usage, Exit::CannotRun, Exit::NothingSelected] {
            assert!(AFTER_HELP.contains(&format!("\n  {}  ", exit.code())), "{exit:?}");
        }
    }
}
