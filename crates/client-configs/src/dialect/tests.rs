use std::path::Path;

use super::*;
use crate::{ConfiguredServer, lint, read::read};
use rehearse_document::{Node, Source, json};
use rehearse_report::findings::Finding;

fn root(text: &str) -> Node {
    json::parse(&Source::new("t.json", text)).unwrap_or_else(|problems| panic!("{text}: {problems:?}")).root
}

/// A file with one server, whose name is `s`.
fn file(dialect: &Dialect, server: &str) -> String {
    let beside = dialect.companions.iter().map(|it| format!("\"{}\":\"{}\",", it.key, it.value)).collect::<String>();
    let open: String = dialect.roots[0].iter().map(|key| format!("{{\"{key}\":")).collect();
    let open = open.replacen('{', &format!("{{{beside}"), 1);
    let servers = match dialect.collection {
        Collection::Map => format!("{{\"s\":{server}}}"),
        Collection::List { .. } => format!("[{{\"name\":\"s\",{}]", &server[1..]),
    };
    format!("{open}{servers}{}", "}".repeat(dialect.roots[0].len()))
}

fn read_text(dialect: &'static Dialect, text: &str) -> (Vec<ConfiguredServer>, Vec<Finding>) {
    let mut findings = Vec::new();
    let config = read(&root(text), dialect, &Source::new("t.json", text), &mut findings);
    (config.servers, findings)
}

fn read_as(dialect: &str, server: &str) -> (Vec<ConfiguredServer>, Vec<Finding>) {
    let dialect = by_name(dialect).expect(dialect);
    read_text(dialect, &file(dialect, server))
}

/// `CODE text of the span (hint)`
fn found(dialect: &str, server: &str) -> Vec<String> {
    let dialect = by_name(dialect).expect(dialect);
    let text = file(dialect, server);
    let shown = |finding: Finding| {
        let (span, hint) = (finding.problem.span, finding.problem.hint.unwrap_or_default());
        format!("{} {} ({hint})", finding.code.name, &text[span.start..span.end])
    };
    read_text(dialect, &text).1.into_iter().map(shown).collect()
}

fn key(dialect: &Dialect, field: Field) -> Option<&'static str> {
    dialect.keys.iter().find(|key| key.field == field).map(|key| key.name)
}

/// A server that is started, as the dialect writes it.
fn started(dialect: &Dialect) -> String {
    let mut server = serde_json::Map::new();
    if let (Some(key), Some((word, _))) =
        (key(dialect, Field::Transport), dialect.transports.iter().find(|it| it.1 == Transport::Stdio))
    {
        server.insert(key.into(), (*word).into());
    }
    match key(dialect, Field::CommandLine) {
        Some(key) => drop(server.insert(key.into(), serde_json::json!(["npx", "-y", "x"]))),
        None => {
            server.insert(key(dialect, Field::Command).expect("a command").into(), "npx".into());
            server.insert(key(dialect, Field::Args).expect("arguments").into(), serde_json::json!(["-y", "x"]));
        }
    }
    server.insert(key(dialect, Field::Env).expect("variables").into(), serde_json::json!({ "A": "b" }));
    serde_json::Value::Object(server).to_string()
}

#[test]
fn every_dialect_is_complete() {
    for dialect in ALL {
        assert_eq!(by_name(dialect.name).map(|it| it.name), Some(dialect.name), "each name is given once");
        let has = |wanted: fn(&Field) -> bool| dialect.keys.iter().any(|key| wanted(&key.field));
        assert!(has(|field| matches!(field, Field::Command | Field::CommandLine)), "{}", dialect.name);
        assert_eq!(
            dialect.timeout.is_some(),
            has(|field| matches!(field, Field::Timeout | Field::CallTimeout)),
            "{}",
            dialect.name
        );
        let dials = dialect.transports.iter().any(|(_, transport)| *transport != Transport::Stdio);
        assert_eq!(dials, has(|field| matches!(field, Field::Url(_))) || dialect.name == "engine", "{}", dialect.name);
    }
}

#[test]
fn the_same_server_is_read_from_every_dialect() {
    for dialect in ALL {
        let (servers, findings) = read_as(dialect.name, &started(dialect));
        assert_eq!(findings, [], "{}", dialect.name);
        let [server] = &servers[..] else { panic!("{}: {servers:?}", dialect.name) };
        assert_eq!((server.name.value.as_str(), server.transport.value), ("s", Transport::Stdio));
        assert_eq!(server.command.as_ref().map(|it| it.value.as_str()), Some("npx"));
        assert_eq!(server.args.iter().map(|it| it.value.as_str()).collect::<Vec<_>>(), ["-y", "x"]);
        assert_eq!((server.env[0].name.value.as_str(), server.env[0].value.value.as_str()), ("A", "b"));
    }
}

