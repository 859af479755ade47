//! An application: it does its usual work with whatever the server offers.

use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, ReadResourceRequestParams},
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Map, Value};
use tokio::process::Command;

pub async fn work(transport: &str, address: &str) -> Result<(), Box<dyn std::error::Error>> {
    if transport == "http" {
        return with(().serve(StreamableHttpClientTransport::from_uri(address)).await?).await;
    }
    let mut words = address.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    with(().serve(TokioChildProcess::new(command)?).await?).await
}

async fn with(client: RunningService<RoleClient, ()>) -> Result<(), Box<dyn std::error::Error>> {
    let offered = client.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
    if offered.tools.is_some() {
        for tool in client.list_all_tools().await.unwrap_or_default() {
            let arguments = example(&Value::Object((*tool.input_schema).clone()));
            let params = CallToolRequestParams::new(tool.name.clone()).with_arguments(arguments);
            if let Err(error) = client.call_tool(params).await {
                eprintln!("call of {}: {error}", tool.name);
            }
        }
    }
    if offered.resources.is_some() {
        for resource in client.list_all_resources().await.unwrap_or_default().iter().take(2) {
            let params = ReadResourceRequestParams::new(resource.uri.clone());
            if let Err(error) = client.read_resource(params).await {
                eprintln!("read of {}: {error}", resource.uri);
            }
        }
    }
    if offered.prompts.is_some() {
        let _ = client.list_all_prompts().await;
    }
    client.cancel().await?;
    Ok(())
}

/// A value for each property that is required.
fn example(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("number" | "integer") => Value::from(1),
        Some("boolean") => Value::from(true),
        Some("array") => Value::Array(Vec::new()),
        Some("object") => Value::Object(Map::new()),
        _ => Value::from("x"),
    };
    required.map(|name| (name.to_owned(), value(name))).collect()
}
