//! What is told of whole files.

use std::{collections::BTreeMap, path::Path};

use super::{at, hinted, names, told};
use crate::{
    config::{Examined, Found, Machine, Source, examine},
    transport::Transport,
};

#[test]
fn a_program_that_rejects_unknown_keys_is_said_to_reject_them() {
    let opencode = |more: &str| {
        let server = format!(r#"{{"type": "local", "command": ["npx"], {more}}}"#);
        hinted(&at("opencode.json", &format!(r#"{{"mcp": {{"a": {server}}}}}"#)))
    };
    assert_eq!(opencode(r#""env": {}"#), [r#"E-UNKNOWN-KEY "env" did you mean `environment`?"#]);
    assert_eq!(opencode(r#""enviroment": {}"#), [r#"E-UNKNOWN-KEY "enviroment" did you mean `environment`?"#]);
    assert_eq!(opencode(r#""args": []"#), [r#"E-UNKNOWN-KEY "args" append them to `command`"#]);
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
        ["E-UNKNOWN-KEY mcpServres did you mean `mcpServers`?", "E-UNKNOWN-KEY endpointz did you mean `endpoints`?"]
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
    let examined = at("h/.claude.json", text);
    assert_eq!(told(&examined), [r#"E-MISSING "comand""#, r#"E-URL "x""#]);
    assert_eq!(names(&examined), [""; 0]);
    let projects = examined.config.map(|config| config.projects).unwrap_or_default();
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
        hinted(&at(".continue/config.yaml", &text))
    };
    assert_eq!(of("${{ secrets.C }}"), [""; 0]);
    assert_eq!(of("${{ inputs.C }}"), [""; 0]);
    let split = "put only the first word into `command`, and the others into `args`";
    assert_eq!(of("npx ${{ inputs.C }}"), [format!("W-COMMAND-LINE 'npx ${{{{ inputs.C }}}}' {split}")]);
    let line = at("opencode.json", r#"{"mcp": {"d": {"type": "local", "command": ["npx -y x"]}}}"#);
    assert_eq!(hinted(&line), [r#"W-COMMAND-LINE "npx -y x" write "command": ["npx", "-y", "x"]"#]);
}

#[test]
fn a_key_that_belongs_into_an_object_is_told_so() {
    let text = "name: x\nversion: 1.0.0\nmcpServers:\n  - name: a\n    url: https://a\n    headers: { A: b }\n  - name: a\n    command: x\n";
    assert_eq!(
        hinted(&at(".continue/config.yaml", text)),
        ["W-UNKNOWN-KEY headers put it under `requestOptions`", "W-DUPLICATE-SERVER a keep one of them, or rename it"]
    );
    let timeout = "name: x\nversion: 1.0.0\nmcpServers: [{ name: a, command: x, timeout: 5000 }]\n";
    assert_eq!(
        hinted(&at(".continue/config.yaml", timeout)),
        ["W-UNKNOWN-KEY timeout did you mean `connectionTimeout`?"]
    );
    let engine = r#"{"mcpServers": {"a": {"type": "stdio", "command": "x"}}}"#;
    let examined = examine(&Source::new("t.json", engine), None, crate::config::dialect::named("engine"), None);
    assert_eq!(hinted(&examined), [r#"W-UNKNOWN-KEY "type" did you mean `transport`?"#]);
    let bare = "mcpServers: [{ name: a, command: x }]\nversion: 1\n";
    let expected = ["E-MISSING  add `name: MCP servers`", "E-VALUE-TYPE 1 write it in quotes"];
    assert_eq!(hinted(&at(".continue/config.yaml", bare)), expected);
}

#[test]
fn no_program_takes_a_list_of_servers_in_json() {
    let of = |path: &str| told(&at(path, r#"{"mcpServers": [{"name": "a", "command": "x"}]}"#));
    for path in ["mcp.json", ".cursor/mcp.json"] {
        assert_eq!(of(path), [r#"E-VALUE-TYPE [{"name": "a", "command": "x"}]"#], "{path}");
    }
}

#[test]
fn servers_beside_their_place_are_told() {
    let of = |path: &str, text: &str| hinted(&at(path, text));
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
    let machine = Machine {
        variables: BTreeMap::new(),
        directory: "/".into(),
        look: |_| Found::Program,
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
        let text = format!("version: 1.2.8\nmcpServers:\n  s: {{ command: x, args: [], env: {{ PIN: {pin} }} }}\n");
        told(&at("librechat.yaml", &text))
    };
    assert_eq!(pin("0123"), ["E-VALUE-TYPE 0123"]);
    assert_eq!((pin("'0123'"), pin("0x")), (vec![], vec![]));
}

#[test]
fn a_text_that_is_meant_otherwise_is_known() {
    let of = |path: &str, text: &str| hinted(&at(path, text));
    let fragment = r#""mcpServers": {"a": {"command": "x"}}"#;
    for path in [".mcp.json", "frag.json"] {
        assert_eq!(of(path, fragment), [r#"E-JSON-FORM "mcpServers" put { } around all of it"#], "{path}");
    }
    for (key, meant) in [("McpServers", "mcpServers"), ("mcp_servers", "mcpServers")] {
        let [finding] = &of("case.json", &format!(r#"{{"{key}": {{"a": {{"command": "x"}}}}}}"#))[..] else { panic!() };
        assert!(finding.starts_with(&format!("E-ROOT \"{key}\" rename it to `{meant}`; ")), "{finding}");
    }
    let [other] = &of("manifest.json", r#"{"server": {"type": "node", "entry_point": "x"}}"#)[..] else { panic!() };
    assert!(other.starts_with("E-ROOT \"server\" programs look under "), "{other}");
    let toml = "model = 1\n[mcp_servers.a]\ncommand = \"x\"\n";
    for path in ["config.toml", "x"] {
        assert_eq!(of(path, toml), ["E-SYNTAX [mcp_servers.a] write it as JSON or YAML"], "{path}");
    }
    let visual_studio = of("p/.mcp.json", r#"{"servers": {"a": {"command": "x"}}}"#);
    assert_eq!(visual_studio, [r#"A-NO-SERVERS "servers" it looks for them under `mcpServers`"#]);
}

#[test]
fn opencode_rejects_what_is_called_almost_like_something_it_knows() {
    let near = r#"{"mcp": {"a": {"type": "remote", "url": "https://h/mcp", "oauth": {"clientID": "x", "scope": "a b"}},
        "b": {"type": "remote", "url": "https://h/mcp", "oauth": false}},
        "mcpServers": {"c": {"command": "x"}}, "theme": "dark", "$schema": "https://opencode.ai/config.json"}"#;
    let rejected =
        [r#"E-UNKNOWN-KEY "clientID" did you mean `clientId`?"#, r#"E-UNKNOWN-KEY "mcpServers" did you mean `mcp`?"#];
    assert_eq!(hinted(&at("h/opencode.json", near)), rejected);
    let all = r#"{"mcp": {"a": {"type": "remote", "url": "https://h/mcp", "oauth": {"clientId": "x",
        "clientSecret": "{env:SECRET}", "scope": "a", "callbackPort": 1234, "redirectUri": "http://127.0.0.1/x"}}}}"#;
    assert_eq!(told(&at("h/opencode.json", all)), [""; 0]);
}

#[test]
fn numbers_that_only_yaml_has_are_values_of_the_wrong_type() {
    let text = "mcpServers:\n  s: { type: stdio, command: x, timeout: .inf, args: [-.INF] }\ntemperature: .nan\n";
    let examined = at("cpe.yaml", text);
    let told = told(&examined);
    assert_eq!(told.iter().filter(|it| it.starts_with('E')).collect::<Vec<_>>(), ["E-VALUE-TYPE .inf"]);
    assert!(examined.is_readable);
}

#[test]
fn what_no_version_of_cpe_knows_is_told_with_what_was_meant() {
    let text = "\
foo: 1
models:
  - { ref: a, id: x, type: openai, bogus: 1, generationParms: {}, generationParams: { tempreature: 1, topP: 1 } }
defaults: { modle: a, model: a }
mcpServers: { s: { type: stdio, command: x } }
";
    let expected = [
        "A-EXTRA-KEY foo newer versions reject the file for it",
        "A-EXTRA-KEY bogus newer versions reject the file for it",
        "W-UNKNOWN-KEY generationParms did you mean `generationParams`?",
        "W-UNKNOWN-KEY tempreature did you mean `temperature`?",
        "W-UNKNOWN-KEY modle did you mean `model`?",
    ];
    assert_eq!(hinted(&at("cpe.yaml", text)), expected);
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
fn what_stands_beside_its_key_is_told_once_where_it_begins() {
    let below = |name: &str| format!("indent everything that belongs to `{name}` below it");
    for (file, text, expected) in [
        (
            "cpe.yaml",
            "mcpServers:\nfs:\n  type: stdio\n  command: x\n",
            format!("E-VALUE-TYPE fs {}", below("mcpServers")),
        ),
        (
            "librechat.yaml",
            "mcpServers:\nfs:\n  command: x\n  args: []\nversion: 1.2.1\n",
            format!("E-VALUE-TYPE fs {}", below("mcpServers")),
        ),
        (
            "librechat.yaml",
            "mcpServers:\n  s:\n    command: x\n    args: []\n    env:\n    TOKEN: a\n    B: c\n    timeout: 1000\nversion: 1.2.1\n",
            format!("E-VALUE-TYPE TOKEN {}", below("env")),
        ),
        (
            "librechat.yaml",
            "mcpServers:\n  s:\n    command: x\n    args: []\n    t:\n    command: y\n    args: []\nversion: 1.2.1\n",
            "E-VALUE-TYPE t indent it as far as `s`, and everything that belongs to it below it".to_owned(),
        ),
    ] {
        assert_eq!(hinted(&at(file, text)), [expected], "{text}");
    }
}

#[test]
fn a_line_of_variables_that_is_no_key_is_told_where_to_type() {
    let env = |lines: &str| {
        let text = format!("mcpServers:\n  s:\n    command: x\n    args: []\n    env:\n{lines}\nversion: 1.2.1\n");
        let examined = at("librechat.yaml", &text);
        let finding = examined.findings.first().expect("a finding");
        let (line, column) = examined.source.position(finding.problem.span.start);
        format!("{line}:{column} {}", finding.problem.hint.clone().unwrap_or_default())
    };
    assert_eq!(env("      KEY:\"a\""), "6:10 put a blank after the `:`");
    assert_eq!(env("      KEY = a"), "6:11 write a colon instead");
    assert_eq!(env("      KEY a"), "6:10 put a colon behind `KEY`");
    let hint = "put the whole value into quotes if it begins with `#`, and else give it a value";
    assert_eq!(env("      KEY: #a"), format!("6:12 {hint}"));
    assert_eq!(env("      KEY: # a"), "6:10 remove it, or give it a value");
    let args =
        at("librechat.yaml", "mcpServers:\n  s:\n    command: x\n    args:\n      -y\n      - b\nversion: 1.2.1\n");
    let hint = "begin each item with a dash and a blank, and then its own dash if it has one";
    assert_eq!(hinted(&args), [format!("E-VALUE-TYPE - {hint}")]);
}

#[test]
fn a_text_of_cpe_may_be_any_scalar_of_yaml_and_nothing_is_passed_over() {
    let text = "mcpServers:\n  s:\n    type: stdio\n    command: x\n    args: [8080, true, 0x1F]\n    timeout: 1_0\n    env:\n      PORT: 8080\n      EMPTY:\n  t: {type: stdio, command: x, env: , args: , timeout: 010}\n";
    let examined = at("cpe.yaml", text);
    assert_eq!(told(&examined), [""; 0]);
    let servers = &examined.config.as_ref().expect("a config").servers;
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
fn a_date_of_yaml_is_no_text_for_who_reads_it_as_a_date() {
    let env = |file: &str, value: &str| {
        let server = format!("s: {{type: stdio, command: x, args: [], env: {{A: {value}}}}}");
        let version = if file == "librechat.yaml" { "version: 1.2.1\n" } else { "" };
        hinted(&at(file, &format!("{version}mcpServers:\n  {server}\n")))
    };
    for date in ["2022-06-28", "2022-06-28T10:00:00Z", "2022-6-8 1:02:03.5"] {
        assert_eq!(env("librechat.yaml", date), [format!("E-VALUE-TYPE {date} write it in quotes")]);
        assert_eq!(env("cpe.yaml", date), [""; 0]);
        assert_eq!(env("librechat.yaml", &format!("'{date}'")), [""; 0]);
    }
    for text in ["2022-6-28", "2022-06-28-1", "2022-06", "2022-06-28T1", "20220-06-28"] {
        assert_eq!(env("librechat.yaml", text), [""; 0], "{text}");
    }
}
