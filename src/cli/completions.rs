//! `rehearse completions` and `rehearse man`: what packages install besides the program.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use super::{Exit, Failure, output};

const EXAMPLES: &str = "\
Examples:
  rehearse completions bash > ~/.local/share/bash-completion/completions/rehearse
  rehearse completions zsh > ~/.zfunc/_rehearse
  rehearse completions fish > ~/.config/fish/completions/rehearse.fish";

/// Print the completions of a shell: bash, elvish, fish, powershell or zsh
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(hide_possible_values = true)]
    shell: Shell,
}

/// Write the man pages to a folder
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// The folder; it is created if it does not exist
    folder: PathBuf,
}

pub(super) fn print(args: &CompletionsArgs, mut command: Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "rehearse", &mut script);
    output::write(&script)?;
    Ok(Exit::Success)
}

pub(super) fn write_pages(args: &ManArgs, command: Command) -> Result<Exit, Failure> {
    let written = std::fs::create_dir_all(&args.folder).and_then(|()| clap_mangen::generate_to(command, &args.folder));
    written.map_err(|error| Failure::cannot(format!("cannot write to {}: {error}", args.folder.display())))?;
    Ok(Exit::Success)
}
