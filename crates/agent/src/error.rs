//! Why a run has no answer.

use rehearse_hub::HubError;
use rehearse_llm::{final_answer::AnswerError, model::ModelError};

use crate::event::EmitError;

/// Why a run of an agent has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AgentError {
    /// A server of the config cannot be used.
    #[error("failed to initialize MCP connections: {0}")]
    Hub(#[from] HubError),
    /// Servers are there, but none lists a tool.
    #[error("{0}")]
    Tools(String),
    /// The model failed.
    #[error("generation failed: {0}")]
    Model(#[from] ModelError),
    /// The model said nothing and called nothing.
    #[error("generation failed: the model's answer is empty")]
    EmptyResponse,
    /// There was nothing to do.
    #[error("empty input")]
    EmptyInput,
    /// Code mode cannot be used with the tools of the servers.
    #[error("{0}")]
    CodeMode(String),
    /// A tool says that the run must end.
    #[error("tool '{tool}': {why}")]
    Tool { tool: String, why: String },
    /// The caller cancelled the run.
    #[error("execution cancelled")]
    Cancelled,
    /// The model still called tools in the last turn that it had.
    #[error("no answer after {0} turns (`maxTurns`)")]
    TurnLimit(u32),
    /// The run used up its tokens.
    #[error("no answer within {limit} tokens: {used} are used (`maxTokens`)")]
    Budget { limit: u64, used: u64 },
    /// The model ended without a valid answer.
    #[error("{0}")]
    Answer(#[from] AnswerError),
    /// An event could not be delivered to a sink that must have all of them.
    #[error("failed to emit {} event: {}", .0.event, .0.why)]
    Event(#[from] EmitError),
}
