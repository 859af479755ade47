//! The result of `rehearse fuzz`.

use std::{fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{Verdict, check::ConfigPlace, milliseconds::Milliseconds};

/// Why a target got no input, if there was no time for it.
pub const NO_TURN: &str = "the run ended before its turn, which comes sooner with more --budget or fewer --tool";

/// What has come of fuzzing a server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzResult {
    /// The version of this data format.
    pub format: u32,
    /// The version of `rehearse`.
    pub rehearse: String,
    /// The command or URL of the server.
    pub target: String,
    /// The name and version that the server gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The protocol version.
    pub protocol: String,
    /// The seed of the random inputs.
    pub seed: u64,
    /// How long the run took.
    #[serde(rename = "durationMs", with = "Milliseconds")]
    pub duration: Duration,
    /// How many inputs were sent, without those of shrinking.
    pub cases: usize,
    /// Whether warnings fail the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Each target.
    pub targets: Vec<FuzzedTarget>,
    /// The bugs, worst first.
    pub bugs: Vec<FuzzBug>,
    /// The command line that sends the same inputs again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub again: String,
    /// Where a config file describes the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<ConfigPlace>,
    /// Why the run ended before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the exit code says.
    pub verdict: Verdict,
}

/// What takes an input, such as the prompt `greet`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FuzzTarget {
    /// What it is.
    pub kind: TargetKind,
    /// The name of a tool or prompt, the text of a template, the prompt or template of completions, or the method of a list.
    pub name: String,
}

/// An input of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzInput {
    /// What takes it.
    #[serde(flatten)]
    pub target: FuzzTarget,
    /// The input.
    pub arguments: Json,
}

/// What kind of target it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// Arguments are given to a tool.
    Tool,
    /// Arguments are given to a prompt.
    Prompt,
    /// Values are given to a resource template, and the resource is read.
    Template,
    /// Resources are read, also unknown ones.
    Resource,
    /// An argument of a prompt or template is completed.
    Completion,
    /// A list is read with a cursor.
    List,
}

/// What kind of input it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// A usual one.
    Valid,
    /// At a border of the schema.
    Border,
    /// With one rule of the schema broken.
    Broken,
    /// With a text that programs often mishandle.
    Hostile,
    /// Drawn at random.
    Random,
    /// Of the corpus.
    Corpus,
    /// With a value in the result of another tool.
    Sequence,
}

/// How a bug is seen, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Oracle {
    /// The server ended, or the connection broke.
    Crash,
    /// A request was not answered, although others were.
    Hang,
    /// The answer is no message, or no result of the protocol.
    Malformed,
    /// The structured content does not match the output schema.
    OutputSchema,
    /// The traffic violates a rule of the protocol, and usual traffic does not.
    Violation,
    /// A text has a stack trace.
    StackTrace,
    /// An error has a value of the environment of the server, or a path of its machine.
    PrivateData,
    /// A tool that says it is idempotent has an effect with each equal call.
    NotIdempotent,
    /// The input makes an internal error of the protocol, or of HTTP.
    InternalError,
    /// A tool fails with the text of an exception, although the schema accepts the input.
    Exception,
    /// The error says that a right message is none, or that a known method is unknown.
    WrongError,
    /// A tool or prompt accepts what its schema or its list of arguments refuses.
    InvalidAccepted,
    /// The server refuses what the schema accepts.
    ValidRefused,
}

/// A bug, with its smallest input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzBug {
    /// How it is seen.
    pub oracle: Oracle,
    /// What took the input.
    #[serde(flatten)]
    pub target: FuzzTarget,
    /// The call of another tool without which it does not happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FuzzCall>,
    /// The smallest arguments that were found.
    pub arguments: Json,
    /// What was seen, as a sentence.
    pub message: String,
    /// Whether the schema accepts the arguments; absent if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_valid: Option<bool>,
    /// What kind of input has shown it.
    pub input_kind: InputKind,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzCall {
    /// The name of the tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Json,
}

/// What was done with a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzedTarget {
    /// What it is.
    #[serde(flatten)]
    pub target: FuzzTarget,
    /// How many inputs it got.
    pub cases: usize,
    /// How many valid inputs had a result without an error.
    pub accepted: usize,
    /// How many valid inputs had an error that says the arguments are wrong.
    pub refused: usize,
    /// How many valid inputs had another error.
    #[serde(default)]
    pub failed: usize,
    /// How many inputs had no answer.
    #[serde(default)]
    pub unanswered: usize,
    /// Why it was not tested, or not to the end if it has accepted an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl FuzzedTarget {
    /// Whether it was not tried to the end, or had no time.
    fn is_open(&self) -> bool {
        let has_turn = self.reason.as_deref() != Some(NO_TURN);
        self.reason.is_some() && (self.accepted > 0 || self.unanswered > 0 || !has_turn)
    }
}

impl FuzzResult {
    /// A run that has tried nothing.
    pub fn new(seed: u64) -> FuzzResult {
        FuzzResult {
            format: 1,
            rehearse: env!("CARGO_PKG_VERSION").to_owned(),
            target: String::new(),
            server: None,
            protocol: String::new(),
            seed,
            duration: Duration::ZERO,
            cases: 0,
            strict: false,
            targets: Vec::new(),
            bugs: Vec::new(),
            again: String::new(),
            place: None,
            error: None,
            verdict: Verdict::default(),
        }
    }

    /// Decides the verdict. A server with tools is not tested if none of them has accepted an input, and any server if only
    /// its lists have.
    pub fn decide(&mut self, is_interrupted: bool) {
        self.verdict = match () {
            () if self.bugs.iter().any(|bug| self.fails(bug)) => Verdict::Failed,
            () if self.error.is_some() || is_interrupted => Verdict::CannotRun,
            () if !self.has_tested() => Verdict::NothingTested,
            () if self.targets.iter().any(FuzzedTarget::is_open) => Verdict::Incomplete,
            () => Verdict::Passed,
        };
    }

