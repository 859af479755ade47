//! Tests of an MCP client against a mock, in Rust: `cargo test --example rust_test`.
//!
//! In your own crate, they need:
//!
//! ```toml
//! [dev-dependencies]
//! mcp-rehearsal = { git = "URL-OF-THIS-REPOSITORY", default-features = false } # or path = "…"; without the command line
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
    use mcp_rehearsal::{
        client::{CallOptions, Endpoint, ServerParams, Session, Target},
        mock::{HandlerCall, MockServer, MockServerBuilder, Rule, Tool, script::ItemKind},
        protocol::{Protocol, Transport},
    };
    use rmcp::ServiceExt;
    use serde_json::json;

    use super::*;

    type Outcome = Result<(), Box<dyn Error>>;

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
    async fn the_warmer_city_wins() -> Outcome {
        let server = weather().start().await?;
        let client = ().serve(server.connect()).await?;
        assert_eq!(warmer(&client, ["Oslo", "Rome"]).await?, "Rome");
        // Dropping the server verifies that it was asked once for Rome.
        Ok(())
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_once_more() -> Outcome {
        let server = weather().start().await?;
        let busy = Rule::when_args(json!({ "city": "Oslo" })).replies([json!({ "error": "busy" }), celsius(30.0)]);
        server.add_rule(ItemKind::Tool, "forecast", busy.expect(2))?;
        let client = ().serve(server.connect()).await?;
        assert_eq!(warmer(&client, ["Oslo", "Rome"]).await?, "Oslo");
        Ok(())
    }

    #[tokio::test]
    async fn a_server_that_stays_busy_is_given_up() -> Outcome {
        let server = MockServer::builder().tool(Tool::new("forecast").error("busy").expect(2)).start().await?;
        let client = ().serve(server.connect()).await?;
        assert_eq!(warmer(&client, ["Oslo", "Rome"]).await.expect_err("busy").to_string(), "the server is busy");
        let asked = server.journal().iter().filter(|entry| entry.method().as_deref() == Some("tools/call")).count();
        assert_eq!(asked, 2);
        Ok(())
    }

    /// An async function answers where a script is not enough.
    #[tokio::test]
    async fn the_longer_name_is_the_warmer_city() -> Outcome {
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

    /// A client that takes a URL is given one: here that of this crate.
    #[tokio::test]
    async fn a_client_over_the_network_meets_the_same_server() -> Outcome {
        let server = MockServer::builder().tool(Tool::new("forecast").reply(celsius(1.0)).expect(1)).start().await?;
        let url = server.url(Transport::Http).ok_or("no URL")?;
        let target = Target::Http(Endpoint { url, headers: Vec::new() });
        let client = Session::connect(&ServerParams::new("weather", target), Protocol::Auto).await?;
        let outcome = client.call_tool("forecast", None, CallOptions::default()).await?;
        assert_eq!(outcome.text(), r#"{"celsius":1.0}"#);
        client.close().await;
        server.assert_verified();
        Ok(())
    }
}
