//! The names of the dialects.

use rehearse_client_configs::dialect::{self, Dialect};
use rehearse_document::nearest;

/// The dialect with this name.
///
/// # Errors
/// The name is unknown; the error suggests the nearest.
pub(crate) fn dialect(name: &str) -> Result<&'static Dialect, String> {
    dialect::by_name(name).ok_or_else(|| {
        let names: Vec<_> = dialect::all().map(|dialect| dialect.name).collect();
        let near = nearest(&name.to_lowercase().replace(['_', ' '], "-"), &names);
        match near {
            Some(near) => format!("did you mean `{near}`? There are {}", names.join(", ")),
            None => format!("there are {}", names.join(", ")),
        }
    })
}

/// What stands for the dialects in a long help, so that they are read only if it is shown.
pub(crate) const DIALECTS: &str = "{dialects}";

/// The dialects with their programs, one per line.
pub(crate) fn dialects() -> String {
    let line = |dialect: &Dialect| format!("  {:16} {}", dialect.name, dialect.program);
    dialect::all().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_dialect_suggests_the_nearest_and_lists_all() {
        assert_eq!(dialect("vscode").map(|dialect| dialect.program), Ok("Visual Studio Code"));
        let error = dialect("Claude_Cod").expect_err("unknown");
        assert!(error.starts_with("did you mean `claude-code`? There are claude-code, "), "{error}");
        assert!(dialect("nothing like it").expect_err("unknown").starts_with("there are "));
    }
}
