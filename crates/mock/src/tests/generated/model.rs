//! One engine and its clients. Every frame in both directions passes through here and is recorded.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::engine::Engine;
use crate::internals::Decision;
use crate::internals::Event;
use crate::internals::Exchange;
use crate::internals::Incoming;
use crate::internals::ResponseFrame;
use crate::journal::Journal;
use crate::script::Script;
use bytes::Bytes;
use http::HeaderMap;
use rehearse_document::Source;
use rehearse_protocol::Era;
use rehearse_protocol::Message;
use rehearse_protocol::Transport;
use serde_json::{Value as Json, json, value::RawValue};

use super::{
    client::{Client, ClientSubscription, Question, Recorder, Round},
    request::ClientRequest,
    script::{META, Names, ScriptPlan},
    traffic::{Channel, Traffic},
};

/// What only results of 2026-07-28 have.
const MODERN_MEMBERS: [&str; 7] =
    ["resultType", "ttlMs", "cacheScope", "inputRequests", "requestState", "supportedVersions", "taskId"];

/// An error with the broken invariant.
pub(crate) type Invariant = Result<(), String>;

macro_rules! ensure {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}
pub(super) use ensure;

/// The immediate outcome of a frame.
#[derive(Debug)]
pub(crate) enum Reaction {
    Nothing,
    /// The whole response.
    Answered(Json),
    /// An answer that takes steps, or a subscription.
    Started,
}

/// An answer in progress.
#[derive(Debug)]
pub(crate) struct Running {
    pub request: ClientRequest,
    channel: Channel,
    exchange: Box<Exchange>,
    /// The ids of the questions that were asked.
    questions: Vec<Json>,
    waiting: bool,
    detached: bool,
}

#[derive(Debug)]
pub(crate) struct Model {
    plan: ScriptPlan,
    pub names: Names,
    /// Whether some step puts another stub in place of one.
    pub replaces: bool,
    pub engine: Arc<Engine>,
    pub clients: Vec<Client>,
    pub running: Vec<Running>,
    pub at: Duration,
    /// The number of resets of the server.
    pub generation: usize,
    received: u64,
    traffic: Vec<Traffic>,
}

impl Model {
    /// # Panics
    /// The script is not valid, which generated ones always are.
    pub(crate) fn new(plan: &ScriptPlan, clients: Vec<Client>) -> Model {
        Model {
            names: plan.names(),
            traffic: clients.iter().map(|_| Traffic::default()).collect(),
            replaces: plan.to_json().to_string().contains("\"replace\":"),
            engine: Engine::new(script(plan), 7, Journal::default()),
            plan: plan.clone(),
            clients,
            running: Vec::new(),
            at: Duration::ZERO,
            generation: 0,
            received: 0,
        }
    }

    /// Resets the server, with or without a reload of the script.
    pub(crate) fn begin_anew(&mut self, reload: bool) {
        match reload {
            true => self.engine.load(script(&self.plan), self.at),
            false => self.engine.reset(self.at),
        }
        self.generation += 1;
        self.received = self.engine.journal().len();
        self.record_unasked();
    }

    /// A client sends a frame.
    pub(crate) fn send(&mut self, who: usize, frame: (Bytes, Option<HeaderMap>)) -> Result<Reaction, String> {
        let (bytes, headers) = frame;
        let transport = if headers.is_some() { Transport::Http } else { Transport::Memory };
        let incoming = Incoming {
            bytes: &bytes,
            transport,
            at: self.at,
            token: None,
            session: None,
            headers: headers.as_ref(),
            faults: &[],
        };
        let decision = self.engine.receive(&self.clients[who].peer, incoming);
        let shown = || String::from_utf8_lossy(&bytes).into_owned();
        let outcome = match decision {
            Decision::Batch(parts) => {
                let version = self.clients[who].version.as_deref();
                ensure!(version == Some("2025-03-26"), "a batch in {version:?}");
                let items: Vec<&RawValue> = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
                ensure!(items.len() == parts.len(), "{} answers to {} parts", parts.len(), items.len());
                self.received += parts.len() as u64;
                for (item, part) in items.iter().zip(parts) {
                    self.take(who, item.get().as_bytes(), None, part).map_err(|why| format!("{why}\n  to {item}"))?;
                }
                Ok(Reaction::Nothing)
            }
            decision => {
                self.received += 1;
                self.take(who, &bytes, headers.as_ref(), decision)
            }
        };
        let outcome = outcome.map_err(|why| format!("{why}\n  to {}", shown()))?;
        self.record_unasked();
        Ok(outcome)
    }

