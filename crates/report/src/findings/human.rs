//! The text report: the findings with their source lines, then the result of each file.

use std::fmt::{self, Write};

use anstyle::Style;
use miette::{Diagnostic, LabeledSpan, MietteHandler, ReportHandler, SourceCode};

use super::{Contact, Counts, File, Finding, Report, Server, Severity, Verdict, snippet::Snippet};
use crate::{
    Layout,
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG, graphical},
    text::{printable, printable_text},
};

/// The maximum number of shown findings per file.
const MAX_FINDINGS: usize = 100;

pub(super) fn render(report: &Report, layout: &Layout) -> String {
    let (mut out, handler) = (String::new(), graphical(Some(layout.width)));
    for file in &report.files {
        let part = render_file(report, file, &handler, layout.width);
        if !(out.is_empty() || part.is_empty()) {
            out.push('\n');
        }
        out.push_str(&part);
    }
    if report.files.len() > 1 && !report.is_quiet {
        let _ = writeln!(out, "\n{}", summary(report));
    }
    out
}

fn render_file(report: &Report, file: &File, handler: &MietteHandler, width: usize) -> String {
    let mut out = String::new();
    let shown: Vec<_> = report.shown(file).take(MAX_FINDINGS).collect();
    let more = report.shown(file).count() - shown.len();
    for finding in &shown {
        let position = file.positions(finding).0;
        let name = printable(&file.path).into_owned();
        let snippet =
            (!file.source.text.is_empty()).then(|| Snippet::new(file, name, finding.problem.span, position, width));
        let _ = writeln!(out, "{}", FindingDisplay { finding, snippet, handler });
    }
    if more > 0 {
        let _ = writeln!(out, "and {more} more (--format json has all)\n");
    }
    let verdict = file.verdict(report.is_strict);
    if verdict != Verdict::Valid || !report.is_quiet {
        write_result(&mut out, file, verdict);
    }
    out
}

/// Appends the result of a file.
fn write_result(out: &mut String, file: &File, verdict: Verdict) {
    let (mark, style, text) = match verdict {
        Verdict::Valid if file.release.is_some() => ("✓", GOOD, "Release file is valid"),
        Verdict::Valid => ("✓", GOOD, "Configuration is valid"),
        _ if file.release.is_some() => ("✗", BAD, "Release file validation failed"),
        Verdict::Invalid | Verdict::Unreadable => ("✗", BAD, "Configuration validation failed"),
    };
    let _ = writeln!(out, "{style}{mark}{style:#} {text}");
    let _ = writeln!(out, "  - File: {}", printable(&file.path));
    if let Some(dialect) = &file.dialect {
        let why = printable(&dialect.why);
        let guess = if dialect.is_guess { "; a guess: name the program with --dialect" } else { "" };
        let _ = writeln!(out, "  - Dialect: {} ({why}{guess})", dialect.name);
    }
    if let Some(release) = file.release {
        let _ = writeln!(out, "  - Kind: {release}");
    } else if file.is_readable {
        let count = |is_meant: fn(&Server) -> bool| file.servers.iter().filter(|server| is_meant(server)).count();
        let kinds =
            [(count(|it| !it.is_enabled), "disabled"), (count(|it| it.project.is_some()), "of single projects")];
        let kinds = kinds.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let note = kinds.collect::<Vec<_>>().join(", ");
        let note = if note.is_empty() { note } else { format!(" ({note})") };
        let _ = writeln!(out, "  - Servers: {}{note}", file.servers.len());
    }
    let counts = file.counts();
    if counts != Counts::default() {
        let _ = writeln!(out, "  - Findings: {counts}");
    }
    if file.servers.iter().any(|server| server.contact != Contact::NotTried) {
        let tools = file.servers.iter().map(|server| match &server.contact {
            Contact::Reached { tools, .. } => tools.len(),
            Contact::NotTried | Contact::Failed | Contact::Interrupted => 0,
        });
        let _ = writeln!(out, "  - Total tools: {}", tools.sum::<usize>());
        file.servers.iter().for_each(|server| write_contact(out, server));
    }
}

