//! Subscriptions to notifications: `subscriptions/listen` (2026-07-28, Subscriptions), before that
//! `resources/subscribe`.

use serde_json::{Map, Value};

use super::sent_request::SentRequest;

/// Which notifications to subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// `notifications/tools/list_changed`.
    pub tools: bool,
    /// `notifications/prompts/list_changed`.
    pub prompts: bool,
    /// `notifications/resources/list_changed`.
    pub resources: bool,
    /// `notifications/resources/updated` for these resources.
    pub uris: Vec<String>,
}

/// An open `subscriptions/listen`.
pub(super) struct Subscription {
    pub(super) request: SentRequest,
    pub(super) filter: SubscriptionFilter,
}

impl SubscriptionFilter {
    /// The updates of one resource.
    pub fn for_resource(uri: &str) -> SubscriptionFilter {
        SubscriptionFilter { uris: vec![uri.to_owned()], ..SubscriptionFilter::default() }
    }

    pub(super) fn lists(&self) -> impl Iterator<Item = &'static str> {
        let lists = [("tools", self.tools), ("prompts", self.prompts), ("resources", self.resources)];
        lists.into_iter().filter(|(_, wanted)| *wanted).map(|(list, _)| list)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lists().next().is_none() && self.uris.is_empty()
    }

    pub(super) fn to_json(&self) -> Map<String, Value> {
        let mut filter: Map<_, _> = self.lists().map(|list| (format!("{list}ListChanged"), true.into())).collect();
        if !self.uris.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), self.uris.clone().into());
        }
        filter
    }

    /// The notifications that the acknowledged filter lacks.
    pub(super) fn missing_in(&self, acknowledged: &Value) -> Vec<String> {
        let lists = self.lists().filter(|list| acknowledged[format!("{list}ListChanged")] != true);
        let lists = lists.map(list_changed);
        let uris = acknowledged["resourceSubscriptions"].as_array();
        let has = |uri: &&String| uris.is_some_and(|uris| uris.iter().any(|known| *known == ***uri));
        let updates = self.uris.iter().filter(|uri| !has(uri)).map(|uri| format!("updates of {uri}"));
        lists.chain(updates).collect()
    }
}

pub(super) fn list_changed(list: &str) -> String {
    format!("notifications/{list}/list_changed")
}
