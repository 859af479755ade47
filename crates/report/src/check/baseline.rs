//! The accepted failures of a server: a file of our own, or that of the official conformance suite.

use std::{fmt, fmt::Write, path::PathBuf};

use rehearse_document::{Node, Problems, nearest};
use rehearse_protocol::{Transport, Version};

use super::{BaselineUse, CheckResult, CheckVerdict, JudgedCheck, official};
use crate::schema::KEYS;

/// The reason of an entry before its author writes one.
const TODO: &str = "TODO";

/// The accepted failures of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    entries: Vec<Entry>,
    /// Whether the file is that of the official suite.
    is_official: bool,
}

/// One accepted failure.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    checks: Checks,
    /// Only this tool, resource or case; else all.
    subject: Option<String>,
    /// Only these transports; else all.
    transports: Vec<Transport>,
    versions: Option<Versions>,
    reason: String,
    /// Whether the failure comes and goes.
    flaky: bool,
    /// The last day on which it counts, such as `2027-01-31`.
    until: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Checks {
    /// As written, and the ids that match.
    Ours {
        pattern: String,
        ids: Vec<String>,
    },
    Official {
        scenario: String,
        id: Option<String>,
    },
}

/// `2025-11-25`, `>=2025-11-25` or `<=2025-11-25`.
#[derive(Clone, Debug, PartialEq)]
struct Versions {
    written: String,
    from: Version,
    to: Version,
}

impl Baseline {
    /// Reads a file. `ids` returns the ids of the checks that a pattern selects.
    ///
    /// # Errors
    /// A key is unknown or missing, or an entry can match nothing.
    pub fn read(node: &Node, ids: &dyn Fn(&str) -> Vec<String>) -> Result<Baseline, Problems> {
        if node.get("accept").is_none() && (node.get("server").is_some() || node.get("client").is_some()) {
            return Baseline::read_official(node);
        }
        let fields = KEYS.fields(node, "baseline")?;
        let version = fields.required("version")?;
        if version.integer::<u32>()? != 1 {
            return Err(version.problem("the version of a baseline must be 1").into());
        }
        let entries = fields.read_each("accept", |node| Entry::read(node, ids))?;
        Ok(Baseline { entries, is_official: false })
    }

    /// Reads the expected failures of the official suite: `scenario` or `scenario:check`.
    fn read_official(node: &Node) -> Result<Baseline, Problems> {
        let fields = node.fields("a file of expected failures", &["server", "client"])?;
        let entries = fields.read_each("server", |node| {
            let text = node.str()?;
            let (scenario, id) = match text.split_once(':') {
                Some((scenario, id)) => (scenario, Some(id.to_owned())),
                None => (text, None),
            };
            let checks = Checks::Official { scenario: scenario.to_owned(), id };
            let reason = "an expected failure of the official suite".to_owned();
            Ok(Entry {
                checks,
                subject: None,
                transports: Vec::new(),
                versions: None,
                reason,
                flaky: false,
                until: None,
            })
        })?;
        Ok(Baseline { entries, is_official: true })
    }

    /// Whether the file is that of the official suite, which we do not write.
    pub fn is_official(&self) -> bool {
        self.is_official
    }

