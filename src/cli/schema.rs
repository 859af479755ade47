//! `rehearse schema`: JSON Schemas of the files that people write, for their editors.

use std::io::Write;

use super::Exit;
use crate::mock::script;

const EXAMPLES: &str = "\
Examples:
  rehearse schema script > mock-script.schema.json

In a script, for an editor with the YAML language server (in VS Code, the extension `redhat.vscode-yaml`):
  # yaml-language-server: $schema=./mock-script.schema.json";

/// Print the JSON Schema of a kind of file, for completion and checks in an editor
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SchemaArgs {
    /// The kind of file
    kind: Kind,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// A mock script
    Script,
}

pub(super) fn run(args: &SchemaArgs) -> Exit {
    let schema = match args.kind {
        Kind::Script => script::schema(),
    };
    // Whoever closes the pipe has read enough.
    let _ = writeln!(anstream::stdout(), "{schema:#}");
    Exit::Success
}
