//! `rehearse mcp` with listening servers, traces and a terminal. The rest is in `tests/console/mcp.md`.

use serde_json::Value as Json;

use crate::{
    mcp_interrupts::shell,
    rehearse::{Rehearse, Running},
    terminal::Terminal,
};

const PAGE: &str = include_str!("../../docs/mcp-commands.md");

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
fn every_command_of_the_page_has_the_shown_output() {
    assert_eq!(commands_of(PAGE), 8);
    assert_eq!(commands_of(include_str!("../../docs/results.md")), 1);
    assert_eq!(commands_of(include_str!("../../docs/llm.md")), 1);
    let scenario =
        "```console\n$ rehearse run scenario.yaml | tail -n 1 | cut -d ' ' -f 4-9\n1 scenario, 1 cell: 1 passed\n```\n";
    assert_eq!(commands_of(&format!("{}\n{scenario}", include_str!("../../docs/final-answer.md"))), 4);
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
