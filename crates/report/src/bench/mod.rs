//! The result of `rehearse bench`, and its reports.

mod bars;
mod latencies;
mod shards;

use std::{collections::BTreeMap, fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

pub use bars::Bar;
pub(crate) use bars::labelled;
pub use latencies::Latencies;
pub use shards::BenchShard;

use crate::Verdict;
use rehearse_protocol::{Transport, Version};

/// The version of the data format.
pub const FORMAT: u32 = 1;

/// The result of a benchmark of one or more servers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BenchResult {
    /// The version of this data format.
    pub format: u32,
    /// When it began, by RFC 3339.
    pub started_at: String,
    /// The version of `rehearse`.
    pub rehearse: String,
    /// Where it ran.
    pub machine: Machine,
    /// How requests were sent, by all parts together.
    pub load: Load,
    /// The part of the load that it sent, if it is one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<BenchShard>,
    /// The parts that were merged into it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<BenchShard>,
    /// Whether a signal ended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Each server.
    pub targets: Vec<TargetResult>,
    /// What was to hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdResult>,
    /// Differences from an earlier result, or from the first target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<Comparison>,
    /// What makes the figures doubtful.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// `failed`: a condition of `--fail-if` is true, or a server became slower; `cannotRun`: not everything was measured.
    #[serde(serialize_with = "camel_case")]
    #[schemars(with = "String", extend("enum" = ["passed", "failed", "cannotRun"]))]
    pub verdict: Verdict,
}

/// The machine on which a benchmark ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The operating system with its release.
    pub system: String,
    /// The model of the processor.
    pub processor: String,
    /// How many processors there are.
    pub processors: usize,
    /// How many processes were waiting for a processor in the minute before the run; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
}

/// How requests were sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "model", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Load {
    /// One discovery after the other.
    Discovery,
    /// As many requests at once, each after the answer to the one before: while a server is slow, fewer are sent.
    Closed {
        /// Connections or sessions.
        connections: usize,
        /// Requests at once on each.
        in_flight: usize,
    },
    /// At a rate, whatever the server does. A latency begins when its request was due.
    Open {
        /// Connections or sessions.
        connections: usize,
        /// At most as many requests at once on each.
        in_flight: usize,
        /// Requests per second.
        rate: f64,
    },
}

/// What was measured of one server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetResult {
    /// The name in its config, or that of its command or host.
    pub name: String,
    /// The command or URL.
    pub target: String,
    /// The transport.
    #[schemars(with = "String", extend("enum" = Transport::ALL))]
    pub transport: Transport,
    /// The version that it speaks; absent if it could not be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = Version::ALL))]
    pub version: Option<Version>,
    /// Why it could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Each kind of request.
    pub measures: Vec<Measure>,
    /// The processes of a server that was started, all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessUsage>,
    /// The steps of a search for the highest rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RateStep>,
    /// The highest rate that held, in requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<f64>,
}

/// One kind of request, such as the calls of one tool.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Measure {
    /// What was requested.
    pub name: String,
    /// In how many seconds. Warm-up and pauses are not included.
    pub seconds: f64,
    /// From the request to its response, of requests that succeeded.
    pub latency: Latencies,
    /// From the request to the first event of a stream; absent if no response was a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_event: Option<Latencies>,
    /// Requests without a valid result, by kind. They have no latency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// What the first error said, if it was an error of a tool or of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// Requests that the server refused with HTTP 429. They are no errors.
    #[serde(default)]
    pub throttled: u64,
    /// Requests that began more than a millisecond after they were due, as no connection was free.
    #[serde(default)]
    pub late: u64,
    /// Requests that were due and not sent before the end.
    #[serde(default)]
    pub unsent: u64,
    /// Equal parts of the time, by which two results are compared.
    #[serde(default)]
    pub slices: Vec<Slice>,
}

/// A part of the time of a measure.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Slice {
    /// Its length in seconds.
    pub seconds: f64,
    /// The latencies in it.
    pub latency: Latencies,
}

/// What the processes of a server used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessUsage {
    /// How many processes were started.
    pub processes: usize,
    /// Processor time in seconds.
    pub cpu_seconds: f64,
    /// The largest memory of one process in bytes.
    pub peak_memory: u64,
}

/// One rate of a search for the highest.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateStep {
    /// Requests per second that were due.
    pub rate: f64,
    /// Requests per second that were answered.
    pub answered: f64,
    /// The condition, with what was measured.
    pub found: String,
    /// Whether it held.
    pub holds: bool,
}

/// What was to hold of a measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdResult {
    /// The expression of `--fail-if`.
    pub expression: String,
    /// The name of the target.
    pub target: String,
    /// The name of the measure.
    pub measure: String,
    /// What was measured.
    pub found: String,
    /// Whether the expression is true: then the run fails.
    pub is_met: bool,
}

/// The difference of one figure between two results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// What is compared.
    pub target: String,
    /// The name of the measure.
    pub measure: String,
    /// With what it is compared: a file, or another target.
    pub base: String,
    /// The figure: `p50`, `p99` or `rate`.
    pub figure: String,
    /// New divided by old.
    pub ratio: f64,
    /// The bounds between which the ratio is in 95 of 100 repetitions.
    pub interval: (f64, f64),
    /// What follows from the interval.
    pub change: Change,
    /// Whether the run fails if it is slower.
    #[serde(default)]
    pub is_gate: bool,
}

