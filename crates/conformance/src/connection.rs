//! The traffic of one connection, indexed for judges.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use rehearse_protocol::{
    Closed, ClosedBy, Direction, Era, EventKind, ProcessEvent, Trace, Transport,
    http::{is_event_stream, is_json_rpc, media_type},
    names::LAST_EVENT_HEADER,
};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{
    Ask, Call, EventRef, Kind, Message,
    case::{ISSUER, is_case},
    facts::CANARY,
    message::kind,
};

#[cfg(test)]
thread_local! {
    /// How many calls the judges have looked at.
    pub(crate) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// One connection.
#[derive(Debug, Default)]
pub struct Connection<'t> {
    /// All messages, in order. A batch is followed by its parts.
    pub messages: Vec<Message<'t>>,
    /// The HTTP exchanges by number.
    pub exchanges: BTreeMap<u32, HttpExchange<'t>>,
    /// The exchanges with an authorization server, which is judged by few rules.
    pub(crate) issuers: BTreeMap<u32, HttpExchange<'t>>,
    /// The lines of standard error.
    pub stderr: Vec<(EventRef, &'t Bytes)>,
    /// When the process was started.
    pub started: Option<Duration>,
    /// When the process ended, and its exit code.
    pub exited: Option<(Duration, Option<i32>)>,
    /// Where and when the prober closed the standard input of the process.
    pub input_closed: Option<(EventRef, Duration)>,
    /// When the process got SIGTERM.
    pub terminated: Option<(EventRef, Duration)>,
    /// The line in the middle of which the process ended. It is no message.
    pub cut: Option<EventRef>,
    /// Where it was seen that the process left others behind.
    pub left_behind: Option<EventRef>,
    /// Where, when and how the connection ended.
    pub closed: Option<(EventRef, Duration, &'t Closed)>,
    /// What was said before `initialize`, in evidence of the legacy era.
    pub earlier: Vec<Message<'t>>,
    /// The client's `initialize` that ends its part in the modern era, in evidence of that.
    pub fallback: Option<EventRef>,
    /// The cases that were announced and not sent, because the connection had ended.
    pub unsent: Vec<&'t str>,
    /// Whether the trace lacks messages: its beginning, or those that had no room.
    pub(crate) has_gap: bool,
    /// Whether responses come on another exchange than their requests.
    is_sse: bool,
    /// Whether it is in the legacy era although the evidence is of the modern one: a probe has sent `initialize`, and the
    /// server has accepted it.
    pub(crate) is_legacy: bool,
    /// By index of a client's message, the index of its answer.
    answers: Vec<Option<usize>>,
    /// By id, the indices of the client's requests.
    requests: HashMap<String, Vec<usize>>,
    /// By id of the request, the indices of the client's cancellations.
    cancelled: HashMap<String, Vec<usize>>,
}

/// One HTTP request with its response.
#[derive(Debug, Default)]
pub struct HttpExchange<'t> {
    /// Where the head of the request stands.
    pub request: EventRef,
    /// When the request was sent.
    pub time: Duration,
    /// `POST`, `GET`, …
    pub method: &'t str,
    /// Path and query.
    pub target: &'t str,
    /// The headers of the request.
    pub request_headers: Option<&'t HeaderMap>,
    /// The body of the request, if it is no message.
    pub sent: Vec<u8>,
    /// The case of a probe, if a probe sent it.
    pub case: Option<&'t str>,
    /// Where the head of the response stands.
    pub response: Option<EventRef>,
    /// When it came.
    pub response_time: Option<Duration>,
    /// The status.
    pub status: Option<u16>,
    /// The headers of the response.
    pub headers: Option<&'t HeaderMap>,
    /// When the last part of the body came.
    pub last: Option<Duration>,
    /// The bytes of the body that are not a message; all bytes of an event stream that a probe read.
    pub body: Vec<u8>,
    /// Whether the body came whole, once it has ended.
    pub is_whole: Option<bool>,
    /// Where the response ended.
    pub ended: Option<EventRef>,
    /// When it did.
    pub ended_at: Option<Duration>,
    /// The indices of its messages, of both sides.
    pub messages: Vec<usize>,
}

impl HttpExchange<'_> {
    /// Where its heads stand.
    pub fn places(&self) -> Vec<EventRef> {
        [self.request].into_iter().chain(self.response).collect()
    }

    /// As [`HttpExchange::places`], with more.
    pub fn places_with(&self, more: impl IntoIterator<Item = EventRef>) -> Vec<EventRef> {
        self.places().into_iter().chain(more).collect()
    }

    /// A header of the response, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers?.get(name)?.to_str().ok()
    }

    /// A header of the request, if it is text.
    pub fn request_header(&self, name: &str) -> Option<&str> {
        self.request_headers?.get(name)?.to_str().ok()
    }

    /// The media type of the response, lower case and without parameters.
    pub fn media_type(&self) -> String {
        self.headers.map(media_type).unwrap_or_default()
    }

    /// Whether it resumes a stream: then the server sends again what was sent before.
    pub fn is_resumed(&self) -> bool {
        self.request_header(LAST_EVENT_HEADER).is_some()
    }

    /// Whether the response is an event stream.
    pub fn is_stream(&self) -> bool {
        self.headers.is_some_and(is_event_stream)
    }
}

