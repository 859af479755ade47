//! Skills of a server (extension `io.modelcontextprotocol/skills`, SEP-2640), whose files are verified before use.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{CallOptions, Listing, Session};
use crate::result::Failure;
use rehearse_document::{Source, parse_yaml};

/// The name of the extension in `capabilities.extensions`.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

const FENCE: &str = "---";

/// An entry of `skills/list`.
#[derive(Clone, Debug, Deserialize)]
pub struct Skill {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The frontmatter of its `SKILL.md`.
    #[serde(default)]
    pub frontmatter: Map<String, Value>,
    /// The files of the skill.
    #[serde(default)]
    pub resources: Vec<SkillFile>,
}

/// The entry of a file.
#[derive(Clone, Debug, Deserialize)]
pub struct SkillFile {
    /// The URI of the file.
    pub uri: String,
    /// `sha256:` and the digest in hexadecimal.
    pub digest: Option<String>,
    /// In bytes.
    pub size: Option<u64>,
}

/// Why a file of a skill cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The request failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The file does not match its entry.
    #[error("{uri} is not what its entry says: {what}")]
    Unverified {
        /// The URI of the file.
        uri: String,
        /// The difference.
        what: Mismatch,
    },
}

/// How a file differs from its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The size differs.
    Size {
        /// The size in the entry, in bytes.
        expected: u64,
        /// The size of the file, in bytes.
        found: u64,
    },
    /// The digest differs.
    Digest,
    /// The field of the frontmatter that differs; empty if there is no frontmatter.
    Frontmatter(String),
}

impl Session {
    /// Lists the skills of the server, without their files.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn list_skills(&self, options: CallOptions) -> Result<Listing, Failure> {
        let mut listing = Listing::default();
        self.list_into(self, &mut listing, ("skills/list", "skills"), usize::MAX, options).await?;
        Ok(listing)
    }

    /// Reads and verifies a file of a skill.
    ///
    /// # Errors
    /// [`SkillError::Unverified`] if it does not match its entry; for a `SKILL.md` this includes the frontmatter.
    pub async fn read_skill(&self, skill: &Skill, uri: &str, options: CallOptions) -> Result<Vec<u8>, SkillError> {
        let result = self.read_resource(uri, options).await?;
        let content = first_content(result.get()).ok_or_else(|| Failure::Malformed("no content".to_owned()))?;
        match skill.verify(uri, &content) {
            Ok(()) => Ok(content),
            Err(what) => Err(SkillError::Unverified { uri: uri.to_owned(), what }),
        }
    }
}

impl Skill {
    /// Compares a file with its entry (SEP-2640: Integrity).
    ///
    /// # Errors
    /// The first [`Mismatch`].
    pub fn verify(&self, uri: &str, content: &[u8]) -> Result<(), Mismatch> {
        if let Some(file) = self.resources.iter().find(|file| file.uri == uri) {
            let found = content.len() as u64;
            if let Some(expected) = file.size.filter(|size| *size != found) {
                return Err(Mismatch::Size { expected, found });
            }
            if file.digest.as_ref().is_some_and(|expected| *expected != sha256(content)) {
                return Err(Mismatch::Digest);
            }
        }
        if uri == self.uri { self.verify_frontmatter(content) } else { Ok(()) }
    }

    fn verify_frontmatter(&self, content: &[u8]) -> Result<(), Mismatch> {
        let written = frontmatter(content).ok_or_else(|| Mismatch::Frontmatter(String::new()))?;
        let names = self.frontmatter.keys().chain(written.keys());
        match names.into_iter().find(|name| self.frontmatter.get(*name) != written.get(*name)) {
            Some(name) => Err(Mismatch::Frontmatter(name.clone())),
            None => Ok(()),
        }
    }
}

/// The YAML between the first two lines of three hyphens.
fn frontmatter(content: &[u8]) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(content).ok()?;
    let mut lines = text.split_inclusive('\n');
    lines.next().filter(|line| line.trim_end() == FENCE)?;
    let yaml: Vec<_> = lines.by_ref().take_while(|line| line.trim_end() != FENCE).collect();
    let source = Source::new("SKILL.md", yaml.concat());
    match parse_yaml(&source).ok()?.to_json() {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// The bytes of the first content of a `resources/read` result.
fn first_content(result: &str) -> Option<Vec<u8>> {
    let result: Value = serde_json::from_str(result).ok()?;
    let content = result["contents"].get(0)?;
    match (content["text"].as_str(), content["blob"].as_str()) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (None, Some(blob)) => BASE64_STANDARD.decode(blob).ok(),
        (None, None) => None,
    }
}

fn sha256(content: &[u8]) -> String {
    let hexadecimal: String = digest(&SHA256, content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hexadecimal}")
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Size { expected, found } => write!(f, "it has {found} bytes instead of {expected}"),
            Mismatch::Digest => f.write_str("it has another digest"),
            Mismatch::Frontmatter(field) if field.is_empty() => f.write_str("it has no frontmatter"),
            Mismatch::Frontmatter(field) => write!(f, "its frontmatter has another `{field}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MANIFEST: &str = "---\nname: refunds\ndescription: Pay back.\n---\nRead more.\n";

    fn skill(manifest: &str) -> Skill {
        let files = [
            json!({ "uri": "skill://refunds/SKILL.md", "digest": sha256(manifest.as_bytes()), "size": manifest.len() }),
            json!({ "uri": "skill://refunds/a.txt", "size": 1 }),
        ];
        let frontmatter = json!({ "name": "refunds", "description": "Pay back." });
        let entry = json!({ "uri": "skill://refunds/SKILL.md", "frontmatter": frontmatter, "resources": files });
        serde_json::from_value(entry).expect("an entry")
    }

    fn verify(manifest: &str) -> Result<(), Mismatch> {
        skill(manifest).verify("skill://refunds/SKILL.md", manifest.as_bytes())
    }

    #[test]
    fn a_file_is_held_against_its_entry() {
        assert_eq!(verify(MANIFEST), Ok(()));
        let uri = "skill://refunds/SKILL.md";
        let other = MANIFEST.replace("more", "less");
        assert_eq!(skill(MANIFEST).verify(uri, other.as_bytes()), Err(Mismatch::Digest));
        let longer = format!("{MANIFEST}x");
        let (expected, found) = (MANIFEST.len() as u64, longer.len() as u64);
        assert_eq!(skill(MANIFEST).verify(uri, longer.as_bytes()), Err(Mismatch::Size { expected, found }));
        assert_eq!(
            skill(MANIFEST).verify("skill://refunds/a.txt", b"xy"),
            Err(Mismatch::Size { expected: 1, found: 2 })
        );
        assert_eq!(skill(MANIFEST).verify("skill://refunds/unknown", b"xy"), Ok(()));
    }

    #[test]
    fn the_frontmatter_of_the_manifest_must_be_that_of_the_entry() {
        let differing = |from, to| verify(&MANIFEST.replace(from, to));
        assert_eq!(differing("refunds", "other"), Err(Mismatch::Frontmatter("name".into())));
        assert_eq!(differing("---\nR", "license: MIT\n---\nR"), Err(Mismatch::Frontmatter("license".into())));
        assert_eq!(differing("---\nname", "name"), Err(Mismatch::Frontmatter(String::new())));
    }

    #[test]
    fn texts_and_blobs_are_bytes() {
        let read = |content: Value| first_content(&json!({ "contents": [content] }).to_string());
        assert_eq!(read(json!({ "text": "é" })), Some("é".into()));
        assert_eq!(read(json!({ "blob": "AAE=" })), Some(vec![0, 1]));
        assert_eq!(read(json!({})), None);
    }
}
