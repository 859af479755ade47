//! Who hears of changes: legacy sessions, and the streams of `subscriptions/listen`.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::{Engine, Outlet, Peer, call::Call, catalog::Catalog, params::invalid, tasks::no_tasks};
use crate::{
    mock::script::{Kind, TASKS, includes},
    wire::{Era, Id, RpcError, message},
};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Everyone who may hear of a change.
#[derive(Debug, Default)]
pub(super) struct Audience {
    peers: Mutex<Vec<Weak<Peer>>>,
    subscribers: Mutex<Vec<Arc<Subscriber>>>,
}

#[derive(Debug)]
struct Subscriber {
    id: Id,
    filter: Filter,
    outlet: OnceLock<Box<dyn Outlet>>,
}

/// What a client wants to hear of, as far as the server has it (2026-07-28, Subscriptions: Notification Filter).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    resource_subscriptions: Option<Vec<String>>,
    task_ids: Option<Vec<String>>,
}

/// A request to listen that was granted; it listens once it is opened.
#[derive(Debug)]
pub struct Listen {
    engine: Arc<Engine>,
    subscriber: Arc<Subscriber>,
}

/// A client that listens, until this is dropped.
#[derive(Debug)]
pub struct Subscription(Listen);

impl Filter {
    /// Keeps what the server declares.
    fn honoured(mut self, catalog: &Catalog) -> Filter {
        let declares = |path: &[&str]| catalog.script.capabilities.declares(Era::Modern, path);
        self.tools_list_changed &= declares(&["tools", "listChanged"]);
        self.prompts_list_changed &= declares(&["prompts", "listChanged"]);
        self.resources_list_changed &= declares(&["resources", "listChanged"]);
        self.resource_subscriptions.take_if(|_| !declares(&["resources", "subscribe"]));
        self.task_ids.take_if(|_| !declares(&["extensions", TASKS]));
        self
    }

