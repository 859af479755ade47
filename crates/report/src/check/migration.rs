//! What a server of an older version has to do for a newer one.

use rehearse_protocol::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A list in the order of work.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    /// The newest version that the server speaks.
    #[schemars(with = "String", extend("enum" = Version::ALL))]
    pub from: Version,
    #[schemars(with = "String", extend("enum" = Version::ALL))]
    pub to: Version,
    /// The SDK of the server and its first version that serves the new one, if both are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    pub steps: Vec<MigrationStep>,
}

/// Something that changes, goes or stays.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationStep {
    pub kind: MigrationKind,
    pub text: String,
    /// What the server does today for which it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// The section of the new version.
    pub spec: String,
    /// The checks that will hold it, as `--only` takes them.
    pub checks: Vec<String>,
}

/// What becomes of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationKind {
    /// It is to be done anew, or in another way.
    Change,
    /// It goes.
    Remove,
    /// It stays.
    Keep,
}

impl MigrationKind {
    /// In the order of work.
    pub const ALL: [MigrationKind; 3] = [MigrationKind::Change, MigrationKind::Remove, MigrationKind::Keep];
}