    fn has_tested(&self) -> bool {
        let has_tools = self.targets.iter().any(|it| it.target.kind == TargetKind::Tool);
        let counts = |kind| if has_tools { kind == TargetKind::Tool } else { kind != TargetKind::List };
        self.targets.iter().any(|it| counts(it.target.kind) && it.accepted > 0)
    }

    /// Whether a bug makes the verdict fail.
    pub fn fails(&self, bug: &FuzzBug) -> bool {
        self.strict || !bug.oracle.is_warning()
    }
}

impl FuzzBug {
    /// The input in a few words: `with {"b":0}`.
    pub fn input(&self) -> String {
        let before = self.before.as_ref().map(|it| format!(", after tool {} with {}", it.name, it.arguments));
        format!("with {}{}", self.arguments, before.unwrap_or_default())
    }
}

impl TargetKind {
    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            TargetKind::Tool => "tool",
            TargetKind::Prompt => "prompt",
            TargetKind::Template => "template",
            TargetKind::Resource => "resource",
            TargetKind::Completion => "completion",
            TargetKind::List => "list",
        }
    }
}

impl fmt::Display for FuzzTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

impl InputKind {
    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            InputKind::Valid => "valid",
            InputKind::Border => "border",
            InputKind::Broken => "broken",
            InputKind::Hostile => "hostile",
            InputKind::Random => "random",
            InputKind::Corpus => "corpus",
            InputKind::Sequence => "sequence",
        }
    }
}

impl Oracle {
    /// Whether it is a warning: callers that keep to the schema meet no error.
    pub const fn is_warning(self) -> bool {
        matches!(
            self,
            Oracle::PrivateData
                | Oracle::NotIdempotent
                | Oracle::InternalError
                | Oracle::Exception
                | Oracle::WrongError
                | Oracle::InvalidAccepted
                | Oracle::ValidRefused
        )
    }

    /// The rule that it breaks, as a sentence.
    pub const fn phrase(self) -> &'static str {
        match self {
            Oracle::Crash => "An input must not end the server or break the connection.",
            Oracle::Hang => "Each request must be answered.",
            Oracle::Malformed => "An answer must be a message, and a result of its method.",
            Oracle::OutputSchema => "Structured content must match the output schema of the tool.",
            Oracle::Violation => "An input must not make the server violate the protocol.",
            Oracle::StackTrace => "No text must have a stack trace.",
            Oracle::PrivateData => "No error must have a path of the machine or a value of the environment.",
            Oracle::NotIdempotent => "A further equal call of a tool with idempotentHint must have no effect.",
            Oracle::InternalError => "An input must not make an internal error of the protocol.",
            Oracle::Exception => "What the schema accepts must not make an exception.",
            Oracle::WrongError => "An error must say what is wrong with the request.",
            Oracle::InvalidAccepted => "A tool or prompt must refuse what it declares to be invalid.",
            Oracle::ValidRefused => "A tool must accept what its schema accepts.",
        }
    }

    /// The word for it, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Oracle::Crash => "crash",
            Oracle::Hang => "hang",
            Oracle::Malformed => "malformed",
            Oracle::OutputSchema => "output-schema",
            Oracle::Violation => "violation",
            Oracle::StackTrace => "stack-trace",
            Oracle::PrivateData => "private-data",
            Oracle::NotIdempotent => "not-idempotent",
            Oracle::InternalError => "internal-error",
            Oracle::Exception => "exception",
            Oracle::WrongError => "wrong-error",
            Oracle::InvalidAccepted => "invalid-accepted",
            Oracle::ValidRefused => "valid-refused",
        }
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(targets: &[(TargetKind, usize, Option<&str>)]) -> FuzzResult {
        let target = |(kind, accepted, reason): &(TargetKind, usize, Option<&str>)| FuzzedTarget {
            target: FuzzTarget { kind: *kind, name: "a".to_owned() },
            cases: 9,
            accepted: *accepted,
            refused: 0,
            failed: 0,
            unanswered: 0,
            reason: reason.map(ToOwned::to_owned),
        };
        let targets = targets.iter().map(target).collect();
        let mut result = FuzzResult { cases: 9, targets, ..FuzzResult::new(1) };
        result.decide(false);
        result
    }

    fn verdict(targets: &[(TargetKind, usize, Option<&str>)]) -> Verdict {
        decided(targets).verdict
    }

    #[test]
    fn a_tool_that_was_not_tried_to_the_end_is_no_pass() {
        assert_eq!(verdict(&[(TargetKind::Tool, 5, None)]), Verdict::Passed);
        assert_eq!(verdict(&[(TargetKind::Tool, 5, Some("10 calls had no answer"))]), Verdict::Incomplete);
        let mut silent =
            decided(&[(TargetKind::Tool, 5, None), (TargetKind::Tool, 0, Some("it answered no valid input"))]);
        assert_eq!(silent.verdict, Verdict::Passed);
        silent.targets[1].unanswered = 1;
        silent.decide(false);
        assert_eq!(silent.verdict, Verdict::Incomplete);
        let refused = (TargetKind::Tool, 0, Some("it refused every valid input"));
        assert_eq!(verdict(&[refused]), Verdict::NothingTested);
        assert_eq!(verdict(&[refused, (TargetKind::Prompt, 5, None)]), Verdict::NothingTested);
        assert_eq!(verdict(&[(TargetKind::Prompt, 5, None)]), Verdict::Passed);
        assert_eq!(verdict(&[(TargetKind::List, 5, None)]), Verdict::NothingTested);
    }
}
