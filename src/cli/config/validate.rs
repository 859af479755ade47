//! `rehearse validate-config`: checks configs as their programs read them.

use std::{
    collections::HashSet,
    fs::File as OpenFile,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use serde_json::json;

use super::{checked_file::CheckedFile, connect, release};
use crate::cli::{
    Exit, Failure,
    agent_config::check_agent,
    mcp::target::connection::duration,
    output,
    sources::{
        MOST_SHOWN,
        dialect_name::dialect,
        walk::{self, FoundFiles},
    },
    style,
};
use rehearse_client_configs::{
    LintReport, Machine, codes,
    dialect::{Detected, Dialect, FileLocation, RootKeys, all, by_path},
    lint,
    secret::values_of,
};
use rehearse_document::{
    Problem, Source, Span,
    text::{bytes, encoding_hint},
};
use rehearse_report::{
    Format, Layout,
    findings::{Code, File, Finding, Report, Severity, Verdict},
};

/// The page that explains every code.
const EXPLANATIONS: &str = include_str!("../../../docs/config-diagnostics.md");
/// The width of a report that is not for a terminal.
const UNLIMITED: usize = 10_000;

const EXAMPLES: &str = "\
Examples:
  rehearse validate-config                         every known config file in this folder
  rehearse validate-config .mcp.json --connect     also start its servers and list their tools
  rehearse validate-config ~/.cursor/mcp.json .vscode/mcp.json --strict
  rehearse validate-config --dialect claude-desktop - < config.json
  rehearse validate-config --portable --format github        annotations, for CI
  rehearse validate-config server.json manifest.json --connect --stdio 'node server.js'

The client of a file is detected from the path and the content; --dialect sets it. Servers are \
started only with --connect. server.json, manifest.json and SKILL.md are \
checked, too. docs/config-diagnostics.md explains every code.

Exit codes:
  0  valid, perhaps with advice
  1  errors, or with --strict warnings
  2  a file cannot be read or parsed; or wrong usage
  3  interrupted, or the report cannot be written
  4  a folder has no known config files
Among several files the highest of 0, 1 and 2 wins.";

/// Lint MCP client config files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    /// Config files, folders to search, or - for standard input [default: .]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Report format: human, json, sarif or github
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    #[arg(value_parser = Format::among(&[Format::Human, Format::Json, Format::Sarif, Format::Github]))]
    format: Format,
    /// The client of the files [default: detected from path and content]
    #[arg(long, value_name = "NAME", value_parser = dialect)]
    dialect: Option<&'static Dialect>,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Skip the checks that depend on this machine
    #[arg(long)]
    portable: bool,
    /// Connect to every enabled server of the valid files and list its tools
    #[arg(long)]
    connect: bool,
    /// With --connect: compare a release file with this server
    #[arg(long, value_name = "COMMAND", requires = "connect")]
    stdio: Option<String>,
    /// With --connect: timeout of a start [default: from the config, or 30s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "connect")]
    start_timeout: Option<Duration>,
    /// Show tokens and passwords
    #[arg(long)]
    show_secrets: bool,
    /// Only report errors (and warnings with --strict)
    #[arg(short, long)]
    quiet: bool,
    /// Write the report to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// List the known clients and their config files
    #[arg(long)]
    list_dialects: bool,
}

pub(crate) fn run(args: ValidateArgs) -> Result<Exit, Failure> {
    if args.list_dialects {
        return list_dialects(args.format).map(|()| Exit::Success);
    }
    let (mut checked, unread) = check(&args);
    if !args.quiet || checked.is_empty() {
        for path in unread.iter().take(MOST_SHOWN) {
            let path = path.display();
            style::warn(&format!("{path} is not checked, since no known program reads it: name it, or give --dialect"));
        }
    }
    if checked.is_empty() {
        let hint = "pass the files; `--list-dialects` prints the known file names";
        let strong = style::STRONG;
        style::print(&format!("no known config files\n{strong}hint:{strong:#} {hint}\n"));
        return Ok(Exit::NothingSelected);
    }
    let released = if args.stdio.is_none() { release::plan(&mut checked) } else { Vec::new() };
    let (limit, shows_secrets) = (args.start_timeout, args.show_secrets);
    let is_interrupted = args.connect && connect::connect_all(&mut checked, released, limit, shows_secrets)?;
    if let Some(command) = &args.stdio
        && let Some(exit) = release::compare_all(&mut checked, command)?
    {
        return Ok(exit);
    }
    let files = checked.into_iter().map(|checked| checked.file).collect();
    let report = Report { files, rules: codes::rules(EXPLANATIONS), is_strict: args.strict, is_quiet: args.quiet };
    write_report(&args, &report)?;
    Ok(match report.verdict() {
        _ if is_interrupted => Exit::CannotRun,
        Verdict::Valid => Exit::Success,
        Verdict::Invalid => Exit::Violation,
        Verdict::Unreadable => Exit::Usage,
    })
}

