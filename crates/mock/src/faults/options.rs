//! Reading options that several faults have in common.

use rehearse_document::{Fields, Node, Problems, Value};

/// The largest number of bytes that a script may ask for.
const MAX: usize = 1 << 30;

/// The options of a fault.
///
/// # Errors
/// An option is unknown.
pub(super) fn read<'n>(info: &super::FaultInfo, node: &'n Node) -> Result<Fields<'n>, Problems> {
    let keys: Vec<_> = info.options.iter().map(|(key, _)| *key).collect();
    node.fields(&format!("`{}`", info.name), &keys)
}

/// A number of bytes, such as `20`, `64 KB` or `5 MiB`.
///
/// # Errors
/// It is not a number of bytes, or more than 1 GiB.
pub(crate) fn bytes(node: &Node) -> Result<usize, Problems> {
    let wrong = || node.problem("expected a number of bytes").hint("write 20, 64KB, 5MB or 5MiB; at most 1GiB").into();
    let text = match &node.value {
        Value::Number(text) | Value::String(text) => text.trim(),
        _ => return Err(wrong()),
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number = digits.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(scale));
    number.filter(|number| *number <= MAX).ok_or_else(wrong)
}

/// Like [`bytes`], and at least one.
///
/// # Errors
/// Like [`bytes`], or it is 0.
pub(crate) fn some_bytes(node: &Node) -> Result<usize, Problems> {
    match bytes(node)? {
        0 => Err(node.problem("expected at least one byte").into()),
        number => Ok(number),
    }
}

/// Whether the options are a scalar.
pub(super) fn is_scalar(node: &Node) -> bool {
    matches!(node.value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}
