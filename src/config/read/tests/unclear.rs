//! Servers of which nobody can tell how to reach them.

use super::{at, dialect, hinted, names, told};

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
        let examined = at(path, &format!(r#"{{"mcpServers": {{"s": {server}}}}}"#));
        assert_eq!(told(&examined), expected);
        assert_eq!(names(&examined), [""; 0], "{server}");
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

#[test]
fn a_word_against_the_only_address_is_told_once() {
    let told = |server: &str| hinted(&at(".mcp.json", &format!(r#"{{"mcpServers": {{"s": {server}}}}}"#)));
    let process = r#"{"type": "http", "command": "npx", "args": ["-y", "x"], "env": {}}"#;
    assert_eq!(told(process), [r#"E-TRANSPORT "http" write "stdio""#]);
    let roo = r#"{"mcpServers": {"s": {"type": "stdio", "url": "https://a.example/mcp"}}}"#;
    assert_eq!(hinted(&at(".roo/mcp.json", roo)), [r#"E-TRANSPORT "stdio" write "streamable-http""#]);
    let url = r#"{"type": "stdio", "url": "https://a.example", "headers": {}}"#;
    assert_eq!(told(url), [r#"E-TRANSPORT "stdio" write "http""#]);
}

#[test]
fn a_misspelt_address_is_told_once() {
    let told = |server: &str| hinted(&at(".mcp.json", &format!(r#"{{"mcpServers": {{"s": {server}}}}}"#)));
    assert_eq!(told(r#"{"comand": "npx"}"#), [r#"E-MISSING "comand" did you mean `command`?"#]);
    assert_eq!(told(r#"{"type": "http", "URL": "https://a.example"}"#), [r#"E-MISSING "URL" did you mean `url`?"#]);
    let beside = r#"{"comand": "npx", "command": "npx", "args": ["-y", "x"]}"#;
    assert_eq!(told(beside), [r#"W-UNKNOWN-KEY "comand" did you mean `command`?"#]);
}

#[test]
fn the_fault_of_a_server_makes_its_file_nobody_elses() {
    for (path, text, expected) in [
        ("mcp.json", r#"{"mcpServers": {"Sentry MCP": {"url": "https://a.example"}}}"#, "cursor"),
        (
            "mcp.json",
            r#"{"mcpServers": {"a": {"type": "sse", "command": "x", "url": "https://a.example/sse"}}}"#,
            "claude-code",
        ),
        (
            "code_agent.json",
            r#"{"mcp": {"servers": {"a": {"type": "sdtio", "command": "x", "timeout": -1}, "b": {"type": "http"}}}}"#,
            "code_agent",
        ),
        ("x.json", r#"{"mcp": {"servers": {"a": {"command": "x", "timeout": -1, "trust": "yes"}}}}"#, "code_agent"),
        (
            "x.json",
            r#"{"mcpServers": {"a": {"command": "x", "env": {"A": 1, "B": 2, "C": 3, "D": 4, "E": true}}}}"#,
            "claude-code",
        ),
    ] {
        assert_eq!(dialect(&at(path, text)), expected, "{text}");
    }
}
