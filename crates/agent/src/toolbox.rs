//! The tools of an agent in one list: native tools and those of MCP servers.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Map, Value, value::RawValue};
use tokio_util::sync::CancellationToken;

use rehearse_client::CallOptions;
use rehearse_hub::{
    CallError, Hub, RegisteredTool,
    projection::{Call, CallRejection, Projection},
};
use rehearse_llm::{
    Aliases, ToolDefinition, Violation,
    final_answer::{self, AnswerSchema},
    model::{Block, ToolCall, ToolResult},
    validate::Validator,
};

use crate::{AgentError, NativeTool, NativeToolError, tool_result};

/// What executes a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// The program that has the agent.
    Native,
    /// An MCP server.
    Mcp,
    /// Nothing: a call of `final_answer` ends the run.
    FinalAnswer,
}

/// The tools that a model gets for one turn. A native tool wins over an MCP tool of the same name.
#[derive(Debug)]
pub struct Toolbox {
    tools: Vec<Tool>,
    aliases: Aliases,
    dropped: Vec<Arc<RegisteredTool>>,
}

#[derive(Debug)]
enum Tool {
    Native(NativeTool),
    Mcp(Arc<RegisteredTool>),
    FinalAnswer(Box<RawValue>),
}

impl Toolbox {
    /// The native tools, the tools of the hub that `is_offered` accepts, and `final_answer` if there is a schema.
    pub fn new(
        native: &[NativeTool],
        hub: &Hub,
        is_offered: impl Fn(&RegisteredTool) -> bool,
        answer: Option<&AnswerSchema>,
    ) -> Toolbox {
        let mut names: HashSet<&str> = native.iter().map(NativeTool::name).collect();
        let mut tools = Vec::new();
        if let Some(answer) = answer {
            names.insert(final_answer::NAME);
            let schema = serde_json::value::to_raw_value(answer.json()).unwrap_or_else(|_| RawValue::NULL.to_owned());
            tools.push(Tool::FinalAnswer(schema));
        }
        let named = native.iter().filter(|tool| answer.is_none() || tool.name() != final_answer::NAME);
        tools.extend(named.cloned().map(Tool::Native));
        let registry = hub.registry();
        let offered = registry.tools().iter().filter(|tool| is_offered(tool)).cloned();
        let (dropped, offered): (Vec<_>, Vec<_>) = offered.partition(|tool| names.contains(tool.name.as_str()));
        tools.extend(offered.into_iter().map(Tool::Mcp));
        let aliases = Aliases::new(tools.iter().map(|tool| tool.definition().name));
        Toolbox { tools, aliases, dropped }
    }

    /// The definitions for the model, under names that every provider accepts.
    pub fn definitions(&self) -> Vec<ToolDefinition<'_>> {
        let definitions = self.tools.iter().map(Tool::definition);
        let renamed = definitions.map(|definition| ToolDefinition {
            name: self.aliases.alias(definition.name).unwrap_or(definition.name),
            ..definition
        });
        renamed.collect()
    }

    /// The MCP tools that a native tool, or `final_answer`, hides.
    pub fn dropped(&self) -> &[Arc<RegisteredTool>] {
        &self.dropped
    }

    /// What executes the tool that the model calls `name`.
    pub fn kind(&self, name: &str) -> Option<ToolKind> {
        self.find(name).map(|tool| match tool {
            Tool::Native(_) => ToolKind::Native,
            Tool::Mcp(_) => ToolKind::Mcp,
            Tool::FinalAnswer(_) => ToolKind::FinalAnswer,
        })
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        let name = self.aliases.name(name).unwrap_or(name);
        self.tools.iter().find(|tool| tool.definition().name == name)
    }

    /// Calls a tool. What goes wrong is a result for the model.
    ///
    /// # Errors
    /// The tool says that the run must end.
    pub(crate) async fn call(
        &self,
        hub: &Hub,
        projection: Option<Projection>,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, AgentError> {
        let of = |content: Vec<Block>, is_error| ToolResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            content: if content.is_empty() { vec![Block::text("")] } else { content },
            is_error,
        };
        let tool = self.find(&call.name);
        let (server, original) = match tool {
            Some(Tool::Mcp(tool)) => (&*tool.server, &*tool.original),
            _ => ("", &*call.name),
        };
        let projection =
            projection.or_else(|| Some(hub.server(server).ok()?.policy.projection)).unwrap_or(Projection::Canonical);
        let target = Call { id: &call.id, server, tool: original };
        let reject = |rejection| of(tool_result::from_rejection(projection, &target, &rejection), true);
        let Some(tool) = tool else { return Ok(reject(CallRejection::UnknownTool)) };
        let arguments = match parse(&call.arguments) {
            Ok(arguments) => arguments,
            Err(why) => return Ok(reject(CallRejection::InvalidArguments(why))),
        };
        Ok(match tool {
            Tool::Native(native) => {
                let schema = serde_json::from_str(native.definition().input_schema.get()).unwrap_or_default();
                let violations = Validator::new(schema).violations(&arguments);
                if !violations.is_empty() {
                    return Ok(reject(invalid(&violations)));
                }
                match native.call(arguments, cancel.clone()).await {
                    Ok(content) => of(content, false),
                    Err(NativeToolError::Failed(error)) => of(vec![Block::text(error)], true),
                    Err(NativeToolError::Fatal(why)) => return Err(AgentError::Tool { tool: call.name.clone(), why }),
                }
            }
            Tool::Mcp(registered) => {
                let options = CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() };
                let called = Box::pin(hub.call_routed(registered, Some(arguments), options)).await;
                let (content, is_error) = match called.result {
                    Ok(outcome) => tool_result::from_call(projection, &target, Ok(&outcome)),
                    Err(CallError::Failed(failure)) => tool_result::from_call(projection, &target, Err(&failure)),
                    Err(error) => (tool_result::from_rejection(projection, &target, &rejection(error)), true),
                };
                of(content, is_error)
            }
            Tool::FinalAnswer(_) => of(Vec::new(), false),
        })
    }
}

impl Tool {
    fn definition(&self) -> ToolDefinition<'_> {
        match self {
            Tool::Native(native) => native.definition(),
            Tool::Mcp(registered) => registered.for_model(),
            Tool::FinalAnswer(schema) => {
                let description = Some(final_answer::DESCRIPTION);
                ToolDefinition { description, ..ToolDefinition::new(final_answer::NAME, schema) }
            }
        }
    }
}

/// The arguments of a call. Providers send an empty text for a tool without parameters.
fn parse(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("the arguments are not a JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn invalid(violations: &[Violation]) -> CallRejection {
    CallRejection::InvalidArguments(violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn rejection(error: CallError) -> CallRejection {
    match error {
        CallError::UnknownTool { .. } => CallRejection::UnknownTool,
        CallError::UnknownServer(_) => CallRejection::UnknownServer,
        CallError::Disabled(_) => CallRejection::Disabled,
        CallError::Denied { .. } => CallRejection::Denied,
        CallError::InvalidArguments { violations, .. } => invalid(&violations),
        CallError::Unreachable { error, .. } => CallRejection::NotConnected(error.to_string()),
        CallError::Failed(failure) => CallRejection::NotConnected(failure.to_string()),
    }
}
