//! One engine and its clients. Every frame in both directions passes through here and is checked against the laws.

use std::{
    collections::HashMap,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::engine::Engine;
use crate::internals::Decision;
use crate::internals::Event;
use crate::internals::Exchange;
use crate::internals::Incoming;
use crate::internals::PendingSubscription;
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
    client::{Client, Listening, Question, Recorder, Round},
    law::{self, Asked, Judge, Law, META, Said, Way, What, hold},
    script::{Names, ScriptPlan, is_odd},
};

/// The immediate outcome of a frame.
#[derive(Debug)]
pub(crate) enum Outcome {
    Nothing,
    /// The whole response.
    Answered(Json),
    /// An answer that takes steps, or a subscription.
    Started,
}

/// An answer in progress.
#[derive(Debug)]
pub(crate) struct Running {
    pub asked: Asked,
    exchange: Box<Exchange>,
    way: Way,
    waiting: bool,
    detached: bool,
}

#[derive(Debug)]
pub(crate) struct World {
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
    /// The last that was seen of each task.
    tasks: HashMap<String, Json>,
    judge: Judge,
}

impl World {
    /// # Panics
    /// The script is not valid, which generated ones always are.
    pub(crate) fn new(plan: &ScriptPlan, clients: Vec<Client>, judge: Judge) -> World {
        World {
            names: plan.names(),
            replaces: plan.to_json().to_string().contains("\"replace\":"),
            engine: Engine::new(parsed(plan), 7, Journal::default()),
            plan: plan.clone(),
            clients,
            running: Vec::new(),
            at: Duration::ZERO,
            generation: 0,
            received: 0,
            tasks: HashMap::new(),
            judge,
        }
    }

    /// Resets the server, with or without a reload of the script.
    pub(crate) fn begin_anew(&mut self, reload: bool) -> Law {
        match reload {
            true => self.engine.load(parsed(&self.plan), self.at),
            false => self.engine.reset(self.at),
        }
        self.generation += 1;
        self.received = self.engine.journal().len();
        self.tasks.clear();
        self.hear()
    }

