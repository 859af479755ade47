//! Commands for the configs of other programs. One file each.

mod checked_file;
mod connect;
mod convert;
mod release;
mod show;
mod tool_names;
mod validate;

use std::ffi::OsString;

use clap::{Args, Subcommand};

pub(super) use self::validate::{ValidateArgs, run as validate};
use super::{Exit, Failure};

/// Show, check or convert MCP client config files
#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    Convert(convert::ConvertArgs),
    /// The same as `rehearse validate-config`
    Lint(Box<ValidateArgs>),
    Show(show::ShowArgs),
}

pub(super) fn run(args: ConfigArgs) -> Result<Exit, Failure> {
    match args.command {
        ConfigCommand::Convert(args) => convert::run(&args),
        ConfigCommand::Lint(args) => validate(*args),
        ConfigCommand::Show(args) => show::run(&args),
    }
}

/// Replaces the flag `--validate-config` by the subcommand, if no other command comes first.
pub(super) fn replace_validate_flag(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const FLAG: &str = "--validate-config";
    let mut args: Vec<_> = args.collect();
    let is_flag = |arg: &OsString| arg == FLAG || arg.to_str().is_some_and(|it| it.starts_with("--validate-config="));
    let begins_with_an_option = args.get(1).is_some_and(|arg| arg.as_encoded_bytes().starts_with(b"-"));
    if !begins_with_an_option {
        return args;
    }
    let before_dashes = args.iter().take_while(|arg| *arg != "--");
    let Some(at) = before_dashes.enumerate().find(|(_, arg)| is_flag(arg)).map(|(at, _)| at) else { return args };
    let flag = args.remove(at);
    if let Some((_, file)) = flag.to_str().and_then(|flag| flag.split_once('=')) {
        args.insert(at, file.into());
    }
    args.insert(1, FLAG.trim_start_matches('-').into());
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_is_the_command_at_any_position_among_options() {
        let rewritten = |line: &str| {
            let args = replace_validate_flag(line.split(' ').map(OsString::from));
            args.iter().map(|arg| arg.to_str().expect("UTF-8")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(rewritten("r --validate-config"), "r validate-config");
        assert_eq!(rewritten("r --validate-config a.json --strict"), "r validate-config a.json --strict");
        assert_eq!(rewritten("r --validate-config=a.json"), "r validate-config a.json");
        assert_eq!(rewritten("r --format json --validate-config a"), "r validate-config --format json a");
        for other in ["r", "r --help", "r mock x --exec -- c --validate-config", "r -- --validate-config"] {
            assert_eq!(rewritten(other), other);
        }
    }
}
