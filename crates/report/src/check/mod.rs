//! The result of `rehearse check`, and its formats.

pub(crate) mod areas;
pub mod baseline;
mod migration;
mod official;

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf, time::Duration};

pub use migration::{Migration, MigrationKind, MigrationStep};
use rehearse_system::program::quoted;

use crate::{
    Format, MergedShards, Shard, Verdict, groups::grouped, json, milliseconds::Milliseconds, profile::ProfileFit,
    wire_line::WireLine,
};
use rehearse_protocol::{Transport, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of a run against one or more servers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// The version of this format.
    pub format: u32,
    /// What the exit code says.
    pub verdict: Verdict,
    /// When the run began, in UTC, as in RFC 3339.
    pub started_at: String,
    /// The version of `rehearse`.
    #[serde(default)]
    pub rehearse: String,
    #[serde(rename = "durationMs", with = "Milliseconds")]
    pub duration: Duration,
    pub seed: u64,
    /// Whether a warning fails the run.
    pub strict: bool,
    /// The part of the acts that it ran to the end, if it is one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The parts that were merged into it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<MergedShards>,
    /// How long the acts of a client took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<ActDuration>,
    /// The number of checks by verdict, over all servers and versions.
    pub totals: CheckTotals,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineUse>,
    pub servers: Vec<CheckedServer>,
}

/// How long one run of a client took.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ActDuration {
    /// The act, or those of a composite act.
    pub acts: Vec<String>,
    #[serde(rename = "durationMs", with = "Milliseconds")]
    pub duration: Duration,
}

/// The number of checks by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckTotals {
    pub failed: usize,
    pub warnings: usize,
    pub not_tested: usize,
    pub accepted: usize,
    pub info: usize,
    pub passed: usize,
    pub not_applicable: usize,
}

/// How the accepted failures of a file were used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BaselineUse {
    pub file: PathBuf,
    /// Entries that no longer match anything; they fail the run.
    pub stale: Vec<String>,
    /// Entries whose date has passed; they accept nothing.
    pub expired: Vec<String>,
    /// Entries of the official suite that no check knows.
    pub unknown: Vec<String>,
}

/// One server over one transport.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckedServer {
    /// The command or URL.
    pub target: String,
    #[schemars(with = "String", extend("enum" = Transport::ALL))]
    pub transport: Transport,
    /// The name that the server gives itself.
    pub name: Option<String>,
    pub server_version: Option<String>,
    #[serde(rename = "startedInMs", with = "Milliseconds")]
    pub started_in: Duration,
    /// The command line that checks it again, without the command of a client.
    pub again: String,
    /// The command of a client, which follows `--` there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Where a config file describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<ConfigPlace>,
    /// Why nothing could be checked.
    pub error: Option<String>,
    /// Newest first.
    pub versions: Vec<CheckedVersion>,
    /// Versions whose handshake the server did not answer, although it answered that of another version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<UnansweredVersion>,
    /// How it fits the profiles that were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileFit>,
    /// Whether the time for the run was over before everything was tested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_budget_spent: bool,
    /// Whether the run was interrupted before everything was tested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_interrupted: bool,
    /// What else was asked for and is not tested, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untried: Vec<String>,
    /// The tools that may be called and were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncalled_tools: Vec<UncalledTool>,
    /// How many lines of its standard error are not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_stderr: usize,
    /// What it has to do for the newest version, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<Migration>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A version that could not be checked.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnansweredVersion {
    #[schemars(with = "String", extend("enum" = Version::ALL))]
    pub version: Version,
    pub reason: String,
}

/// A tool that may be called and was not.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UncalledTool {
    pub name: String,
    pub reason: String,
}

/// The place of a server in a config file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigPlace {
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// The name of the server.
    pub server: String,
}

/// The verdicts on one server in one version.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckedVersion {
    #[schemars(with = "String", extend("enum" = Version::ALL))]
    pub version: Version,
    pub checks: Vec<JudgedCheck>,
}

/// A check, with the verdict on it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JudgedCheck {
    /// Never renamed, never used again.
    pub id: String,
    #[schemars(extend("enum" = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "derived", "info", null]))]
    pub level: Option<Cow<'static, str>>,
    pub verdict: CheckVerdict,
    /// Why it is not tested, not applicable or accepted, and whether a second run has confirmed a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub rule: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The section of the specification.
    pub spec: String,
    /// The ids of the official conformance suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub official: Vec<String>,
    /// The check whose violation is the cause of those of this one, which is not tested therefore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cow<'static, str>>,
    /// What the server must declare for it to apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Cow<'static, str>>,
    /// Whether it is not tried in this version because it was in another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_left_out: bool,
    /// How often the rule was exercised.
    pub exercised: usize,
    /// The act in which a client violates it.
    #[serde(skip)]
    pub act: Option<String>,
    /// The command line that runs this check alone, if it failed or is a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// How many violations there are; the first of them follow.
    pub violation_count: usize,
    pub violations: Vec<FoundViolation>,
}

