//! Observations: the result of a step in a form that is equal on all transports and in both eras.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value as Json, json, value::RawValue};

use rehearse_client::{ConnectError, Failure};
use rehearse_llm::model::Usage;
use rehearse_protocol::{Version, names::META_SERVER_INFO};

/// How many events of a session are kept. With their 64 MiB at most, this also limits a step.
pub(crate) const MAX_EVENTS: usize = 100_000;
const OVERFLOW: &str = "overflow";

/// The observed result of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The result or the failure.
    pub outcome: StepOutcome,
    /// The progress and log notifications of the request.
    pub notifications: Vec<Json>,
    /// The requests of the server to the client during the step.
    pub client_requests: Vec<Json>,
    /// The statuses of a task, in order.
    pub statuses: Vec<Json>,
    /// How the structured content breaks the output schema of the tool, as `pointer: message`.
    pub schema_errors: Vec<String>,
    /// The HTTP status of a raw step, on transports that have one.
    pub status: Option<u16>,
    /// The longest time in a call without a report of progress.
    pub longest_pause: Option<Duration>,
    /// What an agent did.
    pub agent: Option<AgentLog>,
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    /// The result, without the members that only the envelope of one era adds.
    Result(Json),
    /// A raw frame without a response.
    Silence,
    /// The step failed.
    Failed {
        /// The kind of the failure, one word.
        kind: String,
        /// The reason.
        message: String,
        /// The JSON-RPC error, if there is one.
        error: Option<Json>,
    },
}

/// What an agent did, however its run ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentLog {
    /// Its calls, in order: `tool`, `arguments`, `result` and `isError`. One that was cut off has no result.
    pub calls: Vec<Json>,
    /// What went wrong and did not end the run.
    pub warnings: Vec<String>,
    /// How often the model answered.
    pub turns: u64,
    /// The tokens that it read and wrote.
    pub usage: Usage,
}

impl AgentLog {
    /// The calls with an error.
    pub fn failed_calls(&self) -> u64 {
        self.calls.iter().filter(|call| call["isError"] == true).count() as u64
    }
}

impl Observation {
    pub(crate) fn new(outcome: StepOutcome) -> Self {
        let (notifications, client_requests, statuses) = (Vec::new(), Vec::new(), Vec::new());
        let (schema_errors, status, longest_pause, agent) = (Vec::new(), None, None, None);
        Observation { outcome, notifications, client_requests, statuses, schema_errors, status, longest_pause, agent }
    }

    /// A step with a result.
    pub fn result(result: Json) -> Self {
        Observation::new(StepOutcome::Result(result))
    }

    /// A failed step.
    pub fn failed(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Observation::new(StepOutcome::Failed { kind: kind.into(), message: message.into(), error: None })
    }

    /// Servers of a config that cannot be reached.
    pub(crate) fn unreachable(servers: &[(Arc<str>, Arc<ConnectError>)]) -> Self {
        let message = |(server, error): &(Arc<str>, Arc<ConnectError>)| {
            format!("cannot connect to server '{server}': {}", with_older(error))
        };
        Observation::failed("connect", servers.iter().map(message).collect::<Vec<_>>().join("\n"))
    }

    /// A connection in another version than that of the cell.
    pub(crate) fn other_version(requested: Version, negotiated: Version) -> Self {
        let message = format!(
            "the server negotiated {negotiated} instead of {requested}; test that version with `matrix: {{ protocol: \
             {negotiated} }}`, or any version with `matrix: {{ protocol: negotiated }}`"
        );
        Observation::failed("connect", message)
    }

    /// A step during which the server sent more than is kept.
    pub(crate) fn overflow() -> Self {
        let message = format!("the server sent more than {MAX_EVENTS} messages or 64 MiB during this step");
        Observation::failed(OVERFLOW, message)
    }

    /// Whether the server answered with an error.
    pub(crate) fn is_error(&self) -> bool {
        match &self.outcome {
            StepOutcome::Result(result) => result.get("isError") == Some(&Json::Bool(true)),
            StepOutcome::Silence => false,
            StepOutcome::Failed { error, .. } => error.is_some(),
        }
    }

    pub(crate) fn is_overflow(&self) -> bool {
        matches!(&self.outcome, StepOutcome::Failed { kind, .. } if kind == OVERFLOW)
    }

