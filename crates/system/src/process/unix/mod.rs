mod group;
mod own;
mod scan;
#[cfg(test)]
mod tests;

pub use group::ProcessGroup;
pub(super) use own::{detach, rename_self};
pub use own::{exit_signal, interrupt_self, is_alive, kill_self};
pub(super) use scan::kill_left;
