//! One message of a trace, parsed.

use std::time::Duration;

use bytes::Bytes;
use rehearse_protocol::Direction;
use serde_json::Value;

/// Where something stands: a connection of the evidence and the number of an event in its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventRef {
    /// The index of the connection.
    pub connection: usize,
    /// The number of the event.
    pub event: usize,
}

/// What a message is, by its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has a method and an id.
    Request,
    /// It has a method and no id.
    Notification,
    /// It has no method, but a result, an error or an id.
    Response,
    /// An array. Its items follow as messages of their own.
    Batch,
    /// Anything else, also what is not JSON.
    Other,
}

/// One message, or what was sent in place of one.
#[derive(Clone, Debug)]
pub struct Message<'t> {
    /// Where it stands.
    pub place: EventRef,
    /// When it was recorded.
    pub time: Duration,
    /// Who sent it.
    pub direction: Direction,
    /// The bytes of the frame; of a part of a batch, those of the batch.
    pub bytes: &'t Bytes,
    /// The JSON; null if the bytes are no JSON.
    pub value: Value,
    /// What it is.
    pub kind: Kind,
    /// Its HTTP exchange.
    pub exchange: Option<u32>,
    /// The case of a probe, if a probe sent it.
    pub case: Option<&'t str>,
    /// Whether it is part of a batch.
    pub is_in_batch: bool,
}

impl Message<'_> {
    /// Whether the server sent it.
    pub fn is_from_server(&self) -> bool {
        self.direction == Direction::ServerToClient
    }

    /// Its `id`, also `null`.
    pub fn id(&self) -> Option<&Value> {
        self.value.get("id")
    }

    /// Its `id`, if it is one that a response can repeat.
    pub fn usable_id(&self) -> Option<&Value> {
        self.id().filter(|id| id.is_string() || id.is_number())
    }

    /// Its `method`.
    pub fn method(&self) -> Option<&str> {
        self.value.get("method")?.as_str()
    }

    /// Its `params`; null if there are none.
    pub fn params(&self) -> &Value {
        self.value.get("params").unwrap_or(&Value::Null)
    }

    /// Its `result`.
    pub fn result(&self) -> Option<&Value> {
        self.value.get("result")
    }

    /// Its `error`.
    pub fn error(&self) -> Option<&Value> {
        self.value.get("error")
    }

    /// The code of its `error`, if that is a whole number.
    pub fn error_code(&self) -> Option<i64> {
        self.error()?.get("code")?.as_i64()
    }

    /// The value at a JSON pointer; null if there is none.
    pub fn at(&self, pointer: &str) -> &Value {
        self.value.pointer(pointer).unwrap_or(&Value::Null)
    }
}

/// What a JSON value is as a message.
pub(crate) fn kind(value: &Value) -> Kind {
    match value {
        Value::Array(_) => Kind::Batch,
        Value::Object(members) => match (members.contains_key("method"), members.contains_key("id")) {
            (true, true) => Kind::Request,
            (true, false) => Kind::Notification,
            (false, true) => Kind::Response,
            (false, false) if members.contains_key("result") || members.contains_key("error") => Kind::Response,
            (false, false) => Kind::Other,
        },
        _ => Kind::Other,
    }
}
