//! Keys, whole files and servers that could not be read.

use std::{collections::BTreeMap, path::Path};

use super::{at, hinted, names, told};
use crate::{LintReport, Machine, PathKind, lint};
use rehearse_document::Source;
use rehearse_protocol::Transport;

/// The findings of a server in a file of this path.
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
            r#"W-UNKNOWN-KEY "alwaysAllow" did you mean `trust`?"#,
        ),
        (".roo/mcp.json", r#"{"command": "x", "enabled": false}"#, r#"W-UNKNOWN-KEY "enabled" write "disabled": true"#),
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
fn servers_under_the_root_key_of_another_program_are_read_and_reported() {
    let servers = r#"{"s": {"command": "x", "args": "-y"}}"#;
    for (path, text, root) in [
        (".cursor/mcp.json", format!("{{\"servers\": {servers}}}"), r#"E-ROOT "servers""#),
        (".cursor/mcp.json", format!("{{\"mcp_servers\": {servers}}}"), r#"E-ROOT "mcp_servers""#),
        (".code_agent/config.json", format!("{{\"mcp\": {{\"mcpServers\": {servers}}}}}"), r#"E-ROOT "mcpServers""#),
    ] {
        let file = at(path, &text);
        assert_eq!(told(&file), [root, r#"E-VALUE-TYPE "-y""#], "{path}");
        assert_eq!(file.config.map(|config| config.servers.len()), Some(0), "{path}");
    }
    let hint = &hinted(&at(".cursor/mcp.json", &format!("{{\"servers\": {servers}}}")))[0];
    assert_eq!(hint, r#"E-ROOT "servers" put them under `mcpServers`"#);
    // What is only called like servers may be anything.
    assert_eq!(told(&at(".cursor/mcp.json", r#"{"server": {"port": {"a": 1}}}"#)), [r#"E-ROOT "server""#]);
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
fn what_is_longer_than_a_key_is_no_slip_of_it() {
    let agent = r#"{"promptHooks": [], "promts": "x", "mcpServers": {"s": {"command": "x"}}}"#;
    assert_eq!(
        hinted(&at(".amazonq/mcp.json", agent)),
        [r#"A-EXTRA-KEY "promptHooks" Amazon Q ignores it"#, r#"W-UNKNOWN-KEY "promts" did you mean `prompt`?"#]
    );
}

#[test]
fn cpe_has_tools_of_its_own_in_models() {
    let profile = "models: [{ ref: a, mcpServers: { own: { type: builtin }, s: { command: x } } }]\n";
    assert_eq!(told(&at("cpe.yaml", profile)), [""; 0]);
}

#[test]
fn a_program_that_rejects_unknown_keys_is_said_to_reject_them() {
    let opencode = |more: &str| {
        let server = format!(r#"{{"type": "local", "command": ["npx"], {more}}}"#);
        hinted(&at("opencode.json", &format!(r#"{{"mcp": {{"a": {server}}}}}"#)))
    };
    assert_eq!(opencode(r#""env": {}"#), [r#"E-UNKNOWN-KEY "env" did you mean `environment`?"#]);
    assert_eq!(opencode(r#""enviroment": {}"#), [r#"E-UNKNOWN-KEY "enviroment" did you mean `environment`?"#]);
    assert_eq!(opencode(r#""args": []"#), [r#"E-UNKNOWN-KEY "args" append the arguments to `command`"#]);
    assert_eq!(opencode(r#""cwd": "x""#), [""; 0]);
    assert_eq!(opencode(r#""_comment": "mine""#), [r#"E-UNKNOWN-KEY "_comment" remove it"#]);
    let profile = "models: [{ ref: a, mcpServers: { s: { command: x, environment: {}, cwd: /, disabled: true } } }]\n";
    assert_eq!(
        hinted(&at("cpe.yaml", profile)),
        [
            "E-UNKNOWN-KEY environment did you mean `env`?",
            "E-UNKNOWN-KEY cwd remove it",
            "E-UNKNOWN-KEY disabled remove it"
        ]
    );
    // Older versions, which have their servers at the root, pass over what they do not know.
    let old = "mcpServers: { s: { type: stdio, command: x, cwd: / } }\n";
    assert_eq!(told(&at("cpe.yaml", old)), ["A-EXTRA-KEY cwd"]);
    let librechat = "version: 1.2.8\nmcpServres: { b: { command: npx, args: [] } }\nendpointz: {}\nregistration: {}\nmcpServers: {}\n";
    assert_eq!(
        hinted(&at("librechat.yaml", librechat)),
        [
            "E-UNKNOWN-KEY mcpServres put the servers under `mcpServers`",
            "E-UNKNOWN-KEY endpointz did you mean `endpoints`?"
        ]
    );
    let agent = r#"{"name": "a", "promt": "p", "foo": 1, "mcpServers": {"s": {"command": "x"}}}"#;
    let rejected = [r#"E-UNKNOWN-KEY "promt" did you mean `prompt`?"#, r#"E-UNKNOWN-KEY "foo" remove it"#];
    assert_eq!(hinted(&at(".amazonq/cli-agents/a.json", agent)), rejected);
    assert_eq!(told(&at(".amazonq/mcp.json", agent)), [r#"W-UNKNOWN-KEY "promt""#, r#"A-EXTRA-KEY "foo""#]);
}

#[test]
fn the_servers_of_each_project_are_checked_and_are_nobody_elses() {
    let text = r#"{"numStartups": 1, "projects": {
        "/x": {"mcpServers": {"a": {"comand": "npx"}}},
        "/y": {"mcpServers": {"b": {"type": "http", "url": "x"}}, "history": []},
        "/n": {"mcpServers": null},
        "/z": {"allowedTools": []}}}"#;
    let file = at("h/.claude.json", text);
    assert_eq!(told(&file), [r#"E-MISSING "comand""#, r#"E-URL "x""#]);
    assert_eq!(names(&file), [""; 0]);
    let projects = file.config.map(|config| config.projects).unwrap_or_default();
    assert_eq!(projects.iter().map(|it| it.servers.len()).collect::<Vec<_>>(), [0, 1]);
    let both = text.replacen('{', r#"{"mcpServers": {"ok": {"command": "sh"}}, "#, 1);
    let both = at("h/.claude.json", &both);
    assert_eq!((names(&both), told(&both).len()), (vec!["ok".to_owned()], 2));
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
    let file = at(".continue/config.yaml", text);
    assert_eq!(told(&file), [""; 0]);
    let transports = |file: &LintReport| {
        let servers = file.config.iter().flat_map(|config| &config.servers);
        servers.map(|it| it.transport.value).collect::<Vec<_>>()
    };
    assert_eq!(transports(&file), [Transport::Stdio, Transport::Http, Transport::Http]);
    let cpe = at(
        "cpe.yaml",
        "mcpServers:\n  a:\n    type: $TY\n    command: x\n    timeout: ${T}\n  b: { type: $TY, url: $U }\n",
    );
    assert_eq!((told(&cpe), transports(&cpe)), (vec![], vec![Transport::Stdio, Transport::Http]));
    let quoted =
        "name: x\nversion: '1'\nmcpServers: [{ name: a, url: http://a, connectionTimeout: '${{ inputs.T }}' }]\n";
    assert_eq!(told(&at(".continue/config.yaml", quoted)), ["E-VALUE-TYPE '${{ inputs.T }}'"]);
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
    for good in [r#"["-yq", "x@1"]"#, r#"["--registry", "https://r", "-y", "x@1"]"#, r#"["-y", "x@1", "-m a b"]"#] {
        assert_eq!(args(good), [""; 0], "{good}");
    }
    let plugin = r#"{"mcpServers": {"s": {"command": "x", "env": {"K": "${user_config.KEY}"}}}}"#;
    let machine = Machine {
        variables: BTreeMap::new(),
        directory: "/".into(),
        look: |_| PathKind::Program,
        read: |_| Err(std::io::ErrorKind::NotFound.into()),
    };
    let path = ".claude-plugin/plugin.json";
    let file = lint(&Source::new(path, plugin), Some(Path::new(path)), None, Some(&machine));
    assert!(told(&file).iter().all(|it| !it.starts_with("W-VARIABLE")), "{:?}", told(&file));
}

#[test]
fn of_two_urls_the_first_in_the_table_counts() {
    let text = r#"{"mcpServers": {"b": {"url": "https://x", "httpUrl": "https://y"}}}"#;
    let file = at(".gemini/settings.json", text);
    assert_eq!(told(&file), [r#"W-IGNORED "url""#]);
    let url = file.config.and_then(|config| config.servers[0].url.clone()).map(|url| url.value);
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
        let text = format!("version: 1.2.8\nmcpServers:\n  s: {{ command: x, args: [], env: {{ PIN: {pin} }} }}\n");
        told(&at("librechat.yaml", &text))
    };
    assert_eq!((pin("'0123'"), pin("0x")), (vec![], vec![]));
}

#[test]
fn opencode_rejects_what_is_called_almost_like_something_it_knows() {
    let near = r#"{"mcp": {"a": {"type": "remote", "url": "https://h/mcp", "oauth": {"clientID": "x", "scope": "a b"}},
        "b": {"type": "remote", "url": "https://h/mcp", "oauth": false}},
        "mcpServers": {"c": {"command": "x"}}, "theme": "dark", "$schema": "https://opencode.ai/config.json"}"#;
    let rejected = [
        r#"E-UNKNOWN-KEY "clientID" did you mean `clientId`?"#,
        r#"E-UNKNOWN-KEY "mcpServers" put the servers under `mcp`"#,
    ];
    assert_eq!(hinted(&at("h/opencode.json", near)), rejected);
    let all = r#"{"mcp": {"a": {"type": "remote", "url": "https://h/mcp", "oauth": {"clientId": "x",
        "clientSecret": "{env:SECRET}", "scope": "a", "callbackPort": 1234, "redirectUri": "http://127.0.0.1/x"}}}}"#;
    assert_eq!(told(&at("h/opencode.json", all)), [""; 0]);
}

#[test]
fn a_file_of_continue_may_be_one_server() {
    let of = |text: &str| at(".continue/mcpServers/docs.json", text);
    let one = of(r#"{"command": "npx", "args": "-y x", "env": {"A": "b"}}"#);
    assert_eq!((told(&one), names(&one)), (vec![r#"E-VALUE-TYPE "-y x""#.to_owned()], vec!["docs".to_owned()]));
    let transport = one.config.map(|config| config.servers[0].transport.value);
    assert_eq!(transport, Some(Transport::Stdio));
    assert_eq!(told(&of(r#"{"url": "docs.example.com"}"#)), [r#"E-URL "docs.example.com""#]);
    assert_eq!(told(&of(r#"{"description": "x"}"#)), ["A-NO-SERVERS "]);
    assert_eq!(told(&of(r#"{"mcpServers": {}, "command": "x"}"#)), [""; 0]);
}

#[test]
fn a_text_of_cpe_may_be_any_scalar_of_yaml_and_nothing_is_passed_over() {
    let text = "mcpServers:\n  s:\n    type: stdio\n    command: x\n    args: [8080, true, 0x1F]\n    timeout: 1_0\n    env:\n      PORT: 8080\n      EMPTY:\n  t: {type: stdio, command: x, env: , args: , timeout: 010}\n";
    let file = at("cpe.yaml", text);
    assert_eq!(told(&file), [""; 0]);
    let servers = &file.config.as_ref().expect("a config").servers;
    let args: Vec<_> = servers[0].args.iter().map(|arg| arg.value.as_str()).collect();
    assert_eq!(args, ["8080", "true", "0x1F"]);
    let env: Vec<_> = servers[0].env.iter().map(|pair| (&*pair.name.value, &*pair.value.value)).collect();
    assert_eq!(env, [("PORT", "8080"), ("EMPTY", "")]);
    let timeout = |index: usize| servers[index].timeouts.call.as_ref().map(|it| it.value.as_secs());
    assert_eq!((timeout(0), timeout(1)), (Some(10), Some(8)));
    assert_eq!(told(&at("cpe.yaml", "mcpServers:\n")), ["A-NO-SERVERS "]);
    let json = r#"{"mcpServers": {"s": {"type": "stdio", "command": "x", "args": [1]}}}"#;
    assert_eq!(told(&at("cpe.json", json)).len(), 1);
}

#[test]
fn whatever_is_wrong_with_the_transport_the_rest_is_checked() {
    for (path, server, expected) in [
        (
            ".mcp.json",
            r#"{"type": "htttp", "url": "htps://a.example", "headers": [], "timeout": "5"}"#,
            vec![
                r#"E-TRANSPORT "htttp""#,
                r#"E-URL-SCHEME "htps://a.example""#,
                "E-VALUE-TYPE []",
                r#"E-VALUE-TYPE "5""#,
            ],
        ),
        (
            ".mcp.json",
            r#"{"url": "https://a.example", "headers": {"Authorization": "Bearer k7Gd92hQpL4x"}}"#,
            vec![r#"E-TRANSPORT "url""#, "W-SECRET k7Gd92hQpL4x"],
        ),
        (".mcp.json", r#"{"args": "x"}"#, vec![r#"E-MISSING "s""#, r#"E-VALUE-TYPE "x""#]),
        (
            ".roo/mcp.json",
            r#"{"command": "x", "url": "https://a.example", "disabled": "no"}"#,
            vec![r#"E-FORBIDDEN "url""#, r#"E-VALUE-TYPE "no""#],
        ),
    ] {
        let file = at(path, &format!(r#"{{"mcpServers": {{"s": {server}}}}}"#));
        assert_eq!(told(&file), expected);
        assert_eq!(names(&file), [""; 0], "{server}");
    }
}

#[test]
fn what_is_described_elsewhere_is_not_missing() {
    let zed = |server: &str| told(&at(".zed/settings.json", &format!(r#"{{"context_servers": {{"s": {server}}}}}"#)));
    assert_eq!(zed(r#"{"settings": {}}"#), [""; 0]);
    assert_eq!(zed(r#"{"source": "extension", "enabled": false, "settings": {"a": 1}}"#), [""; 0]);
    assert_eq!(zed(r#"{"args": ["x"]}"#), [r#"E-MISSING "s""#]);
    assert_eq!(zed(r#"{"env": {"A": "b"}}"#), [r#"E-MISSING "s""#]);
}
