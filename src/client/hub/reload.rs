//! A hub whose config has changed.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
};

use futures_util::{StreamExt, future::join_all, stream};

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
        let (mut reloaded, leave) = self.replace(members.into_iter().collect());
        leave.await;
        let fresh = reloaded.added.iter().chain(&reloaded.restarted).cloned().enumerate();
        let connecting = fresh.filter(|_| self.0.options.connect == Connect::Eager).map(|(place, name)| async move {
            let came = self.connect(&name).await;
            (place, name, came)
        });
        let mut connecting = stream::iter(connecting).buffer_unordered(self.0.options.concurrency.get());
        let mut unreachable = Vec::new();
        while let Some((place, name, came)) = connecting.next().await {
            if let Err(HubError::Unreachable { error, .. }) = came {
                unreachable.push((place, name, error));
            }
        }
        drop(connecting);
        unreachable.sort_by_key(|(place, ..)| *place);
        reloaded.unreachable = unreachable.into_iter().map(|(_, name, error)| (name, error)).collect();
        self.register()?;
        Ok(reloaded)
    }

    /// Takes over a changed config without connecting to anything: the tools of servers that are gone, or reached
    /// otherwise, are gone at once. The future takes leave of those; until then nobody is to connect to the new ones.
    pub fn replace(&self, members: Vec<Member>) -> (Reloaded, impl Future<Output = ()> + Send + use<>) {
        let (mut reloaded, mut kept) = (Reloaded::default(), HashSet::new());
        let (before, mut slots, mut ended) = (self.slots(), Vec::new(), Vec::new());
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
        ended.iter().for_each(|slot| self.0.results.forget(&slot.name));
        self.register_or_tell();
        let leave = async move {
            join_all(ended.iter().map(|slot| slot.disconnect(State::NotConnected))).await;
        };
        (reloaded, leave)
    }
}
