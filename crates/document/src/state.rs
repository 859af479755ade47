//! The state of a mock: named values that its answers read and change.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use serde_json::{Map, Value as Json};

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

    /// The values are these from now on.
    pub fn replace(&self, values: Map<String, Json>) {
        self.0.store(Arc::new(values));
    }

    /// Changes values by what `change` makes of the present ones; a null takes a value away. Where another change came
    /// between, `change` is asked again, so that none is lost.
    ///
    /// # Errors
    /// That of `change`; nothing was changed then.
    pub fn update<E>(&self, mut change: impl FnMut() -> Result<Vec<(String, Json)>, E>) -> Result<(), E> {
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
            let previous = self.0.compare_and_swap(&before, Arc::new(values));
            if Arc::ptr_eq(&previous, &before) {
                return Ok(());
            }
        }
    }
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
                            Ok::<_, ()>(vec![("count".to_owned(), json!(count)), ("gone".to_owned(), Json::Null)])
                        };
                        state.update(next).expect("changes");
                    }
                });
            }
        });
        assert_eq!(Json::Object(Map::clone(&state.get())), json!({ "count": 2000 }));
    }
}
