//! The checks, and their judgement.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use rehearse_protocol::{Transport, Version, names::APPS_EXTENSION};
use serde::{Deserialize, Serialize};

use crate::{
    CheckOutcome, CheckVerdict, Evidence, Judgement,
    areas::{self, Judge},
    cause, citation,
    evidence::{Sought, sought},
    facts::MoreTools,
    sdk, silence,
};

/// How binding a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Level {
    #[serde(rename = "MUST")]
    Must,
    #[serde(rename = "MUST NOT")]
    MustNot,
    #[serde(rename = "SHOULD")]
    Should,
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    /// Follows from a sentence without a keyword, an example, or a document that the text builds on.
    #[serde(rename = "derived")]
    Derived,
    /// Not specified; recorded because people want to know.
    #[serde(rename = "info")]
    Info,
}

impl Level {
    /// The keyword.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Must => "MUST",
            Level::MustNot => "MUST NOT",
            Level::Should => "SHOULD",
            Level::ShouldNot => "SHOULD NOT",
            Level::Derived => "derived",
            Level::Info => "info",
        }
    }

    /// The verdict on a violation.
    pub const fn violated(self) -> CheckVerdict {
        match self {
            Level::Must | Level::MustNot => CheckVerdict::Fail,
            Level::Should | Level::ShouldNot | Level::Derived => CheckVerdict::Warn,
            Level::Info => CheckVerdict::Info,
        }
    }
}

/// Whom a rule binds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    #[default]
    Server,
    Client,
    /// An authorization server.
    Issuer,
    /// A server to its clients, and a client of an upstream server.
    Gateway,
}

/// One rule of the specification.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Check {
    /// `area.subject.rule`. Never renamed, never used again.
    pub id: String,
    /// The level in each version in which the rule exists.
    pub levels: BTreeMap<Version, Level>,
    /// The level if harm counts: it is no rule of the specification.
    #[serde(default)]
    pub with_safety: Option<Level>,
    /// The transports on which the rule exists.
    pub transports: Vec<Transport>,
    /// The rule, in one sentence.
    pub rule: String,
    /// The capability without which the rule does not apply, as [`Facts::declares`](crate::Facts::declares) takes it.
    #[serde(default)]
    pub capability: Option<String>,
    /// The capability with which the rule does not apply.
    #[serde(default)]
    pub without_capability: Option<String>,
    /// The extension without which the rule does not apply.
    #[serde(default)]
    pub extension: Option<String>,
    /// What the server must have so that the rule can be tested, as in [`Facts::missing`](crate::Facts::missing).
    #[serde(default)]
    pub needs: Option<String>,
    /// Whether the rule applies only to a server that requires authorization.
    #[serde(default)]
    pub authorization: bool,
    /// How the rule is looked at.
    pub looks_at: String,
    /// What a correct server may do as well.
    #[serde(default)]
    pub allowed: Option<String>,
    /// What to do about a violation.
    #[serde(default)]
    pub help: Option<String>,
    /// The ids of the official conformance suite.
    #[serde(default)]
    pub official: Vec<String>,
    /// The section of the specification in each version, as `basic#messages`, or an address. One of another document
    /// than the specification holds for all older versions without their own.
    pub sections: BTreeMap<Version, String>,
    /// How a violation is looked at again that depends on time or order, so that another run may not show it.
    #[serde(default)]
    pub confirm: Option<Confirmation>,
    /// Whether a message that violates it shows nothing of other checks.
    #[serde(default)]
    pub taints: bool,
    /// The checks that a peer violates as well if it violates this one.
    #[serde(default)]
    pub explains: Vec<String>,
}

/// How a second run looks at a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// Other versions are looked at again at the same time.
    Parallel,
    /// What is called in another version may be the cause, so no other is looked at.
    Alone,
}

impl Check {
    /// The first part of the id.
    pub fn area(&self) -> &str {
        self.id.split('.').next().unwrap_or_default()
    }

    /// Whom the rule binds.
    pub fn role(&self) -> Role {
        match self.area() {
            "issuer" => Role::Issuer,
            "gateway" => Role::Gateway,
            area if area.starts_with("client-") => Role::Client,
            _ => Role::Server,
        }
    }

    /// Whether the rule holds for any traffic, not only for what a probe sends.
    pub fn is_passive(&self) -> bool {
        PASSIVE.contains(self.id.as_str())
    }

    /// The page of the specification about this rule in a version.
    pub fn link(&self, version: Version) -> String {
        let (version, section) = match self.sections.get(&version) {
            Some(section) => (version, section.as_str()),
            None => self.sections.iter().next_back().map_or((version, ""), |(version, section)| (*version, section)),
        };
        citation::link(version, section)
    }

