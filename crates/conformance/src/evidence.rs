//! The traffic with one server, indexed for judges.

use std::cell::Cell;

use rehearse_protocol::{
    Direction, Era, EventKind, Trace, Transport, Version,
    names::{META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_VERSION, VERSION_HEADER},
};
use serde_json::Value;

use crate::{Ask, Call, Connection, Facts, HttpExchange, Kind, Message, Role, case::is_case, connection::json};

/// The keys that only modern requests have in `_meta`.
pub(crate) const MODERN_KEYS: [&str; 3] = [META_VERSION, META_CLIENT_CAPABILITIES, META_CLIENT_INFO];
/// The key of the protocol version in the `_meta` of a modern request.
pub(crate) const VERSION_POINTER: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

thread_local! {
    /// What the judge that runs has looked for so far.
    static SOUGHT: Cell<Sought> = const { Cell::new(Sought { has_missed: false, is_sent: false, is_answered: false }) };
}

/// What a judge has looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sought {
    /// Whether a case was still to be sent when the server ended the connection.
    pub(crate) has_missed: bool,
    /// Whether a case was sent.
    pub(crate) is_sent: bool,
    /// Whether the answer to one came.
    pub(crate) is_answered: bool,
}

/// Runs a judge. Returns what it has looked for.
pub(crate) fn sought(judge: impl FnOnce()) -> Sought {
    SOUGHT.take();
    judge();
    SOUGHT.take()
}

/// Notes that a judge has found a case that was sent.
fn note_sent(is_answered: bool) {
    let sought = SOUGHT.get();
    SOUGHT.set(Sought { is_sent: true, is_answered: sought.is_answered || is_answered, ..sought });
}

/// All connections with one server in one version over one transport.
#[derive(Debug)]
pub struct Evidence<'t> {
    /// The version by which the server is judged.
    pub version: Version,
    /// The transport.
    pub transport: Transport,
    /// What is known of the server.
    pub facts: Facts,
    /// The connections, in the order of the traces.
    pub connections: Vec<Connection<'t>>,
    /// If a gateway is checked, its connections with its upstream. They are numbered on.
    pub upstream: Vec<Connection<'t>>,
}

impl<'t> Evidence<'t> {
    /// Indexes the traces. Of a trace in which a client tried both eras, only the part in the era of `version` counts.
    /// Capabilities that `facts` does not have are read from the traces.
    pub fn new(traces: &[&'t Trace], version: Version, transport: Transport, facts: Facts) -> Evidence<'t> {
        let connections = traces.iter().enumerate();
        let connections =
            connections.map(|(number, trace)| Connection::new(number, trace, version.era(), transport)).collect();
        let mut evidence = Evidence { version, transport, facts, connections, upstream: Vec::new() };
        if evidence.facts.capabilities.is_null() {
            let found = evidence.calls().filter(|call| matches!(call.method(), "initialize" | "server/discover"));
            let found = found.filter_map(|call| call.result()?.get("capabilities")).next().cloned();
            evidence.facts.capabilities = found.unwrap_or_default();
        }
        evidence
    }

    /// Adds the traces of the upstream of a gateway, each in the era in which it was used.
    #[must_use]
    pub fn with_upstream(mut self, traces: &[&'t Trace], transport: Transport) -> Evidence<'t> {
        let first = self.connections.len();
        let era = |trace| Evidence::versions(trace).first().map_or(self.version, |version| *version).era();
        let numbered = traces.iter().enumerate();
        self.upstream =
            numbered.map(|(number, trace)| Connection::new(first + number, trace, era(trace), transport)).collect();
        self
    }

    /// The versions that a client and a server used in a trace.
    pub fn versions(trace: &Trace) -> Vec<Version> {
        let mut versions = Vec::new();
        for era in [Era::Legacy, Era::Modern] {
            let connection = Connection::new(0, trace, era, Transport::Http);
            let calls: Vec<_> = connection.calls().collect();
            let version = match era {
                Era::Legacy => calls
                    .iter()
                    .filter(|call| call.method() == "initialize")
                    .find_map(|call| call.result()?.get("protocolVersion")?.as_str()?.parse::<Version>().ok()),
                Era::Modern => calls
                    .iter()
                    .filter(|call| call.result().is_some())
                    .find_map(|call| call.request.at(VERSION_POINTER).as_str()?.parse::<Version>().ok()),
            };
            versions.extend(version);
        }
        versions
    }

    /// The version in which a client is judged that has agreed on none: the one that it asks for, else the newest with
    /// the handshake that it lacks. `None` if it has sent no message.
    pub fn asked_version(trace: &Trace) -> Option<Version> {
        let sent = trace.frames().filter(|frame| frame.direction == Direction::ClientToServer);
        let messages: Vec<_> = sent.map(|frame| json(&frame.bytes)).collect();
        let asked = messages.iter().find_map(|message| {
            let version = message.pointer(VERSION_POINTER).or_else(|| message.pointer("/params/protocolVersion"))?;
            version.as_str()?.parse::<Version>().ok()
        });
        let is_modern = messages.iter().any(|message| {
            let meta = message.pointer("/params/_meta").and_then(Value::as_object);
            message.get("method").is_some_and(|method| method == "server/discover")
                || meta.is_some_and(|meta| MODERN_KEYS.iter().any(|key| meta.contains_key(*key)))
        });
        let named = || {
            let heads = trace.events().filter_map(|event| match &event.kind {
                EventKind::HttpRequest { headers, .. } => headers.get(VERSION_HEADER),
                _ => None,
            });
            heads.filter_map(|version| version.to_str().ok()?.parse::<Version>().ok()).next()
        };
        let guessed = || Some(if is_modern { Version::LATEST } else { Version::LATEST_LEGACY });
        asked.or_else(|| named().or_else(guessed).filter(|_| !messages.is_empty()))
    }

    /// All messages.
    pub fn messages(&self) -> impl Iterator<Item = &Message<'t>> {
        self.connections.iter().flat_map(|connection| &connection.messages)
    }

    /// What the server sent in the era of the version.
    pub fn received(&self) -> impl Iterator<Item = &Message<'t>> {
        let connections = self.connections.iter().filter(|connection| !connection.is_legacy);
        connections.flat_map(|connection| &connection.messages).filter(|message| message.is_from_server())
    }

    /// What the client sent in the era of the version.
    pub fn sent(&self) -> impl Iterator<Item = &Message<'t>> {
        let connections = self.connections.iter().filter(|connection| !connection.is_legacy);
        connections.flat_map(|connection| &connection.messages).filter(|message| !message.is_from_server())
    }

    /// What the side that is checked sent in the era of the version.
    pub fn own(&self) -> impl Iterator<Item = &Message<'t>> {
        let is_server = self.facts.role == Role::Server;
        let connections = self.connections.iter().filter(|connection| !connection.is_legacy);
        let messages = connections.flat_map(|connection| &connection.messages);
        messages.filter(move |message| message.is_from_server() == is_server)
    }