    /// Accepts what an entry matches, and says which entries are stale. In a run that is not whole, or not over the
    /// transports of an entry, it is stale only if its checks were tested.
    pub fn apply(&self, result: &mut CheckResult, file: PathBuf, today: &str, is_whole: bool) -> Baseline {
        let mut uses = vec![Use::default(); self.entries.len()];
        for server in &mut result.servers {
            for version in &mut server.versions {
                for check in &mut version.checks {
                    for (entry, usage) in self.entries.iter().zip(&mut uses) {
                        if entry.covers(check, server.transport, version.version) {
                            entry.accept(check, usage, today);
                        }
                    }
                    check.accept();
                }
                version.part_from_accepted();
            }
        }
        let met: Vec<_> = result.servers.iter().map(|server| server.transport).collect();
        let is_met = |entry: &Entry| entry.transports.is_empty() || entry.transports.iter().any(|it| met.contains(it));
        let is_stale = |entry: &Entry, usage: &Use| {
            !entry.flaky && !usage.is_matched && !usage.is_untested && (usage.is_tested || (is_whole && is_met(entry)))
        };
        let is_unknown = |entry: &Entry, usage: &Use| {
            is_whole && matches!(entry.checks, Checks::Official { .. }) && !usage.is_applied
        };
        let of = |wanted: &dyn Fn(&Entry, &Use) -> bool| -> Vec<_> {
            let entries = self.entries.iter().zip(&uses).filter(|(entry, usage)| wanted(entry, usage));
            entries.map(|(entry, _)| entry.to_string()).collect()
        };
        result.baseline = Some(BaselineUse {
            file,
            stale: of(&|entry, usage| !is_unknown(entry, usage) && is_stale(entry, usage)),
            expired: of(&|entry, usage| usage.is_matched && entry.is_expired(today)),
            unknown: of(&is_unknown),
        });
        let kept = self.entries.iter().zip(&uses).filter(|(it, usage)| !is_stale(it, usage) && !it.is_expired(today));
        Baseline { entries: kept.map(|(entry, _)| entry.clone()).collect(), is_official: self.is_official }
    }

    /// Adds an entry for each failure that is not accepted, and if `strict` for each warning, with what follows from them.
    pub fn extend(&mut self, result: &CheckResult) {
        let worst = if result.strict { CheckVerdict::Warn } else { CheckVerdict::Fail };
        for check in result.checks().filter(|check| check.verdict <= worst || check.cause.is_some()) {
            for violation in check.open_violations().filter(|violation| violation.verdict <= worst) {
                let checks = Checks::Ours { pattern: check.id.clone(), ids: vec![check.id.clone()] };
                let (transports, reason) = (Vec::new(), TODO.to_owned());
                let subject = violation.subject.clone();
                let entry = Entry { checks, subject, transports, versions: None, reason, flaky: false, until: None };
                if !self.entries.contains(&entry) {
                    self.entries.push(entry);
                }
            }
        }
    }

    /// The file.
    pub fn to_yaml(&self) -> String {
        let mut out = "version: 1\naccept:".to_owned();
        if self.entries.is_empty() {
            out.push_str(" []\n");
            return out;
        }
        out.push('\n');
        for entry in &self.entries {
            let Checks::Ours { pattern, .. } = &entry.checks else { continue };
            let _ = writeln!(out, "  - id: {}", scalar(pattern));
            if let Some(subject) = &entry.subject {
                let _ = writeln!(out, "    subject: {}", quoted(subject));
            }
            let transports: Vec<_> = entry.transports.iter().map(|it| it.as_str()).collect();
            let transports = (!transports.is_empty()).then(|| format!("transport: [{}]", transports.join(", ")));
            let versions = entry.versions.as_ref().map(|versions| format!("version: {}", quoted(&versions.written)));
            let when: Vec<_> = transports.into_iter().chain(versions).collect();
            if !when.is_empty() {
                let _ = writeln!(out, "    when: {{ {} }}", when.join(", "));
            }
            let _ = writeln!(out, "    reason: {}", quoted(&entry.reason));
            if entry.flaky {
                out.push_str("    flaky: true\n");
            }
            if let Some(until) = &entry.until {
                let _ = writeln!(out, "    until: {until}");
            }
        }
        out
    }
}

/// What an entry was good for.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    is_matched: bool,
    /// Whether a check that it covers was tested.
    is_tested: bool,
    /// Whether one applies, but was not tested.
    is_untested: bool,
    /// Whether there is one at all.
    is_applied: bool,
}

