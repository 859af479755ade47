//! `rehearse diff`: what has changed between two surfaces of a server, and whose calls that breaks.

mod side;

use std::path::{Path, PathBuf};

use clap::Args;

use super::{
    Exit, Failure,
    mcp::target::{TokenArgs, connection::ConnectionArgs},
    output,
    profile::{evidence, profile_named},
    report::OutputArgs,
    sources::SourceArgs,
    style, trace_file,
};
use rehearse_diff::{Baseline, DiffSide, RecordedCall, accept, diff, read_calls};
use rehearse_document::{Source, parse_yaml};
use rehearse_profile::{Profile, compare_fits};
use rehearse_protocol::trace_file::TraceFile;
use rehearse_report::{Layout, Verdict, diff::Class, summary::Results};
use rehearse_system::program::quoted;

const EXAMPLES: &str = "\
Examples:
  rehearse surface -- node server.js > surface.json
  rehearse diff surface.json 'node server.js'              what has changed since the file
  rehearse diff main:surface.json surface.json             between two commits of the file
  rehearse diff surface.json -- node server.js             the same
  rehearse diff 'npx -y shop@1' 'npx -y shop@2'            between two releases
  rehearse diff surface.json http://127.0.0.1:3000/mcp --calls traces/*.jsonl
                                                           whose recorded calls would fail
  rehearse diff surface.json 'node server.js' --update     accept all changes, and write the file

A side is a surface file, the result of a list, a trace or a snapshot of the step `discover`; REV:FILE of git; a URL; \
a command, in quotes if it has arguments, or the second one after `--`; or with --mcp-config the name of a server.

Classes:
  breaking    a call, a reader or a host that worked may fail
  behaviour   a model may choose differently: descriptions, titles, annotations, instructions
  addition    something new
  cosmetic    only people notice it (shown with --verbose)

Exit codes:
  0  no change of the class of --fail-on, or of a worse one
  1  there is one, a recorded call would fail, or the baseline has an entry that matches no change
  2  wrong usage, or a file with mistakes    3  a server cannot be reached";

/// Find what has changed between two versions of a server, and what breaks
#[derive(Debug, Args)]
#[command(after_help = "`--help` has examples, what a side can be, and the classes.", after_long_help = EXAMPLES)]
pub(super) struct DiffArgs {
    /// The server before: a file, REV:FILE, a URL, a command or a name
    old: String,
    /// The server after
    #[arg(required_unless_present = "command")]
    new: Option<String>,
    /// The command of the server after, as words
    #[arg(value_name = "COMMAND", last = true, conflicts_with = "new")]
    #[arg(hide_short_help = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<String>,
    /// Fail on a change of this class, or of a worse one: breaking, behaviour, addition, cosmetic or none
    #[arg(long, value_name = "CLASS", default_value = "breaking", value_parser = least_class)]
    fail_on: Least,
    /// Hold the calls in these traces against the new server; nothing is called
    #[arg(long, value_name = "TRACE", num_args = 1..)]
    calls: Vec<PathBuf>,
    /// Also say which tools and items this host, provider or directory loses (repeatable)
    #[arg(long = "profile", value_name = "NAME", value_delimiter = ',')]
    profiles: Vec<String>,
    /// Accept the changes in this file; fail if one of them is gone
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write all changes that fail to the baseline
    #[arg(long, hide_short_help = true, requires = "baseline")]
    update_baseline: bool,
    /// Write the new surface to the old file, which accepts all changes
    #[arg(long)]
    update: bool,
    /// Also show cosmetic and accepted changes
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    output: OutputArgs,
    /// Add a header to every HTTP request (repeatable)
    #[arg(long = "header", value_name = "NAME: VALUE", help_heading = "Servers")]
    headers: Vec<String>,
    #[command(flatten)]
    token: TokenArgs,
    #[command(flatten, next_help_heading = "Servers")]
    sources: SourceArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The least class that fails.
#[derive(Clone, Copy, Debug)]
struct Least(Option<Class>);

fn least_class(text: &str) -> Result<Least, String> {
    match Class::ALL.into_iter().find(|class| class.as_str() == text) {
        None if text != "none" => Err("write breaking, behaviour, addition, cosmetic or none".to_owned()),
        class => Ok(Least(class)),
    }
}

pub(super) fn run(args: &DiffArgs) -> Result<Exit, Failure> {
    args.output.check()?;
    let baseline = args.baseline.as_ref().map(|path| read_baseline(path, args.update_baseline)).transpose()?;
    let baseline = baseline.unwrap_or_default();
    let profiles = args.profiles.iter().map(|name| profile_named(name)).collect::<Result<Vec<_>, _>>()?;
    let calls = args.calls.iter().map(|path| Ok((path.display().to_string(), file_calls(&trace_file::read(path)?))));
    let calls = calls.collect::<Result<Vec<_>, Failure>>()?;
    if args.update && !Path::new(&args.old).is_file() {
        return Err(Failure::Usage(format!("--update writes a surface file, and {:?} is none", args.old)));
    }
    let words = || args.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let new = args.new.clone().unwrap_or_else(words);
    let side = |text: &str| side::load(text, &args.sources, &args.headers, &args.token, &args.connection);
    let (old, new) = match (side(&args.old)?, side(&new)?) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(exit), _) | (_, Err(exit)) => return Ok(exit),
    };
    let judge = |profile: &Profile, side: &DiffSide| profile.judge(&evidence(None, &side.surface));
    let fits = profiles.iter().flat_map(|it| compare_fits((&old.surface, &judge(it, &old)), &judge(it, &new)));
    let mut result = diff(&old, &new, fits.collect(), &calls, args.fail_on.0);
    accept(&mut result, &baseline, &old, &new);
    if let (Some(path), true) = (&args.baseline, args.update_baseline) {
        let renewed = baseline.renewed(&result.changes, args.fail_on.0.unwrap_or(Class::Breaking));
        output::write_file(path, renewed.to_yaml().as_bytes())?;
        accept(&mut result, &renewed, &old, &new);
    }
    let is_accepted = args.update && result.refused_calls.is_empty();
    let verdict = if is_accepted { Verdict::Passed } else { result.verdict };
    let results = Results { diff: Some(result), ..Results::default() };
    let layout = Layout { width: style::width(), is_verbose: args.verbose, ..Layout::default() };
    args.output.write(results, &layout)?;
    if args.update {
        output::write_file(Path::new(&args.old), new.surface.to_text().as_bytes())?;
        style::print(&format!("wrote {}\n", args.old));
    }
    Ok(verdict.into())
}

/// The calls of all connections of a trace.
fn file_calls(file: &TraceFile) -> Vec<RecordedCall> {
    file.connections.iter().flat_map(|connection| read_calls(&connection.trace)).collect()
}

/// Reads the accepted changes. If the file is to be written, it need not exist.
fn read_baseline(path: &Path, is_written: bool) -> Result<Baseline, Failure> {
    if is_written && !path.exists() {
        return Ok(Baseline::default());
    }
    let source =
        Source::read(path).map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    let read = parse_yaml(&source).and_then(|node| Baseline::read(&node));
    read.map_err(|problems| Failure::Invalid(problems.in_source(&source)))
}
