//! Results that stand for the next call of the same tool with the same arguments.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::client::ToolOutcome;

/// How many results are kept.
const MOST: usize = 1000;

type Key = (Arc<str>, String, String);

/// The results of one client's calls. They are nobody else's: a hub has one user.
#[derive(Debug)]
pub(super) struct ResultStore {
    ttl: Option<Duration>,
    results: Mutex<HashMap<Key, (Instant, ToolOutcome)>>,
}

impl ResultStore {
    /// Results stand for so long; without a time none is kept.
    pub(super) fn new(ttl: Option<Duration>) -> ResultStore {
        ResultStore { ttl, results: Mutex::default() }
    }

    pub(super) fn is_used(&self) -> bool {
        self.ttl.is_some()
    }

    pub(super) fn get(&self, key: &Key) -> Option<ToolOutcome> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, outcome) = results.get(key)?;
        (Instant::now() < *until).then(|| outcome.clone())
    }

    pub(super) fn put(&self, key: Key, outcome: &ToolOutcome) {
        let Some(ttl) = self.ttl else { return };
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if results.len() >= MOST {
            results.retain(|_, (until, _)| now < *until);
        }
        if results.len() < MOST {
            results.insert(key, (now + ttl, outcome.clone()));
        }
    }

    /// A server has changed, so that what it said may no longer hold.
    pub(super) fn forget(&self, server: &str) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.retain(|(known, ..), _| **known != *server);
    }
}

/// What tells a call from others. Members of objects count in no order.
pub(super) fn key(server: &Arc<str>, tool: &str, arguments: Option<&Map<String, Value>>) -> Key {
    let arguments = arguments.map(|arguments| sorted(Value::Object(arguments.clone())).to_string());
    (server.clone(), tool.to_owned(), arguments.unwrap_or_default())
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|(one, _), (two, _)| one.cmp(two));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        scalar => scalar,
    }
}
