//! The result of a run, for the report.

use std::time::Duration;

use crate::cli::mcp::target::Server;
use rehearse_check::{CheckError, CheckRun, VersionRun};
use rehearse_client::Target;
use rehearse_conformance::{Outcome, Place, Row, Verdict};
use rehearse_protocol::{Direction, EventKind, Version};
use rehearse_report::check::{CheckedRow, CheckedServer, CheckedVersion, EvidenceLine, FoundViolation, RowVerdict};

/// How many violations of one row are kept.
const KEPT: usize = 20;
/// How many bytes of a frame are kept.
const LONGEST: usize = 4096;

/// The result for one server, and how long it took.
pub(super) fn server(
    server: &Server,
    run: Result<CheckRun, CheckError>,
    is_selected: impl Fn(&Row) -> bool,
) -> (CheckedServer, Duration) {
    let mut checked = CheckedServer {
        target: target(server),
        transport: server.resolved.config.target.transport(),
        name: None,
        server_version: None,
        started_in: Duration::ZERO,
        error: None,
        versions: Vec::new(),
    };
    match run {
        Ok(run) => {
            let (name, version) = run.server.clone().unzip();
            (checked.name, checked.server_version) = (name, version);
            checked.started_in = run.started_in;
            checked.versions = run.versions.iter().map(|version| self::version(version, &is_selected)).collect();
            (checked, run.duration)
        }
        Err(error) => {
            checked.error = Some(error.to_string());
            (checked, Duration::ZERO)
        }
    }
}

/// The command or URL of a server.
fn target(server: &Server) -> String {
    match &server.resolved.config.target {
        Target::Stdio(spec) => [&spec.program].into_iter().chain(&spec.args).cloned().collect::<Vec<_>>().join(" "),
        Target::Http(at) | Target::Sse(at) | Target::Ws(at) => at.url.clone(),
        Target::Memory(_) => "memory".to_owned(),
    }
}

/// The flag that describes a server of the command line.
pub(super) fn target_flag(server: &Server) -> String {
    let transport = server.resolved.config.target.transport();
    let target = target(server);
    match target.contains([' ', '\'', '"', '$', '&', '?', '*']) {
        true => format!("--{transport} '{}'", target.replace('\'', r"'\''")),
        false => format!("--{transport} {target}"),
    }
}

fn version(run: &VersionRun, is_selected: impl Fn(&Row) -> bool) -> CheckedVersion {
    let rows = run.outcomes.iter().filter(|(row, _)| is_selected(row));
    CheckedVersion { version: run.version, rows: rows.map(|(row, outcome)| self::row(run, row, outcome)).collect() }
}

fn row(run: &VersionRun, row: &Row, outcome: &Outcome) -> CheckedRow {
    let violations = &outcome.judgement.violations;
    let found = violations.iter().take(KEPT).map(|violation| FoundViolation {
        subject: violation.subject.clone(),
        found: violation.found.clone(),
        evidence: violation.places.iter().filter_map(|place| evidence(run, *place)).collect(),
    });
    CheckedRow {
        id: row.id.clone(),
        level: row.levels.get(&run.version).map(|level| level.as_str()),
        verdict: verdict(outcome.verdict),
        reason: outcome.reason.clone(),
        rule: row.rule.clone(),
        help: row.help.clone(),
        spec: link(row, run.version),
        exercised: outcome.judgement.exercised,
        violation_count: violations.len(),
        violations: found.collect(),
    }
}

fn link(row: &Row, version: Version) -> String {
    row.link(version)
}

const fn verdict(verdict: Verdict) -> RowVerdict {
    match verdict {
        Verdict::Fail => RowVerdict::Fail,
        Verdict::Warn => RowVerdict::Warn,
        Verdict::NotTested => RowVerdict::NotTested,
        Verdict::Info => RowVerdict::Info,
        Verdict::Pass => RowVerdict::Pass,
        Verdict::NotApplicable => RowVerdict::NotApplicable,
    }
}

/// The frame or HTTP head at a place.
fn evidence(run: &VersionRun, place: Place) -> Option<EvidenceLine> {
    let trace = run.traces.get(place.connection)?;
    let (_, event) = trace.since(place.event).next()?;
    let cut = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]).into_owned();
    let (direction, text) = match &event.kind {
        EventKind::Frame(frame) => (frame.direction, cut(&frame.bytes)),
        EventKind::HttpRequest { method, target, headers } => {
            (Direction::ClientToServer, format!("{method} {target}{}", self::headers(headers)))
        }
        EventKind::HttpResponse { status, headers } => {
            (Direction::ServerToClient, format!("HTTP {status}{}", self::headers(headers)))
        }
        EventKind::HttpBody { direction, bytes } => (*direction, cut(bytes)),
        EventKind::Stderr(line) => (Direction::ServerToClient, cut(line)),
        _ => return None,
    };
    Some(EvidenceLine { direction, at: event.at, text })
}

/// Headers, without those that authorize.
fn headers(headers: &http::HeaderMap) -> String {
    let shown = headers.iter().filter(|(name, _)| !matches!(name.as_str(), "authorization" | "cookie" | "set-cookie"));
    shown.map(|(name, value)| format!("  {name}: {}", String::from_utf8_lossy(value.as_bytes()))).collect()
}
