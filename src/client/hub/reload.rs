//! A hub whose config has changed.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
};

use super::{Connect, ConnectError, Hub, HubError, Member, State, slot::Slot};

/// What came of a changed config, by the names of the servers.
#[derive(Debug, Default)]
pub struct Reloaded {
    pub added: Vec<Arc<str>>,
    pub removed: Vec<Arc<str>>,
    /// Those that are connected to anew, since how to reach them has changed.
    pub restarted: Vec<Arc<str>>,
    /// Those of them that cannot be reached.
    pub unreachable: Vec<(Arc<str>, Arc<ConnectError>)>,
}

impl Hub {
    /// Takes over a changed config: connections of servers that are reached as before stay open. Whoever reads the file
    /// gives only a config that is valid, so that the one before counts until then.
    ///
    /// # Errors
    /// [`HubError::Duplicate`]; the servers have changed all the same, and the registry stays as it was.
    pub async fn reload(&self, members: impl IntoIterator<Item = Member>) -> Result<Reloaded, HubError> {
        let (mut reloaded, mut kept) = (Reloaded::default(), HashSet::new());
        let (before, mut slots, mut fresh, mut ended) = (self.slots(), Vec::new(), Vec::new(), Vec::new());
        for member in members {
            let known = before.iter().find(|slot| *slot.name == *member.config.name);
            if let Some(slot) = known
                && slot.member().has_connection_of(&member)
            {
                slot.set_member(member);
                kept.insert(slot.name.clone());
                slots.push(slot.clone());
                continue;
            }
            let slot = Arc::new(Slot::new(member, self.0.stop.clone()));
            match known {
                Some(_) => reloaded.restarted.push(slot.name.clone()),
                None => reloaded.added.push(slot.name.clone()),
            }
            fresh.push(slot.clone());
            slots.push(slot);
        }
        for slot in before {
            if kept.contains(&slot.name) {
                continue;
            }
            if !reloaded.restarted.contains(&slot.name) {
                reloaded.removed.push(slot.name.clone());
            }
            ended.push(slot);
        }
        *self.0.slots.write().unwrap_or_else(PoisonError::into_inner) = slots;
        for slot in ended {
            self.0.results.forget(&slot.name);
            slot.disconnect(State::NotConnected).await;
        }
        let wanted = fresh.into_iter().filter(|slot| slot.status().state != State::Disabled);
        for slot in wanted.filter(|_| self.0.options.connect == Connect::Eager) {
            if let Err(error) = self.connect_and_list(&slot).await {
                reloaded.unreachable.push((slot.name.clone(), error));
            }
        }
        self.register()?;
        Ok(reloaded)
    }
}