impl<'t> Connection<'t> {
    pub(crate) fn new(number: usize, trace: &'t Trace, era: Era, transport: Transport) -> Connection<'t> {
        let (is_sse, has_gap) = (transport == Transport::Sse, trace.start() > 0 || trace.is_full());
        let mut connection = Connection { is_sse, has_gap, ..Connection::default() };
        // The cases that were announced, for the next message of the client in the same exchange.
        let mut cases: HashMap<Option<u32>, &'t str> = HashMap::new();
        // The exchanges whose body may be an answer.
        let mut asking: HashSet<u32> = HashSet::new();
        for (event, it) in trace.since(0) {
            let place = EventRef { connection: number, event };
            let exchange = it.exchange.map(|number| connection.exchanges.entry(number).or_default());
            match &it.kind {
                EventKind::Case(case) => {
                    if let Some(exchange) = exchange {
                        exchange.case = Some(case);
                    }
                    let before = cases.insert(it.exchange, case);
                    connection.unsent.extend(before.filter(|_| it.exchange.is_none()));
                }
                EventKind::Frame(frame) => {
                    let is_sent = frame.direction == Direction::ClientToServer;
                    let mut exchange = exchange;
                    if let Some(exchange) = exchange.as_mut().filter(|_| !is_sent) {
                        exchange.last = Some(it.at);
                    }
                    let may_answer = |exchange: &HttpExchange<'_>, number| {
                        let is_refused = exchange.status.is_some_and(|status| status >= 400);
                        !is_refused && (exchange.method != "POST" || asking.contains(&number))
                    };
                    if let (Some(exchange), Some(number), false) = (exchange, it.exchange, is_sent)
                        && (is_of_issuer(exchange) || (!may_answer(exchange, number) && !is_json_rpc(&frame.bytes)))
                    {
                        exchange.body.extend_from_slice(&frame.bytes);
                        continue;
                    }
                    if let (Some(number), true) = (it.exchange, is_sent)
                        && !matches!(kind(&json(&frame.bytes)), Kind::Notification | Kind::Response)
                    {
                        asking.insert(number);
                    }
                    let announced =
                        |cases: &mut HashMap<_, _>| cases.remove(&it.exchange).or_else(|| cases.remove(&None));
                    let case = if is_sent { announced(&mut cases) } else { None };
                    connection.add(place, it.at, frame.direction, &frame.bytes, it.exchange, case);
                }
                EventKind::HttpRequest { method, target, headers } => {
                    if let Some(exchange) = exchange {
                        (exchange.request, exchange.time) = (place, it.at);
                        (exchange.method, exchange.target) = (method.as_str(), target);
                        exchange.request_headers = Some(headers);
                    }
                }
                EventKind::HttpResponse { status, headers } => {
                    if let Some(exchange) = exchange {
                        (exchange.response, exchange.response_time) = (Some(place), Some(it.at));
                        exchange.status = Some(status.as_u16());
                        exchange.headers = Some(headers);
                    }
                }
                EventKind::HttpBody { direction: Direction::ServerToClient, bytes } => {
                    if let Some(exchange) = exchange {
                        exchange.body.extend_from_slice(bytes);
                        exchange.last = Some(it.at);
                    }
                }
                EventKind::HttpBody { direction: Direction::ClientToServer, bytes } => {
                    if let Some(exchange) = exchange {
                        exchange.sent.extend_from_slice(bytes);
                    }
                }
                EventKind::HttpEnd { is_whole } => {
                    if let Some(exchange) = exchange {
                        (exchange.is_whole, exchange.ended) = (Some(*is_whole), Some(place));
                        exchange.ended_at = Some(it.at);
                    }
                }
                EventKind::Stderr(line) => connection.stderr.push((place, line)),
                EventKind::Process(event) => match event {
                    ProcessEvent::Started { .. } => connection.started = Some(it.at),
                    ProcessEvent::InputClosed => connection.input_closed = Some((place, it.at)),
                    ProcessEvent::Terminated => connection.terminated = Some((place, it.at)),
                    ProcessEvent::LeftBehind => connection.left_behind = Some(place),
                    ProcessEvent::Exited { code } => connection.exited = Some((it.at, *code)),
                },
                EventKind::Closed(closed) => connection.closed = Some((place, it.at, closed)),
                EventKind::Opened(_) => {}
            }
        }
        connection.unsent.extend(cases.remove(&None));
        connection.cut = connection.take_cut();
        connection.exchanges.retain(|_, http| !http.target.starts_with(CANARY));
        let (issuers, exchanges) =
            std::mem::take(&mut connection.exchanges).into_iter().partition(|(_, http)| is_of_issuer(http));
        (connection.issuers, connection.exchanges) = (issuers, exchanges);
        connection.keep_era(era);
        connection.index();
        connection.is_legacy = era == Era::Modern
            && connection.calls().any(|call| call.method() == "initialize" && call.result().is_some());
        connection
    }

