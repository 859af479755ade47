//! How a client is started in every act.

use std::{
    any::Any, collections::BTreeMap, ffi::OsString, fmt, io, path::PathBuf, process::Command, sync::Arc, time::Duration,
};

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::Trigger;

/// How a client is started in every act.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Its command. `{url}`, `{sse_url}`, `{ws_url}`, `{command}`, `{config}` and `{token}` stand for what the environment
    /// of `rehearse mock --exec` has.
    pub command: Vec<OsString>,
    /// Makes the command for each start instead.
    pub starter: Option<ClientStarter>,
    /// Commands that make it work.
    pub triggers: Vec<Trigger>,
    /// Whether it gets a model that calls the tools of an act.
    pub has_model: bool,
    /// The seed of the mocks.
    pub seed: u64,
    /// How long an act may take.
    pub timeout: Duration,
    /// How long a client may be idle before it is stopped.
    pub idle: Duration,
    /// The program `rehearse`; with it the client can start the mock on stdio, and open pages.
    pub program: Option<PathBuf>,
    /// Whether the client may only have been slow in an earlier run of the act: it gets more time now, and is not idle while
    /// it computes.
    pub is_repeat: bool,
    /// Whether acts that do not disturb each other share a run.
    pub are_merged: bool,
    /// What receives the progress.
    pub events: Option<UnboundedSender<ClientEvent>>,
    /// Ends the run. What the client has done so far is the result.
    pub shutdown: CancellationToken,
}

/// Makes the command of a client from the variables that describe an act; with what must live as long as the client.
#[derive(Clone)]
pub struct ClientStarter(pub Arc<Starter>);

/// The variables are those of `rehearse mock --exec`, and those with the URL of the model.
pub type Starter =
    dyn Fn(&BTreeMap<&'static str, OsString>) -> io::Result<(Command, Box<dyn Any + Send>)> + Send + Sync;

impl fmt::Debug for ClientStarter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientStarter").finish_non_exhaustive()
    }
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// An act begins, or has ended, if several run at once.
    Act {
        /// Its name.
        name: String,
        /// How many acts have ended.
        ended: usize,
        /// How many there are.
        all: usize,
    },
    /// The client was ended, because an act took too long.
    TimedOut {
        /// The name of the act.
        act: String,
    },
    /// A trigger has failed.
    TriggerFailed {
        /// The name of the act.
        act: String,
        /// Its command.
        command: String,
        /// Why.
        why: String,
        /// The end of the client's standard error, with an introduction.
        said: String,
    },
}

impl ClientOptions {
    /// The usual limits for a command.
    pub fn new(command: Vec<OsString>) -> ClientOptions {
        ClientOptions {
            command,
            starter: None,
            triggers: Vec::new(),
            has_model: false,
            seed: 1,
            timeout: Duration::from_secs(30),
            idle: Duration::from_secs(5),
            program: None,
            is_repeat: false,
            are_merged: true,
            events: None,
            shutdown: CancellationToken::new(),
        }
    }

    pub(super) fn tell(&self, event: ClientEvent) {
        if let Some(events) = &self.events {
            // The receiver may be gone.
            let _ = events.send(event);
        }
    }
}
