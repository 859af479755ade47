//! Which bytes a text has: what rules out most of what could be looked for in it, in one pass.

/// The set of the bytes of a text.
#[derive(Debug)]
pub(super) struct Alphabet([bool; 256]);

impl Alphabet {
    pub(super) fn of(text: &str) -> Alphabet {
        let mut bytes = [false; 256];
        text.bytes().for_each(|byte| bytes[usize::from(byte)] = true);
        Alphabet(bytes)
    }

    pub(super) fn has_any(&self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| self.0[usize::from(*byte)])
    }

    /// Whether another text can be a part of this one.
    pub(super) fn has_all(&self, text: &str) -> bool {
        text.bytes().all(|byte| self.0[usize::from(byte)])
    }
}