/// The verdict on a check, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckVerdict {
    /// A MUST is violated.
    Fail,
    /// A SHOULD is violated.
    Warn,
    /// It applies, but was not exercised.
    NotTested,
    /// It is violated, and that does not count: the baseline accepts it, or it comes from an SDK. No judge says so.
    Accepted,
    /// Recorded; never counted.
    Info,
    /// It was exercised and held.
    Pass,
    /// It does not apply to this server, version or transport.
    NotApplicable,
}

/// One violation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundViolation {
    /// Whether it is a failure, a warning or for information.
    pub verdict: CheckVerdict,
    /// The tool, resource or case that violates the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What was found.
    pub found: String,
    /// Why it does not count: the reason of the baseline, or that it comes from an SDK.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// The SDK that behaves like this, whatever the author of the peer does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<Cow<'static, str>>,
    /// What was sent and what came.
    pub evidence: Vec<WireLine>,
}

/// How many violations of one check are kept.
const KEPT: usize = 20;

impl CheckedServer {
    /// Nothing is known of the server yet.
    pub fn new(target: String, transport: Transport) -> CheckedServer {
        CheckedServer {
            target,
            transport,
            name: None,
            server_version: None,
            started_in: Duration::ZERO,
            again: String::new(),
            command: None,
            place: None,
            error: None,
            versions: Vec::new(),
            unanswered: Vec::new(),
            profiles: Vec::new(),
            is_budget_spent: false,
            is_interrupted: false,
            untried: Vec::new(),
            uncalled_tools: Vec::new(),
            lost_stderr: 0,
            migration: None,
        }
    }

    /// Its command at the end of a command line.
    fn command_words(&self) -> String {
        self.command.as_ref().map(|command| format!(" -- {command}")).unwrap_or_default()
    }

    /// The whole command line that checks it again.
    pub(crate) fn again_line(&self) -> String {
        format!("{}{}", self.again, self.command_words())
    }

    /// Whether something was not tried at all.
    fn is_ended_early(&self) -> bool {
        self.is_interrupted || self.is_budget_spent || !self.unanswered.is_empty() || !self.untried.is_empty()
    }

    /// What makes the run incomplete, a sentence each: it did not finish, or a version, or an area that the server declares,
    /// has no tested check.
    pub fn unfinished(&self) -> Vec<String> {
        let ended = match (self.is_interrupted, self.is_budget_spent) {
            (true, _) => Some("the run was interrupted: what was not sent by then is not tested"),
            (false, true) => Some(
                "the time of --budget was over: what was not sent by then is not tested; a longer --budget tries it",
            ),
            (false, false) => None,
        };
        let mut all: Vec<_> = ended.map(ToOwned::to_owned).into_iter().collect();
        all.extend(self.unanswered.iter().map(|it| format!("{} was not checked: {}", it.version, it.reason)));
        all.extend(self.untested());
        all.extend(self.untried.iter().cloned());
        all
    }

    /// The versions, and then the areas that it declares, of which no check was tested, and why.
    fn untested(&self) -> Vec<String> {
        let versions = self.versions.iter().filter_map(|it| Some((it.version, why_untested(&it.applying())?)));
        let versions: Vec<_> =
            versions.map(|(version, why)| format!("{version}: no check was tested: {why}")).collect();
        if !versions.is_empty() {
            return versions;
        }
        let declared = self
            .versions
            .iter()
            .flat_map(CheckedVersion::applying)
            .filter_map(|check| Some((check.declared()?, check)));
        let untested = grouped(declared, |one, other| one == other).into_iter();
        let untested = untested.filter_map(|(area, checks)| Some((area, why_untested(&checks)?)));
        untested.map(|(area, why)| format!("`{area}` is declared, and nothing of it was tested: {why}")).collect()
    }

    /// Makes violations that come from an SDK count no longer.
    pub fn accept_sdk(&mut self) {
        for check in self.versions.iter_mut().flat_map(|version| &mut version.checks) {
            for violation in &mut check.violations {
                violation.accepted = violation.sdk.as_ref().map(|sdk| format!("it comes from the {sdk}"));
            }
            check.accept();
        }
    }

    /// What makes `rehearse check` fail: the error, and a line for each violation, with the version and the id of its check.
    pub fn failures(&self) -> Vec<String> {
        let mut failures: Vec<_> = self.error.iter().cloned().collect();
        for CheckedVersion { version, checks } in &self.versions {
            for check in checks.iter().filter(|check| check.verdict == CheckVerdict::Fail) {
                let violations = check.open_violations();
                failures.extend(violations.map(|violation| format!("{version} {}: {}", check.id, violation.text())));
            }
        }
        failures
    }
}

