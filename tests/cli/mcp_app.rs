//! `rehearse mcp app` with a browser. The rest is in `tests/console/mcp-app.md`.

use std::fs;

use serde_json::{Value as Json, json};

use crate::{
    mcp::{mcp, stdio},
    rehearse::request,
};

/// A browser that hands the URL on, and makes its picture when it may.
const BROWSER: &str = r#"#!/bin/sh
for argument; do case $argument in
  --screenshot=*) file=${argument#*=} ;;
  http*) echo "$argument" > url ;;
esac; done
cp done "$file"
"#;

#[test]
fn a_browser_gets_the_host_of_the_page_with_the_call_and_its_result() {
    let app = mcp(["app", "show", "x=7", "--screenshot", "x.png", "--format", "json"]).files_of("mcp-app");
    let app = app.args(stdio("apps.yaml")).file("browser", BROWSER).mode("browser", 0o755).fifo("url").fifo("done");
    let running = app.env("REHEARSE_CHROMIUM", "./browser --headless").start();
    let url = fs::read_to_string(running.path("url")).expect("a URL");
    let (address, path) = url.trim().strip_prefix("http://").and_then(|it| it.split_once('/')).expect("a path");
    let ask = |method: &str, name: &str, body: &str| {
        request(method, address, &format!("/{path}{name}"), &[("Host", address)], body)
    };
    let page = ask("GET", "", "");
    assert!(page.contains("sandbox=\"allow-scripts allow-same-origin allow-forms\""), "{page}");
    let data = ask("GET", "data.json", "");
    let data: Json = serde_json::from_str(data.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    assert_eq!((&data["args"], &data["allow"]), (&json!({ "x": "7" }), &json!("camera")));
    assert_eq!(data["result"]["content"][0]["text"], "7");
    ask("POST", "note", "ui/initialize");
    fs::write(running.path("done"), "a picture").expect("writes");
    let run = running.end().stderr_has("saved x.png").code(0);
    assert_eq!(run.read("x.png"), "a picture");
    let report: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    assert_eq!(report["page"], json!({ "ui/initialize": 1 }));
    assert!(report["policy"].as_str().is_some_and(|it| it.contains("connect-src https://a.example; frame-src 'none'")));
}
