//! Results as JSON.

use serde::Serialize;

/// The value, with a final newline.
pub(crate) fn render(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
