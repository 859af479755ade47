//! The result of `rehearse diff`: what has changed between two surfaces of a server.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::Verdict;

/// The version of the data format.
pub const FORMAT: u32 = 1;

/// The changes from one surface to another.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffResult {
    /// The version of this data format.
    pub format: u32,
    /// The version of `rehearse`.
    pub rehearse: String,
    /// The surface before.
    pub old: Side,
    /// The surface after.
    pub new: Side,
    /// The least class that fails; absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<Class>,
    /// The changes, worst first.
    pub changes: Vec<Change>,
    /// The recorded calls that the new surface refuses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_calls: Vec<RefusedCall>,
    /// How many recorded calls were held against the new surface; absent if none were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<usize>,
    /// What the version number has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// What the baseline accepts, and no change has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
    /// Whether a change fails that is not accepted.
    pub verdict: Verdict,
}

/// One of the two surfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The file, the URL, the name or the command.
    pub name: String,
    /// The name and the version that the server gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// What a change may do to those who use the server, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Only people notice it.
    Cosmetic,
    /// Something new, on which no client relies yet.
    Addition,
    /// A model may choose or act differently.
    Behaviour,
    /// A call, a reader or a host that worked may fail.
    Breaking,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What it may do.
    pub class: Class,
    /// Whether its class is the worst that it may have, and nothing shows that it has it.
    #[serde(default, rename = "possible", skip_serializing_if = "std::ops::Not::not")]
    pub is_possible: bool,
    /// The stable id of the rule that gave the class, such as `input.required-added`.
    pub rule: String,
    /// What has changed, such as `tool search`.
    pub subject: String,
    /// Where it is in the old surface, as a JSON pointer; absent if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Where it is in the new surface, as a JSON pointer; absent if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// What has changed, and why it has this class, as a sentence.
    pub message: String,
    /// A value that one side accepts and the other refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Json>,
    /// The file and the line of it in the new surface, or of its owner in the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<ChangePlace>,
    /// Why it is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
}

/// A line of a surface file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangePlace {
    /// The path of the file.
    pub file: String,
    /// The line, which counts from 1.
    pub line: usize,
}

/// Recorded calls that the new surface refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedCall {
    /// What was called, such as `tool search`.
    pub subject: String,
    /// The name and version of the client; absent if the trace does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Why the new surface refuses it, as a sentence.
    pub reason: String,
    /// How often it was called so.
    pub count: usize,
    /// The trace with the first of these calls.
    pub trace: String,
    /// The arguments of the first of these calls.
    pub arguments: Json,
}

impl Class {
    /// All classes, worst first.
    pub const ALL: [Class; 4] = [Class::Breaking, Class::Behaviour, Class::Addition, Class::Cosmetic];

    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Class::Breaking => "breaking",
            Class::Behaviour => "behaviour",
            Class::Addition => "addition",
            Class::Cosmetic => "cosmetic",
        }
    }
}

impl Change {
    /// Sorts changes, worst first.
    pub fn sort(changes: &mut [Change]) {
        changes.sort_by(|one, other| {
            let key = |change: &Change| (std::cmp::Reverse(change.class), change.is_possible);
            key(one).cmp(&key(other)).then_with(|| one.subject.cmp(&other.subject))
        });
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl DiffResult {
    /// Decides the verdict: it has failed if a change of the least class that fails, or of a worse one, is not accepted, if
    /// a recorded call is refused, or if the baseline accepts what is no change.
    pub fn decide(&mut self) {
        let is_failed = self.fail_on.is_some()
            && (self.changes.iter().any(|change| self.fails(change)) || !self.refused_calls.is_empty());
        let has_failed = is_failed || !self.stale.is_empty();
        self.verdict = if has_failed { Verdict::Failed } else { Verdict::Passed };
    }

    /// Whether a change makes the verdict fail.
    pub fn fails(&self, change: &Change) -> bool {
        change.accepted.is_none() && self.fail_on.is_some_and(|least| change.class >= least)
    }

    /// How many changes of a class are not accepted.
    pub fn count(&self, class: Class) -> usize {
        self.changes.iter().filter(|change| change.class == class && change.accepted.is_none()).count()
    }
}
