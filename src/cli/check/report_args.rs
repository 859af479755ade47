//! The options about checks and reports, and the end of a check.

use std::{path::PathBuf, time::SystemTime};

use clap::Args;

use super::{baseline, checks};
use crate::cli::{Exit, Failure, report::OutputArgs, secrets::Secrets, style};
use rehearse_check::selects;
use rehearse_conformance::{Check, Role};
use rehearse_report::{
    Format, Layout,
    check::{CheckResult, baseline::Baseline},
    summary::Results,
};

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// Run only these checks: ids or patterns (repeatable)
    #[arg(long = "only", value_name = "ID")]
    pub(super) only: Vec<String>,
    /// Also fail on violated SHOULDs
    #[arg(long)]
    strict: bool,
    /// Also fail if one of these checks was not tested (repeatable)
    #[arg(long = "require", hide_short_help = true, value_name = "ID")]
    required: Vec<String>,
    /// Accept the failures in this file; fail if one of them is gone
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write all failures to the baseline
    #[arg(long, hide_short_help = true, requires = "baseline")]
    update_baseline: bool,
    /// Seed for names and ids
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Report in the words of the official conformance suite
    #[arg(long, hide_short_help = true)]
    official_ids: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// List what was not tested, and why
    #[arg(short, long, hide_short_help = true)]
    verbose: bool,
    /// Print the selected checks and exit
    #[arg(long, hide_short_help = true)]
    list: bool,
    /// Explain a check and exit
    #[arg(long, hide_short_help = true, value_name = "ID", conflicts_with = "list")]
    explain: Option<String>,
}

impl ReportArgs {
    /// Does what `--list` and `--explain` say. `None` if a check is wanted; then its options fit together.
    ///
    /// # Errors
    /// A pattern selects no check about the role: a mistyped id must not be a run that finds nothing.
    pub(super) fn list(&self, role: Role) -> Result<Option<Exit>, Failure> {
        self.output.check()?;
        if let Some(id) = &self.explain {
            return checks::explain(id, self.output.format).map(|()| Some(Exit::Success));
        }
        let patterns = self.only.iter().chain(&self.required);
        let mut unknown = patterns.filter(|pattern| !checks::of(role).any(|check| selects(pattern, &check.id)));
        if let Some(pattern) = unknown.next() {
            return Err(checks::unknown(pattern, role));
        }
        if self.list {
            let selected: Vec<_> = checks::of(role).filter(|check| self.is_selected(check)).collect();
            return checks::list(&selected, self.output.format).map(|()| Some(Exit::Success));
        }
        if self.official_ids && !matches!(self.output.format, Format::Human | Format::Json) {
            return Err(Failure::Usage("--official-ids has the formats human and json".to_owned()));
        }
        Ok(None)
    }

    pub(super) fn is_selected(&self, check: &Check) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| selects(pattern, &check.id))
    }

    /// Whether a check must have been tested.
    pub(super) fn requires_checks(&self) -> bool {
        !self.required.is_empty()
    }

    /// # Errors
    /// The file of `--baseline` cannot be read.
    pub(super) fn read_baseline(&self) -> Result<Option<Baseline>, Failure> {
        self.baseline.as_ref().map(|path| baseline::read(path, self.update_baseline)).transpose()
    }

    /// An empty result that begins now.
    pub(super) fn begin(&self) -> CheckResult {
        let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        CheckResult::new(started_at, self.seed, self.strict)
    }

    /// Applies the baseline, and decides the verdict. `is_whole`: whether every version was checked.
    ///
    /// # Errors
    /// The baseline cannot be written.
    pub(super) fn conclude(
        &self,
        checked: &mut CheckResult,
        baseline: Option<Baseline>,
        is_whole: bool,
        is_interrupted: bool,
    ) -> Result<(), Failure> {
        let has_error = checked.servers.iter().any(|server| server.error.is_some());
        if baseline.is_some() {
            // A baseline holds what a report says.
            checked.servers = Secrets::known().hidden_in(std::mem::take(&mut checked.servers))?;
        }
        if let (Some(baseline), Some(path)) = (baseline.filter(|_| !is_interrupted), &self.baseline) {
            let is_whole = !has_error && self.only.is_empty() && is_whole;
            baseline::apply(&baseline, checked, path, is_whole, self.update_baseline && !has_error)?;
        }
        checked.require(|id| self.required.iter().any(|pattern| selects(pattern, id)));
        checked.conclude(is_interrupted);
        Ok(())
    }

    /// Writes the report. Returns the exit code of its verdict.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, result: CheckResult) -> Result<Exit, Failure> {
        let verdict = result.verdict;
        let results = Results { check: Some(result), ..Results::default() };
        let layout = Layout { width: style::width(), is_verbose: self.verbose, ..Layout::default() };
        match self.official_ids {
            false => self.output.write(results, &layout)?,
            true => self.output.write_with(results, |results| {
                let check = results.check.as_ref();
                Ok(check.map(|check| check.render_official(self.output.format)).unwrap_or_default())
            })?,
        }
        Ok(verdict.into())
    }
}