/// Checks every named file, and every known file below a named folder. The second are other files there with servers.
fn check(args: &ValidateArgs) -> (Vec<CheckedFile>, Vec<PathBuf>) {
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
    let machine = (!args.portable).then(Machine::here);
    let (mut checked, mut unread, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for path in paths {
        if path.is_dir() {
            let FoundFiles { known, others } = walk::configs_below(path);
            for path in known.into_iter().filter(|path| seen.insert(walk::absolute(path))) {
                checked.extend(check_file(args, &path, machine.as_ref(), true));
            }
            for path in others.into_iter().filter(|path| seen.insert(walk::absolute(path))) {
                match read(&path, "").map(|source| lint(&source, Some(&walk::absolute(&path)), args.dialect, None)) {
                    Ok(report) if args.dialect.is_some() || has(&report, &codes::PLACE) => {
                        checked.extend(check_file(args, &path, machine.as_ref(), false));
                    }
                    Ok(LintReport { root: None, .. }) => unread.push(path),
                    Ok(LintReport { config: Some(config), .. }) if !config.servers.is_empty() => unread.push(path),
                    _ => {}
                }
            }
        } else if path == Path::new("-") || seen.insert(walk::absolute(path)) {
            checked.extend(check_file(args, path, machine.as_ref(), false));
        }
    }
    (checked, unread)
}

fn has(report: &LintReport, code: &Code) -> bool {
    report.findings.iter().any(|finding| finding.code == code)
}

fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.code.severity() == Severity::Error)
}

/// Whether a file may have a section with servers, but has none.
fn has_no_servers(path: &Path, report: &LintReport) -> bool {
    let is_empty = |finding: &Finding| finding.code == &codes::NO_SERVERS;
    if let Some((dialect, FileLocation::Section(_))) = by_path(path) {
        // The syntax of the rest of such a file does not matter.
        let has_no_servers = !dialect.single_server_file && !report.source.text.contains("mcp");
        return has_no_servers || report.findings.iter().any(is_empty);
    }
    let is_section =
        |it: &Detected| matches!(it.dialect.root_keys, RootKeys::Section(_)) && !it.dialect.describes_agent;
    let has_servers = report.config.as_ref().is_some_and(|config| !config.servers.is_empty());
    report.detected.as_ref().is_some_and(is_section) && !has_servers && report.findings.iter().all(is_empty)
}

/// Checks what `rehearse serve` checks at its start, if the file defines a subagent.
fn check_subagent(path: &Path, report: &mut LintReport) {
    let is_agent = report.detected.as_ref().is_some_and(|detected| detected.dialect.describes_agent);
    let root = report.root.as_ref().filter(|root| is_agent && root.get("subagent").is_some());
    let Some(root) = root.filter(|_| report.rejections().next().is_none()) else { return };
    if let Err(problems) = check_agent(root, path.parent().unwrap_or(Path::new(""))) {
        let found = |problem| Finding { code: &codes::SUBAGENT, problem, server: None };
        report.findings.extend(problems.0.into_iter().map(found));
        report.findings.sort_by_key(|finding| finding.problem.span.start);
    }
}

