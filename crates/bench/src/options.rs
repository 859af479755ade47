//! What a benchmark sends, how fast, and for how long.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rehearse_client::{ServerParams, ToolPermission};
use rehearse_protocol::Protocol;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// A server to measure.
#[derive(Clone, Debug)]
pub struct BenchTarget {
    /// Its name in reports.
    pub name: String,
    /// Its command or URL in reports, without secrets.
    pub described: String,
    /// How to reach it.
    pub params: ServerParams,
}

/// How a benchmark runs.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The protocol version to speak.
    pub protocol: Protocol,
    /// Connections or sessions.
    pub connections: usize,
    /// Requests at once on each.
    pub in_flight: usize,
    /// Requests per second to send, even if the server is slower. `None`: each request follows an answer.
    pub rate: Option<f64>,
    /// For how long, or how many requests; for each target, without the warm-up.
    pub extent: Extent,
    /// How long requests are sent before anything is measured.
    pub warmup: Duration,
    /// How long one request may take.
    pub timeout: Duration,
    /// After how many requests to one target, with those of the warm-up, nothing more is sent.
    pub max_total: Option<u64>,
    /// Which tools may be called.
    pub tools: ToolPermission,
    /// Cancelled to end early with what has been measured.
    pub stop: CancellationToken,
    /// How far the run is.
    pub progress: Arc<BenchProgress>,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// For so long.
    Duration(Duration),
    /// So many requests.
    Requests(u64),
}

/// One kind of request, and how often it is sent compared with others.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchCall {
    /// What is requested.
    pub request: BenchRequest,
    /// Its share: of weights 3 and 1, three of four requests are the first.
    pub weight: u32,
}

/// What is requested.
#[derive(Clone, Debug, PartialEq)]
pub enum BenchRequest {
    /// A call of a tool. Without arguments, they are made from its schema.
    Tool {
        /// The name of the tool.
        name: String,
        /// Its arguments.
        arguments: Option<Map<String, Value>>,
    },
    /// A resource that is read.
    Resource {
        /// Its URI.
        uri: String,
    },
    /// A prompt.
    Prompt {
        /// The name of the prompt.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
    /// `tools/list`.
    ToolsList,
    /// A ping, which 2026-07-28 has no more.
    Ping,
}

/// How far a run is. Readers may look at any time.
#[derive(Debug, Default)]
pub struct BenchProgress {
    /// How many requests have been answered or have failed.
    pub done: AtomicU64,
    phase: Mutex<String>,
}

impl BenchProgress {
    /// What is being done.
    pub fn phase(&self) -> String {
        self.phase.lock().clone()
    }

    pub(crate) fn begin(&self, phase: String) {
        *self.phase.lock() = phase;
    }

    pub(crate) fn add_one(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for BenchOptions {
    fn default() -> BenchOptions {
        BenchOptions {
            protocol: Protocol::Auto,
            connections: 1,
            in_flight: 1,
            rate: None,
            extent: Extent::Duration(Duration::from_secs(10)),
            warmup: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            max_total: None,
            tools: ToolPermission::default(),
            stop: CancellationToken::new(),
            progress: Arc::default(),
        }
    }
}

impl Extent {
    /// The part with a number, from 0, of `count` parts that are as equal as they can be.
    pub(crate) fn part(self, number: usize, count: usize) -> Extent {
        let (number, parts) = (number as u64, count as u64);
        match self {
            Extent::Duration(whole) => Extent::Duration(whole / u32::try_from(count).unwrap_or(u32::MAX)),
            Extent::Requests(all) => Extent::Requests(all * (number + 1) / parts - all * number / parts),
        }
    }
}

impl BenchRequest {
    /// The name of its measure.
    pub fn title(&self) -> String {
        match self {
            BenchRequest::Tool { name, .. } => format!("call {name}"),
            BenchRequest::Resource { uri } => format!("read {uri}"),
            BenchRequest::Prompt { name, .. } => format!("prompt {name}"),
            BenchRequest::ToolsList => "tools/list".to_owned(),
            BenchRequest::Ping => "ping".to_owned(),
        }
    }
}
