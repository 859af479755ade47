//! Background tasks of a connection: changed lists, lost connections and health checks.

use std::{
    pin::Pin,
    sync::{Arc, Weak, atomic::Ordering},
};

use super::{
    Event, Hub, Inner,
    server_connection::{OpenSession, ServerConnection},
};
use rehearse_client::{CallOptions, ClientRecorder, Failure, Session, SubscriptionFilter};
use rehearse_protocol::{Closed, Direction, Era, Frame, List, MessageHead};

impl Hub {
    /// Watches a new session until it ends.
    pub(super) async fn watch(&self, connection: &Arc<ServerConnection>, live: &OpenSession) {
        if !self.0.options.watch_changes {
            return;
        }
        let lists = List::WATCHED.into_iter().filter(|list| reports_changes(&live.session, list.capability()));
        let filter = SubscriptionFilter { lists: lists.collect(), uris: Vec::new() };
        if filter != SubscriptionFilter::default() && live.session.info().version.era() == Era::Modern {
            // Without notifications the list is refreshed on demand.
            let _ = live.session.listen(&filter, CallOptions::default()).await;
        }
        let watched = Watcher {
            hub: Arc::downgrade(&self.0),
            connection: connection.clone(),
            recorder: live.session.recorder().clone(),
        };
        let (stop, closed) = (self.0.stop.clone(), live.calls.clone());
        let watching = watched.run();
        self.0.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = closed.cancelled() => {}
                () = watching => {}
            }
        });
    }
}

/// Watches one session.
struct Watcher {
    hub: Weak<Inner>,
    connection: Arc<ServerConnection>,
    recorder: ClientRecorder,
}

impl Watcher {
    /// Boxed, because it may reconnect and watch the next session.
    fn run(self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.watch_until_closed().await })
    }

    async fn watch_until_closed(&self) {
        let Some(health) = self.hub.upgrade().map(|inner| inner.options.health_interval) else { return };
        let mut seen = 0;
        loop {
            let changed = self.recorder.wait_for(seen, |frame| change(frame).is_some());
            let found = match health {
                None => changed.await,
                Some(every) => match tokio::time::timeout(every, changed).await {
                    Ok(found) => found,
                    Err(_) => {
                        seen = self.recorder.end();
                        self.check_health().await;
                        continue;
                    }
                },
            };
            let Some(hub) = self.hub.upgrade().map(Hub) else { return };
            let Some((index, frame)) = found else { return self.handle_disconnect(&hub).await };
            seen = index + 1;
            hub.0.results.invalidate(&self.connection.name);
            match change(&frame).and_then(List::of_change) {
                Some(List::Tools) => self.refresh_tools(&hub).await,
                Some(list) => self.outdate_items(&hub, list.capability()),
                None => {}
            }
        }
    }

    /// Lists the tools again, once for several changes in a row.
    async fn refresh_tools(&self, hub: &Hub) {
        let session = self.connection.open_session().await;
        let Some(live) = session.as_ref().filter(|live| live.session.recorder().is_same_as(&self.recorder)) else {
            return;
        };
        if let Some(failure) = self.connection.list(live).await {
            hub.emit(Event::ListingFailed { server: self.connection.name.clone(), failure });
        }
        hub.emit(Event::StatusChanged(self.connection.name.clone()));
        hub.register_or_emit();
    }

    fn outdate_items(&self, hub: &Hub, capability: &str) {
        self.connection.items().outdate(capability);
        hub.emit(Event::ItemsChanged(self.connection.name.clone()));
    }

    /// Pings the server; without a response the connection is lost.
    async fn check_health(&self) {
        let session = self.connection.open_session().await;
        let Some(live) = session.as_ref().filter(|live| live.session.recorder().is_same_as(&self.recorder)) else {
            return;
        };
        // An error is a response.
        let method = match live.session.info().version.era() {
            Era::Legacy => "ping",
            Era::Modern => "server/discover",
        };
        let asked = live.session.request(method, None, CallOptions::default()).await;
        if matches!(asked, Err(Failure::Timeout(_) | Failure::Disconnected { .. })) {
            live.is_hung.store(true, Ordering::Relaxed);
            self.recorder.close(Closed::by_limit(format!("{method} was not answered")));
        }
    }

    async fn handle_disconnect(&self, hub: &Hub) {
        let why = self.recorder.closed().map_or_else(|| "the connection ended".into(), |closed| closed.text);
        if !self.connection.mark_disconnected(&self.recorder, &why).await {
            return;
        }
        hub.0.results.invalidate(&self.connection.name);
        hub.emit(Event::Disconnected { server: self.connection.name.clone(), why });
        hub.emit(Event::StatusChanged(self.connection.name.clone()));
        if hub.0.options.retry.attempts > 0 && hub.connect_and_list(&self.connection).await.is_ok() {
            hub.register_or_emit();
        }
    }
}

/// Whether a server says that it reports changes of a list.
pub(super) fn reports_changes(session: &Session, capability: &str) -> bool {
    let capabilities: serde_json::Value = serde_json::from_str(session.info().capabilities.get()).unwrap_or_default();
    capabilities[capability]["listChanged"] == true
}

/// The method of a notification that invalidates cached results (2026-07-28, Caching: Interaction with Notifications).
fn change(frame: &Frame) -> Option<&str> {
    let is_change = |method: &str| List::of_change(method).is_some() || method == "notifications/resources/updated";
    match frame.head() {
        Ok(MessageHead::Notification { method }) if frame.direction == Direction::ServerToClient => {
            Some(&**method).filter(|method| is_change(method))
        }
        _ => None,
    }
}
