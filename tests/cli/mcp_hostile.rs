//! `rehearse mcp` with hostile servers and unusable input.

use std::{
    io::Read,
    net::TcpListener,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    mcp::{json_of, listening, mcp, stdio},
    mcp_interrupts::shell,
    orphans::{gone, started},
    rehearse::Rehearse,
};

pub(crate) const INITIALIZED: (&str, &str) = (
    "initialize",
    r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}"#,
);
const TOOLS: (&str, &str) = (
    "tools/list",
    r#""result":{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"id":{"type":"integer"}}}}]}"#,
);
pub(crate) const FAILS: (&str, &str) = ("tools/list", r#""error":{"code":-32603,"message":"list broke"}"#);

/// A server as a shell script, which answers these methods with these members.
pub(crate) fn server(answers: &[(&str, &str)]) -> String {
    let mut cases = String::new();
    for (method, members) in answers {
        cases.push_str(&format!("*'\"{method}\"'*) answer '{members}';;\n"));
    }
    format!(
        r#"
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
while read -r line; do
  case "$line" in *'"id":'*) ;; *) continue;; esac
  id=${{line##*\"id\":}}; id=${{id%%[,\}}]*}}
  case "$line" in
  {cases}*) answer '"error":{{"code":-32601,"message":"Method not found"}}';;
  esac
done
"#
    )
}

/// A command with such a server.
fn with(answers: &[(&str, &str)], args: &[&str]) -> Rehearse {
    mcp(args.iter().copied()).file("server.sh", &server(answers)).args(["--stdio", "sh server.sh"])
}

#[test]
fn a_timeout_ends_a_server_that_writes_forever() {
    for protocol in ["auto", "2025-11-25"] {
        let run = mcp(["info", "--stdio", "yes", "--start-timeout", "1s", "--protocol", protocol]).run();
        run.stdout("").stderr_has("no answer within 1s of its start").code(3);
    }
}

#[test]
fn any_number_of_lines_before_the_handshake_is_ignored() {
    let noisy = shell("yes loading | head -n 20000; exec $MOCK");
    let run = mcp(["call-tool", "echo", "text=a", "--protocol", "2025-11-25"]).args(noisy).run();
    run.stdout("a -\n").stderr_has("sent unexpected output: not JSON").code(0);
}

