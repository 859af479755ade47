//! Servers of scenarios that are commands on the network.

use crate::rehearse::{Rehearse, Run};

const MOCK: &str = "server: { name: several }\ntools: [{ name: hello, reply: hello }]";

/// One server with a command for each transport.
const SEVERAL: &str = r#"
servers:
  mine:
    stdio: { command: "$REHEARSE", args: [mock, mock.yaml] }
    http: { command: "$REHEARSE", args: [mock, mock.yaml, --listen, "{{ port }}"], url: "http://127.0.0.1:{{ port }}/mcp" }
    sse: { command: "$REHEARSE", args: [mock, mock.yaml, --listen, "{{port}}"], url: "http://127.0.0.1:{{port}}/sse", ready: listens on }
    ws: { command: "$REHEARSE", args: [mock, mock.yaml, --listen, "{{ port }}"], url: "ws://127.0.0.1:{{ port }}/ws" }
steps:
  - { call: { tool: hello }, snapshot: hello }
"#;

fn run(scenario: &str, args: &[&str]) -> Run {
    let scenario = scenario.replace("$REHEARSE", Rehearse::BINARY);
    let story = Rehearse::new().file("mock.yaml", MOCK).file("demo.yaml", &scenario).env("CI", "");
    story.args(["run", "demo.yaml"]).args(args.iter().copied()).run()
}

#[test]
fn a_server_runs_on_each_of_its_transports_against_one_snapshot() {
    let run = run(SEVERAL, &["--update"]).stdout_has("1 scenario, 7 cells: 7 passed; 1 not applicable").code(0);
    assert!(run.read("snapshots/demo/hello.snap").contains("hello"));
}

#[test]
fn a_command_that_does_not_become_ready_is_an_error_with_its_output() {
    let server = |rest: &str| {
        format!(
            "servers: {{ s: {{ command: sh, url: 'http://127.0.0.1:{{{{ port }}}}/mcp', {rest} }} }}\n\
             matrix: {{ protocol: 2025-11-25 }}\nsteps: [{{ connect: {{}} }}]"
        )
    };
    let ended = run(&server("args: [-c, 'echo no key; exit 7']"), &[]).code(3);
    let ended = ended.stdout_has("cannot start the server `s`: the command ended before it was ready: exit status: 7");
    ended.stdout_has("no key");
    let mute = "args: [-c, 'echo starting >&2; exec sleep 4361'], timeouts: { connect: 300ms }";
    let silent = run(&server(mute), &[]).stdout_has("was not ready within 300ms: nothing listens on 127.0.0.1:");
    silent.stdout_has("starting").code(3);
    let ready = run(&server(&format!("ready: Listening, {mute}")), &[]);
    ready.stdout_has("was not ready within 300ms: it printed no line with \"Listening\"").code(3);
}

#[test]
fn a_server_that_logs_on_standard_output_or_starts_slowly_is_named_by_every_command() {
    let server = "servers: { s: { command: sh, args: [-c, 'echo Listening; exec sleep 60'] } }";
    let matrix = "matrix: { protocol: [2025-11-25] }\nsteps: [{ connect: {} }]";
    let run = run(&format!("{server}\n{matrix}"), &["--start-timeout", "300ms"]).code(1);
    let config = r#"{"mcpServers":{"s":{"command":"sh","args":["-c","echo Listening; exec sleep 60"]}}}"#;
    let of_config = |words: &[&str]| Rehearse::new().file(".mcp.json", config).args(words.to_vec()).run();
    let limit = ["--start-timeout", "300ms"];
    let connected = of_config(&[&["validate-config", ".mcp.json", "--connect"], &limit[..]].concat()).code(1);
    let used = of_config(&[&["mcp", "list-tools", "--mcp-config", ".mcp.json"], &limit[..]].concat()).code(3);
    let measured = of_config(&[&["bench", "discovery", "--mcp-config", ".mcp.json"], &limit[..]].concat()).code(3);
    let (model, server) = (
        "models: [{ ref: m, id: model.yaml, type: scripted }]",
        "{ type: stdio, command: sh, args: [-c, 'echo Listening; exec sleep 60'] }",
    );
    let subagent = format!(
        "{model}\ndefaults: {{ model: m }}\nsubagent: {{ name: coder, description: Codes. }}\nmcpServers: {{ s: {server} }}"
    );
    let serve = format!("{} serve --config coder.cpe.yaml --quiet --start-timeout 300ms", Rehearse::BINARY);
    let story = Rehearse::new().file("model.yaml", "rules: [{ reply: Done. }]").file("coder.cpe.yaml", &subagent);
    let served = story.args(["mcp", "call-tool", "--stdio", &serve, "coder", "prompt=Go"]).run().code(1);
    let texts =
        [run.stdout_text(), connected.stdout_text(), used.stderr(), measured.stdout_text(), served.stdout_text()];
    for text in texts {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("300ms") && text.contains("its standard output is not MCP: Listening"), "{text}");
    }
}

