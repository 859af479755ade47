use super::{at, dialect, hinted, told};

/// What is said of a server in a file of this path.
fn of(path: &str, server: &str) -> Vec<String> {
    hinted(&at(path, &format!("{{\"mcpServers\": {{\"s\": {server}}}}}")))
}

#[test]
fn a_key_that_is_meant_for_another_is_told_once_with_what_mends_it() {
    for (path, server, expected) in [
        (".mcp.json", r#"{"typ": "http", "url": "https://a.example"}"#, r#"E-TRANSPORT "typ" did you mean `type`?"#),
        (".mcp.json", r#"{"Type": "http", "url": "https://a.example"}"#, r#"E-TRANSPORT "Type" did you mean `type`?"#),
        (
            "cline_mcp_settings.json",
            r#"{"command": "x", "always_allow": ["y"]}"#,
            r#"W-UNKNOWN-KEY "always_allow" did you mean `autoApprove`?"#,
        ),
        (
            ".gemini/settings.json",
            r#"{"command": "x", "working_dir": "/y"}"#,
            r#"W-UNKNOWN-KEY "working_dir" did you mean `cwd`?"#,
        ),
        (
            ".gemini/settings.json",
            r#"{"command": "x", "alwaysAllow": ["y"]}"#,
            r#"W-UNKNOWN-KEY "alwaysAllow" write "trust": true if nobody is to be asked about any tool"#,
        ),
        (".roo/mcp.json", r#"{"command": "x", "enabled": false}"#, r#"W-UNKNOWN-KEY "enabled" write "disabled": true"#),
        (
            ".cursor/mcp.json",
            r#"{"url": "https://a.example", "Authorization": "Bearer ${env:T}"}"#,
            r#"W-UNKNOWN-KEY "Authorization" put it under `headers`"#,
        ),
        (
            ".cursor/mcp.json",
            r#"{"command": "x", "API_KEY": "${env:T}"}"#,
            r#"W-UNKNOWN-KEY "API_KEY" put it under `env`"#,
        ),
        (
            ".cursor/mcp.json",
            r#"{"command": "x", "Authorization": "y"}"#,
            r#"A-EXTRA-KEY "Authorization" it is passed over"#,
        ),
        (
            ".mcp.json",
            r#"{"command": "x", "args": [["-y", "z"]]}"#,
            r#"E-VALUE-TYPE ["-y", "z"] take the brackets away from its texts"#,
        ),
        (
            ".mcp.json",
            r#"{"command": "x", "env": {"A": {"B": "c"}}}"#,
            r#"E-VALUE-TYPE {"B": "c"} write one text in its place"#,
        ),
    ] {
        assert_eq!(of(path, server), [expected], "{path} {server}");
    }
    let opencode = |server: &str| hinted(&at("opencode.json", &format!("{{\"mcp\": {{\"s\": {server}}}}}")));
    for (server, expected) in [
        (r#"{"typ": "local", "command": ["x"]}"#, r#"E-UNKNOWN-KEY "typ" did you mean `type`?"#),
        (
            r#"{"type": "local", "command": ["x"], "disabled": true}"#,
            r#"E-UNKNOWN-KEY "disabled" write "enabled": false"#,
        ),
    ] {
        assert_eq!(opencode(server), [expected], "{server}");
    }
}

#[test]
fn an_address_beside_its_object_or_under_a_slip_of_it_is_told_once() {
    let engine = crate::config::dialect::named("engine");
    for (server, expected) in [
        (r#"{"transport": "sse", "url": "https://a.example"}"#, r#"E-MISSING "url" put it under `connection`"#),
        (
            r#"{"transport": "sse", "conection": {"url": "https://a.example"}}"#,
            r#"E-MISSING "conection" did you mean `connection`?"#,
        ),
    ] {
        let text = format!("{{\"mcpServers\": {{\"s\": {server}}}}}");
        let examined = super::examine(&super::Source::new("t.json", text), None, engine, None);
        assert_eq!(hinted(&examined), [expected], "{server}");
    }
    let agent = r#"{"mcp": {"servers": {"s": {"type": "http"}}}}"#;
    let expected = r#"E-MISSING "s" add "httpUrl": "https://…""#;
    assert_eq!(hinted(&at(".code_agent/config.json", agent)), [expected]);
}

#[test]
fn what_a_server_lacks_is_told_where_it_was_meant() {
    let librechat = |rest: &str| {
        hinted(&at("librechat.yaml", &format!("version: 1.2.8\nmcpServers:\n  s: {{ command: x, {rest} }}\n")))
    };
    assert_eq!(librechat("arg: [y]"), ["E-MISSING arg did you mean `args`?"]);
    assert_eq!(librechat("arg: [y], args: [z]"), ["W-UNKNOWN-KEY arg did you mean `args`?"]);
    assert_eq!(librechat("timeout: 9000"), ["E-MISSING s write `args: []` if there are none"]);
    assert_eq!(librechat("args:"), ["E-VALUE-TYPE  write [] if there are none"]);
    let unseen = of(".cursor/mcp.json", "{\"comm\u{200b}and\": \"x\"}");
    assert_eq!(unseen, ["E-MISSING \"comm\u{200b}and\" type the key anew"]);
    for word in ["stdio", "http"] {
        let connection = r#"{"url": "https://a.example/sse"}"#;
        let text = format!(r#"{{"mcpServers": {{"s": {{"transport": "{word}", "connection": {connection}}}}}}}"#);
        let engine = crate::config::dialect::named("engine");
        let examined = super::examine(&super::Source::new("t.json", text), None, engine, None);
        assert_eq!(hinted(&examined).len(), 1);
        assert!(hinted(&examined)[0].contains("sse"), "{word}");
    }
    let inner = r#"{"transport": {"type": "stdio", "command": "x"}}"#;
    let expected = "E-MISSING \"transport\" move what is in it one level up, and remove `transport`";
    assert_eq!(of(".cursor/mcp.json", inner), [expected]);
    for (server, word) in [(r#"{"command": ["x"]}"#, "local"), (r#"{"url": "https://a.example/sse"}"#, "remote")] {
        let told = hinted(&at("opencode.json", &format!(r#"{{"mcp": {{"s": {server}}}}}"#)));
        assert_eq!(told, [format!(r#"E-TRANSPORT "s" add "type": "{word}""#)]);
    }
}

#[test]
fn what_stands_one_level_too_high_or_too_low_is_told_once() {
    let of = |rest: &str| {
        hinted(&at("claude_desktop_config.json", &format!(r#"{{"mcpServers": {{"a": {{"command": "x"}}, {rest}}}}}"#)))
    };
    let name = "put it below a name: \"name\": { … }";
    assert_eq!(of(r#""command": "y", "args": ["z"]"#), [format!("E-MISSING \"command\" {name}")]);
    assert_eq!(of(r#""env": {"DEBUG": "1"}"#), ["E-MISSING \"env\" move it into the server that it is for"]);
    assert_eq!(of(r#""env": {"command": "y"}"#), [""; 0]);
    let inner = r#""b": {"command": "y", "time": {"command": "z"}}"#;
    let expected = r#"W-UNKNOWN-KEY "time" this is a server of its own: move it one level up, beside the others"#;
    assert_eq!(of(inner), [expected]);
}

#[test]
fn of_a_server_at_a_url_that_nobody_dials_only_that_is_told() {
    let server = r#"{"type": "http", "url": "https://a.example/mcp", "headers": {"A": "b"}, "disabled": false}"#;
    let bridge = r#""command": "npx", "args": ["-y", "mcp-remote", "https://a.example/mcp"]"#;
    let headers = r#"each header becomes "--header", "NAME: value" behind it"#;
    let expected = format!("E-TRANSPORT \"url\" start one that dials: {bridge}; {headers}");
    assert_eq!(of("claude_desktop_config.json", server), [expected]);
    let written = r#"write `url`, and beside it "type": "http""#;
    assert_eq!(
        of(".mcp.json", r#"{"serverUrl": "https://a.example"}"#),
        [format!("E-MISSING \"serverUrl\" {written}")]
    );
    let typed = r#"{"type": "sse", "serverUrl": "https://a.example"}"#;
    assert_eq!(of(".mcp.json", typed), ["E-MISSING \"serverUrl\" did you mean `url`?"]);
}

#[test]
fn servers_in_the_place_of_another_program_are_told_with_that_place() {
    let text = r#"{"mcp": {"servers": {"s": {"command": "x", "args": "y"}}}}"#;
    let expected =
        [r#"E-ROOT "mcp" put what is under `mcp.servers` under `mcpServers`"#, r#"E-VALUE-TYPE "y" write ["y"]"#];
    assert_eq!(hinted(&at(".cursor/mcp.json", text)), expected);
}

#[test]
fn a_switch_that_the_program_does_not_have_is_a_warning_only_if_it_is_off() {
    for (server, expected) in [
        (
            r#"{"command": "x", "disabled": true}"#,
            r#"W-UNKNOWN-KEY "disabled" remove the server, which Cursor starts all the same"#,
        ),
        (r#"{"command": "x", "disabled": false}"#, r#"A-EXTRA-KEY "disabled" it is a key of Cline"#),
    ] {
        assert_eq!(of(".cursor/mcp.json", server), [expected]);
    }
    let nothing = r#"{"command": "x", "autoApprove": []}"#;
    assert_eq!(of(".gemini/settings.json", nothing), [r#"A-EXTRA-KEY "autoApprove" it is passed over"#]);
}

#[test]
fn a_colon_without_a_blank_behind_it_is_told_at_its_place() {
    let cpe = "mcpServers:\n  s: {type: stdio, command: x, env: {A:\"b\", C: d}}\n";
    let file = at("cpe.yaml", cpe);
    assert_eq!(hinted(&file), ["W-YAML-FORM : put a blank after the `:`"]);
    assert_eq!(file.findings[0].problem.span.start, cpe.find(":\"b").expect("the colon"));
    let librechat = "version: 1.2.8\nmcpServers:\n  s: {command: x, args: [], env: {A:b, C: d}}\n";
    assert_eq!(hinted(&at("librechat.yaml", librechat)), ["E-VALUE-TYPE : put a blank after the `:`"]);
    let server = "mcpServers:\n  s: {type:stdio, command:x, args: []}\n";
    let expected = ["E-TRANSPORT : put a blank after the `:`", "W-YAML-FORM : put a blank after the `:`"];
    assert_eq!(hinted(&at("cpe.yaml", server)), expected);
    let quoted = librechat.replace("A:b", "'A:b'");
    assert_eq!(told(&at("librechat.yaml", &quoted)), ["E-VALUE-TYPE "]);
}

#[test]
fn code_agent_has_a_key_of_its_own_for_the_url_of_each_transport() {
    let of = |server: &str| {
        hinted(&at(".code_agent/config.json", &format!(r#"{{"mcp": {{"servers": {{"s": {{{server}}}}}}}}}"#)))
    };
    let url = "https://a.example/mcp";
    for (word, key, other) in [("http", "url", "httpUrl"), ("sse", "httpUrl", "url"), ("streamable", "httpUrl", "url")]
    {
        let told = of(&format!(r#""type": "{word}", "{key}": "{url}""#));
        assert_eq!(told, [format!("E-FORBIDDEN \"{key}\" write it as `{other}`")], "{word}");
        let both = of(&format!(r#""type": "{word}", "{key}": "{url}", "{other}": "{url}""#));
        assert_eq!(both, [format!("E-FORBIDDEN \"{key}\" remove it")], "{word}");
        assert_eq!(of(&format!(r#""type": "{word}", "{other}": "{url}""#)), [""; 0], "{word}");
    }
    assert_eq!(of(&format!(r#""httpUrl": "{url}""#)), [""; 0]);
}

#[test]
fn servers_under_a_root_of_another_program_are_read_all_the_same() {
    let servers = r#"{"s": {"command": "x", "args": "-y"}}"#;
    for (path, text, root) in [
        (
            ".cursor/mcp.json",
            format!("{{\"servers\": {servers}}}"),
            r#"E-ROOT "servers" rename `servers` to `mcpServers`"#,
        ),
        (
            ".code_agent/config.json",
            format!("{{\"mcp\": {{\"mcpServers\": {servers}}}}}"),
            r#"E-ROOT "mcpServers" rename `mcpServers` to `servers`"#,
        ),
    ] {
        let examined = at(path, &text);
        assert_eq!(hinted(&examined), [root, r#"E-VALUE-TYPE "-y" write ["-y"]"#], "{path}");
        assert_eq!(examined.config.map(|config| config.servers.len()), Some(0), "{path}");
    }
    let list = r#"{"servers": [{"name": "s", "command": "x"}]}"#;
    assert_eq!(
        hinted(&at("cline_mcp_settings.json", list)),
        [
            r#"E-ROOT "servers" rename `servers` to `mcpServers`"#,
            r#"E-VALUE-TYPE [{"name": "s", "command": "x"}] write { "name": { … } }, with a name for each server"#
        ]
    );
    // What is only called like servers may be anything.
    assert_eq!(told(&at(".cursor/mcp.json", r#"{"server": {"port": {"a": 1}}}"#)), [r#"E-ROOT "server""#]);
}

#[test]
fn servers_of_a_plugin_are_known_by_what_their_addresses_may_be() {
    for (server, expected) in [
        (r#"{"type": "http", "URL": "https://a.example"}"#, r#"E-MISSING "URL" did you mean `url`?"#),
        (r#"{"cmd": "x", "args": []}"#, r#"E-MISSING "cmd" did you mean `command`?"#),
    ] {
        let found = hinted(&at(".mcp.json", &format!("{{\"github\": {server}}}")));
        assert_eq!(found[1..], [expected], "{server}");
    }
    assert_eq!(told(&at(".mcp.json", r#"{"scripts": {"run": "x"}}"#)), ["A-NO-SERVERS "]);
}

#[test]
fn a_server_of_a_list_is_told_where_its_name_is_or_should_be() {
    let of = |servers: &str| {
        let text = format!("name: a\nversion: 1.0.0\nmcpServers:\n{servers}");
        hinted(&at(".continue/config.yaml", &text))
    };
    assert_eq!(of("  - name: 7\n    command: x\n"), ["E-VALUE-TYPE 7 write it in quotes"]);
    assert_eq!(
        of("  - context7:\n      command: x\n"),
        ["E-MISSING context7 write `name: context7`, and its keys beside that instead of below it"]
    );
}

#[test]
fn no_text_becomes_a_list_or_an_object_behind_what_is_not_replaced() {
    let cpe =
        |server: &str| hinted(&at("cpe.yaml", &format!("mcpServers:\n  s: {{ type: stdio, command: x, {server} }}\n")));
    let object = r#"write { "NAME": "value" }"#;
    assert_eq!(cpe("args: -y $HOME/x"), [r#"E-VALUE-TYPE -y $HOME/x write ["-y", "$HOME/x"]"#]);
    assert_eq!(cpe("env: A=$X"), [format!("E-VALUE-TYPE A=$X {object}")]);
    assert_eq!((cpe("args: $ARGS"), cpe("env: $ENV"), cpe("timeout: 3$X")), (vec![], vec![], vec![]));
}

#[test]
fn librechat_rejects_a_file_without_its_version() {
    let servers = "mcpServers:\n  s: { command: x, args: [] }\n";
    for (version, expected) in [
        ("", vec!["E-MISSING  add `version: 1.2.1`"]),
        ("version: 1.2\n", vec!["E-VALUE-TYPE 1.2 write it in quotes"]),
        ("version: 1.2.8\n", vec![]),
    ] {
        assert_eq!(hinted(&at("librechat.yaml", &format!("{version}{servers}"))), expected, "{version}");
    }
    // Whose file it is may be a guess.
    assert_eq!(told(&at("x.yaml", servers)), [""; 0]);
}

#[test]
fn a_slip_of_what_holds_for_all_servers_is_told() {
    let text = r#"{"mcp": {"globalsettings": {"timeout": 5000}, "servers": {"s": {"type": "stdio", "command": "x"}}}}"#;
    let expected = r#"W-UNKNOWN-KEY "globalsettings" did you mean `globalSettings`?"#;
    assert_eq!(hinted(&at(".code_agent/config.json", text)), [expected]);
}

#[test]
fn what_is_longer_than_a_key_is_no_slip_of_it() {
    let agent = r#"{"promptHooks": [], "promts": "x", "mcpServers": {"s": {"command": "x"}}}"#;
    assert_eq!(
        hinted(&at(".amazonq/mcp.json", agent)),
        [r#"A-EXTRA-KEY "promptHooks" it is passed over"#, r#"W-UNKNOWN-KEY "promts" did you mean `prompt`?"#]
    );
}

#[test]
fn cpe_has_tools_of_its_own_in_models() {
    let profile = "models: [{ ref: a, mcpServers: { own: { type: builtin }, s: { command: x } } }]\n";
    assert_eq!(told(&at("cpe.yaml", profile)), [""; 0]);
}

#[test]
fn inputs_in_another_place_or_under_another_key_are_told_once() {
    let server = r#""a": {"command": "x", "env": {"K": "${input:k}"}}"#;
    let input = r#"{"id": "k", "type": "promptString", "description": "d"}"#;
    for (text, expected) in [
        (
            format!("{{\"servers\": {{{server}, \"inputs\": [{input}]}}}}"),
            r#"E-VALUE-TYPE "inputs" move it out of `servers`, beside it"#,
        ),
        (
            format!("{{\"servers\": {{{server}}}, \"input\": [{input}]}}"),
            r#"E-INPUT-UNKNOWN "input" did you mean `inputs`?"#,
        ),
        (
            format!("{{\"servers\": {{{server}}}, \"inputs\": [{}]}}", input.replace("\"id\"", "\"name\"")),
            r#"E-MISSING "name" did you mean `id`?"#,
        ),
        (
            format!("{{\"servers\": {{{}}}, \"inputs\": [{input}]}}", server.replace("input:k", "input: k")),
            r#"E-INPUT-UNKNOWN "${input: k}" did you mean `k`?"#,
        ),
    ] {
        assert_eq!(hinted(&at(".vscode/mcp.json", &text)), [expected], "{text}");
    }
}

#[test]
fn whose_file_it_is_is_told_by_all_that_is_in_it() {
    let stdio =
        |value: &str| format!("{{\"mcpServers\": {{\"s\": {{\"command\": \"x\", \"env\": {{\"A\": \"{value}\"}}}}}}}}");
    let hooks = r#"{"mcpServers": {"s": {"command": "x"}}, "hooks": {}}"#;
    let vscode = r#"{"mcp": {"servers": {"s": {"command": "x", "env": {"A": "${env:A}"}}}}}"#;
    let misnamed = r#"{"mcpServers": {"s": {"url": "https://a.example"}}}"#;
    let list = "[{ name: s, command: x }]";
    for (path, text, expected, codes) in [
        ("x.json", stdio("${env:A}"), "cursor", vec![]),
        ("x.json", stdio("${workspaceFolder}"), "cursor", vec![]),
        ("x.json", stdio("${A}"), "claude-code", vec![]),
        ("x.json", stdio("${A:-b}"), "claude-code", vec![]),
        ("x.json", vscode.to_owned(), "vscode", vec![]),
        ("x.json", hooks.to_owned(), "gemini", vec![]),
        ("claude_desktop_config.example.json", misnamed.to_owned(), "claude-desktop", vec!["E-TRANSPORT"]),
        ("claude-desktop-config.json", misnamed.to_owned(), "claude-desktop", vec!["E-TRANSPORT"]),
        ("claude_desktop_config_windows.json", misnamed.to_owned(), "claude-desktop", vec!["E-TRANSPORT"]),
        (".mcp.example.json", misnamed.to_owned(), "claude-code", vec!["E-TRANSPORT"]),
        ("cursor_mcp.json", misnamed.to_owned(), "cursor", vec![]),
        ("librechat.example.yaml", "version: 1.2.8\n".into(), "librechat", vec!["A-NO-SERVERS"]),
        ("config.yaml", "version: 1.2.8\nendpoints: {}\n".into(), "librechat", vec!["A-NO-SERVERS"]),
        ("a/config.yaml", "name: x\nversion: 1.0.0\nschema: v1\nmodels: []\n".into(), "continue", vec!["A-NO-SERVERS"]),
        ("a/x.yaml", "name: x\nversion: 1.0.0\n".into(), "", vec!["E-ROOT"]),
        (
            "x.yaml",
            "name: x\nversion: 1.0.0\nschema: v1\nmcpServers: { s: { command: x } }\n".into(),
            "continue",
            vec!["E-VALUE-TYPE"],
        ),
        ("x.yaml", format!("version: 1.2.8\nendpoints: {{}}\nmcpServers: {list}\n"), "librechat", vec!["E-VALUE-TYPE"]),
        ("x.yaml", format!("name: x\nversion: 1.0.0\nmodels: []\nmcpServers: {list}\n"), "continue", vec![]),
    ] {
        let examined = at(path, &text);
        let found: Vec<_> = examined.findings.iter().map(|it| it.code.name).collect();
        assert_eq!((dialect(&examined), found), (expected, codes), "{path} {text}");
    }
    let is_guess = |text: &str| at("x.json", text).detected.is_some_and(|it| it.is_guess());
    assert!(is_guess(hooks) && is_guess(&stdio("${A}")));
    let text = stdio("a").replace("}}}", "},}}");
    let codes = |path: &str| at(path, &text).findings.iter().map(|it| it.code.name).collect::<Vec<_>>();
    assert_eq!((codes("claude-desktop-config.json"), codes("x.json")), (vec!["E-JSON-COMMA"], vec!["W-JSON-FORM"]));
}
