//! `rehearse surface` and `rehearse diff`: sides, classes, the baseline, recorded calls and reports.

use std::process::Command;

use serde_json::Value as Json;

use crate::rehearse::{Rehearse, Run};

const OLD: &str = "
server: { name: shop, version: 1.4.2 }
tools:
  - { name: search, inputSchema: { type: object, properties: { q: { type: string }, n: { type: integer, maximum: 100 } } }, reply: ok }
prompts: [{ name: greet, arguments: [{ name: who }], messages: [] }]
";

/// `n` has a lower limit, and there is one more tool.
fn new() -> String {
    OLD.replace("1.4.2", "1.5.0")
        .replace("maximum: 100", "maximum: 50")
        .replace("tools:", "tools:\n  - { name: refund, reply: x }")
}

fn command(script: &str) -> String {
    format!("'{}' mock {script}", Rehearse::BINARY)
}

fn files() -> Rehearse {
    Rehearse::new().file("old.yaml", OLD).file("new.yaml", &new())
}

fn surface(script: &str) -> Run {
    files().args(["surface", "--stdio", &command(script)]).run().code(0)
}

fn diff(args: &[&str]) -> Rehearse {
    files().file("surface.json", surface("old.yaml").stdout_text()).args(["diff"]).args(args.iter().copied())
}

#[test]
fn a_surface_is_the_same_over_each_transport_and_is_no_change_to_itself() {
    let text = surface("old.yaml").stdout_text().to_owned();
    assert!(
        text.starts_with("{\n  \"format\": \"rehearse-surface\",\n  \"version\": 1,\n  \"capabilities\": {"),
        "{text}"
    );
    let mut mock = files().args(["mock", "old.yaml", "--listen", ":0"]).start();
    let address = mock.address("http://", "/mcp");
    for (flag, url) in [("--http", format!("http://{address}/mcp")), ("--ws", format!("ws://{address}/ws"))] {
        let run = Rehearse::new().args(["surface", flag, &url]).run().code(0);
        assert_eq!(run.stdout_text(), text, "{flag}");
    }
    diff(&["surface.json", &format!("http://{address}/mcp")]).run().stdout_has("✓ no changes").code(0);
    // What a chosen version shows is not compared with the others.
    diff(&["surface.json", &command("old.yaml"), "--protocol", "2025-06-18"]).run().stdout_has("✓ no changes").code(0);
    let sse =
        Rehearse::new().args(["surface", "--sse", &format!("http://{address}/sse"), "-o", "sse.json"]).run().code(0);
    diff(&["surface.json", "sse.json"])
        .file("sse.json", &sse.read("sse.json"))
        .run()
        .stdout_has("✓ no changes")
        .code(0);
}

#[test]
fn a_breaking_change_fails_with_its_line_and_advice() {
    let run = diff(&["surface.json", &command("new.yaml")]).run().code(1);
    run.stdout_has("✗ tool search: `n` must be at most 50 now, at most 100 before: larger values are refused.")
        .stdout_has("breaking   input.limit-tightened   surface.json:")
        .stdout_has("+ tool refund: `refund` is new.")
        .stdout_has("changes: 1 breaking, 1 addition, 1 cosmetic")
        .stdout_has("must be at least 2.0.0, and the server says 1.5.0: 1 breaking change.");
    diff(&["surface.json", &command("new.yaml"), "--fail-on", "none"]).run().code(0);
    diff(&["old.yaml", "old.yaml"]).run().stderr_has("old.yaml:2:1: not a JSON value").code(2);
    diff(&["a.json", "old.yaml"]).file("a.json", "{}").run().stderr_has("a.json:1:1: not a surface file").code(2);
    diff(&["gone.json", "old.yaml"]).run().stderr_has("there is no file gone.json").code(2);
    diff(&["surface.json", "false"]).run().stderr_has("exit status: 1").code(3);
}

