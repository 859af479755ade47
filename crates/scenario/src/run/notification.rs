//! Waiting for a notification.

use std::time::Duration;

use serde_json::{Map, Value as Json};
use tokio::time::timeout;

use super::running_server::RunningServer;
use crate::snapshot::Observation;
use rehearse_document::matcher::Matcher;
use rehearse_protocol::{Direction, Frame, Message, names::META_SUBSCRIPTION_ID};

impl RunningServer {
    /// Waits for the first matching notification of the session that no earlier step has consumed, and consumes it.
    ///
    /// # Errors
    /// The observation of a failed step: a `timeout` that lists the other notifications, or a disconnect.
    pub(crate) async fn wait_for_notification(
        &self,
        method: &str,
        params: Option<&Matcher>,
        limit: Duration,
    ) -> Result<Json, Observation> {
        let disconnected = |detail: &str| Observation::failed("disconnected", detail);
        let recorder = self.session.as_ref().ok_or_else(|| disconnected("the session is not open"))?.recorder();
        let mut others = Vec::new();
        let mut take = |index: usize, frame: &Frame| {
            let view = view(frame)?;
            if view["method"] != method {
                others.extend(view["method"].as_str().map(str::to_owned));
                return None;
            }
            let mismatches = params.map(|matcher| matcher.mismatches(view.get("params"))).unwrap_or_default();
            if let Some(mismatch) = mismatches.first() {
                others.push(format!("{method} with other params{mismatch}"));
                return None;
            }
            let is_new = self.consumed.lock().insert(index);
            if !is_new {
                others.push(format!("{method} (consumed by an earlier step)"));
            }
            is_new.then_some(view)
        };
        let waiting = async {
            let mut from = 0;
            loop {
                let end = recorder.end();
                let frames = recorder.numbered_since(from);
                if let Some(found) = frames.iter().find_map(|(index, frame)| take(*index, frame)) {
                    return Some(found);
                }
                from = frames.last().map_or(end, |(index, _)| end.max(index + 1));
                if !recorder.has_more(from).await {
                    return None;
                }
            }
        };
        match timeout(limit, waiting).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                let why = recorder.closed().map_or_else(|| "the connection is closed".into(), |closed| closed.text);
                Err(disconnected(&why))
            }
            Err(_) => {
                others.sort();
                others.dedup();
                let message = match others.is_empty() {
                    true => format!("no notification arrived within {limit:?}"),
                    false => {
                        format!("no matching notification arrived within {limit:?}; received: {}", others.join("; "))
                    }
                };
                Err(Observation::failed("timeout", message))
            }
        }
    }
}

/// The frame, if it is a notification of the server, without the subscription id that only 2026-07-28 adds.
fn view(frame: &Frame) -> Option<Json> {
    let notification = match frame.message() {
        Ok(Message::Notification(it)) if frame.direction == Direction::ServerToClient => it,
        _ => return None,
    };
    let mut view = Map::from_iter([("method".to_owned(), (*notification.method).into())]);
    let mut params: Json = notification.params.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default();
    if let Some(members) = params.as_object_mut() {
        if let Some(Json::Object(meta)) = members.get_mut("_meta") {
            meta.remove(META_SUBSCRIPTION_ID);
            if meta.is_empty() {
                members.remove("_meta");
            }
        }
        if !members.is_empty() {
            view.insert("params".to_owned(), params);
        }
    }
    Some(view.into())
}
