//! Sessions with small scripted servers, over every transport.

mod answers;
mod cancel;
mod connect;
mod era;
mod http;
mod memory;
pub(crate) mod peer;
mod resume;
mod sse;
// With a shell.
#[cfg(unix)]
mod stdio;
mod subscription;
mod task;
mod ws;

use serde_json::{Map, Value, json};

use super::{CallOptions, Failure, ServerParams, Session, Target, ToolOutcome};
use rehearse_protocol::Protocol;
use rehearse_protocol::{Direction, Version};

const LEGACY: Protocol = Protocol::Exact(Version::V2025_11_25);
const MODERN: Protocol = Protocol::Exact(Version::V2026_07_28);

fn target(server: &rehearse_testing::Server) -> Target {
    Target::Memory(server.address.clone())
}

async fn connect(target: &Target, protocol: Protocol) -> Session {
    Session::connect(&ServerParams::new("scripted", target.clone()), protocol).await.expect("a session")
}

async fn call(session: &Session, tool: &str, options: CallOptions) -> Result<ToolOutcome, Failure> {
    session.call_tool(tool, Some(arguments()), options).await
}

fn arguments() -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), json!("hello"))])
}

/// The methods of what the client sent, in order.
fn sent_methods(session: &Session) -> Vec<String> {
    let frames = session.recorder().since(0).into_iter().filter(|frame| frame.direction == Direction::ClientToServer);
    frames.filter_map(|frame| frame.message().ok()?.method().map(str::to_owned)).collect()
}
