use crate::{
    convert::{Notation, convert},
    dialect::by_name,
    lint,
};
use rehearse_document::Source;

fn converted(from: &str, text: &str, to: &str) -> (String, Vec<String>) {
    let report = lint(&Source::new("f", text), None, by_name(from), None);
    let to = by_name(to).expect(to);
    let notation = Notation::for_file(to, None).expect("its own");
    let converted = convert(&report, to, notation).expect("it has a dialect");
    (converted.text, converted.losses.iter().map(ToString::to_string).collect())
}

const CLAUDE: &str = r#"{"mcpServers": {
  "files": {"command": "npx", "args": ["-y", "fs", "${DIR:-/tmp}"], "env": {"KEY": "${KEY}"}},
  "web": {"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 30000}
}}"#;

#[test]
fn a_file_of_claude_code_becomes_one_of_another_program() {
    let (text, losses) = converted("claude-code", CLAUDE, "cpe");
    assert_eq!(
        text,
        "version: \"1.0\"\nmcpServers:\n  files:\n    type: stdio\n    command: npx\n    args:\n      - -y\n      - fs\n      - ${DIR}\n    \
         env:\n      KEY: ${KEY}\n  web:\n    type: http\n    url: https://a.example/mcp\n    headers:\n      Authorization: \
         Bearer ${TOKEN}\n    timeout: 30\n"
    );
    assert_eq!(
        losses,
        [
            "f:2:52: `files`, `args[2]`: the default of the reference to `DIR` is lost: CPE has none",
            "f:3:119: `web`, `timeout`: CPE takes it for connecting and listing as well",
        ]
    );
    let (text, losses) = converted("claude-code", CLAUDE, "claude-desktop");
    assert_eq!(text.lines().count(), 11, "{text}");
    assert_eq!(
        losses,
        [
            "f:2:52: `files`, `args[2]`: the reference to `DIR` stays as it is written: Claude Desktop replaces no variables",
            "f:2:84: `files`, `env.KEY`: the reference to `KEY` stays as it is written: Claude Desktop replaces no variables",
            "f:3:19: `web` is left out: Claude Desktop has no transport http",
        ]
    );
}

#[test]
fn a_token_becomes_a_header_where_there_is_no_key_for_it() {
    let engine = r#"{"mcpServers": {"a": {"transport": "sse", "connection": {"url": "https://a.example"}, "auth": {"type": "bearer", "token": "t"}}}}"#;
    let (text, losses) = converted("engine", engine, "claude-code");
    assert!(text.contains("\"Authorization\": \"Bearer t\""), "{text}");
    assert_eq!(losses, [""; 0]);
    let custom = engine.replace("\"bearer\", \"token\": \"t\"", "\"custom\"");
    assert_eq!(
        converted("engine", &custom, "claude-code").1,
        ["f:1:96: `a`, `type`: only aidk engine knows what it means"]
    );
}

