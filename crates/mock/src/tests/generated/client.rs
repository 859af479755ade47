//! A client as the model knows it, and the messages that it writes.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::internals::LegacySession;
use crate::internals::NotificationSink;
use crate::internals::Subscription;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use rehearse_protocol::Era;
use serde_json::{Map, Value as Json, json};

use super::{
    moves::{Answering, ClientPlan, EraPlan, Extras, HeadersPlan, MetaPlan, Token},
    script::{LEVELS, META, MODERN},
    traffic::Channel,
};

/// Keeps the frames that the server sends without a request.
#[derive(Debug, Default, Clone)]
pub(crate) struct Recorder(Arc<Mutex<Vec<Bytes>>>);

impl NotificationSink for Recorder {
    fn push(&self, frame: Bytes) {
        self.0.lock().push(frame);
    }
}

impl Recorder {
    pub(crate) fn take(&self) -> Vec<Bytes> {
        std::mem::take(&mut self.0.lock())
    }
}

/// A question of the server that is open, as its text id and its method.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub id: Json,
    pub method: String,
}

/// A result that asks for input, and what it answered.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub method: String,
    pub params: Json,
    pub result: Json,
    /// The time of the result, and the number of resets before it.
    pub at: std::time::Duration,
    pub generation: usize,
}

/// A subscription of a modern client.
#[derive(Debug)]
pub(crate) struct ClientSubscription {
    pub id: Json,
    pub channel: Channel,
    pub recorder: Recorder,
    pub subscription: Subscription,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub plan: ClientPlan,
    pub peer: Arc<LegacySession>,
    pub unasked: Recorder,
    /// The version that was negotiated with a legacy client.
    pub version: Option<String>,
    pub questions: Vec<Question>,
    pub rounds: Vec<Round>,
    pub subscriptions: Vec<ClientSubscription>,
    pub cursors: HashMap<String, Json>,
    pub tasks: Vec<String>,
    pub sent: Vec<(String, Json)>,
    next_id: i64,
}

impl Client {
    pub(crate) fn new(plan: ClientPlan) -> Client {
        let (peer, unasked) = (Arc::<LegacySession>::default(), Recorder::default());
        peer.set_sink(Box::new(unasked.clone()));
        Client {
            plan,
            peer,
            unasked,
            version: None,
            questions: Vec::new(),
            rounds: Vec::new(),
            subscriptions: Vec::new(),
            cursors: HashMap::new(),
            tasks: Vec::new(),
            sent: Vec::new(),
            next_id: 0,
        }
    }

    pub(crate) fn era(&self) -> Era {
        match self.plan.era {
            EraPlan::Legacy { .. } => Era::Legacy,
            EraPlan::Modern { .. } => Era::Modern,
        }
    }

    /// The handshake, unless the client leaves it out.
    pub(crate) fn initialize(&mut self) -> Json {
        self.next_id += 1;
        let params = json!({
            "protocolVersion": self.plan.version(),
            "capabilities": self.plan.capabilities(),
            "clientInfo": { "name": "c", "version": "1" },
        });
        json!({ "jsonrpc": "2.0", "id": self.next_id, "method": "initialize", "params": params })
    }

    /// A request with everything that the client's era wants, but for what `extras` leaves out or gets wrong.
    pub(crate) fn request(&mut self, method: &str, params: Json, extras: &Extras) -> (Bytes, Option<HeaderMap>) {
        self.next_id += 1;
        let mut params = if params.is_object() { params } else { json!({}) };
        self.sent.push((method.to_owned(), params.clone()));
        let headers = self.headers(method, &params, extras.headers);
        let mut meta = Map::new();
        if self.era() == Era::Modern {
            meta.insert(format!("{META}protocolVersion"), MODERN.into());
            meta.insert(format!("{META}clientCapabilities"), self.plan.capabilities());
            meta.insert(format!("{META}clientInfo"), json!({ "name": "c", "version": "1" }));
            if let Some(level) = extras.level {
                meta.insert(format!("{META}logLevel"), LEVELS[usize::from(level) % LEVELS.len()].into());
            }
        }
        match extras.token {
            Token::None => {}
            Token::Number => drop(meta.insert("progressToken".into(), self.next_id.into())),
            Token::Text => drop(meta.insert("progressToken".into(), format!("t\"{}", self.next_id).into())),
            Token::Wrong => drop(meta.insert("progressToken".into(), json!([1.5]))),
        }
        match extras.meta {
            MetaPlan::Complete => {}
            MetaPlan::None => meta.clear(),
            MetaPlan::NoCapabilities => drop(meta.remove(&format!("{META}clientCapabilities"))),
            MetaPlan::NullVersion => drop(meta.insert(format!("{META}protocolVersion"), Json::Null)),
            MetaPlan::UnknownVersion => drop(meta.insert(format!("{META}protocolVersion"), "1999-01-01".into())),
            MetaPlan::LegacyVersion => drop(meta.insert(format!("{META}protocolVersion"), "2025-11-25".into())),
            MetaPlan::WrongLevel => drop(meta.insert(format!("{META}logLevel"), "loud".into())),
            MetaPlan::NoObject => {}
        }
        if let MetaPlan::NoObject = extras.meta {
            params["_meta"] = json!([]);
        } else if !meta.is_empty() {
            params["_meta"] = meta.into();
        }
        let id = extras.id.id(self.next_id);
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        (frame.to_string().into(), headers)
    }

    /// The headers of a modern HTTP request.
    fn headers(&self, method: &str, params: &Json, plan: HeadersPlan) -> Option<HeaderMap> {
        let EraPlan::Modern { http: true } = self.plan.era else { return None };
        let mut headers = HeaderMap::new();
        let mut add = |name: &'static str, value: &str| {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap_or(HeaderValue::from_static("?"));
            headers.append(name, value);
        };
        let version = if plan == HeadersPlan::UnknownVersion { "1999-01-01" } else { MODERN };
        if plan != HeadersPlan::NoVersion {
            add("mcp-protocol-version", version);
        }
        if plan == HeadersPlan::Twice {
            add("mcp-protocol-version", version);
        }
        match plan {
            HeadersPlan::NoMethod => {}
            HeadersPlan::OtherMethod => add("mcp-method", "other"),
            _ => add("mcp-method", method),
        }
        let name = ["taskId", "name", "uri"].iter().find_map(|name| params[*name].as_str());
        match (plan, name) {
            (HeadersPlan::NoName, _) | (_, None) => {}
            (HeadersPlan::OtherName, _) => add("mcp-name", "other"),
            (_, Some(name)) => add("mcp-name", name),
        }
        Some(headers)
    }
}

/// What a client answers to a question: the result, or nothing if it refuses.
pub(crate) fn answer(method: &str, how: Answering) -> Result<Json, Json> {
    let right = match method {
        "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
        "sampling/createMessage" => {
            json!({ "role": "assistant", "content": { "type": "text", "text": "x" }, "model": "m" })
        }
        _ => json!({ "roots": [{ "uri": "file:///r" }] }),
    };
    match how {
        Answering::Declining if method == "elicitation/create" => Ok(json!({ "action": "decline" })),
        Answering::Refusing => Err(json!({ "code": -1, "message": "no\n" })),
        Answering::Wrongly(which) => Ok([
            json!({}),
            json!({ "action": "maybe" }),
            json!({ "action": "accept", "content": { "name": 5 } }),
            json!({ "role": "assistant" }),
            json!({ "roots": [1] }),
            json!({ "roots": {} }),
        ][usize::from(which) % 6]
            .clone()),
        _ => Ok(right),
    }
}