#[test]
fn every_format_has_the_changes() {
    for (format, text) in [
        ("json", "\"rule\": \"input.limit-tightened\""),
        ("junit", "tool search: input.limit-tightened"),
        ("sarif", "\"ruleId\": \"input.limit-tightened\""),
        ("html", "input.limit-tightened"),
        ("md", "input.limit-tightened"),
        ("github", "::error file=surface.json,line="),
        ("github-output", "verdict=failed\n"),
    ] {
        diff(&["surface.json", &command("new.yaml"), "--format", format]).run().stdout_has(text).code(1);
    }
    let json = diff(&["surface.json", &command("new.yaml"), "--format", "json"]).run();
    let merged =
        Rehearse::new().file("d.json", json.stdout_text()).args(["report", "d.json", "--format", "md", "--gate"]);
    merged.run().stdout_has("input.limit-tightened").code(1);
}

#[test]
fn recorded_calls_are_held_against_the_new_server() {
    let call = |n: &str| {
        let args = ["mcp", "call-tool", "search", n, "--stdio", &command("old.yaml"), "--trace-file", "t.jsonl"];
        files().args(args).run().code(0).read("t.jsonl")
    };
    let check =
        |trace: &str| diff(&["surface.json", &command("new.yaml"), "--calls", "t.jsonl"]).file("t.jsonl", trace).run();
    let run = check(&call("n=70")).code(1);
    run.stdout_has("1 recorded call by rehearse")
        .stdout_has("would fail: its arguments")
        .stdout_has("t.jsonl: {\"n\":70}");
    check(&call("n=7")).stdout_has("0 of 1 recorded calls would fail").code(1);
    // A trace is a side, too.
    let run = diff(&["t.jsonl", &command("new.yaml")]).file("t.jsonl", &call("n=7")).run().code(1);
    run.stdout_has("input.limit-tightened");
    // Two traces of the same call: it had a result, and now has an error.
    let refused = call("n=7").replace("\"content\":", "\"isError\":true,\"content\":");
    let run = diff(&["old.jsonl", "new.jsonl"]).file("old.jsonl", &call("n=7")).file("new.jsonl", &refused).run();
    run.stdout_has("call.fails").stdout_has("for example {\"n\":7}").code(1);
}

#[test]
fn accepted_changes_pass_until_they_are_gone() {
    let update = ["surface.json", &command("new.yaml"), "--baseline", "b.yaml", "--update-baseline"];
    let written = diff(&update).run().stdout_has("1 accepted").code(0).read("b.yaml");
    let with =
        |new: &str| diff(&["surface.json", &command(new), "--baseline", "b.yaml"]).file("b.yaml", &written).run();
    with("new.yaml").code(0);
    with("old.yaml").stdout_has("no change: input.limit-tightened (tool search)").code(1);
    let run = diff(&["surface.json", &command("new.yaml"), "--update"]).run().stderr_has("wrote surface.json").code(0);
    assert_eq!(run.read("surface.json"), surface("new.yaml").stdout_text());
}

#[test]
fn a_side_can_be_a_file_at_a_revision_or_a_name_in_a_config() {
    let config = format!(
        r#"{{ "mcpServers": {{ "s": {{ "command": "{}", "args": ["mock", "new.yaml"] }} }} }}"#,
        Rehearse::BINARY
    );
    let named = diff(&["surface.json", "s", "--mcp-config", ".mcp.json"]).file(".mcp.json", &config).run();
    named.stdout_has("input.limit-tightened").code(1);
    let at = diff(&["HEAD:surface.json", &command("new.yaml")]);
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let done = Command::new("git").current_dir(at.folder()).args(identity).args(args).output().expect("git runs");
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "surface.json"]);
    git(&["commit", "-qm", "add the surface"]);
    at.run().stdout_has("HEAD:surface.json (shop 1.4.2)").stdout_has("input.limit-tightened").code(1);
    diff(&["HEAD:surface.json", "old.yaml"]).run().stderr_has("git has no surface.json at HEAD").code(2);
}

