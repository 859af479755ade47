//! What a trace shows of a server: its surface, and the calls that clients made.

use serde_json::Value as Json;

use crate::Surface;
use rehearse_protocol::{Answered, List, Trace, names::META_CLIENT_INFO};

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
        for answered in Answered::all(trace) {
            let Some(result) = answered.result() else { continue };
            match answered.method.as_str() {
                "initialize" | "server/discover" => surface.add_handshake(&result),
                method => {
                    let Some(list) = List::of_method(method) else { continue };
                    let page = result.get(list.member()).and_then(Json::as_array).cloned().unwrap_or_default();
                    let items = surface.list_mut(list).get_or_insert_default();
                    if answered.params.get("cursor").is_none_or(Json::is_null) {
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
    for answered in Answered::all(trace) {
        let (result, Answered { method, params, .. }) = (answered.result(), answered);
        let info = params.get("clientInfo").or_else(|| params.get("_meta")?.get(META_CLIENT_INFO));
        client = info.and_then(client_name).or(client);
        let Some(list) = List::of_item_method(&method) else { continue };
        let Some(name) = params.get(list.key()).and_then(Json::as_str) else { continue };
        let has_succeeded = result.as_ref().is_some_and(|result| result.get("isError") != Some(&Json::Bool(true)));
        let has_structured_content =
            result.is_some_and(|result| result.get("structuredContent").is_some_and(|it| !it.is_null()));
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
