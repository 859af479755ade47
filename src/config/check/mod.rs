//! What can be wrong with servers that were understood. One file for each part of a server.

use std::sync::Arc;

use super::{ClientConfig, Machine, Node, Source, finding::Finding};

/// What is checked.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) config: &'a ClientConfig,
    pub(super) root: &'a Node,
    pub(super) source: &'a Arc<Source>,
    /// `None` if the config need not work on this machine.
    pub(super) machine: Option<&'a Machine>,
}

/// Everything that there is to say, in no order.
pub(super) fn all(subject: &Subject<'_>, findings: &mut Vec<Finding>) {}
