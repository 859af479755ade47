//! What a generated client and the server sent, and what of it violates the specification.

use std::{collections::HashSet, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rehearse_conformance::{CheckVerdict, Evidence, Facts, Recorded, checks, judge_recorded};
use rehearse_protocol::{Direction, Era, Event, EventKind, Frame, Trace, Transport};

/// The checks that generated clients and scripts break themselves.
const EXCEPTIONS: [&str; 5] = [
    // Clients send wrong versions, headers and answers.
    "result.code.defined-meaning",
    "mrtr.retry.completes",
    // Replies have other contents than they should.
    "res.read.uri-matches",
    "prompts.get.messages-nonempty",
    "rpc.error.message-one-sentence",
];

/// Checks that hold for this traffic, too, though not for any.
const OTHERS: [&str; 2] = ["cache.hints.", "sub.ack."];

/// The traffic of one client, as connections of one era and transport each.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    legacy: Trace,
    modern: Trace,
    http: Trace,
    exchanges: u32,
    /// The exchanges whose response has begun.
    begun: HashSet<u32>,
}

/// A connection, or an HTTP exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Channel {
    Stdio(Era),
    Http(u32),
}

impl Traffic {
    /// Records a message of the client; over HTTP it has headers.
    pub(crate) fn send(&mut self, at: Duration, bytes: Bytes, era: Era, headers: Option<&HeaderMap>) -> Channel {
        let mut channel = Channel::Stdio(era);
        if let Some(headers) = headers {
            self.exchanges += 1;
            channel = Channel::Http(self.exchanges);
            let (method, headers) = (Method::POST, headers.clone());
            self.push(at, channel, EventKind::HttpRequest { method, target: "/mcp".into(), headers });
        }
        self.push(at, channel, EventKind::Frame(Frame::new(Direction::ClientToServer, at, bytes)));
        channel
    }

    /// Records a message of the server; a response has a status.
    pub(crate) fn receive(&mut self, at: Duration, channel: Channel, bytes: Bytes, status: Option<u16>) {
        if let Channel::Http(number) = channel
            && self.begun.insert(number)
        {
            let kind = if status.is_some() { "application/json" } else { "text/event-stream" };
            let unbuffered = ("x-accel-buffering".parse().ok(), HeaderValue::from_static("no"));
            let headers = [(Some(header::CONTENT_TYPE), HeaderValue::from_static(kind)), unbuffered];
            let headers = headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect();
            let status = status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or_default();
            self.push(at, channel, EventKind::HttpResponse { status, headers });
        }
        self.push(at, channel, EventKind::Frame(Frame::new(Direction::ServerToClient, at, bytes)));
        if let (Channel::Http(_), Some(_)) = (channel, status) {
            self.push(at, channel, EventKind::HttpEnd { is_whole: true });
        }
    }

    fn push(&mut self, at: Duration, channel: Channel, kind: EventKind) {
        match channel {
            Channel::Stdio(Era::Legacy) => self.legacy.push(at, kind),
            Channel::Stdio(Era::Modern) => self.modern.push(at, kind),
            Channel::Http(number) => self.http.push_event(Event { at, exchange: Some(number), kind }),
        }
    }

    /// Every rule that the server violates.
    pub(crate) fn violations(&self) -> Vec<String> {
        let facts = Facts { is_local: true, patience: Duration::MAX, ..Facts::default() };
        let traces =
            [(&self.legacy, Transport::Stdio), (&self.modern, Transport::Stdio), (&self.http, Transport::Http)];
        let mut violations = Vec::new();
        for (trace, transport) in traces {
            let judged = judge_recorded([Recorded { trace, asked: None }], transport, &facts);
            let Some(judged) = judged.versions.into_iter().next() else { continue };
            let evidence = Evidence::new(&judged.traces, judged.version, transport, facts.clone());
            let others = checks().iter().filter(|check| OTHERS.iter().any(|area| check.id.starts_with(area)));
            let outcomes = judged.outcomes.into_iter().chain(others.map(|check| (check, check.judge(&evidence))));
            let broken = outcomes
                .filter(|(check, it)| it.verdict <= CheckVerdict::Warn && !EXCEPTIONS.contains(&check.id.as_str()));
            for (check, violation) in
                broken.flat_map(|(check, it)| it.judgement.violations.into_iter().map(move |it| (check, it)))
            {
                let events = violation.places.iter().filter_map(|place| trace.since(place.event).next());
                let frames = events.filter_map(|(_, event)| Some(String::from_utf8_lossy(&event.frame()?.bytes)));
                let frames = frames.collect::<Vec<_>>().join("\n  ");
                violations.push(format!("{}: {:?} {}\n  {frames}", check.id, violation.subject, violation.found));
            }
        }
        violations
    }
}
