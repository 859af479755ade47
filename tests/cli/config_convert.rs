//! `rehearse config convert` at the command line.

use crate::rehearse::Rehearse;

const CLAUDE: &str = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "fs"], "env": { "KEY": "${KEY}" } },
    "web": { "type": "http", "url": "https://a.example/mcp", "timeout": 30000 }
  }
}
"#;

fn convert(to: &str) -> Rehearse {
    Rehearse::new().file(".mcp.json", CLAUDE).args(["config", "convert", ".mcp.json", "--to", to])
}

#[test]
fn the_new_file_goes_to_stdout_and_the_losses_to_stderr() {
    convert("cursor")
        .run()
        .stdout(
            "{\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"fs\"],\n      \"env\": {\n        \
             \"KEY\": \"${env:KEY}\"\n      }\n    },\n    \"web\": {\n      \"url\": \"https://a.example/mcp\"\n    }\n  }\n}\n",
        )
        .stderr_has("lost: .mcp.json:4:73: `web`, `timeout`: Cursor has no timeouts\n2 servers for Cursor\n")
        .code(0);
    let yaml = convert("continue").run().code(0);
    yaml.stdout_has("name: MCP servers\nversion: \"1.0.0\"\nmcpServers:\n  - name: files\n    command: npx\n");
}

