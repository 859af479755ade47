//! Calls that run as tasks (SEP-2663, `io.modelcontextprotocol/tasks`).

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use futures_channel::oneshot;
use serde_json::{Map, Value as Json, json};

use super::{
    Answer, Engine,
    call::Call,
    exchange::{Event, Exchange, Outcome},
    params::{invalid, text},
    peer::ClientAnswer,
};
use crate::{
    mock::script::{TASKS, TaskSpec, includes},
    wire::{
        Era, RpcError,
        message::{self, INVALID_REQUEST, MISSING_CAPABILITY},
    },
};

/// The tasks of a server that can be asked for.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    by_id: Mutex<HashMap<String, Arc<Task>>>,
    numbers: AtomicU64,
}

/// A call that runs in the background.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: String,
    created: Duration,
    spec: TaskSpec,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    status: Status,
    updated: Duration,
    /// What the client has yet to answer.
    open: Vec<Input>,
}

/// 2026-07-28, SEP-2663: Task Status. Ends carry the member that says how the call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Status {
    Working,
    InputRequired,
    Ended(&'static str, String),
}

#[derive(Debug)]
struct Input {
    key: String,
    /// The member of `inputRequests` as JSON text.
    request: String,
    answer: oneshot::Sender<ClientAnswer>,
}

