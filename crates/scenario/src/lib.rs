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

mod coverage;
mod file;
mod keys;
#[cfg(feature = "check")]
mod recorded;
mod run;
mod snapshot;
mod surface;
#[cfg(test)]
mod tests;

pub use coverage::Usage;
pub use file::{
    Action, Completion, CompletionTarget, Expectations, Host, ListenFilter, Matrix, ModelDefinition, ModelOptions,
    NetworkCommand, Scenario, ScenarioError, ServerKind, ServerSpec, Step, StepCondition, TargetSpec, ToolCall,
    find_scenarios, parse_answers,
};
pub use keys::schema;
#[cfg(feature = "check")]
pub use recorded::{RecordedScenario, Replay, ReplayTarget, replay};
pub use run::{
    CellServer, Plan, RecordSink, RecordedSnapshot, RunEvent, RunOptions, Selection, SnapshotMode, TrafficHooks,
    TrafficJudge, run,
};
pub use snapshot::{
    AgentLog, Observation, Redaction, RedactionRule, SnapshotScope, SnapshotSpec, StepOutcome, read as read_snapshot,
};
pub use surface::read_surface;
