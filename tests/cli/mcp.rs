//! `rehearse mcp`: configured servers, their tools, and tool calls.

use serde_json::{Value as Json, json};

use crate::{
    mcp_interrupts::shell,
    rehearse::{Rehearse, Running},
    terminal::Terminal,
};

const PAGE: &str = include_str!("../../docs/mcp-commands.md");
const TOKEN: &str = "ghp_0123456789abcdefABCD";

/// Tools with every kind of result: a text, a failure, data, content of every kind, and a long wait.
const TOOLS: &str = r#"
server: { name: tools, version: 1.0.0 }
instructions: Be kind.
tools:
  - name: echo
    description: Returns its input text.
    inputSchema: { type: object, properties: { text: { type: string }, n: { type: integer } }, required: [text] }
    reply: "{{ args.text }} {{ args.n | default('-') }}"
  - { name: fail, reply: { error: It never works. } }
  - { name: refuse, reply: { rpcError: { code: -31000, message: No such city, data: { city: Oslo } } } }
  - name: data
    outputSchema: { type: object, properties: { ok: { type: boolean } }, required: [ok] }
    reply: { structured: { ok: true } }
  - name: both
    reply: { result: { content: [{ type: text, text: Said. }], structuredContent: { n: 1.0 } } }
  - name: pictures
    reply:
      content:
        - { type: text, text: "plain \u001b[2J" }
        - { type: image, data: iVBORw0KGgo=, mimeType: image/png }
        - { type: image, data: iVBORw0KGgo=, mimeType: image/png }
        - { type: audio, data: UklGRg==, mimeType: audio/wav }
        - { type: resource, resource: { uri: "file:///b.bin", blob: AAEC } }
        - { type: resource_link, uri: "file:///b.txt", name: b }
  - { name: never, delay: 60s, reply: never }
  - name: ask
    steps:
      - elicit: { as: guest, message: Who?, requestedSchema: { type: object, properties: { name: { type: string } } } }
      - reply: "Hello {{ guest.content.name }}"
  - { name: env, reply: "{{ env.CITY | default('none') }}" }
"#;

/// On a machine without configs, in a folder with the script `tools.yaml`.
pub(crate) fn mcp<S: Into<String>>(args: impl IntoIterator<Item = S>) -> Rehearse {
    without_configs().args(["mcp"]).args(args)
}

fn without_configs() -> Rehearse {
    let unset = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODE_AGENT_MCP_SERVERS", "CODE_AGENT_MCP_CONFIG_PATH"];
    let story = unset.into_iter().fold(Rehearse::new(), |story, name| story.env(name, ""));
    story.env("HOME", "home").file("tools.yaml", TOOLS)
}

/// The options for this script as a server on stdio.
pub(crate) fn stdio(script: &str) -> [String; 2] {
    ["--stdio".to_owned(), format!("{} mock {script}", Rehearse::BINARY)]
}

/// A config with these servers.
fn config(servers: &Json) -> String {
    json!({ "mcpServers": servers }).to_string()
}

fn mock(script: &str) -> Json {
    json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", script] })
}

pub(crate) fn json_of(story: Rehearse, code: i32) -> Json {
    serde_json::from_str(story.args(["--format", "json"]).run().code(code).stdout_text()).expect("JSON")
}

/// A listening mock and its address.
pub(crate) fn listening(script: &str) -> (Running, String) {
    let story =
        Rehearse::new().file("tools.yaml", TOOLS).args(["mock", script, "--listen", "127.0.0.1:0", "--verbose"]);
    let mut running = story.start();
    let address = running.address("http://", "/mcp");
    (running, address)
}

