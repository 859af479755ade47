//! The forms in which programs pass the result of a tool call to their model.

use std::{fmt, str::FromStr};

/// A form of the result of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Projection {
    /// The result as the server sent it.
    Canonical,
    /// A message of blocks, as cpe adds it to its dialog.
    Cpe,
    /// The record `{success, output, data, error}` of code_agent.
    CodeAgent,
    /// The record `{content, isError, success}` of MCPilot.
    Mcpilot,
    /// The tool result of aidk's engine, with its content blocks.
    Engine,
}

impl Projection {
    pub const ALL: [Projection; 5] =
        [Projection::Canonical, Projection::Cpe, Projection::CodeAgent, Projection::Mcpilot, Projection::Engine];

    pub fn as_str(self) -> &'static str {
        match self {
            Projection::Canonical => "canonical",
            Projection::Cpe => "cpe",
            Projection::CodeAgent => "code_agent",
            Projection::Mcpilot => "mcpilot",
            Projection::Engine => "engine",
        }
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The name of an unknown projection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown form {0:?}: use {forms}", forms = Projection::ALL.map(Projection::as_str).join(", "))]
pub struct UnknownProjection(pub String);

impl FromStr for Projection {
    type Err = UnknownProjection;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Projection::ALL.into_iter().find(|projection| projection.as_str() == text);
        named.ok_or_else(|| UnknownProjection(text.to_owned()))
    }
}
