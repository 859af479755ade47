//! `rehearse mcp app`.

use std::fs;

use serde_json::{Value as Json, json};

use crate::{
    mcp::{mcp, stdio},
    rehearse::request,
};

const TOOLS: &str = r#"
tools:
  - name: show
    inputSchema: { type: object, properties: { x: { type: string } } }
    reply: "{{ args.x }}"
    ui:
      html: <!doctype html><p>Hello</p>
      csp: { connectDomains: ["https://a.example", "https://b.example; script-src *"] }
      permissions: { camera: {} }
      visibility: [app]
  - { name: fail, ui: { uri: "ui://show" }, reply: { error: No. } }
  - { name: lost, _meta: { ui: { resourceUri: "ui://lost" } }, reply: x }
  - { name: plain, reply: x }
"#;

/// A browser that hands the URL on, and makes its picture when it may.
const BROWSER: &str = r#"#!/bin/sh
for argument; do case $argument in
  --screenshot=*) file=${argument#*=} ;;
  http*) echo "$argument" > url ;;
esac; done
cp done "$file"
"#;

#[test]
fn a_page_is_described_with_what_it_loads_and_asks_for() {
    let app = |tool: &str| mcp(["app", tool, "x=1"]).file("apps.yaml", TOOLS).args(stdio("apps.yaml"));
    let expected = "ui://show  text/html;profile=mcp-app, 27 bytes\n  loads: requests to https://a.example\n  \
                    asks the browser for: camera\n  the tool is for: app\n";
    let run = app("show").args(["--trace"]).run().stdout(expected).code(0);
    let declared = r#""extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}"#;
    assert!(run.stderr().contains(declared), "{}", run.stderr());
    let legacy = app("show").args(["--trace", "--protocol", "2025-06-18"]).run().code(0);
    assert!(legacy.stderr().contains(declared), "{}", legacy.stderr());
    app("fail").run().stdout_has("ui://show").code(1);
    app("lost").run().stderr_has("ui://lost").code(1);
    app("plain").run().stderr_has("the tool \"plain\" has no app").code(2);
    app("show")
        .args(["--screenshot", "x.png"])
        .env("REHEARSE_CHROMIUM", "")
        .run()
        .stderr_has("REHEARSE_CHROMIUM")
        .code(2);
}

#[test]
fn a_browser_gets_the_host_of_the_page_with_the_call_and_its_result() {
    let app = mcp(["app", "show", "x=7", "--screenshot", "x.png", "--format", "json"]).file("apps.yaml", TOOLS);
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