impl Entry {
    fn read(node: &Node, ids: &dyn Fn(&str) -> Vec<String>) -> Result<Entry, Problems> {
        let fields = KEYS.fields(node, "acceptedFailure")?;
        let id = fields.required("id")?;
        let pattern = id.str()?;
        let found = ids(pattern);
        if found.is_empty() {
            let known = ids("*");
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            let problem = id.problem(format!("no check has the id {pattern:?}"));
            return Err(match nearest(pattern, &known) {
                Some(near) => problem.hint(format!("did you mean {near}?")),
                None => problem.hint("`rehearse check --list` prints all ids"),
            }
            .into());
        }
        let reason = fields.required("reason")?;
        if reason.str()?.trim().is_empty() {
            return Err(reason.problem("the reason must not be empty").into());
        }
        let subject = fields.read("subject", Node::str)?.map(ToOwned::to_owned);
        let flaky = fields.read("flaky", Node::bool)?.unwrap_or_default();
        let until = fields.read("until", date)?;
        let (mut transports, mut versions) = (Vec::new(), None);
        if let Some(when) = fields.get("when") {
            let when = KEYS.fields(when, "when")?;
            transports = when.read("transport", |node| node.one_or_more(Node::parsed))?.unwrap_or_default();
            versions = when.read("version", Versions::read)?;
        }
        let checks = Checks::Ours { pattern: pattern.to_owned(), ids: found };
        Ok(Entry { checks, subject, transports, versions, reason: reason.str()?.to_owned(), flaky, until })
    }

    fn covers(&self, check: &JudgedCheck, transport: Transport, version: Version) -> bool {
        let is_covered = match &self.checks {
            Checks::Ours { ids, .. } => ids.contains(&check.id),
            Checks::Official { scenario, id } => official::is_known_as(scenario, id.as_deref(), &check.official),
        };
        is_covered
            && (self.transports.is_empty() || self.transports.contains(&transport))
            && self.versions.as_ref().is_none_or(|it| (it.from..=it.to).contains(&version))
    }

    /// Accepts the violations that match, unless the entry has expired.
    fn accept(&self, check: &mut JudgedCheck, usage: &mut Use, today: &str) {
        usage.is_applied = true;
        usage.is_untested |= check.verdict == CheckVerdict::NotTested;
        usage.is_tested |= !matches!(check.verdict, CheckVerdict::NotTested | CheckVerdict::NotApplicable);
        for violation in check.violations.iter_mut().filter(|it| it.verdict <= CheckVerdict::Warn) {
            if self.subject.is_none() || self.subject == violation.subject {
                usage.is_matched = true;
                if !self.is_expired(today) {
                    violation.accepted.get_or_insert_with(|| self.reason.clone());
                }
            }
        }
    }

    fn is_expired(&self, today: &str) -> bool {
        // Dates of this form are in order as texts.
        self.until.as_deref().is_some_and(|until| until < today)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.checks {
            Checks::Ours { pattern, .. } => f.write_str(pattern)?,
            Checks::Official { scenario, id: None } => f.write_str(scenario)?,
            Checks::Official { scenario, id: Some(id) } => write!(f, "{scenario}:{id}")?,
        }
        self.subject.as_ref().map_or(Ok(()), |subject| write!(f, " ({subject})"))
    }
}

impl Versions {
    fn read(node: &Node) -> Result<Versions, Problems> {
        let written = node.str()?;
        let (operator, version) = match written.split_at_checked(2) {
            Some((operator @ (">=" | "<="), version)) => (operator, version.trim()),
            _ => ("", written),
        };
        let version: Version = version.parse().map_err(|_| {
            node.problem(format!("{version:?} is not a protocol version"))
                .hint("write a version, such as 2025-11-25, or >= or <= before one")
        })?;
        let all = Version::ALL;
        let (from, to) = match operator {
            ">=" => (version, all.into_iter().max().unwrap_or(version)),
            "<=" => (all.into_iter().min().unwrap_or(version), version),
            _ => (version, version),
        };
        Ok(Versions { written: written.to_owned(), from, to })
    }
}

/// A date such as `2027-01-31`.
fn date(node: &Node) -> Result<String, Problems> {
    let text = node.str()?;
    let parts: Vec<_> = text.split('-').collect();
    let is_number = |part: &str, length: usize, most: u32| {
        part.len() == length && part.parse::<u32>().is_ok_and(|number| (1..=most).contains(&number))
    };
    match parts[..] {
        [year, month, day] if is_number(year, 4, 9999) && is_number(month, 2, 12) && is_number(day, 2, 31) => {
            Ok(text.to_owned())
        }
        _ => Err(node.problem(format!("{text:?} is not a date")).hint("write a date such as 2027-01-31").into()),
    }
}

/// A text as a YAML scalar, quoted if it has to be.
fn scalar(text: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-');
    if text.starts_with(|it: char| it.is_ascii_lowercase()) && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// A text in double quotes: a string of JSON is one of YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
