//! Runs the actions that use a hub instead of one session: those of an agent, and those on the servers of a config.

use serde_json::{Value as Json, json};

use super::{cell_run::CellRunner, error::StepError, running_server::RunningServer};
use crate::{
    file::{Action, Step},
    snapshot::{Observation, observation::observe_raw},
};
use rehearse_client::CallOptions;
use rehearse_hub::{CallError, ConnectionState, Discovery, Hub, HubError};
use rehearse_protocol::Protocol;

impl RunningServer {
    /// Connects to the servers of the hub and lists their tools, unless that is done. `discover` does it again. The error
    /// is the observation of the step: a server that cannot be reached is never left out in silence. Later steps use the
    /// others.
    pub(crate) async fn discover(&mut self, step: &Step, protocol: Protocol) -> Result<(), Observation> {
        if self.discovery.is_some() && !matches!(step.action, Action::Discover { .. }) {
            return Ok(());
        }
        let discovered = self.hub.discover().await.map_err(|error| match error {
            HubError::Unreachable { server, error } => Observation::unreachable(&[(server, error)]),
            error => Observation::failed("connect", error.to_string()),
        })?;
        for (server, status) in self.hub.status() {
            if status.state != ConnectionState::Connected {
                continue;
            }
            let version = self.hub.with_session(&server, async |session, _| session.info().version.known()).await;
            let Ok(Some(version)) = version else { continue };
            if let Protocol::Exact(requested) = protocol
                && requested != version
            {
                return Err(Observation::other_version(requested, version));
            }
            self.version = self.version.or(Some(version));
        }
        let discovered = self.discovery.insert(discovered);
        match (&discovered.unreachable[..], discovered.total_failure()) {
            ([], None) => Ok(()),
            ([], Some(message)) => {
                let kind = discovered.incomplete.first().map_or("connect", |(_, failure)| failure.kind());
                Err(Observation::failed(kind, message))
            }
            (unreachable, _) => Err(Observation::unreachable(unreachable)),
        }
    }
}

impl CellRunner<'_> {
    /// # Errors
    /// A template of the step cannot be rendered.
    pub(crate) async fn run_on_hub(&self, server: &RunningServer, step: &Step) -> Result<Observation, StepError> {
        let hub = &server.hub;
        match &step.action {
            Action::Agent(agent) => self.agent(hub, agent, step.timeout.unwrap_or(server.timeouts.call)).await,
            Action::Call(call) => {
                let (tool, args) = (self.text(&call.tool)?, self.arguments(call.args.as_ref())?);
                let options = CallOptions { timeout: step.timeout, ..CallOptions::default() };
                Ok(match hub.call(&tool, args, options).await {
                    Ok(outcome) => {
                        let registry = hub.registry();
                        let errors = registry.get(&tool).and_then(|tool| {
                            let definitions = hub.tool_definitions(&tool.server).ok()?;
                            Some(outcome.schema_errors(&tool.original, &definitions))
                        });
                        Observation { schema_errors: errors.unwrap_or_default(), ..observe_raw(Ok(outcome.raw)) }
                    }
                    Err(CallError::Failed(failure)) => Observation::from_failure(&failure),
                    Err(error @ CallError::Unreachable { .. }) => Observation::failed("connect", error.to_string()),
                    Err(error) => Observation::failed("rejected", error.to_string()),
                })
            }
            _ => Ok(Observation::result(server.discovery.as_ref().map(|found| tools(hub, found)).unwrap_or_default())),
        }
    }
}

/// The tools as a model gets them, and what the hub has to say about them.
fn tools(hub: &Hub, found: &Discovery) -> Json {
    let registry = hub.registry();
    let tools = registry.tools().iter().map(|tool| {
        let mut definition: Json = serde_json::from_str(tool.definition.get()).unwrap_or_default();
        definition["name"] = tool.name.as_str().into();
        if let Some(description) = &tool.description {
            definition["description"] = description.as_str().into();
        }
        definition
    });
    let mut view = json!({ "tools": tools.collect::<Vec<_>>() });
    let failed = found.incomplete.iter().map(|(server, failure)| format!("server '{server}': {failure}"));
    let notices: Vec<_> = registry.notices.iter().map(ToString::to_string).chain(failed).collect();
    if !notices.is_empty() {
        view["notices"] = notices.into();
    }
    view
}
