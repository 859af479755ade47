//! The table of tasks and models.

use rehearse_document::text::shortened;

use super::ModelResult;
use crate::{
    RunResult,
    summary::{Table, readable},
};

/// How many characters of a description are shown.
const DESCRIPTION: usize = 200;
const HEADS: [&str; 6] = ["passed", "rate (95 %)", "calls", "tokens", "cost", "time"];

/// The runs of all models in all steps; `None` if no model played.
pub(crate) fn table(result: &RunResult) -> Option<Table> {
    let (mut rows, mut remarks, mut totals) = (Vec::new(), Vec::new(), Vec::<(String, ModelResult)>::new());
    for scenario in &result.scenarios {
        for cell in &scenario.cells {
            for step in &cell.steps {
                for played in &step.models {
                    let place = if scenario.cells.len() == 1 { String::new() } else { format!(" in {}", cell.cell) };
                    let task = format!("{}:{}{place}", scenario.name, step.line);
                    rows.push((format!("{} · {task}", played.model), cells(played)));
                    remarks.extend(self::remarks(&task, played));
                    match totals.iter_mut().find(|(model, _)| *model == played.model) {
                        Some((_, total)) => total.runs.extend(played.runs.iter().cloned()),
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
        rows.extend(totals.iter().map(|(model, total)| (format!("{model} · all"), cells(total))));
    }
    let (title, heads) = ("Models".to_owned(), HEADS.to_vec());
    Some(Table { title, error: None, heads, rows, histograms: Vec::new(), remarks })
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
    let calls: usize = played.runs.iter().map(|run| run.calls.len()).sum();
    vec![
        format!("{passed}/{all}{mark}"),
        rate,
        format!("{:.1}", of_each(calls as f64)),
        played.tokens().to_string(),
        played.cost().map_or_else(|| "–".to_owned(), |cost| format!("${cost:.4}")),
        readable(played.runs.iter().map(|run| run.duration).sum()),
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
    remarks
        .extend(played.error.as_ref().map(|error| format!("{task}: {} was not asked any more: {error}", played.model)));
    remarks
}

/// What is otherwise than in the earlier run, as a table without columns; `None` if nothing was compared.
pub(crate) fn comparisons(result: &RunResult) -> Option<Vec<String>> {
    let found = result.comparisons.as_ref()?;
    if found.is_empty() {
        return Some(vec!["the models do as in the earlier run".to_owned()]);
    }
    Some(found.iter().map(|it| format!("{}: {it}", it.task)).collect())
}
