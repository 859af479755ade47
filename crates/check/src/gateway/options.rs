//! What is checked, and why it cannot be.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use rehearse_client::StartError;
use rehearse_protocol::{Transport, Version};
use tokio_util::sync::CancellationToken;

use crate::client::ClientError;

/// A gateway, and how it is checked.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The command that starts it, with placeholders; empty if it runs already.
    pub command: Vec<String>,
    /// The URL of its clients, in which `{port}` stands for the port; over stdio if there is none.
    pub at: Option<String>,
    /// How clients reach the URL.
    pub over: Transport,
    /// The address of the upstream.
    pub upstream: SocketAddr,
    /// The bearer token of the clients; one of our own if there is none.
    pub token: Option<String>,
    /// The versions that its clients use; the newest of each era if empty.
    pub versions: Vec<Version>,
    /// How long the gateway may take to start.
    pub start_timeout: Duration,
    /// How long one request may take.
    pub timeout: Duration,
    /// How long what is sent on may take.
    pub grace: Duration,
    /// The program `rehearse`, which serves the upstream on stdio.
    pub program: Option<PathBuf>,
    /// The seed of the mock.
    pub seed: u64,
    /// The checks that are judged, as [`selects`](crate::selects) takes them; all if empty.
    pub checks: Vec<String>,
    /// Whether violations that come from an SDK count.
    pub counts_sdk: bool,
    /// Ends the run.
    pub shutdown: CancellationToken,
}

/// Why a gateway could not be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The upstream cannot be served.
    #[error(transparent)]
    Upstream(#[from] ClientError),
    /// It does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No port is free for it.
    #[error("no port is free: {0}")]
    Port(#[from] std::io::Error),
    /// Its command has a placeholder that stands for nothing.
    #[error(
        "{0:?} has a placeholder that is unknown or not a word of its own; there are {{upstream_url}}, \
         {{upstream_sse_url}}, {{upstream_config}}, {{upstream_line}}, {{upstream_command}}, {{port}} and {{url}}"
    )]
    Placeholder(String),
    /// The address of its clients cannot be used.
    #[error("{0:?} is not a URL with a host")]
    Url(String),
}

impl Default for GatewayOptions {
    fn default() -> Self {
        GatewayOptions {
            command: Vec::new(),
            at: None,
            over: Transport::Http,
            upstream: ([127, 0, 0, 1], 0).into(),
            token: None,
            versions: Vec::new(),
            start_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(10),
            grace: Duration::from_secs(1),
            program: None,
            seed: 1,
            checks: Vec::new(),
            counts_sdk: false,
            shutdown: CancellationToken::new(),
        }
    }
}

impl GatewayOptions {
    /// How its clients reach it.
    pub fn transport(&self) -> Transport {
        if self.at.is_some() { self.over } else { Transport::Stdio }
    }

    /// The command or URL, as reports show it.
    pub fn target(&self) -> String {
        match &self.at {
            Some(url) if self.command.is_empty() => url.clone(),
            _ => self.command.join(" "),
        }
    }
}
