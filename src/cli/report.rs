//! `rehearse report`: one report on the results of earlier runs.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{Exit, Failure, output, repository, secrets::Secrets, style};
use rehearse_bench::Threshold;
use rehearse_document::text::utf8;
use rehearse_report::{
    Format, Layout, Origin, UnknownFormat, Verdict, bench::BenchResult, check::CheckResult, summary::Results,
};

const EXAMPLES: &str = "\
Examples:
  rehearse run --format json --output run.json
  rehearse report run.json --output report.html             a page to look at
  rehearse report part-*.json --output report.html          the parts of --shard as one report
  rehearse report part-*.json --fail-if 'p99 > 50ms'        the whole load of several machines
  rehearse report run.json check.json --format md           for the summary of a CI job
  rehearse report run.json --format github                  annotations in GitHub Actions

Without --gate, the exit code only says whether the report was written, and is 3 if a part of --shard \
is missing.";

/// The formats of a report; a run also has text.
const FORMATS: [Format; 10] = [
    Format::Html,
    Format::Junit,
    Format::Sarif,
    Format::Markdown,
    Format::Json,
    Format::Github,
    Format::GithubOutput,
    Format::Badge,
    Format::Shields,
    Format::Human,
];

/// Make one report from results: HTML, JUnit, SARIF, Markdown or annotations
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportArgs {
    /// Results of `rehearse run`, `check`, `diff`, `fuzz` or `bench` with --format json; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// html, junit, sarif, md, json, github (annotations), github-output (verdict and counts), badge (SVG) or shields
    /// (JSON for a badge)
    /// [default: by the name of --output; or md]
    #[arg(long, value_name = "FORMAT", value_parser = Format::among(&FORMATS[..9]))]
    format: Option<Format>,
    /// Write the report to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Exit with 1 if a result has failed, and with 3 if something could not run
    #[arg(long)]
    gate: bool,
    /// Exit with 1 if this is true of any measure of a benchmark (repeatable); implies --gate
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Threshold>,
    /// The other parts of --shard have reports of their own; none is missing
    #[arg(long, hide_short_help = true)]
    part: bool,
}

/// The reports of a run.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Report format, such as json, junit, sarif, html, md or github
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = Format::among(&FORMATS))]
    pub(super) format: Format,
    /// Write the report to a file instead of standard output
    #[arg(short, long, hide_short_help = true, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write .html, .xml (JUnit), .sarif, .md, .json or .svg (repeatable)
    #[arg(long = "report", value_name = "FILE", value_parser = report_file)]
    others: Vec<(PathBuf, Format)>,
}

fn report_file(path: &str) -> Result<(PathBuf, Format), UnknownFormat> {
    Format::of_file(path.as_ref()).map(|format| (path.into(), format))
}

pub(super) fn run(args: &ReportArgs) -> Result<Exit, Failure> {
    let format = match (args.format, &args.output) {
        (Some(format), _) => format,
        (None, None) => Format::Markdown,
        (None, Some(path)) => {
            Format::of_file(path).map_err(|error| Failure::Usage(format!("{error}, or add --format")))?
        }
    };
    let mut results = Results::default();
    for path in &args.files {
        let read = read(path).map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
        results.read(read.as_bytes()).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    }
    if let Some(distance) = results.bench.as_ref().and_then(BenchResult::distance) {
        style::warn(&distance);
    }
    if args.part {
        results.forget_shards();
    }
    judge(args, results.bench.as_mut())?;
    let bytes = render(format, &mut results)?;
    output::write_report(&bytes, format, args.output.as_deref())?;
    Ok(match args.gate || !args.fail_if.is_empty() {
        true => results.summary().verdict.into(),
        false if !results.are_whole() => Exit::CannotRun,
        false => Exit::Success,
    })
}

