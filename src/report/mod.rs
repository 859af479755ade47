//! Reports of a run, made from its inert result; each format gives its bytes and touches nothing.

mod human;
mod json;
mod junit;
pub mod palette;

use std::str::FromStr;

pub use human::{Layout, cell_mark};

use crate::scenario::RunResult;

/// The formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// For people; styled with ANSI sequences.
    #[default]
    Human,
    /// The whole result.
    Json,
    /// For CI systems.
    Junit,
}

impl Format {
    pub const ALL: [Format; 3] = [Format::Human, Format::Json, Format::Junit];

    pub const fn as_str(self) -> &'static str {
        match self {
            Format::Human => "human",
            Format::Json => "json",
            Format::Junit => "junit",
        }
    }

    /// The report, with a final newline.
    pub fn render(self, result: &RunResult, layout: Layout) -> Vec<u8> {
        match self {
            Format::Human => human::render(result, layout).into_bytes(),
            Format::Json => json::render(result),
            Format::Junit => junit::render(result),
        }
    }
}

/// A text that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}; there are human, json and junit")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Format::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
