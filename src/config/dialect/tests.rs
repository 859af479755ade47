use std::path::Path;

use super::*;
use crate::config::{
    Node, Source, examine,
    finding::{Finding, Severity},
    json, read,
    server::ServerConfig,
};

fn root(text: &str) -> Node {
    json::parse(&Source::new("t.json", text)).unwrap_or_else(|problems| panic!("{text}: {problems:?}")).root
}

/// A file with one server, whose name is `s`.
fn file(dialect: &Dialect, server: &str) -> String {
    let beside = dialect.beside.iter().map(|it| format!("\"{}\":\"{}\",", it.key, it.value)).collect::<String>();
    let open: String = dialect.roots[0].iter().map(|key| format!("{{\"{key}\":")).collect();
    let open = open.replacen('{', &format!("{{{beside}"), 1);
    let servers = match dialect.collection {
        Collection::Map => format!("{{\"s\":{server}}}"),
        Collection::List { .. } => format!("[{{\"name\":\"s\",{}]", &server[1..]),
    };
    format!("{open}{servers}{}", "}".repeat(dialect.roots[0].len()))
}

fn read_text(dialect: &'static Dialect, text: &str) -> (Vec<ServerConfig>, Vec<Finding>) {
    let mut findings = Vec::new();
    let config = read(&root(text), dialect, &Source::new("t.json", text), &mut findings);
    (config.servers, findings)
}

fn read_as(dialect: &str, server: &str) -> (Vec<ServerConfig>, Vec<Finding>) {
    let dialect = named(dialect).expect(dialect);
    read_text(dialect, &file(dialect, server))
}

