//! The mock engine: a script and its state, without any IO.
//!
//! [`Engine::receive`] takes a frame and returns a [`Decision`]: no answer, an answer, the cancellation of
//! an earlier request, or an [`Exchange`], which returns one [`Event`] after another until it has finished. The caller
//! waits and sends, so that one engine behaves the same on every transport.

mod added_rules;
mod call;
mod catalog;
mod content_block;
mod decision;
mod envelope;
mod exchange;
mod exchange_end;
mod fault_selection;
mod frames;
mod input;
mod input_request;
mod input_response;
mod instance;
mod legacy;
mod legacy_session;
mod methods;
mod modern;
mod notifications;
mod pages;
mod params;
mod pending_input;
mod receive;
mod reply;
mod rules;
mod running_handler;
mod seed;
mod signer;
mod skills;
mod subscribers;
mod subscription;
mod task;
mod tasks;
mod verify;
mod visible_items;

pub use instance::Engine;
pub(super) use internals::*;
pub use rules::RuleStatus;
pub use seed::Seed;
pub use verify::{UnmetExpectation, Verification};

/// The types for sending frames through an engine, for [`serve`](super::serve), fuzz targets and benchmarks.
#[doc(hidden)]
pub mod internals {
    pub use super::{
        decision::{Decision, FaultedDecision},
        exchange::{Event, Exchange},
        frames::{Incoming, ResponseFrame},
        legacy_session::{LegacySession, NotificationSink},
        subscription::{PendingSubscription, Subscription},
    };
}

#[cfg(test)]
mod test_client;
#[cfg(test)]
mod tests;
