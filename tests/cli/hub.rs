//! The hub used from Rust: servers that are added, and tools that are chosen and described, at run time.

use mcp_rehearsal::{
    client::{CallOptions, Endpoint, ServerParams, Target},
    hub::{ConnectMode, Hub, HubOptions, HubServer},
    llm::{Provider, ToolDefinition},
    mock::{MockServer, Tool},
    protocol::Transport,
};
use serde_json::{Value as Json, json};

/// A server of a hub, which connects to a mock.
fn member(name: &str, mock: &MockServer) -> HubServer {
    let endpoint = Endpoint { url: mock.url(Transport::Http).expect("a URL"), headers: Vec::new() };
    HubServer::new(ServerParams::new(name, Target::Http(endpoint)))
}

#[tokio::test]
async fn tools_are_discovered_and_then_chosen_renamed_and_described_by_the_user() {
    let files = MockServer::builder().tool(Tool::new("read").reply("text")).tool(Tool::new("delete").reply("gone"));
    let (files, notes) =
        (files.start().await, MockServer::builder().tool(Tool::new("note").reply("noted")).start().await);
    let (files, notes) = (files.expect("listens"), notes.expect("listens"));
    let hub = Hub::new([], HubOptions { connect: ConnectMode::Lazy, ..HubOptions::default() });
    assert!(hub.registry().tools().is_empty() && hub.status().is_empty());

    // Servers come when they are needed.
    hub.reload([member("files", &files)]).await.expect("loads");
    assert!(hub.registry().tools().is_empty(), "nothing was connected to");
    hub.connect("files").await.expect("connects");
    hub.reload([member("files", &files), member("notes", &notes)]).await.expect("loads");
    let definitions = hub.tool_definitions("files").expect("a server");
    let names = definitions.iter().map(|tool| serde_json::from_str::<Json>(tool.get()).expect("JSON")["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["read", "delete"]);

    // One of them is for the model, under another name and with another description.
    let registry = hub.registry();
    let read = registry.get("read").expect("is there");
    let schema = serde_json::value::RawValue::from_string(r#"{"type":"object"}"#.to_owned()).expect("JSON");
    let shown =
        ToolDefinition { description: Some("Reads a file of ours."), ..ToolDefinition::new("mcp_read", &schema) };
    let expected =
        json!({ "name": "mcp_read", "description": "Reads a file of ours.", "input_schema": { "type": "object" } });
    assert_eq!(serde_json::to_value(Provider::Anthropic.definition(&shown)).expect("serialises"), expected);
    let outcome = hub.call_tool(read, None, CallOptions::default()).await.expect("a result");
    assert_eq!(outcome.text(), "text");

    // Each agent has a hub of its own.
    let other = Hub::new([member("notes", &notes)], HubOptions::default());
    let found = other.discover().await.expect("discovers");
    assert_eq!(found.registry.tools().iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["note"]);
    hub.close().await;
    assert!(hub.is_closed() && !other.is_closed());
    other.close().await;
}
