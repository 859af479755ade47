//! The whole report as JSON.

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;

use super::{Contact, File, Report, Verdict, place::Positions};
use crate::config::{dialect::Detected, finding::Finding};

#[derive(Serialize)]
struct Whole<'r> {
    /// Counted up when a program that reads this would have to change.
    format: u32,
    files: Vec<OfFile<'r>>,
    totals: Totals,
}

#[derive(Serialize)]
struct OfFile<'r> {
    path: &'r str,
    readable: bool,
    valid: bool,
    dialect: Option<&'static str>,
    why: Option<&'r str>,
    /// Whether another program may be meant.
    guessed: bool,
    servers: Vec<OfServer<'r>>,
    findings: Vec<OfFinding>,
}

#[derive(Serialize)]
struct OfServer<'r> {
    name: &'r str,
    /// Only of servers that one project has.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'r str>,
    transport: &'static str,
    enabled: bool,
    /// Only where an attempt was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    reached: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'r [String]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfFinding {
    code: &'static str,
    severity: String,
    message: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
    server: Option<Arc<str>>,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

#[derive(Default, Serialize)]
struct Totals {
    files: usize,
    valid: usize,
    invalid: usize,
    unreadable: usize,
    servers: usize,
    errors: usize,
    warnings: usize,
    advice: usize,
}

pub(super) fn render(report: &Report) -> Vec<u8> {
    let counts = report.counts();
    let with = |verdict| report.files.iter().filter(|file| file.verdict(report.is_strict) == verdict).count();
    let totals = Totals {
        files: report.files.len(),
        valid: with(Verdict::Valid),
        invalid: with(Verdict::Invalid),
        unreadable: with(Verdict::Unreadable),
        servers: report.files.iter().map(|file| file.servers.len()).sum(),
        errors: counts.errors,
        warnings: counts.warnings,
        advice: counts.advice,
    };
    let whole = Whole { format: 1, files: report.files.iter().map(|file| of_file(report, file)).collect(), totals };
    let mut bytes = serde_json::to_vec_pretty(&whole).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn of_file<'r>(report: &Report, file: &'r File) -> OfFile<'r> {
    let told: Vec<_> = report.told(file).collect();
    let positions = Positions::of(&file.source, &told);
    let servers = file.servers.iter().map(|server| {
        let (reached, tools) = match &server.contact {
            Contact::NotTried | Contact::GivenUp => (None, None),
            Contact::Reached { tools, .. } => (Some(true), Some(&tools[..])),
            Contact::Failed => (Some(false), None),
        };
        let transport = server.transport.as_str();
        let project = server.project.as_deref();
        OfServer { name: &server.name, project, transport, enabled: server.is_enabled, reached, tools }
    });
    OfFile {
        path: &file.path,
        readable: file.is_readable,
        valid: file.verdict(report.is_strict) == Verdict::Valid,
        dialect: file.detected.as_ref().map(|detected| detected.dialect.name),
        why: file.detected.as_ref().map(|detected| &*detected.why),
        guessed: file.detected.as_ref().is_some_and(Detected::is_guess),
        servers: servers.collect(),
        findings: told.into_iter().map(|finding| of_finding(&positions, finding)).collect(),
    }
}

fn of_finding(positions: &Positions, finding: Finding) -> OfFinding {
    let ((line, column), (end_line, end_column)) = positions.both(finding.problem.span);
    OfFinding {
        code: finding.code.name,
        severity: finding.code.severity().to_string(),
        message: finding.problem.message,
        hint: finding.problem.hint,
        server: finding.server,
        line,
        column,
        end_line,
        end_column,
    }
}
