//! Results that stand for the next request that is the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::time::Instant;

/// How many results are kept.
const MOST: usize = 1000;
/// No server knows further ahead than that what will hold.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The results of one client's requests. They are nobody else's, for a hub has one user; and what is not said to be for
/// everybody only stands for requests with the same authorization (2026-07-28, Caching: Cache Scope Field).
#[derive(Debug)]
pub(super) struct ResultStore {
    ttl: Option<Duration>,
    kept: Mutex<StoreState>,
}

#[derive(Debug, Default)]
struct StoreState {
    results: HashMap<Key, StoredResult>,
    /// How often what a server said was forgotten: what was asked before does not hold after it.
    changes: HashMap<Arc<str>, u64>,
}

#[derive(Debug)]
struct StoredResult {
    until: Instant,
    /// The authorization that it is for, if it is not for any.
    authorization: Option<u64>,
    result: Box<RawValue>,
}

/// The server, the method, and the parameters, whose servers count in no order.
type Key = (Arc<str>, String, String);

/// A request that a result may stand for.
#[derive(Clone, Debug)]
pub(super) struct RequestKey {
    key: Key,
    authorization: u64,
    changes: u64,
}

/// How long a server says that a result holds, and for whom (2026-07-28, Caching: Cacheable Model).
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hints {
    ttl_ms: Option<Value>,
    cache_scope: Option<String>,
}

impl ResultStore {
    /// Results of tools that only read stand for so long; without a time nothing is kept, whatever servers say.
    pub(super) fn new(ttl: Option<Duration>) -> ResultStore {
        ResultStore { ttl, kept: Mutex::default() }
    }

    pub(super) fn is_used(&self) -> bool {
        self.ttl.is_some()
    }

    pub(super) fn key(
        &self,
        server: &Arc<str>,
        method: &str,
        params: Option<&Map<String, Value>>,
        authorization: u64,
    ) -> RequestKey {
        let changes = self.kept().changes.get(server).copied().unwrap_or_default();
        let params = params.map(|params| sorted(Value::Object(params.clone())).to_string()).unwrap_or_default();
        RequestKey { key: (server.clone(), method.to_owned(), params), authorization, changes }
    }

    pub(super) fn get(&self, asked: &RequestKey) -> Option<Box<RawValue>> {
        let kept = self.kept();
        let stored = kept.results.get(&asked.key)?;
        let is_for_it = stored.authorization.is_none_or(|authorization| authorization == asked.authorization);
        (is_for_it && Instant::now() < stored.until).then(|| stored.result.clone())
    }

    /// Keeps the result of a tool, for no longer than the server says if it says that.
    pub(super) fn put_tool(&self, asked: RequestKey, result: &RawValue, authorization: u64) {
        let hints = Hints::read(result);
        let ttl = self.ttl.map(|ttl| hints.ttl().map_or(ttl, |hint| hint.min(ttl)));
        self.keep(asked, result, ttl.unwrap_or_default(), authorization, hints.is_public());
    }

    /// Keeps another result, for as long as the server says; without a word of it not at all.
    pub(super) fn put(&self, asked: RequestKey, result: &RawValue, authorization: u64) {
        let hints = Hints::read(result);
        self.keep(asked, result, hints.ttl().unwrap_or_default(), authorization, hints.is_public());
    }

    /// `authorization` is that of now: a private result that came while it changed is for nobody who can be known.
    fn keep(&self, asked: RequestKey, result: &RawValue, ttl: Duration, authorization: u64, is_public: bool) {
        let RequestKey { key, authorization: before, changes } = asked;
        let mut kept = self.kept();
        let is_old = kept.changes.get(&key.0).copied().unwrap_or_default() != changes;
        if !self.is_used() || is_old || ttl.is_zero() || !(is_public || before == authorization) {
            return;
        }
        let now = Instant::now();
        if kept.results.len() >= MOST {
            kept.results.retain(|_, stored| now < stored.until);
        }
        if kept.results.len() < MOST || kept.results.contains_key(&key) {
            let authorization = (!is_public).then_some(authorization);
            kept.results
                .insert(key, StoredResult { until: now + ttl.min(LONGEST), authorization, result: result.to_owned() });
        }
    }

    /// A server has changed, so that what it said may no longer hold.
    pub(super) fn forget(&self, server: &Arc<str>) {
        let mut kept = self.kept();
        kept.results.retain(|(known, ..), _| known != server);
        *kept.changes.entry(server.clone()).or_default() += 1;
    }

    fn kept(&self) -> MutexGuard<'_, StoreState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hints {
    /// What is no hint says nothing.
    fn read(result: &RawValue) -> Hints {
        serde_json::from_str(result.get()).unwrap_or_default()
    }

    /// What is negative, or no number, counts as 0 (2026-07-28, Caching: Time-to-OpenSession Field).
    fn ttl(&self) -> Option<Duration> {
        let milliseconds = self.ttl_ms.as_ref()?.as_f64().unwrap_or_default();
        Some(Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or(if milliseconds > 0.0 {
            LONGEST
        } else {
            Duration::ZERO
        }))
    }

    fn is_public(&self) -> bool {
        self.cache_scope.as_deref() == Some("public")
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(servers) => {
            let mut servers: Vec<_> = servers.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            servers.sort_by(|(one, _), (two, _)| one.cmp(two));
            Value::Object(servers.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        scalar => scalar,
    }
}
