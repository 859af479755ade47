//! The verdicts on traffic that no probe has sent.

use std::{collections::BTreeMap, time::Duration};

use rehearse_conformance::{CheckVerdict, Facts, Recorded, judge_recorded};
use rehearse_protocol::{Direction, Trace, Transport, Version, trace_file::TraceFile};
use rehearse_report::check::{CheckedServer, JudgedCheck};
use serde_json::Value;

use crate::{
    CheckOptions,
    report::{checked_version, judged_check, peer_info},
};

/// What the checks say of the traffic with one server over one transport.
#[derive(Debug)]
pub struct JudgedTraffic {
    /// The violated checks, failures first.
    pub violations: Vec<JudgedCheck>,
    /// How many connections could not be judged.
    pub left_out: usize,
}

/// Judges traffic. `asked` is the version that the client asked for, if it was fixed.
pub fn judge_traffic(traces: &[Trace], asked: Option<Version>, transport: Transport) -> JudgedTraffic {
    let recorded = traces.iter().map(|trace| Recorded { trace, asked });
    let judged = judge_recorded(recorded, transport, &Facts::default());
    let mut violations = Vec::new();
    for version in &judged.versions {
        let violated = version.outcomes.iter().filter(|(_, it)| it.verdict <= CheckVerdict::Warn);
        violations
            .extend(violated.map(|(check, outcome)| judged_check(&version.traces, version.version, check, outcome)));
    }
    violations.sort_by_key(|check| check.verdict);
    JudgedTraffic { violations, left_out: judged.left_out }
}

/// What the checks say of a server in a trace file, over one transport.
#[derive(Debug)]
pub struct RecordedServer {
    /// The result; its target is the name in the file.
    pub checked: CheckedServer,
    /// How many of its connections agree on no version.
    pub left_out: usize,
}

/// Judges every server of a trace file, over each transport alone, by the versions and checks of the options.
pub fn check_trace(file: &TraceFile, options: &CheckOptions) -> Vec<RecordedServer> {
    let mut servers: BTreeMap<(&str, Transport), Vec<Recorded<'_>>> = BTreeMap::new();
    for connection in &file.connections {
        let recorded = Recorded { trace: &connection.trace, asked: connection.info.protocol };
        servers.entry((&connection.info.server, connection.info.transport)).or_default().push(recorded);
    }
    let check = |((name, transport), recorded): ((&str, Transport), Vec<Recorded<'_>>)| {
        let traces: Vec<_> = recorded.iter().map(|it| it.trace).collect();
        let facts = Facts { counts_harm: options.counts_harm, ..Facts::default() };
        let judged = judge_recorded(recorded, transport, &facts);
        let mut checked = CheckedServer::new(name.to_owned(), transport);
        checked.error = judged.versions.is_empty().then(|| "no connection agrees on a version".to_owned());
        let is_wanted = |version| options.versions.is_empty() || options.versions.contains(&version);
        for mut version in judged.versions.into_iter().filter(|judged| is_wanted(judged.version)) {
            version.outcomes.retain(|(check, _)| options.is_selected(&check.id));
            checked.versions.push(checked_version(&version.traces, version.version, &version.outcomes));
        }
        (checked.name, checked.server_version) = traces.iter().find_map(|trace| server_info(trace)).unzip();
        if !options.counts_sdk {
            checked.accept_sdk();
        }
        checked.started_in = traces.iter().find_map(|trace| first_answer(trace)).unwrap_or_default();
        RecordedServer { checked, left_out: judged.left_out }
    };
    servers.into_iter().map(check).collect()
}

/// The name and the version that a server gives itself.
fn server_info(trace: &Trace) -> Option<(String, String)> {
    trace.frames().filter(|frame| frame.direction == Direction::ServerToClient).find_map(|frame| {
        let message: Value = serde_json::from_slice(&frame.bytes).ok()?;
        peer_info(message.get("result")?, "serverInfo")
    })
}

/// How long the server took for its first message.
fn first_answer(trace: &Trace) -> Option<Duration> {
    let begun = trace.events().next()?.at;
    let first = trace.frames().find(|frame| frame.direction == Direction::ServerToClient)?;
    Some(first.at.saturating_sub(begun))
}
