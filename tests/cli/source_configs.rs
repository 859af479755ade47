//! Configs of the four source systems, as their documentation has them, used by `rehearse mcp`.

use serde_json::{Value as Json, json};

use crate::{
    mcp::{json_of, mcp},
    rehearse::{Rehearse, Run, Running},
};

/// A server that accepts one token, over HTTP, SSE and WebSocket.
const GUARDED: &str = "
auth: { tokens: [{ token: open-sesame-7391 }] }
tools:
  - { name: web_search, reply: found }
  - { name: image_search, reply: seen }
  - { name: other, reply: other }
";

/// A server that says what it was started with.
const LOCAL: &str = "
tools:
  - name: where
    reply: \"{{ env.CITY | default('-') }} {{ env.AREA | default('-') }} {{ env.MCP_API_KEY | default('-') }}\"
  - { name: measure, outputSchema: { type: object, properties: { n: { type: integer } } }, reply: { structured: { n: 1 } } }
";

fn guarded() -> (Running, String) {
    let story = Rehearse::new().file("guarded.yaml", GUARDED).args(["mock", "guarded.yaml", "--listen", "127.0.0.1:0"]);
    let mut running = story.start();
    let address = running.address("http://", "/mcp");
    (running, address)
}

/// The names of all tools that can be called.
fn tools(story: Rehearse) -> Vec<String> {
    let listed = json_of(story, 0);
    let servers = listed["servers"].as_array().expect("a list").iter();
    let tools = servers.flat_map(|server| server["tools"].as_array().expect("a list"));
    tools.map(|tool| tool["registeredAs"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_config_of_cpe_is_used_as_documented() {
    let (_server, address) = guarded();
    let config = format!(
        r#"version: "1.0"
mcpServers:
  files:
    command: {}
    args: [mock, local.yaml]
    type: stdio
    env: {{ CITY: Oslo }}
    timeout: 60
  web-api:
    url: http://{address}/mcp
    type: http
    headers: {{ Authorization: "Bearer ${{API_TOKEN}}" }}
    disabledTools: [web_search, image_search]
  search:
    url: http://{address}/sse
    type: sse
    headers: {{ Authorization: "Bearer ${{API_TOKEN}}" }}
    enabledTools: [web_search, image_search]
"#,
        Rehearse::BINARY
    );
    let story = |args: &[&str]| {
        let story = mcp(args.iter().copied()).file("local.yaml", LOCAL).file("cpe.yaml", &config);
        story.env("API_TOKEN", "open-sesame-7391").env("CITY", "Bergen").env("AREA", "west")
    };
    Rehearse::new().file("cpe.yaml", &config).args(["validate-config", "cpe.yaml", "--portable"]).run().code(0);
    assert_eq!(tools(story(&["list-tools"])), ["where", "measure", "other", "web_search", "image_search"]);
    story(&["call-tool", "where"]).run().stdout("Oslo west -\n").code(0);
    story(&["call-tool", "other"]).run().stdout("other\n").code(0);
    story(&["call-tool", "web_search"]).run().stdout("found\n").code(0);
    let schema = "**Output Schema:**\n\n```json\n{\n  \"type\": \"object\",\n  \"properties\": {\n";
    story(&["list-tools", "files"]).run().stdout_has("### `measure`\n\n**Input Schema:**").stdout_has(schema).code(0);

    let gone =
        config.replace("version", "# One server is not there.\nversion") + "  gone: { type: stdio, command: /gone }\n";
    let run = story(&["list-tools"]).file("cpe.yaml", &gone).run().stdout("").code(3);
    run.stderr_has("MCP server 'gone' connection failed: \"/gone\" could not be started");
}

/// Runs calls that a model wrote, of which only those run that the config allows.
fn allowed(story: Rehearse, calls: &str) -> Run {
    let args = ["--xml", "calls.txt", "--max-calls", "9", "--approve", "never", "--naming", "server.tool"];
    story.file("calls.txt", calls).args(args).run()
}

#[test]
fn a_config_of_code_agent_is_used_as_documented() {
    let (_server, address) = guarded();
    let local = |more: &Json| {
        let mut server = json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "local.yaml"],
            "cwd": "below", "env": { "CITY": "${TEAM_CITY}" }, "timeout": 30000 });
        server.as_object_mut().zip(more.as_object()).map(|(all, more)| all.extend(more.clone())).expect("objects");
        server
    };
    let headers = json!({ "Authorization": "Bearer ${TEAM_TOKEN}" });
    let config = json!({ "mcp": { "enabled": true, "globalSettings": { "timeout": 30000, "debug": false }, "servers": {
        "trusted": local(&json!({ "trust": true })),
        "wary": local(&json!({ "excludeTools": ["measure"] })),
        "web": { "type": "http", "httpUrl": format!("http://{address}/mcp"), "headers": headers, "includeTools": ["*_search"] },
        "old": { "type": "sse", "url": format!("http://{address}/sse"), "headers": headers },
    } } });
    let story = |args: &[&str]| {
        let story = mcp(args.iter().copied()).file("below/local.yaml", LOCAL).env("TEAM_CITY", "Oslo");
        story.env("TEAM_TOKEN", "open-sesame-7391").file("home/.code_agent/config.json", &config.to_string())
    };
    let expected = [
        "trusted.where",
        "trusted.measure",
        "wary.where",
        "web.web_search",
        "web.image_search",
        "old.web_search",
        "old.image_search",
        "old.other",
    ];
    assert_eq!(tools(story(&["list-tools", "--naming", "server.tool"])), expected);
    let call = |name: &str| story(&["call-tool", name, "--naming", "server.tool"]).run().code(0);
    call("trusted.where").stdout("Oslo - -\n");
    call("web.web_search").stdout("found\n");
    call("old.other").stdout("other\n");
    let run =
        allowed(story(&["call-tool"]), "<trusted.where/>\n<wary.where/>\n<old.other/>").stdout("Oslo - -\n").code(1);
    run.stderr_has("the tool \"wary.where\" needs approval").stderr_has("the tool \"old.other\" needs approval");
}

