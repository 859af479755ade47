//! Judges traffic that no probe sent.

use std::collections::{BTreeMap, BTreeSet};

use rehearse_protocol::{Direction, Era, EventKind, Trace, Transport, Version};

use crate::{Check, CheckOutcome, CheckVerdict, Evidence, Facts, Role, judge_all};

/// The recorded traffic of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'t> {
    /// Its events.
    pub trace: &'t Trace,
    /// The version that the client asked for, if it is known.
    pub asked: Option<Version>,
}

/// What the checks say of recorded traffic.
#[derive(Debug, Default)]
pub struct Judged<'t> {
    /// Each version that was spoken, newest first.
    pub versions: Vec<JudgedVersion<'t>>,
    /// How many connections could not be judged: no version was agreed on in them, or their beginning is not recorded.
    pub left_out: usize,
}

/// What the checks say of the traffic in one version.
#[derive(Debug)]
pub struct JudgedVersion<'t> {
    /// The version.
    pub version: Version,
    /// The connections in it.
    pub traces: Vec<&'t Trace>,
    /// The outcome of every check.
    pub outcomes: Vec<(&'static Check, CheckOutcome)>,
}

/// Judges the traffic with one server over one transport, in each version that was spoken. A connection belongs to the
/// version that the client asked for, if the server speaks that on any connection, else to those that were spoken in it.
/// In traffic that no probe has sent, only passive checks are judged.
pub fn judge_recorded<'t>(
    recorded: impl IntoIterator<Item = Recorded<'t>>,
    transport: Transport,
    facts: &Facts,
) -> Judged<'t> {
    let (whole, cut): (Vec<_>, Vec<_>) = recorded.into_iter().partition(|it| it.trace.start() == 0);
    let whole: Vec<_> = whole.into_iter().map(|it| (it, Evidence::versions(it.trace))).collect();
    let endpoints: BTreeSet<_> = whole
        .iter()
        .filter(|(_, versions)| !versions.is_empty())
        .flat_map(|(it, _)| requests(it.trace))
        .filter_map(|(method, target)| (method == "POST").then_some(target))
        .collect();
    let spoken: BTreeSet<_> = whole.iter().flat_map(|(_, versions)| versions.iter().copied()).collect();
    let mut judged = Judged { versions: Vec::new(), left_out: cut.len() };
    let has_handshake = facts.has_handshake || whole.iter().any(|(it, _)| has_handshake(it.trace));
    let facts = Facts { has_handshake, ..facts.clone() };
    let mut by_version: BTreeMap<Version, Vec<&Trace>> = BTreeMap::new();
    for (Recorded { trace, asked }, mut versions) in whole {
        // A client that tried 2026-07-28 in vain is judged by what it tried, too.
        let asked_in_vain = Evidence::asked_version(trace).filter(|asked| {
            let is_new = asked.era() == Era::Modern && !versions.contains(asked);
            facts.role == Role::Client && (versions.is_empty() || is_new)
        });
        versions.extend(asked_in_vain);
        if facts.role == Role::Client && versions.len() < 2 && !spoken.is_empty() && is_refused(trace) {
            versions = spoken.iter().copied().collect();
        } else if facts.role == Role::Client && is_bare(trace, &endpoints) {
            versions = spoken.iter().copied().filter(|version| version.era() == Era::Legacy).collect();
        }
        let versions = asked.filter(|asked| spoken.contains(asked)).map_or(versions, |asked| vec![asked]);
        // A second process is tried with a server that says nothing; the one that is not used may have said nothing at all.
        let is_unused = !spoken.is_empty() && is_silent(trace);
        judged.left_out += usize::from(versions.is_empty() && !is_unused);
        versions.into_iter().for_each(|version| by_version.entry(version).or_default().push(trace));
    }
    for (version, traces) in by_version.into_iter().rev() {
        let evidence = Evidence::new(&traces, version, transport, facts.clone());
        let mut outcomes: Vec<_> = judge_all(&evidence);
        let is_probed = traces.iter().any(|trace| trace.events().any(|it| matches!(it.kind, EventKind::Case(_))));
        // A judge of a client's check looks for what it needs.
        let is_active = |check: &Check| check.role() == Role::Server && !is_probed && !check.is_passive();
        let active = outcomes.iter_mut().filter(|(check, _)| is_active(check));
        for (_, outcome) in active.filter(|(_, outcome)| outcome.verdict != CheckVerdict::NotApplicable) {
            let reason = "it needs what only a probe sends".to_owned();
            *outcome = CheckOutcome::without(CheckVerdict::NotTested, reason, outcome.level);
        }
        judged.versions.push(JudgedVersion { version, traces, outcomes });
    }
    judged
}

/// Whether nothing was answered in it for lack of a token. The mock has one such trace for all connections.
fn is_refused(trace: &Trace) -> bool {
    let mut statuses = trace.events().filter_map(|event| match &event.kind {
        EventKind::HttpResponse { status, .. } => Some(status.as_u16()),
        _ => None,
    });
    statuses.any(|status| status == 401) && Evidence::versions(trace).is_empty()
}

/// Whether it has only requests at an endpoint without a message, as a GET or a DELETE that names no session.
fn is_bare(trace: &Trace, endpoints: &BTreeSet<&str>) -> bool {
    let is_removed = |(method, target): (&str, &str)| matches!(method, "GET" | "DELETE") && endpoints.contains(target);
    trace.frames().all(|frame| frame.direction == Direction::ServerToClient) && requests(trace).any(is_removed)
}