/// `CODE what it points at: message (hint)`
fn told(dialect: &str, server: &str) -> Vec<String> {
    let dialect = named(dialect).expect(dialect);
    let text = file(dialect, server);
    let shown = |finding: Finding| {
        let (span, hint) = (finding.problem.span, finding.problem.hint.unwrap_or_default());
        format!("{} {}: {} ({hint})", finding.code.name, &text[span.start..span.end], finding.problem.message)
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
fn every_dialect_is_whole() {
    for dialect in ALL {
        assert_eq!(named(dialect.name).map(|it| it.name), Some(dialect.name), "each name is given once");
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
fn a_file_is_known_by_its_place_and_otherwise_by_what_it_holds() {
    let detected = |path: Option<&str>, text: &str| {
        let (source, path) = (Source::new("t.json", text), path.map(Path::new));
        examine(&source, path, None, None).detected.map(|found| (found.dialect.name, found.why))
    };
    let empty = r#"{"mcpServers": {}}"#;
    let servers = r#"{"servers": {"a": {"url": "https://a.example/mcp"}}}"#;
    let why = "its servers are under `servers`".to_owned();
    assert_eq!(detected(Some("x/.mcp.json"), servers), Some(("vscode", why)), "Visual Studio's");
    let guest = |word: &str| {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "{word}", "tools": ["*"]}}}}}}"#);
        detected(Some("x/.mcp.json"), &text).map(|it| it.0)
    };
    assert_eq!((guest("x"), guest("${CLAUDE_PLUGIN_ROOT}/x")), (Some("copilot"), Some("claude-code")));
    let container = r#"{"customizations": {"vscode": {"mcp": {"servers": {}}}}}"#;
    let why = "its servers are under `customizations.vscode.mcp.servers`".to_owned();
    assert_eq!(detected(Some("some.json"), container), Some(("vscode", why)));
    assert_eq!(detected(Some(".devcontainer/py/devcontainer.json"), container).map(|it| it.0), Some("vscode"));
    for (path, name) in [
        ("/home/ada/project/.mcp.json", "claude-code"),
        (".vscode/mcp.json", "vscode"),
        ("C:\\Users\\ada\\project\\.cursor\\mcp.json", "cursor"),
        ("x/.roo/mcp.json", "roo"),
        ("x/.codeium/windsurf/mcp_config.json", "windsurf"),
        ("x/cline_mcp_settings.json", "cline"),
        ("x/mcp_settings.json", "roo"),
        ("x/claude_desktop_config.json", "claude-desktop"),
    ] {
        assert_eq!(detected(Some(path), empty).map(|it| it.0), Some(name), "{path}");
    }
    let of = |text: &str| detected(Some("some.json"), text);
    assert_eq!(of(r#"{"servers": {}, "inputs": []}"#), Some(("vscode", "it has `inputs`".into())));
    assert_eq!(of(r#"{"mcpServers": {"a": {"autoApprove": []}}}"#), Some(("cline", "it has `autoApprove`".into())));
    assert_eq!(of(r#"{"mcpServers": {"a": {"serverUrl": ""}}}"#).map(|it| it.0), Some("windsurf"));
    let wrong = |key: &str| of(&format!(r#"{{"mcpServers": {{"a": {{"command": "x", {key}}}}}}}"#)).map(|it| it.0);
    assert_eq!(wrong(r#""disabled": "false""#), Some("cline"), "a key counts whatever its value is");
    let plugin = |key: &str| wrong(&format!(r#""{key}": "${{CLAUDE_PLUGIN_ROOT}}/x", "env": {{"A": "b"}}"#));
    assert_eq!((plugin("cwd"), plugin("envFile")), (Some("claude-code"), Some("claude-code")));
    let why = Some(("claude-code", "it has `user_config`".into()));
    assert_eq!(of(r#"{"mcpServers": {"a": {"command": "x", "args": ["${user_config.key}"]}}}"#), why);
    assert_eq!(wrong(r#""env": {"PORT": 3000}"#), Some("claude-code"), "who takes a number is not told by one");
    assert_eq!(wrong(r#""env": {"PORT": 3000}, "tools": ["*"]"#), Some("copilot"));
    assert_eq!(of(empty), Some(("claude-code", "its servers are under `mcpServers`".into())));
    assert_eq!(of(r#"{"a": 1}"#), None);
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
fn a_url_alone_is_what_the_program_makes_of_it() {
    let transport =
        |dialect| read_as(dialect, r#"{"url": "https://a.example/mcp"}"#).0.first().map(|it| it.transport.value);
    assert_eq!(transport("cursor"), Some(Transport::Http));
    assert_eq!(transport("vscode"), Some(Transport::Http));
    assert_eq!(transport("cline"), Some(Transport::Sse));
    assert_eq!(transport("roo"), Some(Transport::Sse));
    assert_eq!(transport("claude-code"), None);
    assert_eq!(
        told("claude-code", r#"{"url": "https://a.example/mcp"}"#),
        [r#"E-TRANSPORT "url": a `url` without a `type`: Claude Code does not connect to it (add "type": "http")"#]
    );
    assert_eq!(
        told("claude-desktop", r#"{"url": "https://a.example/mcp"}"#),
        [concat!(
            r#"E-TRANSPORT "url": Claude Desktop starts servers and dials none "#,
            r#"(start one that dials: "command": "npx", "args": ["-y", "mcp-remote", "https://a.example/mcp"])"#
        )]
    );
}

#[test]
fn what_is_wrong_is_told_where_it_stands_with_what_to_do() {
    for (dialect, server, expected) in [
        (
            "cursor",
            r#"{"command": "x", "environment": {}}"#,
            r#"W-UNKNOWN-KEY "environment": Cursor does not know `environment` (did you mean `env`?)"#,
        ),
        (
            "cursor",
            r#"{"command": "x", "arg": []}"#,
            r#"W-UNKNOWN-KEY "arg": Cursor does not know `arg` (did you mean `args`?)"#,
        ),
        (
            "cursor",
            r#"{"command": "x", "args": "-y y"}"#,
            r#"E-VALUE-TYPE "-y y": `args` must be a list of texts, found a text (write ["-y", "y"])"#,
        ),
        (
            "cursor",
            r#"{"command": ["x", "y"]}"#,
            r#"E-VALUE-TYPE ["x", "y"]: `command` must be a text, found a list (put the rest into `args`)"#,
        ),
        (
            "cursor",
            r#"{"command": "x", "env": {"PORT": 80}}"#,
            r#"E-VALUE-TYPE 80: `PORT` must be a text, found a number (write it in quotes)"#,
        ),
        (
            "cline",
            r#"{"command": "x", "disabled": "true"}"#,
            r#"E-VALUE-TYPE "true": `disabled` must be true or false, found a text (write it without quotes)"#,
        ),
        (
            "roo",
            r#"{"command": "x", "url": "http://a"}"#,
            r#"E-FORBIDDEN "url": `url` beside `command`: Roo Code rejects both (keep one of them)"#,
        ),
        (
            "roo",
            r#"{"command": "x", "timeout": 30000}"#,
            r"E-TIMEOUT 30000: `timeout` is in seconds, from 1 to 3600, found 30000 (write 30 if milliseconds were meant)",
        ),
        (
            "cline",
            r#"{"command": "x", "timeout": 30000}"#,
            r"W-TIMEOUT-UNIT 30000: `timeout` is in seconds, and 30000 is too large: Cline takes 3600 instead (write 30 if milliseconds were meant)",
        ),
        (
            "claude-code",
            r#"{"command": "x", "timeout": 30}"#,
            r"W-TIMEOUT-UNIT 30: `timeout` is in milliseconds, and 30 is too small: Claude Code ignores it (write 30000 if seconds were meant)",
        ),
        (
            "cline",
            r#"{"type": "http", "url": "http://a"}"#,
            r#"E-TRANSPORT "http": Cline has no transport `http` (write `streamableHttp`)"#,
        ),
        (
            "roo",
            r#"{"type": "pigeon", "url": "http://a"}"#,
            r#"E-TRANSPORT "pigeon": Roo Code has no transport `pigeon` (it has stdio, sse, streamable-http)"#,
        ),
        (
            "claude-code",
            r#"{"type": "http", "url": "http://a", "env": {}}"#,
            r#"W-IGNORED "env": `env` is not for a server at a URL (Claude Code passes it over)"#,
        ),
        (
            "roo",
            r#"{"type": "sse", "url": "http://a", "cwd": "/"}"#,
            r#"E-FORBIDDEN "cwd": `cwd` is not for a server at a URL (remove it)"#,
        ),
        ("claude-code", r#"{"type": "http"}"#, r#"E-MISSING "s": the server `s` needs `url` (add "url": "https://…")"#),
        (
            "claude-code",
            r"7",
            r#"E-VALUE-TYPE 7: a server must be an object, found a number (write { "command": "…" } or { "url": "…" })"#,
        ),
        ("claude-code", r"{}", r#"E-MISSING "s": the server `s` needs `command` or `url` (say how to reach it)"#),
    ] {
        assert_eq!(told(dialect, server), [expected], "{dialect} {server}");
    }
}

#[test]
fn notes_and_what_vs_code_takes_are_no_findings() {
    assert_eq!(told("claude-code", r#"{"command": "x", "_comment": "mine", "description": "d"}"#), [""; 0]);
    let (servers, findings) = read_as("vscode", r#"{"command": "x", "env": {"PORT": 80, "GONE": null}}"#);
    assert_eq!((findings, servers[0].env.len()), (vec![], 1));
    for dialect in ["zed", "amazon-q"] {
        assert_eq!(told(dialect, r#"{"command": "x", "env": null}"#), [""; 0], "{dialect}");
    }
    let nested = r#"{"transport": {"type": "streamableHttp", "url": "http://a"}, "timeout": 5, "disabled": true}"#;
    let (servers, findings) = read_as("cline", nested);
    assert_eq!(findings, []);
    let call = servers[0].timeouts.call.as_ref().map(|it| it.value.as_secs());
    assert_eq!((servers[0].transport.value, call), (Transport::Http, Some(5)));
    assert_eq!(servers[0].enabled.as_ref().map(|it| it.value), Some(false));
}

#[test]
fn what_is_said_for_all_servers_holds_for_those_that_say_nothing() {
    let text = r#"{"mcp": {"globalSettings": {"timeout": 5000, "debug": true}, "servers": {
        "a": {"type": "stdio", "command": "x"}, "b": {"type": "stdio", "command": "x", "timeout": 100, "debug": false}}}}"#;
    let (servers, findings) = read_text(named("code_agent").expect("known"), text);
    assert_eq!(findings, []);
    let said = |server: &ServerConfig| {
        let call = server.timeouts.call.as_ref().map(|it| it.value.as_millis());
        (call, server.debug.as_ref().map(|it| it.value))
    };
    assert_eq!([said(&servers[0]), said(&servers[1])], [(Some(5000), Some(true)), (Some(100), Some(false))]);
}

#[test]
fn the_formats_of_the_originals_are_told_apart() {
    let of = |text: &str| examine(&Source::new("t", text), None, None, None).detected.map(|found| found.dialect.name);
    assert_eq!(of(r#"{"mcp": {"servers": {}}}"#), Some("code_agent"));
    assert_eq!(of(r#"{"providers": {}, "mcp": {"servers": {"a": {"command": "x"}}}}"#), Some("mcpilot"));
    assert_eq!(of(r#"{"mcp": {"a": {"type": "local", "command": ["x"]}}}"#), Some("opencode"));
    assert_eq!(of(r#"{"version": "1.0", "models": [], "mcpServers": {}}"#), Some("cpe"));
    assert_eq!(of(r#"{"mcpServers": {"a": {"transport": "sse", "connection": {"url": "http://a"}}}}"#), Some("engine"));
    assert_eq!(of(r#"{"mcpServers": {"a": {"httpUrl": "http://a"}}}"#), Some("gemini"));
    assert_eq!(of(r#"{"context_servers": {}}"#), Some("zed"));
    assert_eq!(
        told("cpe", r#"{"command": "x"}"#),
        [r#"E-TRANSPORT "s": the server `s` needs a `type` (add "type": "stdio")"#]
    );
    assert_eq!(
        told("cpe", r#"{"type": "http", "url": "http://a", "env": {}}"#),
        [r#"E-FORBIDDEN "env": `env` is not for a server at a URL (remove it)"#]
    );
    let (servers, findings) = read_as(
        "engine",
        r#"{"transport": "sse", "connection": {"url": "http://a"}, "auth": {"type": "bearer", "token": "t"}}"#,
    );
    assert_eq!((findings.len(), servers[0].auth.bearer.as_ref().map(|it| it.value.as_str())), (0, Some("t")));
    let of_kind = |kind: &str| {
        let auth = format!(r#"{{"type": "{kind}", "token": "t"}}"#);
        let server = format!(r#"{{"transport": "sse", "connection": {{"url": "http://a"}}, "auth": {auth}}}"#);
        let (servers, findings) = read_as("engine", &server);
        let key = servers[0].auth.api_key.as_ref().map(|it| it.key.value.clone());
        (servers[0].auth.bearer.is_some(), key, findings.len())
    };
    assert_eq!(of_kind("api_key"), (false, Some("t".into()), 0));
    assert_eq!(of_kind("custom"), (false, None, 1));
    let (servers, _) = read_as("continue", r#"{"url": "http://a", "requestOptions": {"headers": {"X": "y"}}}"#);
    assert_eq!((servers[0].transport.value, servers[0].headers.len()), (Transport::Http, 1));
}

#[test]
fn servers_without_a_wrapper_are_code_agents_only_if_more_than_one_key_says_so() {
    let of = |text: &str| examine(&Source::new("t", text), None, None, None).detected.map(|found| found.dialect.name);
    let remote = |more: &str| format!(r#"{{"servers": {{"a": {{"type": "sse", "url": "http://a", {more}}}}}}}"#);
    assert_eq!(of(r#"{"servers": {}}"#), Some("vscode"));
    assert_eq!(of(&remote(r#""headers": {}"#)), Some("vscode"));
    assert_eq!(of(&remote(r#""timeout": 30000"#)), Some("vscode"));
    assert_eq!(of(&remote(r#""timeout": 30000, "includeTools": []"#)), Some("code_agent"));
    assert_eq!(of(r#"{"servers": {"a": {"type": "streamable", "url": "http://a"}}}"#), Some("code_agent"));
    assert_eq!(of(r#"{"enabled": true, "servers": {}}"#), Some("code_agent"));
    assert_eq!(of(r#"{"enabled": true, "mcpServers": {}, "servers": {}}"#), Some("claude-code"));
    let text = r#"{"enabled": true, "servers": {
        "a": {"type": "streamable", "url": "http://a"}, "b": {"type": "sse", "url": "http://b"}}}"#;
    let (servers, findings) = read_text(named("code_agent").expect("known"), text);
    assert_eq!(findings, []);
    let said = servers.iter().map(|it| (it.transport.value, it.url.as_ref().map(|url| &*url.value)));
    assert_eq!(said.collect::<Vec<_>>(), [(Transport::Http, Some("http://a")), (Transport::Sse, Some("http://b"))]);
}

#[test]
fn one_key_turns_all_servers_of_code_agent_off_where_it_stands() {
    let code_agent = named("code_agent").expect("known");
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
fn servers_in_another_place_are_pointed_at() {
    let text = r#"{"mcp_servers": {"a": {"command": "x"}}}"#;
    let mut findings = Vec::new();
    let config = read(&root(text), named("cursor").expect("known"), &Source::new("t", text), &mut findings);
    assert!(config.servers.is_empty());
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!((finding.code.name, finding.code.severity()), ("E-ROOT", Severity::Error));
    assert_eq!(finding.problem.hint.as_deref(), Some("rename `mcp_servers` to `mcpServers`"));
    assert_eq!((finding.problem.span.start, finding.problem.span.end), (1, 14));
}