#[test]
fn a_config_of_mcpilot_is_used_as_documented() {
    let local = |disabled: bool| {
        json!({ "command": Rehearse::BINARY, "args": ["mock", "local.yaml"], "env": { "CITY": "Oslo" },
            "disabled": disabled, "timeout": 60, "alwaysAllow": ["where"] })
    };
    let config = json!({ "mcpServers": { "one": local(false), "off": local(true) } }).to_string();
    let story = |args: &[&str]| {
        mcp(args.iter().copied())
            .args(["--mcp-config", "mcpilot.config.json"])
            .file("mcpilot.config.json", &config)
            .file("local.yaml", LOCAL)
    };
    assert_eq!(tools(story(&["list-tools"])), ["where", "measure"]);
    let run = allowed(story(&["call-tool"]), "<one.where/>\n<one.measure/>").stdout("Oslo - -\n").code(1);
    run.stderr_has("the tool \"one.measure\" needs approval");
}

#[test]
fn a_config_of_the_engine_is_used_as_documented() {
    let (_server, address) = guarded();
    let full = |name: &str, transport: &str, url: String| {
        json!({ "serverName": name, "transport": transport, "connection": { "url": url },
            "auth": { "type": "bearer", "token": "open-sesame-7391" } })
    };
    let config = json!({ "mcpServers": {
        "short": { "command": Rehearse::BINARY, "args": ["mock", "local.yaml"], "env": { "MCP_API_KEY": "k7" } },
        "events": full("events", "sse", format!("http://{address}/sse")),
        "socket": full("socket", "websocket", format!("ws://{address}/ws")),
        "gone": { "command": "/gone" },
    } });
    let call = |name: &str| {
        let story =
            mcp(["call-tool", name, "--naming", "server.tool", "--mcp-config", "c.json", "--dialect", "engine"]);
        story.file("c.json", &config.to_string()).file("local.yaml", LOCAL).run().code(0)
    };
    call("short.where").stdout("- - k7\n");
    call("events.other").stdout("other\n");
    call("socket.other").stdout("other\n");
}

#[test]
fn a_subagent_of_cpe_has_the_folder_the_variables_and_the_servers_of_its_config() {
    let model = "rules:\n- when: { prompt: { contains: wait } }\n  reply: { wait: 1m, text: late }\n\
                 - turns: [{ calls: [{ tool: where }, { tool: note }] }, '{{ prompt }} {{ results.where }} {{ results.note }}']\n";
    let local = |script: &str, env: &Json| json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", script], "env": env });
    let config = |model: &Json| {
        let config = json!({ "version": "1.0", "models": [model], "defaults": { "model": "m" },
            "subagent": { "name": "scout", "description": "Looks.", "timeout": "1s" }, "mcpServers": {
                "local": local("local.yaml", &json!({ "CITY": "Oslo" })), "notes": local("notes.yaml", &json!({})) } });
        config.to_string()
    };
    let scripted = json!({ "ref": "m", "display_name": "M", "id": "model.yaml", "type": "scripted" });
    let real = json!({ "ref": "m", "display_name": "M", "id": "claude", "type": "anthropic", "api_key_env": "NOBODY_HAS_SET_THIS" });
    let story = |args: &[&str]| {
        let story = mcp(args.iter().copied()).file("local.yaml", LOCAL).file("agents/model.yaml", model);
        let story = story.file("notes.yaml", "tools: [{ name: note, reply: noted }]").file("in.txt", "a file");
        let story = story.file("agents/scout.cpe.json", &config(&scripted)).file("real.cpe.json", &config(&real));
        story.env("CITY", "Bergen").env("AREA", "west")
    };
    let server = format!("{} mcp serve --quiet --config agents/scout.cpe.json", Rehearse::BINARY);
    let call = |arguments: &[&str]| story(&[&["call-tool", "scout", "--stdio", &server], arguments].concat()).run();
    call(&["prompt=Look:", "inputs=[\"in.txt\"]"]).stdout("Look:\na file Oslo west - noted\n").code(0);
    let late = "execution cancelled or timed out: subagent \"scout\" had 1s";
    call(&["prompt=wait"]).stdout_has(late).code(1);
    let run = story(&["serve", "--config", "real.cpe.json"]).run().stdout("").code(2);
    run.stderr_has("real.cpe.json:1:").stderr_has("API key missing: NOBODY_HAS_SET_THIS not set");
}
