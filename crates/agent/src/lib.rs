//! An [`Agent`]: a model, its tools, and the loop that lets it use them until it has an answer.
//!
//! ```text
//! prompt ──> Conversation ──> Model ──┬── text ──────────────────────> answer
//!                 ^                   ├── call of final_answer ──────> structured answer
//!                 │                   └── calls of other tools ──┐
//!                 └── ToolResult <── Toolbox: native tools, Hub <┘
//! ```
//!
//! Every step is reported to the [`EventSink`]s of the agent. An error of a tool goes back to the model; an error of the
//! model ends the run.

mod agent;
mod code_mode;
mod context;
mod conversation;
mod error;
mod event;
pub mod inputs;
mod model_spec;
mod native_tool;
mod resource_tools;
pub mod setup;
#[cfg(feature = "store")]
pub mod store;
mod subagent;
pub mod subagent_events;
pub mod system_prompt;
mod tool_format;
mod tool_result;
mod toolbox;
pub mod transcript;

#[cfg(test)]
mod tests;

pub use self::{
    agent::{Agent, AgentOptions, CallOrder, Run, RunStatistics},
    code_mode::{CodeEngine, CodeMode},
    conversation::Conversation,
    error::AgentError,
    event::{EmitError, EmitFuture, Event, EventSink, RunLabel, SavedMessage},
    model_spec::{ModelAccess, ModelApi, ModelSpec, ModelSpecError},
    native_tool::{NativeTool, NativeToolError, NativeToolFuture},
    resource_tools::resource_tools,
    subagent::{MakeSetup, Subagent, SubagentSpec},
    tool_format::ToolFormat,
    toolbox::{ToolKind, Toolbox},
};