#[test]
fn a_config_on_stdin_is_detected_from_its_content() {
    let quiet = Rehearse::new()
        .stdin(r#"{"servers": {"a": {"command": "x"}}, "inputs": []}"#)
        .args(["config", "convert", "--to", "vscode"]);
    let quiet = quiet.run().stdout_has("\"inputs\": []").code(0);
    assert_eq!(quiet.stderr(), "");
    let printed = Rehearse::new().stdin(r#"{"servers": {"a": {"command": "x"}}, "inputs": []}"#);
    printed
        .args(["config", "convert", "-", "--to", "zed"])
        .run()
        .stdout_has("context_servers")
        .stderr_has("stdin:1:38: `inputs`: only Visual Studio Code knows what it means")
        .code(0);
}

#[test]
fn unsupported_servers_are_skipped() {
    convert("claude-desktop")
        .run()
        .stderr_has("`web` is left out: Claude Desktop has no transport http")
        .stderr_has("1 server for Claude Desktop, 1 left out");
    let disabled = Rehearse::new()
        .file("cline_mcp_settings.json", r#"{"mcpServers": {"a": {"command": "x", "disabled": true}}}"#)
        .args(["config", "convert", "cline_mcp_settings.json", "--to", "claude-code"]);
    disabled.run().stdout("{\n  \"mcpServers\": {}\n}\n").stderr_has("it is disabled").code(0);
}

#[test]
fn errors_are_reported_and_the_rest_is_converted() {
    let file = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://a.example/mcp"}}}"#;
    let run = Rehearse::new().file(".mcp.json", file).args(["config", "convert", ".mcp.json", "--to", "cline"]).run();
    let run = run.stdout_has("\"a\"").stderr_has("error: .mcp.json:1:46: E-TRANSPORT: `url` without `type`").code(1);
    assert!(!run.stdout_text().contains("\"b\""));
    let nothing = Rehearse::new().stdin("[1, 2").args(["config", "convert", "--to", "cline"]).run();
    nothing.stdout("").code(2);
    let nothing = Rehearse::new().stdin("{\"a\": 1}").args(["config", "convert", "--to", "cline"]).run();
    nothing.stdout("").stderr_has("--dialect").code(2);
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let again = || convert("vscode").file("mcp.json", "mine").args(["--output", "mcp.json"]);
    let kept = again().run().stdout("").stderr_has("mcp.json exists already").stderr_has("--force").code(3);
    assert_eq!(kept.read("mcp.json"), "mine");
    let replaced = again().args(["--force"]).run().stdout("").code(0);
    assert!(replaced.read("mcp.json").starts_with("{\n  \"servers\": {\n"));
    let deep = convert("vscode").args(["-o", "new/folder/mcp.json"]).run().stdout("").code(0);
    assert_eq!(deep.read("new/folder/mcp.json"), replaced.read("mcp.json"));
    let new = convert("vscode").args(["-o", "new.json"]).run().stdout("").code(0);
    assert_eq!(new.read("new.json"), replaced.read("mcp.json"));
}

#[test]
fn the_file_extension_selects_the_notation() {
    let (json, yaml) = ("{\n  \"version\": \"1.0\",\n", "version: \"1.0\"\n");
    for (name, begin) in [("cpe.json", json), ("cpe.yml", yaml), ("cpe", yaml)] {
        let new = convert("cpe").args(["-o", name]).run().stdout("").code(0);
        assert!(new.read(name).starts_with(begin), "{name}: {}", new.read(name));
    }
    let new = convert("cpe").args(["-o", "cpe.json"]).run().code(0);
    let again = Rehearse::new().file("cpe.json", &new.read("cpe.json")).args(["config", "convert", "cpe.json"]);
    again.args(["--to", "librechat", "--dialect", "cpe"]).run().stdout_has("mcpServers:\n  files:\n").code(0);
    let none = convert("cursor").args(["-o", "mcp.yaml"]).run().stdout("");
    none.stderr_has("Cursor does not read YAML: choose another file extension").code(2);
}

#[test]
fn the_nearest_dialect_is_suggested() {
    convert("cursr").run().stdout("").stderr_has("did you mean `cursor`?").code(2);
    Rehearse::new().args(["config", "convert", "--help"]).run().stdout_has("continue         Continue").code(0);
    Rehearse::new().args(["config", "convert", "none.json", "--to", "zed"]).run().stderr_has("none.json").code(2);
}

#[test]
fn secrets_are_in_the_file_and_nowhere_else() {
    let file = r#"{"mcpServers": {"a": {"command": "x", "env": {"TOKEN": "sk$ecret"}, "cwd": "/w"}}}"#;
    let run = Rehearse::new().file("f.json", file).args([
        "config",
        "convert",
        "f.json",
        "--dialect",
        "roo",
        "--to",
        "gemini",
    ]);
    let run = run.run().stdout_has("sk$ecret").stderr_has("f.json:1:56: `a`, `env.TOKEN`: Gemini CLI replaces a `$`");
    assert!(!run.stderr().contains("ecret\""), "{}", run.stderr());
    assert!(!run.stderr().contains("sk$"), "{}", run.stderr());
}

#[test]
fn a_new_file_has_the_permissions_of_its_source() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let secret = r#"{"mcpServers": {"a": {"command": "x", "env": {"API_TOKEN": "ghp_0123456789abcdefghij"}}}}"#;
    let modes = |text: &str, mode: u32, args: &[&str]| {
        let story = Rehearse::new().file("a.json", text).file("old.json", "old").mode("a.json", mode);
        let story = story.mode("old.json", 0o664).args(["config", "convert", "a.json", "--dialect", "roo"]);
        let story = story.args(["--to", "cline"]).args(args.to_vec());
        let run = story.run().code(0);
        let name = args.last().expect("a name");
        fs::metadata(run.path(name)).expect("a file").permissions().mode() & 0o777
    };
    let plain = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    assert_eq!(modes(plain, 0o644, &["-o", "new.json"]), 0o644);
    assert_eq!(modes(plain, 0o600, &["-o", "new.json"]), 0o600);
    assert_eq!(modes(plain, 0o400, &["-o", "new.json"]), 0o400);
    assert_eq!(modes(secret, 0o644, &["-o", "new.json"]), 0o600);
    assert_eq!(modes(plain, 0o640, &["--force", "-o", "old.json"]), 0o640);
    assert_eq!(modes(secret, 0o644, &["--force", "-o", "old.json"]), 0o600);
    let reference = r#"{"mcpServers": {"a": {"command": "x", "env": {"API_TOKEN": "${env:API_TOKEN}"}}}}"#;
    assert_eq!(modes(reference, 0o644, &["-o", "new.json"]), 0o644);
}

#[test]
fn no_secret_of_an_error_or_a_lost_value_is_printed() {
    const SECRET: &str = "Zq7WvK9mLx2PfR4tJh8N";
    for server in [
        format!(r#"{{"type": "http", "url": "https://h", "headers": "X-API-Key: {SECRET}"}}"#),
        format!(r#"{{"command": "x", "env": "API_KEY={SECRET}"}}"#),
        r#"{"command": "x", "env": "API_KEY=\\u005aq7WvK9mLx2PfR4tJh8N"}"#.to_owned(),
        format!(r#"{{"command": "x", "args": "--api-key {SECRET}"}}"#),
        format!(r#"{{"type": "http", "url": "h.io/x?token={SECRET}"}}"#),
        format!(r#"{{"type": "Bearer {SECRET}", "url": "https://h"}}"#),
        format!(r#"{{"type": "http", "url": "https://h", "headers": {{"Authorization: Bearer {SECRET}": ""}}}}"#),
        format!(r#"{{"command": "x", "ghp_{SECRET}": "a"}}"#),
        format!(r#"{{"command": "x", "env": {{"API_KEY": {SECRET}}}}}"#),
        format!(r#"{{"command": "x", "env": {{"PASSWORD": "Zq7${SECRET}"}}}}"#),
    ] {
        let file = format!(r#"{{"mcpServers": {{"s": {server}}}}}"#);
        let story = Rehearse::new().file(".mcp.json", &file).args(["config", "convert", ".mcp.json", "--to", "cursor"]);
        let run = story.run();
        assert!(!run.stderr().contains(&SECRET[1..]), "{}", run.stderr());
    }
}
