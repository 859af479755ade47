//! Where a server over HTTP is.

/// A URL, and headers for every HTTP request to it. Headers that the protocol sets itself
/// ([`is_protocol_header`](rehearse_protocol::is_protocol_header)) are not sent.
#[derive(Clone, Debug, Default)]
pub struct Endpoint {
    /// The URL of the MCP endpoint.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}
