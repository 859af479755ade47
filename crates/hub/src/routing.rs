//! Which server gets a call if several have the tool.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::{CallError, ConnectionState, Event, Hub, RegisteredTool};
use rehearse_client::{CallOptions, Failure, ToolOutcome};

/// Which server gets a call if several have a tool of the same original name. Only connected servers are alternatives, and
/// only tools that pass the filters of their servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// That of the registered tool.
    #[default]
    Registered,
    /// That of the registered tool, and the next one if the call was not sent. A call that was sent and got no answer goes
    /// to the next one only if the tool is read-only or idempotent.
    Fallback,
    /// Each in turn; the others as for `Fallback`.
    RoundRobin,
}

/// A call, and the tool that answered it or that failed last.
#[derive(Clone, Debug)]
pub struct RoutedCall {
    /// The tool, which tells the server.
    pub tool: Arc<RegisteredTool>,
    /// The result; as for [`Hub::call_tool`].
    pub result: Result<ToolOutcome, CallError>,
}

/// A call that failed at a server and goes to another one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the call of '{tool}' failed at MCP server '{from}', and goes to '{to}': {why}")]
pub struct Rerouted {
    pub tool: String,
    pub from: Arc<str>,
    pub to: Arc<str>,
    pub why: Arc<str>,
}

/// How many calls of each tool were routed.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<String, usize>>);

impl Turns {
    fn next(&self, tool: &str) -> usize {
        let mut turns = self.0.lock();
        let turn = turns.entry(tool.to_owned()).or_default();
        std::mem::replace(turn, turn.wrapping_add(1))
    }
}

impl Hub {
    /// As [`Hub::call_tool`], at the server that [`HubOptions::routing`](super::HubOptions::routing) chooses.
    pub async fn call_routed(
        &self,
        tool: &Arc<RegisteredTool>,
        arguments: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> RoutedCall {
        let mut candidates = self.candidates(tool);
        let mut tool = candidates.pop_front().unwrap_or_else(|| tool.clone());
        loop {
            let result = Box::pin(self.call_tool(&tool, arguments.clone(), options.clone())).await;
            let next =
                result.as_ref().err().filter(|error| may_go_on(&tool, error)).and_then(|_| candidates.pop_front());
            let Some(next) = next else { return RoutedCall { tool, result } };
            if let Err(error) = &result {
                let (from, to) = (tool.server.clone(), next.server.clone());
                let why = error.to_string().into();
                self.emit(Event::Rerouted(Rerouted { tool: tool.original.clone(), from, to, why }));
            }
            tool = next;
        }
    }

    /// The tools that may answer, in the order in which they are tried.
    fn candidates(&self, tool: &Arc<RegisteredTool>) -> VecDeque<Arc<RegisteredTool>> {
        let routing = self.options().routing;
        if routing == Routing::Registered {
            return VecDeque::new();
        }
        let registry = self.registry();
        let same = || {
            let all = registry.tools().iter().chain(registry.shadowed());
            all.filter(|other| other.original == tool.original)
        };
        let connected = self.status().into_iter().filter(|(_, status)| status.state == ConnectionState::Connected);
        // In the order of the config.
        let of = |(server, _)| same().find(|other| other.server == server).cloned();
        let mut all: VecDeque<_> = connected.filter_map(of).collect();
        match routing {
            Routing::RoundRobin if !all.is_empty() => all.rotate_left(self.0.turns.next(&tool.original) % all.len()),
            _ => {
                all.retain(|other| other.server != tool.server);
                all.push_front(tool.clone());
            }
        }
        all
    }
}

/// Whether another server may get the call: this one did not get it, or it does no harm twice.
fn may_go_on(tool: &RegisteredTool, error: &CallError) -> bool {
    match error {
        CallError::UnknownServer(_) | CallError::Disabled(_) | CallError::Unreachable { .. } => true,
        CallError::Failed(Failure::Disconnected { .. } | Failure::Timeout(_) | Failure::Http { .. }) => {
            tool.annotations.may_repeat()
        }
        CallError::UnknownTool { .. }
        | CallError::InvalidArguments { .. }
        | CallError::Denied { .. }
        | CallError::Failed(_) => false,
    }
}
