//! What a run shows to its caller besides the results: every connection, and the traffic of each cell.

use std::{fmt, path::Path, sync::Arc};

use rehearse_client::ClientRecorder;
use rehearse_protocol::{Protocol, Trace, Version};
use rehearse_report::{Cell, check::JudgedCheck};

/// A server in a cell of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct CellServer<'a> {
    /// The name of the scenario.
    pub scenario: &'a str,
    /// Its file.
    pub path: &'a Path,
    /// The cell.
    pub cell: Cell,
    /// The name of the server.
    pub server: &'a str,
}

/// Called with the recorder of each connection before its first frame.
pub type RecordSink = Arc<dyn Fn(CellServer<'_>, &ClientRecorder) + Send + Sync>;

/// Returns the violated checks in the traffic with one server, after the cell has ended.
pub type TrafficJudge = Arc<dyn Fn(CellServer<'_>, &[Trace]) -> Vec<JudgedCheck> + Send + Sync>;

/// What a run calls with its traffic. The caller decides what to do with it.
#[derive(Clone, Default)]
pub struct TrafficHooks {
    /// Sees every connection.
    pub record_sink: Option<RecordSink>,
    /// Judges the traffic of each cell; a failed check fails the cell.
    pub judge: Option<TrafficJudge>,
    /// Gives each server of a cell its trace, which requests name.
    pub new_trace: Option<fn() -> u128>,
}

impl CellServer<'_> {
    /// The version that the client asks for, if the cell does not leave it to client and server.
    pub fn asked(&self) -> Option<Version> {
        match self.cell.protocol {
            Protocol::Exact(version) => Some(version),
            Protocol::Auto => None,
        }
    }
}

impl fmt::Debug for TrafficHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrafficHooks")
            .field("record_sink", &self.record_sink.is_some())
            .field("judge", &self.judge.is_some())
            .finish_non_exhaustive()
    }
}
