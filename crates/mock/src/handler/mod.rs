//! Tools whose answers are async functions in Rust.

mod call;
mod notices;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

pub use call::HandlerCall;
pub(crate) use notices::CallNotices;
use rehearse_protocol::{RpcError, message::INTERNAL_ERROR};

/// The answer of a handler that is still running. Dropping it cancels it.
pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Result<Box<RawValue>, RpcError>> + Send>>;

/// An async function that answers the calls of a tool; see [`Rule::handle`](crate::Rule::handle).
#[derive(Clone)]
pub struct Handler {
    id: u64,
    function: Arc<dyn Fn(HandlerCall) -> HandlerFuture + Send + Sync>,
}

impl Handler {
    /// A handler that calls this function.
    pub(crate) fn new<F, R>(function: impl Fn(HandlerCall) -> F + Send + Sync + 'static) -> Handler
    where
        F: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: Serialize,
    {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let function = move |call| -> HandlerFuture {
            let answer = function(call);
            Box::pin(async move {
                to_raw_value(&answer.await?)
                    .map_err(|error| RpcError::new(INTERNAL_ERROR, format!("the result is not JSON: {error}")))
            })
        };
        Handler { id: IDS.fetch_add(1, Ordering::Relaxed), function: Arc::new(function) }
    }

    /// The number that stands for it in the script of a builder. No other handler of this process has it.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn start(&self, call: HandlerCall) -> HandlerFuture {
        (self.function)(call)
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("id", &self.id).finish_non_exhaustive()
    }
}
