//! A client for tests of the engine, with a clock of its own.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use super::{Decision, Engine, Event, Exchange, Incoming, LegacySession, NotificationSink};
use crate::{journal::Journal, script::Script};
use rehearse_document::Source;
use rehearse_protocol::{Transport, Version};

/// A client at one end, the engine at the other.
pub(super) struct TestClient {
    pub(super) engine: Arc<Engine>,
    pub(super) session: Arc<LegacySession>,
    pub(super) headers: Option<HeaderMap>,
    /// The declared capabilities.
    capabilities: Json,
    is_modern: bool,
    /// How it responds to requests of the server, by method: a response without its id. It ignores other requests.
    answers: RefCell<Vec<(&'static str, Json)>>,
    /// The frames that are not responses.
    pub(super) unasked: Received,
    pub(super) clock: Cell<Duration>,
    next_id: Cell<i64>,
    /// Tasks that run in the background.
    background: RefCell<Vec<Background>>,
}

struct Background {
    exchange: Box<Exchange>,
    /// The time at which it continues at the latest.
    due: Duration,
    /// Whether it continues as soon as its input requests are answered.
    awaits: bool,
}

/// Frames that were pushed.
#[derive(Clone, Debug, Default)]
pub(super) struct Received(Arc<Mutex<Vec<Json>>>);

impl NotificationSink for Received {
    fn push(&self, frame: Bytes) {
        let frame = serde_json::from_slice(&frame).expect("JSON");
        self.0.lock().push(frame);
    }
}

impl Received {
    pub(super) fn take(&self) -> Vec<Json> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl TestClient {
    fn new(script: &str, capabilities: Json, is_modern: bool) -> TestClient {
        let script = Script::parse(&Source::new("s", script)).unwrap_or_else(|error| panic!("{error}"));
        let unasked = Received::default();
        let session = LegacySession::default();
        session.set_sink(Box::new(unasked.clone()));
        TestClient {
            engine: Engine::new(script, 1, Journal::default()),
            session: Arc::new(session),
            headers: None,
            capabilities,
            is_modern,
            answers: RefCell::default(),
            unasked,
            clock: Cell::default(),
            next_id: Cell::new(100),
            background: RefCell::default(),
        }
    }

    pub(super) fn modern(script: &str, capabilities: Json) -> TestClient {
        TestClient::new(script, capabilities, true)
    }

    pub(super) fn legacy(script: &str, capabilities: Json) -> TestClient {
        let client = TestClient::uninitialized(script, capabilities);
        client.initialized();
        client
    }

    /// A legacy client that can send nothing but requests.
    pub(super) fn stateless(script: &str) -> TestClient {
        let session = Arc::new(LegacySession::stateless(Version::V2025_11_25));
        TestClient { session, ..TestClient::new(script, json!({}), false) }
    }

    /// Ends the handshake.
    pub(super) fn initialized(&self) {
        self.decision(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// A legacy client that has not ended its handshake yet.
    pub(super) fn uninitialized(script: &str, capabilities: Json) -> TestClient {
        let client = TestClient::new(script, capabilities.clone(), false);
        let info = json!({ "name": "c", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
        assert_eq!(client.call("initialize", params)["result"]["protocolVersion"], "2025-11-25");
        client
    }

    pub(super) fn answering(self, method: &'static str, response: Json) -> TestClient {
        self.answers.borrow_mut().push((method, response));
        self
    }

    /// The other client with the engine of this one.
    pub(super) fn share_engine(&self, other: TestClient) -> TestClient {
        TestClient { engine: self.engine.clone(), ..other }
    }

    pub(super) fn decision(&self, frame: &Json) -> Decision {
        let bytes = Bytes::from(frame.to_string());
        let transport = if self.headers.is_some() { Transport::Http } else { Transport::Memory };
        let at = self.clock.get();
        self.engine.receive(
            &self.session,
            Incoming {
                bytes: &bytes,
                transport,
                at,
                headers: self.headers.as_ref(),
                token: None,
                session: None,
                faults: &[],
            },
        )
    }

    pub(super) fn request(&self, method: &str, params: Json) -> Json {
        self.next_id.set(self.next_id.get() + 1);
        let mut params = params;
        if self.is_modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        json!({ "jsonrpc": "2.0", "id": self.next_id.get(), "method": method, "params": params })
    }

    /// The response to a request.
    pub(super) fn call(&self, method: &str, params: Json) -> Json {
        self.exchange(method, params).pop().expect("a response")
    }

    pub(super) fn tool(&self, name: &str, arguments: Json) -> Json {
        self.call("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// The text of a tool's result.
    pub(super) fn text(&self, name: &str, arguments: Json) -> String {
        let reply = self.tool(name, arguments);
        reply["result"]["content"][0]["text"].as_str().map_or_else(|| reply.to_string(), str::to_owned)
    }

    /// All frames that answer a request, the response last.
    pub(super) fn exchange(&self, method: &str, params: Json) -> Vec<Json> {
        let request = self.request(method, params);
        let frames = match self.decision(&request) {
            Decision::Respond(answer) => {
                self.run_background();
                vec![answer.frame]
            }
            Decision::Exchange(exchange) => self.play(exchange),
            other => panic!("no answer: {other:?}"),
        };
        let frames: Vec<Json> = frames.iter().map(|frame| serde_json::from_slice(frame).expect("JSON")).collect();
        assert_eq!(frames.last().expect("a response")["id"], request["id"]);
        frames
    }

    fn play(&self, mut exchange: Box<Exchange>) -> Vec<Bytes> {
        let mut frames = Vec::new();
        loop {
            match exchange.next_event(self.clock.get()) {
                Event::Wait(time) => self.advance(time),
                Event::Await(limit) => {
                    if exchange.poll_answers(&mut Context::from_waker(Waker::noop())).is_pending() {
                        self.advance(limit);
                    }
                }
                Event::Send(frame) => {
                    self.answer(&frame);
                    frames.push(frame);
                }
                Event::Disconnect(_) => {}
                Event::Detach(answer) => {
                    frames.push(answer.frame);
                    let task = Background { exchange, due: self.clock.get(), awaits: false };
                    self.background.borrow_mut().push(task);
                    self.run_background();
                    return frames;
                }
                Event::Finish(answer) => {
                    frames.push(answer.frame);
                    return frames;
                }
                Event::Exit(code) => panic!("the server died with {code}"),
            }
        }
    }

    /// Responds to the frame if it is a request.
    fn answer(&self, frame: &Bytes) {
        let frame: Json = serde_json::from_slice(frame).expect("JSON");
        let answers = self.answers.borrow();
        let answer = answers.iter().find(|(method, _)| frame.get("id").is_some() && frame["method"] == *method);
        if let Some((_, response)) = answer {
            let mut response = response.clone();
            response["jsonrpc"] = "2.0".into();
            response["id"] = frame["id"].clone();
            assert!(matches!(self.decision(&response), Decision::Ignore));
        }
    }

    /// Advances the clock.
    pub(super) fn advance(&self, time: Duration) {
        self.clock.set(self.clock.get() + time);
        self.run_background();
    }

    /// Drops the exchanges in the background.
    pub(super) fn abandon(&self) {
        self.background.take();
    }

    /// Drives the exchanges in the background that are due.
    fn run_background(&self) {
        let running = std::mem::take(&mut *self.background.borrow_mut());
        let still = running.into_iter().filter_map(|task| self.run(task)).collect();
        self.background.replace(still);
    }

    /// Drives a task as far as possible by now; the task, if it is not finished.
    fn run(&self, mut task: Background) -> Option<Background> {
        loop {
            if task.awaits {
                let is_answered = task.exchange.poll_answers(&mut Context::from_waker(Waker::noop())).is_ready();
                if !is_answered && task.due > self.clock.get() {
                    return Some(task);
                }
                (task.awaits, task.due) = (false, task.due.min(self.clock.get()));
            }
            if task.due > self.clock.get() {
                return Some(task);
            }
            match task.exchange.next_event(task.due) {
                Event::Wait(time) => task.due += time,
                Event::Await(limit) => (task.awaits, task.due) = (true, task.due.saturating_add(limit)),
                Event::Send(_) | Event::Disconnect(_) => {}
                Event::Finish(_) => return None,
                event => panic!("a task cannot do this: {event:?}"),
            }
        }
    }
}
