//! The streams of `subscriptions/listen`.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::{Call, EventRef, Evidence, Kind, Message};

pub(in crate::areas) const LISTEN: &str = "subscriptions/listen";
pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
pub(super) const UPDATED: &str = "notifications/resources/updated";
pub(in crate::areas) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol~1subscriptionId";
/// What can be listened to: the key of the filter, the capability, the notification.
pub(in crate::areas) const TYPES: [(&str, &str, &str); 4] = [
    ("toolsListChanged", "tools/listChanged", "notifications/tools/list_changed"),
    ("promptsListChanged", "prompts/listChanged", "notifications/prompts/list_changed"),
    ("resourcesListChanged", "resources/listChanged", "notifications/resources/list_changed"),
    ("resourceSubscriptions", "resources/subscribe", UPDATED),
];

/// A request to listen, and what came on its stream.
pub(super) struct Stream<'e> {
    pub(super) call: Call<'e>,
    /// The notifications of its exchange over HTTP, else those with its id.
    pub(super) messages: Vec<&'e Message<'e>>,
}

impl<'e> Stream<'e> {
    pub(super) fn id(&self) -> &'e Value {
        self.call.request.at("/id")
    }

    pub(super) fn acknowledgement(&self) -> Option<&'e Message<'e>> {
        self.messages.iter().find(|it| it.method() == Some(ACKNOWLEDGED)).copied()
    }

    /// Whether a type is requested.
    pub(super) fn wants(&self, key: &str) -> bool {
        is_wanted(&self.call.request.params()["notifications"][key])
    }

    /// Whether a type is requested that the server declares.
    pub(super) fn wants_declared(&self, evidence: &Evidence<'_>) -> bool {
        TYPES.iter().any(|(key, capability, _)| self.wants(key) && evidence.facts.declares(capability))
    }

    /// Whether the request was refused. An error after the acknowledgement ends a stream that was accepted.
    pub(super) fn is_refused(&self) -> bool {
        let is_error = self.call.response.is_some_and(|it| it.error().is_some());
        let is_refusal = is_error || self.call.status().is_some_and(|it| it >= 400);
        let answer = self.call.response.map(|it| it.place);
        is_refusal && self.acknowledgement().is_none_or(|it| Some(it.place) > answer)
    }

    pub(super) fn is_case(&self, case: &str) -> bool {
        self.call.request.case == Some(case)
    }
}

pub(in crate::areas) fn is_wanted(value: &Value) -> bool {
    value == true || value.as_array().is_some_and(|uris| !uris.is_empty())
}

pub(super) fn tag<'e>(message: &'e Message<'_>) -> &'e Value {
    message.at(&format!("/params/_meta/{SUBSCRIPTION_ID}"))
}

/// The key of the type of a change notification.
pub(super) fn type_of(message: &Message<'_>) -> Option<&'static str> {
    TYPES.iter().find(|(.., method)| message.method() == Some(method)).map(|(key, ..)| *key)
}

pub(super) fn is_scoped(message: &Message<'_>) -> bool {
    matches!(message.method(), Some("notifications/progress" | "notifications/message"))
}

/// Every request to listen that is well formed.
pub(super) fn streams<'e>(evidence: &'e Evidence<'_>) -> Vec<Stream<'e>> {
    all_streams(evidence).into_iter().filter(|it| it.call.request.params()["notifications"].is_object()).collect()
}

pub(super) fn all_streams<'e>(evidence: &'e Evidence<'_>) -> Vec<Stream<'e>> {
    let mut streams: Vec<Stream<'e>> = Vec::new();
    for connection in &evidence.connections {
        let mut numbers = HashMap::new();
        let is_listen = |call: &Call<'_>| call.request.kind == Kind::Request && call.method() == LISTEN;
        for call in connection.calls().filter(is_listen) {
            numbers.insert((call.request.exchange, stream_id(call.request, call.request.at("/id"))), streams.len());
            streams.push(Stream { call, messages: Vec::new() });
        }
        let sent = connection.received().filter(|it| it.kind == Kind::Notification);
        for message in sent.filter(|_| !numbers.is_empty()) {
            let number = numbers.get(&(message.exchange, stream_id(message, tag(message))));
            let Some(stream) = number.and_then(|number| streams.get_mut(*number)) else { continue };
            stream.messages.push(message);
        }
    }
    streams
}

/// What tells the stream of a message where the exchange does not.
fn stream_id(message: &Message<'_>, id: &Value) -> String {
    if message.exchange.is_some() { String::new() } else { id.to_string() }
}

/// The places of all messages on streams.
pub(super) fn places(streams: &[Stream<'_>]) -> HashSet<EventRef> {
    streams.iter().flat_map(|stream| &stream.messages).map(|message| message.place).collect()
}
