//! Servers of YAML whose keys stand beside them instead of below them.

use super::Named;
use crate::config::{
    Value,
    dialect::Dialect,
    finding::{Finding, codes},
};

/// Tells of keys of a server that follow it where the next server should be, and takes them out of the servers, together
/// with the one that has nothing left.
pub(super) fn take_out(named: &mut Vec<Named<'_>>, dialect: &Dialect, findings: &mut Vec<Finding>) {
    let mut owner: Option<(String, bool)> = None;
    let mut lost = Vec::new();
    for (index, (name, node)) in named.iter().enumerate() {
        let is_key = !matches!(node.value, Value::Mapping(_)) && dialect.keys.iter().any(|key| key.name == name.value);
        // In JSON nothing has a text of its own.
        let is_left_out = node.is_null() && node.span.start == node.span.end;
        match &mut owner {
            Some((above, is_told)) if is_key => {
                lost.push(index);
                if !std::mem::replace(is_told, true) {
                    lost.push(index - 1);
                    let message = format!("this is a server of its own, and no part of `{above}`");
                    let hint = format!("indent everything that belongs to `{above}` below it");
                    findings.push(codes::VALUE_TYPE.at(name.span, message).hint(hint).about(above.as_str()));
                }
            }
            _ => owner = is_left_out.then(|| (name.value.clone(), false)),
        }
    }
    if !lost.is_empty() {
        let mut index = 0..;
        named.retain(|_| index.next().is_none_or(|index| !lost.contains(&index)));
    }
}