    fn take(
        &mut self,
        who: usize,
        bytes: &[u8],
        headers: Option<&HeaderMap>,
        decision: Decision,
    ) -> Result<Reaction, String> {
        let message = match Message::parse(bytes) {
            Ok(message) => message,
            Err(error) => {
                let Decision::Respond(answer) = decision else { return Err(format!("no error but {decision:?}")) };
                let response = parsed(&answer.frame)?;
                ensure!(answer.status == 400, "status {} for what is not a message", answer.status);
                let code = response["error"]["code"].as_i64();
                ensure!(matches!(code, Some(-32_700 | -32_600)), "the code {code:?} for what is not a message");
                let id = error.request_id().map(|id| id.to_json());
                ensure!(response.get("id").map(Json::to_string) == id, "another id than {id:?}: {response}");
                return Ok(Reaction::Nothing);
            }
        };
        let era = self.engine.era_of(&message, headers);
        match (message, decision) {
            (Message::Request(request), decision) => {
                let request = ClientRequest::new(&request, who, era);
                let is_readable = serde_json::from_slice::<Json>(bytes).is_ok();
                let frame = if is_readable { Bytes::copy_from_slice(bytes) } else { request.frame() };
                let channel = self.traffic[who].send(self.at, frame, era, headers);
                self.begin(request, decision, channel)
            }
            (Message::Notification(_) | Message::Response(_), Decision::Ignore) => {
                let era = self.clients[who].era();
                self.traffic[who].send(self.at, Bytes::copy_from_slice(bytes), era, headers);
                Ok(Reaction::Nothing)
            }
            (Message::Notification(notification), Decision::Cancel(id)) => {
                let era = self.clients[who].era();
                self.traffic[who].send(self.at, Bytes::copy_from_slice(bytes), era, headers);
                ensure!(notification.method == "notifications/cancelled", "{} cancels", notification.method);
                self.running.retain(|it| it.request.client != who || it.request.id != id || it.detached);
                self.clients[who].subscriptions.retain(|it| it.id != json!(id));
                Ok(Reaction::Nothing)
            }
            (Message::Response(_), Decision::Respond(answer)) if era == Era::Modern && headers.is_some() => {
                ensure!(answer.status == 400, "status {} for a response", answer.status);
                Ok(Reaction::Nothing)
            }
            (message, decision) => Err(format!("{decision:?} in answer to {message:?}")),
        }
    }

    fn begin(&mut self, request: ClientRequest, decision: Decision, channel: Channel) -> Result<Reaction, String> {
        let is_open = request.era == Era::Modern || self.clients[request.client].version.is_some();
        let may_begin = is_open || ["initialize", "ping"].contains(&&*request.method);
        match decision {
            Decision::Respond(answer) => {
                let response = self.conclude(&request, channel, &answer)?;
                ensure!(may_begin || response.get("error").is_some(), "an answer before the handshake: {response}");
                Ok(Reaction::Answered(response))
            }
            Decision::Exchange(exchange) => {
                ensure!(may_begin, "an answer before the handshake");
                let (questions, waiting, detached) = (Vec::new(), false, false);
                self.running.push(Running { request, channel, exchange, questions, waiting, detached });
                Ok(Reaction::Started)
            }
            Decision::Subscribe(pending) => {
                let (recorder, id) = (Recorder::default(), json!(request.id));
                let subscription = pending.open(Box::new(recorder.clone()));
                let subscription = ClientSubscription { id, channel, recorder, subscription };
                self.clients[request.client].subscriptions.push(subscription);
                Ok(Reaction::Started)
            }
            decision => Err(format!("a request is answered by {decision:?}")),
        }
    }

    /// Ends a subscription from the server's side.
    pub(crate) fn close(&mut self, who: usize, which: usize) {
        let ClientSubscription { channel, subscription, .. } = self.clients[who].subscriptions.remove(which);
        self.traffic[who].receive(self.at, channel, subscription.closing(), Some(200));
    }

