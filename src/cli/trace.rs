//! `rehearse trace`: works with trace files.

use std::{fs::File, io::Read, path::PathBuf};

use super::{Exit, Failure, output, secrets::Secrets, style, trace_file::mask};
use rehearse_client::{CommandSpec, Target};
use rehearse_protocol::trace_import::{FORMATS, import};

const EXAMPLES: &str = "\
Examples:
  rehearse trace import session.har -o session.jsonl
  rehearse mock --from-trace session.jsonl > mock.yaml    a mock that answers as the server did
  rehearse check --trace session.jsonl                    check what was recorded
  rehearse trace import - --from json-rpc-log < debug.log";

/// The largest recording in bytes. As JSON in memory it has about 20 times as many.
const LARGEST: usize = 64_000_000;

/// Work with trace files
#[derive(Debug, clap::Args)]
pub(super) struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TraceCommand {
    Import(ImportArgs),
}

/// Make a trace of the recording of another program
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\nFormats:\n{}", formats()))]
struct ImportArgs {
    /// The recording; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The format [default: the one that the file shows; `--help` lists them]
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Write the trace to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep tokens and passwords
    #[arg(long)]
    show_secrets: bool,
}

/// The bytes of a recording, up to one more than may be.
fn beginning(file: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn formats() -> String {
    let line = |format: &rehearse_protocol::trace_import::Format| {
        format!("  {:24}{} ({})", format.name, format.source, format.date)
    };
    FORMATS.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn run(args: &TraceArgs) -> Result<Exit, Failure> {
    let TraceCommand::Import(args) = &args.command;
    let read = match args.file.as_os_str() == "-" {
        true => beginning(std::io::stdin().lock()),
        false => File::open(&args.file).and_then(beginning),
    };
    let name = args.file.display();
    let bytes = read.map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
    if bytes.len() > LARGEST {
        return Err(Failure::Usage(format!(
            "cannot import {name}: it has more than {} MB, and would take many times as much memory; \
             record less, or keep only the requests to your server in it",
            LARGEST / 1_000_000
        )));
    }
    let mut read = import(&bytes, args.from.as_deref())
        .map_err(|error| Failure::Usage(format!("cannot import {name}: {error}")))?;
    if !args.show_secrets {
        // Of no server in particular: what looks like a secret.
        let masked = mask(&mut read.file, &Secrets::from_target(&Target::Stdio(CommandSpec::default())));
        if masked > 0 {
            read.lost.push(format!("secrets ({masked}), which `--show-secrets` keeps"));
        }
    }
    style::print(&format!("{name} is read as {}: {}\n", read.format.name, read.format.source));
    for what in &read.lost {
        style::warn(&format!("not in the trace: {what}"));
    }
    let text = read.file.to_text();
    match &args.output {
        Some(path) => output::write_private(path, text.as_bytes())?,
        None => output::write(text.as_bytes())?,
    }
    Ok(Exit::Success)
}
