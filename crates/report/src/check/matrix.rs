//! The matrix of a text report: a line for each area, a column for each version of each server.

use std::fmt::Write;

use anstyle::Style;

use super::{CheckTotals, CheckedServer, CheckedVersion, JudgedCheck};
use crate::palette::{BAD, DIM, DOUBTFUL, GOOD, styled};

/// The width of a column.
const WIDTH: usize = 13;
/// What the areas are about.
const AREAS: [(&str, &str); 35] = [
    ("ask", "requests to the client"),
    ("auth", "authorization"),
    ("cache", "caching"),
    ("cancel", "cancellation"),
    ("comp", "completion"),
    ("discover", "discovery"),
    ("era", "both eras"),
    ("hdr", "HTTP headers"),
    ("http", "HTTP"),
    ("io", "process"),
    ("issuer", "authorization server"),
    ("life", "handshake"),
    ("list", "lists"),
    ("log", "logging"),
    ("lsse", "HTTP+SSE"),
    ("meta", "_meta"),
    ("modern", "2026-07-28"),
    ("mrtr", "input required"),
    ("page", "pagination"),
    ("ping", "ping"),
    ("progress", "progress"),
    ("prompts", "prompts"),
    ("res", "resources"),
    ("result", "results"),
    ("robust", "odd servers"),
    ("rpc", "JSON-RPC"),
    ("safety", "harm"),
    ("schema", "schema"),
    ("skills", "skills"),
    ("sse", "event streams"),
    ("sub", "subscriptions"),
    ("tasks", "tasks"),
    ("taskx", "tasks extension"),
    ("tools", "tools"),
    ("ws", "WebSocket"),
];

/// One version of one server.
#[derive(Clone, Copy)]
pub(super) struct Column<'r> {
    pub(super) server: &'r CheckedServer,
    pub(super) version: &'r CheckedVersion,
}

impl<'r> Column<'r> {
    /// The columns of a server.
    pub(super) fn of(server: &'r CheckedServer) -> impl Iterator<Item = Column<'r>> {
        server.versions.iter().map(move |version| Column { server, version })
    }

    /// Transport and version.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.server.transport, self.version.version)
    }

    /// The mark and the counts of an area; `None` if nothing of it applies.
    fn cell(&self, area: &str) -> Option<(String, Style)> {
        let totals = CheckTotals::count(self.version.checks.iter().filter(|check| check.area() == area));
        let CheckTotals { failed, warnings, accepted, passed, info, not_tested, .. } = totals;
        let held = passed + info;
        Some(match (failed, warnings, accepted) {
            (0, 0, 0) if held > 0 => (format!("✓ {held}"), GOOD),
            (0, 0, 0) if not_tested > 0 => (format!("· {not_tested}"), DIM),
            (0, 0, 0) => return None,
            (0, 0, _) => (format!("~ {held}  {accepted}"), DIM),
            (0, ..) => (format!("! {held}  {warnings}"), DOUBTFUL),
            _ => (format!("✗ {held}  {}", failed + warnings), BAD),
        })
    }
}

/// Whether all columns are of one transport.
pub(super) fn has_one_transport(columns: &[Column<'_>]) -> bool {
    columns.iter().all(|column| column.server.transport == columns[0].server.transport)
}

/// The areas of the columns, in order.
fn areas<'r>(columns: &[Column<'r>]) -> Vec<&'r str> {
    let mut areas: Vec<&str> = Vec::new();
    for area in columns.iter().flat_map(|column| &column.version.checks).map(JudgedCheck::area) {
        if !areas.contains(&area) {
            areas.push(area);
        }
    }
    areas
}

/// An area in words.
fn words(area: &str) -> &str {
    let name = area.strip_prefix("client-").unwrap_or(area);
    AREAS.iter().find(|(known, _)| *known == name).map_or(name, |(_, words)| words)
}

/// Writes the matrix with its legend; if it is too wide, in a part for each server.
pub(super) fn matrix(out: &mut String, columns: &[Column<'_>], width: usize) {
    let areas = areas(columns);
    let name = areas.iter().map(|area| words(area).len()).max().unwrap_or_default() + 2;
    let fits = (width.saturating_sub(name) / WIDTH).max(1);
    let is_same = |one: &Column<'_>, other: &Column<'_>| std::ptr::eq(one.server, other.server);
    let parts: Vec<_> = match columns.len() <= fits {
        true => vec![columns],
        false => columns.chunk_by(is_same).flat_map(|columns| columns.chunks(fits)).collect(),
    };
    // The transport is named unless there is only one.
    let is_named = !has_one_transport(columns);
    for part in parts {
        self::part(out, part, &areas, name, is_named);
        out.push('\n');
    }
    let legend = "✓ kept   ! kept, warnings   ✗ kept, violated   ~ kept, accepted   · not tested   – does not apply";
    let _ = writeln!(out, "{}\n", styled(legend, DIM));
}

fn part(out: &mut String, columns: &[Column<'_>], areas: &[&str], name: usize, is_named: bool) {
    if is_named {
        let _ = write!(out, "{:name$}", "");
        for column in columns {
            let _ = write!(out, "{:WIDTH$}", column.server.transport);
        }
        end_line(out);
    }
    let _ = write!(out, "{:name$}", "");
    for column in columns {
        let _ = write!(out, "{:WIDTH$}", column.version.version);
    }
    end_line(out);
    for area in areas {
        let cells: Vec<_> = columns.iter().map(|column| column.cell(area)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(out, "{:name$}", words(area));
        for cell in cells {
            let (text, style) = cell.unwrap_or(("–".to_owned(), DIM));
            let pad = WIDTH.saturating_sub(text.chars().count());
            let _ = write!(out, "{}{:pad$}", styled(text, style), "");
        }
        end_line(out);
    }
}

fn end_line(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}