#[test]
fn the_connection_of_an_engine_is_an_object_where_it_must_be() {
    let (text, losses) = converted("roo", r#"{"mcpServers": {"a": {"command": "x", "cwd": "/w"}}}"#, "engine");
    assert_eq!(
        text,
        "{\n  \"mcpServers\": {\n    \"a\": {\n      \"serverName\": \"a\",\n      \"transport\": \"stdio\",\n      \"connection\": {\n        \
         \"command\": \"x\",\n        \"cwd\": \"/w\"\n      }\n    }\n  }\n}\n"
    );
    assert_eq!(losses, [""; 0]);
    let (text, _) = converted("roo", r#"{"mcpServers": {"a": {"command": "x"}}}"#, "engine");
    assert!(!text.contains("connection"), "{text}");
}

#[test]
fn servers_that_the_program_cannot_have_are_left_out() {
    let left_out = |from, server: &str, to| {
        let (text, losses) = converted(from, &format!(r#"{{"mcpServers": {{"a b": {server}}}}}"#), to);
        assert!(!text.contains("a b"), "{text}");
        losses.concat()
    };
    let disabled = r#"{"command": "x", "disabled": true}"#;
    assert_eq!(
        left_out("cline", disabled, "claude-code"),
        "f:1:53: `a b` is left out: it is disabled, and Claude Code would start it"
    );
    assert_eq!(
        left_out("cline", r#"{"command": "x"}"#, "copilot"),
        "f:1:17: `a b` is left out: GitHub Copilot rejects a file with such a name in it"
    );
    assert!(left_out("roo", r#"{"url": "https://a.example"}"#, "zed").ends_with("Zed has no transport sse"));
    let (text, losses) = converted("cline", &format!(r#"{{"mcpServers": {{"a": {disabled}}}}}"#), "zed");
    assert!(text.contains("\"enabled\": false") && losses.is_empty(), "{text} {losses:?}");
}

#[test]
fn what_only_the_program_knows_is_told() {
    let vscode = r#"{"servers": {"a": {"command": "x", "sandboxEnabled": true, "dev": null, "env": {"GONE": null}, "description": "mine"}}, "inputs": [], "other": 1}"#;
    assert_eq!(
        converted("vscode", vscode, "cursor").1,
        [
            "f:1:36: `a`, `sandboxEnabled`: only Visual Studio Code knows what it means",
            "f:1:81: `a`, `env.GONE`: no other program has a variable without a value",
            "f:1:121: `inputs`: only Visual Studio Code knows what it means",
        ]
    );
    let own = "mcpServers:\n  - uses: a/b\n  - name: s\n    command: x\n  - name: s\n    command: y\n";
    assert_eq!(
        converted("continue", own, "cursor").1,
        [
            "f:2:5: `uses`: the server is described in another place",
            "f:5:11: `s` is left out: there is a server of this name already",
        ]
    );
}

#[test]
fn keys_that_the_program_does_not_know_are_told_and_notes_are_not() {
    let claude = r#"{"mcpServers": {"a": {"command": "x", "cwd": "/w", "disabled": true, "autoApprove": [], "_comment": "c",
      "description": "d", "gone": null}, "b": {"type": "http", "url": "https://a.example", "oauth": {"odd": 1}}}}"#;
    assert_eq!(
        converted("claude-code", claude, "cline").1,
        [
            "f:1:39: `a`, `cwd`: Claude Code does not know it",
            "f:1:52: `a`, `disabled`: Claude Code does not know it",
            "f:1:70: `a`, `autoApprove`: Claude Code does not know it",
            "f:2:102: `b`, `odd`: Claude Code does not know it",
        ]
    );
    assert_eq!(converted("claude-code", claude, "claude-code").1, [""; 0]);
}

#[test]
fn servers_of_one_project_are_told() {
    let claude = r#"{"mcpServers": {"a": {"command": "x"}}, "projects": {"/p": {"mcpServers": {"b": {"command": "y"}}},
      "/q": {"mcpServers": {}}, "/r": {"allowedTools": []}, "/s": {"mcpServers": {"c": {}, "d": {}}}}}"#;
    let (text, losses) = converted("claude-code", claude, "cursor");
    assert!(text.contains("\"x\"") && !text.contains("\"y\""), "{text}");
    assert_eq!(
        losses,
        [
            "f:1:54: `projects./p`: its server is for this project only",
            "f:2:61: `projects./s`: its servers are for this project only",
        ]
    );
    assert_eq!(converted("cursor", claude, "roo").1, [""; 0]);
}

#[test]
fn a_server_behind_a_scheme_that_the_program_does_not_speak_is_left_out() {
    let remote = |from, url: &str, to| {
        let file = format!(r#"{{"servers": {{"a": {{"type": "http", "url": "{url}"}}}}}}"#);
        let servers = if from == "vscode" { "servers" } else { "mcpServers" };
        let (text, losses) = converted(from, &file.replace("servers", servers), to);
        assert_eq!(text.contains("\"a\""), losses.is_empty(), "{text} {losses:?}");
        losses.concat()
    };
    for url in ["unix:///run/mcp.sock", "UNIX:///run/mcp.sock", " unix:///x"] {
        let lost = remote("vscode", url, "claude-code");
        assert_eq!(lost, "f:1:43: `a` is left out: Claude Code does not reach unix:// by http");
    }
    assert!(remote("vscode", "pipe:///pipe/x", "cursor").ends_with("Cursor does not reach pipe:// by http"));
    assert_eq!(remote("vscode", "HTTPS://a.example", "cursor"), "");
    assert_eq!(remote("vscode", "${env:BASE}://a.example", "cursor"), "");
    assert_eq!(remote("cursor", "unix:///x", "vscode"), "");
    let engine = r#"{"mcpServers": {"a": {"transport": "websocket", "connection": {"url": "https://a.example"}}}}"#;
    let (http, losses) = converted("engine", engine, "claude-code");
    assert!(http.contains("\"type\": \"http\"") && losses.is_empty(), "{http} {losses:?}");
    let ftp = converted("engine", &engine.replace("https", "ftp"), "claude-code").1;
    assert_eq!(ftp, ["f:1:71: `a` is left out: Claude Code does not reach ftp:// by ws"]);
    assert_eq!(converted("engine", &engine.replace("https", "wss"), "claude-code").1, [""; 0]);
}

#[test]
fn a_file_of_the_same_program_keeps_everything_but_its_form() {
    let text = "mcpServers: # mine\n  a: {command: x, nobody: {knows: 12345678901234567890123}}\nglobalShortcut: ''\n";
    let (text, losses) = converted("claude-desktop", text, "claude-desktop");
    assert_eq!(
        text,
        "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"nobody\": {\n        \"knows\": \
         12345678901234567890123\n      }\n    }\n  },\n  \"globalShortcut\": \"\"\n}\n"
    );
    assert_eq!(losses, [""; 0]);
}

#[test]
fn what_holds_for_all_servers_is_written_for_each() {
    let text = r#"{"mcp": {"globalSettings": {"timeout": 5000}, "servers": {"a": {"type": "stdio", "command": "x"}}}}"#;
    let (text, losses) = converted("code_agent", text, "cline");
    assert!(text.contains("\"timeout\": 5") && losses.is_empty(), "{text} {losses:?}");
}

#[test]
fn code_agent_is_told_the_transport_of_every_server() {
    let file = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"type": "sse", "url": "https://b.example"},
        "c": {"type": "http", "url": "https://c.example"}}}"#;
    let (text, losses) = converted("claude-code", file, "code_agent");
    let types: Vec<_> = text.lines().filter(|line| line.contains("\"type\"")).map(str::trim).collect();
    assert_eq!((types, losses), (vec!["\"type\": \"stdio\",", "\"type\": \"sse\",", "\"type\": \"http\","], vec![]));
}

#[test]
fn servers_of_one_profile_and_those_in_other_files_are_told() {
    let file = r#"{"models": [{"ref": "a", "mcpServers": {"s": {"command": "x"}}}, {"ref": "b", "mcpServers": {}}]}"#;
    let (text, losses) = converted("cpe", file, "cursor");
    assert!(text.contains("\"command\": \"x\""), "{text}");
    assert_eq!(losses, ["f:1:26: `mcpServers`: CPE uses them with one of its `models` only"]);
    let file = r#"{"mcpServers": ["./a.json", {"s": {"command": "x"}}]}"#;
    let (text, losses) = converted("claude-code", file, "cursor");
    assert!(text.contains("\"command\": \"x\""), "{text}");
    assert_eq!(losses, ["f:1:17: `path`: the servers are in another file"]);
}

#[test]
fn what_is_said_elsewhere_or_by_a_variable_is_told() {
    let (_, losses) =
        converted("zed", r#"{"context_servers": {"e": {"source": "extension", "enabled": true}}}"#, "cursor");
    assert_eq!(losses, ["f:1:22: `e` is left out: how Zed reaches it is said in another place"]);
    let (_, losses) = converted("opencode", r#"{"mcp": {"e": {"enabled": false}}}"#, "cursor");
    assert_eq!(losses, ["f:1:10: `e` is left out: how OpenCode reaches it is said in another place"]);
    let server = r#"{"url": "https://a.example", "type": "http", "timeout": "$T", "trust": "$R"}"#;
    let (_, losses) = converted("gemini", &format!(r#"{{"mcpServers": {{"d": {server}}}}}"#), "cursor");
    let why = "it is a variable, of which no file can say what it stands for";
    assert_eq!(losses, [format!("f:1:67: `d`, `timeout`: {why}"), format!("f:1:84: `d`, `trust`: {why}")]);
    let (text, losses) = converted(
        "opencode",
        r#"{"mcp": {"b": {"type": "remote", "url": "https://a", "headers": {"A": "Bearer {env:T}", "B": "{file:~/s}"}}}}"#,
        "cursor",
    );
    assert!(text.contains("Bearer ${env:T}"), "{text}");
    assert_eq!(losses.len(), 1, "{losses:?}");
}
