//! Limits the wait for the answer to `server/discover`, and handles a late answer.
//!
//! rmcp falls back to `initialize` after a timeout, and takes the next answer for that of `initialize`. But a server
//! that starts slowly answers the probe first.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, DiscoverResult, InitializeResult, JsonRpcMessage,
        ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    transport::Transport,
};
use tokio::time::{Instant, sleep_until};

use crate::transport::probe::unanswered;

/// A little less than the timeout after which rmcp falls back by itself.
const LONGEST: Duration = Duration::from_millis(9900);

/// A process needs about this long to start.
const SHORTEST: Duration = Duration::from_millis(500);

/// How long to wait for the answer to `server/discover`, so that enough time is left for `initialize`.
pub(super) fn probe_timeout(connect: Duration) -> Duration {
    (connect / 2).clamp(SHORTEST, LONGEST)
}

/// A transport that ends the wait for the probe, and hides a late answer from rmcp.
pub(super) struct ProbeTransport<T> {
    transport: T,
    /// `None` if the HTTP client ends the wait.
    patience: Option<Duration>,
    state: State,
}

enum State {
    /// Before the probe, or after the handshake.
    Idle,
    /// The probe with this id is unanswered; the wait ends at `until`.
    Waiting { probe: RequestId, until: Option<Instant> },
    /// The wait for the probe is over, and `initialize` follows or has been sent with this id.
    FallenBack { probe: RequestId, is_open: bool, initialize: Option<RequestId>, late: Option<Box<DiscoverResult>> },
    /// A late answer to the probe is used, because the server refused `initialize`; rmcp is about to confirm a
    /// handshake that did not happen.
    Modern,
}

impl State {
    fn falling_back(probe: RequestId, initialize: Option<RequestId>) -> State {
        State::FallenBack { probe, is_open: true, initialize, late: None }
    }
}

impl<T> ProbeTransport<T> {
    pub(super) fn new(transport: T, patience: Option<Duration>) -> ProbeTransport<T> {
        ProbeTransport { transport, patience, state: State::Idle }
    }

    /// Tracks a message of rmcp; false if it must not be sent.
    fn track_sent(&mut self, item: &ClientJsonRpcMessage) -> bool {
        match item {
            JsonRpcMessage::Request(asked) => match (&asked.request, &mut self.state) {
                (ClientRequest::DiscoverRequest(_), _) => {
                    let until = self.patience.map(|patience| Instant::now() + patience);
                    self.state = State::Waiting { probe: asked.id.clone(), until };
                }
                (ClientRequest::InitializeRequest(_), State::Waiting { probe, .. }) => {
                    self.state = State::falling_back(probe.clone(), Some(asked.id.clone()));
                }
                (ClientRequest::InitializeRequest(_), State::FallenBack { initialize, .. }) => {
                    *initialize = Some(asked.id.clone());
                }
                _ => {}
            },
            JsonRpcMessage::Notification(sent)
                if matches!(sent.notification, ClientNotification::InitializedNotification(_))
                    && matches!(self.state, State::Modern) =>
            {
                self.state = State::Idle;
                return false;
            }
            _ => {}
        }
        true
    }

    /// The message that rmcp sees in place of a message of the server.
    fn filter_received(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let (id, is_error) = match &message {
            JsonRpcMessage::Response(answer) => (Some(&answer.id), false),
            JsonRpcMessage::Error(error) => (error.id.as_ref(), true),
            _ => return Some(message),
        };
        match &mut self.state {
            State::Waiting { probe, .. } if answers(id, probe) => self.state = State::Idle,
            // An error without an id answers the first request.
            State::FallenBack { probe, is_open, late, .. } if answers(id, probe) && (*is_open || id.is_some()) => {
                *is_open = false;
                if let JsonRpcMessage::Response(answer) = message
                    && let ServerResult::DiscoverResult(discovered) = answer.result
                {
                    *late = Some(Box::new(discovered));
                }
                return None;
            }
            State::FallenBack { initialize: Some(initialize), late, .. } if answers(id, initialize) => {
                let modern = late.take().filter(|_| is_error).and_then(|late| handshake_of(*late));
                if let Some(modern) = modern {
                    let answer = ServerJsonRpcMessage::response(modern, initialize.clone());
                    self.state = State::Modern;
                    return Some(answer);
                }
                // After the handshake rmcp drops unexpected answers.
                self.state = State::Idle;
            }
            _ => {}
        }
        Some(message)
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ProbeTransport<T> {
    type Error = T::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let sending = self.track_sent(&item).then(|| self.transport.send(item));
        async move {
            match sending {
                Some(sending) => sending.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match &self.state {
                State::Waiting { probe, until: Some(until) } => tokio::select! {
                    biased;
                    message = self.transport.receive() => message?,
                    () = sleep_until(*until) => {
                        let probe = probe.clone();
                        self.state = State::falling_back(probe.clone(), None);
                        return Some(unanswered(probe));
                    }
                },
                _ => self.transport.receive().await?,
            };
            if let Some(message) = self.filter_received(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.transport.close()
    }
}

/// Whether an answer with this id, or without one, answers the request; ids are compared as rmcp does.
fn answers(id: Option<&RequestId>, request: &RequestId) -> bool {
    id.is_none_or(|id| id.to_string() == request.to_string())
}

/// The handshake result that makes rmcp start a modern session, if the server supports the version.
fn handshake_of(discovered: DiscoverResult) -> Option<ServerResult> {
    let version = ProtocolVersion::V_2026_07_28;
    let is_known = discovered.supported_versions.contains(&version);
    let result = InitializeResult::new(discovered.capabilities).with_protocol_version(version);
    is_known.then_some(ServerResult::InitializeResult(result))
}
