//! Test clients and servers of the Model Context Protocol (MCP): mock servers, scenarios, a client, a config linter.
//!
//! This library is a facade over the crates of the project; depend on one of them alone to compile less.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`mock`] | scriptable mock servers; tests start with [`mock::MockServer::builder`] |
//! | [`client`] | a session with one server |
//! | [`hub`] | all servers of a config as one set of tools |
//! | [`agent`] | a model with the tools of a hub, and tools that your program has |
//! | [`client_configs`] | config files of MCP clients: reading, linting, conversion |
//! | [`release`] | files with which a server is released, checked and compared with it |
//! | [`scenario`] | scenario files, their cells, expectations, snapshots |
//! | [`report`] | the results of runs, and their renderers |
//! | [`llm`] | tools for language models, and the final answer of a subagent |
//! | [`document`] | files with a position for every value, JSON Schema, matchers, templates |
//! | [`protocol`] | frames, JSON-RPC messages, versions, transports, traces |
//! | [`check`] | the checks of the specification, for servers and clients (feature `check`) |
//! | `rmcp_bridge` | clients and servers that are written with rmcp (feature `rmcp`, off by default) |
//! | [`relay`] | stands between a client and a server, and sees what passes |
//! | [`builtin_scripts`] | the mock scripts that `rehearse` serves by name |
//!
//! # A client step by step
//!
//! Connect to two servers, discover their tools, filter, rename and register them, call one, disconnect:
//!
//! ```
//! use std::sync::Arc;
//!
//! use mcp_rehearsal::{
//!     client::{CallOptions, Endpoint, ServerParams, Session, Target},
//!     client_configs::{
//!         policy::{Duplicates, Naming, Policy},
//!         server::{At, ToolFilter},
//!     },
//!     document::Span,
//!     hub::{Registry, registry::{AllowedCalls, ServerTools}},
//!     mock::{MockServer, Tool},
//!     protocol::{Protocol, Transport},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let postgres = MockServer::builder().tool(Tool::new("query").reply("3 rows")).tool(Tool::new("drop_table"));
//! let weather = MockServer::builder().tool(Tool::new("query").reply("Rain."));
//! let mocks = [("postgres", postgres.start().await?), ("weather", weather.start().await?)];
//!
//! // Connect.
//! let mut sessions = Vec::new();
//! for (name, mock) in &mocks {
//!     let url = mock.url(Transport::Http).ok_or("it listens")?;
//!     let target = Target::Http(Endpoint { url, headers: Vec::new() });
//!     sessions.push(Session::connect(&ServerParams::new(*name, target), Protocol::Auto).await?);
//! }
//!
//! // Discover.
//! let mut discovered = Vec::new();
//! for session in &sessions {
//!     let listing = session.list_tools(CallOptions::default()).await?;
//!     discovered.push((Arc::from(session.name()), listing.items));
//! }
//!
//! // Filter, rename and register.
//! let at = |name: &str| At { value: name.to_owned(), span: Span::default() };
//! let exclude = At { value: vec![at("drop_table")], span: Span::default() };
//! let filter = ToolFilter { exclude: Some(exclude), include: None };
//! let listed = discovered.iter().map(|(server, tools)| ServerTools {
//!     server,
//!     filter: &filter,
//!     policy: &Policy::USUAL,
//!     tools,
//!     always_allow: AllowedCalls::Of(&[]),
//!     mirrors: false,
//! });
//! let registry = Registry::build(listed, Naming::Literal("{server}.{tool}"), Duplicates::Rejected)?;
//! let names: Vec<_> = registry.tools().iter().map(|tool| &*tool.name).collect();
//! assert_eq!(names, ["postgres.query", "weather.query"]);
//!
//! // Call the tool by its original name.
//! let tool = registry.get("weather.query").ok_or("there is no such tool")?;
//! let session = sessions.iter().find(|session| *session.name() == *tool.server).ok_or("there is no such server")?;
//! let outcome = session.call_tool(&tool.original, None, CallOptions::default()).await?;
//! assert_eq!(outcome.text(), "Rain.");
//!
//! // Disconnect all.
//! for session in sessions {
//!     session.close().await;
//! }
//! # Ok(())
//! # }
//! ```

pub mod builtin_scripts;

pub use rehearse_agent as agent;
#[cfg(feature = "check")]
pub use rehearse_check as check;
pub use rehearse_client as client;
pub use rehearse_client_configs as client_configs;
pub use rehearse_diff as diff;
pub use rehearse_document as document;
pub use rehearse_fuzz as fuzz;
pub use rehearse_hub as hub;
pub use rehearse_llm as llm;
pub use rehearse_mock as mock;
pub use rehearse_profile as profile;
pub use rehearse_protocol as protocol;
pub use rehearse_relay as relay;
pub use rehearse_release as release;
pub use rehearse_report as report;
#[cfg(feature = "rmcp")]
pub use rehearse_rmcp_bridge as rmcp_bridge;
pub use rehearse_scenario as scenario;