impl CheckedVersion {
    /// The checks that could be tested.
    fn applying(&self) -> Vec<&JudgedCheck> {
        self.checks.iter().filter(|check| check.applies()).collect()
    }

    /// Gives the checks whose cause is accepted a verdict of their own: what comes new must not hide behind what is known.
    pub(crate) fn part_from_accepted(&mut self) {
        let accepted = self.checks.iter().filter(|check| check.verdict == CheckVerdict::Accepted);
        let accepted: Vec<_> = accepted.map(|check| check.id.clone()).collect();
        for check in self.checks.iter_mut().filter(|check| check.verdict == CheckVerdict::NotTested) {
            if check.cause.take_if(|cause| accepted.iter().any(|id| id == cause)).is_some() {
                (check.reason, check.verdict) = (None, CheckVerdict::Accepted);
                check.verdict = check.open_violations().map(|it| it.verdict).min().unwrap_or(CheckVerdict::Accepted);
                check.accept();
            }
        }
    }

    /// The checks whose violations only follow from one of this check.
    pub(crate) fn followers<'v>(&'v self, id: &'v str) -> impl Iterator<Item = &'v str> {
        self.checks.iter().filter(move |check| check.cause.as_deref() == Some(id)).map(|check| check.id.as_str())
    }
}

/// Why none of these checks was tested, in the words of most of them; `None` if one was.
fn why_untested(checks: &[&JudgedCheck]) -> Option<String> {
    let untested = checks.iter().filter(|check| check.verdict == CheckVerdict::NotTested);
    let reasons = grouped(untested.filter_map(|it| Some((it.reason.as_deref()?, ()))), |one, other| one == other);
    let most = reasons.into_iter().rev().max_by_key(|(_, times)| times.len())?.0;
    (!checks.iter().any(|check| check.is_tested())).then(|| most.to_owned())
}

impl JudgedCheck {
    /// Whether it could be tested in the version.
    fn applies(&self) -> bool {
        self.verdict != CheckVerdict::NotApplicable && !self.is_left_out
    }

    /// Whether it was tested, so that its verdict counts.
    pub fn is_tested(&self) -> bool {
        self.cause.is_some()
            || !matches!(self.verdict, CheckVerdict::NotTested | CheckVerdict::Info | CheckVerdict::NotApplicable)
    }

    /// The area that the server declares for it to apply. Checks of harm look at other areas, and test none of them.
    fn declared(&self) -> Option<&str> {
        let is_of_server = !self.id.starts_with("client-") && self.area() != "safety";
        self.capability.as_deref().filter(|_| is_of_server)?.split('/').next()
    }

    /// The first part of the id.
    pub(crate) fn area(&self) -> &str {
        self.id.split('.').next().unwrap_or_default()
    }

    /// The violations that nothing accepts.
    pub(crate) fn open_violations(&self) -> impl Iterator<Item = &FoundViolation> {
        self.violations.iter().filter(|violation| violation.accepted.is_none())
    }

    /// Gives the verdict again after some violations were accepted.
    pub(crate) fn accept(&mut self) {
        let Some(reason) = self.violations.iter().find_map(|violation| violation.accepted.clone()) else { return };
        if self.cause.is_some() {
            return;
        }
        match self.open_violations().map(|violation| violation.verdict).min() {
            Some(verdict) => self.verdict = self.verdict.max(verdict),
            None => (self.verdict, self.reason) = (CheckVerdict::Accepted, Some(reason)),
        }
    }

    /// The SDK that all its violations come from.
    pub(crate) fn sdk(&self) -> Option<&str> {
        let first = self.violations.first()?.sdk.as_deref()?;
        self.violations.iter().all(|it| it.sdk.is_some()).then_some(first)
    }

    /// The rule and what was found first, in one line.
    pub(crate) fn message(&self) -> String {
        let found = self.open_violations().next().map(|it| format!(" {}", it.text())).unwrap_or_default();
        let reason = self.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{}{found}{reason}", self.rule)
    }
}

impl FoundViolation {
    /// What violates the rule, and how.
    pub(crate) fn text(&self) -> String {
        let subject = self.subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
        format!("{subject}found {}", self.found)
    }
}

impl CheckTotals {
    fn count<'r>(checks: impl Iterator<Item = &'r JudgedCheck>) -> CheckTotals {
        let mut totals = CheckTotals::default();
        for check in checks {
            *match check.verdict {
                CheckVerdict::Fail => &mut totals.failed,
                CheckVerdict::Warn => &mut totals.warnings,
                CheckVerdict::NotTested => &mut totals.not_tested,
                CheckVerdict::Accepted => &mut totals.accepted,
                CheckVerdict::Info => &mut totals.info,
                CheckVerdict::Pass => &mut totals.passed,
                CheckVerdict::NotApplicable => &mut totals.not_applicable,
            } += 1;
        }
        totals
    }

    /// Whether any check was tested.
    fn is_tested(self) -> bool {
        self.failed + self.warnings + self.accepted + self.info + self.passed > 0
    }
}