    /// The requests of the server, each with the responses of the client to it.
    pub fn asks(&self) -> impl Iterator<Item = Ask<'_>> {
        self.connections.iter().filter(|connection| !connection.is_legacy).flat_map(Connection::asks)
    }

    /// The requests of the server of a method.
    pub fn asks_of<'e>(&'e self, method: &'e str) -> impl Iterator<Item = Ask<'e>> {
        self.asks().filter(move |ask| ask.request.method() == Some(method))
    }

    /// The responses of the server.
    pub fn responses(&self) -> impl Iterator<Item = &Message<'t>> {
        self.received().filter(|message| message.kind == Kind::Response)
    }

    /// The notifications of the server of a method.
    pub fn notifications<'e>(&'e self, method: &'e str) -> impl Iterator<Item = &'e Message<'t>> {
        self.received().filter(move |it| it.kind == Kind::Notification && it.method() == Some(method))
    }

    /// The requests of the server.
    pub fn server_requests(&self) -> impl Iterator<Item = &Message<'t>> {
        self.received().filter(|message| message.kind == Kind::Request)
    }

    /// Everything that the client sent as a message, with what came back.
    pub fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        self.connections.iter().flat_map(Connection::calls)
    }

    /// The requests of the client of a method, valid or not.
    pub fn calls_of<'e>(&'e self, method: &'e str) -> impl Iterator<Item = Call<'e>> {
        self.connections.iter().flat_map(move |connection| connection.calls_of(method))
    }

    /// The results of a method.
    pub fn results_of<'e>(&'e self, method: &'e str) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
        self.calls_of(method).filter_map(|call| Some((call, call.result()?)))
    }

    /// What a probe sent as this case, or as a case below it: `bad-method` finds `bad-method/ping` as well.
    pub fn case<'e>(&'e self, case: &'e str) -> impl Iterator<Item = Call<'e>> {
        self.look_for(case);
        let sent = self.calls().filter(move |call| call.request.case.is_some_and(|it| is_case(it, case)));
        sent.inspect(|call| note_sent(call.is_answered()))
    }

    /// The HTTP exchanges, with the connection of each.
    pub fn exchanges(&self) -> impl Iterator<Item = (&Connection<'t>, &HttpExchange<'t>)> {
        self.connections.iter().flat_map(|connection| connection.exchanges.values().map(move |it| (connection, it)))
    }

    /// The HTTP exchanges of a case, or of a case below it.
    pub fn http_case<'e>(&'e self, case: &'e str) -> impl Iterator<Item = (&'e Connection<'t>, &'e HttpExchange<'t>)> {
        self.look_for(case);
        let all = self.connections.iter().flat_map(|connection| {
            connection.exchanges.values().chain(connection.issuers.values()).map(move |it| (connection, it))
        });
        let sent = all.filter(move |(_, exchange)| exchange.case.is_some_and(|it| is_case(it, case)));
        sent.inspect(|(_, exchange)| note_sent(exchange.status.is_some()))
    }

    /// Notes that a judge looks for a case.
    pub(crate) fn look_for(&self, case: &str) {
        let mut ended = self.connections.iter().filter(|connection| connection.ended_by_server());
        if ended.any(|connection| connection.unsent.iter().any(|it| is_case(it, case))) {
            SOUGHT.set(Sought { has_missed: true, ..SOUGHT.get() });
        }
    }

    /// Whether all connections have ended: what is still missing does not come.
    pub fn is_over(&self) -> bool {
        self.connections.iter().all(|connection| connection.closed.is_some())
    }

    /// Whether a trace lacks messages, or its end: what is missing may violate what the rest keeps.
    pub fn is_cut(&self) -> bool {
        !self.is_over() || self.has_gap()
    }

    /// Whether messages that came are in no trace.
    pub fn has_gap(&self) -> bool {
        self.connections.iter().chain(&self.upstream).any(|connection| connection.has_gap)
    }

    /// Whether a process has said nothing yet, and may only be slow: others took long to start.
    pub fn is_starting(&self, connection: &Connection<'_>) -> bool {
        let Some(started) = connection.started.filter(|_| !connection.has_answered() && !connection.ended_by_server())
        else {
            return false;
        };
        let took = self.connections.iter().filter_map(|it| it.first_word()?.time.checked_sub(it.started?));
        let end = connection.input_closed.map(|(_, at)| at).or(connection.closed.map(|(_, at, _)| at));
        let waited = end.unwrap_or_default().saturating_sub(started);
        waited < took.max().unwrap_or_default() * 3 + self.facts.patience
    }

    /// Whether requests are authorized.
    pub fn is_authorized(&self) -> bool {
        self.calls().any(|call| call.http.is_some_and(|http| http.request_header("authorization").is_some()))
    }

    /// Whether the version is of the modern era.
    pub fn is_modern(&self) -> bool {
        self.version.era() == Era::Modern
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::{Closed, Frame, ProcessEvent};
    use serde_json::json;

    use super::*;
    use crate::checks;

    /// A process that gets `initialize` at once and answers after this many milliseconds, if at all, and whose standard
    /// input is closed.
    fn process(answered: Option<u64>, closed: u64) -> Trace {
        let mut trace = Trace::default();
        let mut push = |at: u64, kind: EventKind| trace.push(Duration::from_millis(at), kind);
        let frame = |at: u64, direction, message: Value| {
            EventKind::Frame(Frame::new(direction, Duration::from_millis(at), message.to_string().into()))
        };
        push(0, EventKind::Process(ProcessEvent::Started { pid: 1 }));
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
        push(0, frame(0, Direction::ClientToServer, initialize));
        let answer = |at| frame(at, Direction::ServerToClient, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
        if let Some(at) = answered.filter(|at| *at < closed) {
            push(at, answer(at));
        }
        push(closed, EventKind::Process(ProcessEvent::InputClosed));
        if let Some(at) = answered.filter(|at| *at >= closed) {
            push(at, answer(at));
        }
        let exited = closed.max(answered.unwrap_or_default()) + 5000;
        push(exited, EventKind::Closed(Closed::by_server("the server closed its standard output")));
        push(exited, EventKind::Process(ProcessEvent::Exited { code: Some(0) }));
        trace
    }

    /// Whether a check is violated by two processes.
    fn is_violated(check: &str, one: &Trace, other: &Trace) -> bool {
        let facts = Facts { capabilities: json!({}), patience: Duration::from_secs(5), ..Facts::default() };
        let evidence = Evidence::new(&[one, other], Version::V2025_06_18, Transport::Stdio, facts);
        let check = checks().iter().find(|it| it.id == check);
        check.is_some_and(|check| !check.judge(&evidence).judgement.violations.is_empty())
    }

    #[test]
    fn a_process_that_is_not_up_in_time_is_only_slow_if_others_are() {
        let (slow, fast) = (process(Some(4000), 30_000), process(Some(50), 30_000));
        let unanswered = "rpc.timeout.answers-every-request";
        assert!(!is_violated(unanswered, &slow, &process(None, 12_000)));
        assert!(is_violated(unanswered, &slow, &process(None, 20_000)));
        assert!(is_violated(unanswered, &fast, &process(None, 12_000)));
        let late = process(Some(13_000), 12_000);
        for check in ["io.stdout.flush", "ping.result.prompt"] {
            assert!(!is_violated(check, &slow, &late), "{check}");
        }
        assert!(!is_violated("io.exit.on-stdin-close-legacy", &late, &process(None, 12_000)));
        // An exit after 5 s is late for a process that starts at once, and not for one that takes 4 s to start.
        assert!(is_violated("io.exit.on-stdin-close-legacy", &fast, &late));
        assert!(!is_violated("io.exit.on-stdin-close-legacy", &slow, &late));
    }
}