    /// A server that cannot be reached.
    pub(crate) fn from_connect_error(error: ConnectError) -> Self {
        let message = with_older(&error);
        let error = match error.last() {
            ConnectError::Refused { error, .. } => serde_json::to_value(error).ok(),
            _ => None,
        };
        Observation::new(StepOutcome::Failed { kind: "connect".into(), message, error })
    }

    /// A step that failed with a failure of the client.
    pub fn from_failure(failure: &Failure) -> Self {
        let error = match failure {
            Failure::Rpc(error) => serde_json::to_value(error).ok(),
            _ => None,
        };
        Observation::new(StepOutcome::Failed { kind: failure.kind().into(), message: failure.to_string(), error })
    }

    /// The snapshot of the observation. It omits the message of a failure, which depends on the transport. Client requests
    /// are included only on demand, because a server may send them at any time.
    pub fn snapshot(&self, with_client_requests: bool) -> Json {
        let mut view = match &self.outcome {
            StepOutcome::Result(result) if self.notifications.is_empty() && !with_client_requests => {
                return result.clone();
            }
            StepOutcome::Result(result) => json!({ "result": result }),
            StepOutcome::Silence => json!({ "answer": null }),
            StepOutcome::Failed { error: Some(error), .. } => json!({ "rpcError": error }),
            StepOutcome::Failed { kind, .. } => json!({ "failure": kind }),
        };
        if !self.notifications.is_empty() {
            view["notifications"] = self.notifications.clone().into();
        }
        if with_client_requests {
            view["asked"] = self.client_requests.clone().into();
        }
        view
    }
}

/// The message of an error, which names the older versions in the words of a scenario.
fn with_older(error: &ConnectError) -> String {
    let how = if error.may_be_older() { ", as `matrix: { protocol: [2025-11-25] }` does" } else { "" };
    format!("{error}{how}")
}

/// Removes the members that only the modern envelope has: a complete `resultType`, the server's identity, and caching
/// hints (2026-07-28, Basic: Result Responses; Caching).
pub(crate) fn without_envelope(mut result: Json) -> Json {
    if let Json::Object(members) = &mut result {
        if members.get("resultType").is_some_and(|kind| kind == "complete") {
            members.remove("resultType");
        }
        members.remove("ttlMs");
        members.remove("cacheScope");
        if let Some(Json::Object(meta)) = members.get_mut("_meta") {
            meta.remove(META_SERVER_INFO);
            if meta.is_empty() {
                members.remove("_meta");
            }
        }
    }
    result
}

/// A notification without the progress token of its request, which the client chooses.
pub(crate) fn notification(method: &str, params: Option<&str>, token: Option<&Json>) -> Json {
    let mut params: Json = params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
    if token.is_some()
        && let Some(params) = params.as_object_mut()
        && params.get("progressToken") == token
    {
        params.insert("progressToken".into(), "[token]".into());
    }
    Json::Object(Map::from_iter([("method".into(), method.into()), ("params".into(), params)]))
}

/// The observation of a request.
pub(crate) fn observe_result(result: Result<Json, Failure>) -> Observation {
    match result {
        Ok(result) => Observation::result(result),
        Err(failure) => Observation::from_failure(&failure),
    }
}

/// The observation of a request with an unparsed result.
pub(crate) fn observe_raw(result: Result<Box<RawValue>, Failure>) -> Observation {
    let read =
        |raw: Box<RawValue>| serde_json::from_str(raw.get()).map_err(|error| Failure::Malformed(error.to_string()));
    observe_result(result.and_then(read).map(without_envelope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_modern_envelope_is_taken_off() {
        let modern = json!({
            "content": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s" } },
        });
        assert_eq!(without_envelope(modern), json!({ "content": [] }));
        let kept = json!({ "resultType": "input_required", "_meta": { "k": 1 } });
        assert_eq!(without_envelope(kept.clone()), kept);
    }

    #[test]
    fn only_the_token_of_the_request_itself_is_hidden() {
        let hidden =
            notification("notifications/progress", Some(r#"{"progressToken":3,"progress":1}"#), Some(&json!(3)));
        assert_eq!(hidden["params"], json!({ "progressToken": "[token]", "progress": 1 }));
        let wrong = notification("notifications/progress", Some(r#"{"progressToken":4}"#), Some(&json!(3)));
        assert_eq!(wrong["params"]["progressToken"], 4);
    }
}
