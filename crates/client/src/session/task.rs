//! Tool calls that may become tasks (SEP-2663, Tasks Extension).

use std::{collections::HashSet, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{CallOptions, Session, call_options::wait_cancelled};
use crate::{
    connection::deadline::Deadline,
    result::{Failure, ToolOutcome},
};
use rehearse_protocol::{Operation, RpcError};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Between two polls: the default, and the minimum.
const POLL: Duration = Duration::from_millis(200);
const FASTEST_POLL: Duration = Duration::from_millis(10);
/// How long the cancellation of a task may take.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// A tool call that may have become a task.
#[derive(Debug)]
pub struct TaskRun {
    /// The statuses of the task in order, without repetitions; empty if the server answered at once.
    pub statuses: Vec<String>,
    /// The result of the call, or its failure.
    pub outcome: Result<ToolOutcome, Failure>,
}

/// A task as the server describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
    status: String,
    status_message: Option<String>,
    poll_interval_ms: Option<u64>,
    #[serde(default)]
    input_requests: Map<String, Value>,
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
}

/// Polls a task.
struct TaskPoller<'a> {
    session: &'a Session,
    id: String,
    options: CallOptions,
    deadline: Deadline<'a>,
    statuses: &'a mut Vec<String>,
    answered: HashSet<String>,
}

impl Session {
    /// Calls a tool and declares the tasks extension. If the server creates a task, it is polled to its end at the
    /// server's pace, and its input requests are answered with the session's answers. A cancellation by the caller
    /// cancels the task, whose end is awaited; any other failure cancels the task as well.
    pub async fn call_tool_as_task(
        &self,
        name: &str,
        arguments: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> TaskRun {
        let mut statuses = Vec::new();
        let outcome = self.run_task(Operation::call(name, arguments).params, options, &mut statuses).await;
        let outcome = outcome.and_then(|result| ToolOutcome::parse(result).map_err(Failure::from));
        TaskRun { statuses, outcome }
    }

    async fn run_task(
        &self,
        params: Map<String, Value>,
        mut options: CallOptions,
        statuses: &mut Vec<String>,
    ) -> Result<Box<RawValue>, Failure> {
        let limit = options.timeout.unwrap_or(self.timeouts().call);
        let deadline = self.deadline(limit);
        let mut capabilities = self.answers().capabilities();
        capabilities.insert("extensions".to_owned(), json!({ EXTENSION: {} }));
        options.meta.get_or_insert_default().insert(CAPABILITIES.to_owned(), capabilities.into());
        let first = self.request_until_final("tools/call", Some(params), options.clone()).await?;
        if first.kind.as_deref() != Some("task") {
            return first.complete("tools/call");
        }
        let task = Task::parse(&first.result)?;
        let answered = HashSet::new();
        let mut poller = TaskPoller { session: self, id: task.task_id.clone(), options, deadline, statuses, answered };
        let outcome = poller.follow(task).await.map_err(|failure| failure.within(limit));
        if matches!(outcome, Err(Failure::Timeout(_) | Failure::Unanswered { .. } | Failure::Malformed(_))) {
            poller.deadline = self.deadline(CANCEL_TIMEOUT);
            let _ = poller.request("tasks/cancel", None).await;
        }
        outcome
    }
}

impl TaskPoller<'_> {
    /// Polls until the end.
    ///
    /// # Errors
    /// Any [`Failure`].
    async fn follow(&mut self, mut task: Task) -> Result<Box<RawValue>, Failure> {
        let mut cancel = self.options.cancel.take();
        self.note(&task.status);
        // The first description has neither a result nor input requests.
        let mut wait = task.status == "working";
        loop {
            let next = if wait { Instant::now() + task.poll_interval() } else { Instant::now() };
            self.sleep(next, &mut cancel).await?;
            task = Task::parse(&self.request("tasks/get", None).await?)?;
            self.note(&task.status);
            wait = true;
            match task.status.as_str() {
                "working" => {}
                "input_required" => self.give_input(&task).await?,
                "completed" => {
                    return task.result.ok_or_else(|| Failure::Malformed("a completed task without a `result`".into()));
                }
                "failed" => {
                    let error = task.error.map(Failure::Rpc);
                    return Err(error.unwrap_or_else(|| Failure::Malformed("a failed task without an `error`".into())));
                }
                "cancelled" => return Err(Failure::TaskCancelled(task.status_message)),
                status => return Err(Failure::Malformed(format!("unknown task status {status:?}"))),
            }
        }
    }

    fn note(&mut self, status: &str) {
        if self.statuses.last().is_none_or(|last| last != status) {
            self.statuses.push(status.to_owned());
        }
    }

    /// Waits, and forwards a cancellation to the task.
    async fn sleep(&self, until: Instant, cancel: &mut Option<CancellationToken>) -> Result<(), Failure> {
        if until > self.deadline.instant() {
            self.deadline.wait().await;
            return Err(Failure::Timeout(Duration::ZERO.into()));
        }
        tokio::select! {
            biased;
            () = wait_cancelled(cancel.clone()) => {
                *cancel = None;
                self.request("tasks/cancel", None).await.map(drop)
            }
            () = sleep_until(until) => Ok(()),
        }
    }

    /// Answers the input requests that have no answer yet.
    async fn give_input(&mut self, task: &Task) -> Result<(), Failure> {
        let new = task.input_requests.iter().filter(|(key, _)| !self.answered.contains(*key));
        let new: Map<_, _> = new.map(|(key, request)| (key.clone(), request.clone())).collect();
        if new.is_empty() {
            return Ok(());
        }
        let responses = self.session.answer(&new, self.options.cancel.clone()).await?;
        self.answered.extend(new.into_iter().map(|(key, _)| key));
        self.request("tasks/update", Some(responses)).await.map(drop)
    }

    async fn request(&self, method: &str, responses: Option<Map<String, Value>>) -> Result<Box<RawValue>, Failure> {
        let mut params = Map::from_iter([("taskId".to_owned(), self.id.as_str().into())]);
        if let Some(responses) = responses {
            params.insert("inputResponses".to_owned(), responses.into());
        }
        let timeout = Some(self.deadline.remaining());
        self.session.request(method, Some(params), CallOptions { timeout, ..self.options.clone() }).await
    }
}

impl Task {
    fn parse(raw: &RawValue) -> Result<Task, Failure> {
        serde_json::from_str(raw.get()).map_err(|error| Failure::Malformed(format!("invalid task: {error}")))
    }

    fn poll_interval(&self) -> Duration {
        self.poll_interval_ms.map_or(POLL, Duration::from_millis).max(FASTEST_POLL)
    }
}
