//! The tag of a command: a variable with a random name in its environment, which all processes inherit that it starts.

use std::fmt;

use rand::RngExt;

const PREFIX: &str = "REHEARSE_JOB_";
const VALUE: &str = "1";

/// The name is unique, so that nested commands have the tags of both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessTag(String);

/// Whether this process, or one above it, was started by [`ProcessGroup::start`](super::ProcessGroup::start).
pub fn is_started_by_client() -> bool {
    std::env::vars_os().any(|(name, _)| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
}

impl ProcessTag {
    /// A new tag.
    pub(super) fn new() -> ProcessTag {
        ProcessTag(format!("{PREFIX}{:032x}", rand::rng().random::<u128>()))
    }

    /// Parses the output of `Display`.
    pub(super) fn parse(text: &str) -> Option<ProcessTag> {
        let number = text.strip_prefix(PREFIX)?;
        let is_whole = number.len() == 32 && number.bytes().all(|it| it.is_ascii_hexdigit());
        is_whole.then(|| ProcessTag(text.to_owned()))
    }

    /// The name and the value of the variable.
    pub(super) fn variable(&self) -> (&str, &str) {
        (&self.0, VALUE)
    }
}

impl fmt::Display for ProcessTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_mark_is_read() {
        let tag = ProcessTag::new();
        assert_ne!(tag, ProcessTag::new());
        assert_eq!(ProcessTag::parse(&tag.to_string()).as_ref(), Some(&tag));
        let text = tag.to_string();
        for wrong in ["", PREFIX, &text[1..], &text[..text.len() - 1], &format!("{text}0"), "PATH"] {
            assert_eq!(ProcessTag::parse(wrong), None, "{wrong}");
        }
    }
}
