//! The clients that receive notifications about changes: legacy sessions, and streams of `subscriptions/listen`.

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::{
    catalog::Catalog,
    legacy_session::{LegacySession, NotificationSink},
};
use crate::script::ItemKind;
use rehearse_protocol::{
    Era, Id, Transport, message,
    names::{META_SUBSCRIPTION_ID, TASKS_EXTENSION},
};

/// The clients that may be notified about a change.
#[derive(Debug, Default)]
pub(super) struct Subscribers {
    sessions: Mutex<Vec<Weak<LegacySession>>>,
    subscribers: Mutex<Vec<Arc<Subscriber>>>,
}

#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) id: Id,
    pub(super) transport: Transport,
    pub(super) filter: SubscriptionFilter,
    pub(super) sink: OnceLock<Box<dyn NotificationSink>>,
}

/// The notifications that a client subscribes to (2026-07-28, Subscriptions: Notification Filter).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SubscriptionFilter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    pub(super) resource_subscriptions: Option<Vec<String>>,
    pub(super) task_ids: Option<Vec<String>>,
}

impl SubscriptionFilter {
    /// The part of the filter that the server supports.
    pub(super) fn restrict(mut self, catalog: &Catalog) -> SubscriptionFilter {
        let declares = |path: &[&str]| catalog.script.capabilities.declares(Era::Modern, path);
        self.tools_list_changed &= declares(&["tools", "listChanged"]);
        self.prompts_list_changed &= declares(&["prompts", "listChanged"]);
        self.resources_list_changed &= declares(&["resources", "listChanged"]);
        self.resource_subscriptions.take_if(|_| !declares(&["resources", "subscribe"]));
        self.task_ids.take_if(|_| !declares(&["extensions", TASKS_EXTENSION]));
        self
    }

    pub(super) fn to_json(&self) -> Json {
        let flags = [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ];
        let flags = flags.into_iter().filter(|(_, wanted)| *wanted).map(|(name, _)| (name.to_owned(), true.into()));
        let lists = [("resourceSubscriptions", &self.resource_subscriptions), ("taskIds", &self.task_ids)];
        let lists = lists.into_iter().filter_map(|(name, list)| Some((name.to_owned(), json!(list.as_ref()?))));
        Json::Object(flags.chain(lists).collect::<Map<_, _>>())
    }

    pub(super) fn includes(&self, topic: &Topic<'_>) -> bool {
        let contains = |list: &Option<Vec<String>>, item: &str| list.iter().flatten().any(|it| it == item);
        match topic {
            Topic::List(ItemKind::Tool) => self.tools_list_changed,
            Topic::List(ItemKind::Prompt) => self.prompts_list_changed,
            Topic::List(_) => self.resources_list_changed,
            Topic::Resource(uri) => contains(&self.resource_subscriptions, uri),
            Topic::Task(id) => contains(&self.task_ids, id),
        }
    }
}

/// The topic of a notification.
pub(super) enum Topic<'a> {
    List(ItemKind),
    Resource(&'a str),
    Task(&'a str),
}

impl Topic<'_> {
    /// The capability that the notification requires.
    pub(super) fn capability(&self) -> &'static [&'static str] {
        match self {
            Topic::List(ItemKind::Tool) => &["tools", "listChanged"],
            Topic::List(ItemKind::Prompt) => &["prompts", "listChanged"],
            Topic::List(_) => &["resources", "listChanged"],
            Topic::Resource(_) => &["resources", "subscribe"],
            Topic::Task(_) => &["extensions", TASKS_EXTENSION],
        }
    }
}

impl Subscriber {
    /// A notification with the id of the subscription in it.
    pub(super) fn frame(&self, method: &str, params: Option<&str>) -> Bytes {
        let mut params: Map<String, Json> =
            params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Json::Object(meta) = meta {
            meta.insert(META_SUBSCRIPTION_ID.into(), json!(self.id));
        }
        message::notification(method, &Json::Object(params).to_string())
    }
}

impl Subscribers {
    pub(super) fn subscribers(&self) -> MutexGuard<'_, Vec<Arc<Subscriber>>> {
        self.subscribers.lock()
    }

    /// A legacy client has ended its handshake.
    pub(super) fn add_session(&self, session: &Arc<LegacySession>) {
        let mut sessions = self.sessions.lock();
        if sessions.len() == sessions.capacity() {
            sessions.retain(|session| session.strong_count() > 0);
        }
        sessions.push(Arc::downgrade(session));
    }

    pub(super) fn notify(&self, topic: &Topic<'_>, method: &str, params: Option<&str>) {
        for subscriber in self.subscribers().iter().filter(|it| it.filter.includes(topic)) {
            if let Some(sink) = subscriber.sink.get() {
                sink.push(subscriber.frame(method, params));
            }
        }
        let sessions: Vec<_> = {
            let sessions = self.sessions.lock();
            sessions.iter().filter_map(Weak::upgrade).collect()
        };
        let frame = match params {
            Some(params) => message::notification(method, params),
            None => message::bare_notification(method),
        };
        for session in sessions {
            let wants = match topic {
                Topic::List(_) => true,
                Topic::Resource(uri) => session.has_subscribed(uri),
                Topic::Task(_) => false,
            };
            if wants {
                session.push(frame.clone());
            }
        }
    }
}
