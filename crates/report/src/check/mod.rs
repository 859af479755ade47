//! The result of `rehearse check`, and its formats.

mod human;
mod junit;

use std::time::Duration;

use rehearse_protocol::{Direction, Transport, Version};
use serde::Serialize;

use crate::RunFormat;

/// The result of a run against one or more servers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// The version of this format.
    pub format: u32,
    pub seed: u64,
    #[serde(rename = "durationMs", serialize_with = "milliseconds")]
    pub duration: Duration,
    pub servers: Vec<CheckedServer>,
}

/// One server over one transport.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedServer {
    /// The command or URL.
    pub target: String,
    pub transport: Transport,
    /// The name that the server gives itself.
    pub name: Option<String>,
    pub server_version: Option<String>,
    #[serde(rename = "startedInMs", serialize_with = "milliseconds")]
    pub started_in: Duration,
    /// Why nothing could be checked.
    pub error: Option<String>,
    /// Newest first.
    pub versions: Vec<CheckedVersion>,
}

/// The verdicts on one server in one version.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedVersion {
    pub version: Version,
    pub rows: Vec<CheckedRow>,
}

/// The verdict on one row.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedRow {
    pub id: String,
    pub level: Option<&'static str>,
    pub verdict: RowVerdict,
    /// Why it is not tested or not applicable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The section of the specification.
    pub spec: String,
    /// How often the rule was exercised.
    pub exercised: usize,
    /// How many violations there are; the first of them follow.
    pub violation_count: usize,
    pub violations: Vec<FoundViolation>,
}

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowVerdict {
    Fail,
    Warn,
    NotTested,
    Info,
    Pass,
    NotApplicable,
}

/// One violation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundViolation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub found: String,
    pub evidence: Vec<EvidenceLine>,
}

/// A frame or an HTTP head that shows a violation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceLine {
    pub direction: Direction,
    #[serde(rename = "atMs", serialize_with = "milliseconds")]
    pub at: Duration,
    pub text: String,
}

fn milliseconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((duration.as_secs_f64() * 1e6).round() / 1e3)
}

impl CheckedVersion {
    /// How many rows have this verdict.
    pub fn count(&self, verdict: RowVerdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }
}

impl CheckResult {
    /// How many rows have this verdict, over all servers and versions.
    pub fn count(&self, verdict: RowVerdict) -> usize {
        self.servers.iter().flat_map(|server| &server.versions).map(|version| version.count(verdict)).sum()
    }

    /// The report, with a final newline. `again` is the command line that repeats the run.
    pub fn render(&self, format: RunFormat, width: usize, again: &str) -> Vec<u8> {
        match format {
            RunFormat::Human => human::render(self, width, again).into_bytes(),
            RunFormat::Json => {
                let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
                bytes.push(b'\n');
                bytes
            }
            RunFormat::Junit => junit::render(self),
        }
    }
}
