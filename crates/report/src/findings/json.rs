//! The report as JSON.

use serde::Serialize;

use super::{Contact, File, Finding, Report, Verdict};
use crate::json;

#[derive(Serialize)]
struct JsonReport<'r> {
    /// Incremented by incompatible changes.
    format: u32,
    files: Vec<JsonFile<'r>>,
    totals: Totals,
}

#[derive(Serialize)]
struct JsonFile<'r> {
    path: &'r str,
    readable: bool,
    valid: bool,
    dialect: Option<&'static str>,
    why: Option<&'r str>,
    /// Whether another program is possible.
    guessed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<&'static str>,
    servers: Vec<JsonServer<'r>>,
    findings: Vec<JsonFinding<'r>>,
}

#[derive(Serialize)]
struct JsonServer<'r> {
    name: &'r str,
    /// Only for servers of a project.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'r str>,
    transport: &'static str,
    enabled: bool,
    /// Only after a connection attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    reached: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'r [String]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonFinding<'r> {
    code: &'static str,
    severity: String,
    message: &'r str,
    hint: Option<&'r str>,
    server: Option<&'r str>,
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
    let count = |verdict| report.files.iter().filter(|file| file.verdict(report.is_strict) == verdict).count();
    let totals = Totals {
        files: report.files.len(),
        valid: count(Verdict::Valid),
        invalid: count(Verdict::Invalid),
        unreadable: count(Verdict::Unreadable),
        servers: report.files.iter().map(|file| file.servers.len()).sum(),
        errors: counts.errors,
        warnings: counts.warnings,
        advice: counts.advice,
    };
    let whole =
        JsonReport { format: 1, files: report.files.iter().map(|file| json_file(report, file)).collect(), totals };
    json::render(&whole)
}

fn json_file<'r>(report: &Report, file: &'r File) -> JsonFile<'r> {
    let servers = file.servers.iter().map(|server| {
        let (reached, tools) = match &server.contact {
            Contact::NotTried | Contact::Interrupted => (None, None),
            Contact::Reached { tools, .. } => (Some(true), Some(&tools[..])),
            Contact::Failed => (Some(false), None),
        };
        let project = server.project.as_deref();
        JsonServer {
            name: &server.name,
            project,
            transport: server.transport,
            enabled: server.is_enabled,
            reached,
            tools,
        }
    });
    JsonFile {
        path: &file.path,
        readable: file.is_readable,
        valid: file.verdict(report.is_strict) == Verdict::Valid,
        dialect: file.dialect.as_ref().map(|dialect| dialect.name),
        why: file.dialect.as_ref().map(|dialect| &*dialect.why),
        guessed: file.dialect.as_ref().is_some_and(|dialect| dialect.is_guess),
        release: file.release,
        servers: servers.collect(),
        findings: report.shown(file).map(|finding| json_finding(file, finding)).collect(),
    }
}

fn json_finding<'r>(file: &File, finding: &'r Finding) -> JsonFinding<'r> {
    let ((line, column), (end_line, end_column)) = file.positions(finding);
    JsonFinding {
        code: finding.code.name,
        severity: finding.code.severity().to_string(),
        message: &finding.problem.message,
        hint: finding.problem.hint.as_deref(),
        server: finding.server.as_deref(),
        line,
        column,
        end_line,
        end_column,
    }
}
