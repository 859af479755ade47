//! The scripts that the binary carries.

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../mock-servers/", $name, ".yaml")))),*]
    };
}

/// The scripts that are served by name, without a file: those of `mock-servers/` that are of use as they are.
pub const EMBEDDED: &[(&str, &str)] = embedded![
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
