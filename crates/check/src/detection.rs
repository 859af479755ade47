//! Which versions a server speaks.

use std::time::Duration;

use http::{StatusCode, header::CONTENT_TYPE};
use rehearse_client::{ConnectError, ServerParams, Target, other_path};
use rehearse_conformance::{is_header, without_mark};
use rehearse_protocol::{
    Direction, Era, Event, EventKind, Frame, ProcessEvent, Trace, Version,
    http::{EVENT_STREAM, JSON, media_type},
};
use serde_json::Value;

use crate::{CheckOptions, connection::ProbeConnection, options::Budget};

/// How much a refusal says at least that is an answer.
const ANSWERED: u8 = 3;
/// How much of a line that is no message is shown.
const LINE: usize = 200;
/// How many lines of standard error are shown.
const STDERR_LINES: usize = 20;

/// A server that speaks a version, and the connection on which it said so.
pub(crate) struct Negotiated {
    pub(crate) version: Version,
    /// The result of `initialize` or `server/discover`.
    pub(crate) handshake: Value,
    pub(crate) connection: ProbeConnection,
}

/// What came of an attempt to speak one version.
pub(crate) enum Attempt {
    Negotiated(Box<Negotiated>),
    /// The server does not speak it.
    Refused(Refusal),
    /// There was no connection.
    Failed(ConnectError, Trace),
    /// Nothing was tried: the server has said nothing in other versions.
    Untried,
}

/// How a server did not speak a version.
pub(crate) struct Refusal {
    pub(crate) version: Version,
    /// The versions that it offers.
    offered: Vec<Version>,
    pub(crate) trace: Trace,
    /// Why an HTTP request had no response.
    failure: Option<String>,
    /// Whether the time of the budget was over.
    is_late: bool,
    /// Whether the server took no message, so that no answer was waited for.
    is_broken: bool,
    /// Whether the server left unread what it got at the end.
    is_unread: bool,
    /// How long the answer was waited for.
    limit: Duration,
}

impl Refusal {
    /// Whether the server refused a request because it has no token.
    pub(crate) fn is_unauthorized(&self) -> bool {
        // Some say 403 where they want a token.
        self.trace.events().any(|event| match &event.kind {
            EventKind::HttpResponse { status, headers } => {
                *status == 401 || (*status == 403 && headers.contains_key("www-authenticate"))
            }
            _ => false,
        })
    }
}

/// Tries to speak a version on a connection of its own.
pub(crate) async fn attempt(
    params: &ServerParams,
    version: Version,
    options: &CheckOptions,
    budget: &Budget,
) -> Attempt {
    let mut connection = match ProbeConnection::open(params, version, options, budget).await {
        Ok(connection) => connection,
        Err((_, trace)) if trace.end() == 0 => return Attempt::Untried,
        Err((error, trace)) => return Attempt::Failed(error, trace),
    };
    let (handshake, limit) = (connection.handshake().await, options.start_timeout);
    let negotiated = connection.version();
    match handshake {
        Some(handshake) if version.era() == Era::Modern => {
            let offered = supported(&handshake);
            // A fault in the details of the result does not make the server one of another era.
            if offered.is_empty() || offered.contains(&version) {
                return Attempt::Negotiated(Box::new(Negotiated { version, handshake, connection }));
            }
            refused(connection, version, offered, limit).await
        }
        Some(handshake) if negotiated == version => {
            let is_known = handshake["protocolVersion"].as_str().is_none_or(|text| text.parse::<Version>().is_ok());
            if is_known {
                return Attempt::Negotiated(Box::new(Negotiated { version, handshake, connection }));
            }
            refused(connection, version, Vec::new(), limit).await
        }
        Some(_) => refused(connection, version, vec![negotiated], limit).await,
        None => refused(connection, version, Vec::new(), limit).await,
    }
}

async fn refused(mut connection: ProbeConnection, version: Version, offered: Vec<Version>, limit: Duration) -> Attempt {
    let (failure, is_late, is_broken) = (connection.wire().failure(), connection.is_late(), connection.is_broken());
    let is_unread = connection.is_unread().await;
    let trace = connection.close().await;
    Attempt::Refused(Refusal { version, offered, trace, failure, is_late, is_broken, is_unread, limit })
}

fn supported(handshake: &Value) -> Vec<Version> {
    supported_names(handshake).iter().filter_map(|version| version.parse().ok()).collect()
}