/// Checks a file; `None` if it was found in a folder (`is_found`) and has no section with servers.
fn check_file(args: &ValidateArgs, path: &Path, machine: Option<&Machine>, is_found: bool) -> Option<CheckedFile> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let folder = match is_stdin {
        true => std::env::current_dir().unwrap_or_default(),
        false => walk::project(path),
    };
    match read(path, &name) {
        Ok(source) => {
            let place = (!is_stdin).then(|| walk::absolute(path));
            let place = place.as_deref();
            let released = place.filter(|_| args.dialect.is_none());
            if let Some(report) = released.and_then(|place| rehearse_release::check(&source, place, machine)) {
                let release = report.root.clone().map(|root| (report.release, root));
                let file = report.into_file(name, args.show_secrets);
                let is_to_start = args.connect && !is_found && !has_error(&file.findings);
                return Some(CheckedFile { file, config: None, release, is_to_start, folder });
            }
            let mut report = lint(&source, place, args.dialect, machine);
            if is_found && place.is_some_and(|place| has_no_servers(place, &report)) {
                return None;
            }
            if machine.is_some() {
                check_subagent(path, &mut report);
            }
            let config = report.config.as_ref().filter(|_| args.connect && !has_error(&report.findings)).cloned();
            let file = report.into_file(name, args.show_secrets);
            Some(CheckedFile { file, config, release: None, is_to_start: false, folder })
        }
        Err((source, finding)) => {
            let secrets = if args.show_secrets { Vec::new() } else { values_of(&source) };
            let file = File::unreadable(name, source, secrets, *finding);
            Some(CheckedFile { file, config: None, release: None, is_to_start: false, folder })
        }
    }
}

/// The text of a file, or the text up to the first wrong byte with the problem.
fn read(path: &Path, name: &str) -> Result<Arc<Source>, (Arc<Source>, Box<Finding>)> {
    let unreadable = |code: &'static Code, what: String, hint: &'static str| {
        let problem = Problem::new(Span::default(), what);
        let problem = if hint.is_empty() { problem } else { problem.hint(hint) };
        (Source::new(name, ""), Box::new(Finding { code, problem, server: None }))
    };
    let bytes = bytes_of(path).map_err(|error| {
        let (what, hint) = match error.kind() {
            io::ErrorKind::NotFound => ("there is no such file".to_owned(), "check the path, and where you are"),
            io::ErrorKind::FileTooLarge => {
                (format!("the file cannot be read: {error}"), "a config has some kilobytes; is it the right file?")
            }
            _ => (format!("the file cannot be read: {error}"), ""),
        };
        unreadable(&codes::FILE, what, hint)
    })?;
    let encoding = encoding_hint(&bytes);
    match (String::from_utf8(bytes), encoding) {
        (Ok(text), None) => Ok(Source::new(name, text)),
        (Ok(_), Some(hint)) => Err(unreadable(&codes::SYNTAX, "the text is not UTF-8".to_owned(), hint)),
        (Err(error), hint) => {
            let (at, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
            let message = format!("the byte 0x{:02x} is not UTF-8", bytes[at]);
            let finding = codes::SYNTAX.at(Span { start: at, end: at }, message);
            // The text before that byte says where it is.
            let text = String::from_utf8_lossy(&bytes[..at]).into_owned();
            Err((Source::new(name, text), Box::new(finding.hint(hint.unwrap_or("save the file as UTF-8")))))
        }
    }
}

/// # Errors
/// Those of the file system, and `FileTooLarge`.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    match path == Path::new("-") {
        true => bytes(io::stdin().lock()),
        false => bytes(OpenFile::open(path)?),
    }
}

fn write_report(args: &ValidateArgs, report: &Report) -> Result<(), Failure> {
    let is_terminal = args.output.is_none() && io::stdout().is_terminal();
    let width = if is_terminal { style::width() } else { UNLIMITED };
    let layout = Layout { width, directory: std::env::current_dir().unwrap_or_default(), ..Layout::default() };
    output::write_report(&report.render(args.format, &layout), args.format, args.output.as_deref())
}

fn list_dialects(format: Format) -> Result<(), Failure> {
    let (mut out, mut entries) = (String::new(), Vec::new());
    let width = |column: fn(&Dialect) -> &str| all().map(|it| column(it).len()).max().unwrap_or_default();
    let (names, programs) = (width(|it| it.name), width(|it| it.program));
    for Dialect { name, program, files, .. } in all() {
        // The same location may be below several folders.
        let mut files: Vec<_> = files.iter().map(|place| place.suffix()).collect();
        files.dedup();
        out.push_str(format!("{name:names$}  {program:programs$}  {}", files.join(", ")).trim_end());
        out.push('\n');
        entries.push(json!({ "name": name, "program": program, "files": files }));
    }
    output::write_list("--list-dialects", format, &out, &entries.into())
}
