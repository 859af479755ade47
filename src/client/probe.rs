//! How long a server may leave `server/discover` unanswered, and what becomes of an answer that comes after that.
//!
//! rmcp falls back to `initialize` when it has waited for long enough, and takes whatever comes then for the answer to
//! it. But a server that takes its time to start answers all that it was asked meanwhile, and the probe first.

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

use crate::transport::client::probe::unanswered;

/// A little less than the time after which rmcp falls back by itself.
const LONGEST: Duration = Duration::from_millis(9900);

/// In less than this a process has hardly begun to run.
const SHORTEST: Duration = Duration::from_millis(500);

/// How long to wait for the answer to `server/discover`, so that there is as much time for the older way if there is some.
pub(super) fn probe_timeout(connect: Duration) -> Duration {
    (connect / 2).clamp(SHORTEST, LONGEST)
}

/// A transport that ends the wait for the probe's answer, and keeps a late one from rmcp.
pub(super) struct ProbeTransport<T> {
    transport: T,
    /// `None` if somebody else ends the wait.
    patience: Option<Duration>,
    state: State,
}

enum State {
    /// Nothing is to be done, before the probe as well as after the handshake.
    Idle,
    /// The probe with this id has no answer, and the wait for it ends then.
    Waiting { probe: RequestId, until: Option<Instant> },
    /// The probe has been given up, whether or not it has been answered since, and `initialize` follows or has been sent
    /// with this id.
    FallenBack { probe: RequestId, is_open: bool, initialize: Option<RequestId>, late: Option<Box<DiscoverResult>> },
    /// The probe has been answered after all by a server that refused `initialize`, so rmcp is about to confirm a
    /// handshake that there was not.
    Modern,
}

impl State {
    fn fallen_back(probe: RequestId, initialize: Option<RequestId>) -> State {
        State::FallenBack { probe, is_open: true, initialize, late: None }
    }
}

impl<T> ProbeTransport<T> {
    pub(super) fn new(transport: T, patience: Option<Duration>) -> ProbeTransport<T> {
        ProbeTransport { transport, patience, state: State::Idle }
    }

    /// Takes note of what rmcp sends, and says whether it goes to the server.
    fn track_sent(&mut self, item: &ClientJsonRpcMessage) -> bool {
        match item {
            JsonRpcMessage::Request(asked) => match (&asked.request, &mut self.state) {
                (ClientRequest::DiscoverRequest(_), _) => {
                    let until = self.patience.map(|patience| Instant::now() + patience);
                    self.state = State::Waiting { probe: asked.id.clone(), until };
                }
                (ClientRequest::InitializeRequest(_), State::Waiting { probe, .. }) => {
                    self.state = State::fallen_back(probe.clone(), Some(asked.id.clone()));
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

    /// What rmcp is to see of a message of the server.
    fn filter_received(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let (id, is_error) = match &message {
            JsonRpcMessage::Response(answer) => (Some(&answer.id), false),
            JsonRpcMessage::Error(error) => (error.id.as_ref(), true),
            _ => return Some(message),
        };
        match &mut self.state {
            State::Waiting { probe, .. } if answers(id, probe) => self.state = State::Idle,
            // An error without an id answers what was asked first.
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
                // After the handshake rmcp drops what nobody waits for.
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
                        self.state = State::fallen_back(probe.clone(), None);
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

/// Whether an answer with this id, as rmcp compares ids, is that to the request, or without one may be.
fn answers(id: Option<&RequestId>, request: &RequestId) -> bool {
    id.is_none_or(|id| id.to_string() == request.to_string())
}

/// What rmcp takes for the beginning of a modern session, if the server knows our version.
fn handshake_of(discovered: DiscoverResult) -> Option<ServerResult> {
    let version = ProtocolVersion::V_2026_07_28;
    let is_known = discovered.supported_versions.contains(&version);
    let result = InitializeResult::new(discovered.capabilities).with_protocol_version(version);
    is_known.then_some(ServerResult::InitializeResult(result))
}
