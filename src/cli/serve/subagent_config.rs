//! The config of a subagent, read and checked.

use std::{path::Path, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::events::EventPrinter;
use crate::cli::{
    Failure,
    agent_config::{code_mode, read_agent},
    mcp::target::{Server, TargetArgs, connection::ConnectionArgs},
    mock::console::Console,
    secrets::Secrets,
    spans::{SpanExporter, random_trace},
    style::printable,
};
use rehearse_agent::{
    CodeMode, EventSink, MakeSetup, Subagent, SubagentSpec,
    inputs::InputSources,
    setup::{self, AgentSetup, SetupContext},
    subagent_events::{ADDRESS_VARIABLE, EventEmitter},
};
use rehearse_client::{AnswerScript, StderrLine};
use rehearse_client_configs::{Machine, agent::AgentConfig, dialect};
use rehearse_document::{Problem, Problems, Span};
use rehearse_hub::{HubOptions, RecordSink, Routing};
use rehearse_llm::final_answer::AnswerSchema;
use rehearse_protocol::{Transport, trace_file::ConnectionInfo};

/// A config that defines a subagent, with everything that its runs need.
pub(super) struct SubagentFile {
    config: AgentConfig,
    answer: Option<Arc<AnswerSchema>>,
    setup: MakeSetup,
    servers: Vec<Server>,
    spans: Option<SpanExporter>,
}

/// What the callers of a subagent may do.
pub(super) struct Callers {
    pub(super) inputs: InputSources,
    pub(super) max_runs: usize,
}

impl SubagentFile {
    /// Reads the config and all files that it names. With `is_lazy`, each run reads the system prompt and makes the model.
    ///
    /// # Errors
    /// Everything that is missing or wrong, with its position.
    pub(super) fn load(path: &Path, model: Option<&str>, is_lazy: bool) -> Result<SubagentFile, Failure> {
        let shown = path.display();
        if !path.exists() {
            return Err(Failure::Usage(format!(
                "failed to load config: specified config file does not exist: {shown}"
            )));
        }
        let target = TargetArgs::for_file(path, dialect::by_name("cpe"));
        let (servers, _) = target.read(None, false)?;
        let (source, config) = read_agent(path)?;
        let in_source = |problems: Problems| Failure::Invalid(problems.in_source(&source));
        if config.subagent.is_none() {
            let problem = Problem::new(Span::default(), "config must define a subagent for MCP server mode");
            return Err(in_source(problem.hint("write `subagent: { name: …, description: … }`").into()));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let variables = Machine::here().variables;
        let context = SetupContext { folder, variables: &variables, model };
        let (answer, setup): (_, MakeSetup) = match is_lazy {
            false => {
                let made = AgentSetup::new(&config, &context).map_err(in_source)?;
                (made.options.answer.clone(), Arc::new(move || Ok(made.clone())))
            }
            true => {
                let answer = setup::answer_schema(&config, &context).map_err(in_source)?;
                let (config, folder, model) = (config.clone(), folder.to_owned(), model.map(str::to_owned));
                let make = move || {
                    let context = SetupContext { folder: &folder, variables: &variables, model: model.as_deref() };
                    AgentSetup::new(&config, &context).map_err(|problems| problems.in_source(&source))
                };
                (answer, Arc::new(make))
            }
        };
        Ok(SubagentFile { config, answer, setup, servers, spans: None })
    }

    /// Sets the time from the start of a server to the end of its handshake.
    pub(super) fn set_start_timeout(&mut self, limit: Duration) {
        self.servers.iter_mut().for_each(|server| server.resolved.config.timeouts.connect = limit);
    }

    /// Sends a span of each request to a server, which gets its context.
    pub(super) fn set_spans(&mut self, spans: SpanExporter) {
        self.servers.iter_mut().for_each(|server| server.resolved.config.trace = Some(random_trace()));
        self.spans = Some(spans);
    }

    /// # Errors
    /// Code mode is enabled, and there is no engine.
    pub(super) async fn code_mode(&self, model: Option<&str>) -> Result<Option<CodeMode>, Failure> {
        code_mode(self.config.code_mode_of(model)).await
    }

    /// The subagent, whose runs are saved and print their events.
    ///
    /// # Errors
    /// A server of the config cannot be used.
    pub(super) fn subagent(
        self,
        console: Option<Console>,
        saved: Option<Arc<dyn EventSink>>,
        code_mode: Option<CodeMode>,
        routing: Routing,
        callers: Callers,
        shutdown: &CancellationToken,
    ) -> Result<Arc<Subagent>, Failure> {
        let SubagentFile { config, answer, setup, servers, spans } = self;
        let Some(subagent) = config.subagent else { return Err(Failure::Usage("there is no subagent".to_owned())) };
        let members = ConnectionArgs::default().members(&servers, &AnswerScript::default(), None, shutdown)?;
        let secrets = servers.iter().fold(Secrets::default(), |all, server| all.merge(&server.resolved.secrets));
        let policy = dialect::by_name("cpe").map(|cpe| &cpe.policy);
        let mut hub = policy.map_or_else(HubOptions::default, HubOptions::from_policy);
        hub.routing = routing;
        hub.record_sink = spans.map(|spans| -> RecordSink {
            let secrets = secrets.clone();
            Arc::new(move |name, recorder| {
                let server = servers.iter().find(|server| server.name() == &**name);
                let transport = server.map_or(Transport::Stdio, |it| it.resolved.config.target.transport());
                recorder.set_sink(spans.connection(&ConnectionInfo::new(&**name, transport), secrets.clone(), false));
            })
        });
        let mut sinks: Vec<_> = saved.into_iter().collect();
        // The parent prints the events; its address reaches the subagents of this one with the environment.
        let address = std::env::var(ADDRESS_VARIABLE).ok().filter(|address| !address.is_empty());
        if let Some(console) = console {
            let of_servers = console.clone();
            hub.stderr = Some(Arc::new(move |StderrLine { server, line }| {
                let line = secrets.hidden(&format!("[{server}] {line}"));
                of_servers.print(format!("{}\n", printable(&line)));
            }));
            sinks.push(Arc::new(EventPrinter::new(console, address.is_some())));
        }
        if let Some(address) = &address {
            let emitter =
                EventEmitter::new(address).map_err(|why| Failure::Usage(format!("{ADDRESS_VARIABLE}: {why}")))?;
            sinks.push(Arc::new(emitter));
        }
        Ok(Subagent::new(SubagentSpec {
            name: subagent.name.value,
            description: subagent.description.value,
            answer,
            setup,
            native_tools: Vec::new(),
            code_mode,
            servers: members,
            hub,
            timeout: subagent.timeout,
            inputs: callers.inputs,
            max_runs: callers.max_runs,
            sinks,
            takes_run_id: address.is_some(),
        }))
    }
}
