//! Tokens: in how many parts a model reads a text.

/// How a family of models divides texts into tokens. Without the feature `tokens` there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// That of GPT-4o and later models of OpenAI.
    #[cfg(feature = "tokens")]
    O200k,
    /// That of GPT-4 and GPT-3.5.
    #[cfg(feature = "tokens")]
    Cl100k,
}

impl Encoding {
    /// Every encoding; the first one is the default.
    pub const ALL: &[Encoding] = &[
        #[cfg(feature = "tokens")]
        Encoding::O200k,
        #[cfg(feature = "tokens")]
        Encoding::Cl100k,
    ];

    /// The name in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "tokens")]
            Encoding::O200k => "o200k",
            #[cfg(feature = "tokens")]
            Encoding::Cl100k => "cl100k",
        }
    }

    /// The number of tokens of a text.
    pub fn count(self, text: &str) -> usize {
        match (self, text) {
            #[cfg(feature = "tokens")]
            (Encoding::O200k, text) => tiktoken::get_encoding("o200k_base").map_or(0, |it| it.count(text)),
            #[cfg(feature = "tokens")]
            (Encoding::Cl100k, text) => tiktoken::get_encoding("cl100k_base").map_or(0, |it| it.count(text)),
        }
    }
}

#[cfg(all(test, feature = "tokens"))]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_the_encoding() {
        let counts = |text| [Encoding::O200k, Encoding::Cl100k].map(|encoding| encoding.count(text));
        assert_eq!(counts(""), [0, 0]);
        assert_eq!(counts("hello world"), [2, 2]);
        // The newer one knows more of other languages.
        assert_eq!(counts("Предварительная репетиция"), [6, 11]);
        // Names of special tokens are text.
        assert_eq!(counts("<|endoftext|>"), [7, 7]);
    }
}