    fn to_json(&self) -> Json {
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

    fn wants(&self, topic: &Topic<'_>) -> bool {
        let contains = |list: &Option<Vec<String>>, item: &str| list.iter().flatten().any(|it| it == item);
        match topic {
            Topic::List(Kind::Tool) => self.tools_list_changed,
            Topic::List(Kind::Prompt) => self.prompts_list_changed,
            Topic::List(_) => self.resources_list_changed,
            Topic::Resource(uri) => contains(&self.resource_subscriptions, uri),
            Topic::Task(id) => contains(&self.task_ids, id),
        }
    }
}

/// What a notification is about.
enum Topic<'a> {
    List(Kind),
    Resource(&'a str),
    Task(&'a str),
}

impl Listen {
    /// Begins to listen; the acknowledgement goes out first.
    pub fn open(self, outlet: Box<dyn Outlet>) -> Subscription {
        let params = json!({ "notifications": self.subscriber.filter.to_json() });
        outlet.push(self.subscriber.frame("notifications/subscriptions/acknowledged", Some(&params.to_string())));
        let _ = self.subscriber.outlet.set(outlet);
        self.engine.audience.subscribers().push(self.subscriber.clone());
        Subscription(self)
    }

    /// The id of the request.
    pub fn id(&self) -> &Id {
        &self.subscriber.id
    }
}

impl Subscription {
    /// The response that ends the subscription in order (2026-07-28, Subscriptions: Graceful Closure).
    pub fn closing(&self) -> Bytes {
        let Listen { engine, subscriber } = &self.0;
        let meta = format!("{{\"{SUBSCRIPTION_ID}\":{}}}", subscriber.id.to_json());
        message::result(&subscriber.id, &engine.catalog().result(Era::Modern, "", Some(&meta), false))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.engine.audience.subscribers().retain(|it| !Arc::ptr_eq(it, &self.0.subscriber));
    }
}

impl Subscriber {
    /// A notification with the id of the subscription in it.
    fn frame(&self, method: &str, params: Option<&str>) -> Bytes {
        let mut params: Map<String, Json> =
            params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Json::Object(meta) = meta {
            meta.insert(SUBSCRIPTION_ID.into(), json!(self.id));
        }
        message::notification(method, &Json::Object(params).to_string())
    }
}

impl Audience {
    fn subscribers(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Subscriber>>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A legacy client has ended its handshake.
    pub(super) fn welcome(&self, peer: &Arc<Peer>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.len() == peers.capacity() {
            peers.retain(|peer| peer.strong_count() > 0);
        }
        peers.push(Arc::downgrade(peer));
    }

    fn tell(&self, topic: &Topic<'_>, method: &str, params: Option<&str>) {
        for subscriber in self.subscribers().iter().filter(|it| it.filter.wants(topic)) {
            if let Some(outlet) = subscriber.outlet.get() {
                outlet.push(subscriber.frame(method, params));
            }
        }
        let peers: Vec<_> = {
            let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
            peers.iter().filter_map(Weak::upgrade).collect()
        };
        let frame = match params {
            Some(params) => message::notification(method, params),
            None => message::bare_notification(method),
        };
        for peer in peers {
            let wants = match topic {
                Topic::List(_) => true,
                Topic::Resource(uri) => peer.has_subscribed(uri),
                Topic::Task(_) => false,
            };
            if wants {
                peer.push(frame.clone());
            }
        }
    }
}

impl Engine {
    /// Tells a notification to everyone who subscribed to it; `false` if it is none that can be subscribed to.
    pub(super) fn publish(&self, method: &str, params: Option<&str>) -> bool {
        #[derive(Deserialize)]
        struct Updated {
            uri: String,
        }
        let uri;
        let topic = match method {
            "notifications/tools/list_changed" => Topic::List(Kind::Tool),
            "notifications/prompts/list_changed" => Topic::List(Kind::Prompt),
            "notifications/resources/list_changed" => Topic::List(Kind::Resource),
            "notifications/resources/updated" => {
                uri = params.and_then(|params| serde_json::from_str::<Updated>(params).ok()).map(|it| it.uri);
                Topic::Resource(uri.as_deref().unwrap_or_default())
            }
            _ => return false,
        };
        self.audience.tell(&topic, method, params);
        true
    }

    /// Tells that a list has changed.
    pub(super) fn publish_change(&self, catalog: &Catalog, kind: Kind) {
        let (capability, method) = match kind {
            Kind::Tool => ("tools", "notifications/tools/list_changed"),
            Kind::Prompt => ("prompts", "notifications/prompts/list_changed"),
            _ => ("resources", "notifications/resources/list_changed"),
        };
        if catalog.script.capabilities.declares(Era::Modern, &[capability, "listChanged"]) {
            self.publish(method, None);
        }
    }

    pub(super) fn publish_task(&self, id: &str, members: &str) {
        self.audience.tell(&Topic::Task(id), "notifications/tasks", Some(&format!("{{{members}}}")));
    }

    /// `subscriptions/listen` (2026-07-28, Subscriptions).
    ///
    /// # Errors
    /// The filter is missing or malformed; it names tasks, but the client does not declare the extension.
    pub(super) fn listen(self: &Arc<Self>, call: &Call<'_>) -> Result<Listen, RpcError> {
        let filter = call.params.notifications.ok_or_else(|| invalid("`notifications` is missing"))?;
        let filter: Filter = match message::is_object(Some(filter)) {
            true => serde_json::from_str(filter.get()).map_err(|error| invalid(format!("`notifications`: {error}")))?,
            false => return Err(invalid("`notifications` must be an object")),
        };
        if filter.task_ids.is_some() && !includes(&call.capabilities(), &json!({ "extensions": { TASKS: {} } })) {
            return Err(no_tasks());
        }
        let filter = filter.honoured(call.catalog);
        let subscriber = Subscriber { id: call.request.id.clone(), filter, outlet: OnceLock::new() };
        Ok(Listen { engine: self.clone(), subscriber: Arc::new(subscriber) })
    }
}
