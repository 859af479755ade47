//! Names of environment variables.

use super::Subject;
use crate::config::{
    finding::{Finding, codes},
    server::ServerConfig,
};

/// POSIX.1-2024, 8.1: a name has no `=` in it; what else a shell takes has no blanks either.
pub(super) fn check(_: &Subject<'_>, server: &ServerConfig, findings: &mut Vec<Finding>) {
    for pair in &server.env {
        let name = pair.name.value.trim();
        let (message, hint) = match name {
            "" => ("a variable needs a name", "name the variable, or remove it"),
            _ if name.contains('=') => ("no variable has a `=` in its name", "the name is what stands before the `=`"),
            _ if name.contains(|c: char| c.is_ascii_whitespace()) => {
                ("no shell takes a variable with a blank in its name", "write _ instead of the blank")
            }
            _ if name.contains(['"', '\'', '[', ']', '{', '}']) => {
                ("no shell takes a variable with a quote or bracket in its name", "remove it from the name")
            }
            _ => continue,
        };
        findings.push(codes::ENV_NAME.at(pair.name.span, message).hint(hint));
    }
}
