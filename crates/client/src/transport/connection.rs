//! An open connection.

use rmcp::transport::streamable_http_client::StreamableHttpClientWorker;

use super::{Child, Duplex, RawSender, http::HttpClient};

/// The connection for rmcp.
pub(crate) enum Link {
    Duplex(Box<Duplex>),
    Http(HttpLink),
}

/// Streamable HTTP for rmcp.
pub(crate) struct HttpLink {
    pub(crate) worker: StreamableHttpClientWorker<HttpClient>,
    pub(crate) client: HttpClient,
}

/// An open connection before its handshake.
pub(crate) struct OpenConnection {
    pub(crate) link: Link,
    pub(crate) raw: RawSender,
    pub(crate) child: Option<Child>,
}

impl OpenConnection {
    pub(super) fn duplex(link: Duplex, child: Option<Child>) -> OpenConnection {
        let raw = RawSender::Duplex(Box::new(link.outgoing()));
        OpenConnection { link: Link::Duplex(Box::new(link)), raw, child }
    }
}
