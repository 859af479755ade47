//! Runs a real host in a step.

use std::time::Duration;

use serde_json::json;

use super::{cell_run::CellRunner, error::StepError};
use crate::{
    file::{Step, host_step::HostStep},
    snapshot::{AgentLog, Observation},
};
use rehearse_client::ServerParams;
use rehearse_host::{
    HostEnd, HostEvidence, HostOptions, HostView, judge, listed_tools, plain_name, run_host, version_of, view,
};
use rehearse_llm::model::ScriptedModel;
use rehearse_protocol::Trace;
use rehearse_report::host::{HostConnection, HostRun};

/// How long a host may run.
const LONGEST: Duration = Duration::from_secs(60);
/// What stands for a version that the step does not name.
const ANY: &str = "[version]";

impl CellRunner<'_> {
    /// What the model of a host sees of the server, and what the server gets; with the traffic between them.
    ///
    /// # Errors
    /// The host is not on this machine, or shows nothing of the server; or a template cannot be rendered.
    pub(crate) async fn host(
        &self,
        step: &Step,
        HostStep { host, model, prompt, version }: &HostStep,
    ) -> Result<(Observation, Vec<Trace>), StepError> {
        let live = self.servers.get(step.server).ok_or(StepError::NoServer)?;
        let server = live.config.as_ref().ok_or(StepError::NoSessionOfConfig)?;
        let cannot = |why: String| StepError::Host(format!("{} cannot be run: {why}", host.title));
        let program = host.program(self.options.hosts.as_deref());
        let program = program.ok_or_else(|| StepError::Host(host.missing()))?;
        if let Some(wanted) = version {
            let found = version_of(&program).await.map_err(|error| cannot(error.to_string()))?;
            if found.as_ref() != Some(wanted) {
                let found = found.as_deref().unwrap_or("unknown");
                return Err(cannot(format!("its version is {found}, and not {wanted}")));
            }
        }
        let server = &ServerParams { name: plain_name(&server.name), ..server.clone() };
        let options = HostOptions {
            headless: &host.headless,
            program,
            server,
            rehearse: self.options.rehearse.clone(),
            model: ScriptedModel::parse(model)?,
            prompt: self.text(prompt)?,
            limit: step.timeout.unwrap_or(LONGEST),
            shutdown: server.shutdown.clone(),
        };
        let outcome = Box::pin(run_host(options)).await.map_err(|error| cannot(error.to_string()))?;
        let (mut run, tools) = (HostRun::new(&host.name, &host.title), listed_tools(&outcome.traces));
        let evidence = HostEvidence {
            headless: &host.headless,
            server: &server.name,
            tools: &tools,
            walked: &[],
            outcome: &outcome,
        };
        judge(&evidence, &mut run);
        let said = || run.error.iter().chain(&run.printed).cloned().collect::<Vec<_>>().join("; ");
        let HostView { tools, calls } = view(&evidence);
        let mut observation = match run.connection.take() {
            _ if run.fit.is_none() => return Err(cannot(said())),
            None => Observation::failed("connect", format!("{} opened no session; {}", host.title, said())),
            Some(_) if run.error.is_some() && !matches!(outcome.end, HostEnd::TimedOut | HostEnd::NeverAsked) => {
                return Err(cannot(said()));
            }
            Some(_) if run.error.is_some() => Observation::failed("timeout", said()),
            Some(HostConnection { client, protocol, capabilities, .. }) => {
                let client = match client.rsplit_once(' ') {
                    Some((name, _)) if version.is_none() => format!("{name} {ANY}"),
                    _ => client,
                };
                let client = json!({ "client": client, "protocolVersion": protocol, "capabilities": capabilities });
                Observation::result(json!({ "host": client, "tools": tools, "calls": calls }))
            }
        };
        observation.agent = Some(AgentLog { calls, turns: outcome.asked.len() as u64, ..AgentLog::default() });
        Ok((observation, outcome.traces))
    }
}
