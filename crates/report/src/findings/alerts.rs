//! The findings as alerts.

use super::{File, Finding, Report, Severity};
use crate::summary::{Alert, AlertRule, Outcome, Place, Rule, Scan};

pub(super) fn scan(report: &Report) -> Scan {
    let rules = report.rules.iter().map(|rule| AlertRule {
        id: rule.code.name.to_owned(),
        outcome: outcome(rule.code.severity()),
        rule: Rule { text: rule.code.title.to_owned(), help: Some(rule.help.to_owned()), link: String::new() },
        area: "config".to_owned(),
    });
    let alerts = report.files.iter().flat_map(|file| report.shown(file).map(|finding| alert(file, finding)));
    Scan { category: None, is_complete: true, rules: rules.collect(), alerts: alerts.collect() }
}

fn outcome(severity: Severity) -> Outcome {
    match severity {
        Severity::Error => Outcome::Failed,
        Severity::Warning => Outcome::Warning,
        Severity::Advice => Outcome::Info,
    }
}

fn alert(file: &File, finding: &Finding) -> Alert {
    let ((line, column), end) = file.positions(finding);
    let message = &finding.problem.message;
    Alert {
        rule: finding.code.name.to_owned(),
        outcome: outcome(finding.code.severity()),
        message: match &finding.problem.hint {
            Some(hint) => format!("{message} ({hint})"),
            None => message.to_string(),
        },
        place: Place { file: file.path.clone(), line, column: Some(column), end: Some(end) },
        subject: finding.server.as_ref().map(|server| [server.to_string(), server.to_string()]),
        ..Alert::default()
    }
}
