//! Reading options that several faults have in common.

use rehearse_document::{Fields, Node, Problems, Value};

/// The options of a fault.
///
/// # Errors
/// An option is unknown.
pub(super) fn read<'n>(info: &super::FaultInfo, node: &'n Node) -> Result<Fields<'n>, Problems> {
    let keys: Vec<_> = info.options.iter().map(|(key, _)| *key).collect();
    node.fields(&format!("`{}`", info.name), &keys)
}

/// Like [`Node::bytes`], and at least one.
///
/// # Errors
/// Like [`Node::bytes`], or it is 0.
pub(crate) fn some_bytes(node: &Node) -> Result<usize, Problems> {
    match node.bytes()? {
        0 => Err(node.problem("expected at least one byte").into()),
        number => Ok(number),
    }
}

/// Whether the options are a scalar.
pub(super) fn is_scalar(node: &Node) -> bool {
    matches!(node.value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}
