//! The rules that were added while the script is served.

use std::sync::{Arc, atomic::AtomicU64};

use parking_lot::{Mutex, MutexGuard};

use crate::script::AddedRule;

/// The rules that were added, the latest last. A caller that changes the script holds the lock.
#[derive(Debug, Default)]
pub(super) struct AddedRules {
    rules: Mutex<Vec<Arc<AddedRule>>>,
    /// The number of ids so far. Changed only under the lock.
    pub(super) ids: AtomicU64,
}

impl AddedRules {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Arc<AddedRule>>> {
        self.rules.lock()
    }
}