    fn add(
        &mut self,
        place: EventRef,
        time: Duration,
        direction: Direction,
        bytes: &'t Bytes,
        exchange: Option<u32>,
        case: Option<&'t str>,
    ) {
        let message = |value: Value, is_in_batch| {
            let kind = kind(&value);
            Message { place, time, direction, bytes, value, kind, exchange, case, is_in_batch }
        };
        // Over HTTP a byte order mark is no part of any JSON.
        let value = json(if exchange.is_none() { without_mark(bytes) } else { bytes });
        let parts = value.as_array().cloned().unwrap_or_default();
        self.messages.push(message(value, false));
        self.messages.extend(parts.into_iter().map(|part| message(part, true)));
    }

    /// Takes the last line of a process that ended by itself, if it is the beginning of a message.
    fn take_cut(&mut self) -> Option<EventRef> {
        self.started.filter(|_| self.ended_by_server())?;
        let last = self.messages.iter().rposition(Message::is_from_server)?;
        let line = self.messages[last].bytes;
        let is_cut = line.trim_ascii_start().starts_with(b"{")
            && serde_json::from_slice::<IgnoredAny>(line).is_err_and(|error| error.is_eof());
        is_cut.then(|| self.messages.remove(last).place)
    }

    /// Drops the part of a trace in which the client tried the other era: what comes before its `initialize`, or what
    /// comes from it on. An `initialize` that is a case of a probe decides nothing.
    fn keep_era(&mut self, era: Era) {
        let initialize =
            |it: &Message<'_>| !it.is_from_server() && it.case.is_none() && it.method() == Some("initialize");
        let Some(at) = self.messages.iter().position(initialize) else { return };
        match era {
            Era::Modern => {
                self.fallback = self.messages.get(at).map(|it| it.place);
                self.messages.truncate(at);
            }
            Era::Legacy => self.earlier = self.messages.drain(..at).collect(),
        }
    }

    /// Finds the answer of each message of the client, and the messages of each exchange.
    fn index(&mut self) {
        self.answers = vec![None; self.messages.len()];
        let mut waiting: HashMap<String, VecDeque<usize>> = HashMap::new();
        // Responses without the id of a request that waits.
        let mut strays = HashSet::new();
        for (index, message) in self.messages.iter().enumerate() {
            if let Some(exchange) = message.exchange.and_then(|number| self.exchanges.get_mut(&number)) {
                exchange.messages.push(index);
            }
            let id = message.usable_id();
            if !message.is_from_server() && message.method() == Some("notifications/cancelled") {
                let id = message.at("/params/requestId").to_string();
                self.cancelled.entry(id).or_default().push(index);
            }
            if !message.is_from_server() {
                if let (Kind::Request, Some(id)) = (message.kind, message.id()) {
                    self.requests.entry(id.to_string()).or_default().push(index);
                }
                if let (Kind::Request, Some(id)) = (message.kind, id) {
                    waiting.entry(id.to_string()).or_default().push_back(index);
                }
                continue;
            }
            if message.kind != Kind::Response {
                continue;
            }
            // An id of the other type is wrong, and says which request is meant.
            let ids = id.into_iter().flat_map(|id| [id.to_string(), as_other_type(id)]);
            // Of requests with one id, that of the same exchange: they may be of several clients.
            let is_own = |asked: &usize| self.messages.get(*asked).is_some_and(|it| it.exchange == message.exchange);
            let answered = |waiting: &mut VecDeque<usize>| {
                let own = waiting.iter().position(is_own).unwrap_or_default();
                waiting.remove(own)
            };
            match ids.into_iter().find_map(|id| answered(waiting.get_mut(&id)?)) {
                Some(asked) => drop(self.answers[asked].get_or_insert(index)),
                None => drop(strays.insert(index)),
            }
        }
        self.place(&strays);
    }

