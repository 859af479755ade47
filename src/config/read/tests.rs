use std::{collections::BTreeMap, path::Path};

use crate::{
    config::{Examined, Source, dialect::named, examine, finding::Finding, resolve},
    transport::Transport,
};

/// What is in a file of this name.
fn at(path: &str, text: &str) -> Examined {
    examine(&Source::new(path, text), Some(Path::new(path)), None, None)
}

fn dialect(examined: &Examined) -> &'static str {
    examined.detected.as_ref().map_or("", |detected| detected.dialect.name)
}

/// `CODE what it points at`
fn told(examined: &Examined) -> Vec<String> {
    let text = &examined.source.text;
    let shown = |Finding { code, problem, .. }: &Finding| {
        format!("{} {}", code.name, &text[problem.span.start..problem.span.end])
    };
    examined.findings.iter().map(shown).collect()
}

/// `CODE what it points at` with the hint.
fn hints(examined: &Examined) -> Vec<String> {
    let hints = examined.findings.iter().map(|finding| finding.problem.hint.as_deref().unwrap_or_default());
    told(examined).into_iter().zip(hints).map(|(told, hint)| format!("{told} {hint}")).collect()
}

/// The names of the servers, those that are left alone in brackets.
fn names(examined: &Examined) -> Vec<String> {
    let servers = examined.config.iter().flat_map(|config| &config.servers);
    let name = |name: &str, is_enabled| if is_enabled { name.to_owned() } else { format!("({name})") };
    servers.map(|server| name(&server.name.value, server.is_enabled())).collect()
}

