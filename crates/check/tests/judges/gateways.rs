//! Every check of a gateway is seen to fail, and the relay, which changes nothing, violates none but that of the token.
//!
//! The traces are real: our clients and a mock, with the relay in between. A bad gateway changes one of them.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use rehearse_check::gateway::{GatewayOptions, GatewayTraces, judge_gateway, run_gateway};
use rehearse_client::free_port;
use rehearse_conformance::{Role, checks_of};
use rehearse_protocol::{Direction, Event, EventKind, Frame, Trace, Transport, Version};
use rehearse_relay::HttpRelay;
use rehearse_report::check::CheckVerdict;
use serde::Deserialize;
use serde_json::Value;

/// What a bad gateway does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BadGateway {
    /// The check that must report it.
    check: String,
    /// Whether it is seen in 2026-07-28, in place of the newest version with a handshake.
    #[serde(default)]
    modern: bool,
    /// Whether the trace of the upstream is changed, in place of those of the clients.
    #[serde(default)]
    upstream: bool,
    /// Whether what the client of that side sent is changed, in place of what its server sent.
    #[serde(default)]
    sent: bool,
    /// A text that each changed message has.
    on: String,
    /// A text, and what stands in its place.
    replace: Option<[String; 2]>,
    /// Whether the messages are lost.
    #[serde(default)]
    drop: bool,
    /// Whether only the first trace of its side is changed: that of the client that works.
    #[serde(default)]
    first: bool,
    /// How many seconds pass after each.
    #[serde(default)]
    wait: u64,
    /// A message that comes before each.
    before: Option<String>,
    /// What comes after each, with its id.
    answer: Option<Value>,
    /// Checks that necessarily report it as well.
    #[serde(default)]
    also: Vec<String>,
    /// A gateway may do it: no check reports it.
    #[serde(default)]
    allowed: bool,
}

/// Both sides of our relay in a version.
async fn relayed(version: Version) -> GatewayTraces {
    let upstream = ([127, 0, 0, 1], free_port().expect("a port")).into();
    let sinks = Arc::new(|_: &_| Box::new(|_: &Event| {}) as Box<_>);
    let relay =
        HttpRelay::start(([127, 0, 0, 1], 0).into(), &format!("http://{upstream}/mcp"), Transport::Http, sinks).await;
    let relay = relay.expect("starts");
    let options = GatewayOptions { at: Some(relay.url()), upstream, ..GatewayOptions::default() };
    let run = Box::pin(run_gateway(&options, version)).await.expect("starts").expect("connects");
    relay.stop().await;
    run
}

fn violated(run: &GatewayTraces) -> BTreeSet<String> {
    let checked = judge_gateway(run, &[]);
    let checks = checked.versions.into_iter().flat_map(|version| version.checks);
    checks.filter(|it| it.violation_count > 0).map(|check| check.id).collect()
}

/// The trace with what a bad gateway makes of it, and whether that is another one.
fn changed(trace: &Trace, bad: &BadGateway) -> (Trace, bool) {
    let (mut out, mut is_changed, mut waited) = (Trace::default(), false, Duration::ZERO);
    let wanted = if bad.sent { Direction::ClientToServer } else { Direction::ServerToClient };
    for event in trace.events() {
        let text = event.frame().filter(|frame| frame.direction == wanted);
        let text =
            text.map(|frame| String::from_utf8_lossy(&frame.bytes).into_owned()).filter(|it| it.contains(&bad.on));
        let mut event = Event { at: event.at + waited, ..event.clone() };
        if let EventKind::Frame(frame) = &mut event.kind {
            frame.at += waited;
        }
        let Some(text) = text else {
            out.push_event(event);
            continue;
        };
        let frame_of = |direction, text: String| {
            let kind = EventKind::Frame(Frame::new(direction, event.at, Bytes::from(text)));
            Event { kind, ..event.clone() }
        };
        let frame = |text| frame_of(wanted, text);
        is_changed = true;
        waited += Duration::from_secs(bad.wait);
        if let Some(before) = &bad.before {
            out.push_event(frame(before.clone()));
        }
        match &bad.replace {
            _ if bad.drop => {}
            Some([old, new]) => {
                assert!(text.contains(old), "{}: no {old:?} in {text}", bad.check);
                out.push_event(frame(text.replace(old, new)));
            }
            None => out.push_event(event.clone()),
        }
        if let Some(mut answer) = bad.answer.clone() {
            answer["id"] = serde_json::from_str::<Value>(&text).expect("JSON")["id"].clone();
            out.push_event(frame_of(Direction::ServerToClient, answer.to_string()));
        }
    }
    (out, is_changed)
}

#[tokio::test]
async fn every_check_reports_its_bad_gateway_and_only_the_token_of_the_relay() {
    let runs = [Box::pin(relayed(Version::LATEST_LEGACY)).await, Box::pin(relayed(Version::LATEST)).await];
    let own = BTreeSet::from(["gateway.auth.token".to_owned()]);
    for run in &runs {
        assert_eq!(violated(run), own, "{}", run.version);
        let checked = judge_gateway(run, &[]);
        let untested = checked.versions[0].checks.iter().filter(|it| it.verdict == CheckVerdict::NotTested);
        let untested: Vec<_> = untested.map(|it| it.id.as_str()).collect();
        let expected: &[&str] = match run.version {
            // Its client is asked in results.
            Version::LATEST => &["gateway.ask.forwarded", "gateway.ask.answer", "gateway.ask.session"],
            _ => &[],
        };
        assert_eq!(untested, expected, "{}", run.version);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad-gateways.jsonl");
    let text = fs::read_to_string(file).expect("the bad gateways");
    let (mut wrong, mut seen) = (Vec::new(), own.clone());
    for line in text.lines() {
        let bad: BadGateway = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let run = &runs[usize::from(bad.modern)];
        let traces = |traces: &[Trace], is_meant: bool| -> (Vec<Trace>, Vec<bool>) {
            let all = traces.iter().enumerate().map(|(number, trace)| match is_meant && (number == 0 || !bad.first) {
                true => changed(trace, &bad),
                false => (trace.clone(), false),
            });
            all.unzip()
        };
        let ((clients, one), (upstream, other)) =
            (traces(&run.clients, !bad.upstream), traces(&run.upstream, bad.upstream));
        assert!(one.iter().chain(&other).any(|it| *it), "{line}: changes nothing");
        let found = violated(&GatewayTraces { clients, upstream, token: run.token.clone(), ..*run });
        let found: BTreeSet<_> = found.difference(&own).cloned().collect();
        let expected: BTreeSet<_> =
            [&bad.check].into_iter().chain(&bad.also).filter(|_| !bad.allowed).cloned().collect();
        if found != expected {
            wrong.push(format!("{}: {found:?}", bad.check));
        }
        seen.extend(Some(bad.check).filter(|_| !bad.allowed));
    }
    let unseen =
        GatewayTraces { clients: runs[0].clients.clone(), upstream: Vec::new(), token: String::new(), ..runs[0] };
    let untried = [&runs[0], &unseen].map(|run| judge_gateway(run, &[]).untried.len());
    assert_eq!(untried, [0, 1], "nothing is compared without the upstream");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let without: Vec<_> = checks_of(Role::Gateway).filter(|check| !seen.contains(&check.id)).map(|it| &it.id).collect();
    assert!(without.is_empty(), "without a bad gateway: {without:?}");
}
