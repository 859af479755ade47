//! `rehearse mock`: scripts that are edited and verified, and the admin API. The rest is in `tests/console/mock-scripts.md`.

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
