mod group;
mod own;

pub use group::ProcessGroup;
pub(super) use own::{detach, kill_left, rename_self};
pub use own::{exit_signal, interrupt_self, is_alive, kill_self};