impl CheckResult {
    /// A run that begins now and has checked nothing yet.
    pub fn new(started_at: String, seed: u64, strict: bool) -> CheckResult {
        CheckResult {
            format: 1,
            verdict: Verdict::default(),
            started_at,
            rehearse: env!("CARGO_PKG_VERSION").to_owned(),
            duration: Duration::ZERO,
            seed,
            strict,
            shard: None,
            shards: Vec::new(),
            acts: Vec::new(),
            totals: CheckTotals::default(),
            baseline: None,
            servers: Vec::new(),
        }
    }

    /// Every check of every server and version.
    pub fn checks(&self) -> impl Iterator<Item = &JudgedCheck> {
        self.servers.iter().flat_map(|server| &server.versions).flat_map(|version| &version.checks)
    }

    /// Makes failures of the checks that were not tested, if `is_required` says so.
    pub fn require(&mut self, is_required: impl Fn(&str) -> bool) {
        let checks = self.servers.iter_mut().flat_map(|server| &mut server.versions).flat_map(|it| &mut it.checks);
        for check in checks.filter(|check| check.verdict == CheckVerdict::NotTested && is_required(&check.id)) {
            check.verdict = CheckVerdict::Fail;
            let reason = check.reason.take().unwrap_or_default();
            check.reason = Some(format!("--require wants it tested, but it was not: {reason}"));
        }
    }

    /// Counts the checks again.
    pub(crate) fn recount(&mut self) {
        self.totals = CheckTotals::count(self.checks());
    }

    /// Which parts of a check are missing, as a sentence for each.
    pub fn missing_shards(&self) -> Vec<String> {
        self.shards.iter().filter_map(MergedShards::sentence).collect()
    }

    /// How long the runs of a client took, by the first act of each; `None` if it is not a check of a client.
    pub fn durations(&self) -> Option<BTreeMap<String, Duration>> {
        let runs = self.acts.iter().filter_map(|run| Some((run.acts.first()?.clone(), run.duration)));
        (!self.acts.is_empty()).then(|| runs.collect())
    }

    /// Counts, gives the verdict, and leaves out what no report shows. The last change of a result.
    pub fn conclude(&mut self, is_interrupted: bool) {
        self.decide(is_interrupted);
        for server in &mut self.servers {
            let command = server.command_words();
            for check in server.versions.iter_mut().flat_map(|version| &mut version.checks) {
                // What is still open comes first.
                check.violations.sort_by_key(|violation| violation.accepted.is_some());
                check.violations.truncate(KEPT);
                let is_open = check.verdict <= CheckVerdict::Warn;
                let act = check.act.take().map(|act| format!(" --act {}", quoted(&act))).unwrap_or_default();
                check.again = is_open.then(|| format!("{}{act} --only {}{command}", server.again, check.id));
            }
        }
    }

    /// Counts, and gives the verdict.
    pub(crate) fn decide(&mut self, is_interrupted: bool) {
        self.recount();
        let is_unfit = self.servers.iter().flat_map(|server| &server.profiles).any(ProfileFit::is_failed);
        self.verdict = self.verdict_with(is_interrupted, is_unfit);
    }

    /// The verdict of the checks alone; of the run only a profile may say that it failed.
    pub(crate) fn verdict_of_checks(&self) -> Verdict {
        if self.verdict == Verdict::Failed { self.verdict_with(false, false) } else { self.verdict }
    }

    fn verdict_with(&self, is_interrupted: bool, is_unfit: bool) -> Verdict {
        let is_stale = self.baseline.as_ref().is_some_and(|it| !it.stale.is_empty());
        let is_failed = self.totals.failed > 0 || (self.strict && self.totals.warnings > 0) || is_stale || is_unfit;
        if self.servers.iter().any(|server| server.error.is_some()) {
            Verdict::CannotRun
        } else if is_interrupted {
            Verdict::Incomplete
        } else if is_failed {
            Verdict::Failed
        } else if self.servers.iter().any(CheckedServer::is_ended_early) || !self.missing_shards().is_empty() {
            Verdict::Incomplete
        } else if !self.totals.is_tested() && self.servers.iter().all(|server| server.profiles.is_empty()) {
            Verdict::NothingTested
        } else if self.servers.iter().any(|server| !server.untested().is_empty()) {
            Verdict::Incomplete
        } else {
            Verdict::Passed
        }
    }

    /// The report in the words of the official conformance suite: its ids and its statuses.
    pub fn render_official(&self, format: Format) -> Vec<u8> {
        match format {
            Format::Json => json::render(&official::checks(self)),
            _ => official::render(self).into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests;
