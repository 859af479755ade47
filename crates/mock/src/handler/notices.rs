//! Notifications before the response of a call.

use bytes::Bytes;
use serde_json::Value as Json;

use crate::log_level::LogLevel;
use rehearse_protocol::message;

/// Which notifications the client of a call accepts before the response.
#[derive(Clone, Debug)]
pub(crate) struct CallNotices {
    /// The progress token of the request as JSON text.
    pub(crate) progress_token: Option<String>,
    /// The least severe log message that the client wants; `None` if it wants none, or if the server does not declare
    /// the capability (2025-11-25, Logging: Capabilities).
    pub(crate) log_level: Option<LogLevel>,
}

impl CallNotices {
    pub(crate) fn wants_log(&self, level: LogLevel) -> bool {
        self.log_level.is_some_and(|wanted| level >= wanted)
    }

    /// A log message. `data` is JSON text.
    pub(crate) fn log(level: LogLevel, logger: Option<&str>, data: &str) -> Bytes {
        let logger = logger.map(|logger| format!("\"logger\":{},", Json::from(logger))).unwrap_or_default();
        let params = format!("{{\"level\":\"{}\",{logger}\"data\":{data}}}", level.as_str());
        message::notification("notifications/message", &params)
    }

    /// Progress, if the client gave a token. `members` is JSON text that begins with a comma.
    pub(crate) fn progress(&self, members: &str) -> Option<Bytes> {
        let token = self.progress_token.as_ref()?;
        let params = format!("{{\"progressToken\":{token}{members}}}");
        Some(message::notification("notifications/progress", &params))
    }
}
