//! Subscribes to notifications.

use serde_json::{Map, Value};

use super::{CallOptions, Session, call_options::wait_cancelled};
use crate::{
    connection::{SubscriptionFilter, subscription::Subscription},
    result::Failure,
};
use rehearse_protocol::{Direction, Era, Frame, Id, Message};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

impl Session {
    /// Subscribes to notifications, which arrive in the recorder. A modern session waits until the server has
    /// acknowledged all of them, within the timeout. A legacy server sends list changes without a subscription, so only
    /// its capabilities are checked; resources are subscribed to one by one.
    ///
    /// # Errors
    /// [`Failure::Unacknowledged`] if the server does not acknowledge all of them; the subscription is then cancelled.
    /// Any other [`Failure`].
    pub async fn listen(&self, filter: &SubscriptionFilter, options: CallOptions) -> Result<(), Failure> {
        if self.info().version.era() == Era::Modern {
            return self.open_subscription(filter, options).await;
        }
        let capabilities = serde_json::from_str::<Value>(self.info().capabilities.get()).unwrap_or_default();
        let silent = filter.lists.iter().filter(|list| capabilities[list.capability()]["listChanged"] != true);
        let silent: Vec<_> = silent.map(|list| list.change().to_owned()).collect();
        if !silent.is_empty() {
            return Err(Failure::Unacknowledged(silent));
        }
        for uri in &filter.uris {
            self.request("resources/subscribe", Some(uri_params(uri)), options.clone()).await?;
        }
        Ok(())
    }

    /// Ends the subscription to one resource. In 2026-07-28 a subscription with other notifications is replaced by one
    /// without the resource. It is not an error if there is none.
    ///
    /// # Errors
    /// As [`Session::listen`].
    pub async fn unsubscribe(&self, uri: &str, options: CallOptions) -> Result<(), Failure> {
        if self.info().version.era() == Era::Legacy {
            return self.request("resources/unsubscribe", Some(uri_params(uri)), options).await.map(drop);
        }
        let ended: Vec<_> =
            self.subscriptions().extract_if(.., |it| it.filter.uris.iter().any(|known| known == uri)).collect();
        for Subscription { request, filter } in ended {
            let mut rest = filter;
            rest.uris.retain(|known| known != uri);
            if !rest.is_empty() {
                self.open_subscription(&rest, options.clone()).await?;
            }
            request.abandon("unsubscribed").await;
        }
        Ok(())
    }

    async fn open_subscription(&self, filter: &SubscriptionFilter, options: CallOptions) -> Result<(), Failure> {
        let limit = options.timeout.unwrap_or(self.timeouts().call);
        let deadline = self.deadline(limit);
        let params = Map::from_iter([("notifications".to_owned(), filter.to_json().into())]);
        let received = self.recorder().received();
        let mut sent = self.send("subscriptions/listen", Some(params), options.meta);
        let (from, id) = (sent.from, sent.id.clone());
        let acknowledged = tokio::select! {
            biased;
            Some((_, frame)) = self.recorder().wait_for(from, |frame| acknowledgement(frame, &id).is_some()) => {
                acknowledgement(&frame, &id).unwrap_or_default()
            }
            outcome = self.outcome(&mut sent) => {
                // The server ended the subscription before it acknowledged anything.
                outcome?;
                return Err(Failure::Unacknowledged(filter.missing_in(&Value::Null)));
            }
            () = wait_cancelled(options.cancel) => {
                sent.abandon("cancelled by the user").await;
                return Err(Failure::Cancelled);
            }
            () = deadline.wait() => {
                sent.abandon("timeout").await;
                return Err(self.overdue(limit, received));
            }
        };
        let missing = filter.missing_in(&acknowledged);
        if !missing.is_empty() {
            sent.abandon("not all of it was acknowledged").await;
            return Err(Failure::Unacknowledged(missing));
        }
        self.subscriptions().push(Subscription { request: sent, filter: filter.clone() });
        Ok(())
    }
}

fn uri_params(uri: &str) -> Map<String, Value> {
    Map::from_iter([("uri".to_owned(), uri.into())])
}

/// The filter that the server has agreed to, if the frame acknowledges this subscription.
fn acknowledgement(frame: &Frame, id: &Id) -> Option<Value> {
    if frame.direction != Direction::ServerToClient {
        return None;
    }
    let Ok(Message::Notification(notification)) = frame.message() else { return None };
    if notification.method != "notifications/subscriptions/acknowledged" {
        return None;
    }
    let mut params: Value = serde_json::from_str(notification.params?.get()).ok()?;
    let id = serde_json::to_value(id).ok()?;
    (params["_meta"][SUBSCRIPTION_ID] == id).then(|| params["notifications"].take())
}
