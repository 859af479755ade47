//! `--trace`: checks what a trace file has recorded.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use serde_json::Value;

use super::result;
use crate::cli::{Failure, style};
use rehearse_conformance::{Facts, Recorded, Row, judge_recorded};
use rehearse_protocol::{Direction, Trace, Transport, Version, trace_file::TraceFile};
use rehearse_report::check::CheckedServer;
use rehearse_report::text::quoted;

/// Judges every server of a file, over each transport alone.
///
/// # Errors
/// The file cannot be read, or is no trace.
pub(super) fn check(
    path: &Path,
    is_listing: bool,
    is_wanted: impl Fn(Version) -> bool,
    is_selected: impl Fn(&Row) -> bool,
) -> Result<Vec<CheckedServer>, Failure> {
    let file = read(path)?;
    let mut servers: BTreeMap<(&str, Transport), Vec<Recorded<'_>>> = BTreeMap::new();
    for connection in &file.connections {
        let recorded = Recorded { trace: &connection.trace, asked: connection.info.protocol };
        servers.entry((&connection.info.server, connection.info.transport)).or_default().push(recorded);
    }
    let mut checked = Vec::new();
    for ((name, transport), recorded) in servers {
        let traces: Vec<_> = recorded.iter().map(|it| it.trace).collect();
        let judged = judge_recorded(recorded, transport, &Facts { is_listing, ..Facts::default() });
        if judged.left_out > 0 {
            style::warn(&format!("{} connections of '{name}' over {transport} agree on no version", judged.left_out));
        }
        let error = judged.versions.is_empty().then(|| "no connection agrees on a version".to_owned());
        let wanted = judged.versions.into_iter().filter(|judged| is_wanted(judged.version));
        let versions = wanted.map(|mut judged| {
            judged.outcomes.retain(|(row, _)| is_selected(row));
            result::version(&judged.traces, judged.version, &judged.outcomes)
        });
        let versions = versions.collect();
        let (its_name, server_version) = traces.iter().find_map(|trace| server_info(trace)).unzip();
        checked.push(CheckedServer {
            target: format!("{name} in {}", path.display()),
            transport,
            name: its_name,
            server_version,
            started_in: traces.iter().find_map(|trace| first_answer(trace)).unwrap_or_default(),
            again: format!("rehearse check --trace {}", quoted(&path.display().to_string())),
            command: None,
            place: None,
            unanswered: Vec::new(),
            is_budget_spent: false,
            error,
            versions,
        });
    }
    Ok(checked)
}

/// Reads a trace file.
///
/// # Errors
/// It cannot be read, or is no trace.
pub(in crate::cli) fn read(path: &Path) -> Result<TraceFile, Failure> {
    let unread = |error: &dyn std::fmt::Display| Failure::Usage(format!("cannot read {}: {error}", path.display()));
    let bytes = fs::read(path).map_err(|error| unread(&error))?;
    let file = TraceFile::parse(&bytes).map_err(|error| unread(&error))?;
    if file.is_cut {
        style::warn(&format!("a line of {} is cut", path.display()));
    }
    if file.connections.is_empty() {
        return Err(unread(&"it has no connection"));
    }
    Ok(file)
}

/// The name and the version that a server gives itself.
fn server_info(trace: &Trace) -> Option<(String, String)> {
    trace.frames().filter(|frame| frame.direction == Direction::ServerToClient).find_map(|frame| {
        let message: Value = serde_json::from_slice(&frame.bytes).ok()?;
        let result = message.get("result")?;
        let info = result.get("serverInfo").or_else(|| result.pointer("/_meta/io.modelcontextprotocol~1serverInfo"))?;
        let text = |key: &str| info[key].as_str().unwrap_or_default().to_owned();
        Some((text("name"), text("version")))
    })
}

/// How long the server took for its first message.
fn first_answer(trace: &Trace) -> Option<Duration> {
    let begun = trace.events().next()?.at;
    let first = trace.frames().find(|frame| frame.direction == Direction::ServerToClient)?;
    Some(first.at.saturating_sub(begun))
}