#[test]
fn a_server_of_a_config_that_cannot_be_reached_is_a_failure_that_names_it() {
    let mock = r#""s":{"command":"$REHEARSE","args":["mock","mock.yaml"]}"#.replace("$REHEARSE", Rehearse::BINARY);
    let story = |servers: &str, scenario: &str| {
        let config = format!("{{\"mcpServers\":{{{servers}}}}}");
        let scenario = format!("servers: {{ s: {{ config: .mcp.json }} }}\n{scenario}");
        let story = Rehearse::new().file("mock.yaml", &format!("protocol: 2025-11-25\n{MOCK}"));
        story.file(".mcp.json", &config).file("demo.yaml", &scenario).args(["run", "demo.yaml"]).run()
    };
    let call = "{ call: { tool: mcp__s__hello } }";
    let run = story(&mock, &format!("steps: [{call}]")).stdout_has("1 passed, 1 failed").code(1);
    run.stdout_has("in memory/2026-07-28").stdout_has("as `matrix: { protocol: [2025-11-25] }` does");
    let (gone, matrix) = (r#""gone":{"command":"/gone"}"#, "matrix: { protocol: 2025-11-25 }");
    let missing = "connect: cannot connect to server 'gone': \"/gone\" could not be started";
    story(gone, &format!("{matrix}\nsteps: [{{ discover: {{}} }}]")).stdout_has(missing).code(1);
    let both = format!("{mock},{gone}");
    story(&both, &format!("{matrix}\nsteps: [{call}]")).stdout_has(missing).code(1);
    let expected = "{ discover: {}, expect: { failure: connect } }";
    story(&both, &format!("{matrix}\nsteps: [{expected}, {call}]")).stdout_has("1 passed").code(0);
    let typing = call.replace("hello", "helo");
    let run = story(&both, &format!("{matrix}\nsteps: [{expected}, {typing}]")).code(1);
    run.stdout_has(r#"unknown tool "mcp__s__helo"; did you mean "mcp__s__hello"?"#);
}

#[test]
fn a_command_has_its_address_for_itself() {
    let scenario = |address: &str| {
        format!(
            "servers: {{ s: {{ command: $REHEARSE, args: [mock, mock.yaml, --listen, '{address}'], url: 'http://{address}/mcp' }} }}\n\
             matrix: {{ protocol: [2025-06-18, 2025-11-25, 2026-07-28] }}\nsteps: [{{ call: {{ tool: hello }} }}]"
        )
    };
    let free = format!("127.0.0.1:{}", rehearse_client::free_port().expect("a port"));
    run(&scenario(&free), &["--jobs", "3"]).stdout_has("3 passed").code(0);
    let mut other = Rehearse::new().file("mock.yaml", MOCK).args(["mock", "mock.yaml", "--listen", ":0"]).start();
    let taken = other.address("http://", "/mcp");
    let found = format!("another server listens on {taken} already");
    run(&scenario(&taken), &[]).stdout_has(&found).code(3);
    other.signal("TERM");
    other.end();
}

#[test]
fn mistakes_in_servers_have_a_position() {
    for (server, message) in [
        ("{ http: { url: 'http://h' }, command: x }", "`command` belongs into `stdio`, `http`, `sse` or `ws`"),
        ("{ url: 'http://127.0.0.1:{{ port }}/mcp' }", "`{{ port }}` is a free port, on which only a `command`"),
        ("{ ws: { url: 'http://h' } }", "this is not a URL of the transport ws"),
        ("{ command: x, ready: y }", "`ready` cannot be used with `command`"),
        ("{ stdio: { url: x } }", "`stdio` has no key `url`"),
    ] {
        let run = run(&format!("servers: {{ s: {server} }}\nsteps: [{{ connect: {{}} }}]"), &[]);
        run.stderr_has(message).stderr_has("demo.yaml:1:").code(2);
    }
}
