//! Tests of an MCP client against a mock, in Rust, and of a model with tools: `cargo test --example rust_test`.
//!
//! In your own crate, they need:
//!
//! ```toml
//! [dev-dependencies]
//! mcp-rehearsal = { git = "https://github.com/mcp-rehearsal/mcp-rehearsal", default-features = false } # or path = "…"; without the command line
//! rmcp = { version = "3.9", default-features = false, features = ["base64", "client", "transport-async-rw"] }
//! serde_json = "1"
//! tokio = { version = "1", features = ["macros", "rt"] }
//! ```

use std::error::Error;

use rmcp::{RoleClient, model::CallToolRequestParams, service::Peer};
use serde_json::{Map, Value as Json};

/// The code under test: asks a weather server which of two cities is the warmer one, and asks again when it is busy.
pub async fn warmer<'c>(weather: &Peer<RoleClient>, cities: [&'c str; 2]) -> Result<&'c str, Box<dyn Error>> {
    let mut celsius = [0.0; 2];
    for (city, celsius) in cities.into_iter().zip(&mut celsius) {
        let mut forecast = forecast(weather, city).await?;
        if forecast.is_none() {
            forecast = self::forecast(weather, city).await?;
        }
        *celsius = forecast.ok_or("the server is busy")?;
    }
    Ok(if celsius[0] > celsius[1] { cities[0] } else { cities[1] })
}

async fn forecast(weather: &Peer<RoleClient>, city: &str) -> Result<Option<f64>, Box<dyn Error>> {
    let arguments = Map::from_iter([("city".to_owned(), Json::from(city))]);
    let result = weather.call_tool(CallToolRequestParams::new("forecast").with_arguments(arguments)).await?;
    if result.is_error == Some(true) {
        return Ok(None);
    }
    let celsius = result.structured_content.and_then(|content| content["celsius"].as_f64());
    celsius.map(Some).ok_or_else(|| "no temperature".into())
}

