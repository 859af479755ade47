//! A limit of a text: its length, its characters, or that it is there.

use regex::Regex;

use crate::keys::KEYS;
use rehearse_document::{Node, Problems, text::shortened};

/// How much of a text is quoted.
const QUOTED: usize = 80;

/// What a text must be.
#[derive(Clone, Debug)]
pub(crate) enum TextLimit {
    MaxLength(usize),
    MinLength(usize),
    Pattern(Regex),
    /// What must not be in it.
    Without(Regex),
    Required,
}

impl TextLimit {
    /// Reads an object that the table of keys calls `object`.
    ///
    /// # Errors
    /// It has none or two of them, or a pattern is none.
    pub(crate) fn read(node: &Node, object: &str) -> Result<TextLimit, Problems> {
        let entry = KEYS.choice(node, object)?;
        Ok(match entry.key.as_str() {
            "maxLength" => TextLimit::MaxLength(entry.node.integer()?),
            "minLength" => TextLimit::MinLength(entry.node.integer()?),
            "pattern" => TextLimit::Pattern(entry.node.parsed()?),
            "without" => TextLimit::Without(entry.node.parsed()?),
            _ if entry.node.bool()? => TextLimit::Required,
            _ => return Err(entry.node.problem("`required` must be true").into()),
        })
    }

    /// How a text breaks it, after its name: `has 67 characters, and 60 are allowed`. An absent text breaks only what
    /// asks for one.
    pub(crate) fn violation(&self, text: Option<&str>) -> Option<String> {
        let length = text.map_or(0, |text| text.chars().count());
        match (self, text) {
            (TextLimit::MaxLength(max), Some(_)) if length > *max => {
                Some(format!("has {length} characters, and {max} are allowed"))
            }
            (TextLimit::MinLength(min), Some(_)) if length < *min => {
                Some(format!("has {length} characters, and {min} are needed"))
            }
            (TextLimit::Pattern(pattern), Some(text)) if !pattern.is_match(text) => {
                Some(format!("{} does not match {}", quoted(text), pattern.as_str()))
            }
            (TextLimit::Without(pattern), Some(text)) => Some(format!("says {}", quoted(pattern.find(text)?.as_str()))),
            (TextLimit::Required, text) if text.is_none_or(|text| text.trim().is_empty()) => {
                Some("is missing".to_owned())
            }
            _ => None,
        }
    }
}

/// A text in a sentence.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text, QUOTED))
}
