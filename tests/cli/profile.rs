//! Profiles: `check --profile`, `diff --profile`, `list-tools --for`, `validate-config --connect` and `run --as`.

use serde_json::Value as Json;

use crate::rehearse::Rehearse;

/// Two tools; a model's API refuses the second one.
const MOCK: &str = "
server: { name: geo, version: 1.0.0 }
tools:
  - { name: find, description: Finds a place., inputSchema: { type: object, properties: { q: { type: string } } }, reply: here }
  - name: rotate
    description: Turns it.
    inputSchema: { type: object, properties: { q: { type: string } }, oneOf: [{ required: [q] }, { required: [] }] }
    reply: turned
";

const HOUSE: &str = "
profile: 1
name: house
title: Our host
kind: host
toolName: '{server}__{tool}'
rules:
  - id: tool-name.length
    level: blocks
    toolName: { maxLength: 10, of: prefixed }
    effect: Our host leaves the tool out.
    source: https://wiki.example.com
    seen: 2026-03-01
";

fn story() -> Rehearse {
    Rehearse::new().file("mock.yaml", MOCK).file("house.yaml", HOUSE)
}

fn server() -> String {
    format!("'{}' mock mock.yaml", Rehearse::BINARY)
}

/// A check of one rule, which every mock keeps, with profiles.
pub(crate) fn check(args: &[&str]) -> Rehearse {
    story().args(["check", "--only", "tools.list.order-legacy", "--stdio", &server()].iter().chain(args).copied())
}

#[test]
fn a_check_says_whether_a_server_works_in_a_host() {
    let run = check(&["--profile", "anthropic"]).run().code(1);
    let run = run
        .stdout_has("anthropic  blocked        1")
        .stdout_has("tool rotate: The input schema has oneOf at its root.");
    run.stdout_has("blocks   input-schema.root-composition   seen 20").stdout_has("failed");
    let run = check(&["--profile", "all"]).run().code(0);
    run.stdout_has("cursor ")
        .stdout_has("mcp-registry")
        .stdout_has("--verbose, or a profile by its name, shows what was found");
    let run =
        check(&["--profile", "./house.yaml", "--report", "r.xml", "--report", "r.html", "--report", "r.md"]).run();
    let run = run.stdout_has("house    degraded       1").code(0);
    for report in ["r.xml", "r.html", "r.md"] {
        let text = run.read(report);
        assert!(text.contains("Our host leaves the tool out."), "{report}: {text}");
    }
    let config = format!(
        "{{ \"mcpServers\": {{ \"geo\": {{ \"command\": {:?}, \"args\": [\"mock\", \"mock.yaml\"] }} }} }}",
        Rehearse::BINARY
    );
    let args = [
        "check",
        "geo",
        "--mcp-config",
        ".mcp.json",
        "--only",
        "tools.list",
        "--profile",
        "house.yaml",
        "--format",
        "sarif",
    ];
    let sarif = story().file(".mcp.json", &config).args(args).run().code(0).stdout_text().to_owned();
    let sarif: Json = serde_json::from_str(&sarif).expect("JSON");
    let found = &sarif["runs"][1]["results"][0];
    assert_eq!(found["ruleId"], "house/tool-name.length", "{sarif}");
    assert_eq!(found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], ".mcp.json");
    let json = check(&["--profile", "house.yaml", "--format", "json"]).run().code(0).stdout_text().to_owned();
    let json: Json = serde_json::from_str(&json).expect("JSON");
    let fit = &json["servers"][0]["profiles"][0];
    assert_eq!((&fit["fit"], &fit["required"], &fit["kept"]), (&"degraded".into(), &true.into(), &0.into()));
    assert_eq!(fit["findings"][0]["subject"], "tool rotate", "geo__rotate has 11 characters: {fit}");
}

#[test]
fn an_unknown_profile_and_a_wrong_file_are_errors() {
    check(&["--profile", "curser"]).run().stderr_has("there is no profile curser; did you mean cursor?").code(2);
    check(&["--profile", "none.yaml"]).run().stderr_has("cannot read none.yaml").code(2);
    let wrong = HOUSE.replace("blocks", "stops");
    let run = check(&["--profile", "wrong.yaml"]).file("wrong.yaml", &wrong).run().code(2);
    run.stderr_has("write blocks, degrades or advice").stderr_has("wrong.yaml:9");
    let run = Rehearse::new().args(["check", "--profile", "list"]).run().code(0);
    run.stdout_has("openai-strict").stdout_has("OpenAI API (strict functions)");
}

#[test]
fn tools_for_a_model_come_with_a_warning_if_its_api_refuses_them() {
    let list = |api: &str| story().args(["mcp", "list-tools", "--for", api, "--stdio", &server()]).run().code(0);
    let run = list("anthropic").stderr_has("tool rotate: The input schema has oneOf at its root. The API refuses");
    assert!(run.stdout_text().contains("\"rotate\"") && !run.stderr().contains("find"));
    list("openai").stderr_has("tool rotate");
    assert!(!list("xml").stderr().contains("rotate"));
}

#[test]
fn a_config_is_held_against_its_own_program() {
    let config = |name: &str| {
        let text = format!(
            "{{ \"mcpServers\": {{ \"geo\": {{ \"command\": {:?}, \"args\": [\"mock\", \"mock.yaml\"] }} }} }}",
            Rehearse::BINARY
        );
        story().file(name, &text).args(["validate-config", name, "--connect"]).run().code(0)
    };
    let run = config(".mcp.json").stdout_has("W-PROFILE").stdout_has("tool rotate: The input schema has oneOf");
    run.stdout_has("https://code.claude.com/");
    assert!(!config("claude_desktop_config.json").stdout_text().contains("W-PROFILE"));
}

#[test]
fn a_change_says_which_host_loses_a_tool() {
    let before = MOCK.replace(", oneOf: [{ required: [q] }, { required: [] }]", "");
    assert_ne!(before, MOCK);
    let diff = |args: &[&str]| {
        let [old, new] = ["old.yaml", "mock.yaml"].map(|file| format!("'{}' mock {file}", Rehearse::BINARY));
        story().file("old.yaml", &before).args(["diff", &old, &new].iter().chain(args).copied()).run()
    };
    let run = diff(&["--profile", "anthropic"]).code(1);
    run.stdout_has("✗ tool rotate: Anthropic Messages API: The input schema has oneOf").stdout_has("profile.blocks");
    let run = diff(&["--profile", "house.yaml"]);
    assert!(!run.stdout_text().contains("profile."), "the name was too long before: {}", run.stdout_text());
}

#[test]
fn scenarios_connect_as_a_host_does() {
    let scenario = "
servers: { s: { mock: ../mock.yaml } }
steps: [{ call: { tool: find, args: { q: Bern } }, expect: { text: here } }]
";
    let run = |args: &[&str]| {
        let args = ["run", "--trace-file", "t.jsonl"].iter().chain(args).copied();
        story().file("scenarios/a.yaml", scenario).args(args).run()
    };
    let trace = run(&["--as", "codex"]).stdout_has("1 scenario, 2 cells").code(0).read("t.jsonl");
    for part in ["\"name\":\"codex-mcp-client\"", "\"elicitation\":{\"form\":{}", "\"protocolVersion\":\"2025-06-18\""]
    {
        assert!(trace.contains(part), "no {part} in {trace}");
    }
    run(&["--as", "anthropic"]).stderr_has("it is not known how Anthropic Messages API introduces itself").code(2);
}
