//! `rehearse config convert`: converts a config for another program.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Args;

use super::{Exit, Failure};
use crate::cli::{
    input, output,
    sources::{
        dialect_name::{DIALECTS, dialect},
        refuse_release_file,
    },
    style::{self, BAD, DOUBTFUL, STRONG, printable},
};
use rehearse_client_configs::{
    LintReport, codes,
    convert::{Converted, Notation, convert},
    dialect::Dialect,
    lint,
    secret::Redactor,
};
use rehearse_document::{Diagnostic, Diagnostics, Span};
use rehearse_report::findings::Severity;
use rehearse_system::private::Access;

const EXAMPLES: &str = "\
Examples:
  rehearse config convert .mcp.json --to cursor
  rehearse config convert .mcp.json --to vscode --output .vscode/mcp.json
  rehearse config convert servers.json --dialect cline --to windsurf
  rehearse config convert --to zed < mcp.json

The new config goes to standard output, the list of what is lost to standard error. Comments are lost. Secrets are \
written as they are, secrets among them: a file with \
a secret can only be read by you, and no file by more users \
than its source.

Exit codes: 0 converted, 1 converted in part because the file has errors, 2 if it cannot be parsed or \
its client is not known.";

/// Convert a config file for another client and list what it cannot express
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\nDialects:\n{DIALECTS}"))]
pub(super) struct ConvertArgs {
    /// The config file [default: standard input]
    file: Option<PathBuf>,
    /// The client to write for (`--help` lists them)
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    to: &'static Dialect,
    /// The client of the file [default: detected from path and content]
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    dialect: Option<&'static Dialect>,
    /// Write to this file (.json or .yaml) instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    force: bool,
}

pub(super) fn run(args: &ConvertArgs) -> Result<Exit, Failure> {
    let notation = Notation::for_file(args.to, args.output.as_deref())
        .map_err(|error| Failure::Usage(format!("{error}: choose another file extension")))?;
    let path = args.file.as_deref().filter(|path| *path != Path::new("-"));
    let source = input::read(path.unwrap_or(Path::new("-")))?;
    if let Some(path) = path.filter(|_| args.dialect.is_none()) {
        refuse_release_file(path, &source)?;
    }
    let report = lint(&source, path, args.dialect, None);
    let Some(converted) = convert(&report, args.to, notation) else { return Err(unreadable(report)) };
    match &args.output {
        Some(new) => write(new, &converted.text, access(path, &report), args.force)?,
        None => output::write(converted.text.as_bytes())?,
    }
    style::print(&losses(&report, &converted, args.to));
    Ok(if report.count(Severity::Error) > 0 { Exit::Violation } else { Exit::Success })
}

/// The failure if a file cannot be parsed or its program is unknown.
fn unreadable(report: LintReport) -> Failure {
    let source = &report.source;
    let findings = report.findings.into_iter().filter(|finding| finding.code.severity() == Severity::Error);
    let redactor = Redactor::new(source, &report.secrets);
    let diagnostics =
        findings.map(|finding| Diagnostic { problem: redactor.problem(&finding.problem), source: source.clone() });
    // The source text is omitted, because it may contain secrets.
    Failure::Usage(Diagnostics(diagnostics.collect()).to_string())
}

/// Writes a new file, or with `force` replaces an existing one; creates the folder if necessary. `access` limits the
/// permissions of the file.
fn write(path: &Path, text: &str, access: Access, force: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::cannot(format!("cannot write {}: {error}", path.display()));
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options.write(true);
    // Devices and pipes are not replaced.
    let written = match path.canonicalize().ok().filter(|_| force) {
        Some(old) if old.is_file() => replace(&old, text, access),
        Some(other) => options.open(other).and_then(|mut other| other.write_all(text.as_bytes())),
        None => {
            let opened = access.create_new(path);
            opened.and_then(|file| output::fill(file, path, text.as_bytes()))
        }
    };
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Failure::cannot(format!("{} exists already", path.display())).hint("`--force` replaces it"))
        }
        result => result.map_err(failed),
    }
}

/// Replaces a file as a whole, so that it is not lost if that fails. It keeps its permissions within `access`.
fn replace(old: &Path, text: &str, access: Access) -> io::Result<()> {
    let name = old.file_name().unwrap_or_default().to_string_lossy();
    let new = old.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let file = Access::of(old)?.within(access).create_exactly(&new)?;
    output::fill(file, &new, text.as_bytes())?;
    fs::rename(new, old)
}

/// The maximum permissions of the new file: those of the source, and only the owner's if it has a secret.
fn access(source: Option<&Path>, report: &LintReport) -> Access {
    let written = |span: &Span| report.source.text.get(span.start..span.end).unwrap_or_default();
    // A reference to a variable is not a secret itself.
    let is_literal = |span: &Span| !["$", "{env:"].iter().any(|begin| written(span).starts_with(begin));
    let has_secret = report.findings.iter().any(|finding| finding.code == &codes::SECRET);
    if has_secret || report.secrets.iter().any(is_literal) {
        return Access::OWNER;
    }
    source.and_then(|source| Access::of(source).ok()).unwrap_or(Access::USUAL)
}

/// The errors of the file, and what the new file cannot express.
fn losses(report: &LintReport, converted: &Converted, to: &Dialect) -> String {
    let mut text = String::new();
    let redactor = Redactor::new(&report.source, &report.secrets);
    for finding in report.findings.iter().filter(|finding| finding.code.severity() == Severity::Error) {
        let problem = redactor.problem(&finding.problem);
        let (line, column) = report.source.position(problem.span.start);
        let (code, message) = (finding.code.name, printable(&problem.message).into_owned());
        let name = printable(&report.source.name).into_owned();
        text.push_str(&format!("{BAD}error:{BAD:#} {name}:{line}:{column}: {code}: {message}\n"));
        if let Some(hint) = &problem.hint {
            text.push_str(&format!("{STRONG}hint:{STRONG:#} {}\n", printable(hint)));
        }
    }
    for loss in &converted.losses {
        text.push_str(&format!("{DOUBTFUL}lost:{DOUBTFUL:#} {}\n", printable(&loss.masked().to_string())));
    }
    let left_out = converted.losses.iter().filter(|loss| loss.left_out).count();
    if !text.is_empty() {
        let servers = |count: usize| format!("{count} server{}", if count == 1 { "" } else { "s" });
        let more = match left_out {
            0 => String::new(),
            count => format!(", {count} left out"),
        };
        text.push_str(&format!("{} for {}{more}\n", servers(converted.servers), to.program));
    }
    text
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_target_that_is_not_a_file_keeps_its_permissions() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").args(["-m", "666"]).arg(&path).status().expect("starts");
        assert!(made.success());
        // Opening for reading, too, does not wait for a reader.
        let _reader = OpenOptions::new().read(true).write(true).open(&path).expect("opens");
        assert!(write(&path, "{}", Access::OWNER, true).is_ok());
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
    }
}
