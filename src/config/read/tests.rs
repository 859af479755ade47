mod meant;
mod unclear;
mod whole;

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

/// `CODE what it points at hint`
fn hinted(examined: &Examined) -> Vec<String> {
    let hints = examined.findings.iter().map(|it| it.problem.hint.clone().unwrap_or_default());
    told(examined).into_iter().zip(hints).map(|(it, hint)| format!("{it} {hint}")).collect()
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
fn a_word_for_the_transport_under_the_name_of_the_object_of_cline_is_a_misspelt_type() {
    let of = |path: &str, server: &str| {
        let file = at(path, &format!(r#"{{"mcpServers": {{"s": {server}}}}}"#));
        (dialect(&file), hinted(&file))
    };
    let misspelt = "W-UNKNOWN-KEY \"transport\" did you mean `type`?";
    let extra = "A-EXTRA-KEY \"transport\" it is passed over";
    let written = "W-UNKNOWN-KEY \"transport\" write \"type\": \"http\"";
    let of_cline = "W-UNKNOWN-KEY \"transport\" write \"type\": \"streamableHttp\"";
    for (path, server, expected) in [
        ("mcp.json", r#"{"transport": "stdio", "command": "x", "args": []}"#, ("claude-code", vec![misspelt])),
        ("mcp.json", r#"{"transport": "sse", "url": "http://localhost/sse"}"#, ("copilot", vec![misspelt])),
        (".cursor/mcp.json", r#"{"transport": "streamable_http", "url": "http://a"}"#, ("cursor", vec![written])),
        (
            "mcp.json",
            r#"{"type": "stdio", "command": "x", "transport": "stdio", "disabled": false}"#,
            ("cline", vec![extra]),
        ),
        (
            "cline_mcp_settings.json",
            r#"{"command": "x", "type": "stdio", "transport": "stdio"}"#,
            ("cline", vec![extra]),
        ),
        ("cline_mcp_settings.json", r#"{"url": "http://localhost/sse", "transport": "sse"}"#, ("cline", vec![extra])),
        ("cline_mcp_settings.json", r#"{"url": "http://localhost", "transport": "http"}"#, ("cline", vec![of_cline])),
    ] {
        assert_eq!(of(path, server), (expected.0, expected.1.into_iter().map(str::to_owned).collect()), "{server}");
    }
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
fn a_server_that_is_not_among_the_others_is_told() {
    let server = r#"{"command": "npx", "args": ["-y", "x"]}"#;
    for (path, place, code) in [
        (".mcp.json", "mcpServers", "W-UNKNOWN-KEY"),
        (".cursor/mcp.json", "mcpServers", "W-UNKNOWN-KEY"),
        (".vscode/mcp.json", "servers", "W-UNKNOWN-KEY"),
        ("librechat.yaml", "mcpServers", "E-UNKNOWN-KEY"),
    ] {
        let text = format!(r#"{{"version": "1", "{place}": {{"a": {server}}}, "b": {server}}}"#);
        let told = hinted(&at(path, &text)).into_iter().filter(|it| !it.contains("\"version\"")).collect::<Vec<_>>();
        assert_eq!(told, [format!("{code} \"b\" put it inside `{place}`")], "{path}");
    }
    // A program has commands of its own.
    let status = format!(r#"{{"mcpServers": {{"a": {server}}}, "statusLine": {{"type": "command", "command": "x"}}}}"#);
    assert_eq!(hinted(&at(".claude.json", &status)), [""; 0]);
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
fn servers_within_another_object_are_pointed_at() {
    let file = at(
        "librechat.yaml",
        "version: 1.2.8\ninterface:\n  mcpServers:\n    a: { type: stdio, command: npx, args: [] }\n",
    );
    assert_eq!(told(&file), ["E-ROOT mcpServers"]);
    let hint = file.findings[0].problem.hint.as_deref();
    assert_eq!(hint, Some("put them under `mcpServers` at the root of the file"));
    // What the program has there itself is no server.
    let own = at("librechat.yaml", "interface:\n  mcpServers: { use: true, share: false }\n");
    assert_eq!(told(&own), ["A-NO-SERVERS "]);
}

#[test]
fn one_server_in_the_place_of_all_is_told_with_where_to_put_it() {
    for (path, text, hint) in [
        (
            ".mcp.json",
            r#"{"command": "x", "args": []}"#,
            r#"put it there with a name: { "mcpServers": { "name": { … } } }"#,
        ),
        (
            ".continue/mcpServers/b.yaml",
            "name: b\nversion: 1.0.0\ncommand: x\n",
            "put it below `mcpServers`, as an item that begins with `- name: …`",
        ),
    ] {
        let file = at(path, text);
        assert_eq!(
            (told(&file), file.findings[0].problem.hint.as_deref()),
            (vec!["E-ROOT ".into()], Some(hint)),
            "{path}"
        );
    }
}

#[test]
fn a_server_without_a_name_is_told_once() {
    let file = at(".mcp.json", r#"{"mcpServers": {"command": "x", "args": ["-y"], "env": {"A": "1"}}}"#);
    assert_eq!(told(&file), [r#"E-MISSING "command""#]);
    let named = at(".mcp.json", r#"{"mcpServers": {"command": {"command": "x"}, "b": {"url": 1}}}"#);
    assert!(!told(&named).contains(&r#"E-MISSING "command""#.to_owned()), "{:?}", named.findings);
}

#[test]
fn what_is_at_a_url_in_a_file_about_other_things_is_no_server() {
    let text = "version: 1.1.3\nstt:\n  openai:\n    url: http://h:8080/v1\n    model: whisper\n";
    assert_eq!(told(&at("librechat.yaml", text)), ["A-NO-SERVERS "]);
    let misplaced = "version: 1.1.3\nmcp_servers:\n  a:\n    url: http://h:8080/mcp\n";
    assert_eq!(told(&at("librechat.yaml", misplaced)), ["E-ROOT mcp_servers"]);
    let started = "version: 1.1.3\ntools:\n  a:\n    command: x\n    args: []\n";
    assert_eq!(told(&at("librechat.yaml", started)), ["E-ROOT tools"]);
}

#[test]
fn a_number_of_yaml_may_begin_with_a_zero_and_ends_before_a_comma() {
    let file = |timeout: &str| {
        let text = format!("version: 1.2.1\nmcpServers:\n  a:\n    command: x\n    args: []\n    timeout: {timeout}\n");
        let file = at("librechat.yaml", &text);
        let hints: Vec<_> = file.findings.iter().map(|it| it.problem.hint.clone().unwrap_or_default()).collect();
        (told(&file), hints)
    };
    assert_eq!(file("030000"), (vec![], vec![]));
    assert_eq!(file("5000,"), (vec!["E-VALUE-TYPE ,".into()], vec!["remove it".into()]));
    assert_eq!(file("'5000,'").1, ["write a number"]);
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
fn a_full_config_of_the_engine_is_told_by_its_connection_whatever_else_is_wrong() {
    let file = at(
        "mcp.json",
        r#"{"mcpServers": {
            "a": {"transport": "http", "connection": {"url": "https://a.example"}},
            "b": {"transport": "stdio", "connection": {"args": []}},
            "c": {"transport": "sse", "connection": {"url": "a.example"}, "auth": {"type": "bearr", "token": "${T}"}}
        }}"#,
    );
    assert_eq!(dialect(&file), "engine");
    assert_eq!(
        told(&file),
        [r#"E-TRANSPORT "http""#, r#"E-MISSING "b""#, r#"E-URL "a.example""#, r#"W-IGNORED "bearr""#]
    );
}

#[test]
fn a_reference_needs_a_name() {
    let of = |path: &str, place: &str, value: &str| {
        told(&at(path, &format!(r#"{{"{place}": {{"s": {{"command": "x", "args": ["a {value}"]}}}}}}"#)))
    };
    for value in ["${env:}", "${input:}", "${env:", "${input:"] {
        assert_eq!(of(".vscode/mcp.json", "servers", value), [format!("W-VARIABLE-FORM {value}")]);
    }
    assert_eq!(of(".cursor/mcp.json", "mcpServers", "${env:}"), ["W-VARIABLE-FORM ${env:}"]);
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
        assert_eq!(of(key), [format!("A-EXTRA-KEY \"{key}\" it is passed over")]);
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
