//! Names of environment variables.

use super::CheckedConfig;
use crate::{ConfiguredServer, codes};
use rehearse_report::findings::Finding;

/// POSIX.1-2024, 8.1: a name has no `=` in it; shells take no spaces, quotes or brackets either.
pub(super) fn check(_: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    for pair in &server.env {
        let name = pair.name.value.trim();
        let (message, hint) = match name {
            "" => ("an environment variable needs a name", "name the variable, or remove it"),
            _ if name.contains(['=', '"', '\'', '[', ']', '{', '}']) || name.contains(char::is_whitespace) => {
                ("not a valid environment variable name", "use letters, digits and _; the value belongs after the name")
            }
            _ => continue,
        };
        findings.push(codes::ENV_NAME.at(pair.name.span, message).hint(hint));
    }
}