/// The `supportedVersions` of a result of `server/discover`, also unknown ones.
pub(crate) fn supported_names(handshake: &Value) -> Vec<String> {
    let versions = handshake["supportedVersions"].as_array().into_iter().flatten();
    versions.filter_map(|version| Some(version.as_str()?.to_owned())).collect()
}

/// The versions that a transport carries, newest first, without those that have none of the selected checks.
pub(crate) fn candidates(target: &Target, options: &CheckOptions) -> Vec<Version> {
    let wanted = |version: &Version| options.versions.is_empty() || options.versions.contains(version);
    let carried = Version::ALL.into_iter().rev().filter(|version| target.transport().carries(*version));
    let wanted: Vec<_> = carried.filter(wanted).collect();
    // What is tried in one era depends on whether the server speaks the other one.
    let judges =
        |version: &Version| options.selected().any(|check| check.area() == "era" || check.levels.contains_key(version));
    let judged: Vec<_> = wanted.iter().copied().filter(judges).collect();
    if judged.is_empty() { wanted } else { judged }
}

/// Why a server that was reached speaks no version, with the last lines of its standard error.
pub(crate) fn no_version(refusals: &[Refusal], url: Option<&str>) -> String {
    let is_silent = |version: Version| refusals.iter().any(|it| it.version == version && it.offered.is_empty());
    let is_known = |refusal: &&Refusal| refusal.offered.iter().any(|version| !is_silent(*version));
    if let Some(refusal) = refusals.iter().find(is_known) {
        let offered: Vec<_> = refusal.offered.iter().map(|version| version.as_str()).collect();
        return format!("the server does not speak the requested version; it offers {}", offered.join(", "));
    }
    // An answer says more than none.
    let unoffered = refusals.iter().filter(|refusal| refusal.offered.is_empty());
    let best = unoffered.map(|refusal| (said(refusal), refusal)).max_by_key(|((rank, _), _)| *rank);
    let Some(((rank, mut text), refusal)) = best else { return String::new() };
    let is_missing = |event: &Event| matches!(&event.kind, EventKind::HttpResponse { status, .. } if *status == StatusCode::NOT_FOUND);
    if let Some(url) = url.filter(|_| rank == ANSWERED && refusal.trace.events().any(is_missing)) {
        text.push_str(other_path(url));
    }
    let stderr = refusal.trace.events().filter_map(|event| match &event.kind {
        EventKind::Stderr(line) => Some(String::from_utf8_lossy(line)),
        _ => None,
    });
    let stderr: Vec<_> = stderr.collect();
    for line in &stderr[stderr.len().saturating_sub(STDERR_LINES)..] {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

/// The legacy versions whose `initialize` had no answer at all, and why. A server of the legacy era may ignore what the
/// modern one asks.
pub(crate) fn unanswered(refusals: &[Refusal]) -> Vec<(Version, String)> {
    let legacy = refusals.iter().filter(|refusal| refusal.version.era() == Era::Legacy);
    let silent = legacy.map(|refusal| (refusal.version, said(refusal))).filter(|(_, (rank, _))| *rank < ANSWERED);
    silent.map(|(version, (_, text))| (version, text)).collect()
}

/// Whether a trace has something that was meant as a message.
pub(crate) fn has_message(trace: &Trace) -> bool {
    let mut received = trace.frames().filter(|frame| frame.direction == Direction::ServerToClient);
    received.any(|frame| is_message(&frame.bytes) || is_header(&frame.bytes))
}

/// Whether a line is a message, however wrong.
fn is_message(line: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(without_mark(line)).unwrap_or_default();
    message.is_array() || ["jsonrpc", "method", "result", "error"].iter().any(|key| message.get(key).is_some())
}

/// How much a refusal says, and what.
fn said(refusal: &Refusal) -> (u8, String) {
    let method = if refusal.version.era() == Era::Modern { "server/discover" } else { "initialize" };
    let waited = match (refusal.trace.is_full(), refusal.is_late) {
        (true, _) => format!("the server sent more than the prober keeps, and no answer to `{method}`"),
        (_, true) => format!("the server did not answer `{method}` before the time of --budget was over"),
        _ if refusal.is_broken => format!("the server closed its input before it answered `{method}`"),
        _ => {
            let (limit, unread) = (refusal.limit, if refusal.is_unread { ", and does not read its input" } else { "" });
            format!("the server did not answer `{method}` within {limit:?}{unread}; --start-timeout waits longer")
        }
    };
    let mut frames = refusal.trace.frames();
    let asked = frames.find(|frame| frame.direction == Direction::ClientToServer).map_or(Duration::ZERO, |it| it.at);
    let (mut best, mut line) = ((0, waited), None);
    let mut has_ended = false;
    for event in refusal.trace.events() {
        let found = match &event.kind {
            EventKind::Closed(_) => {
                has_ended = true;
                continue;
            }
            // What it does when the prober has given up says nothing.
            EventKind::Process(ProcessEvent::InputClosed) if !has_ended && !refusal.is_broken => break,
            EventKind::Frame(Frame { direction: Direction::ServerToClient, bytes, .. })
                if event.exchange.is_none() && !is_message(bytes) =>
            {
                let text = || String::from_utf8_lossy(bytes).chars().take(LINE).collect::<String>();
                line.get_or_insert_with(text);
                continue;
            }
            EventKind::Frame(Frame { direction: Direction::ServerToClient, bytes, .. })
            | EventKind::HttpBody { direction: Direction::ServerToClient, bytes }
                if matches!(event.kind, EventKind::Frame(_)) || matches!(bytes.first(), Some(b'{' | b'[')) =>
            {
                let (answer, took) = (String::from_utf8_lossy(bytes), event.at.saturating_sub(asked));
                let text = match took > refusal.limit {
                    true => {
                        format!("the server answered `{method}` only after {took:.0?}; --start-timeout waits longer")
                    }
                    false => format!("the server did not accept `{method}`; it answered {answer}"),
                };
                (ANSWERED + 1, text)
            }
            EventKind::HttpResponse { status, headers } => {
                let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("no content type");
                let is_message = [JSON, EVENT_STREAM].contains(&&*media_type(headers));
                let wrong = status.is_success().then(|| match is_message {
                    true => ", and no message came".to_owned(),
                    false => format!(" and {kind}, which is neither JSON nor an event stream"),
                });
                (ANSWERED, format!("the server answered `{method}` with HTTP {status}{}", wrong.unwrap_or_default()))
            }
            EventKind::Process(ProcessEvent::Exited { code }) => {
                let how = code.map_or("by a signal".to_owned(), |code| format!("with code {code}"));
                (1, format!("the server ended {how} before it answered"))
            }
            _ => continue,
        };
        if found.0 > best.0 {
            best = found;
        }
    }
    if let Some(failure) = refusal.failure.as_ref().filter(|_| best.0 < 2) {
        best = (2, failure.clone());
    }
    if let Some(line) = line.filter(|_| best.0 < ANSWERED) {
        best = (2, format!("{}; its standard output is not MCP: {line}", best.1));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_before_it_is_asked_has_ended_and_is_not_slow() {
        let refusal = |is_broken: bool, code: Option<i32>| {
            let mut trace = Trace::default();
            trace.push(Duration::ZERO, EventKind::Process(ProcessEvent::InputClosed));
            if code.is_some() {
                trace.push(Duration::ZERO, EventKind::Process(ProcessEvent::Exited { code }));
            }
            let limit = Duration::from_secs(30);
            Refusal {
                version: Version::LATEST,
                offered: vec![],
                trace,
                failure: None,
                is_late: false,
                is_broken,
                is_unread: false,
                limit,
            }
        };
        assert_eq!(said(&refusal(true, Some(1))).1, "the server ended with code 1 before it answered");
        assert_eq!(said(&refusal(true, None)).1, "the server closed its input before it answered `server/discover`");
        let slow = "the server did not answer `server/discover` within 30s; --start-timeout waits longer";
        assert_eq!(said(&refusal(false, Some(1))).1, slow);
        let mut other = refusal(false, None);
        (other.version, other.offered) = (Version::V2025_11_25, vec![Version::LATEST]);
        assert_eq!(no_version(&[refusal(false, None), other], None), slow);
        let mut late = refusal(false, None);
        late.trace = Trace::default();
        late.trace.push_frame(Duration::ZERO, Direction::ClientToServer, "{}".into());
        late.trace.push_frame(Duration::from_secs(31), Direction::ServerToClient, r#"{"id":1,"result":{}}"#.into());
        let slow = "the server answered `server/discover` only after 31s; --start-timeout waits longer";
        assert_eq!(said(&late).1, slow);
    }
}