    /// Why the rule does not apply, if it does not.
    pub(crate) fn not_applicable(&self, evidence: &Evidence<'_>) -> Option<String> {
        let facts = &evidence.facts;
        if !self.levels.contains_key(&evidence.version) {
            return Some(format!("not in {}", evidence.version));
        }
        let transport = if evidence.transport == Transport::Memory { Transport::Stdio } else { evidence.transport };
        if !self.transports.contains(&transport) {
            return Some(format!("not on {}", evidence.transport));
        }
        if let Some(capability) = self.capability.as_deref().filter(|name| !facts.declares(name)) {
            return Some(format!("{capability} is not declared"));
        }
        if let Some(capability) = self.without_capability.as_deref().filter(|name| facts.declares(name)) {
            return Some(format!("{capability} is declared"));
        }
        if self.authorization && !areas::auth::is_required(evidence) {
            return Some("the server requires no authorization".to_owned());
        }
        match self.extension.as_deref() {
            Some(APPS_EXTENSION) if self.role() == Role::Server && !areas::apps::has_any(evidence) => {
                return Some("the server has no apps".to_owned());
            }
            Some(APPS_EXTENSION) | None => {}
            Some(extension) if !facts.has_extension(extension) => {
                return Some(format!("the extension {extension} is not declared"));
            }
            Some(_) => {}
        }
        None
    }

    /// The level at which it is judged; `None` if the rule is not in the version.
    pub(crate) fn level(&self, evidence: &Evidence<'_>) -> Option<Level> {
        let level = self.levels.get(&evidence.version).copied()?;
        Some(self.with_safety.filter(|_| evidence.facts.counts_harm).unwrap_or(level))
    }

    /// Why the rule was not tested if no judge says so.
    fn unseen(&self, sought: Sought) -> &'static str {
        match self.nothing_seen() {
            _ if sought.is_sent && !sought.is_answered => "the server did not answer",
            Some(reason) => reason,
            None if sought.is_sent => "the answer does not show it",
            None => "the run had no example of this",
        }
    }

    /// Why the rule was not tested if nothing that it is about was seen.
    fn nothing_seen(&self) -> Option<&'static str> {
        let lines = include_str!("../checks/untested.txt").lines().filter_map(|line| line.split_once(' '));
        let is_about = |pattern: &str| match pattern.split_once('*') {
            Some((start, rest)) => self.id.starts_with(start) && self.id.contains(rest.trim_end_matches('*')),
            None => self.id == pattern,
        };
        lines.into_iter().find(|(pattern, _)| is_about(pattern)).map(|(_, reason)| reason.trim())
    }

    /// Judges the check.
    pub fn judge(&self, evidence: &Evidence<'_>) -> CheckOutcome {
        if let Some(reason) = self.not_applicable(evidence) {
            return CheckOutcome::without(CheckVerdict::NotApplicable, reason, self.level(evidence));
        }
        if self.role() == Role::Gateway && evidence.has_gap() {
            let reason = "not all messages of both sides are kept: what is missing on one may be there".to_owned();
            return CheckOutcome::without(CheckVerdict::NotTested, reason, self.level(evidence));
        }
        let mut judgement = Judgement::default();
        let sought = sought(|| {
            if let Some(judge) = JUDGES.get(self.id.as_str()) {
                judge(evidence, &mut judgement);
                if self.role() == Role::Server {
                    silence::excuse(evidence, &mut judgement);
                }
            }
        });
        let counted = self.level(evidence);
        let level = counted.unwrap_or(Level::Info);
        let worst = judgement.violations.iter().map(|found| found.level.unwrap_or(level).violated()).min();
        let (verdict, reason) = match worst {
            Some(verdict) => (verdict, None),
            None if judgement.exercised > 0 && level == Level::Info => (CheckVerdict::Info, None),
            None if judgement.exercised > judgement.settled && evidence.is_cut()
                || judgement.exercised > 0 && evidence.has_gap() =>
            {
                (CheckVerdict::NotTested, Some("the trace is not whole; what it has keeps the rule".to_owned()))
            }
            None if judgement.exercised > 0 => (CheckVerdict::Pass, None),
            None if sought.has_missed => {
                (CheckVerdict::NotTested, Some("the server had ended the connection".to_owned()))
            }
            None => {
                let missing = evidence.facts.missing.iter().find(|(what, _)| Some(what) == self.needs.as_ref());
                let reason = missing.map(|(_, why)| why.clone()).or_else(|| judgement.untested.clone());
                let reason = reason.unwrap_or_else(|| self.unseen(sought).to_owned());
                (CheckVerdict::NotTested, Some(advised(reason, &evidence.facts.more_tools)))
            }
        };
        CheckOutcome { verdict, level: counted, reason, judgement, cause: None, is_left_out: false }
    }
}

/// A reason with the advice to allow tools only if that may help.
fn advised(reason: String, more: &MoreTools) -> String {
    match (reason.split_once("; ").filter(|(_, advice)| advice.contains("--allow-tool")), more) {
        (Some((what, _)), MoreTools::Uncalled(which)) => format!("{what}; {which}"),
        (Some((what, _)), MoreTools::None) => what.to_owned(),
        (Some(_), MoreTools::Others) | (None, _) => reason,
    }
}

