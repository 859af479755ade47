//! The requests of a server to the client, in one form for both eras.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};

use rehearse_protocol::{Direction, Era, Frame, Message};

/// The requests of the server in these frames, in order: JSON-RPC requests (legacy), or the `inputRequests` of results
/// and tasks (2026-07-28, Multi Round-Trip Requests; Tasks). A `ping` is ignored.
pub(crate) fn client_requests(frames: &[Frame], era: Era) -> Vec<Json> {
    let (mut asked, mut of_tasks) = (Vec::new(), HashSet::new());
    for frame in frames.iter().filter(|frame| frame.direction == Direction::ServerToClient) {
        match frame.message() {
            Ok(Message::Request(request)) if request.method != "ping" => {
                let params = request.params.and_then(|params| serde_json::from_str(params.get()).ok());
                asked.push(client_request(&request.method, params));
            }
            Ok(Message::Response(response)) if era == Era::Modern => {
                let Ok(result) = response.outcome else { continue };
                // Most results are long and request nothing: do not parse them.
                if !result.get().contains("inputRequests") {
                    continue;
                }
                let Ok(result) = serde_json::from_str::<Json>(result.get()) else { continue };
                let is_round = result["resultType"] == "input_required";
                let task = result["taskId"].as_str().filter(|_| result["status"] == "input_required");
                if !is_round && task.is_none() {
                    continue;
                }
                for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
                    // A task repeats a request in every status until the client has answered it.
                    if task.is_none_or(|task| of_tasks.insert((task.to_owned(), key.clone()))) {
                        let method = request["method"].as_str().unwrap_or_default();
                        asked.push(client_request(method, request.get("params").cloned()));
                    }
                }
            }
            _ => {}
        }
    }
    asked
}

/// A request without its progress token, which only legacy requests have.
fn client_request(method: &str, params: Option<Json>) -> Json {
    let mut params = params.unwrap_or_default();
    if let Some(members) = params.as_object_mut() {
        if let Some(Json::Object(meta)) = members.get_mut("_meta") {
            meta.remove("progressToken");
            if meta.is_empty() {
                members.remove("_meta");
            }
        }
        if members.is_empty() {
            params = Json::Null;
        }
    }
    let mut client_request = Map::from_iter([("method".to_owned(), method.into())]);
    if !params.is_null() {
        client_request.insert("params".to_owned(), params);
    }
    client_request.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn frames(texts: &[Json]) -> Vec<Frame> {
        let frame = |text: &Json| Frame::new(Direction::ServerToClient, Duration::ZERO, text.to_string().into());
        texts.iter().map(frame).collect()
    }

    #[test]
    fn a_client_request_reads_the_same_in_both_eras() {
        let elicit = json!({ "message": "Your name?", "requestedSchema": {} });
        let mut with_token = elicit.clone();
        with_token["_meta"] = json!({ "progressToken": 3 });
        let legacy = frames(&[
            json!({ "jsonrpc": "2.0", "id": 0, "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": with_token }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "roots/list", "params": {} }),
        ]);
        let requests = json!({
            "who": { "method": "elicitation/create", "params": elicit },
            "where": { "method": "roots/list" },
        });
        let modern = frames(&[
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": "input_required", "inputRequests": requests } }),
            json!({ "jsonrpc": "2.0", "id": 2, "result": { "resultType": "complete", "inputRequests": requests } }),
        ]);
        let expected = [json!({ "method": "elicitation/create", "params": elicit }), json!({ "method": "roots/list" })];
        assert_eq!(client_requests(&legacy, Era::Legacy), expected);
        assert_eq!(client_requests(&modern, Era::Modern), expected);
        assert_eq!(client_requests(&modern, Era::Legacy), [Json::Null; 0]);
    }

    #[test]
    fn a_task_asks_once_however_often_it_says_so() {
        let poll = |key: &str| {
            let requests = json!({ key: { "method": "roots/list" } });
            json!({ "jsonrpc": "2.0", "id": 1, "result": {
                "resultType": "complete", "taskId": "t", "status": "input_required", "inputRequests": requests,
            } })
        };
        assert_eq!(client_requests(&frames(&[poll("a"), poll("a"), poll("b")]), Era::Modern).len(), 2);
    }
}