    /// Finds what responses without the id of a request belong to: over HTTP the message of their exchange, else the
    /// last frame that no response with its id answers. Several such frames may be on their way to a slow server; then it is
    /// not known.
    fn place(&mut self, strays: &HashSet<usize>) {
        let mut sent: HashMap<Option<u32>, usize> = HashMap::new();
        // The frames that the server may not have read yet.
        let mut unread: Vec<usize> = Vec::new();
        let asked = self.answers.iter().enumerate().filter_map(|(asked, answer)| Some(((*answer)?, asked)));
        let asked: HashMap<usize, usize> = asked.collect();
        for (index, message) in self.messages.iter().enumerate() {
            if let Some(asked) = asked.get(&index) {
                unread.retain(|earlier| earlier > asked);
            }
            let is_shared =
                |number: &u32| self.is_sse && self.exchanges.get(number).is_some_and(HttpExchange::is_stream);
            let stream = message.exchange.filter(|number| !is_shared(number));
            if !message.is_from_server() {
                let has_answer = (stream.is_none() || self.is_sse) && self.answers[index].is_some();
                if !has_answer && !message.is_in_batch {
                    unread.extend(stream.is_none().then_some(index));
                    sent.extend([stream].into_iter().chain(self.is_sse.then_some(None)).map(|stream| (stream, index)));
                }
            } else if strays.contains(&index)
                && (stream.is_some() || (message.usable_id().is_none() && unread.len() <= 1))
                && let Some(asked) = sent.get(&stream)
            {
                self.answers[*asked].get_or_insert(index);
            }
        }
    }

