mod keys;

use std::{collections::BTreeMap, path::Path};

use crate::{LintReport, dialect::by_name, lint, resolve};
use rehearse_document::Source;
use rehearse_protocol::Transport;
use rehearse_report::findings::Finding;

/// What is in a file of this name.
fn at(path: &str, text: &str) -> LintReport {
    lint(&Source::new(path, text), Some(Path::new(path)), None, None)
}

fn dialect(file: &LintReport) -> &'static str {
    file.detected.as_ref().map_or("", |detected| detected.dialect.name)
}

/// `CODE what it points at`
fn told(file: &LintReport) -> Vec<String> {
    let text = &file.source.text;
    let shown = |Finding { code, problem, .. }: &Finding| {
        format!("{} {}", code.name, &text[problem.span.start..problem.span.end])
    };
    file.findings.iter().map(shown).collect()
}

/// `CODE what it points at hint`
fn hinted(file: &LintReport) -> Vec<String> {
    let hints = file.findings.iter().map(|it| it.problem.hint.clone().unwrap_or_default());
    told(file).into_iter().zip(hints).map(|(it, hint)| format!("{it} {hint}")).collect()
}

/// The names of the servers, those that are left alone in brackets.
fn names(file: &LintReport) -> Vec<String> {
    let servers = file.config.iter().flat_map(|config| &config.servers);
    let name = |name: &str, is_enabled| if is_enabled { name.to_owned() } else { format!("({name})") };
    servers.map(|server| name(&server.name.value, server.is_enabled())).collect()
}

