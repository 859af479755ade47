//! How a server fits a host, a provider or a directory.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a profile says of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileFit {
    /// The name of the profile, such as `claude-code`.
    pub profile: String,
    /// What people call it.
    pub title: String,
    /// What it is of.
    pub kind: ProfileKind,
    /// The worst that was found.
    pub fit: Fit,
    /// Whether the run fails if it is blocked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// What it breaks, worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ProfileFinding>,
    /// How many rules the profile has.
    #[serde(default)]
    pub rules: usize,
    /// How many rules it keeps.
    pub kept: usize,
    /// The rules of which nothing was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untried: Vec<UntriedRule>,
    /// Why it is not known whether the server can be used, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// What the profile has no rule about, such as `schemas`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent_on: Vec<String>,
}

/// What a profile is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProfileKind {
    /// A program with a model and servers.
    Host,
    /// The API of a model.
    Provider,
    /// A list of servers.
    Directory,
}

/// Whether a server can be used, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// Nothing is lost.
    Works,
    /// A part is lost, cut or changed.
    Degraded,
    /// It is not known whether it can be used.
    Unknown,
    /// The server, or all that it offers, cannot be used.
    Blocked,
}

/// What breaking a rule does, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleLevel {
    /// Nothing is lost; the owner of the profile recommends it.
    Advice,
    /// A part is lost, cut or changed.
    Degrades,
    /// The item, or the server, cannot be used.
    Blocks,
}

/// A rule that a server breaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileFinding {
    /// The id of the rule.
    pub rule: String,
    /// What that does.
    pub level: RuleLevel,
    /// What breaks it, such as `tool search`; absent if it is the server as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What was seen, as a sentence.
    pub message: String,
    /// What the host does, as a sentence.
    pub effect: String,
    /// Where that was observed.
    pub source: String,
    /// When that was observed, such as `2026-03-01`.
    pub seen: String,
    /// If it was tried as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measurement>,
}

/// A trial of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// The version that was tried.
    pub version: String,
    /// When, such as `2026-03-01`.
    pub date: String,
}

/// `measured with 1.2.3 on 2026-03-01`
impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "measured with {} on {}", self.version, self.date)
    }
}

/// A rule of which nothing was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UntriedRule {
    /// Its id.
    pub rule: String,
    /// Why, as a sentence without a point.
    pub reason: String,
}

impl Fit {
    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Fit::Works => "works",
            Fit::Degraded => "degraded",
            Fit::Unknown => "unknown",
            Fit::Blocked => "blocked",
        }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl ProfileKind {
    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            ProfileKind::Host => "host",
            ProfileKind::Provider => "provider",
            ProfileKind::Directory => "directory",
        }
    }
}

impl ProfileFit {
    /// Whether it makes the run fail.
    pub fn is_failed(&self) -> bool {
        self.required && self.fit == Fit::Blocked
    }

    /// How many findings have this level.
    pub fn count(&self, level: RuleLevel) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }
}

impl RuleLevel {
    /// All levels, worst first.
    pub const ALL: [RuleLevel; 3] = [RuleLevel::Blocks, RuleLevel::Degrades, RuleLevel::Advice];

    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            RuleLevel::Advice => "advice",
            RuleLevel::Degrades => "degrades",
            RuleLevel::Blocks => "blocks",
        }
    }
}

impl ProfileFinding {
    /// What was seen and what follows, in one text.
    pub fn sentence(&self) -> String {
        let subject = self.subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
        format!("{subject}{} {}", self.message, self.effect)
    }

    /// When the host was seen to do that, and where.
    pub fn evidence(&self) -> String {
        match &self.measured {
            Some(measured) => measured.to_string(),
            None => format!("seen {} in {}", self.seen, self.source),
        }
    }
}