#[test]
fn servers_are_listed_without_their_secrets() {
    let servers = json!({
        "files": { "command": "npx", "args": ["-y", "files", "--token", "geheim1234"], "env": { "CITY": "Oslo", "TOKEN": TOKEN } },
        "web": { "type": "http", "url": "https://a.example/mcp?token=geheim1234", "headers": { "Authorization": format!("Bearer {TOKEN}") } },
    });
    let story = |args: &[&str]| mcp(["list-servers"]).args(args.iter().copied()).file(".mcp.json", &config(&servers));
    story(&[])
        .run()
        .stdout(
            "\
Configured MCP Servers:
- files (Type: stdio, Timeout: 60s)
  Command: npx -y files --token ***
  Environment Variables:
    CITY=Oslo
    TOKEN=***
- web (Type: http, Timeout: 60s)
  URL: https://a.example/mcp?token=***
  Headers:
    Authorization: Bearer ***
",
        )
        .code(0);
    story(&["--show-secrets"]).run().stdout_has("geheim1234\n").stdout_has(&format!("TOKEN={TOKEN}"));
    let listed = json_of(story(&[]), 0);
    assert_eq!(listed["servers"][0]["args"], json!(["-y", "files", "--token", "***"]));
    assert_eq!(listed["servers"][0]["origin"], ".mcp.json:1:16");
    assert_eq!(listed["servers"][1]["headers"], json!({ "Authorization": "Bearer ***" }));
    // In the other place, only its value identifies it as a secret.
    let secret = "Zq7kd83hfDk29sk";
    let again = json!({
        "a": { "command": "npx", "args": [format!("--x={secret}")], "env": { "TOKEN": secret, format!("TOKEN={secret}"): "1" } },
    });
    for format in ["human", "json"] {
        let run = mcp(["list-servers", "--format", format]).file(".mcp.json", &config(&again)).run();
        let run = run.stdout_has("--x=***").stdout_has("TOKEN=***").code(0);
        assert!(!run.stdout_text().contains(secret), "{}", run.stdout_text());
    }
    mcp(["ls-servers"]).run().stdout("No MCP servers configured.\n").code(4);
    let none = mcp(["ls-servers", "--mcp-config", "cpe.yaml"]).file("cpe.yaml", "mcpServers: {}");
    none.run().stdout("No MCP servers configured.\n").code(0);
    mcp(["ls-servers", "--dialect", "cpe"]).run().stdout("No MCP servers configured.\n").code(0);
    mcp(["list-servers", "--http", "http://u:geheim1234@h/"]).run().stdout_has("URL: http://u:***@h/");
}

#[test]
fn the_information_of_a_server_is_printed() {
    let story = |args: &[&str]| mcp(["info"]).args(args.iter().copied()).args(stdio("tools.yaml"));
    story(&["--protocol", "2025-06-18"])
        .run()
        .stdout(
            "\
Connected to server: rehearse
  Name: tools 1.0.0
  Protocol: 2025-06-18
  Capabilities: tools
    {
      \"tools\": {}
    }

Instructions:
Be kind.
",
        )
        .code(0);
    let info = json_of(story(&[]), 0);
    assert_eq!((&info["protocolVersion"], &info["transport"]), (&json!("2026-07-28"), &json!("stdio")));
    assert_eq!(info["serverInfo"]["name"], "tools");
}

#[test]
fn tools_are_listed_as_markdown_including_filtered_ones() {
    let cpe = format!(
        "version: \"1.0\"\nmcpServers:\n  t:\n    type: stdio\n    command: {}\n    args: [mock, two.yaml]\n    disabledTools: [b]\n",
        Rehearse::BINARY
    );
    let two = "tools: [{ name: a, description: First., reply: x }, { name: b, reply: x }]";
    let story = |args: &[&str]| {
        mcp(["list-tools", "t"]).args(args.iter().copied()).file("two.yaml", two).file("cpe.yaml", &cpe)
    };
    let schema = "**Input Schema:**\n\n```json\n{\n  \"type\": \"object\"\n}\n```\n";
    let stats = "**Filter mode:** `blacklist` | **Disabled tools:** `b`\n**Total tools:** 2 | **Available:** 1 | **Filtered out:** 1\n";
    let run = story(&[]).run().code(0);
    let expected = format!("# Available tools on server 't'\n\n{stats}\n### `a`\nFirst.\n\n{schema}\n");
    run.stdout(&expected).stderr_has("info: the filter of server 't' excludes b\n");
    let all = format!(
        "# All tools on server 't' (including filtered)\n\n{stats}\n### `a`\nFirst.\n\n{schema}\n### `b` 🚫 *filtered*\n\n{schema}\n"
    );
    story(&["--show-all"]).run().stdout(&all).code(0);
    story(&["--show-all", "--show-filtered"]).run().stdout(&all).code(0);
    let filtered = format!("# Filtered-out tools on server 't'\n\n{stats}\n### `b`\n\n{schema}\n");
    story(&["--show-filtered"]).run().stdout(&filtered).code(0);
    let run = mcp(["ls-tools", "--show-filtered", "--long"]).args(stdio("tools.yaml")).run();
    run.stdout_has("**Filter mode:** `all`").stdout_has("*No tools to display.*\n").code(0);
    mcp(["ls-tools", "--show-filtered"])
        .args(stdio("tools.yaml"))
        .run()
        .stdout("rehearse: 9 tools\n  no tools\n")
        .code(0);

    let listed = json_of(story(&["--show-all"]), 0);
    let server = &listed["servers"][0];
    assert_eq!((&server["total"], &server["filteredOut"]), (&json!(2), &json!(1)));
    assert_eq!((&server["tools"][1]["filtered"], &server["tools"][1]["registeredAs"]), (&json!(true), &Json::Null));
    assert_eq!(server["tools"][0]["definition"]["description"], "First.");
    story(&["--json"]).run().stdout_has("\"filterMode\": \"blacklist\"").code(0);
}