/// The ids of the checks that hold for any traffic. Others rely on what a probe sends: that a resource was not removed, or
/// that no call was cancelled.
static PASSIVE: LazyLock<BTreeSet<&str>> = LazyLock::new(|| include_str!("../checks/passive.txt").lines().collect());

static JUDGES: LazyLock<BTreeMap<&'static str, Judge>> =
    LazyLock::new(|| areas::ALL.iter().flat_map(areas::Area::judges).collect());

static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(|| {
    let lines = areas::ALL.iter().flat_map(|area| area.checks.lines());
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
});

/// Every check, in the order of the areas: those about servers, about authorization servers, and about clients.
pub fn checks() -> &'static [Check] {
    &CHECKS
}

/// The checks about a role, in order.
pub fn checks_of(role: Role) -> impl Iterator<Item = &'static Check> {
    checks().iter().filter(move |check| check.role() == role)
}

/// Judges every check about [the role](crate::Facts::role) that is checked, in order.
pub fn judge_all(evidence: &Evidence<'_>) -> Vec<(&'static Check, CheckOutcome)> {
    judge_selected(evidence, checks_of(evidence.facts.role))
}

/// Judges these checks. One that is violated only because
/// another one is has that as its [cause](CheckOutcome::cause), and is not tested.
pub fn judge_selected(
    evidence: &Evidence<'_>,
    checks: impl Iterator<Item = &'static Check>,
) -> Vec<(&'static Check, CheckOutcome)> {
    let mut outcomes: Vec<_> = checks.map(|check| (check, check.judge(evidence))).collect();
    sdk::attribute(evidence, &mut outcomes);
    cause::find(evidence, &mut outcomes);
    outcomes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::{Direction, EventKind, Trace};

    use super::*;
    use crate::Facts;

    #[test]
    fn the_reason_of_a_check_that_saw_nothing_is_that_of_the_first_pattern() {
        let reason = |id: &str| checks().iter().find(|check| check.id == id).and_then(Check::nothing_seen);
        assert_eq!(reason("progress.message.string"), Some("no progress had a message"));
        assert_eq!(reason("progress.token.only-known"), Some("the server sent no progress"));
        assert_eq!(reason("tools.input.no-external-ref"), Some("no input schema has a `$ref`"));
        let unused = include_str!("../checks/untested.txt").lines().filter(|line| {
            let line = line.split_once(' ').map(|(_, reason)| reason.trim());
            !checks().iter().any(|check| check.nothing_seen() == line)
        });
        assert_eq!(unused.collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn what_was_sent_and_not_answered_is_not_called_unsent() {
        let mut trace = Trace::default();
        trace.push(Duration::ZERO, EventKind::Case("negotiate/unknown-capability".into()));
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        trace.push_frame(Duration::ZERO, Direction::ClientToServer, request.into());
        let reason = |trace: &Trace, facts| {
            let evidence = Evidence::new(&[trace], Version::V2025_11_25, Transport::Stdio, facts);
            let check = checks().iter().find(|check| check.id == "life.init.unknown-capability-ignored");
            check.and_then(|check| check.judge(&evidence).reason)
        };
        assert_eq!(reason(&trace, Facts::default()).as_deref(), Some("the server did not answer"));
        let unsent = reason(&Trace::default(), Facts::default());
        assert!(unsent.is_some_and(|reason| reason.starts_with("over stdio it is sent in the newest version")));
    }

    #[test]
    fn every_line_is_a_check_of_its_area_with_a_judge_of_its_own() {
        let mut ids = BTreeSet::new();
        for area in areas::ALL {
            let judges: BTreeSet<_> = area.judges().map(|(id, _)| id).collect();
            assert_eq!(judges.len(), area.judges().count(), "{}: two judges of one check", area.name);
            let mut written = BTreeSet::new();
            for line in area.checks.lines() {
                let check: Check = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                assert_eq!(check.area(), area.name, "{}", check.id);
                assert!(
                    !check.levels.is_empty() && !check.transports.is_empty() && !check.rule.is_empty(),
                    "{}",
                    check.id
                );
                assert!(
                    check.levels.keys().any(|version| check.sections.contains_key(version)),
                    "{} has no link",
                    check.id
                );
                assert!(ids.insert(check.id.clone()), "{} twice", check.id);
                written.insert(check.id);
            }
            let written: BTreeSet<_> = written.iter().map(String::as_str).collect();
            assert_eq!(judges, written, "{}", area.name);
        }
        assert_eq!(ids.len(), checks().len());
        let unknown: Vec<_> = PASSIVE.iter().filter(|id| !ids.contains(**id)).collect();
        assert!(unknown.is_empty(), "no checks, in passive.txt: {unknown:?}");
        let unknown: Vec<_> = checks().iter().flat_map(|it| &it.explains).filter(|id| !ids.contains(*id)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
