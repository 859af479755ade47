//! The result as JSON.

use super::RunResult;

pub(super) fn render(result: &RunResult) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(result).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
