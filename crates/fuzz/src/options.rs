//! What is fuzzed, and for how long.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use rehearse_client::ToolPermission;
use rehearse_protocol::Protocol;
use rehearse_report::fuzz::{FuzzInput, FuzzTarget, Oracle};

/// What is fuzzed, and for how long.
#[derive(Clone, Debug)]
pub struct FuzzOptions {
    /// Which tools may be called, and with which arguments they are known to work.
    pub tools: ToolPermission,
    /// Names of the tools that are tried, and nothing else; `*` stands for any text. Everything is tried if there are none.
    pub only: Vec<String>,
    /// The seed of the random inputs.
    pub seed: u64,
    /// How long the run may take.
    pub budget: Duration,
    /// How long each target may take.
    pub max_time: Option<Duration>,
    /// How many inputs each target gets at most.
    pub cases: Option<usize>,
    /// Whether texts are sent that programs often mishandle.
    pub is_hostile: bool,
    /// Inputs of earlier runs, which are sent first.
    pub corpus: Vec<FuzzInput>,
    /// The version that the client asks for.
    pub protocol: Protocol,
    /// After how long a request counts as a hang; by the usual time of its target if there is none.
    pub timeout: Option<Duration>,
    /// Gets the progress.
    pub events: Option<UnboundedSender<FuzzEvent>>,
    /// Ends the run.
    pub stop: CancellationToken,
}

impl Default for FuzzOptions {
    fn default() -> FuzzOptions {
        FuzzOptions {
            tools: ToolPermission::default(),
            only: Vec::new(),
            seed: 1,
            budget: Duration::from_secs(30),
            max_time: None,
            cases: None,
            is_hostile: true,
            corpus: Vec::new(),
            protocol: Protocol::Auto,
            timeout: None,
            events: None,
            stop: CancellationToken::new(),
        }
    }
}

/// The progress of a run.
#[derive(Clone, Debug)]
pub enum FuzzEvent {
    /// So many inputs were sent in all.
    Sent(usize),
    /// A bug was found.
    Found(Oracle, FuzzTarget),
}

impl FuzzOptions {
    pub(crate) fn send(&self, event: FuzzEvent) {
        if let Some(events) = &self.events {
            // The receiver may be gone.
            let _ = events.send(event);
        }
    }
}