fn main() {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_rehearsal::{
        agent::{Agent, AgentOptions, Conversation, NativeTool, RunLabel},
        check::{CheckOptions, check},
        client::{CallOptions, ServerParams, Session, Target},
        document::Source,
        hub::{Hub, HubOptions, HubServer},
        llm::model::{Block, Model, ScriptedModel},
        mock::{HandlerCall, LogLevel, MockServer, MockServerBuilder, Rule, Tool, script::ItemKind},
        protocol::{Direction, Protocol, RpcError, Transport},
    };
    use rmcp::ServiceExt;
    use serde_json::json;

    use super::*;

    type TestResult = Result<(), Box<dyn Error>>;

    fn celsius(celsius: f64) -> Json {
        json!({ "structured": { "celsius": celsius } })
    }

    /// What all tests have in common; they add what is special to them.
    fn weather() -> MockServerBuilder {
        MockServer::builder().name("weather").tool(
            Tool::new("forecast")
                .rule(Rule::when_args(json!({ "city": "Oslo" })).reply(celsius(-3.5)))
                .rule(Rule::when_args(json!({ "city": "Rome" })).reply(celsius(21.0)).expect(1)),
        )
    }

    #[tokio::test]
    async fn the_warmer_city_wins() -> TestResult {
        let server = weather().start().await?;
        let client = ().serve(server.connect()).await?;
        assert_eq!(warmer(&client, ["Oslo", "Rome"]).await?, "Rome");
        // Dropping the server verifies that it was asked once for Rome.
        Ok(())
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_once_more() -> TestResult {
        let server = weather().start().await?;
        let busy = Rule::when_args(json!({ "city": "Oslo" })).replies([json!({ "error": "busy" }), celsius(30.0)]);
        server.add_rule(ItemKind::Tool, "forecast", busy.expect(2))?;
        let client = ().serve(server.connect()).await?;
        assert_eq!(warmer(&client, ["Oslo", "Rome"]).await?, "Oslo");
        Ok(())
    }

    #[tokio::test]
    async fn a_server_that_stays_busy_is_given_up() -> TestResult {
        let server = MockServer::builder().tool(Tool::new("forecast").error("busy").expect(2)).start().await?;
        let client = ().serve(server.connect()).await?;
        assert_eq!(warmer(&client, ["Oslo", "Rome"]).await.expect_err("busy").to_string(), "the server is busy");
        let asked = server.journal().iter().filter(|entry| entry.method().as_deref() == Some("tools/call")).count();
        assert_eq!(asked, 2);
        Ok(())
    }

    /// An async function answers where a script is not enough.
    #[tokio::test]
    async fn the_longer_name_is_the_warmer_city() -> TestResult {
        let forecast = async |call: HandlerCall| {
            call.progress(1.0, None, Some("measuring"));
            let celsius = call.arguments()["city"].as_str().map_or(0, str::len);
            Ok(json!({ "content": [], "structuredContent": { "celsius": celsius } }))
        };
        let server = MockServer::builder().tool(Tool::new("forecast").handle(forecast).expect(2)).start().await?;
        let client = ().serve(server.connect()).await?;
        assert_eq!(warmer(&client, ["Reykjavik", "Rome"]).await?, "Reykjavik");
        Ok(())
    }

    /// A client that takes a URL: here that of this crate.
    async fn my_client(url: &str) -> TestResult {
        let client = Session::connect(&ServerParams::new("weather", Target::http(url)), Protocol::Auto).await?;
        let arguments = json!({ "city": "Oslo" }).as_object().cloned();
        let outcome = client.call_tool("forecast", arguments, CallOptions::default()).await?;
        assert_eq!(outcome.text(), r#"{"celsius":21}"#);
        client.close().await;
        Ok(())
    }

    #[tokio::test]
    async fn the_client_asks_for_oslo_once() -> Result<(), Box<dyn std::error::Error>> {
        let server = MockServer::builder()
            .tool(
                Tool::new("forecast")
                    .rule(Rule::when_args(json!({ "city": "Atlantis" })).error("There is no such city."))
                    .rule(Rule::always().reply(json!({ "structured": { "celsius": 21 } })).expect(1..=2)),
            )
            .start()
            .await?;
        let url = server.url(Transport::Http).ok_or("no URL")?;
        my_client(&url).await?;
        Ok(()) // dropping the server panics if `forecast` was not called once or twice
    }

    #[tokio::test]
    async fn a_division_by_zero_is_an_error() -> TestResult {
        let divide = |call: HandlerCall| async move {
            call.progress(1.0, Some(2.0), Some("dividing"));
            call.log(LogLevel::INFO, None, json!({ "arguments": call.arguments() }));
            let [a, b] = ["a", "b"].map(|name| call.arguments()[name].as_i64());
            let Some(quotient) = a.zip(b).and_then(|(a, b)| a.checked_div(b)) else {
                return Err(RpcError::new(-32602, "This cannot be divided."));
            };
            Ok(json!({ "content": [{ "type": "text", "text": quotient.to_string() }] }))
        };
        let tool = Tool::new("divide")
            .input_schema(json!({ "type": "object", "required": ["a", "b"] }))
            .rule(Rule::always().handle(divide).expect(1));
        let server = MockServer::builder().tool(tool).start().await?;
        let client = ().serve(server.connect()).await?;
        let arguments = json!({ "a": 1, "b": 0 }).as_object().cloned().unwrap_or_default();
        let error = client.call_tool(CallToolRequestParams::new("divide").with_arguments(arguments)).await;
        assert!(error.expect_err("no number").to_string().contains("This cannot be divided."));
        Ok(())
    }

    #[tokio::test]
    async fn a_trace_has_every_frame() -> TestResult {
        let server = MockServer::builder().record_traces().tool(Tool::new("forecast").reply("Rain.")).start().await?;
        let client = ().serve(server.connect()).await?;
        client.call_tool(CallToolRequestParams::new("forecast")).await?;
        let mut lines = Vec::new();
        for frame in server.traces().iter().flat_map(|trace| trace.frames()) {
            let sender = if frame.direction == Direction::ClientToServer { "client" } else { "server" };
            lines.push(format!("{sender}: {}", String::from_utf8_lossy(&frame.bytes)));
        }
        assert!(lines.last().is_some_and(|line| line.starts_with("server: ") && line.contains("Rain.")), "{lines:#?}");
        Ok(())
    }

    #[tokio::test]
    async fn a_server_follows_the_specification() -> TestResult {
        let server = weather().verify_on_drop(false).start().await?;
        let url = server.url(Transport::Http).ok_or("no URL")?;
        let checked = check(&ServerParams::new("server", Target::http(url)), &CheckOptions::default()).await.checked;
        assert_eq!(checked.failures(), [""; 0]);
        Ok(())
    }

    #[tokio::test]
    async fn a_model_has_our_tool_beside_that_of_a_server() -> TestResult {
        let mock = MockServer::builder().tool(Tool::new("forecast").reply("Rain").expect(1)).start().await?;
        let target = Target::http(mock.url(Transport::Http).ok_or("no URL")?);
        let hub = Hub::new([HubServer::new(ServerParams::new("weather", target))], HubOptions::default());
        hub.discover().await?;

        let schema = json!({ "type": "object", "properties": { "fahrenheit": { "type": "number" } } });
        let celsius = NativeTool::new("celsius", "Converts a temperature.", &schema, |arguments, _cancel| {
            Box::pin(async move {
                let fahrenheit = arguments["fahrenheit"].as_f64().unwrap_or_default();
                Ok(vec![Block::text(format!("{} °C", (fahrenheit - 32.0) / 1.8))])
            })
        });
        let script = "rules: [{ turns: [
            { calls: [{ tool: forecast }, { tool: celsius, args: { fahrenheit: 50 } }] },
            '{{ results.forecast }} at {{ results.celsius }}'] }]";
        let model = Model::Scripted(ScriptedModel::parse(&Source::new("model.yaml", script))?);
        let agent = Agent::new(Arc::new(model), hub.clone(), AgentOptions::default()).with_tool(celsius);

        let label = RunLabel { agent: "assistant".into(), run_id: "1".into() };
        let prompt = vec![Block::text("How is the weather?")];
        let run = agent.run(&mut Conversation::default(), prompt, &label, &Default::default(), None).await?;
        assert_eq!(run.answer.text, "Rain at 10 °C");
        hub.close().await;
        Ok(())
    }
}
