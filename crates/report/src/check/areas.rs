//! What the areas of the checks are about.

const AREAS: [(&str, &str); 36] = [
    ("ask", "requests to the client"),
    ("auth", "authorization"),
    ("cache", "caching"),
    ("cancel", "cancellation"),
    ("comp", "completion"),
    ("discover", "discovery"),
    ("era", "both eras"),
    ("gateway", "gateway"),
    ("hdr", "HTTP headers"),
    ("http", "HTTP"),
    ("io", "process"),
    ("issuer", "authorization server"),
    ("life", "handshake"),
    ("list", "lists"),
    ("log", "logging"),
    ("lsse", "HTTP+SSE"),
    ("meta", "_meta"),
    ("modern", "2026-07-28"),
    ("mrtr", "input required"),
    ("page", "pagination"),
    ("ping", "ping"),
    ("progress", "progress"),
    ("prompts", "prompts"),
    ("res", "resources"),
    ("result", "results"),
    ("robust", "odd servers"),
    ("rpc", "JSON-RPC"),
    ("safety", "harm"),
    ("schema", "schema"),
    ("skills", "skills"),
    ("sse", "event streams"),
    ("sub", "subscriptions"),
    ("tasks", "tasks"),
    ("taskx", "tasks extension"),
    ("tools", "tools"),
    ("ws", "WebSocket"),
];

/// An area, such as `rpc`, in words.
pub(crate) fn words(area: &str) -> &str {
    let name = area.strip_prefix("client-").unwrap_or(area);
    AREAS.iter().find(|(known, _)| *known == name).map_or(name, |(_, words)| words)
}
