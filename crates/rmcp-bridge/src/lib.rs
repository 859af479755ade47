//! Clients and servers that are written with rmcp, in tests: in this process, and without a socket.
//!
//! [`transport`] connects a client of rmcp with a mock server:
//!
//! ```
//! use rehearse_mock::{MockServer, Tool};
//! use rehearse_rmcp_bridge::transport;
//! use rmcp::{ServiceExt, model::CallToolRequestParams};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mock = MockServer::builder().tool(Tool::new("forecast").reply("Rain.").expect(1)).start().await?;
//! let client = ().serve(transport(&mock)).await?;
//! client.call_tool(CallToolRequestParams::new("forecast")).await?;
//! # Ok(())
//! # } // Dropping the mock verifies that it was called once.
//! ```
//!
//! [`RmcpServer`] makes a handler of rmcp the target of a session, a scenario or a check:
//!
//! ```
//! use rehearse_client::{CallOptions, ServerParams, Session};
//! use rehearse_protocol::Protocol;
//! use rehearse_rmcp_bridge::RmcpServer;
//!
//! /// Your server.
//! struct Weather;
//!
//! impl rmcp::ServerHandler for Weather {}
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = RmcpServer::start(|| Weather);
//! let session = Session::connect(&ServerParams::new("weather", server.target()), Protocol::Auto).await?;
//! assert_eq!(session.list_tools(CallOptions::default()).await?.items.len(), 0);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod server;
mod transport;

pub use server::RmcpServer;
pub use transport::transport;