#[test]
fn a_result_that_cannot_be_written_is_not_a_success() {
    for command in [&["call-tool", "echo", "text=a"][..], &["list-tools", "--format", "json"], &["info"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("opens");
        let status = mcp(command.iter().copied()).args(stdio("tools.yaml")).status(Stdio::null(), full);
        assert_eq!(status.code(), Some(3), "{command:?}");
    }
}

#[test]
fn a_command_with_unread_output_ends_by_signals() {
    let script = format!("tools: [{{ name: t, reply: {:?} }}]", "x".repeat(1 << 20));
    let story = mcp(["call-tool", "t"]).file("large.yaml", &script).args(stdio("large.yaml"));
    let mut command = story.command();
    let mut process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    let mut unread = process.stdout.take().expect("a pipe");
    unread.read_exact(&mut [0]).expect("the result has begun");
    // One of two equal signals may be lost.
    for signal in ["INT", "TERM"] {
        assert!(Command::new("kill").args(["-s", signal, &process.id().to_string()]).status().expect("runs").success());
    }
    assert_eq!(process.wait().expect("ends").code(), Some(3));
}

#[test]
fn a_rejected_config_is_an_error_only_if_it_was_named() {
    let good = format!(r#"{{"mcpServers":{{"good":{{"command":{:?},"args":["mock","basic"]}}}}}}"#, Rehearse::BINARY);
    for (text, place) in [
        (r#"{ "mcpServers": {"#.to_owned(), ".mcp.json:1:"),
        (good.replace(r#","args""#, r#" "args""#), ".mcp.json:1:"),
        (good.replace("mcpServers", "mcpservers"), ".mcp.json:1:"),
        ("[]".to_owned(), ".mcp.json:1:"),
    ] {
        for command in ["list-servers", "status"] {
            let story = || mcp([command]).file(".mcp.json", &text).file(".cursor/mcp.json", &good);
            let run = story().args(["--mcp-config", ".mcp.json"]).run();
            run.stdout("").stderr_has(place).code(2);
            let run = story().run();
            run.stdout_has("good").stderr_has("warning: .mcp.json").code(0);
        }
    }
}

/// A config with such servers.
fn servers(scripts: &[&str]) -> String {
    let server = |script: &&str| ((*script).to_owned(), json!({ "command": "sh", "args": [script] }));
    json!({ "mcpServers": scripts.iter().map(server).collect::<serde_json::Map<_, _>>() }).to_string()
}

#[test]
fn tools_that_cannot_be_listed_are_always_reported() {
    let story = |args: &[&str], scripts: &[&str]| {
        mcp(args.iter().copied())
            .file("good", &server(&[INITIALIZED, TOOLS]))
            .file("one", &server(&[INITIALIZED, FAILS]))
            .file("two", &server(&[INITIALIZED, FAILS]))
            .file("c.json", &servers(scripts))
            .args(["--mcp-config", "c.json"])
            .run()
    };
    let said = |server: &str| format!("failed to list MCP tools for server {server}: error -32603: list broke");
    let none = format!("error: failed to register any MCP tools: {}; {}\n", said("one"), said("two"));
    for args in [&["list-tools"][..], &["call-tool", "t"]] {
        story(args, &["one", "two"]).stdout("").stderr_has(&none).code(1);
    }
    let warned = format!("warning: {}\n", said("one"));
    let run = story(&["call-tool", "x"], &["one", "good"]).stdout("").stderr_has(&warned).code(1);
    run.stderr_has("error: no server that lists its tools has a tool \"x\"\n");
    story(&["call-tool", "x", "--server", "one"], &["one", "good"]).stderr_has(&warned).code(1);
    story(&["list-tools"], &["one", "good"]).stdout_has("good: 1 tool\n  mcp__good__t\n").stderr_has(&warned).code(1);
}

#[test]
fn a_server_of_an_unknown_version_is_disconnected() {
    let unknown = (
        "initialize",
        r#""result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
    );
    with(&[unknown], &["info"]).run().stderr_has("does not speak any known version; it offers 1999-01-01").code(3);
    let exact = with(&[unknown], &["info", "--protocol", "2025-11-25"]).run();
    exact.stderr_has("does not speak 2025-11-25; it offers 1999-01-01").code(3);
}

#[test]
fn an_incomplete_result_is_malformed() {
    let call = |result: &str| {
        let called = format!("\"result\":{result}");
        with(&[INITIALIZED, TOOLS, ("tools/call", &called)], &["call-tool", "t"]).run()
    };
    call(r#"{"foo":1}"#).stdout("").stderr_has("error: malformed: /content is missing\n").code(1);
    call(r#"{"content":[5]}"#).stdout("").stderr_has("error: malformed: /content/0 is not an object\n").code(1);
    call(r#"{"structuredContent":{"n":1}}"#).stdout("{\n  \"n\": 1\n}\n").code(0);
    call(r#"{"content":[]}"#).stdout("").code(0);
    let wrapped = r#"{"content":[{"type":"text","text":"hello"}],"structuredContent":{"result":"hello"}}"#;
    call(wrapped).stdout("hello\n").code(0);
    let list =
        r#"{"content":[{"type":"text","text":"1"},{"type":"text","text":"b"}],"structuredContent":{"result":[1,"b"]}}"#;
    call(list).stdout("1\nb\n").code(0);
    call(&wrapped.replace("\"hello\"}}", "\"bye\"}}")).stdout("hello\n{\n  \"result\": \"bye\"\n}\n").code(0);
    let resources = ("resources/list", r#""result":{"resources":[5,{"uri":1},{"uri":"a:b","name":"b"}]}"#);
    let run = with(&[INITIALIZED, resources], &["list-resources"]).run();
    let run = run.stdout("# Resources of server 'sh'\n\n- `a:b` (b)\n").code(0);
    run.stderr_has("warning: one of the resources of server 'sh' cannot be used: /resources/0 is not an object\n")
        .stderr_has("cannot be used: /resources/1/uri is not a string\n");
}

#[test]
fn an_endless_line_is_reported_as_soon_as_it_is_too_long() {
    let endless = shell("yes | tr -d '\\n'");
    let run = mcp(["info", "--protocol", "2025-11-25", "--start-timeout", "50s"]).args(endless).run();
    run.stderr_has("the server sent a line of more than 33554432 bytes").code(3);
}

#[test]
fn numbers_are_printed_verbatim_and_never_changed() {
    let long = "12345678901234567890123";
    let called = format!(r#""result":{{"content":[],"structuredContent":{{"a":{long},"f":1.10,"a":3}}}}"#);
    let run = with(&[INITIALIZED, TOOLS, ("tools/call", &called)], &["call-tool", "t"]).run();
    run.stdout(&format!("{{\n  \"a\": {long},\n  \"f\": 1.10,\n  \"a\": 3\n}}\n")).code(0);
    let refused = ("tools/call", r#""error":{"code":-1,"message":"m","data":{"a":12345678901234567890123,"f":1.10}}"#);
    let run = with(&[INITIALIZED, TOOLS, refused], &["call-tool", "t", "--format", "json"]).run();
    run.stdout_has(r#""data": {"a":12345678901234567890123,"f":1.10}"#).code(1);
    let word = format!("id={long}");
    let json = format!("x:=[{long}]");
    for argument in [&word, &json] {
        let run = with(&[INITIALIZED, TOOLS], &["call-tool", "t", argument]).run();
        run.stderr_has(&format!("the number {long} has too many digits")).code(2);
    }
}

#[test]
fn output_before_the_handshake_is_reported_in_every_version() {
    for protocol in ["auto", "2025-06-18"] {
        let noisy = format!("echo Starting\n{}", server(&[INITIALIZED, TOOLS]));
        let story = mcp(["info", "--stdio", "sh noisy.sh", "--protocol", protocol]).file("noisy.sh", &noisy);
        story.run().stderr_has("sent unexpected output: not JSON").stderr_has("Starting").code(0);
    }
    // Output after an unknown request is not counted.
    let run = with(&[INITIALIZED, TOOLS, ("tools/call", r#""result":{"content":[]}"#)], &["call-tool", "t"]).run();
    assert_eq!(run.stderr(), "");
}

#[test]
fn an_invalid_target_is_a_usage_error() {
    for (options, said) in [
        (&["--http", "notaurl"][..], "\"notaurl\" is not a URL"),
        (&["--http", "ftp://x"], "must start with http:// or https://"),
        (&["--http", "ws://x"], "must start with http:// or https://"),
        (&["--ws", "http://x"], "must start with ws:// or wss://"),
        (&["--http", "http://127.0.0.1:1", "--header", "bad header: x"], "the header \"bad header\""),
        (&["--sse", "http://127.0.0.1:1", "--protocol", "2026-07-28"], "sse does not exist in protocol 2026-07-28"),
        (&["--http", "http://127.0.0.1:1", "--env", "A=b"], "cannot be used with"),
    ] {
        for command in ["info", "status"] {
            mcp([command]).args(options.iter().copied()).run().stdout("").stderr_has(said).code(2);
        }
    }
}

#[test]
fn json_is_a_document_also_without_results_or_servers() {
    for command in ["status", "list-tools", "ping", "list-resources", "list-prompts"] {
        let none = json_of(mcp([command, "--mcp-config", "c.json"]).file("c.json", r#"{"mcpServers":{}}"#), 4);
        assert_eq!(none["servers"], json!([]), "{command}");
        for more in [&[][..], &["--on-connect-error", "fail"]] {
            if command == "status" {
                continue;
            }
            let gone = json_of(mcp([command, "--http", "http://127.0.0.1:1/mcp"]).args(more.iter().copied()), 3);
            let unreachable = if command == "list-tools" { &gone["unreachable"][0] } else { &gone["servers"][0] };
            assert_eq!(unreachable["server"], "127.0.0.1", "{command}: {gone}");
        }
    }
    let gone = json_of(mcp(["info", "--http", "http://:secret77@127.0.0.1:1/mcp"]), 3);
    assert_eq!((&gone["server"], &gone["status"]), (&json!("127.0.0.1"), &json!("failed")));
    let error = gone["error"].as_str().expect("a text");
    assert!(error.contains("cannot reach") && !error.contains("secret77"), "{error}");
}

#[test]
fn a_list_of_servers_has_their_errors() {
    let wrong = json!({ "mcpServers": { "bad": { "type": "stdio", "args": "mock" } } }).to_string();
    let run = mcp(["list-servers", "--mcp-config", ".mcp.json"]).file(".mcp.json", &wrong).run();
    run.stderr_has("warning: ").stderr_has("bad").stderr_has(".mcp.json:1:").code(0);
}

#[test]
fn a_rejected_redirect_is_reported_with_its_target() {
    const REDIRECTS: &str = r#"
server: { name: redirects }
tools:
  - { name: away, reply: x }
  - { name: found, reply: x }
faults:
  - { on: { tool: away }, do: { status: { code: 307, headers: { Location: 'http://u:pw@127.0.0.1:1/there?token=x' } } } }
  - { on: { tool: found }, do: { status: { code: 302, headers: { Location: /there } } } }
"#;
    for (tool, said) in [
        ("away", "it redirects to another origin, http://127.0.0.1:1/there; if that is the server, use that URL"),
        ("found", "/there, with another method than that of the request"),
    ] {
        let mut mock = Rehearse::new()
            .file("redirects.yaml", REDIRECTS)
            .args(["mock", "redirects.yaml", "--listen", "127.0.0.1:0"])
            .start();
        let url = format!("http://{}/mcp", mock.address("http://", "/mcp"));
        mcp(["call-tool", tool, "--http", &url]).run().stderr_has(said).code(1);
    }
}

#[test]
fn an_option_without_effect_is_reported() {
    let called = ("tools/call", r#""result":{"content":[{"type":"text","text":"only words"}]}"#);
    let run = with(&[INITIALIZED, TOOLS, called], &["call-tool", "t", "--output", "out.bin"]).run();
    let run = run.stdout("only words\n").stderr_has("warning: nothing was saved: ").code(0);
    assert!(!run.path("out.bin").exists());
    for (args, said) in [
        (&["call-tool", "t", "-o", "-"][..], "use ./- for a file named -"),
        (&["call-tool", "city=Oslo"], "error: --tool is required, or the name of the tool before its arguments"),
        (&["call-tool", "t", "=x"], "error: \"=x\" has no name before the =\n"),
    ] {
        with(&[INITIALIZED, TOOLS, called], args).run().stdout("").stderr_has(said).code(2);
    }
    let none = mcp(["status"]).run().stderr_has("No MCP servers configured.\n").code(4);
    none.stderr_has("hint: --http URL or -- COMMAND connects without a config, --mcp-config FILE uses a config file");
    let listed = mcp(["list-servers"]).run().stdout("No MCP servers configured.\n").stderr_has("hint: --http URL");
    listed.code(4);
    let url = mcp(["list-tools", "https://h.example/mcp"]).run();
    url.stderr_has("error: no MCP servers configured; use --http URL or --sse URL\n").code(2);
}

#[test]
fn an_incomplete_handshake_is_reported_also_after_discovery() {
    let result = ("initialize", r#""result":{"protocolVersion":"2025-11-25","capabilities":{}}"#);
    let run = with(&[result], &["info"]).run();
    run.stdout("").stderr_has("malformed: the result of `initialize`: missing field `serverInfo`").code(3);
}

#[test]
fn a_short_timeout_selects_the_legacy_version() {
    let args = ["info", "--stdio", "sleep 9", "--timeout", "200ms", "--start-timeout", "300ms", "--protocol"];
    let run = |protocol: &str| mcp(args).args([protocol]).run();
    run("auto").stderr_has("no answer within 300ms of its start; it may only support the older handshake").code(3);
    assert!(!run("2025-11-25").code(3).stderr().contains("older handshake"));
    // SSE exists only in legacy versions.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/sse", silent.local_addr().expect("an address"));
    let run = mcp(["info", "--sse", &url, "--timeout", "300ms"]).run().stderr_has("no answer within 300ms").code(3);
    assert!(!run.stderr().contains("older handshake"));
}

#[test]
fn a_malformed_tool_has_the_same_message_in_every_command() {
    let problem = "/tools/1/inputSchema is missing";
    let tools = r#""result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b"}]}"#;
    let answers = [INITIALIZED, ("tools/list", tools)];
    let words = &format!("the tool 'b' of server 'sh' cannot be used: {problem}");
    with(&answers, &["list-tools"]).run().stdout_has("  a\n").stderr_has(&format!("warning: {words}\n")).code(0);
    let config = r#"{"mcpServers":{"sh":{"command":"sh","args":["server.sh"]}}}"#;
    let story = Rehearse::new().file("server.sh", &server(&answers)).file(".mcp.json", config);
    let run = story.args(["validate-config", ".mcp.json", "--connect"]).run();
    run.stdout_has("W-TOOL").stdout_has(words).stdout_has("✓ sh: 1 tool\n").code(0);
    let scenario = "servers: { sh: { command: sh, args: [server.sh] } }\nmatrix: { protocol: [2025-11-25] }\nsteps: [{ discover: {} }]";
    let story = Rehearse::new().file("server.sh", &server(&answers)).file("a.yaml", scenario);
    story.args(["run", "a.yaml"]).run().stdout_has(&format!("malformed: {problem}\n")).code(1);
}

#[test]
fn of_many_duplicates_the_first_are_named() {
    let tools = vec![r#"{"name":"a","inputSchema":{}}"#; 30].join(",");
    let tools = format!(r#""result":{{"tools":[{tools}]}}"#);
    let run = with(&[INITIALIZED, ("tools/list", &tools)], &["list-tools"]).run().code(0);
    assert_eq!(run.stderr().matches("skipping duplicate").count(), 20);
    run.stderr_has("warning: … and 9 more\n");
}

#[test]
fn unusable_tools_are_counted() {
    let tools = r#""result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b"},{"name":5},{"name":"a","inputSchema":{"type":"object"}}]}"#;
    let story = || with(&[INITIALIZED, ("tools/list", tools)], &["list-tools"]);
    let counts = "**Total tools:** 4 | **Available:** 1 | **Filtered out:** 0 | **Not callable:** 3\n";
    story().args(["--long"]).run().stdout_has(counts).code(0);
    story().run().stdout_has("4 tools, 3 not callable\n  a\n  b  (not callable").code(0);
    let json = story().args(["--json"]).run().code(0);
    let json: serde_json::Value = serde_json::from_str(json.stdout_text()).expect("JSON");
    let server = &json["servers"][0];
    assert_eq!((&server["total"], &server["available"], &server["unusable"]), (&json!(4), &json!(1), &json!(3)));
}

#[test]
fn secrets_in_server_information_are_masked() {
    let says = (
        "initialize",
        r#""result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"has verysecret99","version":"1"},"instructions":"Use verysecret99."}"#,
    );
    let story = || with(&[says], &["info", "--env", "API_KEY=verysecret99"]);
    let run = story().run().stdout_has("Name: has ***").stdout_has("Use ***.").code(0);
    assert!(!run.stdout_text().contains("verysecret99"));
    story().args(["--show-secrets"]).run().stdout_has("Use verysecret99.").code(0);
    story().args(["--json"]).run().stdout_has("verysecret99").code(0);
}

#[test]
fn a_mismatch_of_tls_has_a_hint() {
    let (_mock, address) = listening("tools.yaml");
    let run = mcp(["info", "--http", &format!("https://{address}/mcp")]).run();
    run.stderr_has("the server does not seem to use TLS: try http:// or ws://").code(3);
}

#[test]
fn waiting_for_a_server_to_exit_is_reported() {
    let stays = shell("trap '' TERM; $MOCK; sleep 4345; true");
    let (mut calling, processes) = started(mcp(["call-tool", "echo", "text=a"]).args(stays), [" mock tools.yaml"]);
    calling.stderr_line("info: waiting for servers to exit (Ctrl-C to force)");
    calling.signal("INT");
    calling.stderr_line("interrupted: closing connections");
    calling.signal("INT");
    calling.end().stdout("a -\n").code(3);
    gone(&processes);
}

#[test]
fn log_messages_and_progress_are_printed_during_a_call() {
    const LOGS: &str = r#"
server: { name: logs }
tools:
  - name: work
    steps:
      - log: { level: debug, data: very small }
      - log: { level: error, logger: db, data: { lost: 1 } }
      - progress: { progress: 1, total: 2, message: half }
      - reply: done
"#;
    for protocol in ["2025-11-25", "2026-07-28"] {
        let args = ["call-tool", "work", "--log-level", "debug", "--protocol", protocol];
        let run = mcp(args).file("logs.yaml", LOGS).args(stdio("logs.yaml")).run();
        let run = run.stdout("done\n").stderr_has("info: rehearse: debug: very small\n").code(0);
        run.stderr_has("warning: rehearse: error db: {\"lost\":1}\n")
            .stderr_has("info: rehearse: progress 1 of 2: half\n");
    }
}

#[test]
fn the_status_of_one_server_is_shown() {
    let story = mcp(["status", "one", "--mcp-config", "c.json"])
        .file("one", &server(&[INITIALIZED, TOOLS]))
        .file("two", &server(&[INITIALIZED, TOOLS]))
        .file("c.json", &servers(&["one", "two"]));
    let run = story.run().stdout_has("one").code(0);
    assert!(!run.stdout_text().contains("two"));
}

#[test]
fn endless_input_is_an_error() {
    for args in [
        &["call-tool", "echo", "@/dev/zero", "--stdio", "true"][..],
        &["call-tool", "echo", "text=@/dev/zero", "--stdio", "true"],
        &["call-tool", "echo", "--answer", "/dev/zero", "--stdio", "true"],
        &["call-tool", "--xml", "/dev/zero", "--stdio", "true"],
        &["list-servers", "--mcp-config", "/dev/zero"],
    ] {
        let run = mcp(args.iter().copied()).run();
        run.stdout("").stderr_has("/dev/zero").stderr_has("it is larger than 64 MiB").code(2);
    }
}

#[test]
fn a_second_response_is_reported_also_while_disconnecting() {
    let call = ("tools/call", r#""result":{"content":[{"type":"text","text":"one"}]}"#);
    let twice = server(&[INITIALIZED, TOOLS, call]) + "echo bye\nanswer '\"result\":{}'\n";
    let run = mcp(["call-tool", "t", "--stdio", "sh twice.sh"]).file("twice.sh", &twice).run();
    let printed = "warning: MCP server 'sh' sent unexpected output: a second response with the id";
    let run = run.stdout("one\n").stderr_has(printed).code(0);
    assert!(!run.stderr().contains("bye"), "{}", run.stderr());
}

#[test]
fn a_call_ends_when_the_list_times_out() {
    let silent = server(&[INITIALIZED, ("tools/list", "silence")]).replace("answer 'silence'", ":");
    let story = mcp(["call-tool", "--timeout", "300ms", "t"]).file("server.sh", &silent);
    let run = story.args(["--stdio", "sh server.sh"]).run();
    let run = run.stderr_has("failed to list MCP tools for server sh: no answer within 300ms\n").code(1);
    assert_eq!(run.stderr().lines().count(), 1, "{}", run.stderr());
}
