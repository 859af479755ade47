//! What a trace shows of a server: its surface, and the calls that clients made.

use std::collections::HashMap;

use serde_json::{Value as Json, value::RawValue};

use crate::{List, Surface};
use rehearse_protocol::{Direction, Id, Message, Trace, names::META_CLIENT_INFO};

/// A call of a tool, a prompt or a resource that a client made.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The list that has its item.
    pub list: List,
    /// The name of the tool or the prompt, or the URI of the resource.
    pub name: String,
    /// The arguments.
    pub arguments: Json,
    /// The name and version of the client, if the trace has it.
    pub client: Option<String>,
    /// Whether the server answered with a result that is no error.
    pub has_succeeded: bool,
    /// Whether its result has structured content.
    pub has_structured_content: bool,
}

/// Reads the surface from the traces of the connections with one server. What none of them shows is not known; of lists
/// that were requested more than once, the last one counts.
pub fn read_surface<'t>(traces: impl IntoIterator<Item = &'t Trace>) -> Surface {
    let mut surface = Surface::default();
    for trace in traces {
        for Answered { method, params, result } in answered(trace) {
            let Ok(result) = result else { continue };
            match method.as_str() {
                "initialize" | "server/discover" => surface.add_handshake(&result),
                method => {
                    let Some(list) = List::ALL.into_iter().find(|list| list.method() == method) else { continue };
                    let page = result.get(list.member()).and_then(Json::as_array).cloned().unwrap_or_default();
                    let items = surface.list_mut(list).get_or_insert_default();
                    if params.get("cursor").is_none_or(Json::is_null) {
                        items.clear();
                    }
                    items.extend(page);
                }
            }
        }
    }
    surface.sort();
    surface
}

/// The calls of tools, prompts and resources in a trace.
pub fn read_calls(trace: &Trace) -> Vec<RecordedCall> {
    let mut client = None;
    let mut calls = Vec::new();
    for Answered { method, params, result } in answered(trace) {
        let info = params.get("clientInfo").or_else(|| params.get("_meta")?.get(META_CLIENT_INFO));
        client = info.and_then(client_name).or(client);
        let (list, key) = match method.as_str() {
            "tools/call" => (List::Tools, "name"),
            "prompts/get" => (List::Prompts, "name"),
            "resources/read" => (List::Resources, "uri"),
            _ => continue,
        };
        let Some(name) = params.get(key).and_then(Json::as_str) else { continue };
        let has_succeeded = result.as_ref().is_ok_and(|result| result.get("isError") != Some(&Json::Bool(true)));
        let has_structured_content =
            result.is_ok_and(|result| result.get("structuredContent").is_some_and(|it| !it.is_null()));
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| Json::Object(Default::default()));
        calls.push(RecordedCall {
            list,
            name: name.to_owned(),
            arguments,
            client: client.clone(),
            has_succeeded,
            has_structured_content,
        });
    }
    calls
}

fn client_name(info: &Json) -> Option<String> {
    let name = info.get("name")?.as_str()?;
    let version = info.get("version").and_then(Json::as_str);
    Some(version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}")))
}

/// A request of the client that was answered.
struct Answered {
    method: String,
    params: Json,
    /// `Err` is an error response.
    result: Result<Json, ()>,
}

/// The answered requests of the client, in the order of their answers.
fn answered(trace: &Trace) -> Vec<Answered> {
    let value = |raw: &RawValue| serde_json::from_str(raw.get()).unwrap_or_default();
    let mut open: HashMap<Id, (String, Json)> = HashMap::new();
    let mut answered = Vec::new();
    for frame in trace.frames() {
        match (frame.direction, Message::parse(&frame.bytes)) {
            (Direction::ClientToServer, Ok(Message::Request(request))) => {
                let params = request.params.map(value).unwrap_or_default();
                open.insert(request.id, (request.method.into_owned(), params));
            }
            (Direction::ServerToClient, Ok(Message::Response(response))) => {
                let Some((method, params)) = response.id.and_then(|id| open.remove(&id)) else { continue };
                let result = response.outcome.map(value).map_err(drop);
                answered.push(Answered { method, params, result });
            }
            _ => {}
        }
    }
    answered
}
