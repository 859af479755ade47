//! `rehearse validate-config`, and the flag of that name.

use serde_json::Value as Json;

use crate::{
    orphans::{gone, started},
    rehearse::{Rehearse, Run},
};

const GOOD: &str = r#"{"mcpServers": {"files": {"command": "sh", "args": ["-c", "true"]}}}"#;
/// A warning.
const DOUBTFUL: &str = r#"{"mcpServers": {"files": {"command": "sh", "arg": ["-c", "true"]}}}"#;
/// An error.
const BAD: &str = "{\n  \"mcpServers\": {\n    \"docs\": { \"url\": \"https://docs.example.com/mcp\" }\n  }\n}\n";

const MOCK: &str = "
server: { name: stories }
tools:
  - { name: first, reply: hello }
  - { name: second, reply: hello }
";

fn validate(path: &str, text: &str) -> Rehearse {
    Rehearse::new().file(path, text).args(["validate-config", path])
}

/// A config with servers with these commands.
fn config(servers: &[(&str, &[&str])]) -> String {
    let server = |words: &[&str]| serde_json::json!({ "command": words[0], "args": words[1..] });
    let servers: serde_json::Map<_, _> =
        servers.iter().map(|(name, words)| ((*name).to_owned(), server(words))).collect();
    serde_json::json!({ "mcpServers": servers }).to_string()
}

fn json(run: &Run) -> Json {
    serde_json::from_str(run.stdout_text()).expect("JSON")
}

#[test]
fn the_exit_code_is_that_of_the_worst_file() {
    validate(".mcp.json", GOOD).run().stdout_has("✓ Configuration is valid").coloured(false).code(0);
    validate(".mcp.json", DOUBTFUL).run().stdout_has("W-UNKNOWN-KEY").stdout_has("did you mean `args`?").code(0);
    validate(".mcp.json", DOUBTFUL).args(["--strict"]).run().stdout_has("✗ Configuration validation failed").code(1);
    let bad = validate(".mcp.json", BAD).run().stdout_has("E-TRANSPORT").stdout_has("[.mcp.json:3:15]");
    bad.stdout_has("in the server `docs`").stdout_has("✗ Configuration validation failed").code(1);
    validate(".mcp.json", "{\"mcpServers\": [}").run().stdout_has("E-SYNTAX").code(2);
    validate(".mcp.json", "{\"mcpServers\": @}").run().stdout_has("E-SYNTAX").code(2);
    validate(".mcp.json", GOOD).args(["missing.json"]).run().stdout_has("there is no such file").code(2);
    let all = validate(".mcp.json", GOOD)
        .file("bad/.mcp.json", BAD)
        .file("none.json", "nothing")
        .args(["bad/.mcp.json", "none.json"]);
    all.run().stdout_has("3 files: 1 valid, 1 with errors, 1 unreadable; 2 errors").code(2);
}

