//! The requests of a client with their answers.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, value::RawValue};

use crate::{Direction, Id, Message, RpcError, Trace};

/// A request of a client that was answered.
#[derive(Debug)]
pub struct Answered {
    /// The method of the request.
    pub method: String,
    /// Its parameters; null if there are none.
    pub params: Value,
    /// Its result.
    pub outcome: Result<Box<RawValue>, RpcError>,
    /// When the request was sent.
    pub sent: Duration,
    /// When the answer came.
    pub came: Duration,
}

impl Answered {
    /// The result as a value; `None` if the answer is an error.
    pub fn result(&self) -> Option<Value> {
        self.outcome.as_ref().ok().map(|result| serde_json::from_str(result.get()).unwrap_or_default())
    }

    /// The answered requests in the trace of a connection, in the order of their answers.
    pub fn all(trace: &Trace) -> Vec<Answered> {
        let mut open: HashMap<Id, (String, Value, Duration)> = HashMap::new();
        let mut answered = Vec::new();
        for frame in trace.frames() {
            match (frame.direction, frame.message()) {
                (Direction::ClientToServer, Ok(Message::Request(request))) => {
                    let params = request.params.and_then(|params| serde_json::from_str(params.get()).ok());
                    open.insert(request.id, (request.method.into_owned(), params.unwrap_or_default(), frame.at));
                }
                (Direction::ServerToClient, Ok(Message::Response(response))) => {
                    let request = response.id.and_then(|id| open.remove(&id));
                    let Some((method, params, sent)) = request else { continue };
                    let outcome = response.outcome.map(ToOwned::to_owned);
                    answered.push(Answered { method, params, outcome, sent, came: frame.at });
                }
                _ => {}
            }
        }
        answered
    }
}
