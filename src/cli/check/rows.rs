//! `--list` and `--explain`.

use std::fmt::Write;

use crate::cli::{
    Failure, output,
    style::{DIM, STRONG},
};
use rehearse_conformance::{Row, rows};
use rehearse_document::nearest;

/// Whether a pattern, in which `*` stands for any text, matches an id or its area.
pub(super) fn matches(pattern: &str, id: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == id };
    let Some(id) = id.strip_prefix(start) else { return false };
    (0..=id.len()).any(|at| id.get(at..).is_some_and(|id| matches(rest, id)))
}

/// Prints the selected rows, one a line.
pub(super) fn list(is_selected: impl Fn(&Row) -> bool) -> Result<(), Failure> {
    let mut out = String::new();
    for row in rows().iter().filter(|row| is_selected(row)) {
        let level = row.levels.values().next_back().map_or("", |level| level.as_str());
        let _ = writeln!(out, "{STRONG}{:45}{STRONG:#} {level:10} {}", row.id, row.rule);
    }
    output::write_styled(out.as_bytes())
}

/// Prints all that is known of a row.
///
/// # Errors
/// There is no such row.
pub(super) fn explain(id: &str) -> Result<(), Failure> {
    let Some(row) = rows().iter().find(|row| row.id == id) else {
        let ids: Vec<_> = rows().iter().map(|row| row.id.as_str()).collect();
        let near = nearest(id, &ids).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        return Err(Failure::Usage(format!("there is no row {id:?}{near}")));
    };
    let mut out = format!("{STRONG}{}{STRONG:#}\n{}\n\n", row.id, row.rule);
    for (version, level) in &row.levels {
        let _ = writeln!(out, "{version}  {:10} {DIM}{}{DIM:#}", level.as_str(), row.link(*version));
    }
    let transports: Vec<_> = row.transports.iter().map(|transport| transport.as_str()).collect();
    let _ = writeln!(out, "\nTransports: {}", transports.join(", "));
    if let Some(capability) = &row.capability {
        let _ = writeln!(out, "Needs: the capability `{capability}`");
    }
    if let Some(extension) = &row.extension {
        let _ = writeln!(out, "Needs: the extension `{extension}`");
    }
    let _ = writeln!(out, "Looks at: {}", row.looks_at);
    if let Some(allowed) = &row.allowed {
        let _ = writeln!(out, "Allowed: {allowed}");
    }
    if let Some(help) = &row.help {
        let _ = writeln!(out, "Help: {help}");
    }
    if !row.official.is_empty() {
        let _ = writeln!(out, "Official suite: {}", row.official.join(", "));
    }
    output::write_styled(out.as_bytes())
}