fn write_contact(out: &mut String, server: &Server) {
    let (mark, style, text) = match &server.contact {
        Contact::Reached { tools, left_out } => {
            let note = if *left_out > 0 { format!(" ({left_out} left out by its filter)") } else { String::new() };
            ("✓", GOOD, format!("{}{note}", pluralize(tools.len(), "tool", "tools")))
        }
        Contact::Failed => ("✗", BAD, "cannot be reached".to_owned()),
        Contact::Interrupted => ("·", DOUBTFUL, "interrupted".to_owned()),
        Contact::NotTried => match server.project.as_ref().filter(|_| server.is_enabled) {
            Some(project) => ("–", DIM, format!("not started: only used in {}", printable(project))),
            None => ("–", DIM, "disabled".to_owned()),
        },
    };
    let _ = writeln!(out, "    {style}{mark}{style:#} {}: {text}", printable(&server.name));
}

/// `5 files: 3 valid, 1 with warnings, 1 with errors; 2 errors, 1 warning`
fn summary(report: &Report) -> String {
    let (mut errors, mut warnings, mut unreadable) = (0, 0, 0);
    for file in &report.files {
        let counts = file.counts();
        match (file.is_readable, counts.errors, counts.warnings) {
            (false, ..) => unreadable += 1,
            (true, 0, 0) => {}
            (true, 0, _) => warnings += 1,
            (true, ..) => errors += 1,
        }
    }
    let valid = report.files.len() - errors - warnings - unreadable;
    let parts = [
        (valid, "valid", GOOD),
        (warnings, "with warnings", DOUBTFUL),
        (errors, "with errors", BAD),
        (unreadable, "unreadable", BAD),
    ];
    let part = |(count, what, style): (usize, &str, Style)| format!("{style}{count} {what}{style:#}");
    let parts: Vec<_> = parts.into_iter().filter(|(count, ..)| *count > 0).map(part).collect();
    let counts = report.counts();
    let found = if counts == Counts::default() { String::new() } else { format!("; {counts}") };
    let files = pluralize(report.files.len(), "file", "files");
    format!("{STRONG}{files}{STRONG:#}: {}{found}", parts.join(", "))
}

fn pluralize(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.errors, "error", "errors"),
            (self.warnings, "warning", "warnings"),
            (self.advice, "piece of advice", "pieces of advice"),
        ];
        let parts: Vec<_> = parts
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many)| pluralize(count, one, many))
            .collect();
        f.write_str(&parts.join(", "))
    }
}

/// Displays a finding with its source lines.
struct FindingDisplay<'a> {
    finding: &'a Finding,
    snippet: Option<Snippet>,
    handler: &'a MietteHandler,
}

impl fmt::Display for FindingDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let finding = self.finding;
        let drawn = MietteDiagnostic {
            message: printable(&finding.problem.message).into_owned(),
            help: finding.problem.hint.as_ref().map(|hint| printable_text(hint)),
            label: finding.server.as_ref().map(|server| format!("in the server `{}`", printable(server))),
            finding,
            snippet: self.snippet.as_ref(),
        };
        self.handler.debug(&drawn, f)
    }
}

/// A finding as a miette diagnostic.
#[derive(Debug)]
struct MietteDiagnostic<'a> {
    message: String,
    help: Option<String>,
    label: Option<String>,
    finding: &'a Finding,
    snippet: Option<&'a Snippet>,
}

impl fmt::Display for MietteDiagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for MietteDiagnostic<'_> {}

impl Diagnostic for MietteDiagnostic<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.finding.code.name))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.finding.code.severity() {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Advice => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.snippet.map(|snippet| snippet as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.snippet?.span.clone();
        Some(Box::new(std::iter::once(LabeledSpan::new(self.label.clone(), span.start, span.len()))))
    }
}
