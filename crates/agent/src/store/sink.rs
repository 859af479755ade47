//! Saves the messages of runs as they come.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use super::{ConversationStore, StoreError, role};
use crate::{EmitFuture, Event, EventSink, RunLabel, SavedMessage};
use rehearse_llm::model::Message;

/// Saves every message of every run when it is added to its conversation, so that failed and killed runs are saved too.
/// A message that cannot be saved is reported, and the run goes on.
pub struct ConversationSink(Arc<Inner>);

struct Inner {
    store: ConversationStore,
    chains: Mutex<Chains>,
    /// What was saved and not taken yet, by run.
    saved: Mutex<Vec<(Arc<str>, SavedMessage)>>,
    on_error: Box<dyn Fn(&StoreError) + Send + Sync>,
}

/// Where the next message belongs.
enum Chains {
    /// Each run is a conversation with a label. The last message of each run; the id of the run tells them apart by its
    /// address, because callers may choose the same id twice.
    Runs(Vec<(Arc<str>, String)>),
    /// All runs continue one conversation.
    Session(Option<String>),
}

impl ConversationSink {
    /// Saves the runs of a subagent, each as a conversation with the label `subagent:NAME:RUNID`.
    pub fn of_subagent(
        store: ConversationStore,
        on_error: impl Fn(&StoreError) + Send + Sync + 'static,
    ) -> ConversationSink {
        ConversationSink::new(store, Chains::Runs(Vec::new()), on_error)
    }

    /// Saves one conversation that continues after the message `last`, or begins.
    pub fn of_session(
        store: ConversationStore,
        last: Option<String>,
        on_error: impl Fn(&StoreError) + Send + Sync + 'static,
    ) -> ConversationSink {
        ConversationSink::new(store, Chains::Session(last), on_error)
    }

    fn new(
        store: ConversationStore,
        chains: Chains,
        on_error: impl Fn(&StoreError) + Send + Sync + 'static,
    ) -> ConversationSink {
        ConversationSink(Arc::new(Inner {
            store,
            chains: Mutex::new(chains),
            saved: Mutex::default(),
            on_error: Box::new(on_error),
        }))
    }

    /// The id of the last message of a session, with which it can be resumed.
    pub fn last(&self) -> Option<String> {
        match &*self.0.chains.lock() {
            Chains::Session(last) => last.clone(),
            Chains::Runs(_) => None,
        }
    }
}

impl Inner {
    fn save(&self, run: &RunLabel, message: &Message) {
        let mut chains = self.chains.lock();
        let saved = match &mut *chains {
            Chains::Session(last) => {
                let parent = last.clone();
                self.store.append(parent.as_deref(), None, message).map(|id| {
                    *last = Some(id.clone());
                    (id, parent)
                })
            }
            Chains::Runs(runs) => {
                // Only this list still has the ids of runs that have ended.
                runs.retain(|(id, _)| Arc::strong_count(id) > 1);
                let position = runs.iter().position(|(id, _)| Arc::ptr_eq(id, &run.run_id));
                let parent = position.map(|position| runs[position].1.clone());
                let label = format!("subagent:{}:{}", run.agent, run.run_id);
                self.store.append(parent.as_deref(), Some(&label), message).map(|id| {
                    match position {
                        Some(position) => runs[position].1 = id.clone(),
                        None => runs.push((run.run_id.clone(), id.clone())),
                    }
                    (id, parent)
                })
            }
        };
        drop(chains);
        match saved {
            Ok((message_id, parent_id)) => {
                let saved = SavedMessage { message_id, role: role(message), parent_id };
                self.saved.lock().push((run.run_id.clone(), saved));
            }
            Err(error) => (self.on_error)(&error),
        }
    }
}

impl EventSink for ConversationSink {
    fn emit<'a>(&'a self, run: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        let Event::Message(message) = event else { return Box::pin(async { Ok(()) }) };
        let (inner, run, message) = (self.0.clone(), run.clone(), message.clone());
        Box::pin(async move {
            // A run that is dropped now still saves this message.
            let _ = tokio::task::spawn_blocking(move || inner.save(&run, &message)).await;
            Ok(())
        })
    }

    fn take_saved(&self, run: &RunLabel) -> Option<SavedMessage> {
        let mut saved = self.0.saved.lock();
        let position = saved.iter().position(|(id, _)| Arc::ptr_eq(id, &run.run_id))?;
        Some(saved.swap_remove(position).1)
    }
}

impl fmt::Debug for ConversationSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationSink").field("store", &self.0.store).finish_non_exhaustive()
    }
}