    /// Everything that the client sent as a message, with what came back.
    pub fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        let sent = self.messages.iter().enumerate().filter(|(_, message)| !message.is_from_server());
        sent.map(|(index, request)| self.call(index, request))
    }

    /// The requests of the client of a method, valid or not, with what came back.
    pub fn calls_of<'c>(&'c self, method: &'c str) -> impl Iterator<Item = Call<'c>> {
        let is_sent =
            |it: &Message<'_>| !it.is_from_server() && it.kind == Kind::Request && it.method() == Some(method);
        let sent = self.messages.iter().enumerate().filter(move |(_, message)| is_sent(message));
        sent.map(|(index, request)| self.call(index, request))
    }

    /// The last request of the client with an id before a message, with what came back.
    pub(crate) fn last_request(&self, id: &Value, before: &Message<'_>) -> Option<Call<'_>> {
        let indices = self.requests.get(&id.to_string())?.iter().rev();
        let mut earlier = indices.map(|index| (*index, &self.messages[*index]));
        earlier.find(|(_, request)| request.place < before.place).map(|(index, request)| self.call(index, request))
    }

    fn call<'c>(&'c self, index: usize, request: &'c Message<'t>) -> Call<'c> {
        #[cfg(test)]
        LOOKED_AT.set(LOOKED_AT.get() + 1);
        Call {
            request,
            response: self.answers[index].map(|answer| &self.messages[answer]),
            http: request
                .exchange
                .and_then(|number| self.exchanges.get(&number))
                // HTTP+SSE accepts every POST before it answers on the stream.
                .filter(|http| !self.is_sse || http.status.is_none_or(|status| status >= 300)),
            is_answered_by_status: !self.is_sse,
        }
    }

    /// The requests of the server, each with the responses of the client that have its id.
    pub fn asks(&self) -> impl Iterator<Item = Ask<'_>> {
        let mut responses: HashMap<String, Vec<&Message<'_>>> = HashMap::new();
        for message in self.messages.iter().filter(|it| !it.is_from_server() && it.kind == Kind::Response) {
            responses.entry(key(message.id())).or_default().push(message);
        }
        let asked = self.messages.iter().filter(|it| it.is_from_server() && it.kind == Kind::Request);
        asked.map(move |request| {
            let own = responses.get(&key(request.id())).into_iter().flatten().copied();
            Ask { request, responses: own.filter(|it| it.place > request.place).collect() }
        })
    }

    /// What the client sent to cancel a request.
    pub(crate) fn cancellations<'c>(&'c self, request: &'c Message<'_>) -> impl Iterator<Item = &'c Message<'t>> {
        let indices = request.id().and_then(|id| self.cancelled.get(&id.to_string())).into_iter().flatten();
        indices.filter_map(|index| self.messages.get(*index))
    }

    /// How long an answer to a message was waited for, if none came.
    pub fn waited(&self, message: &Message<'_>) -> Duration {
        self.end().saturating_sub(message.time)
    }

    /// How long the slowest answer took.
    pub fn slowest_answer(&self) -> Duration {
        self.calls().filter_map(|call| call.took()).max().unwrap_or_default()
    }

    /// How long the server said nothing at all after a message, at the end.
    pub(crate) fn silence_after(&self, message: &Message<'_>) -> Duration {
        let last = self.messages.iter().rfind(|it| it.is_from_server());
        self.end().saturating_sub(last.map_or(message.time, |last| last.time.max(message.time)))
    }

    /// When the client ended its side, or the last message.
    fn end(&self) -> Duration {
        let end = self.input_closed.map(|(_, at)| at).or(self.closed.map(|(_, at, _)| at));
        end.or(self.messages.last().map(|last| last.time)).unwrap_or_default()
    }

    /// What the client sent.
    pub fn sent(&self) -> impl Iterator<Item = &Message<'t>> {
        self.messages.iter().filter(|it| !it.is_from_server())
    }

    /// What the server sent.
    pub fn received(&self) -> impl Iterator<Item = &Message<'t>> {
        self.messages.iter().filter(|it| it.is_from_server())
    }

    /// The first message of the server.
    pub fn first_word(&self) -> Option<&Message<'t>> {
        self.messages.iter().find(|it| it.is_from_server())
    }

    /// Whether the server has said something before its standard input was closed. A process that has not may only be
    /// slow to start.
    pub fn has_answered(&self) -> bool {
        let closed = self.input_closed.map(|(place, _)| place);
        self.first_word().is_some_and(|first| closed.is_none_or(|closed| first.place < closed))
    }

    /// Where and how the connection ended, if the client closed it.
    pub fn closed_by_client(&self) -> Option<(EventRef, &'t Closed)> {
        self.closed.filter(|(.., closed)| closed.by == ClosedBy::Client).map(|(place, _, closed)| (place, closed))
    }

    /// Whether the server ended the connection before the client did: then it got no end of its standard input before.
    pub fn ended_by_server(&self) -> bool {
        self.closed.is_some_and(|(place, _, closed)| {
            closed.by == ClosedBy::Server && self.input_closed.is_none_or(|(input_closed, _)| place < input_closed)
        })
    }

    /// The server's messages of an exchange.
    pub fn messages_of<'c>(&'c self, exchange: &'c HttpExchange<'t>) -> impl Iterator<Item = &'c Message<'t>> {
        let messages = exchange.messages.iter().filter_map(|index| self.messages.get(*index));
        messages.filter(|message| message.is_from_server())
    }

    /// The server's messages between a request and its response, on the same stream.
    pub fn on_the_way<'c>(&'c self, call: &'c Call<'c>) -> impl Iterator<Item = &'c Message<'t>> {
        let from = self.messages.partition_point(|it| it.place <= call.request.place);
        let to = call
            .response
            .map_or(self.messages.len(), |response| self.messages.partition_point(|it| it.place < response.place));
        let between = self.messages.get(from..to).unwrap_or_default().iter();
        between.filter(|it| it.is_from_server() && (self.is_sse || it.exchange == call.request.exchange))
    }
}

/// Whether a probe asked an authorization server.
fn is_of_issuer(http: &HttpExchange<'_>) -> bool {
    http.case.is_some_and(|case| is_case(case, ISSUER))
}

/// The JSON of an id; empty if there is none.
fn key(id: Option<&Value>) -> String {
    id.map(Value::to_string).unwrap_or_default()
}

/// The JSON of a frame; null if it is none. Bytes that are not UTF-8 have a check of their own.
pub(crate) fn json(bytes: &[u8]) -> Value {
    serde_json::from_str(&String::from_utf8_lossy(bytes)).unwrap_or_default()
}

/// Whether a line is a header before a message, as the Language Server Protocol has it.
pub fn is_header(line: &[u8]) -> bool {
    line.to_ascii_lowercase().starts_with(b"content-length:")
}

/// The bytes of a line without a byte order mark.
pub fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

/// The JSON of an id with the same digits and the other type.
pub(crate) fn as_other_type(id: &Value) -> String {
    match id.as_str() {
        Some(text) => text.to_owned(),
        None => Value::String(id.to_string()).to_string(),
    }
}
