//! The mock scripts that `rehearse` carries: those of `mock-servers/` that are useful as they are.

use rehearse_mock::script::BuiltinScript;

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(BuiltinScript { name: $name, text: include_str!(concat!("../mock-servers/", $name, ".yaml")) }),*]
    };
}

/// The scripts that are served by name, without a file.
pub const BUILTIN_SCRIPTS: &[BuiltinScript] = builtin![
    "basic",
    "everything",
    "filesystem",
    "stateful-cart",
    "elicitation",
    "tasks",
    "oauth-protected",
    "flaky",
    "slow-start",
    "paginated",
    "huge",
    "unicode",
    "legacy-2024-11-05",
    "modern-only",
    "stateless",
];

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_document::Source;
    use rehearse_mock::script::Script;

    #[test]
    fn the_builtin_scripts_parse() {
        for BuiltinScript { name, text } in BUILTIN_SCRIPTS {
            let script = Script::parse(&Source::new(*name, *text)).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(script.name, *name);
        }
    }
}