impl Task {
    /// Whether the task has reached an end.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.lock().status, Status::Ended(..))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_expired(&self, at: Duration) -> bool {
        self.spec.ttl.is_some_and(|ttl| at >= self.created + ttl)
    }

    /// The members of the `DetailedTask`.
    fn members(&self, epoch: SystemTime) -> String {
        let progress = self.lock();
        let time = |at: Duration| humantime::format_rfc3339_millis(epoch + at);
        let ttl = self.spec.ttl.map_or("null".to_owned(), |ttl| ttl.as_millis().to_string());
        let (status, more) = match &progress.status {
            Status::Working => ("working", String::new()),
            Status::InputRequired => {
                let requests: Vec<_> = progress.open.iter().map(|input| input.request.as_str()).collect();
                ("input_required", format!(",\"inputRequests\":{{{}}}", requests.join(",")))
            }
            Status::Ended(status, more) => (*status, more.clone()),
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

impl Exchange {
    /// Goes on in the background, if the client can have a task; `None` if it goes on as before.
    pub(super) fn become_task(&mut self, spec: &TaskSpec, at: Duration) -> Option<Event> {
        if self.task.is_some() {
            return None;
        }
        let knows_tasks = includes(&self.origin.capabilities, &needs_tasks()) && self.era() == Era::Modern;
        match (knows_tasks, spec.required, self.era()) {
            (false, false, _) => None,
            (false, true, Era::Modern) => Some(self.conclude(Outcome::Error(no_tasks(), None), at)),
            (false, true, Era::Legacy) => {
                let error = RpcError::new(INVALID_REQUEST, "this tool runs as a task, which needs 2026-07-28");
                Some(self.conclude(Outcome::Error(error, None), at))
            }
            (true, ..) => {
                let task = self.engine.create_task(*spec, at);
                let members = format!("\"resultType\":\"task\",{}", task.members(self.engine.epoch));
                let result = format!("{{{members},\"_meta\":{{{}}}}}", self.catalog.server_meta);
                self.task = Some(task);
                Some(Event::Detach(Answer::ok(message::result(&self.origin.id, &result))))
            }
        }
    }
}

impl Engine {
    fn create_task(&self, spec: TaskSpec, at: Duration) -> Arc<Task> {
        let number = self.tasks.numbers.fetch_add(1, Ordering::Relaxed);
        let progress = Progress { status: Status::Working, updated: at, open: Vec::new() };
        let id = self.seal.unguessable("task", number);
        let task = Arc::new(Task { id: id.clone(), created: at, spec, progress: Mutex::new(progress) });
        let mut tasks = self.tasks.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|_, task| !task.is_expired(at));
        tasks.insert(id, task.clone());
        task
    }

    /// Forgets every task; those that are under way end.
    pub(super) fn forget_tasks(&self, at: Duration) {
        let tasks = std::mem::take(&mut *self.tasks.by_id.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks.values() {
            self.cancel_task(task, at);
        }
    }

    /// A task waits for input; where each answer will come.
    pub(super) fn park_task(
        &self,
        task: &Arc<Task>,
        requests: Vec<(String, String)>,
        at: Duration,
    ) -> Vec<oneshot::Receiver<ClientAnswer>> {
        let mut receivers = Vec::new();
        self.change_task(task, at, |progress| {
            progress.status = Status::InputRequired;
            for (key, request) in requests {
                let (answer, receiver) = oneshot::channel();
                progress.open.push(Input { key, request, answer });
                receivers.push(receiver);
            }
        });
        receivers
    }

    /// A task ends as its call does.
    pub(super) fn conclude_task(&self, task: &Arc<Task>, outcome: &Outcome, at: Duration) {
        let status = match outcome {
            Outcome::Result(members, meta) => {
                let result = self.catalog().result(Era::Legacy, members, meta.as_deref(), false);
                Status::Ended("completed", format!(",\"result\":{result}"))
            }
            Outcome::Verbatim(result) => Status::Ended("completed", format!(",\"result\":{result}")),
            Outcome::Error(error, _) => {
                let error = serde_json::to_string(error).unwrap_or_default();
                Status::Ended("failed", format!(",\"error\":{error}"))
            }
            Outcome::Raw(_) => Status::Ended("failed", raw_in_task()),
        };
        self.change_task(task, at, |progress| progress.status = status);
    }

    fn cancel_task(&self, task: &Arc<Task>, at: Duration) {
        self.change_task(task, at, |progress| {
            progress.status = Status::Ended("cancelled", String::new());
            progress.open.clear();
        });
    }

    /// Changes a task that is not over, and tells those who listen.
    fn change_task(&self, task: &Arc<Task>, at: Duration, change: impl FnOnce(&mut Progress)) {
        {
            let mut progress = task.lock();
            if matches!(progress.status, Status::Ended(..)) {
                return;
            }
            change(&mut progress);
            progress.updated = at;
        }
        self.publish_task(&task.id, &task.members(self.epoch));
    }

    /// `tasks/get`, `tasks/update` and `tasks/cancel`: the members of the result.
    ///
    /// # Errors
    /// The client does not declare the extension; there is no such task.
    pub(super) fn task_method(&self, call: &Call<'_>) -> Result<String, RpcError> {
        if !includes(&call.capabilities(), &needs_tasks()) {
            return Err(no_tasks());
        }
        let id = text("taskId", call.params.task_id)?;
        let at = call.incoming.at;
        let task = self.tasks.by_id.lock().unwrap_or_else(PoisonError::into_inner).get(&*id).cloned();
        let task = task.filter(|task| !task.is_expired(at)).ok_or_else(|| invalid(format!("Unknown task: {id}")))?;
        match &*call.request.method {
            "tasks/get" => return Ok(task.members(self.epoch)),
            "tasks/update" => {
                let answers = call.input_responses()?.ok_or_else(|| invalid("`inputResponses` is missing"))?;
                self.answer_task(&task, answers, at);
            }
            _ => self.cancel_task(&task, at),
        }
        Ok(String::new())
    }

    /// Answers that nobody waits for are ignored (SEP-2663, Task Update Requests).
    fn answer_task(&self, task: &Arc<Task>, mut answers: Map<String, Json>, at: Duration) {
        if task.lock().open.iter().any(|input| answers.contains_key(&input.key)) {
            self.change_task(task, at, |progress| {
                for input in std::mem::take(&mut progress.open) {
                    match answers.remove(&input.key) {
                        Some(answer) => drop(input.answer.send(Ok(answer))),
                        None => progress.open.push(input),
                    }
                }
                if progress.open.is_empty() {
                    progress.status = Status::Working;
                }
            });
        }
    }
}

fn needs_tasks() -> Json {
    json!({ "extensions": { TASKS: {} } })
}

pub(super) fn no_tasks() -> RpcError {
    let error = RpcError::new(MISSING_CAPABILITY, format!("The client does not declare the extension {TASKS}"));
    error.with_data(json!({ "requiredCapabilities": needs_tasks() }))
}

fn raw_in_task() -> String {
    let error = RpcError::new(message::INTERNAL_ERROR, "a task cannot end with a `raw` reply");
    format!(",\"error\":{}", serde_json::to_string(&error).unwrap_or_default())
}
