//! Scenarios: snapshot tests of MCP servers that must give the same results on every transport and in every protocol
//! version of a matrix.
//!
//! A [`Scenario`] is a YAML file. A [`Plan`] selects the [`Cell`](rehearse_report::Cell)s of its matrix, and [`run`] runs
//! each of them with fresh mocks and sessions. The snapshots are compared when all cells of a scenario have ended.
//!
//! ```
//! use std::path::Path;
//!
//! use rehearse_document::Source;
//! use rehearse_mock::script::BuiltinScript;
//! use rehearse_scenario::{Plan, RunOptions, Scenario, Selection, run};
//! use tokio_util::sync::CancellationToken;
//!
//! const BUILTINS: &[BuiltinScript] =
//!     &[BuiltinScript { name: "basic", text: "tools: [{ name: echo, reply: '{{ args.text }}' }]" }];
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let source = Source::new(
//!     "demo.yaml",
//!     "
//! servers: { demo: { mock: basic } }
//! matrix: { transport: memory }
//! steps:
//!   - { call: { tool: echo, args: { text: hi } }, expect: { text: hi } }
//! ",
//! );
//! let scenario = Scenario::parse(&source, Path::new("demo.yaml"), BUILTINS).map_err(|mistakes| mistakes.to_string())?;
//! let options = RunOptions { jobs: 2, builtin_scripts: BUILTINS, ..RunOptions::default() };
//! let plan = Plan::new(vec![scenario], &Selection::default());
//! let result = run(plan, options, CancellationToken::new(), |_event| {}).await;
//! assert_eq!(result.totals.passed, 2);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod action;
mod action_runner;
mod agent_expectations;
mod agent_step;
mod answers;
mod capture_check;
mod cell_run;
mod client_requests;
mod config_servers;
mod connections;
mod coverage;
mod error;
mod eval_runner;
mod evaluation;
mod expectations;
mod final_answer;
mod hooks;
mod host;
mod hub_runner;
mod keys;
mod limit;
mod model;
mod model_list;
mod named_file;
mod notification;
mod observation;
mod pause;
#[cfg(feature = "check")]
mod recorded;
mod redaction;
#[cfg(feature = "check")]
mod replay;
mod run;
mod running_server;
mod server;
mod snapshot;
mod step;
mod surface;
#[cfg(test)]
mod tests;
#[cfg(feature = "check")]
mod volatile;

pub use action::{Action, Completion, CompletionTarget, ListenFilter, ToolCall};
pub use agent_expectations::AgentLog;
pub use answers::parse_answers;
pub use coverage::Usage;
pub use expectations::Expectations;
pub use hooks::{CellServer, RecordSink, TrafficHooks, TrafficJudge};
pub use host::Host;
pub use keys::schema;
pub use model::{Matrix, Scenario, ScenarioError, find_scenarios};
pub use model_list::{ModelDefinition, ModelOptions};
pub use observation::{Observation, StepOutcome};
#[cfg(feature = "check")]
pub use recorded::RecordedScenario;
pub use redaction::{Redaction, RedactionRule};
#[cfg(feature = "check")]
pub use replay::{Replay, ReplayTarget, replay};
pub use run::{Plan, RunEvent, RunOptions, Selection, run};
pub use server::{NetworkCommand, ServerKind, ServerSpec, TargetSpec};
pub use snapshot::{RecordedSnapshot, SnapshotMode, SnapshotScope, SnapshotSpec, read as read_snapshot};
pub use step::{Step, StepCondition};
pub use surface::read_surface;
