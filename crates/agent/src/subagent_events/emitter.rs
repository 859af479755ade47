//! Sends events to the parent.

use std::time::{Duration, SystemTime};

use rehearse_net::http_client::{self, HttpError};

use super::{EventRecord, PATH};
use crate::{EmitError, EmitFuture, Event, EventSink, RunLabel};

/// How long one event may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why no event can be sent.
#[derive(Debug, thiserror::Error)]
pub enum EmitterError {
    #[error("{address:?} is not a URL: {source}")]
    Url { address: String, source: url::ParseError },
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// Posts each event to the parent. An event that does not arrive ends the run, but for the last one.
#[derive(Debug)]
pub struct EventEmitter {
    http: reqwest::Client,
    url: String,
}

impl EventEmitter {
    /// An emitter for the address in the variable.
    ///
    /// # Errors
    /// The address is not a URL, or an HTTP client cannot be made.
    pub fn new(address: &str) -> Result<EventEmitter, EmitterError> {
        let url = format!("{}{PATH}", address.trim_end_matches('/'));
        let invalid = |source| EmitterError::Url { address: address.to_owned(), source };
        let parsed = reqwest::Url::parse(&url).map_err(invalid)?;
        let builder = http_client::builder(http_client::is_loopback(&parsed)).timeout(TIMEOUT);
        Ok(EventEmitter { http: builder.build().map_err(HttpError::from)?, url })
    }

    async fn send(&self, record: &EventRecord) -> Result<(), String> {
        let sent = self.http.post(&self.url).json(record).send().await;
        let response = sent.map_err(|error| format!("failed to send event: {}", http_client::describe(error)))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("server returned non-2xx status: {status}")),
        }
    }
}

impl EventSink for EventEmitter {
    fn emit<'a>(&'a self, run: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        Box::pin(async move {
            let Some(record) = EventRecord::new(run, &event, SystemTime::now()) else { return Ok(()) };
            self.send(&record).await.map_err(|why| EmitError { event: event.name(), why })
        })
    }
}
