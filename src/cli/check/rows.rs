//! `--list` and `--explain`.

use std::fmt::Write;

use crate::cli::{
    Failure, output,
    style::{DIM, STRONG},
};
use rehearse_check::selects;
use rehearse_conformance::{Role, Row, rows, rows_of};
use rehearse_document::nearest;

/// The rows about a role.
pub(super) fn of(role: Role) -> impl Iterator<Item = &'static Row> {
    rows_of(role)
}

/// Prints rows, one a line, with their ids in the official suite.
pub(super) fn list(selected: impl Iterator<Item = &'static Row>) -> Result<(), Failure> {
    let mut out = String::new();
    for row in selected {
        let level = row.levels.values().next_back().map_or("", |level| level.as_str());
        let _ = write!(out, "{STRONG}{:45}{STRONG:#} {level:10} {}", row.id, row.rule);
        if !row.official.is_empty() {
            let _ = write!(out, "  {DIM}{}{DIM:#}", row.official.join(", "));
        }
        out.push('\n');
    }
    output::write_styled(out.as_bytes())
}

/// The failure about an id or a pattern that selects no row.
pub(super) fn unknown(id: &str, role: Role) -> Failure {
    if rows().iter().any(|row| row.role() != role && selects(id, &row.id)) {
        let command = if role == Role::Server { "rehearse check client" } else { "rehearse check" };
        return Failure::Usage(format!("the row {id:?} is one of `{command}`"));
    }
    let ids: Vec<_> = rows_of(role).map(|row| row.id.as_str()).collect();
    let near = nearest(id, &ids).map(|near| format!("did you mean {near}?"));
    let hint = near.unwrap_or_else(|| "`rehearse check --list` prints all rows".to_owned());
    Failure::Usage(format!("there is no row {id:?}; {hint}"))
}

/// Prints all that is known of a row.
///
/// # Errors
/// There is no such row.
pub(super) fn explain(id: &str) -> Result<(), Failure> {
    let Some(row) = rows().iter().find(|row| row.id == id) else { return Err(unknown(id, Role::Server)) };
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
