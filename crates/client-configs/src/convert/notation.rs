//! The syntax that a new file is written in.

use std::path::Path;

use crate::dialect::{Dialect, Syntax};

/// The syntax of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    Json,
    Yaml,
    Toml,
}

/// The name of a file says that it is in a syntax that the program does not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program} does not read {syntax}")]
pub struct WrongSyntax {
    program: &'static str,
    syntax: &'static str,
}

impl Notation {
    /// What the ending of a path says; JSON unless it is YAML's or TOML's.
    pub(crate) fn of_path(path: &Path) -> Notation {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("yaml" | "yml") => Notation::Yaml,
            Some("toml") => Notation::Toml,
            _ => Notation::Json,
        }
    }

    /// What a program reads from a file of this name; without a name, what its usual file is written in.
    ///
    /// A program that reads YAML reads JSON as well, for it is YAML (YAML 1.2.2, 1.2).
    ///
    /// # Errors
    /// [`WrongSyntax`] if the program cannot read such a file.
    pub fn for_file(dialect: &Dialect, path: Option<&Path>) -> Result<Notation, WrongSyntax> {
        let ending = path.and_then(Path::extension).and_then(|ending| ending.to_str()).unwrap_or_default();
        let wrong = |syntax| Err(WrongSyntax { program: dialect.program, syntax });
        match (ending.to_ascii_lowercase().as_str(), dialect.syntax) {
            ("yaml" | "yml", Syntax::Json(_) | Syntax::Toml) => wrong("YAML"),
            ("json" | "jsonc" | "json5", Syntax::Toml) => wrong("JSON"),
            ("toml", Syntax::Json(_) | Syntax::Yaml | Syntax::JsonOrYaml) => wrong("TOML"),
            (_, Syntax::Toml) => Ok(Notation::Toml),
            ("yaml" | "yml", Syntax::Yaml | Syntax::JsonOrYaml) => Ok(Notation::Yaml),
            ("json" | "jsonc" | "json5", _) | (_, Syntax::Json(_)) => Ok(Notation::Json),
            (_, Syntax::Yaml) => Ok(Notation::Yaml),
            (_, Syntax::JsonOrYaml) => match dialect.files.first() {
                Some(place) if place.suffix().ends_with(".yaml") => Ok(Notation::Yaml),
                _ => Ok(Notation::Json),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::by_name;

    #[test]
    fn the_ending_decides_where_the_program_reads_both() {
        let of = |dialect, path: &str| Notation::for_file(by_name(dialect).expect(dialect), Some(Path::new(path)));
        let (json, yaml) = (Ok(Notation::Json), Ok(Notation::Yaml));
        for (dialect, usual) in
            [("cpe", &yaml), ("continue", &yaml), ("librechat", &yaml), ("code_agent", &json), ("cursor", &json)]
        {
            assert_eq!(Notation::for_file(by_name(dialect).expect(dialect), None), *usual, "{dialect}");
            assert_eq!(of(dialect, "yaml/json"), *usual, "{dialect}");
            assert_eq!(of(dialect, "a.yaml/x.JSON"), json, "{dialect}");
            match dialect {
                "cursor" => assert_eq!(of(dialect, "x.yml"), Err(WrongSyntax { program: "Cursor", syntax: "YAML" })),
                _ => assert_eq!(of(dialect, "a.json/x.yml"), yaml, "{dialect}"),
            }
        }
    }
}
