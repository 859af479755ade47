//! What a reader has found in a recording, until it is a trace.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde_json::Value;

use crate::{
    Direction, Event, EventKind, Frame, MessageHead, Trace, Transport,
    trace_file::{ConnectionInfo, RecordedConnection, TraceFile},
};

/// Connections in the order in which they begin.
#[derive(Debug, Default)]
pub(super) struct Recording {
    connections: Vec<Connection>,
    /// What is missing, and how often.
    lost: BTreeMap<String, usize>,
    /// What is said once.
    notes: Vec<String>,
}

/// Where something happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The name of the server.
    pub(super) server: &'a str,
    /// What tells its connections apart.
    pub(super) session: &'a str,
    pub(super) transport: Transport,
    /// When, since any moment that all times of the recording share.
    pub(super) at: Option<Duration>,
    pub(super) exchange: Option<u32>,
}

#[derive(Debug)]
struct Connection {
    session: String,
    info: ConnectionInfo,
    events: Vec<(Duration, Option<u32>, EventKind)>,
    /// Whether the client has sent `initialize`.
    has_handshake: bool,
}

impl<'a> Place<'a> {
    pub(super) fn new(server: &'a str, transport: Transport) -> Place<'a> {
        Place { server, session: "", transport, at: None, exchange: None }
    }
}

impl Recording {
    /// Something is missing, once more.
    pub(super) fn lose(&mut self, what: &str) {
        self.lose_some(what, 1);
    }

    /// Something is missing so often.
    pub(super) fn lose_some(&mut self, what: &str, count: usize) {
        if count > 0 {
            *self.lost.entry(what.to_owned()).or_default() += count;
        }
    }

    /// Says something of the whole recording.
    pub(super) fn note(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.notes.contains(&what) {
            self.notes.push(what);
        }
    }

    /// Adds a message that the format has as JSON, or what stands in its place as text.
    pub(super) fn message(&mut self, place: Place<'_>, from: Direction, message: &Value) {
        match message {
            Value::String(text) => self.frame(place, from, text),
            Value::Null => self.lose("entries without a message"),
            message => self.frame(place, from, &message.to_string()),
        }
    }

    /// Adds a frame.
    pub(super) fn frame(&mut self, place: Place<'_>, from: Direction, text: &str) {
        let frame = Frame::new(from, Duration::ZERO, Bytes::copy_from_slice(text.as_bytes()));
        if frame.parts().is_err() && frame.head().is_err() {
            self.lose("frames that are no message, which are kept as they are");
        }
        if is_handshake(&frame) {
            self.connection(&place, true).has_handshake = true;
        }
        self.event(place, EventKind::Frame(frame));
    }

    /// Adds anything else.
    pub(super) fn event(&mut self, place: Place<'_>, kind: EventKind) {
        if place.at.is_none() {
            self.note("times, which the recording does not have");
        }
        let connection = self.connection(&place, false);
        let last = connection.events.last().map(|(at, ..)| *at).unwrap_or_default();
        connection.events.push((place.at.unwrap_or(last), place.exchange, kind));
    }

    /// Begins a connection, also if there is one with the same session.
    pub(super) fn begin(&mut self, place: &Place<'_>) {
        let info = ConnectionInfo::new(place.server, place.transport);
        let (session, events) = (place.session.to_owned(), Vec::new());
        self.connections.push(Connection { session, info, events, has_handshake: false });
    }

    /// What this transport is known to be by now.
    pub(super) fn set_transport(&mut self, place: &Place<'_>, transport: Transport) {
        self.connection(place, false).info.transport = transport;
    }

    /// The latest connection of a place. A second handshake begins another one.
    fn connection(&mut self, place: &Place<'_>, is_handshake: bool) -> &mut Connection {
        let is_it = |it: &Connection| it.session == place.session && it.info.server == place.server;
        let index = match self.connections.iter().rposition(is_it) {
            Some(index) if !(is_handshake && self.connections[index].has_handshake) => index,
            _ => {
                self.begin(place);
                self.connections.len() - 1
            }
        };
        &mut self.connections[index]
    }

    /// The trace, and what is missing in it.
    pub(super) fn finish(self) -> (TraceFile, Vec<String>) {
        let connections = self.connections.into_iter().filter(|connection| !connection.events.is_empty());
        let connections = connections.map(Connection::finish).collect();
        let lost = self.lost.into_iter().map(|(what, count)| format!("{what} ({count})"));
        (TraceFile { connections, is_cut: false }, self.notes.into_iter().chain(lost).collect())
    }
}

/// Whether the frame begins a session.
pub(super) fn is_handshake(frame: &Frame) -> bool {
    frame.direction == Direction::ClientToServer
        && matches!(frame.head(), Ok(MessageHead::Request { method, .. }) if &**method == "initialize")
}

impl Connection {
    fn finish(mut self) -> RecordedConnection {
        self.events.sort_by_key(|(at, ..)| *at);
        let first = self.events.first().map(|(at, ..)| *at).unwrap_or_default();
        let mut trace = Trace::default();
        trace.push(Duration::ZERO, EventKind::Opened(self.info.transport));
        for (at, exchange, mut kind) in self.events {
            let at = at - first;
            if let EventKind::Frame(frame) = &mut kind {
                frame.at = at;
            }
            trace.push_event(Event { at, exchange, kind });
        }
        RecordedConnection { info: self.info, trace }
    }
}
