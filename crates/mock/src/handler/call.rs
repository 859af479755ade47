//! A call as its handler sees it.

use std::sync::Arc;

use bytes::Bytes;
use futures_channel::mpsc;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::CallNotices;
use crate::log_level::LogLevel;
use rehearse_protocol::{Era, Version};

/// How many notifications of a call may wait for a slow client. Further ones are dropped.
const MAX_WAITING: usize = 1024;

/// A call of a tool that a [handler](crate::Rule::handle) answers. Clones belong to the same call.
#[derive(Clone, Debug)]
pub struct HandlerCall(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tool: String,
    arguments: Map<String, Json>,
    version: Version,
    notices: CallNotices,
    /// The notifications on their way.
    sender: Mutex<mpsc::Sender<Bytes>>,
}

impl HandlerCall {
    /// A call, and the notifications that its handler sends.
    pub(crate) fn new(
        tool: &str,
        arguments: Map<String, Json>,
        version: Version,
        notices: CallNotices,
    ) -> (HandlerCall, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let inner = Inner { tool: tool.to_owned(), arguments, version, notices, sender: Mutex::new(sender) };
        (HandlerCall(Arc::new(inner)), receiver)
    }

    /// The name of the tool.
    pub fn tool(&self) -> &str {
        &self.0.tool
    }

    /// The arguments, which are valid by the tool's `inputSchema`.
    pub fn arguments(&self) -> &Map<String, Json> {
        &self.0.arguments
    }

    /// The protocol version of the client.
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// The era of that version.
    pub fn era(&self) -> Era {
        self.0.version.era()
    }

    /// Reports progress, if the client asked for it. Each `progress` must be more than the one before; a `total` is
    /// optional (2026-07-28, Progress). A number that is not finite is not reported.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if !progress.is_finite() {
            return;
        }
        let total = total.filter(|total| total.is_finite()).map(|total| format!(",\"total\":{total}"));
        let message = message.map(|message| format!(",\"message\":{}", Json::from(message)));
        let (total, message) = (total.unwrap_or_default(), message.unwrap_or_default());
        if let Some(frame) = self.0.notices.progress(&format!(",\"progress\":{progress}{total}{message}")) {
            self.send(frame);
        }
    }

    /// Sends a log message, if the client wants those of this level. Data that cannot be JSON is not sent.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: impl Serialize) {
        if self.0.notices.wants_log(level)
            && let Ok(data) = serde_json::to_string(&data)
        {
            self.send(CallNotices::log(level, logger, &data));
        }
    }

    fn send(&self, frame: Bytes) {
        // The receiver is gone if the call has ended.
        let _ = self.0.sender.lock().try_send(frame);
    }
}