#[test]
fn vs_code_has_servers_in_sections_of_its_other_files() {
    let config = r#"{"servers": {"s": {"command": "x", "args": ["${input:key}"]}}, "inputs": [{"id": "key", "type": "promptString", "description": "d"}, {"id": "other"}]}"#;
    for (path, text) in [
        (".vscode/mcp.json", config.to_owned()),
        (".vscode/settings.json", format!(r#"{{"editor.tabSize": 2, "mcp": {config}}}"#)),
        ("a.code-workspace", format!(r#"{{"folders": [], "settings": {{"mcp": {config}}}}}"#)),
        (".devcontainer/devcontainer.json", format!(r#"{{"customizations": {{"vscode": {{"mcp": {config}}}}}}}"#)),
    ] {
        let file = at(path, &text);
        assert_eq!((dialect(&file), names(&file)), ("vscode", vec!["s".to_owned()]), "{path}");
        assert_eq!(told(&file), [r#"A-INPUT-UNUSED "other""#], "{path}");
    }
    assert_eq!(told(&at("a.code-workspace", r#"{"folders": []}"#)), ["A-NO-SERVERS "]);
    assert_eq!(told(&at(".vscode/settings.json", r#"{"run": {"a": {"command": "x"}}}"#)), ["A-NO-SERVERS "]);
    assert_eq!(told(&at(".vscode/settings.json", r#"{"mcpServers": {}}"#)), [r#"E-ROOT "mcpServers""#]);
    assert_eq!(told(&at(".vscode/mcp.json", r#"{"folders": []}"#)), ["E-ROOT "]);
    let wrong = at("a.code-workspace", r#"{"settings": {"mcp": {"servers": {"s": {"args": "x"}}, "input": []}}}"#);
    assert_eq!(told(&wrong), [r#"E-MISSING "s""#, r#"E-VALUE-TYPE "x""#, r#"W-UNKNOWN-KEY "input""#]);
    let old = r#"{"servers": {"s": {"id": "s", "name": "s", "config": {"type": "http", "url": "https://a.example"}}}}"#;
    let old = at(".vscode/mcp.json", old);
    assert_eq!((told(&old), names(&old)), (vec![], vec!["s".to_owned()]));
}

#[test]
fn a_plugin_of_claude_code_may_have_its_servers_elsewhere() {
    let path = "p/.claude-plugin/plugin.json";
    let of = |servers: &str| at(path, &format!(r#"{{"name": "p", "version": "1.0.0", "mcpServers": {servers}}}"#));
    for servers in [r#""./.mcp.json""#, r#"["./a.json", "./b.json"]"#, "[]"] {
        let file = of(servers);
        assert_eq!((dialect(&file), told(&file), names(&file).len()), ("claude-code", vec![], 0), "{servers}");
    }
    let inline = of(r#"["./a.json", {"s": {"command": "${CLAUDE_PLUGIN_ROOT}/x"}}, {"t": {}}]"#);
    assert_eq!((told(&inline), names(&inline)), (vec![r#"E-MISSING "t""#.into()], vec!["s".to_owned()]));
    assert_eq!(told(&of(r#"{"s": {"command": "x", "arg": []}}"#)), [r#"W-UNKNOWN-KEY "arg""#]);
    assert_eq!(told(&of("[7]")), ["E-VALUE-TYPE 7"]);
    assert_eq!(told(&of("7")), ["E-VALUE-TYPE 7"]);
    assert_eq!(told(&at(path, r#"{"name": "p"}"#)), ["A-NO-SERVERS "]);
    assert_eq!(told(&at(".mcp.json", r#"{"mcpServers": "./a.json"}"#)), [r#"E-VALUE-TYPE "./a.json""#]);
}

#[test]
fn lists_of_names_say_which_servers_gemini_uses() {
    let of = |lists: &str| {
        let servers = r#"{"a": {"command": "x"}, "files": {"command": "y"}}"#;
        at(".gemini/settings.json", &format!(r#"{{"mcp": {lists}, "mcpServers": {servers}}}"#))
    };
    for (lists, expected) in [
        (r#"{"allowed": ["files"]}"#, ["(a)", "files"]),
        (r#"{"excluded": ["files"]}"#, ["a", "(files)"]),
        (r#"{"allowed": ["a", "files"], "excluded": ["a"]}"#, ["(a)", "files"]),
        (r#"{"allowed": []}"#, ["a", "files"]),
        (r#"{"serverCommand": "x"}"#, ["a", "files"]),
    ] {
        let file = of(lists);
        assert_eq!((names(&file), told(&file)), (expected.map(str::to_owned).to_vec(), vec![]), "{lists}");
    }
    let near = of(r#"{"excluded": ["flies", "elsewhere"]}"#);
    assert_eq!(told(&near), [r#"A-SERVER-UNKNOWN "flies""#, r#"A-SERVER-UNKNOWN "elsewhere""#]);
    assert_eq!(near.findings[0].problem.hint.as_deref(), Some("did you mean `files`?"));
    assert_eq!(told(&of(r#"{"allowed": "a"}"#)), [r#"E-VALUE-TYPE "a""#]);
    assert_eq!(told(&of(r#"{"allowed": ["a", 7]}"#)), ["E-VALUE-TYPE 7"]);
}

#[test]
fn a_connection_of_cline_in_an_object_of_its_own_must_say_its_transport() {
    let of = |server: &str| {
        told(&at("cline_mcp_settings.json", &format!(r#"{{"mcpServers": {{"s": {{"transport": {server}}}}}}}"#)))
    };
    assert_eq!(of(r#"{"type": "stdio", "command": "x"}"#), [""; 0]);
    assert_eq!(of(r#"{"command": "x"}"#), [r#"E-TRANSPORT "transport""#]);
    assert_eq!(of(r#"{"url": "https://a.example"}"#), [r#"E-TRANSPORT "transport""#]);
}

#[test]
fn a_web_socket_of_the_engine_over_http_is_streamable_http() {
    let of = |url: &str| {
        let server = format!(r#"{{"transport": "websocket", "connection": {{"url": "{url}"}}}}"#);
        let source = Source::new("t.json", format!(r#"{{"mcpServers": {{"s": {server}}}}}"#));
        let file = lint(&source, None, by_name("engine"), None);
        (file.config.map(|it| it.servers[0].transport.value), file.findings.len())
    };
    assert_eq!(of("https://a.example/mcp"), (Some(Transport::Http), 0));
    assert_eq!(of("HTTP://a.example/mcp"), (Some(Transport::Http), 0));
    assert_eq!(of("wss://a.example/mcp"), (Some(Transport::Ws), 0));
    assert_eq!(of("ftp://a.example/mcp"), (Some(Transport::Ws), 1));
}

#[test]
fn the_servers_of_each_model_of_cpe_are_read() {
    let text = "\
version: \"1.0\"
models:
  - ref: a
    mcpServers: &shared
      search: { type: http, url: https://a.example/mcp }
  - ref: b
    mcpServers: *shared
  - ref: c
    mcpServers:
      files: { command: x, arg: [] }
      web: { url: https://a.example/mcp }
";
    for path in ["cpe.yaml", "other.yaml"] {
        let file = at(path, text);
        assert_eq!((dialect(&file), names(&file)), ("cpe", vec!["search".to_owned(), "files".into()]), "{path}");
        assert_eq!(told(&file), ["E-UNKNOWN-KEY arg", "E-TRANSPORT url"], "{path}");
    }
    let none = at("cpe.yaml", "models: [{ ref: a }]\n");
    assert_eq!(told(&none), ["A-NO-SERVERS "]);
}

/// The texts of a server of this program with variables filled in: command, argument, variable.
fn resolved(program: &str, value: &str) -> [String; 3] {
    let text = serde_json::json!({ "mcpServers": { "s": {
        "type": "stdio", "command": value, "args": [value], "env": { "A": value } } } });
    let file = lint(&Source::new("t.json", text.to_string()), None, by_name(program), None);
    let config = file.config.expect("a config");
    let pairs = [("SET", "v"), ("EMPTY", ""), ("HOME", "/h"), ("JWT_SECRET", "s")];
    let variables: BTreeMap<_, _> =
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let server = resolve(&config.servers[0], config.dialect, &variables).expect("resolves");
    [server.command.expect("a command").value, server.args[0].value.clone(), server.env[0].value.value.clone()]
}

#[test]
fn the_command_of_amazon_q_is_replaced_as_a_shell_does_and_nothing_else() {
    for (value, command) in [
        ("~/x", "/h/x"),
        ("$SET", "v"),
        ("${SET}", "v"),
        ("${NO:-d}", "d"),
        ("$NO/${NO}", "$NO/${NO}"),
        ("${env:SET}", "${env:SET}"),
    ] {
        let env = if value == "${env:SET}" { "v" } else { value };
        assert_eq!(resolved("amazon-q", value), [command, value, env], "{value}");
    }
    let of = |server: &str| told(&at(".amazonq/mcp.json", &format!(r#"{{"mcpServers": {{"s": {server}}}}}"#)));
    assert_eq!(of(r#"{"command": "~/x"}"#), [""; 0]);
    assert_eq!(of(r#"{"command": "x", "args": ["~/x"]}"#), [r#"W-HOME "~/x""#]);
    assert_eq!(of(r#"{"command": "$HOME/x", "args": ["a $HOME"]}"#), ["W-VARIABLE-FORM $HOME"]);
}

#[test]
fn cpe_takes_whatever_stands_in_braces_for_a_name() {
    for (value, expected) in [
        ("a${NO:-d}b", "ab"),
        ("${SET:-d}", ""),
        ("pa$5word", "paword"),
        ("$SET/${SET}", "v/v"),
        ("$$SET", "SET"),
        ("${env:SET}", ""),
        ("a ${ b", "a  b"),
    ] {
        assert_eq!(resolved("cpe", value), [expected; 3], "{value}");
    }
    let of = |value: &str| {
        let text = format!("mcpServers:\n  s: {{ type: stdio, command: x, env: {{ A: '{value}' }} }}\n");
        at("cpe.yaml", &text).findings
    };
    for value in ["${X:-secret}", "pa$5word"] {
        let [finding] = &of(value)[..] else { panic!("{value}") };
        assert_eq!(finding.code.name, "W-VARIABLE-UNSET");
        assert!(!finding.problem.message.contains("secret"), "{}", finding.problem.message);
    }
    assert_eq!(of("${X}"), []);
}

#[test]
fn what_only_librechat_understands_must_be_what_it_takes() {
    let of = |more: &str| {
        told(&at("librechat.yaml", &format!("version: 1.2.8\nmcpServers:\n  s: {{ command: x, args: [], {more} }}\n")))
    };
    for (more, expected) in [
        ("initTimeout: abc", "E-VALUE-TYPE abc"),
        ("initTimeout: -1", "E-VALUE-TYPE -1"),
        ("timeout: 1500.5", "E-VALUE-TYPE 1500.5"),
        ("title: a_b", "E-VALUE-TYPE a_b"),
        ("title: ''", "E-VALUE-TYPE ''"),
        ("stderr: foo", "E-VALUE-TYPE foo"),
        ("startup: 'yes'", "E-VALUE-TYPE 'yes'"),
        ("serverInstructions: 7", "E-VALUE-TYPE 7"),
        ("customUserVars: []", "E-VALUE-TYPE []"),
        ("oauth_headers: { A: 7 }", "E-VALUE-TYPE 7"),
        ("stderr: -1", "E-VALUE-TYPE -1"),
    ] {
        assert_eq!(of(more), [expected], "{more}");
    }
    for more in [
        "initTimeout: 0, startup: false",
        "serverInstructions: true, chatMenu: true",
        "serverInstructions: Be brief., title: Files",
        "customUserVars: { KEY: { title: Key, description: Yours } }, stderr: ignore",
        "stderr: 2, oauth: { client_id: a }",
    ] {
        assert_eq!(of(more), [""; 0], "{more}");
    }
}

#[test]
fn agents_of_amazon_q_and_blocks_of_continue_are_read_with_what_is_beside_their_servers() {
    let agent = r#"{"name": "a", "prompt": "p", "tools": ["*"], "hooks": {}, "mcpServers": {"s": {"command": "x"}}}"#;
    let file = at(".amazonq/cli-agents/a.json", agent);
    assert_eq!((dialect(&file), told(&file), names(&file)), ("amazon-q", vec![], vec!["s".to_owned()]));
    assert_eq!(told(&at(".amazonq/cli-agents/a.json", r#"{"name": "a"}"#)), ["A-NO-SERVERS "]);
    assert_eq!(told(&at(".amazonq/mcp.json", r#"{"name": "a"}"#)), ["E-ROOT "]);
    let block =
        at(".continue/mcpServers/a.yaml", "name: a\nversion: 1.0.0\nmcpServers:\n  - name: s\n    command: x\n");
    assert_eq!((dialect(&block), told(&block), names(&block)), ("continue", vec![], vec!["s".to_owned()]));
    let json =
        at(".continue/mcpServers/a.json", r#"{"mcpServers": {"s": {"type": "http", "url": "https://a.example"}}}"#);
    assert_eq!((dialect(&json), told(&json), names(&json)), ("continue-json", vec![], vec!["s".to_owned()]));
}

#[test]
fn librechat_gives_no_server_its_own_secrets_and_leaves_templates() {
    for value in ["${JWT_SECRET}", "{{LIBRECHAT_USER_ID}}", "{{ KEY }} ${NO}"] {
        assert_eq!(resolved("librechat", value), [value; 3]);
    }
    let of = |value: &str| {
        let server = format!("{{ command: x, args: [], env: {{ A: '{value}' }} }}");
        told(&at("librechat.yaml", &format!("version: 1.2.8\nmcpServers:\n  s: {server}\n")))
    };
    assert_eq!(of("a ${MONGO_URI}"), ["W-VARIABLE-FORM ${MONGO_URI}"]);
    assert_eq!(of("{{LIBRECHAT_USER_ID}}"), [""; 0]);
}

#[test]
fn some_programs_take_a_file_with_nothing_in_it() {
    for (path, text, expected) in [
        (".vscode/mcp.json", "{}", "A-NO-SERVERS "),
        (".vscode/mcp.json", r#"{"inputs": []}"#, "A-NO-SERVERS "),
        (".vscode/mcp.json", "// nothing yet\n{}", "A-NO-SERVERS "),
        (".vscode/mcp.json", "// nothing yet\n", "A-NO-SERVERS "),
        (".vscode/mcp.json", r#"{"folders": []}"#, "E-ROOT "),
        ("cline_mcp_settings.json", "{}", "A-NO-SERVERS "),
        ("cline_mcp_settings.json", "\n", "A-NO-SERVERS "),
        ("cline_mcp_settings.json", r#"{"servers": {}}"#, r#"E-ROOT "servers""#),
        (".roo/mcp.json", "{}", "E-ROOT "),
        (".roo/mcp.json", "\n", "E-SYNTAX "),
    ] {
        assert_eq!(told(&at(path, text)), [expected], "{path} {text}");
    }
}

#[test]
fn a_timeout_that_the_program_allows_is_no_other_unit() {
    let of = |path: &str, server: &str| told(&at(path, &format!(r#"{{"mcpServers": {{"s": {server}}}}}"#)));
    for path in [".roo/mcp.json", "cline_mcp_settings.json"] {
        for timeout in ["1000", "1800", "3600"] {
            assert_eq!(of(path, &format!(r#"{{"command": "x", "timeout": {timeout}}}"#)), [""; 0], "{path} {timeout}");
        }
    }
    assert_eq!(of(".roo/mcp.json", r#"{"command": "x", "timeout": 3601}"#), ["E-TIMEOUT 3601"]);
    let long = at("cpe.yaml", "mcpServers:\n  s: { type: stdio, command: x, timeout: 1000 }\n");
    assert_eq!(told(&long), ["W-TIMEOUT-UNIT 1000"]);
}

#[test]
fn what_programs_know_and_write_themselves_is_no_fault() {
    for (path, text) in [
        (
            ".zed/settings.json",
            r#"{"context_servers": {"a": {"command": "x", "args": [], "timeout": 120, "remote": true}, "b": {"url": "https://a.example/", "timeout": 30, "oauth": {"client_id": "c"}}}}"#,
        ),
        (
            ".copilot/mcp-config.json",
            r#"{"mcpServers": {"a": {"type": "local", "command": "x", "tools": ["*"], "timeout": 600000}}}"#,
        ),
        (
            ".amazonq/mcp.json",
            r#"{"mcpServers": {"a": {"type": "stdio", "url": "", "headers": {}, "oauthScopes": ["openid"], "command": "x"}}}"#,
        ),
    ] {
        assert_eq!(told(&at(path, text)), [""; 0], "{path}");
    }
    let filled = r#"{"mcpServers": {"a": {"command": "x", "url": "https://a.example/", "headers": {"A": "b"}}}}"#;
    assert_eq!(told(&at(".amazonq/mcp.json", filled)), [r#"W-IGNORED "url""#, r#"W-IGNORED "headers""#]);
}

#[test]
fn claude_code_has_no_servers_in_its_settings() {
    let servers = r#""mcpServers": {"a": {"command": "x", "request_timeout_ms": 1000}}"#;
    for path in [".claude/settings.json", "/home/ada/.claude/settings.json", ".claude/settings.local.json"] {
        let file = at(path, &format!(r#"{{"permissions": {{}}, {servers}}}"#));
        assert_eq!(
            (dialect(&file), told(&file)),
            ("claude-code", vec![r#"W-UNKNOWN-KEY "mcpServers""#.into()]),
            "{path}"
        );
        assert_eq!(file.findings[0].problem.hint.as_deref(), Some("put them into `.mcp.json`"));
        let settings = r#"{"enabledMcpjsonServers": ["a"], "statusLine": {"type": "command", "command": "x"}}"#;
        assert_eq!(told(&at(path, settings)), ["A-NO-SERVERS "], "{path}");
    }
    assert_eq!(told(&at(".mcp.json", &format!("{{{servers}}}"))), [""; 0]);
}

#[test]
fn a_reference_to_what_the_program_knows_is_no_finding() {
    let of = |path: &str, place: &str, value: &str| {
        told(&at(path, &format!(r#"{{"{place}": {{"s": {{"command": "x", "args": ["a {value}"]}}}}}}"#)))
    };
    for value in ["${workspaceRoot}", "${env:HOME}", "${config:a.b}"] {
        assert_eq!(of(".vscode/mcp.json", "servers", value), [""; 0], "{value}");
    }
    assert_eq!(of(".mcp.json", "mcpServers", "${input:}"), [""; 0]);
}

#[test]
fn agents_of_kiro_and_old_settings_of_continue_are_no_errors() {
    let agent = r#"{"includeMcpJson": true, "keyboardShortcut": "ctrl+a", "welcomeMessage": "Hello",
        "mcpServers": {"a": {"type": "registry"}, "b": {"command": "x"}}}"#;
    let file = at(".kiro/agents/a.json", agent);
    assert_eq!((told(&file), names(&file)), (vec![], vec!["b".to_owned()]));
    let old = r#"{"models": [], "experimental": {"modelContextProtocolServers": [{"transport": {"command": "x"}}]}}"#;
    assert_eq!(told(&at(".continue/config.json", old)), ["A-NO-SERVERS "]);
}

#[test]
fn keys_that_people_add_are_no_misspelt_ones_and_misspelt_ones_are_told() {
    let of = |key: &str| {
        hinted(&at(".cursor/mcp.json", &format!(r#"{{"mcpServers": {{"s": {{"command": "x", "{key}": []}}}}}}"#)))
    };
    for key in ["tags", "author", "icon"] {
        assert_eq!(of(key), [format!("A-EXTRA-KEY \"{key}\" Cursor ignores it")]);
    }
    for (key, meant) in [
        ("agrs", "args"),
        ("evn", "env"),
        ("enviroment", "env"),
        ("environmentVariables", "env"),
        ("argumnets", "args"),
    ] {
        assert_eq!(of(key), [format!("W-UNKNOWN-KEY \"{key}\" did you mean `{meant}`?")]);
    }
}