#[test]
fn the_report_of_a_comparison_matches_its_schema() {
    let schema = |kind: &str| -> Json {
        serde_json::from_str(Rehearse::new().args(["schema", kind]).run().code(0).stdout_text()).expect("JSON")
    };
    let valid = |kind: &str, text: &str| {
        let validator = jsonschema::validator_for(&schema(kind)).expect("a schema");
        let json = serde_json::from_str(text).expect("JSON");
        let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{kind}: {errors:?}");
    };
    valid("surface", surface("old.yaml").stdout_text());
    let accept = "version: 1\naccept: [{ id: tool.added, reason: x }, { id: tool.gone, reason: x }]\n";
    let call = ["mcp", "call-tool", "search", "n=70", "--stdio", &command("old.yaml"), "--trace-file", "t.jsonl"];
    let trace = files().args(call).run().read("t.jsonl");
    let args = ["surface.json", &command("new.yaml"), "--calls", "t.jsonl", "--baseline", "b.yaml", "--format", "json"];
    let run = diff(&args).file("b.yaml", accept).file("t.jsonl", &trace).run().code(1);
    valid("diff", run.stdout_text());
}

/// Runs a scenario whose snapshot is that of another script.
fn snapshot_against(script: &str, step: &str) -> Run {
    let scenario = format!(
        "servers: {{ shop: {{ mock: shop.yaml }} }}\nmatrix: {{ protocol: 2025-11-25 }}\nsteps: [{{ {step}, snapshot: shop }}]\n"
    );
    let first = Rehearse::new()
        .file("shop.yaml", OLD)
        .file("s.yaml", &scenario)
        .args(["run", "s.yaml", "--update"])
        .run()
        .code(0);
    let stored = first.read("snapshots/s/shop.snap");
    let again =
        Rehearse::new().file("shop.yaml", script).file("s.yaml", &scenario).file("snapshots/s/shop.snap", &stored);
    again.args(["run", "s.yaml"]).env("CI", "1").run()
}

#[test]
fn a_snapshot_of_a_discovery_fails_on_what_breaks_and_says_it_in_sentences() {
    let added = OLD.replace("tools:", "tools:\n  - { name: a, reply: x }");
    snapshot_against(&added, "discover: {}").code(0);
    snapshot_against(&added, "discover: { strict: true }").stdout_has("+").code(1);
    let run = snapshot_against(&new(), "discover: {}").code(1);
    let run = run.stdout_has("tool search: `n` must be at most 50 now");
    assert!(!run.stdout_text().contains("refund"), "{}", run.stdout_text());
    // Prompts are a part of it.
    let required = OLD.replace("name: who }", "name: who, required: true }");
    snapshot_against(&required, "discover: {}").stdout_has("prompt greet: The argument `who` is required now").code(1);
    let gone = OLD.split("prompts:").next().expect("tools").to_owned();
    snapshot_against(&gone, "discover: {}").code(1);
}

#[test]
fn an_older_snapshot_has_only_tools_and_stays_valid() {
    let scenario = "servers: { shop: { mock: shop.yaml } }\nmatrix: { protocol: 2025-11-25 }\nsteps: [{ discover: {}, snapshot: shop }]\n";
    let tools = r#"{ "pages": 1, "tools": [{ "inputSchema": { "type": "object", "properties": { "n": { "maximum": 100, "type": "integer" }, "q": { "type": "string" } } }, "name": "search" }] }"#;
    let stored = |tools: &str| format!("---\nsource: \"s.yaml\"\nexpression: \"discover\"\n---\n{tools}\n");
    let run = |tools: &str| {
        let files = Rehearse::new()
            .file("shop.yaml", OLD)
            .file("s.yaml", scenario)
            .file("snapshots/s/shop.snap", &stored(tools));
        files.args(["run", "s.yaml"]).env("CI", "1").run()
    };
    run(tools).code(0);
    run(&tools.replace("100", "1000")).stdout_has("must be at most 100 now, at most 1000 before").code(1);
}
