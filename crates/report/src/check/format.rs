//! The formats of a report of `rehearse check`.

use std::{path::PathBuf, str::FromStr};

/// The formats of a report of `rehearse check`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckFormat {
    /// Text, styled with ANSI sequences.
    #[default]
    Human,
    /// The whole result.
    Json,
    /// For CI systems.
    Junit,
    /// For code scanning, at the places of the servers in their config files.
    Sarif,
}

/// What a report needs to know of its reader.
#[derive(Clone, Debug, Default)]
pub struct CheckLayout {
    /// The width of the text report.
    pub width: usize,
    /// The folder to which paths are relative.
    pub directory: PathBuf,
}

/// The name of an unknown format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}; there are human, json, junit and sarif")]
pub struct UnknownCheckFormat(pub String);

impl FromStr for CheckFormat {
    type Err = UnknownCheckFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "human" => CheckFormat::Human,
            "json" => CheckFormat::Json,
            "junit" => CheckFormat::Junit,
            "sarif" => CheckFormat::Sarif,
            other => return Err(UnknownCheckFormat(other.to_owned())),
        })
    }
}
