//! How a run ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run ended, or several together; best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing failed.
    Passed,
    /// Nothing was run or tested, which is not a pass.
    #[default]
    NothingTested,
    /// The time was over before everything was tried, and nothing had failed by then.
    Incomplete,
    /// A cell, a check or a threshold failed, or what makes a run fail besides.
    Failed,
    /// A server could not be reached, or the run was interrupted.
    #[serde(alias = "cannotRun")]
    CannotRun,
}

impl Verdict {
    /// The word for it, as in the JSON of a check.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::NothingTested => "nothing-tested",
            Verdict::Incomplete => "incomplete",
            Verdict::Failed => "failed",
            Verdict::CannotRun => "cannot-run",
        }
    }

    /// The words for it in a sentence.
    pub const fn phrase(self) -> &'static str {
        match self {
            Verdict::NothingTested => "nothing was tested",
            Verdict::CannotRun => "not everything could run",
            other => other.as_str(),
        }
    }
}
