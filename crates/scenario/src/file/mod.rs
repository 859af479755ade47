//! What a scenario file says.

pub(crate) mod action;
pub(crate) mod agent_expectations;
pub(crate) mod agent_step;
mod answers;
mod capture_check;
mod config_servers;
mod expectations;
pub(crate) mod final_answer;
pub(crate) mod host;
pub(crate) mod host_step;
mod limit;
mod model;
pub(crate) mod model_list;
mod named_file;
pub(crate) mod server;
mod step;

pub use action::{Action, Completion, CompletionTarget, ListenFilter, ToolCall};
pub use answers::parse_answers;
pub use expectations::Expectations;
pub use host::Host;
pub use model::{Matrix, Scenario, ScenarioError, find_scenarios};
pub use model_list::{ModelDefinition, ModelOptions};
pub use server::{NetworkCommand, ServerKind, ServerSpec, TargetSpec};
pub use step::{Step, StepCondition};
