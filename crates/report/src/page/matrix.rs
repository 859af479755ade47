//! The table of a section: what was run, where, and how it ended.

use maud::{Markup, html};

use super::{cut, id, prose};
use crate::{
    summary::{Matrix, Outcome, Row, RowGroup, counted, readable},
    text::printable,
};

/// The rows with failures, then all rows, folded if there are others.
pub(super) fn matrix(at: usize, matrix: &Matrix) -> Markup {
    let is_wrong = |row: &&Row| row.worst() <= Outcome::Warning;
    let is_checks = matrix.row == "check";
    let all = || matrix.groups.iter().flat_map(|group| &group.rows);
    let (wrong, count) = (all().filter(is_wrong).collect::<Vec<_>>(), all().count());
    if count == 0 {
        return html! {};
    }
    html! {
        h3 id={ "m" (at) } {
            @match matrix.row {
                "check" => "Rules by transport and protocol version ",
                "tool" => "Tools by host ",
                _ => "Scenarios by transport and protocol version ",
            }
            span class="quiet" { (legend(matrix)) }
        }
        @if !wrong.is_empty() && wrong.len() < count {
            div class="brief" { (rows(at, matrix, &wrong, is_checks)) }
            details class="area" {
                summary { "All " (count) " " (matrix.row) "s" }
                (groups(at, matrix))
            }
        } @else { (groups(at, matrix)) }
    }
}

/// Every row; the rows of an area are folded if there are several areas.
fn groups(at: usize, matrix: &Matrix) -> Markup {
    let is_folded = matrix.groups.len() > 1;
    html! {
        @for group in &matrix.groups {
            @let (none, all): (Vec<_>, Vec<_>) = group.rows.iter().partition(|row| is_folded && row.worst() == Outcome::NotApplicable);
            @if is_folded {
                @let worst = group.rows.iter().map(Row::worst).min().unwrap_or(Outcome::NotApplicable);
                details class="area" {
                    summary { span class={ "mark " (worst) } { (worst.mark()) } " " b { (printable(&group.name)) } " " (tally(group)) }
                    @if !all.is_empty() { (rows(at, matrix, &all, false)) }
                    @if !none.is_empty() {
                        details { summary { (none.len()) " not applicable" } (rows(at, matrix, &none, false)) }
                    }
                }
            } @else { (rows(at, matrix, &all, false)) }
        }
    }
}

fn tally(group: &RowGroup) -> Markup {
    let outcomes = group.rows.iter().flat_map(|row| row.cells.iter().flatten()).map(|(outcome, _)| *outcome);
    html! {
        span class="quiet" {
            @for (at, (outcome, count)) in counted(outcomes).iter().enumerate() {
                @if at > 0 { ", " }
                (count) " " (outcome.phrase())
            }
        }
    }
}

fn legend(matrix: &Matrix) -> Markup {
    let cells = matrix.groups.iter().flat_map(|group| &group.rows).flat_map(|row| row.cells.iter().flatten());
    let present: std::collections::BTreeSet<_> = cells.map(|(outcome, _)| *outcome).collect();
    html! {
        span class="legend" {
            @for outcome in present { span { b class=(outcome) { (outcome.mark()) } " " (outcome.phrase()) } " " }
        }
    }
}

/// A table of these rows; `is_explained` says whether the note of a row is shown.
fn rows(at: usize, matrix: &Matrix, rows: &[&Row], is_explained: bool) -> Markup {
    let has_time = rows.iter().any(|row| row.duration.is_some());
    let mut spans: Vec<(&str, usize)> = Vec::new();
    for (name, _) in &matrix.columns {
        match spans.last_mut() {
            Some((known, count)) if known == name => *count += 1,
            _ => spans.push((name, 1)),
        }
    }
    html! {
        div class="wide" {
            table class="matrix" {
                col;
                @for (_, count) in &spans { colgroup { @for _ in 0..*count { col; } } }
                thead {
                    tr { td {} @for (name, count) in &spans { th scope="colgroup" colspan=(count) { (printable(name)) } } @if has_time { td {} } }
                    tr {
                        td {}
                        @for (group, name) in &matrix.columns {
                            th scope="col" data-transport=(printable(group)) data-protocol=(printable(name)) { span { (printable(name)) } }
                        }
                        @if has_time { th class="time" title="of the slowest cell" { "time" } }
                    }
                }
                tbody { @for row in rows { (self::row(at, matrix, row, is_explained)) } }
            }
        }
    }
}

fn row(at: usize, matrix: &Matrix, row: &Row, is_explained: bool) -> Markup {
    html! {
        tr {
            @if is_explained {
                th scope="row" class="rule" { (prose(&cut(&row.note, 300))) " " code { (printable(&row.name)) } }
            } @else {
                th scope="row" title=(printable(&cut(&row.note, 300))) { (printable(&row.name)) }
            }
            @for (cell, (group, name)) in row.cells.iter().zip(&matrix.columns) {
                @match cell {
                    None => td {},
                    Some((outcome, None)) => td class=(outcome) { (outcome.mark()) },
                    Some((Outcome::Passed, Some(warning))) => td class="passed warning" {
                        a href={ "#" (id(at, *warning)) } title={ (printable(group)) "/" (printable(name)) ": passed, with a warning" } { "✓▲" }
                    },
                    Some((outcome, Some(failure))) => td class=(outcome) {
                        a href={ "#" (id(at, *failure)) } title={ (printable(group)) "/" (printable(name)) ": " (outcome.phrase()) } { (outcome.mark()) }
                    },
                }
            }
            @if let Some(duration) = row.duration { td class="time" { (readable(duration)) } }
        }
    }
}
