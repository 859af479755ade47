//! A server of rmcp: `interop-rmcp stdio`, or `interop-rmcp http` on a free port of 127.0.0.1; and a client, which lists
//! what a server offers and calls every tool: `interop-rmcp client stdio COMMAND`, `interop-rmcp client http URL`.

mod client;

use rmcp::{
    ServerHandler, ServiceExt,
    handler::server::wrapper::{Json, Parameters},
    model::{ServerCapabilities, ServerConfig},
    schemars, tool, tool_handler, tool_router,
    transport::{
        stdio,
        streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager},
    },
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Numbers {
    a: i32,
    b: i32,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: i32,
}

#[derive(Clone)]
struct Calculator;

#[tool_router]
impl Calculator {
    #[tool(description = "Adds.", annotations(read_only_hint = true, open_world_hint = false))]
    fn add(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> Json<Sum> {
        Json(Sum { sum: a.wrapping_add(b) })
    }

    #[tool(description = "Always fails.", annotations(read_only_hint = true, open_world_hint = false))]
    fn refuse(&self) -> Result<String, String> {
        Err("No.".to_owned())
    }
}

#[tool_handler]
impl ServerHandler for Calculator {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let [_, mode, transport, address] = &std::env::args().collect::<Vec<_>>()[..]
        && mode == "client"
    {
        return client::work(transport, address).await;
    }
    if std::env::args().nth(1).as_deref() == Some("stdio") {
        Calculator.serve(stdio()).await?.waiting().await?;
        return Ok(());
    }
    let service = StreamableHttpService::new(|| Ok(Calculator), LocalSessionManager::default().into(), Default::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
