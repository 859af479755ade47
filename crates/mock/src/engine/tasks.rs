//! Calls that run as tasks (SEP-2663, `io.modelcontextprotocol/tasks`).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_channel::oneshot;
use parking_lot::Mutex;
use serde_json::{Map, Value as Json, json};

use super::{
    call::Call,
    envelope::Envelope,
    exchange::{Event, Exchange},
    exchange_end::ExchangeEnd,
    frames::ResponseFrame,
    input_response::InputResponse,
    instance::Engine,
    params::{invalid, text},
    task::{Input, Progress, Status, Task},
};
use crate::journal::AnswerKind;
use crate::script::{TaskSpec, includes};
use rehearse_protocol::{
    Era, RpcError,
    message::{self, INTERNAL_ERROR, INVALID_REQUEST, MISSING_CAPABILITY},
    names::TASKS_EXTENSION,
};

/// How many tasks a server has at a time, those that have ended included.
const MAX_TASKS: usize = 10_000;

impl Exchange {
    /// Continues as a task in the background, if the client supports tasks; `None` if it continues as before.
    pub(super) fn become_task(&mut self, spec: &TaskSpec, at: Duration) -> Option<Event> {
        if self.task.is_some() {
            return None;
        }
        let knows_tasks = includes(&self.origin.capabilities, &needs_tasks()) && self.era() == Era::Modern;
        match (knows_tasks, spec.required, self.era()) {
            (false, false, _) => None,
            (false, true, Era::Modern) => Some(self.conclude(ExchangeEnd::Error(no_tasks(), None), at)),
            (false, true, Era::Legacy) => {
                let error = RpcError::new(INVALID_REQUEST, "this tool runs as a task, which needs 2026-07-28");
                Some(self.conclude(ExchangeEnd::Error(error, None), at))
            }
            (true, required, _) => {
                let Some(task) = self.engine.create_task(*spec, self.origin.principal.clone(), at) else {
                    let error = RpcError::new(INTERNAL_ERROR, "too many tasks are under way");
                    return required.then(|| self.conclude(ExchangeEnd::Error(error, None), at));
                };
                let members = format!("\"resultType\":\"task\",{}", task.members(self.engine.epoch));
                let result = format!("{{{members},\"_meta\":{{{}}}}}", self.catalog.server_meta);
                self.task = Some(task);
                self.journal_answer(AnswerKind::Task, at);
                Some(Event::Detach(ResponseFrame::ok(message::result(&self.origin.id, &result))))
            }
        }
    }
}

impl Engine {
    /// `None` if too many tasks are in progress.
    fn create_task(&self, spec: TaskSpec, owner: Option<String>, at: Duration) -> Option<Arc<Task>> {
        let number = self.tasks.numbers.fetch_add(1, Ordering::Relaxed);
        let progress = Progress { status: Status::Working, updated: at, open: Vec::new() };
        let id = self.signer.unguessable("task", number);
        let task = Arc::new(Task { id: id.clone(), owner, created: at, spec, progress: Mutex::new(progress) });
        let mut tasks = self.tasks.by_id.lock();
        if tasks.len() == tasks.capacity() || tasks.len() >= MAX_TASKS {
            tasks.retain(|_, task| !task.is_expired(at));
        }
        if tasks.len() >= MAX_TASKS {
            let ended = tasks.values().filter(|task| task.is_over());
            let oldest = ended.min_by_key(|task| task.created)?.id.clone();
            tasks.remove(&oldest);
        }
        tasks.insert(id, task.clone());
        Some(task)
    }

    /// Removes every task; tasks in progress end.
    pub(super) fn forget_tasks(&self, at: Duration) {
        let tasks = std::mem::take(&mut *self.tasks.by_id.lock());
        for task in tasks.values() {
            self.cancel_task(task, at);
        }
    }

