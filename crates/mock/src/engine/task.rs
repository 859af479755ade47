//! A call that runs as a task, and the tasks of a server (SEP-2663, `io.modelcontextprotocol/tasks`).

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, SystemTime},
};

use futures_channel::oneshot;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value as Json;

use super::input_response::InputResponse;
use crate::script::TaskSpec;
use rehearse_protocol::RpcError;

/// The tasks of a server that clients can query.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) by_id: Mutex<HashMap<String, Arc<Task>>>,
    pub(super) numbers: AtomicU64,
}

/// A call that runs in the background.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: String,
    /// The only client that can query it, if the server knows its clients (SEP-2663, Security Implications).
    pub(super) owner: Option<String>,
    pub(super) created: Duration,
    pub(super) spec: TaskSpec,
    pub(super) progress: Mutex<Progress>,
}

#[derive(Debug)]
pub(super) struct Progress {
    pub(super) status: Status,
    pub(super) updated: Duration,
    /// The input requests that the client has not answered.
    pub(super) open: Vec<Input>,
}

/// 2026-07-28, SEP-2663: Task Status. Final states carry the result or the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Status {
    Working,
    InputRequired,
    End(&'static str, String),
}

impl Status {
    /// The end of a task with an error, and the same in words (SEP-2663, Task Status: `statusMessage`).
    pub(super) fn failed(error: &RpcError) -> Status {
        let (text, error) = (Json::from(&*error.message), serde_json::to_string(error).unwrap_or_default());
        Status::End("failed", format!(",\"statusMessage\":{text},\"error\":{error}"))
    }
}

#[derive(Debug)]
pub(super) struct Input {
    pub(super) key: String,
    /// The member of `inputRequests` as JSON text.
    pub(super) request: String,
    pub(super) answer: oneshot::Sender<InputResponse>,
}

impl Task {
    /// Whether the task has reached an end.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.lock().status, Status::End(..))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }

    /// The rest of the task's time to live.
    pub(super) fn time_left(&self, at: Duration) -> Duration {
        self.spec.ttl.map_or(Duration::MAX, |ttl| (self.created + ttl).saturating_sub(at))
    }

    pub(super) fn is_expired(&self, at: Duration) -> bool {
        self.time_left(at).is_zero()
    }

    /// The members of the `DetailedTask`.
    pub(super) fn members(&self, epoch: SystemTime) -> String {
        let progress = self.lock();
        let time = |at: Duration| humantime::format_rfc3339_millis(epoch + at);
        let ttl = self.spec.ttl.map_or("null".to_owned(), |ttl| ttl.as_millis().to_string());
        let (status, more) = match &progress.status {
            Status::Working => ("working", String::new()),
            Status::InputRequired => {
                let requests: Vec<_> = progress.open.iter().map(|input| input.request.as_str()).collect();
                ("input_required", format!(",\"inputRequests\":{{{}}}", requests.join(",")))
            }
            Status::End(status, more) => (*status, more.clone()),
        };
        format!(
            "\"taskId\":\"{}\",\"status\":\"{status}\",\"createdAt\":\"{}\",\"lastUpdatedAt\":\"{}\",\"ttlMs\":{ttl},\
             \"pollIntervalMs\":{}{more}",
            self.id,
            time(self.created),
            time(progress.updated),
            self.spec.poll_interval.as_millis().max(1),
        )
    }
}