#[test]
fn the_program_of_a_file_with_another_name_is_a_guess() {
    let guess = "(its servers are under `mcpServers`; a guess: name the program with --dialect)";
    let typo = r#"{"mcpServers": {"files": {"command": "sh", "timout": 4}}}"#;
    let shown = validate("live.json", typo).run().stdout_has("W-UNKNOWN-KEY").stdout_has("did you mean `timeout`?");
    shown.stdout_has(guess).code(0);
    validate("live.json", typo).args(["--strict"]).run().code(1);
    let of_cursor = validate("live.json", typo).args(["--dialect", "cursor"]).run();
    of_cursor.stdout_has("A-EXTRA-KEY").stdout_has("(set by --dialect)").code(0);
    // Notes and keys of other programs are not misspelled keys.
    let own =
        r#"{"mcpServers": {"files": {"command": "sh", "tags": ["a"], "icon": "i", "autoApprove": [], "title": "t"}}}"#;
    let run = validate("live.json", own).args(["--format", "json"]).run();
    let codes = json(&run)["files"][0]["findings"].to_string();
    assert!(!codes.contains("W-UNKNOWN-KEY") && codes.contains("A-EXTRA-KEY"), "{codes}");
    // A key or the name of the file may name the program.
    for (path, text) in
        [("live.json", r#"{"mcpServers": {"a": {"httpUrl": "https://a.example/mcp"}}}"#), (".mcp.json", GOOD)]
    {
        let run = validate(path, text).args(["--format", "json"]).run();
        assert_eq!(json(&run)["files"][0]["guessed"], false, "{path}");
    }
}

#[test]
fn a_server_that_only_looks_switched_off_is_started_with_a_warning() {
    let config = format!(
        r#"{{"mcpServers": {{"a": {{"command": "{}", "args": ["mock", "basic"], "disabled": true}}}}}}"#,
        Rehearse::BINARY
    );
    let run = Rehearse::new().file(".mcp.json", &config).args(["mcp", "list-tools", "--mcp-config", ".mcp.json"]).run();
    run.code(0).stderr_has("unknown key `disabled`; Claude Code starts the server anyway: remove the server");
}

#[test]
fn a_guess_starts_nothing_that_may_be_switched_off_and_is_said_once() {
    let server =
        |more: &str| format!(r#"{{"mcpServers": {{"a": {{"command": "touch", "args": ["started"]{more}}}}}}}"#);
    let guess = "warning: live.json is read as a config of ";
    for (more, code, words) in [
        (r#", "disabled": true"#, 4, "Cline, a guess: --dialect says which\n"),
        (r#", "enabled": false"#, 2, "help: name the program with --dialect"),
    ] {
        for command in ["mcp list-tools", "check", "bench discovery", "repl"] {
            let run = Rehearse::new().file("live.json", &server(more)).args(command.split(' '));
            let run = run.args(["--mcp-config", "live.json"]).stdin("").run().stderr_has(words);
            let code = if command == "repl" && code == 4 { 0 } else { code };
            let run = run.code(code);
            let is_off = run.stderr().contains("error: all MCP servers are disabled: a (live.json:1:17)\n");
            assert_eq!(is_off, code == 4, "{command}");
            assert_eq!(run.stderr().matches(guess).count(), usize::from(code != 2), "{command}");
            assert!(!run.path("started").exists(), "{command}");
        }
        let connect = ["validate-config", "live.json", "--connect", "--portable"];
        let run = Rehearse::new().file("live.json", &server(more)).args(connect).run();
        assert!(!run.code(i32::from(code == 2)).path("started").exists());
    }
    let named = Rehearse::new().file("live.json", &server("")).args(["check", "a", "a"]);
    let run = named.args(["--mcp-config", "live.json"]).run();
    assert_eq!(run.stderr().matches(guess).count(), 1, "{}", run.stderr());
}

#[test]
fn the_flag_is_the_command_and_both_search_the_folder_by_default() {
    let here = |args: &[&str]| {
        let files = Rehearse::new().file("a/.cursor/mcp.json", GOOD).file("x.json", BAD);
        files.args(args.iter().copied()).run()
    };
    here(&["--validate-config"]).stdout_has("File: a/.cursor/mcp.json").stdout_has("Dialect: cursor").code(0);
    here(&["validate-config"]).stdout_has("File: a/.cursor/mcp.json").code(0);
    here(&["validate-config", "a"]).stdout_has("File: a/.cursor/mcp.json").code(0);
    here(&["--format", "json", "--dialect", "claude-code", "--validate-config", "x.json"])
        .stdout_has("E-TRANSPORT")
        .code(1);
    here(&["--validate-config=x.json", "--dialect", "vscod"]).stderr_has("did you mean `vscode`?").code(2);
    Rehearse::new().args(["--help"]).run().stdout_has("rehearse --validate-config").code(0);
}

#[test]
fn only_known_files_in_a_folder_are_checked() {
    let run = Rehearse::new()
        .file("b/.vscode/mcp.json", r#"{"servers": {}}"#)
        .file("b/.zed/settings.json", r#"{"theme": "dark"}"#)
        .file("b/.vscode/settings.json", "{ no JSON at all")
        .file("b/.devcontainer/devcontainer.json", r#"{"a": 1, "a": "for mcp"}"#)
        .file("b/team.code-workspace", r#"{"settings": {"mcp": {"servers": {}}}}"#)
        .file("a/.mcp.json", DOUBTFUL)
        .file("node_modules/x/.mcp.json", BAD)
        .file("other.json", BAD)
        .args(["validate-config", ".", "a", "--format", "json"])
        .run();
    let paths: Vec<_> =
        json(&run)["files"].as_array().expect("files").iter().map(|file| file["path"].clone()).collect();
    assert_eq!(paths, ["a/.mcp.json", "b/.vscode/mcp.json", "b/team.code-workspace"]);
    let nothing = Rehearse::new().file("a/.zed/settings.json", "{}").args(["validate-config", "a"]).run();
    nothing.stdout("").stderr_has("no known config files").stderr_has("--list-dialects").code(4);
    let list = Rehearse::new().args(["validate-config", "--list-dialects"]).run().code(0);
    let json = Rehearse::new().args(["validate-config", "--list-dialects", "--format", "json"]).run();
    json.stdout_has("\"program\": \"Claude Code\"").code(0);
    list.stdout_has("claude-code ").stdout_has("  .gemini/settings.json, gemini-extension.json\n");
}

#[test]
fn standard_input_can_be_checked() {
    let stdin = |text: &str| Rehearse::new().args(["validate-config", "-", "--dialect", "vscode"]).stdin(text);
    stdin(r#"{"servers": {"s": {"command": "sh"}}}"#).run().stdout_has("File: <stdin>").code(0);
    stdin(GOOD).run().stdout_has("[<stdin>:1:2]").stdout_has("put them under `servers`").code(1);
    stdin("").run().code(2);
}

#[test]
fn invalid_utf8_is_reported_with_its_location() {
    let run = Rehearse::new().args(["validate-config", "latin.json"]);
    let run = run.bytes("latin.json", b"{\n \"a\": \"\xe9\"}").run();
    run.stdout_has("the byte 0xe9 is not UTF-8").stdout_has("latin.json:2:8: the byte").code(2);
    let run = Rehearse::new().args(["validate-config", "wide.json"]).bytes("wide.json", b"\xff\xfe{\0}\0").run();
    run.stdout_has("it is UTF-16").code(2);
    let other: [(&[u8], &str); 3] = [
        (b"{\0\"\0a\0\"\0:\0 \0{\0}\0}\0", "it is UTF-16"),
        (b"\xff\xfe\0\0{\0\0\0}\0\0\0", "it is UTF-32"),
        (b"\0\0\0{\0\0\0}", "it is UTF-32"),
    ];
    for (bytes, hint) in other {
        let run = Rehearse::new().args(["validate-config", "wide.json"]).bytes("wide.json", bytes).run();
        run.stdout_has(hint).code(2);
    }
}

#[test]
fn reports_can_be_json_sarif_or_workflow_commands() {
    let run = validate(".mcp.json", BAD).args(["--format", "json"]).run().code(1);
    let finding = &json(&run)["files"][0]["findings"][0];
    assert_eq!(
        (&finding["code"], &finding["line"], &finding["server"]),
        (&"E-TRANSPORT".into(), &3.into(), &"docs".into())
    );

    let run = validate(".mcp.json", BAD).args(["--format", "sarif", "--output", "out.sarif"]).run().stdout("").code(1);
    let sarif: Json = serde_json::from_str(&run.read("out.sarif")).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "E-TRANSPORT");
    assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], ".mcp.json");

    let run = validate(".mcp.json", BAD).args(["--format", "github"]).run().code(1);
    run.stdout_has("::error file=.mcp.json,line=3,col=15,endColumn=20,title=E-TRANSPORT::");
    validate(".mcp.json", GOOD).args(["--format", "github"]).run().stdout("").code(0);
    validate(".mcp.json", GOOD).args(["--format", "xml"]).run().stderr_has("human, json, sarif and github").code(2);
}

#[test]
fn quiet_reports_only_failures() {
    validate(".mcp.json", DOUBTFUL).args(["--quiet"]).run().stdout("").code(0);
    validate(".mcp.json", DOUBTFUL).args(["-q", "--strict"]).run().stdout_has("W-UNKNOWN-KEY").code(1);
}

/// Values in places of secrets.
const SECRETS: [&str; 6] = [
    "ghp_0123456789abcdefABCD",
    "geheim-8f2a91c7",
    "hunter2hunter2",
    "sk-abcdef0123456789",
    "q1w2e3r4t5z6",
    "zzz9zzz8zzz7",
];

#[test]
fn no_format_shows_secrets_by_default() {
    let [token, header, password, argument, key, broken] = SECRETS;
    let servers = format!(
        r#""a": {{"command": "sh", "args": ["--api-key", "{argument}"], "env": {{"GH_TOKEN": "{token}"}}, "arg": []}},
        "b": {{"type": "http", "url": "https://u:{password}@h.example.com/?api_key={key}", "headers": {{"Authorization": "Bearer {header}"}}, "nam": 1}},
        "c": {{"type": "nope", "env": {{"API_KEY": "{broken}"}}}}"#
    );
    let one_line = format!("{{\"mcpServers\": {{{}}}}}", servers.replace('\n', ""));
    let many_lines = format!("{{\"mcpServers\": {{{servers}}}}}");
    let unreadable = one_line.replace("\"arg\": []", "\"arg\": [");
    for text in [&one_line, &many_lines, &unreadable] {
        for format in ["human", "json", "sarif", "github"] {
            for connect in [None, Some("--connect")] {
                let run = validate(".mcp.json", text).args(["--format", format]).args(connect).run();
                for secret in SECRETS {
                    let output = format!("{}{}", run.stdout_text(), run.stderr());
                    assert!(!output.contains(secret), "{secret} is in {format}: {output}");
                }
            }
        }
    }
    validate(".mcp.json", &one_line).args(["--show-secrets"]).run().stdout_has(token);
}

#[test]
fn no_server_is_started_by_default() {
    let text = config(&[("s", &["sh", "-c", "touch started"])]);
    let run = validate(".mcp.json", &text).run().code(0);
    assert!(!run.path("started").exists());
    let run = validate(".mcp.json", &text).args(["--connect"]).run().code(1);
    assert!(run.path("started").exists());
}

#[test]
fn connecting_lists_the_tools_of_every_enabled_server() {
    let mock = [Rehearse::BINARY, "mock", "mock.yaml"];
    let run = validate(".mcp.json", &config(&[("one", &mock), ("two", &mock)]))
        .file("mock.yaml", MOCK)
        .args(["--connect"])
        .run();
    run.stdout_has("  - Total tools: 4\n    ✓ one: 2 tools\n    ✓ two: 2 tools\n").code(0);

    let text = serde_json::json!({ "mcpServers": {
        "some": { "command": mock[0], "args": &mock[1..], "excludeTools": ["first"] },

    }});
    let run = validate(".gemini/settings.json", &text.to_string()).file("mock.yaml", MOCK);
    let run = run.args(["--connect", "--format", "json"]).run().code(0);
    let servers = &json(&run)["files"][0]["servers"];
    assert_eq!((&servers[0]["reached"], &servers[0]["tools"]), (&true.into(), &serde_json::json!(["second"])));

    let text = r#"{"mcpServers": {"off": {"command": "touch", "args": ["started"], "disabled": true}}}"#;
    let run = validate(".kiro/settings/mcp.json", text).args(["--connect"]).run().stdout_has("(1 disabled)").code(0);
    assert!(!run.path("started").exists());
}

#[test]
fn the_servers_of_a_project_are_started_only_below_its_folder() {
    let story = validate(".claude.json", "").file("mock.yaml", MOCK);
    let here = story.folder().canonicalize().expect("a folder");
    let server = |name: &str| {
        let mock = serde_json::json!({ "command": Rehearse::BINARY, "args": ["mock", "mock.yaml"] });
        serde_json::json!({ "mcpServers": { name: mock } })
    };
    let (there, no_servers) = (here.join("there"), serde_json::json!({ "mcpServers": null }));
    let projects = serde_json::json!({
        here.to_string_lossy(): server("here"), there.to_string_lossy(): server("there"), "/none": no_servers
    });
    let text = serde_json::json!({ "projects": projects }).to_string();
    let run = story.file(".claude.json", &text).args(["--connect"]).run();
    let run = run.stdout_has("  - Servers: 2 (2 of single projects)\n").stdout_has("    ✓ here: 2 tools\n");
    run.stdout_has("    – there: not started: only used in /").code(0);
    validate(".claude.json", &text).args(["--format", "json"]).run().stdout_has("\"project\": \"/").code(0);
}

#[test]
fn an_unreachable_server_is_an_error_with_its_stderr() {
    let text = config(&[("gone", &["sh", "-c", "echo the token $TOKEN is wrong >&2; exit 3"])]);
    let text = text.replace("\"args\"", r#""env": {"TOKEN": "${SECRET}"}, "args""#);
    let run = validate(".mcp.json", &text).env("SECRET", "zzz9zzz8zzz7").args(["--connect"]).run();
    let run = run
        .stdout_has("E-CONNECT")
        .stdout_has("exit status: 3")
        .stdout_has("its standard error: the token *** is wrong");
    run.stdout_has("    ✗ gone: cannot be reached\n").code(1);
    let text = config(&[("none", &["there-is-no-such-program"])]);
    validate(".mcp.json", &text)
        .args(["--connect", "--portable"])
        .run()
        .stdout_has("E-CONNECT")
        .stdout_has("is it installed")
        .code(1);
    let asked = r#"{"servers": {"s": {"command": "sh", "env": {"TOKEN": "${input:token}"}}}, "inputs": [{"id": "token", "type": "promptString", "description": "Token"}]}"#;
    let run = validate(".vscode/mcp.json", asked).args(["--connect"]).run().code(1);
    run.stdout_has("`${input:token}` has no value: Visual Studio Code asks the user for it");
}

#[test]
fn an_interrupt_stops_the_servers_and_reports_the_results() {
    let mock = [Rehearse::BINARY, "mock", "mock.yaml"];
    let text = config(&[("one", &mock), ("slow", &["sh", "-c", "exec sleep 4326"])]);
    let story = validate(".mcp.json", &text).file("mock.yaml", MOCK).args(["--connect"]);
    let (mut running, processes) = started(story, ["sleep 4326", " guard"]);
    running.signal("INT");
    running.stderr_line("interrupted");
    running.end().stdout_has("    · slow: interrupted\n").code(3);
    gone(&processes);
}

#[test]
fn a_folder_shows_the_files_that_are_not_checked_and_those_that_no_program_reads() {
    let files = || {
        let files = Rehearse::new().file("teams/mcp.json", GOOD).file("agent.cpe.yaml", "subagent: { name: a }\n");
        files.file("notes.json", r#"{"text": "mcpServers"}"#).file(".claude/mcp.json", GOOD)
    };
    let run = files().args(["validate-config", ".", "--portable", "--strict"]).run();
    let run = run.stdout_has("  - File: agent.cpe.yaml").stdout_has("the subagent needs a `description`");
    let run = run.stdout_has("W-PLACE").stdout_has("help: it reads `.mcp.json`, `.claude.json`, `managed-mcp.json`");
    assert!(!run.stderr().contains("notes.json") && !run.stderr().contains(".claude"), "{}", run.stderr());
    run.stderr_has("warning: teams/mcp.json is not checked, since no known program reads it: name it").code(1);
    let all = files().args(["validate-config", "teams", "--dialect", "cursor", "--portable"]).run();
    all.stdout_has("File: teams/mcp.json").stderr_has("").code(0);
    files().args(["validate-config", "teams", "--quiet"]).run().stdout("").code(4);
}

#[test]
fn the_tools_that_are_called_without_asking_or_have_a_timeout_must_be_there() {
    let server = |more: &str| {
        let binary = Rehearse::BINARY;
        format!(r#"{{"mcpServers": {{"a": {{"command": "{binary}", "args": ["mock", "mock.yaml"], {more}}}}}}}"#)
    };
    for (path, more) in [
        (".roo/mcp.json", r#""alwaysAllow": ["first", "secnd"]"#),
        ("cline_mcp_settings.json", r#""autoApprove": ["secnd"]"#),
        (".code_agent/config.json", r#""toolTimeouts": {"first": 1000, "secnd": 1000}"#),
    ] {
        let run = validate(path, &server(more)).file("mock.yaml", MOCK).args(["--connect"]).run();
        let run = run.stdout_has("the server has no tool `secnd`").stdout_has("did you mean `second`?").code(0);
        assert_eq!(run.stdout_text().matches("W-TOOL-UNKNOWN").count(), 1, "{path}");
    }
}

#[test]
fn a_config_of_an_agent_is_found_and_all_its_servers_are_counted() {
    let servers = "mcpServers:\n  a: { type: stdio, command: sh }\n  b: { url: 'https://h.example' }\n";
    let run = Rehearse::new().file("coder.cpe.yaml", servers).args(["validate-config", "."]).run();
    run.stdout_has("the server `b` needs a `type`").stdout_has("  - Servers: 2\n").code(1);
}

#[test]
fn a_tool_of_another_server_is_not_hidden_or_steered_in_secret() {
    let script = "tools:\n  - { name: search, description: Call read_file first., reply: x }\n";
    let other =
        "tools:\n  - { name: search, reply: x }\n  - { name: read_file, description: After search., reply: x }\n";
    let mock = |script| [Rehearse::BINARY, "mock", script];
    let text = config(&[("one", &mock("one.yaml")), ("two", &mock("two.yaml"))]);
    let files = validate(".mcp.json", &text).file("one.yaml", script).file("two.yaml", other);
    let run = files.args(["--connect"]).run().code(0);
    let run = run.stdout_has("`two` has tools with the names of tools of `one`: search");
    run.stdout_has("the description of `search` names `read_file`, a tool of `two`");
}

#[test]
fn a_release_file_is_compared_with_its_server() {
    let script = "server: { name: rain, version: 1.2.4 }\ntools:\n  - { name: forecast, reply: x }\n  - { name: now, reply: x }\n";
    let manifest = r#"{"manifest_version": "0.3", "name": "weather", "version": "1.2.3", "description": "W.",
  "author": {"name": "Ada"}, "tools": [{"name": "forecst"}, {"name": "now"}],
  "server": {"type": "node", "entry_point": "mock.yaml", "mcp_config": {"command": "node"}}}"#;
    let mock = format!("{} mock mock.yaml", Rehearse::BINARY);
    let files = |manifest: &str| validate("manifest.json", manifest).file("mock.yaml", script);
    files(manifest)
        .run()
        .code(0)
        .stdout_has("✓ Release file is valid\n  - File: manifest.json\n  - Kind: manifest of an MCP bundle\n");
    let run = files(manifest).args(["--connect", "--strict", "--stdio", &mock]).run().code(1);
    let run = run.stdout_has("the file says version 1.2.3, the server 1.2.4").stdout_has("names itself `rain`");
    run.stdout_has("the server has no `forecst` in its tools").stdout_has("tools that are not listed: forecast");
    let right = manifest.replace("1.2.3", "1.2.4").replace("weather", "rain").replace("forecst", "forecast");
    let run = files(&right).args(["--connect", "--strict", "--stdio", &mock, "--format", "json"]).run().code(0);
    let file = &json(&run)["files"][0];
    assert_eq!(
        (&file["release"], file["findings"].as_array().map(Vec::len)),
        (&"manifest of an MCP bundle".into(), Some(0))
    );
    let config = validate(".mcp.json", &config(&[])).args(["--connect", "--stdio", &mock]).run().code(2);
    config.stderr_has("--stdio names the server of a release file");
    files(manifest).args(["--connect", "--stdio", "sh -c 'exit 3'"]).run().code(3);
}

#[test]
fn what_a_release_file_describes_is_started_and_compared() {
    let script = "server: { name: weather, version: 1.2.3 }\ntools: [{ name: forecast, reply: x }]\n";
    let manifest = format!(
        r#"{{"manifest_version": "0.3", "name": "weather", "version": "1.2.3", "description": "W.",
  "author": {{"name": "Ada"}}, "tools": [{{"name": "forecst"}}],
  "user_config": {{"token": {{"type": "string", "title": "T", "description": "D", "required": true}}}},
  "server": {{"type": "node", "entry_point": "mock.yaml", "mcp_config": {{"command": "sh", "env": {{"TOKEN": "${{user_config.token}}"}},
    "args": ["-c", "test \"$TOKEN\" = geheim && exec {} mock ${{__dirname}}/mock.yaml"]}}}}}}"#,
        Rehearse::BINARY
    );
    let files = || validate("w/manifest.json", &manifest).file("w/mock.yaml", script).args(["--connect"]);
    let run = files().env("TOKEN", "geheim").run().code(0);
    let run = run
        .stdout_has("the server has no `forecst` in its tools")
        .stdout_has("  - Total tools: 1\n    ✓ weather: 1 tool");
    assert!(!run.stdout_text().contains("geheim"));
    let run = files().env("TOKEN", "").run().code(1);
    let run = run.stdout_has("cannot start `weather`: `user_config.token` has no value");
    run.stdout_has("set the environment variable TOKEN");
    let mock = format!("{} mock ./mock.yaml", Rehearse::BINARY);
    let run = files().env("TOKEN", "").args(["--stdio", &mock.replace("./", "w/")]).run().code(0);
    run.stdout_has("the server has no `forecst` in its tools");
}

#[test]
fn packages_are_started_one_by_one_and_name_what_they_lack() {
    let server = r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "io.github.ada/weather", "description": "W.", "version": "1.2.3", "packages": [
    {"registryType": "npm", "identifier": "weather", "version": "1.2.3", "transport": {"type": "stdio"}},
    {"registryType": "pypi", "identifier": "weather", "version": "1.2.3", "transport": {"type": "stdio"},
     "environmentVariables": [{"name": "LEVEL", "default": "info"}]}]}"#;
    let npx = format!("#!/bin/sh\ntest \"$*\" = '-y weather@1.2.3' && exec {} mock mock.yaml\n", Rehearse::BINARY);
    let uvx = "#!/bin/sh\necho \"$1 $LEVEL: the environment variable WEATHER_REGION is missing\" >&2; exit 1\n";
    let files = |place: &str| {
        let script = "server: { name: rain, version: 1.2.3 }\n";
        let files = Rehearse::new().file("mock.yaml", script).file("bin/npx", &npx).file("bin/uvx", uvx);
        let run =
            format!("chmod +x bin/*; PATH=$PWD/bin:$PATH exec {} validate-config {place} --connect", Rehearse::BINARY);
        files.file("r/server.json", server).program("sh").args(["-c", &run]).run()
    };
    let run = files("r/server.json").code(1).stdout_has("✓ npm weather@1.2.3: 0 tools");
    let run = run.stdout_has("and it names itself `rain`").stdout_has("cannot connect to `pypi weather==1.2.3`");
    let run = run.stdout_has("weather==1.2.3 info: the environment variable WEATHER_REGION is missing");
    run.stdout_has("the server asks for the variable WEATHER_REGION, which the file does not declare");
    // What is only found is not started.
    let run = files("r").code(0).stdout_has("Kind: server.json of the MCP registry");
    assert!(!run.stdout_text().contains("npm weather"));
}