    /// A task waits for input. Returns a receiver for each answer.
    pub(super) fn park_task(
        &self,
        task: &Arc<Task>,
        requests: Vec<(String, String)>,
        at: Duration,
    ) -> Vec<oneshot::Receiver<InputResponse>> {
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
    pub(super) fn conclude_task(&self, task: &Arc<Task>, outcome: &ExchangeEnd, at: Duration) {
        let status = match outcome {
            ExchangeEnd::Result(members, meta) => {
                let envelope = Envelope { meta: meta.as_deref(), ..Envelope::default() };
                let result = self.catalog().result(Era::Legacy, members, envelope);
                Status::End("completed", format!(",\"result\":{result}"))
            }
            ExchangeEnd::Verbatim(result) => Status::End("completed", format!(",\"result\":{result}")),
            ExchangeEnd::Error(error, _) => Status::failed(error),
            ExchangeEnd::Raw(_) => {
                Status::failed(&RpcError::new(INTERNAL_ERROR, "a task cannot end with a `raw` reply"))
            }
        };
        self.change_task(task, at, |progress| progress.status = status);
    }

    /// A task ends before its call does (SEP-2663: Task Status).
    pub(super) fn cancel_task(&self, task: &Arc<Task>, at: Duration) {
        self.change_task(task, at, |progress| {
            progress.status = Status::End("cancelled", String::new());
            progress.open.clear();
        });
    }

    /// Changes a task that has not ended, and notifies its subscribers.
    fn change_task(&self, task: &Arc<Task>, at: Duration, change: impl FnOnce(&mut Progress)) {
        {
            let mut progress = task.lock();
            if matches!(progress.status, Status::End(..)) {
                return;
            }
            change(&mut progress);
            progress.updated = at;
        }
        self.publish_task(&task.id, &task.members(self.epoch));
    }

    /// `tasks/get`, `tasks/update` and `tasks/cancel`: the members of the result; `None` if there is no such task.
    ///
    /// # Errors
    /// The client does not declare the extension, or sends no answers.
    pub(super) fn task_method(&self, call: &Call<'_>) -> Result<Option<String>, RpcError> {
        if !includes(&call.capabilities(), &needs_tasks()) {
            return Err(no_tasks());
        }
        let id = text("taskId", call.params.task_id)?;
        let at = call.incoming.at;
        let Some(task) = self.task(call, &id) else { return Ok(None) };
        match &*call.request.method {
            "tasks/get" => return Ok(Some(task.members(self.epoch))),
            "tasks/update" => {
                let answers = call.input_responses()?.ok_or_else(|| invalid("`inputResponses` is missing"))?;
                self.answer_task(&task, answers, at);
            }
            _ => self.cancel_task(&task, at),
        }
        Ok(Some(String::new()))
    }

    /// A task that the client may query.
    pub(super) fn task(&self, call: &Call<'_>, id: &str) -> Option<Arc<Task>> {
        let task = self.tasks.by_id.lock().get(id).cloned()?;
        (!task.is_expired(call.incoming.at) && task.owner.as_deref() == call.principal()).then_some(task)
    }

    /// Unsolicited responses are ignored (SEP-2663, Task Update Requests).
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
    json!({ "extensions": { TASKS_EXTENSION: {} } })
}

pub(super) fn no_tasks() -> RpcError {
    let error =
        RpcError::new(MISSING_CAPABILITY, format!("The client does not declare the extension {TASKS_EXTENSION}"));
    error.with_data(json!({ "requiredCapabilities": needs_tasks() }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::{super::test_client::TestClient, *};

    const SCRIPT: &str = "
tools:
  - name: job
    steps:
      - task: { ttl: 10s, pollInterval: 250ms }
      - wait: 2s
      - progress: { progress: 1 }
      - reply: 'done {{ args.n }}'
  - name: asks
    steps:
      - task: {}
      - ask:
          name: { elicit: { message: m, requestedSchema: { type: object } } }
          folders: { roots: {} }
      - reply: '{{ name.content.name }} {{ folders.roots | length }}'
  - { name: fails, steps: [{ task: { required: true } }, { reply: { rpcError: { code: -7, message: broken } } }] }
  - { name: errs, steps: [{ task: {} }, { reply: { error: no } }] }
";

    fn client() -> TestClient {
        let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
        TestClient::modern(SCRIPT, json!({ "elicitation": {}, "roots": {}, "extensions": extensions }))
    }

    fn start(client: &TestClient, tool: &str) -> String {
        let reply = client.tool(tool, json!({ "n": 5 }));
        assert_eq!(reply["result"]["resultType"], "task", "{reply}");
        reply["result"]["taskId"].as_str().expect("an id").to_owned()
    }

    fn get(client: &TestClient, id: &str) -> Json {
        let mut reply = client.call("tasks/get", json!({ "taskId": id }));
        reply.get_mut("result").map_or_else(|| json!("no task"), Json::take)
    }

    #[test]
    fn a_task_works_and_completes_in_its_time_with_the_result_of_the_call() {
        let client = client();
        let created = client.tool("job", json!({ "n": 5 }))["result"].clone();
        assert_eq!((&created["status"], &created["ttlMs"]), (&json!("working"), &json!(10_000)));
        assert_eq!(created["pollIntervalMs"], 250);
        let id = created["taskId"].as_str().expect("an id");
        client.advance(Duration::from_secs(1));
        assert_eq!(get(&client, id)["status"], "working");
        client.advance(Duration::from_secs(1));
        let done = get(&client, id);
        assert_eq!((&done["status"], &done["resultType"]), (&json!("completed"), &json!("complete")));
        assert_eq!(done["result"], json!({ "content": [{ "type": "text", "text": "done 5" }] }));
        let seconds = |time: &Json| humantime::parse_rfc3339(time.as_str().expect("a time")).expect("RFC 3339");
        let took = seconds(&done["lastUpdatedAt"]).duration_since(seconds(&done["createdAt"])).expect("forward");
        assert_eq!(took, Duration::from_secs(2));
        client.advance(Duration::from_secs(7));
        assert_eq!(get(&client, id)["status"], "completed");
        client.advance(Duration::from_secs(1));
        assert_eq!(get(&client, id), "no task", "its time to live is over");
    }

    #[test]
    fn input_is_parked_answered_in_parts_and_unknown_answers_are_ignored() {
        let client = client();
        let id = start(&client, "asks");
        let parked = get(&client, &id);
        assert_eq!(parked["status"], "input_required");
        let keys = |task: &Json| task["inputRequests"].as_object().map(|it| it.keys().cloned().collect::<Vec<_>>());
        assert_eq!(keys(&parked), Some(vec!["name".into(), "folders".into()]));
        let answer = |answers: Json| client.call("tasks/update", json!({ "taskId": id, "inputResponses": answers }));
        let acknowledged = answer(json!({ "folders": { "roots": [{ "uri": "file:///a" }] }, "unknown": {} }));
        let members: Vec<_> = acknowledged["result"].as_object().expect("a result").keys().collect();
        assert_eq!(members, ["resultType", "_meta"]);
        assert_eq!(keys(&get(&client, &id)), Some(vec!["name".into()]));
        answer(json!({ "name": { "action": "accept", "content": { "name": "Ada" } } }));
        assert_eq!(get(&client, &id)["result"]["content"][0]["text"], "Ada 1");
    }

    #[test]
    fn a_protocol_error_fails_a_task_and_a_tool_error_completes_it() {
        let client = client();
        let failed = get(&client, &start(&client, "fails"));
        assert_eq!(failed["status"], "failed");
        assert_eq!(failed["error"], json!({ "code": -7, "message": "broken" }));
        assert_eq!(failed["statusMessage"], "broken");
        assert!(failed.get("result").is_none());
        let erred = get(&client, &start(&client, "errs"));
        assert_eq!((&erred["status"], &erred["result"]["isError"]), (&json!("completed"), &json!(true)));
    }

    #[test]
    fn a_task_ends_with_its_time_to_live_in_any_wait() {
        for step in ["roots: { as: r }", "wait: 60m"] {
            let script =
                format!("tools: [{{ name: t, steps: [{{ task: {{ ttl: 10s }} }}, {{ {step} }}, {{ reply: x }}] }}]");
            let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
            let client = TestClient::modern(&script, json!({ "roots": {}, "extensions": extensions }));
            let id = start(&client, "t");
            client.advance(Duration::from_secs(9));
            assert_eq!((client.engine.in_flight(), get(&client, &id)["taskId"] == id.as_str()), (1, true), "{step}");
            client.advance(Duration::from_secs(1));
            assert_eq!((client.engine.in_flight(), get(&client, &id)), (0, "no task".into()), "{step}");
        }
    }

    #[test]
    fn an_abandoned_task_is_cancelled() {
        let client = client();
        let id = start(&client, "job");
        client.advance(Duration::from_secs(1));
        client.abandon();
        assert_eq!(get(&client, &id)["status"], "cancelled");
        assert_eq!(client.engine.in_flight(), 0);
    }

    #[test]
    fn of_too_many_tasks_the_oldest_finished_one_is_removed_and_without_one_the_call_is_plain() {
        let client = client();
        let spec = TaskSpec { ttl: None, poll_interval: Duration::ZERO, required: false };
        let create = || client.engine.create_task(spec, None, Duration::ZERO);
        let tasks: Vec<_> = (0..MAX_TASKS).map(|_| create().expect("room")).collect();
        assert!(create().is_none());
        assert_eq!(client.call("tools/call", json!({ "name": "errs" }))["result"]["isError"], true);
        assert_eq!(client.call("tools/call", json!({ "name": "fails" }))["error"]["code"], -32603);
        client.engine.cancel_task(&tasks[7], Duration::ZERO);
        assert!(create().is_some() && create().is_none());
        assert_eq!(get(&client, &tasks[7].id), "no task");
        assert_eq!(get(&client, &tasks[8].id)["status"], "working");
    }

    #[test]
    fn a_cancelled_task_stays_cancelled_and_an_ended_one_ended() {
        let client = client();
        let id = start(&client, "job");
        client.call("tasks/cancel", json!({ "taskId": id }));
        client.advance(Duration::from_secs(3));
        assert_eq!(get(&client, &id)["status"], "cancelled");
        let ended = start(&client, "errs");
        assert_eq!(client.call("tasks/cancel", json!({ "taskId": ended }))["result"]["resultType"], "complete");
        assert_eq!(get(&client, &ended)["status"], "completed");
        let parked = start(&client, "asks");
        client.call("tasks/cancel", json!({ "taskId": parked }));
        assert_eq!(get(&client, &parked)["status"], "cancelled");
    }

    #[test]
    fn without_the_extension_a_call_is_answered_at_once_or_refused() {
        let client = TestClient::modern(SCRIPT, json!({}));
        assert_eq!(client.text("job", json!({ "n": 1 })), "done 1");
        for reply in [client.tool("fails", json!({})), client.call("tasks/get", json!({ "taskId": "x" }))] {
            assert_eq!(reply["error"]["code"], -32021);
            let required = &reply["error"]["data"]["requiredCapabilities"];
            assert_eq!(required["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
        }
        let legacy = TestClient::legacy(SCRIPT, json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }));
        assert_eq!(legacy.text("job", json!({ "n": 1 })), "done 1");
        assert_eq!(legacy.tool("fails", json!({}))["error"]["code"], -32600);
        assert_eq!(legacy.call("tasks/get", json!({ "taskId": "x" }))["error"]["code"], -32601);
    }

    #[test]
    fn tasks_are_distinguished_and_unknown_ones_are_errors() {
        let client = client();
        assert_ne!(start(&client, "job"), start(&client, "job"));
        assert_eq!(client.call("tasks/get", json!({ "taskId": "nope" }))["error"]["code"], -32602);
        assert_eq!(client.call("tasks/get", json!({}))["error"]["code"], -32602);
        assert_eq!(client.call("tasks/list", json!({}))["error"]["code"], -32601);
    }
}
