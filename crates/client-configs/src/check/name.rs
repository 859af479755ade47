//! Names of servers.

use std::collections::HashMap;

use super::CheckedConfig;
use crate::{ConfiguredServer, codes, policy::Naming};
use rehearse_report::findings::Finding;

pub(super) fn check(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let (name, dialect) = (&server.name, checked.dialect());
    if name.value.trim().is_empty() {
        findings.push(codes::NAME.at(name.span, "a server needs a name").hint("name the server"));
        return;
    }
    if dialect.reserved_names.contains(&&*name.value) {
        let message = format!("{} has a server of its own named `{}` and skips this one", dialect.program, name.value);
        findings.push(codes::NAME_RESERVED.at(name.span, message).hint("rename it"));
    }
    if let Some(odd) = dialect.name_discouraged.filter(|odd| name.value.contains(*odd)) {
        let message = format!("{} advises against `{odd}` in the name of a server", dialect.program);
        let hint = format!("rename it, for example to `{}`", name.value.replace(odd, "-"));
        findings.push(codes::NAME_DISCOURAGED.at(name.span, message).hint(hint));
    }
    if let Some(bad) = dialect.forbidden_in_name(&name.value) {
        let message = format!("{} rejects the file for a name with {bad:?}", dialect.program);
        let plain = name.value.replace(|c| dialect.is_forbidden_in_names(c), "-");
        let hint = format!("rename it, for example to `{plain}`");
        findings.push(codes::NAME.at(name.span, message).hint(hint));
    }
}

/// Servers whose tools have the same names in the end.
pub(super) fn check_clashes(checked: &CheckedConfig<'_>, findings: &mut Vec<Finding>) {
    let naming = checked.dialect().policy.naming;
    // Some hosts do not say the server in the name of a tool.
    if naming.name("a", "TOOL") == naming.name("b", "TOOL") {
        return;
    }
    let projects = checked.config.projects.iter().map(|project| &project.servers);
    projects.chain([&checked.config.servers]).for_each(|servers| check_names(servers, naming, findings));
}

fn check_names(servers: &[ConfiguredServer], naming: Naming, findings: &mut Vec<Finding>) {
    let mut first: HashMap<String, &str> = HashMap::new();
    for server in servers {
        let shown = naming.name(&server.name.value, "TOOL");
        if let Some(other) = first.get(&shown) {
            // Duplicates are reported already.
            if *other == server.name.value {
                continue;
            }
            let message = format!("`{}` and `{other}` both name their tools {shown}", server.name.value);
            let finding = codes::NAME_CLASH.at(server.name.span, message).hint("rename one of them");
            findings.push(finding.about(&*server.name.value));
        } else {
            first.insert(shown, &server.name.value);
        }
    }
}
