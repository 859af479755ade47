//! `rehearse mock`: scripts that are listed, checked, edited and verified.

use serde_json::Value as Json;

use crate::{
    mock::{INITIALIZE, call, modern_call},
    rehearse::{Post, Rehearse},
};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#;

const EXPECTING: &str = "
server: { name: strict }
unexpected: fail
tools:
  - name: once
    expect: { calls: 1 }
    rules:
      - { when: { args: { city: Paris } }, reply: sunny }
";

#[test]
fn builtin_scripts_are_listed_with_descriptions() {
    Rehearse::new().args(["mock", "--list"]).run().stdout_has("basic ").stdout_has("an answer, an error").code(0);
    let run = Rehearse::new().args(["mock", "--list", "--format", "json"]).run().code(0);
    let scripts: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    let basic = scripts.as_array().and_then(|all| all.iter().find(|it| it["name"] == "basic")).expect("basic");
    assert_eq!(basic["offers"]["tools"], serde_json::json!(["echo", "fail", "slow", "json_response"]));
}

#[test]
fn all_mistakes_in_all_scripts_are_reported() {
    let prepare = || {
        Rehearse::new()
            .file("good.yaml", "server: { name: fine }\ntools: [{ name: a, reply: x }]\nprotocol: 2025-11-25\n")
            .file("one.yaml", "tools:\n  - name: a\n    repply: hi\n")
            .file("two.yaml", "tools: [{ name: b, reply: '{{ arg.x }}' }]\n")
    };
    prepare()
        .args(["mock", "--validate", "one.yaml", "good.yaml", "two.yaml", "none.yaml"])
        .run()
        .stdout("✓ good.yaml: fine offers 1 tool, in 2025-11-25\n")
        .stderr_has("one.yaml:3:5: a tool has no key `repply`")
        .stderr_has("did you mean `reply`?")
        .stderr_has("two.yaml:1:27: template: there is no `arg`")
        .stderr_has("cannot read the script none.yaml")
        .code(2);
    prepare().args(["mock", "good.yaml", "basic", "--validate"]).run().stdout_has("✓ basic: basic offers").code(0);
    let run = prepare().args(["mock", "--validate", "good.yaml", "one.yaml", "--format", "json"]).run().code(2);
    let scripts: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    assert_eq!((&scripts[0]["valid"], &scripts[0]["offers"]["tools"][0]), (&true.into(), &"a".into()));
    let problem = &scripts[1]["problems"][0];
    assert_eq!((&problem["line"], &problem["column"]), (&3.into(), &5.into()));
    assert_eq!(problem["hint"], "did you mean `reply`?");
}

#[test]
fn conflicting_options_are_rejected() {
    let refused = |args: &[&str], printed: &str| {
        Rehearse::new().args(["mock"].iter().chain(args).copied()).run().stdout("").stderr_has(printed).code(2);
    };
    refused(&["--list", "basic"], "cannot be used with");
    refused(&["--validate", "basic", "--listen", ":0"], "cannot be used with");
    refused(&["--validate"], "<SCRIPT>");
    refused(&["basic", "basic"], "only one script can be served; only `--validate` takes several");
    refused(&["basic", "--watch"], "the script `basic` is built in and never changes");
    refused(&["basic", "--format", "json"], "add `--listen :0`");
}

#[test]
fn the_urls_are_printed_as_one_line_of_json() {
    let args = ["mock", "mock.yaml", "--listen", ":0", "--format", "json", "--seed", "7"];
    let script = "server: { name: new }\nprotocol: 2026-07-28";
    let mut mock = Rehearse::new().file("mock.yaml", script).args(args).start();
    let line: Json = serde_json::from_str(&mock.stdout_line("{")).expect("JSON");
    let address = mock.address("http://", "/mcp");
    assert_eq!((&line["name"], &line["seed"]), (&"new".into(), &7.into()));
    assert_eq!(line["http"], format!("http://{address}/mcp"));
    assert_eq!((&line["ws"], &line["sse"]), (&format!("ws://{address}/ws").into(), &Json::Null));
    mock.signal("TERM");
    mock.end().code(0);
}

