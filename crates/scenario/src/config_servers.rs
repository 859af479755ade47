//! The servers of a client config, as one server of a scenario.

use std::{path::Path, sync::Arc};

use super::named_file;
use rehearse_client::Target;
use rehearse_client_configs::{
    Machine,
    codes::DIALECT_HINT,
    dialect::{ALL, Dialect, by_name},
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
pub(super) fn read(fields: &Fields<'_>, node: &Node, folder: &Path) -> Result<Vec<HubServer>, Problems> {
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
        let names: Vec<_> = ALL.iter().map(|dialect| dialect.name).collect();
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
    use crate::Scenario;

    #[test]
    fn a_call_of_a_step_ends_even_if_the_program_waits_for_ever() {
        let config = "mcpServers:\n  s: { type: stdio, command: x, timeout: 5 }\n";
        let [server] = &members(&Source::new("cpe.yaml", config), None).expect("a config")[..] else {
            panic!("one server")
        };
        assert_eq!([server.config.timeouts.list, server.tool_timeout("t")].map(|it| it.as_secs()), [5, 60]);
    }

    #[test]
    fn mistakes_in_configs_and_agents_are_found_when_the_file_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = r#"{"mcpServers": {"one": {"command": "x"}, "two": {"command": "y"}}}"#;
        let broken = "{\n\"mcpServers\": {\"one\": {\"comand\": \"x\"}}}";
        std::fs::create_dir(folder.path().join("broken")).expect("creates");
        let disabled = r#"{"mcpServers": {"one": {"command": "x", "disabled": "true"}}}"#;
        let off = r#"{"mcpServers": {"one": {"command": "x", "disabled": true}}}"#;
        let configs = [
            (".mcp.json", config),
            ("broken/.mcp.json", broken),
            ("other.json", "{}"),
            ("unclear.json", disabled),
            ("off.json", off),
        ];
        let models = [("model.yaml", "rules: [{ reply: x }]"), ("bad.yaml", "rules: [{ replay: x }]")];
        for (name, text) in configs.into_iter().chain(models) {
            std::fs::write(folder.path().join(name), text).expect("writes");
        }
        let step = "steps: [{ discover: {} }]";
        let takes = "a server of a config takes `discover`, `agent`, `parallel`, and `call`";
        for (server, steps, message) in [
            ("config: gone.json", step, "s.yaml:1:25: cannot read DIR/gone.json: "),
            ("config: broken/.mcp.json", step, "s.yaml:1:25: DIR/broken/.mcp.json:2:"),
            (
                "config: other.json",
                step,
                &format!(
                    "s.yaml:1:25: DIR/other.json:1:1: it is not clear which program this file is for: it has none of the \
                     known keys for servers ({HINT})"
                ),
            ),
            (
                "config: .mcp.json, server: tow",
                step,
                "s.yaml:1:44: the config has no server `tow` (did you mean `two`?)",
            ),
            (
                "config: unclear.json",
                step,
                &format!(
                    "s.yaml:1:25: DIR/unclear.json:1:41: it is not clear which program this file is for: Claude Code ignores \
                     `disabled`, with which others switch off servers or tools ({HINT})"
                ),
            ),
            (
                "config: unclear.json, dialect: cline",
                step,
                "s.yaml:1:25: DIR/unclear.json:1:53: `disabled` must be true or false",
            ),
            ("config: off.json, dialect: cline", step, "s.yaml:1:25: all servers of this config are disabled"),
            ("config: off.json, dialect: clin", step, "s.yaml:1:44: unknown dialect `clin` (did you mean `cline`?)"),
            ("mock: basic, dialect: cline", step, "s.yaml:1:30: `dialect` cannot be used with `mock`"),
            ("config: .mcp.json, timeouts: { call: 5s }", step, "s.yaml:1:36: `timeouts` cannot be used with `config`"),
            ("mock: basic, server: one", step, "s.yaml:1:30: `server` cannot be used with `mock`"),
            ("config: .mcp.json", "steps: [{ ping: {} }]", &format!("s.yaml:2:17: {takes}")),
            (
                "config: .mcp.json",
                "steps: [{ parallel: [{ call: { tool: a, logLevel: info } }] }]",
                &format!("s.yaml:2:30: {takes}"),
            ),
            ("mock: basic", "steps: [{ agent: { model: model.yaml } }]", "s.yaml:2:18: `agent` needs a `prompt`"),
            ("mock: basic", "steps: [{ agent: { model: bad.yaml, prompt: Hi } }]", "s.yaml:2:27: DIR/bad.yaml:1:11: "),
            (
                "mock: basic",
                "steps: [{ agent: { model: model.yaml, prompt: Hi, toolFormat: json } }]",
                "s.yaml:2:63: `toolFormat` must be native or xml",
            ),
            (
                "mock: basic",
                "steps: [{ agent: { model: model.yaml, prompt: '{{ captured.x }}' } }]",
                "s.yaml:2:47: no earlier step captures `x`",
            ),
        ] {
            let source = Source::new("s.yaml", format!("servers: {{ s: {{ {server} }} }}\n{steps}"));
            let parsed = Scenario::parse(&source, &folder.path().join("s.yaml"), crate::tests::BUILTINS);
            let error = parsed.map(|_| ()).expect_err(server).to_string();
            let error = error.replace(&folder.path().display().to_string(), "DIR").replace("DIR\\", "DIR/");
            assert!(error.starts_with(message), "{error}");
        }
    }
}