/// A tool with a long description in Markdown, and one with a long name.
const DESCRIBED: &str = r#"
tools:
  - name: read
    description: "Reads **one** file of the folder that `root` names, with its lines and columns as they are. Else it fails."
    reply: x
  - { name: a_name_that_is_longer_than_the_column, description: "It [links](https://d.example).", reply: x }
"#;

#[test]
fn an_overview_has_the_first_sentence_of_each_tool() {
    let story = || mcp(["list-tools"]).args(stdio("long.yaml")).file("long.yaml", DESCRIBED);
    let expected = "\
rehearse: 2 tools
  read  Reads **one** file of the folder that `root` names, with its lines and
        columns as they are.
  a_name_that_is_longer_than_the_column
        It [links](https://d.example).
";
    story().run().stdout(expected).code(0);
    let mut terminal = Terminal::start(story());
    terminal.shows("Reads one file of the folder that root names").shows("It links (https://d.example).");
    terminal.end(0);
}

#[test]
fn tools_are_grouped_by_what_they_may_do() {
    let tool = |name: &str, hint: &str| format!("- {{ name: {name}, reply: done, annotations: {{ {hint} }} }}\n");
    let tools = tool("erase", "destructiveHint: true") + &tool("say", "") + &tool("look", "readOnlyHint: true");
    let script = format!("tools:\n{tools}{}", tool("add", "destructiveHint: false"));
    let story =
        |args: &[&str]| mcp(["list-tools"]).args(args.iter().copied()).args(stdio("t.yaml")).file("t.yaml", &script);
    story(&["--by-effect"]).run().code(0).stdout(
        "rehearse: 4 tools\n only read:\n  look\n add, and delete nothing:\n  add\n may delete or overwrite:\n  \
         erase\n the server does not say what they do:\n  say\n",
    );
    let tools = &json_of(story(&[]), 0)["servers"][0]["tools"];
    let effects: Vec<_> = tools.as_array().expect("tools").iter().map(|tool| tool["effect"].as_str()).collect();
    assert_eq!(effects, [Some("destructive"), Some("unknown"), Some("read-only"), Some("additive")]);
}

#[test]
fn the_record_of_a_tool_says_whether_its_calls_are_always_allowed() {
    let server =
        |key: &str, value: Json| json!({ "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"], key: value });
    let config = json!({ "mcpServers": { "one": server("alwaysAllow", json!(["echo"])) } }).to_string();
    let story = mcp(["list-tools", "--mcp-config", "mcpilot.config.json"]);
    let tools = json_of(story.file("mcpilot.config.json", &config), 0)["servers"][0]["tools"].clone();
    assert_eq!(tools[0]["type"], "mcp");
    assert_eq!(
        (&tools[0]["name"], &tools[0]["alwaysAllow"], &tools[1]["alwaysAllow"]),
        (&json!("echo"), &json!(true), &json!(false))
    );
}

#[test]
fn the_status_counts_tools_as_their_list_does() {
    let config = json!({ "mcpServers": { "one": mock("tools.yaml"), "two": mock("tools.yaml") } }).to_string();
    let story = |command: &str| {
        json_of(mcp([command, "--mcp-config", "c.json", "--dialect", "engine"]).file("c.json", &config), 0)
    };
    let counts = |listed: &Json, key: &str| [0, 1].map(|server| listed["servers"][server][key].clone());
    assert_eq!(counts(&story("list-tools"), "available"), [json!(0), json!(9)]);
    assert_eq!(counts(&story("status"), "tools"), [json!(0), json!(9)]);
}

