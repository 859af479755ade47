use super::*;
use crate::config::{
    Source,
    finding::{Finding, Severity},
    json, read,
    server::ServerConfig,
};

fn root(text: &str) -> Node {
    json::parse(&Source::new("t.json", text)).unwrap_or_else(|problems| panic!("{text}: {problems:?}")).root
}

fn read_as(dialect: &str, server: &str) -> (Vec<ServerConfig>, Vec<Finding>) {
    let dialect = named(dialect).expect(dialect);
    let open: String = dialect.roots[0].iter().map(|key| format!("{{\"{key}\":")).collect();
    let text = format!("{open}{{\"s\":{server}}}{}", "}".repeat(dialect.roots[0].len()));
    let source = Source::new("t.json", text.clone());
    let mut findings = Vec::new();
    let config = read(&root(&text), dialect, &source, &mut findings);
    (config.servers, findings)
}

/// `CODE "what it points at": message (hint)`
fn told(dialect: &str, server: &str) -> Vec<String> {
    let (_, findings) = read_as(dialect, server);
    let dialect = named(dialect).expect(dialect);
    let open: String = dialect.roots[0].iter().map(|key| format!("{{\"{key}\":")).collect();
    let text = format!("{open}{{\"s\":{server}}}");
    let shown = |finding: Finding| {
        let (span, hint) = (finding.problem.span, finding.problem.hint.unwrap_or_default());
        format!("{} {}: {} ({hint})", finding.code.name, &text[span.start..span.end], finding.problem.message)
    };
    findings.into_iter().map(shown).collect()
}

#[test]
fn every_dialect_is_whole() {
    for dialect in ALL {
        assert_eq!(named(dialect.name).map(|it| it.name), Some(dialect.name), "each name is given once");
        for transport in dialect.transports {
            let first = dialect.transports.iter().find(|(_, it)| *it == transport.1);
            assert!(first.is_some());
        }
        let has = |wanted: fn(&Field) -> bool| dialect.keys.iter().any(|key| wanted(&key.field));
        assert!(has(|field| matches!(field, Field::Command | Field::CommandLine)), "{}", dialect.name);
        assert_eq!(
            dialect.timeout.is_some(),
            has(|field| matches!(field, Field::Timeout | Field::CallTimeout)),
            "{}",
            dialect.name
        );
        let speaks = |transport| dialect.transports.iter().any(|(_, it)| *it == transport);
        assert_eq!(speaks(Transport::Http), has(|field| matches!(field, Field::Url(_))), "{}", dialect.name);
    }
}

#[test]
fn a_file_is_known_by_its_place_and_otherwise_by_what_it_holds() {
    let detected = |path: Option<&str>, text: &str| {
        detect(path.map(Path::new), &root(text)).map(|found| (found.dialect.name, found.why))
    };
    let empty = r#"{"mcpServers": {}}"#;
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
    assert_eq!(of(empty), Some(("claude-code", "its servers are under `mcpServers`".into())));
    assert_eq!(of(r#"{"a": 1}"#), None);
}

#[test]
fn the_same_server_is_read_from_every_dialect() {
    for dialect in ALL {
        let (servers, findings) =
            read_as(dialect.name, r#"{"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}"#);
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
        [
            r#"A-EXTRA-KEY "url": Claude Desktop does not know `url` (it is passed over)"#,
            r#"E-MISSING "s": the server `s` needs `command` ()"#
        ]
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
            r#"E-VALUE-TYPE "-y y": `args` must be a list of texts, found the text "-y y" (write each argument as a text of its own: ["-y", "package"])"#,
        ),
        (
            "cursor",
            r#"{"command": ["x", "y"]}"#,
            r#"E-VALUE-TYPE ["x", "y"]: `command` must be a text, found a list (put the rest into `args`)"#,
        ),
        (
            "cursor",
            r#"{"command": "x", "env": {"PORT": 80}}"#,
            r#"E-VALUE-TYPE 80: `PORT` must be a text, found the number 80 (write "80")"#,
        ),
        (
            "cline",
            r#"{"command": "x", "disabled": "true"}"#,
            r#"E-VALUE-TYPE "true": `disabled` must be true or false, found the text "true" (write true without quotes)"#,
        ),
        (
            "roo",
            r#"{"command": "x", "url": "http://a"}"#,
            r#"E-FORBIDDEN "url": `url` beside `command`: Roo Code rejects both (keep one of them)"#,
        ),
        (
            "roo",
            r#"{"command": "x", "timeout": 30000}"#,
            r"E-TIMEOUT 30000: `timeout` is in seconds, from 1 to 3600, found 30000 ()",
        ),
        (
            "cline",
            r#"{"command": "x", "timeout": 30000}"#,
            r"W-TIMEOUT-UNIT 30000: `timeout` is in seconds, and 30000 is too large: Cline takes 3600 instead ()",
        ),
        (
            "claude-code",
            r#"{"command": "x", "timeout": 30}"#,
            r"W-TIMEOUT-UNIT 30: `timeout` is in milliseconds, and 30 is too small: Claude Code ignores it ()",
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
        ("claude-code", r#"{"type": "http"}"#, r#"E-MISSING "s": the server `s` needs a `url` ()"#),
        ("claude-code", r"7", r"E-VALUE-TYPE 7: a server must be an object ()"),
        ("claude-code", r"{}", r#"E-MISSING "s": the server `s` needs `command` or `url` ()"#),
    ] {
        assert_eq!(told(dialect, server), [expected], "{dialect} {server}");
    }
}

#[test]
fn notes_and_what_vs_code_takes_are_no_findings() {
    assert_eq!(told("claude-code", r#"{"command": "x", "_comment": "mine", "description": "d"}"#), [""; 0]);
    let (servers, findings) = read_as("vscode", r#"{"command": "x", "env": {"PORT": 80, "GONE": null}}"#);
    assert_eq!((findings, servers[0].env.len()), (vec![], 1));
    let nested = r#"{"transport": {"type": "streamableHttp", "url": "http://a"}, "timeout": 5, "disabled": true}"#;
    let (servers, findings) = read_as("cline", nested);
    assert_eq!(findings, []);
    let call = servers[0].timeouts.call.as_ref().map(|it| it.value.as_secs());
    assert_eq!((servers[0].transport.value, call), (Transport::Http, Some(5)));
    assert_eq!(servers[0].enabled.as_ref().map(|it| it.value), Some(false));
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
