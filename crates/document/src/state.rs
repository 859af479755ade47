//! The state of a mock: named values that its answers read and change.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use serde_json::{Map, Value as Json};

use crate::ByteCount;

/// How many bytes of memory the values of a state may have, unless a file says otherwise.
pub const STATE_LIMIT: usize = 64 << 20;

/// A change that would make the state too large.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state would be larger than {} (`limits.state`); its largest value is `{name}`", ByteCount(*.limit))]
pub struct StateTooLarge {
    limit: usize,
    name: String,
}

/// Named values. Reading takes no lock, and sees all of a change or nothing of it.
pub struct State(ArcSwap<Map<String, Json>>);

impl State {
    /// The state with these values.
    pub fn new(values: Map<String, Json>) -> Self {
        State(ArcSwap::from_pointee(values))
    }

    /// The values as they are now.
    pub fn get(&self) -> Arc<Map<String, Json>> {
        self.0.load_full()
    }

    /// # Errors
    /// The values have more than `limit` bytes.
    pub fn check(values: &Map<String, Json>, limit: usize) -> Result<(), StateTooLarge> {
        let sizes = || values.iter().map(|(name, value)| (name.len() + size(value), name));
        match sizes().map(|(size, _)| size).sum::<usize>() > limit {
            true => Err(StateTooLarge { limit, name: sizes().max().map(|(_, name)| name.clone()).unwrap_or_default() }),
            false => Ok(()),
        }
    }

    /// The values are these from now on.
    pub fn replace(&self, values: Map<String, Json>) {
        self.0.store(Arc::new(values));
    }

    /// Changes values by what `change` makes of the present ones; a null takes a value away. Where another change came
    /// between, `change` is asked again, so that none is lost.
    ///
    /// # Errors
    /// That of `change`, or the state would have more than `limit` bytes; nothing was changed then.
    pub fn update<E: From<StateTooLarge>>(
        &self,
        limit: usize,
        mut change: impl FnMut() -> Result<Vec<(String, Json)>, E>,
    ) -> Result<(), E> {
        loop {
            let before = self.0.load_full();
            let mut values = Map::clone(&before);
            for (name, value) in change()? {
                match value {
                    Json::Null => {
                        values.shift_remove(&name);
                    }
                    value => {
                        values.insert(name, value);
                    }
                }
            }
            State::check(&values, limit)?;
            let previous = self.0.compare_and_swap(&before, Arc::new(values));
            if Arc::ptr_eq(&previous, &before) {
                return Ok(());
            }
        }
    }
}

/// The bytes that a value has in memory.
fn size(value: &Json) -> usize {
    let content = match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(size).sum(),
        Json::Object(members) => members.iter().map(|(name, value)| name.len() + size(value)).sum(),
    };
    size_of::<Json>() + content
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.get().iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_change_of_many_threads_is_lost_and_a_null_takes_a_value_away() {
        let state = State::new(Map::from_iter([("gone".to_owned(), json!(1))]));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let next = || {
                            let count = state.get().get("count").and_then(Json::as_u64).unwrap_or(0) + 1;
                            Ok::<_, StateTooLarge>(vec![
                                ("count".to_owned(), json!(count)),
                                ("gone".to_owned(), Json::Null),
                            ])
                        };
                        state.update(STATE_LIMIT, next).expect("changes");
                    }
                });
            }
        });
        assert_eq!(Json::Object(Map::clone(&state.get())), json!({ "count": 2000 }));
    }

    #[test]
    fn a_change_that_makes_the_state_too_large_is_an_error_and_changes_nothing() {
        let state = State::new(Map::from_iter([("a".to_owned(), json!("x".repeat(400)))]));
        let set = |value: Json| state.update(1000, || Ok::<_, StateTooLarge>(vec![("b".to_owned(), value.clone())]));
        let error = set(json!(["y".repeat(600)])).expect_err("too large").to_string();
        assert_eq!(error, "the state would be larger than 1000 bytes (`limits.state`); its largest value is `b`");
        assert!(set(json!(vec![1; 100])).is_err(), "numbers count as they are in memory");
        assert_eq!(set(json!(["y".repeat(100)])), Ok(()));
        assert_eq!(state.get().len(), 2);
    }
}
