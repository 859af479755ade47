//! How the client of the prober answers what a server asks.

use rehearse_client::example;
use rehearse_conformance::without_mark;
use rehearse_protocol::{Direction, Frame, names::META_RELATED_TASK};
use serde_json::{Map, Value, json};

/// How the client answers elicitation, sampling and roots. A `ping` always gets its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replies {
    /// As a client without these features.
    #[default]
    Refuse,
    /// With valid input.
    Accept,
    /// As a user who declines a form or a page.
    Decline,
    /// As a user who closes a form or a page.
    Cancel,
    /// With content that does not fit the schema of a form.
    Invalid,
    /// With an error.
    Error,
}

impl Replies {
    /// The result for a request of a server, or the code and the message of an error.
    fn result(self, method: &str, params: &Value) -> Result<Value, (i64, &'static str)> {
        match (method, self) {
            ("ping", _) => Ok(json!({})),
            ("elicitation/create", Replies::Error) => Err((-32603, "Internal error")),
            ("sampling/createMessage", Replies::Error) => Err((-1, "User rejected sampling request")),
            (_, Replies::Refuse | Replies::Error) => Err((-32601, "Method not found")),
            ("elicitation/create", Replies::Decline) => Ok(json!({ "action": "decline" })),
            ("elicitation/create", Replies::Cancel) => Ok(json!({ "action": "cancel" })),
            ("elicitation/create", _) if params["mode"] == "url" => Ok(json!({ "action": "accept" })),
            ("elicitation/create", _) => {
                let schema = &params["requestedSchema"];
                let mut content = example::object(schema);
                if self == Replies::Invalid {
                    let names = schema["properties"].as_object().into_iter().flat_map(Map::keys);
                    content.extend(names.map(|name| (name.clone(), json!({ "rehearse": "invalid" }))));
                }
                Ok(json!({ "action": "accept", "content": content }))
            }
            ("sampling/createMessage", _) => Ok(json!({
                "role": "assistant",
                "content": { "type": "text", "text": "rehearse" },
                "model": "rehearse",
                "stopReason": "endTurn",
            })),
            ("roots/list", _) => Ok(json!({ "roots": [{ "uri": "file:///tmp", "name": "rehearse" }] })),
            _ => Err((-32601, "Method not found")),
        }
    }

    /// The response to a request of a legacy server.
    pub(crate) fn response(self, request: &Value) -> Value {
        let mut response = json!({ "jsonrpc": "2.0", "id": request["id"] });
        match self.result(request["method"].as_str().unwrap_or_default(), &request["params"]) {
            Ok(mut result) => {
                if let Some(task) = request["params"]["_meta"].get(META_RELATED_TASK) {
                    result["_meta"] = json!({ META_RELATED_TASK: task });
                }
                response["result"] = result;
            }
            Err((code, message)) => response["error"] = json!({ "code": code, "message": message }),
        }
        response
    }

    /// The answers to the `inputRequests` of a modern result. What would be an error is left out.
    pub(crate) fn input_responses(self, result: &Value) -> Value {
        let requests = result["inputRequests"].as_object().into_iter().flatten();
        let answers = requests.filter_map(|(key, request)| {
            let method = request["method"].as_str().unwrap_or_default();
            Some((key.clone(), self.result(method, &request["params"]).ok()?))
        });
        Value::Object(answers.collect())
    }

    /// The params of the next attempt; `None` if a modern result asks for nothing.
    pub(crate) fn retry(self, params: &Value, result: &Value) -> Option<Value> {
        if result["resultType"] != "input_required" {
            return None;
        }
        let mut retry = params.clone();
        let members = retry.as_object_mut()?;
        members.insert("inputResponses".to_owned(), self.input_responses(result));
        match result.get("requestState") {
            Some(state) => members.insert("requestState".to_owned(), state.clone()),
            None => members.remove("requestState"),
        };
        Some(retry)
    }
}

/// The requests of the server in a frame; several in a batch.
pub(crate) fn requests(frame: &Frame) -> Vec<Value> {
    if frame.direction != Direction::ServerToClient {
        return Vec::new();
    }
    let messages = match serde_json::from_slice(without_mark(&frame.bytes)) {
        Ok(Value::Array(messages)) => messages,
        Ok(message) => vec![message],
        Err(_) => Vec::new(),
    };
    messages.into_iter().filter(|it| it["method"].is_string() && it.get("id").is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_has_an_answer_for_each_input_request_and_the_state() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let form = json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": schema } });
        let result = json!({ "resultType": "input_required", "inputRequests": { "form": form }, "requestState": "s" });
        let params = json!({ "name": "tool" });
        let retry = Replies::Decline.retry(&params, &result).expect("a retry");
        let declined = json!({ "form": { "action": "decline" } });
        assert_eq!(retry, json!({ "name": "tool", "inputResponses": declined, "requestState": "s" }));
        let accepted = Replies::Accept.input_responses(&result);
        assert!(accepted["form"]["content"]["n"].is_i64(), "{accepted}");
        let invalid = Replies::Invalid.input_responses(&result);
        assert!(invalid["form"]["content"]["n"].is_object(), "{invalid}");
        assert_eq!(Replies::Accept.retry(&params, &json!({ "resultType": "complete" })), None);
    }

    #[test]
    fn a_client_without_features_answers_only_pings() {
        let ping = Replies::Refuse.response(&json!({ "id": 1, "method": "ping" }));
        assert_eq!(ping, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
        let refused = Replies::Refuse.response(&json!({ "id": "a", "method": "roots/list" }));
        assert_eq!(refused["error"]["code"], -32601);
    }
}
