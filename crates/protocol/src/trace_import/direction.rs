//! Who sent a message that does not say so.

use std::collections::HashMap;

use serde_json::Value;

use crate::Direction::{self, ClientToServer, ServerToClient};

/// The requests and notifications of servers. What both sides may send is the client's.
const OF_SERVER: [&str; 9] = [
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "notifications/message",
    "notifications/progress",
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/prompts/list_changed",
];
/// Words for a direction, in lower case and without blanks around an arrow.
const WORDS: [(&str, Direction); 14] = [
    ("c2s", ClientToServer),
    ("s2c", ServerToClient),
    ("client->server", ClientToServer),
    ("server->client", ServerToClient),
    ("client_to_server", ClientToServer),
    ("server_to_client", ServerToClient),
    ("from client", ClientToServer),
    ("from server", ServerToClient),
    ("to server", ClientToServer),
    ("to client", ServerToClient),
    ("->server", ClientToServer),
    ("server->", ServerToClient),
    ("client->", ClientToServer),
    ("->client", ServerToClient),
];

/// The direction that a text names.
pub(super) fn named(text: &str) -> Option<Direction> {
    let text = text.to_lowercase().replace(['→', '⇒'], "->").replace(" ->", "->").replace("-> ", "->");
    match text.trim() {
        "client" => Some(ClientToServer),
        "server" => Some(ServerToClient),
        text => WORDS.iter().find(|(word, _)| text.contains(word)).map(|(_, direction)| *direction),
    }
}

/// The other direction.
pub(super) fn reversed(direction: Direction) -> Direction {
    match direction {
        ClientToServer => ServerToClient,
        ServerToClient => ClientToServer,
    }
}

/// The requests that wait for their answers, by id, with who sent them.
#[derive(Debug, Default)]
pub(super) struct DirectionGuess(HashMap<String, Vec<Direction>>);

impl DirectionGuess {
    /// Who sent a message: by its method, or for a response by the latest request with its id that has no answer.
    pub(super) fn of(&mut self, message: &Value, known: Option<Direction>) -> Option<Direction> {
        let id = message.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), id) => {
                let guessed = if OF_SERVER.contains(&method) { ServerToClient } else { ClientToServer };
                let direction = known.unwrap_or(guessed);
                if let Some(id) = id {
                    self.0.entry(id).or_default().push(direction);
                }
                Some(direction)
            }
            (None, Some(id)) => {
                let waiting = self.0.get_mut(&id);
                let asked = waiting.and_then(|waiting| {
                    let own = known.and_then(|known| waiting.iter().rposition(|it| *it == reversed(known)));
                    (!waiting.is_empty()).then(|| waiting.remove(own.unwrap_or(waiting.len() - 1)))
                });
                known.or(asked.map(reversed))
            }
            (None, None) => known,
        }
    }
}