    /// A client sends a frame.
    pub(crate) fn send(&mut self, who: usize, frame: (Bytes, Option<HeaderMap>)) -> Result<Outcome, String> {
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
                let version = self.clients[who].session.as_ref().map(|(version, _)| version.as_str());
                hold!(version == Some("2025-03-26"), "a batch in {version:?}");
                let items: Vec<&RawValue> = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
                hold!(items.len() == parts.len(), "{} answers to {} parts", parts.len(), items.len());
                self.received += parts.len() as u64;
                for (item, part) in items.iter().zip(parts) {
                    self.take(who, item.get().as_bytes(), None, part).map_err(|why| format!("{why}\n  to {item}"))?;
                }
                Ok(Outcome::Nothing)
            }
            decision => {
                self.received += 1;
                self.take(who, &bytes, headers.as_ref(), decision)
            }
        };
        let outcome = outcome.map_err(|why| format!("{why}\n  to {}", shown()))?;
        self.hear()?;
        Ok(outcome)
    }

    fn take(
        &mut self,
        who: usize,
        bytes: &[u8],
        headers: Option<&HeaderMap>,
        decision: Decision,
    ) -> Result<Outcome, String> {
        let message = match Message::parse(bytes) {
            Ok(message) => message,
            Err(error) => {
                let Decision::Respond(answer) = decision else { return Err(format!("no error but {decision:?}")) };
                let said = law::message(&answer.frame)?;
                hold!(answer.status == 400, "status {} for what is no message", answer.status);
                let code = said["error"]["code"].as_i64();
                hold!(matches!(code, Some(-32_700 | -32_600)), "the code {code:?} for what is no message");
                let id = error.request_id().map(|id| id.to_json());
                hold!(said.get("id").map(Json::to_string) == id, "another id than {id:?}: {said}");
                return Ok(Outcome::Nothing);
            }
        };
        let era = self.engine.era_of(&message, headers);
        match (message, decision) {
            (Message::Request(request), decision) => {
                let client = &self.clients[who];
                let session = client.session.as_ref();
                let version = session.map_or("2025-11-25", |(version, _)| version);
                let known = (version, client.level, session.map_or(&Json::Null, |(_, declared)| declared));
                let asked = Asked::of(&request, who, era, known);
                self.begin(asked, decision)
            }
            (Message::Notification(_), Decision::Ignore) => Ok(Outcome::Nothing),
            (Message::Notification(notification), Decision::Cancel(id)) => {
                hold!(notification.method == "notifications/cancelled", "{} cancels", notification.method);
                self.running.retain(|it| it.asked.client != who || it.asked.id != id || it.detached);
                self.clients[who].listening.retain(|it| it.id != json!(id));
                Ok(Outcome::Nothing)
            }
            (Message::Response(_), Decision::Ignore) => Ok(Outcome::Nothing),
            (Message::Response(_), Decision::Respond(answer)) if era == Era::Modern && headers.is_some() => {
                hold!(answer.status == 400, "status {} for a response", answer.status);
                Ok(Outcome::Nothing)
            }
            (message, decision) => Err(format!("{decision:?} in answer to {message:?}")),
        }
    }

    fn begin(&mut self, asked: Asked, decision: Decision) -> Result<Outcome, String> {
        let is_open = asked.era == Era::Modern || self.clients[asked.client].session.is_some();
        let may_begin = is_open || ["initialize", "ping"].contains(&&*asked.method);
        match decision {
            Decision::Respond(answer) => {
                let said = self.conclude(&asked, &answer)?;
                hold!(may_begin || said.get("error").is_some(), "an answer before the handshake: {said}");
                Ok(Outcome::Answered(said))
            }
            Decision::Exchange(exchange) => {
                hold!(may_begin, "an answer before the handshake");
                hold!(*exchange.id() == asked.id, "it answers {}", exchange.id());
                let (way, waiting, detached) = (Way::default(), false, false);
                self.running.push(Running { asked, exchange, way, waiting, detached });
                Ok(Outcome::Started)
            }
            Decision::Subscribe(listen) => self.listen(&asked, listen).map(|()| Outcome::Started),
            decision => Err(format!("a request is answered by {decision:?}")),
        }
    }

    fn listen(&mut self, asked: &Asked, listen: PendingSubscription) -> Law {
        hold!(asked.era == Era::Modern && asked.method == "subscriptions/listen", "{} listens", asked.method);
        hold!(*listen.id() == asked.id, "it listens as {}", listen.id());
        let (recorder, id) = (Recorder::default(), json!(asked.id));
        let subscription = listen.open(Box::new(recorder.clone()));
        let filter = asked.params["notifications"].clone();
        let listening = Listening { id, filter, recorder, subscription, acknowledged: false };
        self.clients[asked.client].listening.push(listening);
        Ok(())
    }

    /// Ends a subscription from the server's side.
    pub(crate) fn close(&mut self, who: usize, which: usize) -> Law {
        let listening = self.clients[who].listening.remove(which);
        let said = law::message(&listening.subscription.closing())?;
        hold!(said["id"] == listening.id, "another subscription is closed: {said}");
        let meta = &said["result"]["_meta"];
        hold!(meta[format!("{META}subscriptionId")] == said["id"], "no subscriptionId: {said}");
        hold!(said["result"]["resultType"] == "complete", "no resultType: {said}");
        let version = super::script::MODERN;
        (self.judge)(&Said { version, what: What::Response("subscriptions/listen"), message: &said })
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
            let why = |why: String| format!("{why}\n  of {} {}", running.asked.method, running.asked.params);
            match event {
                Event::Wait(time) => self.at += time,
                Event::Await(_) => running.waiting = true,
                Event::Disconnect(_) => {}
                Event::Send(frame) => {
                    hold!(!running.detached, "a task speaks: {frame:?}");
                    let asked = &running.asked;
                    let said = running.way.message(asked, &frame, self.judge).map_err(why)?;
                    if let (Some(id), Some(method)) = (said.get("id"), said["method"].as_str()) {
                        let client = &mut self.clients[asked.client];
                        hold!(client.question_ids.insert(id.to_string()), "the id {id} is used twice");
                        client.questions.push(Question { id: id.clone(), method: method.to_owned() });
                    }
                }
                Event::Detach(answer) => {
                    hold!(!std::mem::replace(&mut running.detached, true), "a task in a task");
                    let asked = running.asked.clone();
                    let said = self.conclude(&asked, &answer)?;
                    hold!(asked.is_odd() || said["result"]["resultType"] == "task", "no task: {said}");
                }
                Event::Finish(answer) => {
                    let Running { asked, detached, way, .. } = self.running.remove(index);
                    let questions = &mut self.clients[asked.client].questions;
                    questions.retain(|question| !way.asked.contains(&question.id.to_string()));
                    match detached {
                        true => hold!(answer.frame.is_empty(), "a task is answered: {answer:?}"),
                        false => drop(self.conclude(&asked, &answer)?),
                    }
                    self.hear()?;
                    return Ok(true);
                }
                Event::Exit(_) => {
                    self.running.remove(index);
                    return Ok(true);
                }
            }
            self.hear()?;
        }
        Ok(false)
    }

    /// A response: it is judged, and the client learns from it.
    fn conclude(&mut self, asked: &Asked, answer: &ResponseFrame) -> Result<Json, String> {
        law::response(asked, answer, self.judge)
            .map_err(|why| format!("{why}\n  in answer to {} {}", asked.method, asked.params))?;
        let said: Json = serde_json::from_slice(&answer.frame).unwrap_or_default();
        let Some(result) = said.get("result").filter(|_| !asked.is_odd()) else { return Ok(said) };
        let client = &mut self.clients[asked.client];
        match &*asked.method {
            "initialize" if asked.era == Era::Legacy => {
                let version = result["protocolVersion"].as_str().unwrap_or_default().to_owned();
                hold!(self.plan.offered.versions().contains(&&*version), "{version} is not offered");
                client.session = Some((version, asked.params["capabilities"].clone()));
                client.level = 0;
                client.subscribed.clear();
            }
            "logging/setLevel" => {
                let level = super::script::LEVELS.iter().position(|level| asked.params["level"] == *level);
                client.level = level.ok_or("an unknown level")?;
            }
            "resources/subscribe" => drop(client.subscribed.insert(asked.target.clone())),
            "resources/unsubscribe" => drop(client.subscribed.remove(&asked.target)),
            "tasks/get" => {
                hold!(result["taskId"] == *asked.target, "another task");
                task_goes_on(&mut self.tasks, result)?;
            }
            method if method.ends_with("/list") => {
                client.cursors.insert(method.to_owned(), result["nextCursor"].clone());
            }
            _ => {}
        }
        match result["resultType"].as_str() {
            Some("input_required") => {
                let mut params = asked.params.clone();
                params.as_object_mut().map(|params| params.remove("_meta"));
                let (method, result) = (asked.method.clone(), result.clone());
                client.rounds.push(Round { method, params, result, at: self.at, generation: self.generation });
            }
            Some("task") => {
                let id = result["taskId"].as_str().unwrap_or_default().to_owned();
                hold!(!self.tasks.contains_key(&id), "a task's id twice");
                task_goes_on(&mut self.tasks, result)?;
                client.tasks.push(id);
            }
            _ => {}
        }
        Ok(said)
    }

    /// Checks frames that belong to no request: each client receives only what it subscribed to.
    fn hear(&mut self) -> Law {
        for client in &mut self.clients {
            for frame in client.unasked.take() {
                let said = law::message(&frame)?;
                let uri = said["params"]["uri"].as_str().unwrap_or_default();
                let (version, _) = client.session.as_ref().ok_or_else(|| format!("before the handshake: {said}"))?;
                hold!(said.get("id").is_none(), "a request that belongs to nothing: {said}");
                match said["method"].as_str() {
                    Some("notifications/resources/updated") => {
                        hold!(client.subscribed.contains(uri), "no client subscribed to it: {said}");
                    }
                    Some(method) if method.ends_with("/list_changed") => {}
                    // A question of a call that was cancelled itself.
                    Some("notifications/cancelled") => {
                        hold!(said["params"]["reason"] == "the call was cancelled", "another reason: {said}");
                    }
                    _ => return Err(format!("no client requested it: {said}")),
                }
                hold!(said["params"].get("_meta").is_none(), "metadata for a legacy client: {said}");
                (self.judge)(&Said { version, what: What::Notification, message: &said })?;
            }
            for listening in &mut client.listening {
                for frame in listening.recorder.take() {
                    let said = law::message(&frame)?;
                    subscribed(listening, &said).map_err(|why| format!("{why}: {said}"))?;
                    if said["method"] == "notifications/tasks" {
                        task_goes_on(&mut self.tasks, &said["params"])?;
                    }
                    let version = super::script::MODERN;
                    (self.judge)(&Said { version, what: What::Notification, message: &said })?;
                }
            }
        }
        Ok(())
    }

    /// Ends everything in progress, and checks that nothing is left.
    pub(crate) fn end(mut self) -> Law {
        while let Some(last) = self.running.len().checked_sub(1) {
            let mut ended = false;
            for _ in 0..50 {
                ended = ended || self.advance(last, 4, true)?;
            }
            hold!(ended, "an answer without an end: {:?}", self.running[last].asked);
        }
        for who in 0..self.clients.len() {
            while !self.clients[who].listening.is_empty() {
                self.close(who, 0)?;
            }
        }
        hold!(self.engine.in_flight() == 0, "{} answers are left", self.engine.in_flight());
        let journalled = self.engine.journal().len();
        hold!(journalled == self.received, "{journalled} of {} messages are in the journal", self.received);
        Ok(())
    }
}

