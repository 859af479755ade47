//! Subscriptions to notifications: `subscriptions/listen` (2026-07-28, Subscriptions), before that
//! `resources/subscribe`.

use serde_json::{Map, Value};

use super::sent_request::SentRequest;
use rehearse_protocol::List;

/// Which notifications to subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// Changes of these lists.
    pub lists: Vec<List>,
    /// `notifications/resources/updated` for these resources.
    pub uris: Vec<String>,
}

/// An open `subscriptions/listen`.
pub(crate) struct Subscription {
    pub(crate) request: SentRequest,
    pub(crate) filter: SubscriptionFilter,
}

impl SubscriptionFilter {
    /// The updates of one resource.
    pub fn for_resource(uri: &str) -> SubscriptionFilter {
        SubscriptionFilter { uris: vec![uri.to_owned()], ..SubscriptionFilter::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.uris.is_empty()
    }

    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let mut filter: Map<_, _> = self.lists.iter().map(|list| (flag(*list), true.into())).collect();
        if !self.uris.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), self.uris.clone().into());
        }
        filter
    }

    /// The notifications that the acknowledged filter lacks.
    pub(crate) fn missing_in(&self, acknowledged: &Value) -> Vec<String> {
        let lists = self.lists.iter().filter(|list| acknowledged[flag(**list)] != true);
        let lists = lists.map(|list| list.change().to_owned());
        let uris = acknowledged["resourceSubscriptions"].as_array();
        let has = |uri: &&String| uris.is_some_and(|uris| uris.iter().any(|known| *known == ***uri));
        let updates = self.uris.iter().filter(|uri| !has(uri)).map(|uri| format!("updates of {uri}"));
        lists.chain(updates).collect()
    }
}

/// The member of a filter for the changes of a list.
fn flag(list: List) -> String {
    format!("{}ListChanged", list.capability())
}
