//! Answers the requests of a server.

use std::{
    collections::HashMap,
    pin::{Pin, pin},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures_util::poll;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::sender::MessageSender;
use crate::{
    exchange::{Answer, Answers, Exchange},
    recorder::ClientRecorder,
};
use rehearse_protocol::{Frame, Id, Message, Notification, ParseError, Request, message::result};

/// How many requests of a server may be open. The answers to a server that makes requests and does not read would fill
/// the memory, so nothing is read from it while there are more.
const MOST: usize = 256;
/// How long the end of a session waits for the answers that are due.
const FINISH: Duration = Duration::from_secs(2);

/// Answers the requests of one server: each starts after the one before, and is sent as soon as it is there.
pub(crate) struct Responder {
    answers: Answers,
    recorder: ClientRecorder,
    sender: OnceLock<MessageSender>,
    /// Which requests are answered.
    stage: AtomicU8,
    open: Arc<Semaphore>,
    /// The requests that the server may cancel.
    running: Mutex<HashMap<Id, CancellationToken>>,
    /// The requests of the client during which a server may make requests of its own: one token each, cancelled at its
    /// end.
    causes: Mutex<Vec<CancellationToken>>,
}

/// Which requests of a server are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// None: without a handshake, servers send no requests and clients no responses (2026-07-28, Transports: Messages).
    Stateless,
    /// `ping` (2025-11-25, Lifecycle: Initialization).
    Initializing,
    /// All.
    Open,
}

impl Responder {
    /// `recorder` is that of the connection.
    pub(crate) fn new(answers: Answers, recorder: ClientRecorder) -> Responder {
        Responder {
            answers,
            recorder,
            sender: OnceLock::new(),
            stage: AtomicU8::new(Stage::Stateless as u8),
            open: Arc::new(Semaphore::new(MOST)),
            running: Mutex::default(),
            causes: Mutex::default(),
        }
    }

    /// Sets where answers go; once.
    pub(crate) fn send_over(&self, sender: MessageSender) {
        let _ = self.sender.set(sender);
    }

    /// From now on the requests of this stage are answered.
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    fn answers_now(&self, method: &str) -> bool {
        let stage = self.stage.load(Ordering::Relaxed);
        stage == Stage::Open as u8 || (stage == Stage::Initializing as u8 && method == "ping")
    }

    /// Registers a request of the client until the result is dropped. A legacy server does not say which of them caused its
    /// own; once all that may have caused it have ended, its answer is no longer needed.
    pub(crate) fn start_cause(&self, method: &str) -> Option<DropGuard> {
        if !matches!(method, "tools/call" | "prompts/get" | "resources/read") {
            return None;
        }
        let token = CancellationToken::new();
        let mut causes = self.causes.lock();
        causes.retain(|cause| !cause.is_cancelled());
        causes.push(token.clone());
        Some(token.drop_guard())
    }

    /// Takes a frame of the server. Ends when the next one may be read.
    pub(crate) async fn receive(self: &Arc<Self>, frame: &Frame) {
        match frame.message() {
            Ok(message) => self.receive_message(message).await,
            Err(ParseError::Batch) => {
                for part in frame.parts().unwrap_or_default() {
                    if let Ok(message) = part.message() {
                        self.receive_message(message).await;
                    }
                }
            }
            Err(_) => {}
        }
    }

    async fn receive_message(self: &Arc<Self>, message: Message<'_>) {
        match message {
            Message::Request(request) if self.answers_now(&request.method) => self.start(request).await,
            Message::Notification(notification) if notification.method == "notifications/cancelled" => {
                if let Some(request) = cancelled_request(&notification).and_then(|id| self.running.lock().remove(&id)) {
                    request.cancel();
                }
            }
            _ => {}
        }
    }

    /// Starts the answer to a request. Its first poll decides the order of whatever it queues for.
    async fn start(self: &Arc<Self>, request: Request<'_>) {
        let Ok(place) = self.open.clone().acquire_owned().await else { return };
        if request.method == "ping" {
            return self.send(result(&request.id, "{}"), place).await;
        }
        let cancelled = CancellationToken::new();
        self.running.lock().insert(request.id.clone(), cancelled.clone());
        let params = request.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let answering = Arc::clone(self).answer(request.id, request.method.into_owned(), params, self.withdrawn());
        let mut answering: Pin<Box<dyn Future<Output = Bytes> + Send>> = Box::pin(answering);
        if let Poll::Ready(answer) = poll!(&mut answering) {
            return self.send(answer, place).await;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                biased;
                // The server no longer waits for it (2025-11-25, Cancellation).
                () = cancelled.cancelled() => {}
                answer = answering => this.send(answer, place).await,
            }
        });
    }

    /// The response to a request, after its answer, or when that is no longer needed.
    async fn answer(
        self: Arc<Self>,
        id: Id,
        method: String,
        params: Value,
        withdrawn: impl Future<Output = ()>,
    ) -> Bytes {
        let answer = tokio::select! {
            biased;
            answer = self.answers.answer(&method, params) => answer,
            () = withdrawn => self.answers.declares(&method).then(|| Answer::for_withdrawn(&method)),
        };
        self.running.lock().remove(&id);
        answer.map_or_else(|| Exchange::unknown_method(&id, &method), |answer| Exchange::response(&id, &answer))
    }

    /// Waits until the answer to a request that arrives now is no longer needed: its cause has ended, or the connection
    /// has.
    fn withdrawn(&self) -> impl Future<Output = ()> + Send + use<> {
        let causes: Vec<_> = self.causes.lock().iter().filter(|cause| !cause.is_cancelled()).cloned().collect();
        let (recorder, end) = (self.recorder.clone(), self.recorder.end());
        async move {
            let all_ended = async {
                for cause in &causes {
                    cause.cancelled().await;
                }
            };
            tokio::select! {
                () = all_ended, if !causes.is_empty() => {}
                _ = recorder.wait_for(end, |_| false) => {}
            }
        }
    }

    /// Sends an answer after those before it, which does not wait for the server. `_place` is kept until it is sent.
    async fn send(&self, answer: Bytes, place: OwnedSemaphorePermit) {
        let Some(sender) = self.sender.get() else { return };
        let mut sending = sender.send(None, answer).sent;
        if poll!(&mut sending).is_pending() {
            tokio::spawn(async move {
                let _place = place;
                // A server that is gone needs no answer.
                let _ = sending.await;
            });
        }
    }

    /// Gives up what still waits for an answer, and waits for the answers that are being sent, for a short time.
    pub(crate) async fn finish(&self) {
        self.running.lock().drain().for_each(|(_, request)| request.cancel());
        let all = u32::try_from(MOST).unwrap_or(u32::MAX);
        let _ = timeout(FINISH, pin!(self.open.acquire_many(all))).await;
    }
}

/// The request that a notification cancels.
fn cancelled_request(notification: &Notification<'_>) -> Option<Id> {
    let params: HashMap<&str, &serde_json::value::RawValue> = serde_json::from_str(notification.params?.get()).ok()?;
    Id::parse(params.get("requestId")?)
}