fn parsed(plan: &ScriptPlan) -> Script {
    let text = plan.to_json().to_string();
    Script::parse(&Source::new("generated", text.clone())).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What comes on the stream of a subscription (2026-07-28, Subscriptions).
fn subscribed(listening: &mut Listening, said: &Json) -> Law {
    let (params, filter) = (&said["params"], &listening.filter);
    hold!(said.get("id").is_none(), "a request");
    hold!(params["_meta"][format!("{META}subscriptionId")] == listening.id, "another subscriptionId");
    let includes = |list: &str, item: &Json| filter[list].as_array().is_some_and(|list| list.contains(item));
    let method = said["method"].as_str();
    let first = !std::mem::replace(&mut listening.acknowledged, true);
    hold!(first == (method == Some("notifications/subscriptions/acknowledged")), "not in its place");
    let granted = match method {
        Some("notifications/subscriptions/acknowledged") => {
            let granted = params["notifications"].as_object().ok_or("no filter")?;
            let asked_for = granted.iter().all(|(name, value)| match (name.as_str(), value.as_array()) {
                // Tasks that have lapsed are unknown.
                ("taskIds", Some(ids)) => ids.iter().all(|id| includes("taskIds", id)),
                _ => filter.get(name) == Some(value),
            });
            listening.filter = Json::Object(granted.clone());
            asked_for
        }
        Some("notifications/tools/list_changed") => filter["toolsListChanged"] == true,
        Some("notifications/prompts/list_changed") => filter["promptsListChanged"] == true,
        Some("notifications/resources/list_changed") => filter["resourcesListChanged"] == true,
        Some("notifications/resources/updated") => includes("resourceSubscriptions", &params["uri"]),
        Some("notifications/tasks") => includes("taskIds", &params["taskId"]),
        _ => false,
    };
    hold!(granted, "no client requested it");
    Ok(())
}

/// A task never leaves an end, and a key never stands for another question.
fn task_goes_on(tasks: &mut HashMap<String, Json>, task: &Json) -> Law {
    law::task(task)?;
    let id = task["taskId"].as_str().unwrap_or_default();
    if let Some(before) = tasks.get(id) {
        let over = ["completed", "failed", "cancelled"].contains(&before["status"].as_str().unwrap_or_default());
        hold!(!over || before["status"] == task["status"], "a task goes on after its end: {before}, {task}");
        hold!(!over || before["result"] == task["result"], "the result changed: {before}, {task}");
        for (key, request) in task["inputRequests"].as_object().into_iter().flatten() {
            let known = before["inputRequests"].get(key);
            hold!(known.is_none_or(|known| known == request), "the key {key} stands for another question");
        }
    }
    let result = task["result"].to_string();
    hold!(!result.contains(META) || is_odd(&result), "an envelope within a task's result: {result}");
    tasks.insert(id.to_owned(), task.clone());
    Ok(())
}