#[test]
fn problems_with_tools_are_reported_on_stderr() {
    let servers =
        config(&json!({ "one": mock("tools.yaml"), "two": mock("tools.yaml"), "gone": { "command": "/gone" } }));
    let story = |args: &[&str]| mcp(["list-tools"]).args(args.iter().copied()).file(".mcp.json", &servers);
    let run = story(&["--naming", "bare"]).run().code(0);
    run.stdout_has("one: 9 tools\n  echo      Returns its input text.\n")
        .stdout_has("two: 9 tools, 9 not callable\n")
        .stderr_has("warning: MCP server 'gone' connection failed: \"/gone\" could not be started")
        .stderr_has("info: continuing with other MCP servers\n")
        .stderr_has(
            "warning: skipping duplicate tool name 'echo' in server 'two' (already registered from server 'one')\n",
        );
    let listed = json_of(story(&["--naming", "bare", "--duplicates", "qualify"]), 0);
    assert_eq!(listed["servers"][1]["tools"][0]["registeredAs"], "two__echo");
    assert_eq!(listed["unreachable"][0]["server"], "gone");
    let run = story(&["--naming", "bare", "--duplicates", "reject"]).run().stdout("");
    run.stderr_has("duplicate tool name \"echo\": found in both \"one\" and \"two\"").code(2);
    story(&["--long"]).run().stdout_has("**Called:** `mcp__two__echo`").code(0);
    story(&[]).run().stdout_has("  mcp__two__echo      Returns its input text.\n").code(0);
    story(&["--on-connect-error", "fail"]).run().stdout("").stderr_has("MCP server 'gone' connection failed").code(3);
    mcp(["list-tools"]).run().stderr_has("No MCP servers configured.").code(4);
}

