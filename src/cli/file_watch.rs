//! Watched files: their contents, and whether an edit is complete.

use std::{
    io::{self, Read},
    path::Path,
};

use rehearse_system::special_file::open_at_once;

/// Reads a regular file. Opening a pipe does not wait for a writer.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_at_once(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// Detects new and complete states of files, such as a content.
#[derive(Debug)]
pub(super) struct EditDetector<T> {
    accepted: T,
    /// New, but perhaps not completely written.
    pending: Option<T>,
}

impl<T: PartialEq> EditDetector<T> {
    pub(super) fn new(state: T) -> EditDetector<T> {
        EditDetector { accepted: state, pending: None }
    }

    pub(super) fn accepted(&self) -> &T {
        &self.accepted
    }

    /// Accepts a state that differs from the accepted one and equals that of the last poll. Returns the one before.
    pub(super) fn accept(&mut self, state: T) -> Option<T> {
        if state == self.accepted {
            self.pending = None;
            return None;
        }
        if self.pending.as_ref() != Some(&state) {
            self.pending = Some(state);
            return None;
        }
        self.pending = None;
        Some(std::mem::replace(&mut self.accepted, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_accepted_once_and_only_when_it_no_longer_changes() {
        let mut edits = EditDetector::new("one");
        let mut take = |contents: &[&'static str]| contents.iter().map(|it| edits.accept(it)).collect::<Vec<_>>();
        assert_eq!(take(&["one", "one"]), [None, None]);
        assert_eq!(take(&["", "tw", "two", "two", "two"]), [None, None, None, Some("one"), None]);
        assert_eq!(take(&["t", "two", "t", "t", "two"]), [None, None, None, Some("two"), None]);
    }
}
