//! The judges of what a client does, by area.
//!
//! Most look at any traffic. Those of an act look for what a mock does in it, by its trace, or by the name of the act.

pub(super) mod life;
pub(super) mod rpc;
