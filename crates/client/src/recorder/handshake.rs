//! The result of a handshake, taken from the frames.

use serde_json::value::RawValue;

use rehearse_protocol::{Direction, Frame, Message};

/// The `initialize` and `server/discover` requests of a client, and the last result of one of them.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// The ids as strings, because rmcp takes `"0"` for `0`; with the methods.
    asked: Vec<(String, String)>,
    /// The method and its result.
    pub result: Option<(String, Box<RawValue>)>,
}

impl Handshake {
    /// Must be called with every frame in order.
    pub fn observe(&mut self, frame: &Frame) {
        match (frame.direction, frame.message()) {
            (Direction::ClientToServer, Ok(Message::Request(request)))
                if matches!(&*request.method, "initialize" | "server/discover") =>
            {
                self.asked.push((request.id.to_string(), request.method.into_owned()));
            }
            (Direction::ServerToClient, Ok(Message::Response(response))) => {
                let id = response.id.map(|id| id.to_string());
                let ours = self.asked.iter().find(|(asked, _)| Some(asked) == id.as_ref());
                if let (Some((_, method)), Ok(raw)) = (ours, response.outcome) {
                    self.result = Some((method.clone(), raw.to_owned()));
                }
            }
            _ => {}
        }
    }
}