#[test]
fn the_admin_api_is_announced_with_its_token_and_changes_what_is_served() {
    let args = ["mock", "basic", "--listen", ":0", "--admin", "--format", "json"];
    let mut mock = Rehearse::new().args(args).start();
    let line: Json = serde_json::from_str(&mock.stdout_line("{")).expect("JSON");
    let text = |value: &Json| value.as_str().expect("a text").to_owned();
    let (url, token) = (text(&line["admin"]["url"]), text(&line["admin"]["token"]));
    assert!(mock.stderr_line("  admin ").ends_with(&format!("{url} with the token {token}")));
    let address = url.strip_prefix("http://").expect("a URL").to_owned();
    let bearer = format!("Bearer {token}");
    let rule = r#"{"tool": "fail", "rule": {"reply": "for once it works"}}"#;
    let post = |headers: &[(&str, &str)]| Post::send(&address, "/rules", headers, rule).response();
    assert!(post(&[("Host", &address)]).starts_with("HTTP/1.1 401 "));
    assert!(post(&[("Host", &address), ("Authorization", &bearer)]).contains(r#"{"id":"r1"}"#));
    let served = text(&line["http"]);
    let served = served.strip_prefix("http://").and_then(|url| url.strip_suffix("/mcp")).expect("a URL");
    assert!(modern_call(served, "fail").response().contains("for once it works"));
    mock.signal("TERM");
    mock.end().code(0);
    Rehearse::new().args(["mock", "basic", "--admin=0.0.0.0:0"]).run().stderr_has("a loopback address").code(2);
}

#[test]
fn a_mock_on_stdio_has_an_admin_api_too() {
    let mut mock = Rehearse::new().args(["mock", "basic", "--admin"]).start();
    let line = mock.stderr_line("  admin ");
    let (url, token) = line.trim().trim_start_matches("admin ").split_once(" with the token ").expect("both");
    let (address, bearer) = (url.strip_prefix("http://").expect("a URL"), format!("Bearer {token}"));
    let headers = [("Host", address), ("Authorization", bearer.as_str())];
    let rule = r#"{"tool": "fail", "rule": {"reply": "for once it works"}}"#;
    assert!(Post::send(address, "/rules", &headers, rule).response().contains(r#"{"id":"r1"}"#));
    mock.send(INITIALIZE);
    mock.send(&call("fail"));
    mock.stdout_line("for once it works");
    mock.close_stdin();
    mock.end().code(0);
}

#[test]
fn connected_clients_get_a_valid_edit_and_not_an_invalid_one() {
    let tools = |names: &str| format!("server: {{ name: edited }}\ntools: [{names}]\n");
    let mut mock = Rehearse::new()
        .file("mock.yaml", &tools("{ name: one, reply: x }"))
        .args(["mock", "mock.yaml", "--watch"])
        .start();
    mock.send(INITIALIZE);
    assert!(mock.stdout_line("serverInfo").contains(r#""tools":{"listChanged":true}"#));
    mock.send(INITIALIZED);
    mock.send(LIST);
    mock.stdout_line(r#""name":"one""#);
    let path = mock.path("mock.yaml");
    std::fs::write(&path, tools("{ name: two, repply: x }")).expect("writes");
    mock.stderr_line("mock.yaml:2:22: a tool has no key `repply`");
    mock.stderr_line("still serving the previous script");
    mock.send(LIST);
    mock.stdout_line(r#""name":"one""#);
    std::fs::remove_file(&path).expect("removes");
    std::fs::write(&path, tools("{ name: two, reply: x }, { name: three, reply: x }")).expect("writes");
    mock.stdout_line(CHANGED);
    mock.stderr_line("reloaded mock.yaml: edited offers 2 tools");
    mock.send(LIST);
    mock.stdout_line(r#""name":"two""#);
    mock.close_stdin();
    mock.end().code(0);
}

#[test]
fn an_edit_is_served_over_the_network_too() {
    let args = ["mock", "mock.yaml", "--listen", ":0", "--watch"];
    let mut mock = Rehearse::new().file("mock.yaml", "tools: [{ name: a, reply: before }]").args(args).start();
    let address = mock.address("http://", "/mcp");
    assert!(modern_call(&address, "a").response().contains("before"));
    std::fs::write(mock.path("mock.yaml"), "tools: [{ name: a, reply: after }]").expect("writes");
    mock.stderr_line("reloaded");
    assert!(modern_call(&address, "a").response().contains("after"));
    mock.signal("TERM");
    mock.end().code(0);
}

#[test]
fn a_watched_script_that_becomes_a_pipe_does_not_block() {
    let mut mock = Rehearse::new()
        .file("mock.yaml", "tools: [{ name: a, reply: before }]")
        .fifo("fifo")
        .args(["mock", "mock.yaml", "--watch"])
        .start();
    mock.stderr_line("is served over stdio");
    let (script, fifo) = (mock.path("mock.yaml"), mock.path("fifo"));
    std::fs::rename(&fifo, &script).expect("renames");
    // Opening succeeds when the mock has polled.
    let _writer = std::fs::File::options().write(true).open(&script).expect("opens");
    mock.send(INITIALIZE);
    mock.stdout_line("serverInfo");
    std::fs::write(&fifo, "tools: [{ name: a, reply: after }]").expect("writes");
    std::fs::rename(&fifo, &script).expect("renames");
    mock.stderr_line("reloaded");
    mock.signal("TERM");
    mock.end().code(0);
}

#[test]
fn a_script_from_a_pipe_is_served_but_cannot_be_watched() {
    let script =
        |args: &[&str]| Rehearse::new().fifo("fifo").args(["mock"]).args(args.iter().copied()).stdin(EXPECTING);
    script(&["--validate", "/dev/stdin"]).run().stdout_has("1 tool").code(0);
    script(&["/dev/stdin", "--listen", ":0", "--watch"]).run().stderr_has("/dev/stdin is not a regular file").code(2);
    script(&["fifo", "--watch"])
        .run()
        .stdout("")
        .stderr_has("`--watch` needs a file: fifo is not a regular file")
        .code(2);
}

#[test]
fn expectations_are_verified_when_the_mock_ends() {
    let served = |args: &[&str], frames: &[&str]| {
        let mock = Rehearse::new().file("mock.yaml", EXPECTING).args(["mock", "mock.yaml"]).args(args.iter().copied());
        mock.stdin(&[&[INITIALIZE], frames].concat().join("\n")).run()
    };
    let right = call("once").replace(r#""name":"once""#, r#""name":"once","arguments":{"city":"Paris"}"#);
    let wrong = call("once").replace(r#""name":"once""#, r#""name":"once","arguments":{"city":"Rome\u001b"}"#);
    served(&["--verify"], &[&right]).stderr_has("✓ strict: all 2 expectations met").code(0);
    served(&["--verify"], &[])
        .stderr_has("✗ strict: expectations failed:\n  tools.once: expected 1 call, got 0 calls")
        .code(1);
    let missed = served(&["--verify"], &[&wrong, &call("onec"), &right]).code(1);
    let missed =
        missed.stderr_has("  tools.once: expected 1 call, got 2 calls\n    closest request: tools/call (number 3): ");
    missed.stderr_has("unexpected: tools/call (number 2)").stderr_has(r#"found "Rome\u001b""#);
    served(&[], &[]).stderr_has("tools.once: expected 1 call, got 0 calls").code(0);
}

#[test]
fn a_listening_mock_verifies_when_it_is_stopped() {
    let served = |script: &str| {
        let args = ["mock", "mock.yaml", "--listen", ":0", "--verify"];
        let mut mock = Rehearse::new().file("mock.yaml", script).args(args).start();
        mock.stderr_line("Ctrl-C");
        mock.signal("TERM");
        mock.end()
    };
    served(EXPECTING).stderr_has("expected 1 call, got 0 calls").code(1);
    served("server: { name: easy }").stderr_has("easy has no expectations: the client kept to the protocol").code(0);
}
