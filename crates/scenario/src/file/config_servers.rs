//! The servers of a client config, as one server of a scenario.

use std::{path::Path, sync::Arc};

use super::named_file;
use rehearse_client::Target;
use rehearse_client_configs::{
    Machine,
    codes::DIALECT_HINT,
    dialect::{Dialect, all, by_name},
    lint, resolve,
    server::ConfiguredServer,
};
use rehearse_document::{Diagnostics, Fields, Node, Problem, Problems, Source, nearest};
use rehearse_hub::{
    HubServer,
    configured::{default_timeouts, hub_server, server_params},
};
use rehearse_report::findings::Severity;

/// In the words of a scenario.
const HINT: &str =
    "name the program with `dialect`, beside `config`; `rehearse validate-config --list-dialects` lists them";

/// Reads the servers of the config that `node` names, or the one that the key `server` names. The key `dialect` names its
/// program.
///
/// # Errors
/// The config cannot be read, or one of these servers cannot be used.
pub(crate) fn read(fields: &Fields<'_>, node: &Node, folder: &Path) -> Result<Vec<HubServer>, Problems> {
    let dialect = fields.read("dialect", read_dialect)?;
    let all = named_file::read(node, folder, |source| members(source, dialect))?;
    if !all.iter().any(|member| member.is_enabled) {
        return Err(node.problem("all servers of this config are disabled").into());
    }
    let Some(wanted) = fields.get("server") else { return Ok(all) };
    let name = wanted.str()?;
    if let Some(member) = all.iter().find(|member| &*member.config.name == name) {
        return Ok(vec![member.clone()]);
    }
    let names: Vec<_> = all.iter().map(|member| &*member.config.name).collect();
    let near = nearest(name, &names).map(|near| format!("did you mean `{near}`?"));
    let problem = wanted.problem(format!("the config has no server `{name}`"));
    Err(problem.hint(near.unwrap_or_else(|| format!("use one of {}", names.join(", ")))).into())
}

fn read_dialect(node: &Node) -> Result<&'static Dialect, Problems> {
    let name = node.str()?;
    let found = by_name(name).ok_or_else(|| {
        let names: Vec<_> = all().map(|dialect| dialect.name).collect();
        let near = nearest(name, &names).map(|near| format!("did you mean `{near}`?"));
        let hint = near.unwrap_or_else(|| format!("use one of {}", names.join(", ")));
        node.problem(format!("unknown dialect `{name}`")).hint(hint)
    });
    Ok(found?)
}

/// The servers of a config, with their variables replaced. Their processes start in the folder of the config.
fn members(source: &Arc<Source>, dialect: Option<&'static Dialect>) -> Result<Vec<HubServer>, Diagnostics> {
    let path = Path::new(&source.name);
    let mut report = lint(source, Some(path), dialect, None);
    let config = report.config.take();
    // No message may quote a secret of the config.
    let findings = report.into_file(source.name.clone(), false).findings;
    let errors = findings.into_iter().filter(|finding| finding.code.severity() == Severity::Error);
    let errors = errors.map(|finding| match finding.problem.hint.as_deref() == Some(DIALECT_HINT) {
        true => finding.problem.hint(HINT),
        false => finding.problem,
    });
    let errors: Vec<_> = errors.collect();
    let read = match config {
        _ if !errors.is_empty() => Err(Problems(errors)),
        Some(config) if !config.servers.is_empty() => {
            // The folder of a plain file name is empty.
            let folder = Path::new(".").join(path).parent().map(Path::canonicalize);
            let folder = folder.and_then(Result::ok).unwrap_or_default();
            Problems::collect(config.servers.iter().map(|server| member(server, config.dialect, &folder)))
        }
        _ => Err(Problem::new(Default::default(), "no program finds a server in this file").into()),
    };
    read.map_err(|problems| problems.in_source(source))
}

fn member(server: &ConfiguredServer, dialect: &'static Dialect, folder: &Path) -> Result<HubServer, Problems> {
    let resolved = resolve(server, dialect, &Machine::here().variables_in(folder));
    let resolved = resolved.map_err(|unresolved| {
        Problems(unresolved.iter().map(|it| Problem::new(it.span, it.describe(dialect.program))).collect())
    })?;
    let params = server_params(&resolved, &dialect.policy, default_timeouts(dialect), folder);
    let mut params = params.map_err(|error| Problem::new(server.name.span, error.to_string()))?;
    if let Target::Stdio(command) = &mut params.target {
        command.cwd.get_or_insert_with(|| folder.to_owned());
    }
    // No caller ends a call of a step, so a timeout does.
    Ok(HubServer { waits_for_tools: false, ..hub_server(server, &dialect.policy, params) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_a_step_ends_even_if_the_program_waits_for_ever() {
        let config = "mcpServers:\n  s: { type: stdio, command: x, timeout: 5 }\n";
        let [server] = &members(&Source::new("cpe.yaml", config), None).expect("a config")[..] else {
            panic!("one server")
        };
        assert_eq!([server.config.timeouts.list, server.tool_timeout("t")].map(|it| it.as_secs()), [5, 60]);
    }
}
