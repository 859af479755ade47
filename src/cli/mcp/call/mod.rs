//! Calls of tools.

pub(crate) mod call_tool;
pub(crate) mod call_tool_args;
mod model_message;
mod projected_result;
pub(crate) mod tool_call;
