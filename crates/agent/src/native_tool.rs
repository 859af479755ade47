//! Tools of the program that has the agent.

use std::{fmt, pin::Pin, sync::Arc};

use serde_json::{Map, Value, value::RawValue};
use tokio_util::sync::CancellationToken;

use rehearse_llm::{ToolDefinition, model::Block};

/// The result of a native tool: what the model gets.
pub type NativeToolFuture = Pin<Box<dyn Future<Output = Result<Vec<Block>, NativeToolError>> + Send>>;

/// Why a native tool has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NativeToolError {
    /// The model gets this text as the error of the tool.
    #[error("{0}")]
    Failed(String),
    /// The run ends: it makes no sense to go on.
    #[error("{0}")]
    Fatal(String),
}

impl From<String> for NativeToolError {
    fn from(text: String) -> Self {
        NativeToolError::Failed(text)
    }
}

type Run = dyn Fn(Map<String, Value>, CancellationToken) -> NativeToolFuture + Send + Sync;

/// A tool that is not one of an MCP server. It takes the same way as those: its arguments are checked against its schema,
/// and its errors go back to the model.
///
/// ```
/// use rehearse_agent::NativeTool;
/// use rehearse_llm::model::Block;
/// use serde_json::json;
///
/// let schema = json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } });
/// let shout = NativeTool::new("shout", "Writes in capitals.", &schema, |arguments, _| {
///     Box::pin(async move { Ok(vec![Block::text(arguments["text"].as_str().unwrap_or_default().to_uppercase())]) })
/// });
/// assert_eq!(shout.name(), "shout");
/// ```
#[derive(Clone)]
pub struct NativeTool {
    name: String,
    description: String,
    input_schema: Arc<RawValue>,
    run: Arc<Run>,
}

impl NativeTool {
    /// A tool that calls `run` with its arguments. The token is cancelled when the run of the agent is.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: &Value,
        run: impl Fn(Map<String, Value>, CancellationToken) -> NativeToolFuture + Send + Sync + 'static,
    ) -> NativeTool {
        let schema = serde_json::value::to_raw_value(input_schema).unwrap_or_else(|_| RawValue::NULL.to_owned());
        NativeTool {
            name: name.into(),
            description: description.into(),
            input_schema: schema.into(),
            run: Arc::new(run),
        }
    }

    /// The name for the model.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definition for the model.
    pub fn definition(&self) -> ToolDefinition<'_> {
        ToolDefinition { description: Some(&self.description), ..ToolDefinition::new(&self.name, &self.input_schema) }
    }

    pub(crate) fn call(&self, arguments: Map<String, Value>, cancel: CancellationToken) -> NativeToolFuture {
        (self.run)(arguments, cancel)
    }
}

impl fmt::Debug for NativeTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeTool").field("name", &self.name).finish_non_exhaustive()
    }
}
