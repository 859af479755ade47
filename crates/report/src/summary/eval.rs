//! The table of tasks and models.

use rehearse_document::text::shortened;

use super::{Outcome, Remark, Table, TableRow, readable};
use crate::{
    RunResult,
    eval::{EvalComparison, EvalSpending, ModelResult},
    groups::grouped,
};

/// How many characters of a description are shown.
const DESCRIPTION: usize = 200;
const HEADS: [&str; 7] = ["passed", "rate (95 %)", "calls", "failed", "tokens", "cost", "time"];

/// The runs of all models in all steps; `None` if no model played.
pub(super) fn table(result: &RunResult) -> Option<Table> {
    let (mut rows, mut remarks, mut totals) = (Vec::new(), Vec::new(), Vec::<(String, ModelResult)>::new());
    for scenario in &result.scenarios {
        for cell in &scenario.cells {
            for step in &cell.steps {
                for played in &step.models {
                    let place = if scenario.cells.len() == 1 { String::new() } else { format!(" in {}", cell.cell) };
                    let task = format!("{}:{}{place}", scenario.name, step.line);
                    rows.push(row(format!("{} · {task}", played.model), played));
                    let of_task = self::remarks(&task, played).into_iter();
                    remarks.extend(of_task.map(|text| Remark::new(Outcome::Info, text)));
                    match totals.iter_mut().find(|(model, _)| *model == played.model) {
                        Some((_, total)) => {
                            total.runs.extend(played.runs.iter().cloned());
                            total.error = total.error.take().or(played.error.clone());
                        }
                        None => totals.push((played.model.clone(), played.clone())),
                    }
                }
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    if rows.len() > totals.len() {
        rows.extend(totals.iter().map(|(model, total)| row(format!("{model} · all"), total)));
    }
    let (title, heads) = ("Models".to_owned(), HEADS.to_vec());
    Some(Table { title, heads, rows, histograms: Vec::new(), remarks })
}

fn row(name: String, played: &ModelResult) -> TableRow {
    TableRow { outcome: None, name, cells: cells(played) }
}

fn cells(played: &ModelResult) -> Vec<String> {
    let (passed, all) = (played.passed(), played.runs.len());
    let mark = if played.error.is_some() { "!" } else { "" };
    let (low, high) = played.interval();
    let percent = |rate: f64| (rate * 100.0).round();
    let of_each = |sum: f64| sum / all.max(1) as f64;
    let rate = match all {
        0 => "–".to_owned(),
        _ => format!("{} % ({}–{})", percent(of_each(passed as f64)), percent(low), percent(high)),
    };
    let calls = || played.runs.iter().flat_map(|run| &run.calls);
    let of_runs = |text: String| if all == 0 { "–".to_owned() } else { text };
    vec![
        format!("{passed}/{all}{mark}"),
        rate,
        of_runs(format!("{:.1}", of_each(calls().count() as f64))),
        of_runs(calls().filter(|call| call.is_error).count().to_string()),
        of_runs(played.tokens().to_string()),
        played.cost().map_or_else(|| "–".to_owned(), |cost| format!("${cost:.4}")),
        of_runs(readable(played.runs.iter().map(|run| run.duration).sum())),
    ]
}

fn remarks(task: &str, played: &ModelResult) -> Vec<String> {
    let mut remarks = Vec::new();
    for confusion in &played.confusions {
        remarks.push(format!("{task}: {}", confusion.sentence(&played.model, played.runs.len())));
        let tools = std::iter::once(&confusion.expected).chain(&confusion.called);
        remarks.extend(tools.map(|tool| match &*tool.description {
            "" => format!("  `{}` has no description", tool.name),
            text => format!("  `{}`: {}", tool.name, shortened(text, DESCRIPTION)),
        }));
    }
    let mut warnings: Vec<_> = played.runs.iter().flat_map(|run| &run.warnings).collect();
    warnings.sort();
    let counted = grouped(warnings.into_iter().map(|warning| (warning, ())), |one, other| one == other);
    remarks.extend(
        counted.into_iter().map(|(warning, times)| format!("{task}: {}: {warning} ({}×)", played.model, times.len())),
    );
    let (asked, runs) = (played.error.is_some(), played.runs.len());
    remarks.extend(asked.then(|| format!("{task}: {} was not asked any more; its whole runs: {runs}", played.model)));
    remarks
}

/// What providers were asked, and what is otherwise than in the earlier run.
pub(super) fn sentences(result: &RunResult) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(EvalSpending { requests, tokens, cost }) = result.spending.filter(|spending| spending.requests > 0) {
        let cost = if cost > 0.0 { format!(", ${cost:.4}") } else { String::new() };
        sentences.push(format!("providers were asked {requests} times: {tokens} tokens{cost}, with judges"));
    }
    let Some(comparison) = &result.comparison else { return sentences };
    let EvalComparison { compared, changes, not_compared } = comparison;
    sentences.extend(changes.iter().map(|change| format!("{}: {change}", change.task)));
    if changes.is_empty() && *compared > 0 {
        sentences.push(format!("compared with the earlier run: no change ({compared} compared)"));
    }
    sentences.extend(
        not_compared.iter().map(|task| format!("{task}: not compared, because one of both runs does not have it")),
    );
    sentences
}
