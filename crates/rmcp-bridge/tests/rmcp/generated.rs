//! Tools, content and errors by chance, in both directions.

use proptest::prelude::*;
use rehearse_client::{CallOptions, Failure, ServerParams, Session};
use rehearse_mock::{HandlerCall, MockServer, Tool};
use rehearse_protocol::{Protocol, RpcError, Version};
use rehearse_rmcp_bridge::RmcpServer;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceError, model::*, service::RequestContext};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    VERSIONS,
    catalog::{GeneratedTool, catalogs},
    clients::{connect_in, parse},
    has,
};

/// A tool of a mock that answers as generated.
fn mocked(tool: &GeneratedTool) -> Tool {
    let outcome = tool.outcome.clone().map_err(parse::<RpcError>);
    let answer = move |_: HandlerCall| std::future::ready(outcome.clone());
    let members = tool.definition.as_object().into_iter().flatten();
    members.fold(Tool::new(tool.name()), |tool, (key, value)| tool.set(key, value.clone())).handle(answer)
}

/// Serves generated tools with rmcp.
#[derive(Clone)]
struct Catalog(Vec<GeneratedTool>);

impl ServerHandler for Catalog {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools: Vec<_> = self.0.iter().map(|tool| tool.definition.clone()).collect();
        Ok(parse(json!({ "tools": tools })))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.0.iter().find(|tool| tool.name() == request.name).expect("a tool that is listed");
        let result: CallToolResult = parse(tool.outcome.clone().map_err(parse::<ErrorData>)?);
        Ok(result.into())
    }
}

/// What a call brought, in the form of a generated outcome.
type Called = Result<Value, Value>;

fn same(version: Version, tool: &GeneratedTool, called: &Called) -> Result<(), TestCaseError> {
    match (called, &tool.outcome) {
        (Ok(found), Ok(expected)) | (Err(found), Err(expected)) => {
            prop_assert!(has(found, expected), "{version}: {found} is not {expected}");
        }
        _ => prop_assert!(false, "{version}: {called:?} is not {:?}", tool.outcome),
    }
    Ok(())
}

async fn rmcp_meets_a_mock(tools: Vec<GeneratedTool>) -> Result<(), TestCaseError> {
    let mock = tools.iter().map(mocked).fold(MockServer::builder(), |mock, tool| mock.tool(tool));
    let mock = mock.start().await.expect("a mock");
    for version in VERSIONS {
        let client = connect_in(&mock, version).await;
        let listed = serde_json::to_value(client.list_all_tools().await.expect("tools")).expect("JSON");
        let expected: Vec<_> = tools.iter().map(|tool| tool.definition.clone()).collect();
        prop_assert!(has(&listed, &expected.into()), "{version}: {listed}");
        for tool in &tools {
            let called = match client.call_tool(CallToolRequestParams::new(tool.name().to_owned())).await {
                Ok(result) => Ok(serde_json::to_value(result).expect("JSON")),
                Err(ServiceError::McpError(error)) => Err(serde_json::to_value(error).expect("JSON")),
                Err(error) => panic!("{error}"),
            };
            same(version, tool, &called)?;
        }
    }
    Ok(())
}

async fn a_session_meets_rmcp(tools: Vec<GeneratedTool>) -> Result<(), TestCaseError> {
    let catalog = Catalog(tools.clone());
    let server = RmcpServer::start(move || catalog.clone());
    for version in VERSIONS {
        let params = ServerParams::new("rmcp", server.target());
        let session = Session::connect(&params, Protocol::Exact(version)).await.expect("a session");
        let listing = session.list_tools(CallOptions::default()).await.expect("tools");
        let listed: Vec<Value> = listing.valid().map(|tool| serde_json::from_str(tool.get()).expect("JSON")).collect();
        let expected: Vec<_> = tools.iter().map(|tool| tool.definition.clone()).collect();
        prop_assert!(has(&listed.clone().into(), &expected.into()), "{version}: {listed:?}");
        for tool in &tools {
            let called = match session.call_tool(tool.name(), None, CallOptions::default()).await {
                Ok(outcome) => Ok(serde_json::from_str(outcome.raw.get()).expect("JSON")),
                Err(Failure::Rpc(error)) => Err(json!(error)),
                Err(failure) => panic!("{failure}"),
            };
            same(version, tool, &called)?;
        }
        session.close().await;
    }
    server.stop().await;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rmcp_reads_what_a_mock_sends(tools in catalogs()) {
        Runtime::new().expect("a runtime").block_on(rmcp_meets_a_mock(tools))?;
    }

    #[test]
    fn a_session_reads_what_rmcp_sends(tools in catalogs()) {
        Runtime::new().expect("a runtime").block_on(a_session_meets_rmcp(tools))?;
    }
}
