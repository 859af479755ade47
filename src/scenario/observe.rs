//! What a step brought, in a form in which transports and eras can be compared.

use serde_json::{Map, Value as Json, json};

use crate::client::Failure;

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    pub outcome: Outcome,
    /// The progress and log notifications that came with it.
    pub notifications: Vec<Json>,
    /// What the server asked the client meanwhile.
    pub asked: Vec<Json>,
    /// The statuses of a task.
    pub statuses: Vec<Json>,
    /// The HTTP status of a raw step, on transports that have one.
    pub status: Option<u16>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The result, without what the envelope of its era adds to it.
    Result(Json),
    /// A raw step that was not answered.
    Silence,
    Failed {
        kind: String,
        message: String,
        error: Option<Json>,
    },
}

impl Observation {
    pub(super) fn new(outcome: Outcome) -> Self {
        let (notifications, asked, statuses) = (Vec::new(), Vec::new(), Vec::new());
        Observation { outcome, notifications, asked, statuses, status: None }
    }

    pub fn result(result: Json) -> Self {
        Observation::new(Outcome::Result(result))
    }

    /// A failure of a known kind.
    pub fn failed(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Observation::new(Outcome::Failed { kind: kind.into(), message: message.into(), error: None })
    }

    pub fn failure(failure: &Failure) -> Self {
        let error = match failure {
            Failure::Rpc(error) => serde_json::to_value(error).ok(),
            _ => None,
        };
        Observation::new(Outcome::Failed { kind: failure.kind().into(), message: failure.to_string(), error })
    }

    /// The observation as it stands in a snapshot. The text of a failure is left out: it tells of the transport. What
    /// the server asked is in it only on demand, for a server may ask whenever it likes.
    pub fn snapshot(&self, with_asked: bool) -> Json {
        let mut view = match &self.outcome {
            Outcome::Result(result) if self.notifications.is_empty() && !with_asked => return result.clone(),
            Outcome::Result(result) => json!({ "result": result }),
            Outcome::Silence => json!({ "answer": null }),
            Outcome::Failed { error: Some(error), .. } => json!({ "rpcError": error }),
            Outcome::Failed { kind, .. } => json!({ "failure": kind }),
        };
        if !self.notifications.is_empty() {
            view["notifications"] = self.notifications.clone().into();
        }
        if with_asked {
            view["asked"] = self.asked.clone().into();
        }
        view
    }
}

/// A result without the members by which only the envelope of the modern era differs: a complete `resultType`, the
/// server's identity, and hints for caches (2026-07-28, Basic: Result Responses; Caching).
pub(super) fn without_envelope(mut result: Json) -> Json {
    if let Json::Object(members) = &mut result {
        if members.get("resultType").is_some_and(|kind| kind == "complete") {
            members.remove("resultType");
        }
        members.remove("ttlMs");
        members.remove("cacheScope");
        if let Some(Json::Object(meta)) = members.get_mut("_meta") {
            meta.remove("io.modelcontextprotocol/serverInfo");
            if meta.is_empty() {
                members.remove("_meta");
            }
        }
    }
    result
}

/// A notification with the token of its request hidden, which the client chooses as it likes.
pub(super) fn notification(method: &str, params: Option<&str>, token: Option<&Json>) -> Json {
    let mut params: Json = params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
    if token.is_some()
        && let Some(params) = params.as_object_mut()
        && params.get("progressToken") == token
    {
        params.insert("progressToken".into(), "[token]".into());
    }
    Json::Object(Map::from_iter([("method".into(), method.into()), ("params".into(), params)]))
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
