//! Why a cell cannot be run on.

use std::io;

use rehearse_client::ConnectError;
use rehearse_document::{Diagnostics, template::RenderError};
use rehearse_mock::script::ScriptError;
use rehearse_protocol::Transport;

/// Why a server of a cell cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("the server `{server}` does not support {transport}")]
    NoTransport { server: String, transport: Transport },
    /// Its config is not there, or no port is free.
    #[error("cannot start the server `{server}`: {source}")]
    Target { server: String, source: io::Error },
    #[error("cannot start the server `{0}`: the URL has no host")]
    NoHost(String),
    #[error("cannot start the server `{server}`: {source}")]
    Command { server: String, source: rehearse_client::StartError },
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("a mock cannot listen on 127.0.0.1: {0}")]
    Listen(#[source] io::Error),
}

/// Why a step has no observation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Template(#[from] RenderError),
    /// A template gave other JSON than the step needs.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A template gave no dialog, or a model's script has changed.
    #[error(transparent)]
    File(#[from] Diagnostics),
    /// The server's command or URL cannot be used.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the scenario has no server")]
    NoServer,
    #[error("the session is not open")]
    NoSession,
    #[error("a config has no session")]
    NoSessionOfConfig,
    #[error("a session cannot do this")]
    NotOfSession,
    /// A host cannot be run, which says nothing of the server.
    #[error("{0}")]
    Host(String),
}
