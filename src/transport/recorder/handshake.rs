//! What a server answers to the handshake, caught as it passes.

use serde_json::value::RawValue;

use crate::wire::{Direction, Frame, Message};

/// The requests with which a client begins, and the last result with the id of one of them. Whatever else goes over the
/// connection meanwhile, they are not forgotten.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// The ids as texts, for rmcp takes `"0"` for `0`, and so must we; with the methods.
    asked: Vec<(String, String)>,
    /// Which of the two methods, and its result.
    pub result: Option<(String, Box<RawValue>)>,
}

impl Handshake {
    /// Must be shown every frame in order.
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