    /// An answer goes on by so many events, or to its end. With `time_out` it waits for no client.
    pub(crate) fn advance(&mut self, index: usize, events: usize, mut time_out: bool) -> Result<bool, String> {
        for _ in 0..events {
            let running = &mut self.running[index];
            if running.waiting {
                let ready = running.exchange.poll_answers(&mut Context::from_waker(Waker::noop()));
                if ready == Poll::Pending && !time_out {
                    return Ok(false);
                }
                running.waiting = false;
                time_out = false;
            }
            let event = running.exchange.next_event(self.at);
            match event {
                Event::Wait(time) => self.at += time,
                Event::Await(_) => running.waiting = true,
                Event::Disconnect(_) => {}
                Event::Send(frame) => {
                    ensure!(!running.detached, "a task sends a message: {frame:?}");
                    let message = parsed(&frame)?;
                    let who = running.request.client;
                    if message["method"] != "notifications/odd/own" {
                        self.traffic[who].receive(self.at, running.channel, frame, None);
                    }
                    if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
                        running.questions.push(id.clone());
                        self.clients[who].questions.push(Question { id: id.clone(), method: method.to_owned() });
                    }
                }
                Event::Detach(answer) => {
                    ensure!(!std::mem::replace(&mut running.detached, true), "a task in a task");
                    let (request, channel) = (running.request.clone(), running.channel);
                    self.conclude(&request, channel, &answer)?;
                }
                Event::Finish(answer) => {
                    let Running { request, channel, detached, questions, .. } = self.running.remove(index);
                    self.clients[request.client].questions.retain(|question| !questions.contains(&question.id));
                    match detached {
                        true => ensure!(answer.frame.is_empty(), "a task is answered: {answer:?}"),
                        false => drop(self.conclude(&request, channel, &answer)?),
                    }
                    self.record_unasked();
                    return Ok(true);
                }
                Event::Exit(_) => {
                    self.running.remove(index);
                    return Ok(true);
                }
            }
            self.record_unasked();
        }
        Ok(false)
    }

    /// A response: it is recorded, and the client learns from it.
    fn conclude(&mut self, request: &ClientRequest, channel: Channel, answer: &ResponseFrame) -> Result<Json, String> {
        if request.is_odd() {
            return Ok(serde_json::from_slice(&answer.frame).unwrap_or_default());
        }
        let who = request.client;
        self.traffic[who].receive(self.at, channel, answer.frame.clone(), Some(answer.status));
        let response = parsed(&answer.frame)?;
        let statuses = statuses(request.era, response["error"]["code"].as_i64());
        ensure!(statuses.contains(&answer.status), "status {} for {response}", answer.status);
        let Some(result) = response.get("result") else { return Ok(response) };
        if request.era == Era::Legacy {
            let keys = result["_meta"].as_object().into_iter().flatten().map(|(key, _)| key);
            let mut members = result.as_object().into_iter().flatten().map(|(name, _)| name).chain(keys);
            let modern = members.find(|it| MODERN_MEMBERS.contains(&&***it) || it.starts_with(META));
            ensure!(modern.is_none(), "{modern:?} for a legacy client: {result}");
        }
        let client = &mut self.clients[who];
        match &*request.method {
            "initialize" if request.era == Era::Legacy => {
                let version = result["protocolVersion"].as_str().unwrap_or_default().to_owned();
                ensure!(self.plan.offered.versions().contains(&&*version), "{version} is not offered");
                client.version = Some(version);
            }
            "tasks/get" => ensure!(result["taskId"] == *request.target, "another task: {result}"),
            method if method.ends_with("/list") => {
                client.cursors.insert(method.to_owned(), result["nextCursor"].clone());
            }
            _ => {}
        }
        match result["resultType"].as_str() {
            Some("input_required") => {
                let mut params = request.params.clone();
                params.as_object_mut().map(|params| params.remove("_meta"));
                let (method, result) = (request.method.clone(), result.clone());
                client.rounds.push(Round { method, params, result, at: self.at, generation: self.generation });
            }
            Some("task") => {
                let id = result["taskId"].as_str().unwrap_or_default().to_owned();
                ensure!(!client.tasks.contains(&id), "a task's id twice");
                client.tasks.push(id);
            }
            _ => {}
        }
        Ok(response)
    }

    /// Records what belongs to no request.
    fn record_unasked(&mut self) {
        for (client, traffic) in self.clients.iter_mut().zip(&mut self.traffic) {
            let unasked = client.unasked.take().into_iter().map(|frame| (Channel::Stdio(Era::Legacy), frame));
            let subscribed = client
                .subscriptions
                .iter()
                .flat_map(|it| it.recorder.take().into_iter().map(|frame| (it.channel, frame)));
            for (channel, frame) in unasked.chain(subscribed) {
                traffic.receive(self.at, channel, frame, None);
            }
        }
    }

    /// Ends everything in progress, and checks that nothing is left.
    pub(crate) fn end(mut self) -> Result<Vec<Traffic>, String> {
        while let Some(last) = self.running.len().checked_sub(1) {
            let mut ended = false;
            for _ in 0..50 {
                ended = ended || self.advance(last, 4, true)?;
            }
            ensure!(ended, "an answer without an end: {:?}", self.running[last].request);
        }
        for who in 0..self.clients.len() {
            while !self.clients[who].subscriptions.is_empty() {
                self.close(who, 0);
            }
        }
        ensure!(self.engine.in_flight() == 0, "{} answers are left", self.engine.in_flight());
        let journalled = self.engine.journal().len();
        ensure!(journalled == self.received, "{journalled} of {} messages are in the journal", self.received);
        Ok(self.traffic)
    }
}

fn script(plan: &ScriptPlan) -> Script {
    let text = plan.to_json().to_string();
    Script::parse(&Source::new("generated", text.clone())).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The HTTP statuses of a response with this error code, if it is an error (2026-07-28, Streamable HTTP: Sending Messages
/// to the Server; Versioning).
fn statuses(era: Era, code: Option<i64>) -> &'static [u16] {
    match (era, code) {
        (Era::Modern, Some(-32_022..=-32_020)) => &[400],
        (Era::Modern, Some(-32_601)) => &[404],
        (Era::Modern, Some(-32_602 | -32_600)) => &[200, 400],
        _ => &[200],
    }
}

fn parsed(frame: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(frame).map_err(|error| format!("{error}: {}", String::from_utf8_lossy(frame)))
}
