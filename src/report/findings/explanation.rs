//! What the documentation says about a code.

use crate::config::finding::Code;

const PAGE: &str = include_str!("../../../docs/config-diagnostics.md");

/// The section of a code in `docs/config-diagnostics.md`, in Markdown and without its heading.
pub fn explanation(code: &Code) -> Option<&'static str> {
    let mut sections = PAGE.split("\n## ").skip(1);
    let (_, text) = sections.find_map(|section| {
        let (heading, text) = section.split_once('\n')?;
        Some((heading.strip_prefix(code.name)?.strip_prefix(": ")?, text))
    })?;
    Some(text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::finding::codes;

    #[test]
    fn every_code_is_explained() {
        for code in codes::ALL {
            let text = explanation(code).unwrap_or_default();
            assert!(text.contains("```") && !text.contains("## "), "{}: {text}", code.name);
        }
    }
}
