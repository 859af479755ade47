//! Tools with which a model lists and reads the resources of the servers.

use rehearse_client::CallOptions;
use rehearse_hub::Hub;
use rehearse_llm::model::{Block, Media};
use rehearse_protocol::List;
use serde_json::{Map, Value, json};

use crate::{NativeTool, NativeToolError};

const LISTS: [List; 2] = [List::Resources, List::ResourceTemplates];

/// A tool that lists the resources and resource templates of the connected servers, and one that reads a resource; none if
/// there are no resources.
pub async fn resource_tools(hub: &Hub) -> Vec<NativeTool> {
    let mut has_any = false;
    for list in LISTS {
        has_any |= hub.items(list).await.items().next().is_some();
    }
    if has_any { vec![list_tool(hub.clone()), read_tool(hub.clone())] } else { Vec::new() }
}

fn list_tool(hub: Hub) -> NativeTool {
    let about = "Lists the resources and resource templates of the MCP servers.";
    let schema = json!({
        "type": "object",
        "properties": { "server": { "type": "string", "description": "Only those of this server." } },
    });
    NativeTool::new("list_mcp_resources", about, &schema, move |arguments, _| {
        let hub = hub.clone();
        Box::pin(async move {
            let mut found = Vec::new();
            for list in LISTS {
                let listed = hub.items(list).await;
                let wanted = arguments.get("server").and_then(Value::as_str);
                let items = listed.items().filter(|(server, _)| wanted.is_none_or(|wanted| &***server == wanted));
                found.extend(items.map(|(server, item)| json!({ "server": &**server, list.key(): item[list.key()], "name": item["name"], "description": item["description"], "mimeType": item["mimeType"] })));
            }
            found.iter_mut().filter_map(Value::as_object_mut).for_each(|item| item.retain(|_, value| !value.is_null()));
            Ok(vec![Block::text(Value::from(found).to_string())])
        })
    })
}

fn read_tool(hub: Hub) -> NativeTool {
    let about = "Reads a resource of an MCP server.";
    let schema = json!({
        "type": "object",
        "required": ["server", "uri"],
        "properties": { "server": { "type": "string" }, "uri": { "type": "string" } },
    });
    NativeTool::new("read_mcp_resource", about, &schema, move |arguments, cancel| {
        let hub = hub.clone();
        Box::pin(async move {
            let options = CallOptions { cancel: Some(cancel), ..CallOptions::default() };
            let read = hub.read_resource(text(&arguments, "server"), text(&arguments, "uri"), options).await;
            let result = read.map_err(|error| NativeToolError::Failed(error.to_string()))?;
            let result = result.map_err(|failure| NativeToolError::Failed(failure.to_string()))?;
            let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
            Ok(result["contents"].as_array().into_iter().flatten().map(block).collect())
        })
    })
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The content of a resource: its text, its image or recording, or what is known of other data.
fn block(content: &Value) -> Block {
    let mime_type = content["mimeType"].as_str().unwrap_or_default();
    match (content["text"].as_str(), content["blob"].as_str()) {
        (Some(text), _) => Block::text(text),
        (None, Some(data)) if mime_type.starts_with("image/") || mime_type.starts_with("audio/") => {
            Block::Media(Media { mime_type: mime_type.to_owned(), data: data.to_owned(), name: None })
        }
        (None, data) => {
            let bytes = data.unwrap_or_default().len() / 4 * 3;
            Block::text(format!("{} ({mime_type}, about {bytes} bytes)", content["uri"].as_str().unwrap_or_default()))
        }
    }
}