#[test]
fn a_file_of_claude_code_with_what_only_copilot_has_is_copilots() {
    for (server, expected) in [
        (r#"{"type": "local", "command": "x", "tools": ["*"]}"#, "copilot"),
        (r#"{"type": "local", "command": "x"}"#, "copilot"),
        (r#"{"command": "x", "tools": ["*"]}"#, "copilot"),
        (r#"{"type": "http", "url": "https://a.example", "oauthClientId": "a"}"#, "copilot"),
        (r#"{"command": "x"}"#, "claude-code"),
        // Wrong for one of them is no sign of the other.
        (r#"{"url": "https://a.example"}"#, "claude-code"),
        (r#"{"command": "x", "cwd": "/srv"}"#, "claude-code"),
        (r#"{"type": "pigeon", "command": "x"}"#, "claude-code"),
        (r#"{"command": "x", "tools": ["*"], "alwaysLoad": true, "timeout": 60000}"#, "claude-code"),
    ] {
        let examined = at("p/.mcp.json", &format!(r#"{{"mcpServers": {{"s": {server}}}}}"#));
        assert_eq!(dialect(&examined), expected, "{server}");
    }
    let file = at("p/.mcp.json", r#"{"mcpServers": {"s": {"type": "local", "command": "x", "tools": ["*"]}}}"#);
    assert_eq!((told(&file), file.detected.map(|it| it.why)), (vec![], Some("it has `tools`".into())));
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
        let examined = at(path, &text);
        assert_eq!((dialect(&examined), names(&examined)), ("vscode", vec!["s".to_owned()]), "{path}");
        assert_eq!(told(&examined), [r#"A-INPUT-UNUSED "other""#], "{path}");
    }
    assert_eq!(told(&at("a.code-workspace", r#"{"folders": []}"#)), ["A-NO-SERVERS "]);
    assert_eq!(told(&at(".vscode/settings.json", r#"{"run": {"a": {"command": "x"}}}"#)), ["A-NO-SERVERS "]);
    assert_eq!(told(&at(".vscode/settings.json", r#"{"mcpServers": {}}"#)), [r#"E-ROOT "mcpServers""#]);
    assert_eq!(told(&at(".vscode/mcp.json", r#"{"folders": []}"#)), ["E-ROOT "]);
    let wrong = at("a.code-workspace", r#"{"settings": {"mcp": {"servers": {"s": {"args": "x"}}, "input": []}}}"#);
    assert_eq!(told(&wrong), [r#"E-MISSING "s""#, r#"W-UNKNOWN-KEY "input""#]);
    let old = r#"{"servers": {"s": {"id": "s", "name": "s", "config": {"type": "http", "url": "https://a.example"}}}}"#;
    let old = at(".vscode/mcp.json", old);
    assert_eq!((told(&old), names(&old)), (vec![], vec!["s".to_owned()]));
}

#[test]
fn a_plugin_of_claude_code_may_have_its_servers_elsewhere() {
    let path = "p/.claude-plugin/plugin.json";
    let of = |servers: &str| at(path, &format!(r#"{{"name": "p", "version": "1.0.0", "mcpServers": {servers}}}"#));
    for servers in [r#""./.mcp.json""#, r#"["./a.json", "./b.json"]"#, "[]"] {
        let examined = of(servers);
        assert_eq!(
            (dialect(&examined), told(&examined), names(&examined).len()),
            ("claude-code", vec![], 0),
            "{servers}"
        );
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
        let examined = of(lists);
        assert_eq!((names(&examined), told(&examined)), (expected.map(str::to_owned).to_vec(), vec![]), "{lists}");
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
        let examined = examine(&source, None, named("engine"), None);
        (examined.config.map(|it| it.servers[0].transport.value), examined.findings.len())
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
        let examined = at(path, text);
        assert_eq!(
            (dialect(&examined), names(&examined)),
            ("cpe", vec!["search".to_owned(), "files".into()]),
            "{path}"
        );
        assert_eq!(told(&examined), ["E-UNKNOWN-KEY arg", "E-TRANSPORT url"], "{path}");
    }
    let none = at("cpe.yaml", "models: [{ ref: a }]\n");
    assert_eq!(told(&none), ["A-NO-SERVERS "]);
}

/// The texts of a server of this program with variables filled in: command, argument, variable.
fn resolved(program: &str, value: &str) -> [String; 3] {
    let text = serde_json::json!({ "mcpServers": { "s": {
        "type": "stdio", "command": value, "args": [value], "env": { "A": value } } } });
    let examined = examine(&Source::new("t.json", text.to_string()), None, named(program), None);
    let config = examined.config.expect("a config");
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
    for (value, hint) in [
        ("${X:-secret}", "CPE has no defaults: write ${X}, and set X before you start it"),
        ("pa$5word", "CPE has no way to write a `$`: put the whole value into a variable"),
    ] {
        let [finding] = &of(value)[..] else { panic!("{value}") };
        assert_eq!((finding.code.name, finding.problem.hint.as_deref()), ("W-VARIABLE-UNSET", Some(hint)));
        assert!(!finding.problem.message.contains("secret"), "{}", finding.problem.message);
    }
    assert_eq!(of("${X}"), []);
}

#[test]
fn what_only_librechat_understands_must_be_what_it_takes() {
    let of =
        |more: &str| told(&at("librechat.yaml", &format!("mcpServers:\n  s: {{ command: x, args: [], {more} }}\n")));
    for (more, expected) in [
        ("initTimeout: abc", "E-VALUE-TYPE abc"),
        ("initTimeout: -1", "E-VALUE-TYPE -1"),
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
        told(&at("librechat.yaml", &format!("mcpServers:\n  s: {server}\n")))
    };
    assert_eq!(of("a ${MONGO_URI}"), ["W-VARIABLE-FORM ${MONGO_URI}"]);
    assert_eq!(of("{{LIBRECHAT_USER_ID}}"), [""; 0]);
}

#[test]
fn a_program_that_rejects_unknown_keys_is_said_to_reject_them() {
    let opencode = |more: &str| {
        let server = format!(r#"{{"type": "local", "command": ["npx"], {more}}}"#);
        hints(&at("opencode.json", &format!(r#"{{"mcp": {{"a": {server}}}}}"#)))
    };
    assert_eq!(opencode(r#""env": {}"#), [r#"E-UNKNOWN-KEY "env" did you mean `environment`?"#]);
    assert_eq!(opencode(r#""enviroment": {}"#), [r#"E-UNKNOWN-KEY "enviroment" did you mean `environment`?"#]);
    assert_eq!(opencode(r#""args": []"#), [r#"E-UNKNOWN-KEY "args" append them to `command`"#]);
    assert_eq!(opencode(r#""_comment": "mine""#), [r#"E-UNKNOWN-KEY "_comment" remove it"#]);
    let profile = "models: [{ ref: a, mcpServers: { s: { command: x, environment: {}, cwd: /, disabled: true } } }]\n";
    assert_eq!(
        hints(&at("cpe.yaml", profile)),
        [
            "E-UNKNOWN-KEY environment did you mean `env`?",
            "E-UNKNOWN-KEY cwd remove it",
            "E-UNKNOWN-KEY disabled remove it"
        ]
    );
    // Older versions, which have their servers at the root, pass over what they do not know.
    let old = "mcpServers: { s: { type: stdio, command: x, cwd: / } }\n";
    assert_eq!(told(&at("cpe.yaml", old)), ["A-EXTRA-KEY cwd"]);
    let librechat = "mcpServres: { b: { command: npx, args: [] } }\nendpointz: {}\nregistration: {}\nmcpServers: {}\n";
    assert_eq!(
        hints(&at("librechat.yaml", librechat)),
        ["E-UNKNOWN-KEY mcpServres did you mean `mcpServers`?", "E-UNKNOWN-KEY endpointz did you mean `endpoints`?"]
    );
    let agent = r#"{"name": "a", "promt": "p", "foo": 1, "mcpServers": {"s": {"command": "x"}}}"#;
    let rejected = [r#"E-UNKNOWN-KEY "promt" did you mean `prompt`?"#, r#"E-UNKNOWN-KEY "foo" remove it"#];
    assert_eq!(hints(&at(".amazonq/cli-agents/a.json", agent)), rejected);
    assert_eq!(told(&at(".amazonq/mcp.json", agent)), [r#"W-UNKNOWN-KEY "promt""#, r#"A-EXTRA-KEY "foo""#]);
}

#[test]
fn the_servers_of_each_project_are_checked_and_are_nobody_elses() {
    let text = r#"{"numStartups": 1, "projects": {
        "/x": {"mcpServers": {"a": {"comand": "npx"}}},
        "/y": {"mcpServers": {"b": {"type": "http", "url": "x"}}, "history": []},
        "/z": {"allowedTools": []}}}"#;
    let examined = at("h/.claude.json", text);
    assert_eq!(told(&examined), [r#"E-MISSING "a""#, r#"W-UNKNOWN-KEY "comand""#, r#"E-URL "x""#]);
    assert_eq!(names(&examined), [""; 0]);
    let projects = examined.config.map(|config| config.projects).unwrap_or_default();
    assert_eq!(projects.iter().map(|it| it.servers.len()).collect::<Vec<_>>(), [0, 1]);
    let both = text.replacen('{', r#"{"mcpServers": {"ok": {"command": "sh"}}, "#, 1);
    let both = at("h/.claude.json", &both);
    assert_eq!((names(&both), told(&both).len()), (vec!["ok".to_owned()], 3));
    assert_eq!(told(&at("h/.claude.json", r#"{"projects": {"/x": {}}}"#)), ["A-NO-SERVERS "]);
}

#[test]
fn what_is_replaced_in_the_text_may_be_of_any_type() {
    let text = "\
name: x
version: 1.0.0
mcpServers:
  - name: a
    command: ${{ inputs.C }}
    args: ${{ inputs.A }}
    connectionTimeout: ${{ inputs.T }}
  - name: b
    url: ${{inputs.U}}
    type: ${{ inputs.TY }}
  - name: c
    url: '${{ inputs.U }}/x'
  - ${{ inputs.X }}
";
    let examined = at(".continue/config.yaml", text);
    assert_eq!(told(&examined), [""; 0]);
    let transports = |examined: &Examined| {
        let servers = examined.config.iter().flat_map(|config| &config.servers);
        servers.map(|it| it.transport.value).collect::<Vec<_>>()
    };
    assert_eq!(transports(&examined), [Transport::Stdio, Transport::Http, Transport::Http]);
    let cpe = at(
        "cpe.yaml",
        "mcpServers:\n  a:\n    type: $TY\n    command: x\n    timeout: ${T}\n  b: { type: $TY, url: $U }\n",
    );
    assert_eq!((told(&cpe), transports(&cpe)), (vec![], vec![Transport::Stdio, Transport::Http]));
    let opencode = |timeout: &str, path: &str| {
        let server = format!(r#"{{"type": "remote", "url": "{{file:./u}}", "timeout": {timeout}}}"#);
        told(&at(path, &format!(r#"{{"mcp": {{"a": {server}}}}}"#)))
    };
    assert_eq!(opencode("{env:T}", "opencode.json"), [""; 0]);
    // A text remains one.
    assert_eq!(opencode(r#""{env:T}""#, "opencode.json"), [r#"E-VALUE-TYPE "{env:T}""#]);
    let quoted =
        "name: x\nversion: '1'\nmcpServers: [{ name: a, url: http://a, connectionTimeout: '${{ inputs.T }}' }]\n";
    assert_eq!(told(&at(".continue/config.yaml", quoted)), ["E-VALUE-TYPE '${{ inputs.T }}'"]);
    assert_eq!(
        told(&at(".mcp.json", r#"{"mcpServers": {"a": {"command": {env:X}}}}"#)),
        ["E-JSON-FORM {env:X}", "W-VARIABLE-FORM {env:X}"]
    );
}

#[test]
fn a_command_that_something_else_stands_for_is_not_taken_apart() {
    let of = |command: &str| {
        let text = format!("name: x\nversion: 1.0.0\nmcpServers: [{{ name: a, command: '{command}' }}]\n");
        hints(&at(".continue/config.yaml", &text))
    };
    assert_eq!(of("${{ secrets.C }}"), [""; 0]);
    assert_eq!(of("${{ inputs.C }}"), [""; 0]);
    let split = "put only the first word into `command`, and the others into `args`";
    assert_eq!(of("npx ${{ inputs.C }}"), [format!("W-COMMAND-LINE 'npx ${{{{ inputs.C }}}}' {split}")]);
    let line = at("opencode.json", r#"{"mcp": {"d": {"type": "local", "command": ["npx -y x"]}}}"#);
    assert_eq!(hints(&line), [r#"W-COMMAND-LINE "npx -y x" write "command": ["npx", "-y", "x"]"#]);
}

#[test]
fn a_key_that_belongs_into_an_object_is_told_so() {
    let text = "name: x\nversion: 1.0.0\nmcpServers:\n  - name: a\n    url: https://a\n    headers: { A: b }\n  - name: a\n    command: x\n";
    assert_eq!(
        hints(&at(".continue/config.yaml", text)),
        ["W-UNKNOWN-KEY headers put it under `requestOptions`", "W-DUPLICATE-SERVER a keep one of them, or rename it"]
    );
    let bare = "mcpServers: [{ name: a, command: x }]\nversion: 1\n";
    let expected = ["E-MISSING  add `name: MCP servers`", "E-VALUE-TYPE 1 write it in quotes"];
    assert_eq!(hints(&at(".continue/config.yaml", bare)), expected);
}

#[test]
fn no_program_takes_a_list_of_servers_in_json() {
    let of = |path: &str| told(&at(path, r#"{"mcpServers": [{"name": "a", "command": "x"}]}"#));
    let server = r#"E-VALUE-TYPE {"name": "a", "command": "x"}"#;
    assert_eq!(of("mcp.json"), [server]);
    assert_eq!(of(".cursor/mcp.json"), [r#"E-VALUE-TYPE [{"name": "a", "command": "x"}]"#]);
}

#[test]
fn servers_beside_their_place_are_told() {
    let of = |path: &str, text: &str| hints(&at(path, text));
    let text = r#"{"mcpServers": {"a": {"command": "x"}}, "mcpServer": {"b": {"command": "y"}}, "servers": {"c": {"comand": "z"}}}"#;
    let put = "put them under `mcpServers`";
    let expected = [format!(r#"W-UNKNOWN-KEY "mcpServer" {put}"#), format!(r#"W-UNKNOWN-KEY "servers" {put}"#)];
    for path in [".mcp.json", "two.json", ".cursor/mcp.json"] {
        assert_eq!(of(path, text), expected, "{path}");
    }
    let other = r#"{"context_servers": {"a": {"command": "x"}}, "server": {"port": 1}, "agent_servers": {"a": {"command": "x"}}}"#;
    assert_eq!(of(".zed/settings.json", other), [""; 0]);
}

#[test]
fn what_claude_code_says_of_oauth_and_of_plugins_is_known() {
    let of = |server: &str| told(&at(".mcp.json", &format!(r#"{{"mcpServers": {{"s": {server}}}}}"#)));
    let oauth = |more: &str| of(&format!(r#"{{"type": "http", "url": "https://a", "oauth": {{{more}}}}}"#));
    assert_eq!(oauth(r#""authServerMetadataUrl": "http://x/m""#), [r#"E-URL-SCHEME "http://x/m""#]);
    assert_eq!(oauth(r#""authServerMetadataUrl": "https://x/m", "scopes": "a b""#), [""; 0]);
    assert_eq!(oauth(r#""scopes": ["a", "b"]"#), [r#"E-VALUE-TYPE ["a", "b"]"#]);
    let plain = |url: &str| {
        of(&format!(r#"{{"type": "http", "url": "{url}", "headers": {{"Authorization": "Bearer ${{T}}"}}}}"#))
    };
    let url = "http://intra.example.com:${P:-80}/mcp";
    assert_eq!(plain(url), [format!("W-PLAIN-HTTP \"{url}\"")]);
    for url in ["http://${HOST}/mcp", "http://a${HOST}:80/", "http://u:${P}@localhost/", "https://a.example:${P}/"] {
        assert_eq!(plain(url), [""; 0], "{url}");
    }
    assert_eq!(of(r#"{"command": "x", "args": ["${OPEN", "a${b", "${A}"]}"#), [r#"W-VARIABLE-FORM "${OPEN""#]);
    let args = |args: &str| of(&format!(r#"{{"command": "npx", "args": {args}}}"#));
    for good in [r#"["-yq", "x"]"#, r#"["--registry", "https://r", "-y", "x"]"#, r#"["-y", "x", "-m a b"]"#] {
        assert_eq!(args(good), [""; 0], "{good}");
    }
    let plugin = r#"{"mcpServers": {"s": {"command": "x", "env": {"K": "${user_config.KEY}"}}}}"#;
    let machine = crate::config::Machine {
        variables: BTreeMap::new(),
        directory: "/".into(),
        look: |_| crate::config::Found::Program,
        read: |_| Err(std::io::ErrorKind::NotFound.into()),
    };
    let path = ".claude-plugin/plugin.json";
    let examined = examine(&Source::new(path, plugin), Some(Path::new(path)), None, Some(&machine));
    assert!(told(&examined).iter().all(|it| !it.starts_with("W-VARIABLE")), "{:?}", told(&examined));
}

#[test]
fn of_two_urls_the_first_in_the_table_counts() {
    let text = r#"{"mcpServers": {"b": {"url": "https://x", "httpUrl": "https://y"}}}"#;
    let examined = at(".gemini/settings.json", text);
    assert_eq!(told(&examined), [r#"W-IGNORED "url""#]);
    let url = examined.config.and_then(|config| config.servers[0].url.clone()).map(|url| url.value);
    assert_eq!(url.as_deref(), Some("https://y"));
    let windsurf = at("ws.json", r#"{"mcpServers": {"a": {"serverUrl": "https://x", "url": "https://y"}}}"#);
    assert_eq!(told(&windsurf), [r#"W-IGNORED "url""#]);
    let guessed =
        at(".gemini/settings.json", r#"{"mcpServers": {"g": {"type": "streamable-http", "url": "https://x"}}}"#);
    assert_eq!((told(&guessed), names(&guessed).len()), (vec![r#"W-TRANSPORT "streamable-http""#.to_owned()], 1));
}

#[test]
fn what_a_program_takes_is_no_finding() {
    assert_eq!(told(&at(".kiro/settings/mcp.json", r#"{"mcpServers": {}, "powers": {"mcpServers": {}}}"#)), [""; 0]);
    assert_eq!(told(&at(".mcp.json", r#"{"mcpServers": {}, "big": 1e400}"#)), [""; 0]);
    let sandbox = r#"{"servers": {"a": {"command": "x", "sandbox": {}}}}"#;
    assert_eq!(told(&at(".vscode/mcp.json", sandbox)), [""; 0]);
    let registry = r#"{"mcpServers": {"r": {"type": "registry"}, "s": {"command": "x"}}}"#;
    assert_eq!(told(&at(".amazonq/mcp.json", registry)), [""; 0]);
    let pin = |pin: &str| {
        let text = format!("mcpServers:\n  s: {{ command: x, args: [], env: {{ PIN: {pin} }} }}\n");
        told(&at("librechat.yaml", &text))
    };
    assert_eq!(pin("0123"), ["E-VALUE-TYPE 0123"]);
    assert_eq!((pin("'0123'"), pin("0x")), (vec![], vec![]));
}

#[test]
fn a_text_that_is_meant_otherwise_is_known() {
    let of = |path: &str, text: &str| hints(&at(path, text));
    let fragment = r#""mcpServers": {"a": {"command": "x"}}"#;
    for path in [".mcp.json", "frag.json"] {
        assert_eq!(of(path, fragment), [r#"E-JSON-FORM "mcpServers" put { } around all of it"#], "{path}");
    }
    for (key, meant) in [("McpServers", "mcpServers"), ("mcp_servers", "mcpServers")] {
        let [finding] = &of("case.json", &format!(r#"{{"{key}": {{"a": {{"command": "x"}}}}}}"#))[..] else { panic!() };
        assert!(finding.starts_with(&format!("E-ROOT \"{key}\" rename it to `{meant}`; ")), "{finding}");
    }
    let toml = "model = 1\n[mcp_servers.a]\ncommand = \"x\"\n";
    for path in ["config.toml", "x"] {
        assert_eq!(of(path, toml), ["E-SYNTAX [mcp_servers.a] write it as JSON or YAML"], "{path}");
    }
    let visual_studio = of("p/.mcp.json", r#"{"servers": {"a": {"command": "x"}}}"#);
    assert_eq!(visual_studio, [r#"A-NO-SERVERS "servers" it looks for them under `mcpServers`"#]);
}
