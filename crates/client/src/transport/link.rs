//! An open connection.

use super::{Child, Outgoing, duplex::Incoming};

/// The frames of an open connection, and the process at its other end.
pub(crate) struct Link {
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    pub(crate) child: Option<Child>,
}
