//! Tests of a client and a server that are written with rmcp: `cargo test --example rmcp_test --features rmcp`.
//!
//! In your own crate, they need:
//!
//! ```toml
//! [dependencies]
//! rmcp = "3.9"
//!
//! [dev-dependencies]
//! mcp-rehearsal = { git = "https://github.com/mcp-rehearsal/mcp-rehearsal", default-features = false, features = ["rmcp"] } # or path = "…"
//! serde_json = "1"
//! tokio = { version = "1", features = ["macros", "rt"] }
//! ```

use std::error::Error;

use rmcp::{
    ErrorData, RoleClient, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool as ToolDefinition, ToolAnnotations,
    },
    service::{Peer, RequestContext},
};
use serde_json::{Map, Value as Json, json};

/// A client under test: asks a weather server for the forecast.
pub async fn forecast(weather: &Peer<RoleClient>, city: &str) -> Result<String, Box<dyn Error>> {
    let arguments = Map::from_iter([("city".to_owned(), Json::from(city))]);
    let result = weather.call_tool(CallToolRequestParams::new("forecast").with_arguments(arguments)).await?;
    let text = result.content.iter().find_map(|block| block.as_text());
    Ok(text.ok_or("no forecast")?.text.clone())
}

/// A server under test.
pub struct Weather;

impl ServerHandler for Weather {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "required": ["city"], "properties": { "city": { "type": "string" } } });
        let schema = schema.as_object().cloned().unwrap_or_default();
        let tool = ToolDefinition::new("forecast", "The weather of tomorrow.", schema);
        let tool = tool.with_annotations(ToolAnnotations::new().read_only(true));
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != "forecast" {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        }
        let city = request.arguments.as_ref().and_then(|arguments| arguments.get("city")?.as_str());
        let result = match city {
            Some(city) => CallToolResult::success(vec![ContentBlock::text(format!("Rain in {city}."))]),
            None => CallToolResult::error(vec![ContentBlock::text("Which city?")]),
        };
        Ok(result.into())
    }
}

fn main() {}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mcp_rehearsal::{
        check::{CheckOptions, check},
        client::{CallOptions, ServerParams, Session},
        document::Source,
        fuzz::{FuzzOptions, fuzz},
        mock::{MockServer, Tool},
        protocol::{Protocol, Version},
        rmcp_bridge::{self, RmcpServer},
        scenario::{Plan, RunOptions, Scenario, Selection, run},
    };
    use rmcp::ServiceExt;

    use super::*;

    type TestResult = Result<(), Box<dyn Error>>;

    #[tokio::test]
    async fn the_client_asks_once() -> TestResult {
        let tool = Tool::new("forecast").reply("{{ args.city }}: sun").expect(1);
        let mock = MockServer::builder().tool(tool).start().await?;
        let client = ().serve(rmcp_bridge::transport(&mock)).await?;
        assert_eq!(forecast(&client, "Oslo").await?, "Oslo: sun");
        Ok(())
    }

    #[tokio::test]
    async fn the_server_follows_the_specification() -> TestResult {
        let server = RmcpServer::start(|| Weather);
        let versions = vec![Version::V2025_11_25, Version::V2026_07_28];
        let options = CheckOptions { versions, ..CheckOptions::default() };
        let checked = check(&ServerParams::new("weather", server.target()), &options).await.checked;
        assert_eq!(checked.failures(), [""; 0]);
        Ok(())
    }

    #[tokio::test]
    async fn no_input_breaks_the_server() -> TestResult {
        let server = RmcpServer::start(|| Weather);
        let options = FuzzOptions { cases: Some(200), ..FuzzOptions::default() };
        let run = fuzz(&ServerParams::new("weather", server.target()), &options).await?;
        assert_eq!(run.failures(), [""; 0]);
        Ok(())
    }

    #[tokio::test]
    async fn the_server_wants_a_city() -> TestResult {
        let server = RmcpServer::start(|| Weather);
        let session = Session::connect(&ServerParams::new("weather", server.target()), Protocol::Auto).await?;
        let outcome = session.call_tool("forecast", None, CallOptions::default()).await?;
        assert_eq!((outcome.text().as_str(), outcome.is_error), ("Which city?", true));
        Ok(())
    }

    #[tokio::test]
    async fn the_server_passes_a_scenario_in_both_eras() -> TestResult {
        let text = "
            servers: { weather: { url: http://127.0.0.1:8000/mcp } }
            steps: [{ call: { tool: forecast, args: { city: Oslo } }, expect: { text: Rain in Oslo. } }]
        ";
        let source = Source::new("weather.yaml", text);
        let mut scenario =
            Scenario::parse(&source, Path::new("weather.yaml"), &[]).map_err(|error| error.to_string())?;
        let server = RmcpServer::start(|| Weather);
        assert!(scenario.set_target("weather", server.target()));
        let plan = Plan::new(vec![scenario], &Selection::default());
        let result = run(plan, RunOptions::default(), Default::default(), |_event| {}).await;
        assert_eq!(result.totals.passed, 2, "{result:#?}");
        Ok(())
    }
}
