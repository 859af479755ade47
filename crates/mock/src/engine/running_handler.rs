//! A handler that is answering a call.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_channel::mpsc;
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde_json::{Map, Value as Json, value::RawValue};

use crate::{
    handler::{Handler, HandlerCall, HandlerFuture},
    script::ToolItem,
};
use rehearse_document::json_schema::Mismatch;
use rehearse_protocol::{Era, RpcError};

/// What a handler returned.
pub(super) type HandlerEnd = Result<Box<RawValue>, HandlerError>;

/// Why the call of a handler has no result that a client may get.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandlerError {
    /// The handler's own answer.
    #[error(transparent)]
    Rpc(RpcError),
    #[error("it panicked: {0}")]
    Panic(String),
    #[error("its result is not an object")]
    NotAnObject(#[source] serde_json::Error),
    #[error("its result needs `content`, an array")]
    NoContent,
    #[error("the tool has an outputSchema, but the result has no `structuredContent`")]
    NoStructuredContent,
    #[error("its structuredContent breaks the tool's outputSchema: {0}")]
    OutputSchema(Mismatch),
}

/// A handler that is answering a call. Dropping it cancels it.
pub(super) struct RunningHandler {
    /// `None` when it has ended. The lock makes it `Sync`; nobody waits for it.
    future: Mutex<Option<HandlerFuture>>,
    notices: mpsc::Receiver<Bytes>,
    /// Notifications that are not sent yet.
    received: Vec<Bytes>,
    result: Option<HandlerEnd>,
}

impl RunningHandler {
    pub(super) fn start(handler: &Handler, call: HandlerCall, notices: mpsc::Receiver<Bytes>) -> RunningHandler {
        let started = catch_unwind(AssertUnwindSafe(|| handler.start(call)));
        let (future, result) = match started {
            Ok(future) => (Some(future), None),
            Err(panic) => (None, Some(Err(panicked(panic.as_ref())))),
        };
        RunningHandler { future: Mutex::new(future), notices, received: Vec::new(), result }
    }

    /// Ready when there is a notification or the result.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let slot = self.future.get_mut();
        if let Some(future) = slot {
            match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(result)) => self.result = Some(result.map_err(HandlerError::Rpc)),
                Err(panic) => self.result = Some(Err(panicked(panic.as_ref()))),
            }
        }
        if self.result.is_some() {
            *slot = None;
        }
        while let Poll::Ready(Some(frame)) = self.notices.poll_next_unpin(context) {
            self.received.push(frame);
        }
        if self.result.is_some() || !self.received.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The notifications since the last time.
    pub(super) fn take_notices(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.received)
    }

    pub(super) fn take_result(&mut self) -> Option<HandlerEnd> {
        self.result.take()
    }
}

impl fmt::Debug for RunningHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningHandler").field("result", &self.result).finish_non_exhaustive()
    }
}

fn panicked(panic: &(dyn Any + Send)) -> HandlerError {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    HandlerError::Panic(text.unwrap_or("without a message").to_owned())
}

/// The members of a result without braces, and its `_meta`. The engine adds the envelope of the era.
///
/// # Errors
/// What a result of this tool lacks, or what is wrong with it.
pub(super) fn members(tool: &ToolItem, era: Era, result: &str) -> Result<(String, Option<String>), HandlerError> {
    let mut object: Map<String, Json> = serde_json::from_str(result).map_err(HandlerError::NotAnObject)?;
    if !object.get("content").is_some_and(Json::is_array) {
        return Err(HandlerError::NoContent);
    }
    let structured = object.get("structuredContent");
    if let Some(schema) = &tool.output {
        match structured.map(|content| schema.violations(content)) {
            None if object.get("isError") == Some(&Json::Bool(true)) => {}
            None => return Err(HandlerError::NoStructuredContent),
            Some(violations) => {
                if let Some(violation) = violations.into_iter().next() {
                    return Err(HandlerError::OutputSchema(violation));
                }
            }
        }
    }
    // Until 2025-11-25 it is an object or missing.
    let has_no_place = era == Era::Legacy && structured.is_some_and(|content| !content.is_object());
    let count = object.len();
    let meta = object.shift_remove("_meta").map(|meta| meta.to_string());
    object.shift_remove("resultType");
    if has_no_place {
        object.shift_remove("structuredContent");
    }
    let text = if object.len() == count { result.trim().to_owned() } else { Json::Object(object).to_string() };
    Ok((text[1..text.len() - 1].to_owned(), meta))
}