#[test]
fn a_call_prints_what_the_tool_returns() {
    let call = |args: &[&str]| mcp(["call-tool"]).args(args.iter().copied()).args(stdio("tools.yaml"));
    call(&["echo", "text=5", "n=7"]).run().stdout("5 7\n").code(0);
    call(&["--tool", "echo", "--args", r#"{"text": "a"}"#, "n=1"]).run().stdout("a 1\n").code(0);
    call(&["echo", "-"]).stdin(r#"{"text": "b"}"#).run().stdout("b -\n").code(0);
    call(&["echo", "text=@text.txt"]).file("text.txt", "from a file").run().stdout("from a file -\n").code(0);
    call(&["data"]).run().stdout("{\n  \"ok\": true\n}\n").code(0);
    call(&["both"]).run().stdout("Said.\n{\n  \"n\": 1.0\n}\n").code(0);
    call(&["ask", "--answer", "a.yaml"])
        .file("a.yaml", "elicitation: { content: { name: Ada } }")
        .run()
        .stdout("Hello Ada\n");

    let called = json_of(call(&["echo", "text=a"]), 0);
    assert_eq!((&called["tool"], &called["isError"]), (&json!("echo"), &json!(false)));
    assert_eq!(called["result"]["content"][0]["text"], "a -");
}

#[test]
fn a_failed_call_exits_with_1_and_wrong_usage_with_2() {
    let call = |args: &[&str]| mcp(["call-tool"]).args(args.iter().copied()).args(stdio("tools.yaml"));
    let run = call(&["fail"]).run().stdout("It never works.\n");
    run.stderr_has("error: the tool fail reported an error").code(1);
    let run = call(&["refuse"]).run().stdout("");
    run.stderr_has("error: rpc: error -31000: No such city\n  data: {\"city\":\"Oslo\"}\n").code(1);
    let run = call(&["ecko", "text=a"]).run();
    run.stderr_has("info: server 'rehearse' lists no tool \"ecko\"; did you mean \"echo\"?\n")
        .stderr_has("-32602")
        .code(1);
    call(&["never", "--timeout", "3s"]).run().stderr_has("error: timeout: no answer within 3s").code(1);
    let unanswered = call(&["ask", "--protocol", "2026-07-28"]).run().stderr_has("-32021: The client does not declare");
    unanswered.stderr_has("hint: use --answer FILE to answer the server").code(1);
    call(&["ask", "--protocol", "2025-11-25"]).run().stdout_has("does not declare the capability elicitation").code(1);
    let failed = json_of(call(&["refuse"]), 1);
    assert_eq!(failed["failure"]["code"], -31000);
    assert_eq!(json_of(call(&["fail"]), 1)["isError"], true);

    call(&[]).run().stderr_has("error: --tool is required").code(2);
    call(&["echo", "n=x"]).run().stderr_has("error: n: expected the type integer, found \"x\"").code(2);
    call(&["echo", "text"]).run().stderr_has("\"text\" is not an argument").code(2);
    call(&["echo", "--args", "[]"]).run().stderr_has("error: invalid tool arguments JSON: ").code(2);
    call(&["echo", "--answer", "gone.yaml"]).run().stderr_has("cannot read the answers gone.yaml").code(2);
    call(&["echo", "--answer", "a.yaml"])
        .file("a.yaml", "elicit: []")
        .run()
        .stderr_has("did you mean `elicitation`?")
        .code(2);
    call(&["echo", "--protocol", "2020-01-01"]).run().stderr_has("unknown protocol").code(2);
    call(&["echo", "--header", "A: b"]).run().stderr_has("--http").code(2);
    call(&["echo", "--mcp-config", "x"]).run().stderr_has("cannot be used with").code(2);
    mcp(["call-tool", "x", "--stdio", "a 'b"]).run().stderr_has("the command has an unclosed '").code(2);
    mcp(["call-tool", "x", "--http", "http://127.0.0.1:1/mcp"]).run().stderr_has("cannot reach").code(3);
    mcp(["call-tool", "x", "--stdio", "false"])
        .run()
        .stderr_has("the server closed the connection during the handshake")
        .code(3);
    mcp(["info", "--sse", "http://127.0.0.1:1/sse", "--protocol", "2026-07-28"])
        .run()
        .stderr_has("does not exist")
        .code(2);
}

#[test]
fn binary_content_is_saved_or_described() {
    let call = |args: &[&str]| mcp(["call-tool", "pictures"]).args(args.iter().copied()).args(stdio("tools.yaml"));
    let named = "[image/png, 8 bytes; --output saves it]\n";
    call(&[])
        .run()
        .stdout_has(&format!("{named}{named}[audio/wav, 4 bytes; --output saves it]\n[resource file:///b.bin]\n"))
        .stdout_has("[application/octet-stream, 3 bytes; --output saves it]\n[link to b: file:///b.txt]\n")
        .code(0);
    let run = call(&["--output", "out/"]).run().stdout_has("[image/png, 8 bytes; saved as out/pictures-2.png]").code(0);
    assert_eq!(std::fs::read(run.path("out/pictures.png")).expect("saved"), b"\x89PNG\r\n\x1a\n");
    assert_eq!(std::fs::read(run.path("out/b.bin")).expect("saved"), [0, 1, 2]);
    assert!(run.stderr().contains("info: saved out/pictures.png, out/pictures-2.png, out/pictures.wav, out/b.bin\n"));
    let run = call(&["--output", "one.png", "--json"]).file("one-2.png", "from before").run().code(0);
    let printed: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    assert_eq!(printed["saved"], json!(["one.png", "one-2.png", "one-3.png", "one-4.png"]));
    assert_eq!(std::fs::read(run.path("one-2.png")).expect("saved"), b"\x89PNG\r\n\x1a\n");
    run.stderr_has("info: saved one.png, one-2.png, one-3.png, one-4.png\n");
    let twice = ["call-tool", "--xml", "m.txt", "--max-calls", "2", "--naming", "bare", "-o", "two.png"];
    let story = mcp(twice).args(stdio("tools.yaml")).file("m.txt", "<pictures/>\n<pictures/>");
    story.run().stderr_has("saved two-5.png, two-6.png, two-7.png, two-8.png\n").code(0);
    call(&["--output", "tools.yaml/x"]).run().stderr_has("cannot write tools.yaml/x").code(3);
}

#[test]
fn a_tool_is_found_by_its_original_or_registered_name() {
    let two = "tools: [{ name: other, reply: other }, { name: echo, reply: second }]";
    let servers = json!({ "one": mock("tools.yaml"), "two": mock("two.yaml") });
    let call = |args: &[&str]| {
        mcp(["call-tool"]).args(args.iter().copied()).file(".mcp.json", &config(&servers)).file("two.yaml", two)
    };
    call(&["other"]).run().stdout("other\n").code(0);
    call(&["mcp__two__echo"]).run().stdout("second\n").code(0);
    call(&["echo", "--server", "two"]).run().stdout("second\n").code(0);
    call(&["echo", "--naming", "bare", "text=a"]).run().stdout("a -\n").stderr_has("").code(0);
    call(&["echo"])
        .run()
        .stdout("")
        .stderr_has("several servers have a tool \"echo\"; select one with --server: one, two")
        .code(2);
    call(&["othe"]).run().stdout("").stderr_has("no server has a tool \"othe\"; did you mean \"other\"?").code(2);
    call(&["echo", "--server", "twoo"])
        .run()
        .stderr_has("error: server 'twoo' not found in configuration; did you mean 'two'?")
        .code(2);
    mcp(["info", "x"]).run().stderr_has("error: no MCP servers configured").code(2);
    call(&[]).run().code(2);
    let gone = json!({ "one": mock("tools.yaml"), "gone": { "command": "/gone" } });
    let run = mcp(["call-tool", "other"]).file(".mcp.json", &config(&gone)).run().stdout("");
    run.stderr_has("error: no reachable server has a tool \"other\"").code(3);
    let filtered = format!(
        "version: \"1.0\"\nmcpServers: {{ t: {{ type: stdio, command: {}, args: [mock, two.yaml], enabledTools: [echo] }} }}\n",
        Rehearse::BINARY
    );
    let run = mcp(["call-tool", "other"]).file("cpe.yaml", &filtered).file("two.yaml", two).run();
    run.stdout("").stderr_has("the filter of server 't' excludes the tool \"other\"").code(2);
}

#[test]
fn a_server_without_a_config_is_reached_over_every_transport() {
    let (running, address) = listening("tools.yaml");
    for (flag, scheme, path) in [("--http", "http", "/mcp"), ("--sse", "http", "/sse"), ("--ws", "ws", "/ws")] {
        let url = format!("{scheme}://{address}{path}");
        mcp(["call-tool", "echo", "text=a", flag, &url]).run().stdout("a -\n").code(0);
        let info = json_of(mcp(["info", flag, &url, "--protocol", "2025-11-25"]).file("x", ""), 0);
        if flag != "--sse" {
            assert_eq!(info["protocolVersion"], "2025-11-25");
        }
        assert_eq!(info["server"], "127.0.0.1");
    }
    drop(running);
    mcp(["call-tool", "env", "--env", "CITY=Oslo"]).args(stdio("tools.yaml")).run().stdout("Oslo\n").code(0);
}

#[test]
fn a_token_is_sent_to_the_server_and_never_printed() {
    // It does not look like a token.
    const WORD: &str = "open-sesame";
    let script = format!(
        "auth: {{ tokens: [{{ token: {WORD} }}] }}\ntools: [{{ name: reveal, reply: 'It is {WORD}' }}, \
         {{ name: refuse, reply: {{ rpcError: {{ code: 1, message: 'not {WORD}' }} }} }}]"
    );
    let story = Rehearse::new().file("m.yaml", &script).args(["mock", "m.yaml", "--listen", "127.0.0.1:0"]);
    let mut running = story.start();
    let url = format!("http://{}/mcp", running.address("http://", "/mcp"));
    let header = format!("Authorization: Bearer {WORD}");
    let call = |tool: &str| mcp(["call-tool", tool, "--http", &*url, "--header", &*header]);
    mcp(["call-tool", "reveal", "--http", &url]).run().stderr_has("requires authorization: ").code(3);
    let traced = || call("reveal").args(["password=hunter22", "--trace"]);
    let run = traced().run().stdout("It is open-sesame\n").stderr_has("It is ***").code(0);
    assert!(run.stderr().contains("\"password\":\"***\""), "{}", run.stderr());
    assert!(!run.stderr().contains(WORD) && !run.stderr().contains("hunter22"), "{}", run.stderr());
    traced().args(["--show-secrets"]).run().stderr_has("It is open-sesame").stderr_has("hunter22");
    call("refuse").run().stderr_has("error: rpc: error 1: not ***\n").code(1);
    assert_eq!(json_of(call("refuse"), 1)["failure"]["message"], "not ***");
}

#[test]
fn the_trace_has_every_frame_on_a_line_with_its_direction_and_time() {
    let story = |args: &[&str]| {
        mcp(["call-tool", "echo", "text=a", "--trace", "--protocol", "2025-11-25"])
            .args(args.iter().copied())
            .args(stdio("tools.yaml"))
    };
    let run = story(&[]).run().stdout("a -\n").coloured(false).code(0);
    let methods = ["initialize", "notifications/initialized", "tools/list", "tools/call"];
    let sent: Vec<_> = run.stderr().lines().filter(|line| line.contains(" ms → {")).collect();
    assert_eq!(sent.len(), methods.len(), "{}", run.stderr());
    for (line, method) in sent.iter().zip(methods) {
        assert!(line.contains(&format!("\"method\":\"{method}\"")), "{line}");
    }
    assert_eq!(run.stderr().lines().filter(|line| line.contains(" ms ← {")).count(), 3, "{}", run.stderr());
    let chatty = mcp(["ping", "--trace"]).args(shell("echo hello >&2; $MOCK")).run().code(0);
    assert!(chatty.stderr().contains("stderr: hello"), "{}", chatty.stderr());
    story(&[]).env("CLICOLOR_FORCE", "1").run().coloured(true);

    // The command ends before the list of the server changes.
    let changing =
        "tools: [{ name: t, steps: [{ enable: { tool: u } }, { reply: x }] }, { name: u, enabled: false, reply: x }]";
    let run = mcp(["call-tool", "t", "--trace"]).args(stdio("c.yaml")).file("c.yaml", changing).run().stdout("x\n");
    assert!(run.stderr().contains("\"listChanged\":true"), "{}", run.stderr());
    assert!(!run.stderr().contains("subscriptions/listen"), "{}", run.stderr());
}

#[test]
fn the_trace_has_http_messages_without_secrets() {
    let script = "auth: { tokens: [{ token: open-sesame }] }\ntools: [{ name: t, reply: x }]";
    let story = Rehearse::new().file("m.yaml", script).args(["mock", "m.yaml", "--listen", "127.0.0.1:0"]);
    let mut running = story.start();
    let address = running.address("http://", "/mcp");
    let call = |flag: &str, url: &str, protocol: &str| {
        let own = ["Authorization: Bearer open-sesame", "X-Api-Key: hush", "Cookie: a=hush", "X-Plain: seen"];
        let own = own.into_iter().flat_map(|header| ["--header", header]);
        mcp(["call-tool", "t", "--trace", flag, url, "--protocol", protocol]).args(own)
    };
    let url = format!("http://{address}/mcp?api_key=hush&x=1");
    let run = call("--http", &url, "2025-11-25").run().stdout("x\n").code(0);
    let http: Vec<_> = run.stderr().lines().filter_map(|line| line.split_once(" ms ")).map(|(_, line)| line).collect();
    let starts = ["→ HTTP POST /mcp?api_key=***&x=1 | ", "→ {", "← HTTP 200 OK | content-type: application/json"];
    for (line, start) in http.iter().zip(starts) {
        assert!(line.starts_with(start), "{}", run.stderr());
    }
    let run =
        run.stderr_has("| authorization: Bearer *** ").stderr_has("| x-api-key: *** ").stderr_has("| cookie: *** ");
    let run = run.stderr_has("| x-plain: seen").stderr_has("→ HTTP DELETE /mcp").stderr_has("mcp-session-id: ");
    assert!(!run.stderr().contains("sesame") && !run.stderr().contains("hush"), "{}", run.stderr());
    call("--http", &url, "2025-11-25")
        .args(["--show-secrets"])
        .run()
        .stderr_has("x-api-key: hush")
        .stderr_has("sesame");
    call("--http", &url, "2026-07-28").run().stderr_has("| mcp-method: tools/call | mcp-name: t").code(0);
    let run = call("--sse", &format!("http://{address}/sse"), "2025-11-25").run().stdout("x\n").code(0);
    run.stderr_has("→ HTTP GET /sse | ")
        .stderr_has("content-type: text/event-stream")
        .stderr_has("← HTTP 202 Accepted");
    let run = call("--ws", &format!("ws://{address}/ws"), "2025-11-25").run().stdout("x\n").code(0);
    run.stderr_has("→ HTTP GET /ws | ").stderr_has("← HTTP 101 Switching Protocols | ").stderr_has("Bearer ***");

    // An error is printed with the response of the server, on standard error only.
    let run = mcp(["info", "--trace", "--http", &url]).run().code(3);
    run.stderr_has("← HTTP 401 Unauthorized | ").stderr_has("| www-authenticate: Bearer resource_metadata=");
    let run = call("--http", &format!("http://{address}/other"), "2025-11-25").run().code(3);
    run.stderr_has("← HTTP 404 Not Found | content-type: application/json\n").stderr_has("← {\"jsonrpc\"");
    assert_eq!(json_of(call("--http", &url, "2025-11-25"), 0)["isError"], false);
}

#[test]
fn a_wrong_config_is_reported_with_its_location() {
    let run = mcp(["info", "--mcp-config", "gone.json"]).run();
    run.stderr_has("cannot read the config gone.json, which --mcp-config names").code(2);
    let broken = mcp(["list-tools", "--mcp-config", "b.json"]).file("b.json", "{\"mcpServers\": ");
    broken.run().stderr_has("b.json:1:").code(2);
    let servers = config(&json!({ "s": { "type": "stdio" }, "good": mock("tools.yaml") }));
    let wrong = |args: &[&str]| mcp(args.iter().copied()).file(".mcp.json", &servers);
    wrong(&["info", "s"]).run().stderr_has(".mcp.json:1:").stderr_has("command").code(2);
    wrong(&["list-tools", "--mcp-config", ".mcp.json"]).run().stdout("").stderr_has("command").code(2);
    let run = wrong(&["call-tool", "echo", "text=a"]).run().stdout("a -\n");
    run.stderr_has("warning: MCP server 's' is ignored: .mcp.json:1:").code(0);
    let unset =
        r#"{"mcp": {"servers": {"s": {"type": "stdio", "command": "x", "env": {"A": "${NOBODY_HAS_SET_THIS}"}}}}}"#;
    let run = mcp(["info", "--dialect", "code_agent", "--mcp-config", "c.json"]).file("c.json", unset).run();
    run.stderr_has("c.json:1:").stderr_has("${NOBODY_HAS_SET_THIS}").code(2);
    let off = r#"{"mcp": {"servers": {"s": {"type": "stdio", "command": "x"}}, "enabled": false}}"#;
    let run = mcp(["info", "s", "--dialect", "code_agent", "--mcp-config", "c.json"]).file("c.json", off).run();
    run.stderr_has("error: the server \"s\" is disabled in c.json:1:").code(2);
}

#[test]
fn every_command_has_examples() {
    let commands = [
        "list-servers",
        "info",
        "list-tools",
        "call-tool",
        "app",
        "list-resources",
        "list-resource-templates",
        "read-resource",
        "list-prompts",
        "get-prompt",
        "complete",
        "status",
        "ping",
        "auth",
    ];
    let run = mcp(["--help"]).run().stdout_has("Examples:").stdout_has("Exit codes:").code(0);
    for command in commands {
        assert!(run.stdout_text().contains(&format!("\n  {command} ")), "{command}");
        mcp([command, "--help"]).run().stdout_has(&format!("Examples:\n  rehearse mcp {command}")).code(0);
    }
}

#[test]
fn every_command_of_the_page_has_the_shown_output() {
    assert_eq!(commands_of(PAGE), 8);
    // The config of the first page.
    let config = PAGE.split_once("```json .mcp.json\n").and_then(|(_, rest)| rest.split("```").next());
    let config = config.expect("a config").to_owned();
    assert_eq!(commands_with(include_str!("../../docs/oauth.md"), &[(".mcp.json".to_owned(), config)]), 3);
}

/// Runs the commands of a page and compares their output with the page. Returns the number of commands.
pub(crate) fn commands_of(page: &str) -> usize {
    commands_with(page, &[])
}

/// As [`commands_of`], with these files beside those of the page.
pub(crate) fn commands_with(page: &str, more: &[(String, String)]) -> usize {
    let blocks: Vec<_> = page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect();
    let files = blocks.iter().filter_map(|(info, text)| Some((info.split_once(' ')?.1, *text)));
    let files: Vec<_> = files.filter(|(name, _)| name.contains('.')).collect();
    let folder = Rehearse::BINARY.strip_suffix("/rehearse").expect("a folder");
    let path = format!("{folder}:{}", std::env::var("PATH").expect("a path"));
    let path: &'static str = path.leak();
    let mut commands = 0;
    for (_, console) in blocks.iter().filter(|(info, _)| *info == "console") {
        for command in console.split("$ ").skip(1) {
            let (command, expected) = command.split_once('\n').expect("a command has an output");
            let redirect = if command.contains("2>") { "" } else { " 2>&1" };
            let story = without_configs().program("sh").args(["-c", &format!("{command}{redirect}")]);
            let story = more.iter().fold(story.env("PATH", path), |story, (name, text)| story.file(name, text));
            let story = files.iter().fold(story, |story, (name, text)| story.file(name, text));
            story.run().stdout(&format!("{}\n", expected.trim_end()));
            commands += 1;
        }
    }
    commands
}
