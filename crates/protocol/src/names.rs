//! Names that MCP gives to HTTP headers, to members of `_meta` and to extensions.

/// Names the session of a legacy HTTP request (2025-11-25, Streamable HTTP: Session Management).
pub const SESSION_HEADER: &str = "mcp-session-id";
/// Names the protocol version of an HTTP request (2025-06-18, Streamable HTTP: Protocol Version Header).
pub const VERSION_HEADER: &str = "mcp-protocol-version";
/// Repeats the method of the body (2026-07-28, Streamable HTTP: Request Metadata).
pub const METHOD_HEADER: &str = "mcp-method";
/// Repeats the name, the URI or the task in the body (2026-07-28, Streamable HTTP: Request Metadata; SEP-2663).
pub const NAME_HEADER: &str = "mcp-name";
/// How the names of headers begin that repeat a parameter of a tool (2026-07-28, Streamable HTTP: `x-mcp-header`).
pub const PARAMETER_HEADER: &str = "mcp-param-";
/// Names the last event that was seen of a stream (2025-11-25, Streamable HTTP: Resumability and Redelivery).
pub const LAST_EVENT_HEADER: &str = "last-event-id";

/// The methods by which a server asks its client: requests of its own, and in 2026-07-28 inputs that a result requires.
pub const INPUT_METHODS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

/// How the keys of `_meta` and the names of extensions begin that the protocol itself defines.
pub const PREFIX: &str = "io.modelcontextprotocol/";
/// The protocol version of a modern request (2026-07-28, Base Protocol: `_meta`).
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client of a modern request.
pub const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the client of a modern request can do.
pub const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least level of the log messages that a modern request asks for.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The server of a modern result.
pub const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The subscription that a notification belongs to.
pub const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The task that a message belongs to (2025-11-25, Tasks).
pub const META_RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Calls that run as tasks (SEP-2663).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// Skills (SEP-2640).
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";
/// Apps (SEP-1865): pages that a client shows for the results of tools.
pub const APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The MIME type of the page of an app.
pub const APP_MIME: &str = "text/html;profile=mcp-app";

/// Whether a client sets this HTTP header itself, from the message, the request or the session (2026-07-28, Streamable
/// HTTP). A value from a config would break the exchange.
pub fn is_protocol_header(name: &str) -> bool {
    const NAMES: [&str; 7] =
        ["accept", "content-type", LAST_EVENT_HEADER, METHOD_HEADER, NAME_HEADER, VERSION_HEADER, SESSION_HEADER];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&&*name) || name.starts_with(PARAMETER_HEADER)
}
