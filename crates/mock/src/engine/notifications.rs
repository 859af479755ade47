//! Notifications about changes, and `subscriptions/listen` (2026-07-28, Subscriptions).

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::json;

use super::{
    call::Call,
    catalog::Catalog,
    instance::Engine,
    legacy_session::MAX_URIS,
    params::invalid,
    subscribers::{Subscriber, SubscriptionFilter, Topic},
    subscription::PendingSubscription,
    tasks::no_tasks,
};
use crate::script::{ItemKind, includes};
use rehearse_protocol::{
    Era, List, RpcError,
    message::{self, INTERNAL_ERROR},
    names::TASKS_EXTENSION,
};

/// How many subscriptions a server has at a time.
pub(super) const MAX_SUBSCRIPTIONS: usize = 4096;

impl Engine {
    /// Sends a notification to its subscribers, if the server declares the capability for it; `false`
    /// if clients cannot subscribe to it.
    pub(super) fn publish(&self, catalog: &Catalog, method: &str, params: Option<&str>) -> bool {
        #[derive(Deserialize)]
        struct Updated {
            uri: String,
        }
        let uri;
        let topic = match method {
            "notifications/resources/updated" => {
                uri = params.and_then(|params| serde_json::from_str::<Updated>(params).ok()).map(|it| it.uri);
                Topic::Resource(uri.as_deref().unwrap_or_default())
            }
            _ => match List::of_change(method) {
                Some(list) => Topic::List(list.into()),
                None => return false,
            },
        };
        if catalog.script.capabilities.declares(Era::Modern, topic.capability()) {
            self.subscribers.notify(&topic, method, params);
        }
        true
    }

    /// Notifies clients that a list has changed.
    pub(super) fn publish_change(&self, catalog: &Catalog, kind: ItemKind) {
        if let Some(list) = kind.list() {
            self.publish(catalog, list.change(), None);
        }
    }

    pub(super) fn publish_task(&self, id: &str, members: &str) {
        self.subscribers.notify(&Topic::Task(id), "notifications/tasks", Some(&format!("{{{members}}}")));
    }

    /// `subscriptions/listen` (2026-07-28, Subscriptions).
    ///
    /// # Errors
    /// The filter is missing or malformed; it names tasks, but the client does not declare the extension; there are too
    /// many subscriptions.
    pub(super) fn listen(self: &Arc<Self>, call: &Call<'_>) -> Result<PendingSubscription, RpcError> {
        let filter = call.params.notifications.ok_or_else(|| invalid("`notifications` is missing"))?;
        let filter: SubscriptionFilter = match message::is_object(Some(filter)) {
            true => serde_json::from_str(filter.get()).map_err(|error| invalid(format!("`notifications`: {error}")))?,
            false => return Err(invalid("`notifications` must be an object")),
        };
        if filter.task_ids.is_some()
            && !includes(&call.capabilities(), &json!({ "extensions": { TASKS_EXTENSION: {} } }))
        {
            return Err(no_tasks());
        }
        let mut filter = filter.restrict(call.catalog);
        filter.task_ids.iter_mut().for_each(|ids| ids.retain(|id| self.task(call, id).is_some()));
        let uris = filter.resource_subscriptions.iter().chain(&filter.task_ids);
        if self.subscribers.subscribers().len() >= MAX_SUBSCRIPTIONS || uris.into_iter().any(|it| it.len() > MAX_URIS) {
            return Err(RpcError::new(INTERNAL_ERROR, "too many subscriptions"));
        }
        let (id, transport) = (call.request.id.clone(), call.incoming.transport);
        let subscriber = Subscriber { id, transport, filter, sink: OnceLock::new() };
        Ok(PendingSubscription::new(self.clone(), Arc::new(subscriber)))
    }
}