/// Applies the conditions to the whole of a benchmark.
///
/// # Errors
/// There are conditions, and there is no benchmark.
fn judge(args: &ReportArgs, bench: Option<&mut BenchResult>) -> Result<(), Failure> {
    let Some(bench) = bench else {
        let wrong = "--fail-if is about benchmarks, and these are no results of `rehearse bench`";
        return if args.fail_if.is_empty() { Ok(()) } else { Err(Failure::Usage(wrong.to_owned())) };
    };
    if let Some(condition) = args.fail_if.iter().find(|condition| condition.has_base()) {
        return Err(Failure::Usage(format!("--fail-if '{condition}' belongs to `rehearse bench --against FILE`")));
    }
    rehearse_bench::judge(&args.fail_if, None, bench);
    Ok(())
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Exit {
        match verdict {
            Verdict::Passed => Exit::Success,
            Verdict::Failed => Exit::Violation,
            Verdict::CannotRun | Verdict::Incomplete => Exit::CannotRun,
            Verdict::NothingTested => Exit::NothingSelected,
        }
    }
}

impl OutputArgs {
    /// The files besides that of `--output`.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.others.iter().map(|(path, _)| &**path)
    }

    /// Writes a result without its secrets, with this layout where it is text.
    ///
    /// # Errors
    /// A report cannot be written.
    pub(super) fn write(&self, results: Results, layout: &Layout) -> Result<(), Failure> {
        self.write_with(results, |results| match self.format {
            Format::Human => Ok(results.render(Format::Human, layout)),
            format => render(format, results),
        })
    }

    /// As [`OutputArgs::write`], with other words in the report of `--format`.
    ///
    /// # Errors
    /// A report cannot be written.
    pub(super) fn write_with(
        &self,
        results: Results,
        own: impl FnOnce(&mut Results) -> Result<Vec<u8>, Failure>,
    ) -> Result<(), Failure> {
        let mut results = Secrets::known().hidden_in_results(results)?;
        // SARIF changes paths.
        let (sarif, others): (Vec<_>, Vec<_>) = self.others.iter().partition(|(_, format)| *format == Format::Sarif);
        let mut written = output::write_report(&own(&mut results)?, self.format, self.output.as_deref());
        for (path, format) in others.into_iter().chain(sarif) {
            match render(*format, &mut results) {
                // The others are written nevertheless.
                Ok(bytes) => written = written.and(output::write_file(path, &bytes)),
                // The run has its own exit code.
                Err(error) => style::print(&format!("warning: {}: {error}\n", path.display())),
            }
        }
        written
    }

    /// Checks before a run that each can probably be written.
    ///
    /// # Errors
    /// A folder does not exist, or a file is a folder.
    pub(super) fn check(&self) -> Result<(), Failure> {
        for (path, _) in &self.others {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
                let why = if path.is_dir() { "it is a folder" } else { "its folder does not exist" };
                return Err(Failure::Usage(format!("cannot write {}: {why}", path.display())));
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    if path != Path::new("-") {
        return utf8(std::fs::read(path)?);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    utf8(bytes)
}

/// # Errors
/// There is no SARIF without places.
fn render(format: Format, results: &mut Results) -> Result<Vec<u8>, Failure> {
    let directory = repository::root();
    if matches!(format, Format::Sarif | Format::Github) {
        repository::make_relative(results);
    }
    if format == Format::Sarif {
        let checked = results.check.iter_mut().flat_map(|check| &mut check.servers);
        let checked = checked.map(|server| (&server.target, &mut server.place));
        let fuzzed = results.fuzz.iter_mut().map(|fuzz| (&fuzz.target, &mut fuzz.place));
        repository::keep_places_in(&directory, checked.chain(fuzzed));
    }
    let has_place = |check: &CheckResult| check.servers.iter().any(|server| server.place.is_some());
    let is_placed = results.run.is_some()
        || results.diff.is_some()
        || results.check.as_ref().is_some_and(has_place)
        || results.fuzz.as_ref().is_some_and(|fuzz| fuzz.place.is_some());
    let origin = Origin::from_variables(|name| std::env::var(name).ok());
    match format {
        Format::Json if results.json().len() > 1 => {
            Err(Failure::Usage("the format json is for results of one kind".to_owned()))
        }
        Format::Sarif if !is_placed => Err(Failure::Usage(repository::NO_PLACE.to_owned())),
        _ => Ok(results.render(format, &Layout { directory, origin, ..Layout::default() })),
    }
}
