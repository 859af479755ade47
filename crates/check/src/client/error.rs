//! Why a client could not be checked.

use std::{io, net::SocketAddr, path::PathBuf};

use rehearse_mock::script::ScriptError;

/// Why a client could not be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No act and no file has this name.
    #[error("there is no act {name:?}, and no such file")]
    UnknownAct {
        /// The name.
        name: String,
        /// An act with a similar name.
        near: Option<&'static str>,
    },
    /// The script of an act, or that of the model for it.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// Acts that share a run want different things of the server.
    #[error("the act {act} disturbs others at {place}")]
    Merge {
        /// The act.
        act: String,
        /// The place in its script.
        place: String,
    },
    /// The mock cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A file for the client cannot be written.
    #[error("cannot create {what} {}: {source}", path.display())]
    Create {
        /// What it is.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The model cannot be served.
    #[error("cannot start: {0}")]
    Model(#[source] io::Error),
    /// A command cannot be run.
    #[error("cannot run {program}: {source}")]
    Run {
        /// Its first word.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The client ended without a message to the mock.
    #[error("{program} did not connect to the mock{said}")]
    NotConnected {
        /// The first word of its command.
        program: String,
        /// The end of its standard error, with an introduction.
        said: String,
        /// Whether its arguments have the address of the mock.
        has_address: bool,
    },
}
