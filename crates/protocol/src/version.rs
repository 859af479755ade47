//! Protocol versions and the two eras they belong to.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A released protocol version. The order is the order of release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Version {
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

/// The two families of protocol versions (2026-07-28, Versioning: Terminology).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// An `initialize` handshake opens a session.
    Legacy,
    /// Every request carries version, identity and capabilities in its `_meta`.
    Modern,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Version; 5] =
        [Version::V2024_11_05, Version::V2025_03_26, Version::V2025_06_18, Version::V2025_11_25, Version::V2026_07_28];
    /// The newest version that opens with a handshake.
    pub const LATEST_LEGACY: Version = Version::V2025_11_25;
    /// The newest version.
    pub const LATEST: Version = Version::V2026_07_28;

    /// The version as it is sent, for example `2025-11-25`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Version::V2024_11_05 => "2024-11-05",
            Version::V2025_03_26 => "2025-03-26",
            Version::V2025_06_18 => "2025-06-18",
            Version::V2025_11_25 => "2025-11-25",
            Version::V2026_07_28 => "2026-07-28",
        }
    }

    pub const fn era(self) -> Era {
        match self {
            Version::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }
}

impl Era {
    pub const fn as_str(self) -> &'static str {
        match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A string that names no released version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol version {0:?}; released are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28")]
pub struct UnknownVersion(pub String);

/// A string that names no era.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the eras are legacy and modern")]
pub struct UnknownEra;

impl FromStr for Era {
    type Err = UnknownEra;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Era::Legacy, Era::Modern].into_iter().find(|era| era.as_str() == text).ok_or(UnknownEra)
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Version::ALL.into_iter().find(|version| version.as_str() == text).ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_reads_back_from_its_text_in_order_of_release() {
        for version in Version::ALL {
            assert_eq!(version.as_str().parse(), Ok(version));
        }
        assert!(Version::ALL.is_sorted());
        assert_eq!("2026-07-29".parse::<Version>(), Err(UnknownVersion("2026-07-29".into())));
    }

    #[test]
    fn an_era_reads_back_from_its_text() {
        assert_eq!(("legacy".parse(), "modern".parse()), (Ok(Era::Legacy), Ok(Era::Modern)));
        assert_eq!("Modern".parse::<Era>(), Err(UnknownEra));
    }

    #[test]
    fn only_the_newest_version_is_modern() {
        let modern: Vec<_> = Version::ALL.into_iter().filter(|v| v.era() == Era::Modern).collect();
        assert_eq!(modern, [Version::V2026_07_28]);
    }
}
