//! The cache of results.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::time::Instant;

/// The maximum number of results.
const MAX_RESULTS: usize = 1000;
/// The maximum TTL.
const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The cached results of one user. A result that is not public is reused only with the same authorization (2026-07-28,
/// Caching: Cache Scope Field).
#[derive(Debug)]
pub(super) struct ResultStore {
    ttl: Option<Duration>,
    state: Mutex<StoreState>,
}

#[derive(Debug, Default)]
struct StoreState {
    results: HashMap<Key, StoredResult>,
    /// The number of invalidations by server: a result of a request from before an invalidation is not stored.
    changes: HashMap<Arc<str>, u64>,
}

#[derive(Debug)]
struct StoredResult {
    until: Instant,
    /// The authorization that it belongs to; `None` for a public result.
    authorization: Option<u64>,
    result: Box<RawValue>,
}

/// The server, the method, and the parameters with sorted members.
type Key = (Arc<str>, String, String);

/// The key of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestKey {
    key: Key,
    authorization: u64,
    changes: u64,
}

/// The caching hints of a result (2026-07-28, Caching: Cacheable Model).
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hints {
    ttl_ms: Option<Value>,
    cache_scope: Option<String>,
}

impl ResultStore {
    /// A cache with a TTL for read-only tools; without a TTL nothing is cached.
    pub(super) fn new(ttl: Option<Duration>) -> ResultStore {
        ResultStore { ttl, state: Mutex::default() }
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
        let changes = self.state.lock().changes.get(server).copied().unwrap_or_default();
        let params = params.map(|params| sorted(Value::Object(params.clone())).to_string()).unwrap_or_default();
        RequestKey { key: (server.clone(), method.to_owned(), params), authorization, changes }
    }

    pub(super) fn get(&self, request: &RequestKey) -> Option<Box<RawValue>> {
        let kept = self.state.lock();
        let stored = kept.results.get(&request.key)?;
        let is_for_it = stored.authorization.is_none_or(|authorization| authorization == request.authorization);
        (is_for_it && Instant::now() < stored.until).then(|| stored.result.clone())
    }

    /// Stores the result of a tool, at most as long as the server allows.
    pub(super) fn put_tool(&self, request: RequestKey, result: &RawValue, authorization: u64) {
        let hints = Hints::read(result);
        let ttl = self.ttl.map(|ttl| hints.ttl().map_or(ttl, |hint| hint.min(ttl)));
        self.insert(request, result, ttl.unwrap_or_default(), authorization, hints.is_public());
    }

    /// Stores another result as long as the server allows; without a hint it is not stored.
    pub(super) fn put(&self, request: RequestKey, result: &RawValue, authorization: u64) {
        let hints = Hints::read(result);
        self.insert(request, result, hints.ttl().unwrap_or_default(), authorization, hints.is_public());
    }

    /// `authorization` is the current one: a private result from before its change is not stored.
    fn insert(&self, request: RequestKey, result: &RawValue, ttl: Duration, authorization: u64, is_public: bool) {
        let RequestKey { key, authorization: before, changes } = request;
        let mut kept = self.state.lock();
        let is_old = kept.changes.get(&key.0).copied().unwrap_or_default() != changes;
        if !self.is_used() || is_old || ttl.is_zero() || !(is_public || before == authorization) {
            return;
        }
        let now = Instant::now();
        if kept.results.len() >= MAX_RESULTS {
            kept.results.retain(|_, stored| now < stored.until);
        }
        if kept.results.len() < MAX_RESULTS || kept.results.contains_key(&key) {
            let authorization = (!is_public).then_some(authorization);
            kept.results
                .insert(key, StoredResult { until: now + ttl.min(MAX_TTL), authorization, result: result.to_owned() });
        }
    }

    /// Invalidates the results of a server.
    pub(super) fn invalidate(&self, server: &Arc<str>) {
        let mut kept = self.state.lock();
        kept.results.retain(|(known, ..), _| known != server);
        *kept.changes.entry(server.clone()).or_default() += 1;
    }
}

impl Hints {
    /// Invalid hints are ignored.
    fn read(result: &RawValue) -> Hints {
        serde_json::from_str(result.get()).unwrap_or_default()
    }

    /// A negative or invalid TTL is 0 (2026-07-28, Caching: Time-to-Live Field).
    fn ttl(&self) -> Option<Duration> {
        let milliseconds = self.ttl_ms.as_ref()?.as_f64().unwrap_or_default();
        Some(Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or(if milliseconds > 0.0 {
            MAX_TTL
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
