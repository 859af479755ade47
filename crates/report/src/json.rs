//! Results as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{RunResult, Verdict};

/// The result of a run with its verdict.
#[derive(Serialize, JsonSchema)]
pub struct Judged<'a> {
    /// Of all cells; incomplete if a part of the run is missing.
    verdict: Verdict,
    #[serde(flatten)]
    result: &'a RunResult,
}

/// The result of a run, with a final newline.
pub(crate) fn render_run(result: &RunResult) -> Vec<u8> {
    render(&Judged { verdict: result.verdict(), result })
}

/// The value, with a final newline.
pub(crate) fn render(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