#[test]
fn notes_and_what_vs_code_takes_are_no_findings() {
    assert_eq!(found("claude-code", r#"{"command": "x", "_comment": "mine", "description": "d"}"#), [""; 0]);
    let (servers, findings) = read_as("vscode", r#"{"command": "x", "env": {"PORT": 80, "GONE": null}}"#);
    assert_eq!((findings, servers[0].env.len()), (vec![], 1));
    for dialect in ["zed", "amazon-q"] {
        assert_eq!(found(dialect, r#"{"command": "x", "env": null}"#), [""; 0], "{dialect}");
    }
    let nested = r#"{"transport": {"type": "streamableHttp", "url": "http://a"}, "timeout": 5, "disabled": true}"#;
    let (servers, findings) = read_as("cline", nested);
    assert_eq!(findings, []);
    let call = servers[0].timeouts.call.as_ref().map(|it| it.value.as_secs());
    assert_eq!((servers[0].transport.value, call), (Transport::Http, Some(5)));
    assert_eq!(servers[0].enabled.as_ref().map(|it| it.value), Some(false));
}

#[test]
fn a_value_for_all_servers_is_the_default_of_each() {
    let text = r#"{"mcp": {"globalSettings": {"timeout": 5000, "debug": true}, "servers": {
        "a": {"type": "stdio", "command": "x"}, "b": {"type": "stdio", "command": "x", "timeout": 100, "debug": false}}}}"#;
    let (servers, findings) = read_text(by_name("code_agent").expect("known"), text);
    assert_eq!(findings, []);
    let values = |server: &ConfiguredServer| {
        let call = server.timeouts.call.as_ref().map(|it| it.value.as_millis());
        (call, server.debug.as_ref().map(|it| it.value))
    };
    assert_eq!([values(&servers[0]), values(&servers[1])], [(Some(5000), Some(true)), (Some(100), Some(false))]);
}

#[test]
fn one_key_turns_all_servers_of_code_agent_off_where_it_stands() {
    let code_agent = by_name("code_agent").expect("known");
    let server = r#"{"s": {"type": "stdio", "command": "x"}}"#;
    for (text, off) in [
        (format!(r#"{{"mcp": {{"enabled": false, "servers": {server}}}}}"#), Some("false")),
        (format!(r#"{{"enabled": false, "servers": {server}}}"#), Some("false")),
        (format!(r#"{{"mcp": {{"enabled": true, "servers": {server}}}}}"#), None),
        (format!(r#"{{"mcp": {{"servers": {server}}}}}"#), None),
        (format!(r#"{{"enabled": false, "mcp": {{"servers": {server}}}}}"#), None),
    ] {
        let (servers, findings) = read_text(code_agent, &text);
        assert_eq!(findings, [], "{text}");
        let enabled = servers[0].enabled.as_ref();
        assert_eq!(enabled.map(|it| (it.value, &text[it.span.start..it.span.end])), off.map(|off| (false, off)));
    }
    let (servers, findings) = read_text(code_agent, &format!(r#"{{"enabled": "no", "servers": {server}}}"#));
    assert_eq!((servers.len(), findings[0].code.name), (1, "E-VALUE-TYPE"));
}

#[test]
fn a_program_is_known_by_the_path_then_by_the_content() {
    let detected = |path: &str, text: &str| {
        let found = lint(&Source::new("t", text), Some(Path::new(path)), None, None).detected;
        found.map(|found| (found.dialect.name, found.is_guess))
    };
    let servers = |server: &str| format!(r#"{{"mcpServers": {{"a": {server}}}}}"#);
    for (path, text, name) in [
        ("/home/ada/project/.mcp.json", servers("{}"), "claude-code"),
        (".vscode/mcp.json", servers("{}"), "vscode"),
        ("C:\\Users\\ada\\project\\.cursor\\mcp.json", servers("{}"), "cursor"),
        ("x/.roo/mcp.json", servers("{}"), "roo"),
        ("x/.codeium/windsurf/mcp_config.json", servers("{}"), "windsurf"),
        ("x/.gemini/config/mcp_config.json", servers("{}"), "antigravity"),
        ("x/.qwen/settings.json", servers("{}"), "qwen"),
        ("x/.codex/config.toml", String::new(), "codex"),
        ("x/cline_mcp_settings.json", servers("{}"), "cline"),
        ("x/claude_desktop_config.json", servers("{}"), "claude-desktop"),
        ("claude_desktop_config.example.json", servers("{}"), "claude-desktop"),
        ("cursor_mcp.json", servers("{}"), "cursor"),
        ("x/.mcp.json", r#"{"servers": {"a": {"url": "https://a.example"}}}"#.into(), "vscode"),
        ("x/.mcp.json", servers(r#"{"command": "x", "tools": ["*"]}"#), "copilot"),
        ("x.json", r#"{"servers": {}, "inputs": []}"#.into(), "vscode"),
        ("x.json", servers(r#"{"autoApprove": []}"#), "cline"),
        ("x.json", servers(r#"{"httpUrl": ""}"#), "gemini"),
        ("x.json", servers(r#"{"transport": "sse", "connection": {"url": "http://a"}}"#), "engine"),
        ("x.json", servers(r#"{"command": "x", "args": ["${user_config.key}"]}"#), "claude-code"),
        ("x.json", r#"{"providers": {}, "mcp": {"servers": {"a": {"command": "x"}}}}"#.into(), "mcpilot"),
        ("x.json", r#"{"version": "1.0", "models": [], "mcpServers": {}}"#.into(), "cpe"),
    ] {
        assert_eq!(detected(path, &text), Some((name, false)), "{path} {text}");
    }
    for (path, text, name) in [
        ("x.json", servers("{}"), "claude-code"),
        ("x.toml", "[mcp_servers.a]\ncommand = \"x\"\n".into(), "codex"),
        ("x.yaml", "mcpServers: [{name: a, command: x}]\n".into(), "continue"),
        ("x.json", r#"{"context_servers": {}}"#.into(), "zed"),
    ] {
        assert_eq!(detected(path, &text).map(|it| it.0), Some(name), "{path} {text}");
    }
    assert_eq!(detected("x.json", r#"{"a": 1}"#), None);
    let asked = lint(&Source::new("x.json", r#"{"a": 1}"#), None, None, None).findings;
    assert!(asked[0].problem.hint.as_ref().is_some_and(|hint| hint.contains("--dialect")), "{asked:?}");
}

#[test]
fn a_url_alone_means_what_the_program_makes_of_it() {
    let server = r#"{"url": "https://a.example/mcp"}"#;
    let transport = |dialect| read_as(dialect, server).0.first().map(|it| it.transport.value);
    for (dialect, expected) in [
        ("cursor", Some(Transport::Http)),
        ("vscode", Some(Transport::Http)),
        ("cline", Some(Transport::Sse)),
        ("roo", Some(Transport::Sse)),
        ("qwen", Some(Transport::Sse)),
        ("codex", Some(Transport::Http)),
        ("claude-code", None),
        ("claude-desktop", None),
    ] {
        assert_eq!(transport(dialect), expected, "{dialect}");
    }
    assert_eq!(found("claude-code", server), [r#"E-TRANSPORT "url" (add "type": "http")"#]);
    let [desktop] = &found("claude-desktop", server)[..] else { panic!() };
    assert!(desktop.starts_with("E-TRANSPORT \"url\"") && desktop.contains("mcp-remote"), "{desktop}");
}

#[test]
fn a_finding_has_its_span_and_a_hint() {
    for (dialect, server, expected) in [
        ("cursor", r#"{"command": "x", "environment": {}}"#, r#"W-UNKNOWN-KEY "environment" (did you mean `env`?)"#),
        ("cursor", r#"{"command": "x", "arg": []}"#, r#"W-UNKNOWN-KEY "arg" (did you mean `args`?)"#),
        ("cursor", r#"{"command": "x", "env": {"PORT": 80}}"#, "E-VALUE-TYPE 80 (write it in quotes)"),
        ("cline", r#"{"command": "x", "disabled": "true"}"#, r#"E-VALUE-TYPE "true" (write it without quotes)"#),
        ("roo", r#"{"command": "x", "url": "http://a"}"#, r#"E-FORBIDDEN "url" (keep one of them)"#),
        ("roo", r#"{"command": "x", "timeout": 30000}"#, "E-TIMEOUT 30000 "),
        ("cline", r#"{"command": "x", "timeout": 30000}"#, "W-TIMEOUT-UNIT 30000 "),
        ("claude-code", r#"{"command": "x", "timeout": 30}"#, "W-TIMEOUT-UNIT 30 "),
        ("cline", r#"{"type": "http", "url": "http://a"}"#, r#"E-TRANSPORT "http" (write `streamableHttp`)"#),
        ("roo", r#"{"type": "pigeon", "url": "http://a"}"#, r#"E-TRANSPORT "pigeon" "#),
        ("claude-code", r#"{"type": "http", "url": "http://a", "env": {}}"#, r#"W-IGNORED "env" "#),
        ("roo", r#"{"type": "sse", "url": "http://a", "cwd": "/"}"#, r#"E-FORBIDDEN "cwd" (remove it)"#),
        ("cpe", r#"{"command": "x"}"#, r#"E-TRANSPORT "s" (add "type": "stdio")"#),
        ("codex", r#"{"command": "x", "url": "http://a"}"#, r#"E-FORBIDDEN "url" "#),
        ("claude-code", r#"{"type": "http"}"#, r#"E-MISSING "s" "#),
        ("claude-code", "7", "E-VALUE-TYPE 7 "),
        ("claude-code", "{}", r#"E-MISSING "s" "#),
    ] {
        let found = found(dialect, server);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{dialect} {server}: {found:?}");
    }
}

#[test]
fn the_kind_of_a_token_says_how_it_is_sent() {
    let of_kind = |kind: &str| {
        let auth = format!(r#"{{"type": "{kind}", "token": "t"}}"#);
        let server = format!(r#"{{"transport": "sse", "connection": {{"url": "http://a"}}, "auth": {auth}}}"#);
        let (servers, findings) = read_as("engine", &server);
        let key = servers[0].auth.api_key.as_ref().map(|it| it.key.value.clone());
        (servers[0].auth.bearer.is_some(), key, findings.len())
    };
    assert_eq!(of_kind("bearer"), (true, None, 0));
    assert_eq!(of_kind("api_key"), (false, Some("t".into()), 0));
    assert_eq!(of_kind("custom"), (false, None, 1));
}