/// The methods and targets of the HTTP requests.
fn requests(trace: &Trace) -> impl Iterator<Item = (&str, &str)> {
    trace.events().filter_map(|event| match &event.kind {
        EventKind::HttpRequest { method, target, .. } => Some((method.as_str(), target.as_str())),
        _ => None,
    })
}

/// Whether the server is a process that has said nothing.
fn is_silent(trace: &Trace) -> bool {
    let is_process = trace.events().any(|event| matches!(event.kind, EventKind::Process(_)));
    is_process && trace.frames().all(|frame| frame.direction == Direction::ClientToServer)
}

/// Whether the client has sent `initialize`.
fn has_handshake(trace: &Trace) -> bool {
    let mut sent = trace.frames().filter(|frame| frame.direction == Direction::ClientToServer);
    sent.any(|frame| {
        let message = serde_json::from_slice::<serde_json::Value>(&frame.bytes).unwrap_or_default();
        message["method"] == "initialize"
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn trace(frames: &[(Direction, &'static str)]) -> Trace {
        let mut trace = Trace::default();
        for (direction, text) in frames {
            trace.push_frame(Duration::ZERO, *direction, bytes::Bytes::from_static(text.as_bytes()));
        }
        trace
    }

    #[test]
    fn a_get_that_names_no_session_is_of_the_client_that_has_one() {
        let headers = |names: &[(&'static str, &'static str)]| {
            let pairs = names
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)));
            pairs.collect::<http::HeaderMap>()
        };
        let head = |trace: &mut Trace, method: http::Method, target: &str, names: &[(&'static str, &'static str)]| {
            let kind = EventKind::HttpRequest { method, target: target.to_owned(), headers: headers(names) };
            trace.push_event(rehearse_protocol::Event { at: Duration::ZERO, exchange: Some(0), kind });
        };
        let mut session = Trace::default();
        head(&mut session, http::Method::POST, "/mcp", &[]);
        for (direction, text) in [
            (Direction::ClientToServer, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#),
            (Direction::ServerToClient, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#),
        ] {
            let kind = EventKind::Frame(rehearse_protocol::Frame::new(direction, Duration::ZERO, text.into()));
            session.push_event(rehearse_protocol::Event { at: Duration::ZERO, exchange: Some(0), kind });
        }
        let facts = Facts { role: Role::Client, ..Facts::default() };
        let traces = |target| {
            let mut bare = Trace::default();
            head(&mut bare, http::Method::GET, target, &[("accept", "text/event-stream")]);
            let all = [&session, &bare].map(|trace| Recorded { trace, asked: None });
            judge_recorded(all, Transport::Http, &facts).versions.iter().map(|it| it.traces.len()).collect::<Vec<_>>()
        };
        assert_eq!((traces("/mcp"), traces("/.well-known/oauth-protected-resource")), (vec![2], vec![1]));
    }

    #[test]
    fn each_connection_is_judged_in_the_version_that_it_speaks() {
        use Direction::{ClientToServer as Sent, ServerToClient as Came};
        let legacy = trace(&[
            (Sent, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#),
            (Came, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#),
        ]);
        let fresh = trace(&[(Sent, "{"), (Came, r#"{"id":null,"error":{"code":-32700,"message":"no"}}"#)]);
        let asked = |version| Recorded { trace: &fresh, asked: version };
        let facts = Facts::default();
        let all = [
            Recorded { trace: &legacy, asked: Some(Version::V2025_06_18) },
            asked(Some(Version::V2025_11_25)),
            asked(None),
            asked(Some(Version::LATEST)),
        ];
        let judged = judge_recorded(all, Transport::Stdio, &facts);
        let found: Vec<_> = judged.versions.iter().map(|it| (it.version, it.traces.len())).collect();
        assert_eq!((found, judged.left_out), (vec![(Version::V2025_11_25, 2)], 2));
        let failed = |judged: &Judged<'_>| {
            let outcomes = judged.versions.iter().flat_map(|version| &version.outcomes);
            outcomes
                .filter(|(_, it)| it.verdict == CheckVerdict::Fail)
                .any(|(check, _)| check.id == "rpc.envelope.version-field")
        };
        assert!(failed(&judged));
        let mut cut = Trace::bounded(1);
        legacy.frames().for_each(|frame| cut.push_frame(frame.at, frame.direction, frame.bytes.clone()));
        let judged = judge_recorded([Recorded { trace: &cut, asked: None }], Transport::Stdio, &facts);
        assert_eq!((judged.versions.len(), judged.left_out), (0, 1));
    }

    #[test]
    fn what_one_message_shows_is_judged_in_a_trace_without_an_end() {
        use Direction::{ClientToServer as Sent, ServerToClient as Came};
        let mut open = trace(&[
            (Sent, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#),
            (
                Came,
                r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}"#,
            ),
        ]);
        let passed = |trace: &Trace| {
            let judged = judge_recorded([Recorded { trace, asked: None }], Transport::Stdio, &Facts::default());
            let outcomes = judged.versions.iter().flat_map(|version| version.outcomes.iter());
            let passed = outcomes.filter(|(_, outcome)| outcome.verdict == CheckVerdict::Pass);
            passed.map(|(check, _)| check.id.clone()).collect::<BTreeSet<_>>()
        };
        let before = passed(&open);
        assert!(before.contains("rpc.envelope.version-field"), "{before:?}");
        open.push(Duration::ZERO, EventKind::Closed(rehearse_protocol::Closed::by_client("the end")));
        assert!(before.is_subset(&passed(&open)) && before.len() < passed(&open).len());
    }
}
