//! How large the values of a running script can become.

use super::keys::KEYS;
use crate::faults::options;
use rehearse_document::{Node, Problems, state::STATE_LIMIT, template::OUTPUT_LIMIT};

/// The limits of a script, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A text or JSON value that is filled in from templates.
    pub output: usize,
    /// All values of the state, as they are in memory.
    pub state: usize,
}

impl Default for Limits {
    /// 16 MiB and 64 MiB.
    fn default() -> Self {
        Limits { output: OUTPUT_LIMIT, state: STATE_LIMIT }
    }
}

impl Limits {
    pub(super) fn read(node: &Node) -> Result<Limits, Problems> {
        let fields = KEYS.fields(node, "limits")?;
        Ok(Limits {
            output: fields.read("output", options::some_bytes)?.unwrap_or(OUTPUT_LIMIT),
            state: fields.read("state", options::some_bytes)?.unwrap_or(STATE_LIMIT),
        })
    }
}
