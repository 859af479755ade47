//! Code mode: the model calls tools from programs that it writes.
//!
//! A program runs in a process of its own. Its tool calls come back here, and each program gets connections of its own,
//! opened when it first calls a tool of a server and closed at its end.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{Agent, AgentError, NativeTool, NativeToolError};
use rehearse_client::CallOptions;
use rehearse_code_mode::{
    self as code_mode, Arguments, Definition, ExecutionError, Limits, ProgramEnd, ToolCall,
    codegen::Language,
    go::{self, Toolchain},
    partition,
    quickjs::{self, Worker},
};
use rehearse_hub::{CallError, Hub, HubOptions, HubServer, RegisteredTool};
use rehearse_llm::model::{Block, Media};
use rehearse_system::TempFolder;

/// What runs the programs.
#[derive(Clone, Debug)]
pub enum CodeEngine {
    /// JavaScript, in a worker process: the tool `execute_code`.
    QuickJs(Worker),
    /// Go, with the toolchain of the machine: the tool `execute_go_code`.
    Go(Toolchain),
}

/// How an agent uses code mode.
#[derive(Clone, Debug)]
pub struct CodeMode {
    pub engine: CodeEngine,
    /// The tools that the model calls one by one, by their registered names.
    pub excluded: Vec<String>,
    /// The longest time that the model may ask for, in seconds.
    pub max_timeout: u64,
}

/// What a program needs to call tools.
struct Program {
    code_mode: CodeMode,
    tools: Vec<code_mode::Tool>,
    registered: HashMap<String, Arc<RegisteredTool>>,
    servers: Vec<HubServer>,
    hub: HubOptions,
}

impl CodeMode {
    /// The agent with the tool that runs programs, and without the tools that programs call. The hub of the agent must
    /// have discovered its tools; programs connect to `servers` with the options `hub`.
    ///
    /// # Errors
    /// [`AgentError::CodeMode`]: two tools have the same function, or one has the name of the tool of code mode.
    pub fn apply(&self, agent: Agent, servers: &[HubServer], hub: &HubOptions) -> Result<Agent, AgentError> {
        let registry = agent.hub().registry();
        let parts = partition(registry.tools().iter().map(|tool| described(tool)).collect(), &self.excluded);
        let (language, name) = match self.engine {
            CodeEngine::QuickJs(_) => (Language::TypeScript, quickjs::NAME),
            CodeEngine::Go(_) => (Language::Go, go::NAME),
        };
        let checked = language.check_names(&parts.code_mode, name);
        checked.map_err(|collision| AgentError::CodeMode(collision.to_string()))?;
        let names: Vec<_> = parts.code_mode.iter().map(|tool| tool.name.clone()).collect();
        let registered = names.iter().filter_map(|name| Some((name.clone(), registry.get(name)?.clone()))).collect();
        let Definition { name, description, input_schema } = match &self.engine {
            CodeEngine::QuickJs(_) => quickjs::definition(&parts.code_mode, self.max_timeout),
            CodeEngine::Go(toolchain) => go::definition(toolchain, &parts.code_mode, self.max_timeout),
        };
        let hub = HubOptions { watch_changes: false, ..hub.clone() };
        let (code_mode, servers) = (self.clone(), servers.to_vec());
        let program = Arc::new(Program { code_mode, tools: parts.code_mode, registered, servers, hub });
        let tool = NativeTool::new(name, description, &input_schema, move |arguments, cancel| {
            let program = program.clone();
            Box::pin(async move { program.run(&arguments, cancel).await })
        });
        Ok(agent.with_tool(tool).without_tools(names))
    }
}

/// The time limit of a program, if the call is one of code mode.
pub(crate) fn timeout_of(tool: &str, arguments: &str) -> Option<Duration> {
    if ![quickjs::NAME, go::NAME].contains(&tool) {
        return None;
    }
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    arguments["executionTimeout"].as_u64().map(Duration::from_secs)
}

fn described(tool: &RegisteredTool) -> code_mode::Tool {
    let definition: Value = serde_json::from_str(tool.definition.get()).unwrap_or_default();
    code_mode::Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: definition["inputSchema"].clone(),
        output_schema: definition.get("outputSchema").cloned(),
    }
}

impl Program {
    async fn run(
        &self,
        arguments: &Map<String, Value>,
        cancel: CancellationToken,
    ) -> Result<Vec<Block>, NativeToolError> {
        let arguments = Arguments::read(arguments, self.code_mode.max_timeout);
        let Arguments { code, timeout } = arguments.map_err(|error| NativeToolError::Failed(error.to_string()))?;
        let limits = Limits::new(Duration::from_secs(timeout));
        let hub = Hub::new(self.servers.clone(), self.hub.clone());
        let call = |call: ToolCall| self.call(&hub, call, &cancel);
        let execution = async {
            match &self.code_mode.engine {
                CodeEngine::QuickJs(worker) => quickjs::execute(worker, &code, &self.tools, &limits, call).await,
                CodeEngine::Go(toolchain) => {
                    let folder = TempFolder::create(&std::env::temp_dir()).map_err(ExecutionError::Files)?;
                    go::execute(toolchain, folder.path(), &code, &self.tools, &limits, call).await
                }
            }
        };
        // Dropping the execution kills the program.
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            ended = execution => Some(ended),
        };
        hub.close().await;
        match ended {
            Some(Ok(execution)) if !cancel.is_cancelled() => match execution.outcome {
                ProgramEnd::Fatal(_) => Err(NativeToolError::Fatal(execution.text())),
                _ => Ok(execution.blocks().iter().map(block).collect()),
            },
            Some(Err(error)) => Err(NativeToolError::Fatal(error.to_string())),
            _ => Err(NativeToolError::Failed("cancelled".to_owned())),
        }
    }

    /// Calls a tool for a program.
    async fn call(&self, hub: &Hub, call: ToolCall, cancel: &CancellationToken) -> Result<Value, code_mode::CallError> {
        let failed = |text: String| code_mode::CallError::Failed(text);
        let tool = self.registered.get(&call.tool).ok_or_else(|| failed(format!("tool '{}' not found", call.tool)))?;
        let options = CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() };
        match Box::pin(hub.call_tool(tool, Some(call.arguments), options)).await {
            Ok(outcome) => Ok(serde_json::from_str(outcome.raw.get()).unwrap_or_default()),
            Err(error @ (CallError::Unreachable { .. } | CallError::UnknownServer(_) | CallError::Disabled(_))) => {
                Err(code_mode::CallError::Fatal(error.to_string()))
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// A content block of MCP for the model.
fn block(content: &Value) -> Block {
    let text = |key: &str| content[key].as_str().map(str::to_owned);
    match (content["type"].as_str(), text("text"), text("data"), text("mimeType")) {
        (Some("text"), Some(text), ..) => Block::Text { text },
        (Some("image" | "audio"), _, Some(data), Some(mime_type)) => {
            Block::Media(Media { mime_type, data, name: None })
        }
        _ => Block::text(content.to_string()),
    }
}