/// What two results say about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It is faster.
    Faster,
    /// It is slower.
    Slower,
    /// The noise is larger than a difference.
    NoDifference,
}

impl Load {
    /// How requests were sent, in words.
    pub(crate) fn phrase(&self) -> String {
        let of = |connections: &usize, in_flight: &usize| match (connections, in_flight) {
            (1, 1) => "one request at a time".to_owned(),
            (1, many) => format!("{many} requests at a time on one connection"),
            (many, 1) => format!("{many} connections, one request at a time on each"),
            (many, each) => format!("{many} connections, {each} requests at a time on each"),
        };
        match self {
            Load::Discovery => "discovery, one after the other".to_owned(),
            Load::Closed { connections, in_flight } => {
                format!(
                    "{}; each after the answer to the one before, so a slow answer delays the next",
                    of(connections, in_flight)
                )
            }
            Load::Open { connections, in_flight, rate } => {
                format!(
                    "{rate} requests per second, timed from when each is due; at most {}",
                    of(connections, in_flight)
                )
            }
        }
    }
}

impl Change {
    /// The words for it.
    pub(crate) const fn phrase(self) -> &'static str {
        match self {
            Change::Faster => "faster",
            Change::Slower => "slower",
            Change::NoDifference => "no difference",
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { target, measure, base, figure, ratio, interval: (low, high), .. } = self;
        write!(f, "{target}, {measure}, {figure}: {ratio:.2} × {base} (95 %: {low:.2} to {high:.2})")
    }
}

impl fmt::Display for ProcessUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.peak_memory as f64 / 1e6;
        let (name, each) = match self.processes {
            1 => ("its process".to_owned(), ""),
            many => (format!("its {many} processes"), " each"),
        };
        write!(f, "{name}: {:.2} s of processor time, at most {megabytes:.1} MB{each}", self.cpu_seconds)
    }
}

impl Measure {
    /// One of which nothing is known yet.
    pub fn named(name: &str) -> Measure {
        Measure { name: name.to_owned(), ..Measure::default() }
    }

    /// How many requests were answered or failed.
    pub fn requests(&self) -> u64 {
        self.latency.count() + self.failed() + self.throttled
    }

    /// How many requests failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Valid answers per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.latency.count() as f64 / self.seconds } else { 0.0 }
    }

    /// Which part of the requests failed, from 0 to 1. What was due and not sent failed, too.
    pub fn error_share(&self) -> f64 {
        let all = self.requests() + self.unsent;
        if all == 0 { 0.0 } else { (self.failed() + self.unsent) as f64 / all as f64 }
    }

    /// What makes its figures doubtful, with how many requests it concerns.
    pub(crate) fn notes(&self) -> Vec<(u64, &'static str)> {
        let notes = [
            (self.throttled, "refused with HTTP 429"),
            (self.late, "sent late, as all connections were busy"),
            (self.unsent, "due and not sent before the end"),
        ];
        notes.into_iter().filter(|(count, _)| *count > 0).collect()
    }

    /// Adds what another part of the same measure found.
    pub fn merge(&mut self, other: &Measure) {
        self.seconds += other.seconds;
        self.latency.merge(&other.latency);
        if let Some(first) = &other.first_event {
            self.first_event.get_or_insert_default().merge(first);
        }
        self.first_error = self.first_error.take().or_else(|| other.first_error.clone());
        for (kind, count) in &other.errors {
            *self.errors.entry(kind.clone()).or_default() += count;
        }
        self.throttled += other.throttled;
        self.late += other.late;
        self.unsent += other.unsent;
        self.slices.extend(other.slices.iter().cloned());
    }
}

impl BenchResult {
    /// Decides how the run ended.
    pub fn conclude(&mut self) {
        let is_slower = self.comparisons.iter().any(|it| it.is_gate && it.change == Change::Slower);
        let has_no_answer = |it: &Measure| it.latency.count() == 0 && !it.errors.is_empty();
        let is_unanswered = self.targets.iter().any(|target| target.measures.iter().any(has_no_answer));
        let cannot = self.interrupted || self.targets.iter().any(|target| target.error.is_some());
        self.verdict = match () {
            () if cannot || self.missing_shards().is_some() => Verdict::CannotRun,
            () if is_slower || self.thresholds.iter().any(|it| it.is_met) => Verdict::Failed,
            () if is_unanswered => Verdict::CannotRun,
            () => Verdict::Passed,
        };
    }
}

/// Writes the verdict of a benchmark, whose word for [`Verdict::CannotRun`] is another than that of a check.
fn camel_case<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *verdict == Verdict::CannotRun { "cannotRun" } else { verdict.as_str() })
}

/// A duration for people: two or three significant digits and a unit.
pub fn readable(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    let (value, unit) = match micros {
        _ if micros < 1e3 => (micros, "µs"),
        _ if micros < 1e6 => (micros / 1e3, "ms"),
        _ => (micros / 1e6, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}
