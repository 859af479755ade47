//! `rehearse trace import`: a small recording in each format.

use serde_json::Value as Json;

use super::rehearse::{Rehearse, Run};

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}"#;

/// A recording of one call whose answer took 100 ms, in each format.
fn recordings() -> Vec<(&'static str, String)> {
    let (call, answer) = (CALL, ANSWER);
    let (call_text, answer_text) = (format!("{call:?}"), format!("{answer:?}"));
    let with = |message: &str, rest: &str| {
        message.replacen('{', "{\"_meta\":{", 1).replacen("\"jsonrpc", &format!("{rest}}},\"jsonrpc"), 1)
    };
    vec![
        (
            "har",
            format!(
                r#"{{"log":{{"version":"1.2","entries":[{{"startedDateTime":"2026-08-01T10:00:00Z","time":100,
"request":{{"method":"POST","url":"http://h:3/mcp?a","headers":[{{"name":":authority","value":"h"}},{{"name":"mcp-session-id","value":"s1"}}],"postData":{{"text":{call_text}}}}},
"response":{{"status":200,"headers":[{{"name":"content-type","value":"text/event-stream"}}],"content":{{"text":"id: 1\ndata:\n\nevent: message\ndata: {}\n\n"}}}}}},
{{"request":{{"method":"GET","url":"http://h:3/icon.png","headers":[]}},"response":{{"status":200,"headers":[],"content":{{}}}}}}]}}}}"#,
                answer.replace('"', "\\\"")
            ),
        ),
        (
            "inspector-protocol",
            format!(
                r#"[{{"id":"1","timestamp":"2026-10-21T10:00:00.000Z","direction":"request","origin":"client",
"message":{call},"response":{answer},"duration":100}}]"#
            ),
        ),
        (
            "inspector-network",
            format!(
                r#"[{{"timestamp":"2026-10-21T10:00:00Z","method":"POST","url":"https://h/mcp","requestHeaders":{{"a":"b"}},"requestBody":{call_text},
"responseStatus":200,"responseHeaders":{{"content-type":"application/json"}},"responseBody":{answer_text},"duration":100}}]"#
            ),
        ),
        (
            "mcporter",
            format!(
                "{}\n{}\n{}",
                r#"{"jsonrpc":"2.0","method":"$transport/start","_meta":{"dir":"lifecycle","server":"linear","ts":"2026-05-16T11:59:59.900Z"}}"#,
                with(call, r#""dir":"send","server":"linear","ts":"2026-05-16T12:00:00.000Z""#),
                with(answer, r#""dir":"recv","server":"linear","ts":"2026-05-16T12:00:00.100Z""#),
            ),
        ),
        (
            "mcp-recorder-devhelm",
            format!(
                r#"{{"version":"1.0","metadata":{{"recorded_at":"2026-02-17T20:25:23+00:00","server_url":"http://h:8000"}},"interactions":[
{{"type":"jsonrpc_request","request":{call},"response":{answer},"response_is_sse":true,"response_status":200,"latency_ms":100}}]}}"#
            ),
        ),
        (
            "mcp-recorder-toddegray",
            format!(
                "{{\"seq\":1,\"t\":1767000000.0,\"dir\":\"c2s\",\"msg\":{call}}}\n{{\"seq\":2,\"t\":1767000000.1,\"dir\":\"s2c\",\"msg\":{answer}}}\n{}",
                r#"{"type":"summary","server":{"command":"node","args":["s.js"]}}"#
            ),
        ),
        (
            "mcpsnoop",
            format!(
                r#"{{"session_id":"a1","server_label":"fs","seq":1,"ts":"2026-08-08T10:00:00Z","direction":"c2s","transport":"stdio","raw":{call}}}{{"session_id":"a1","server_label":"fs","seq":4,"ts":"2026-08-08T10:00:00.1Z","direction":"s2c","transport":"stdio","raw":{answer}}}
{{"session_id":"a1","ser"#
            ),
        ),
        (
            "mcpsnoop-export",
            format!(
                r#"{{"session":{{"label":"fs"}},"calls":[],"events":[{{"seq":1,"timestamp":"2026-08-08T10:00:00Z","direction":"c2s","raw":{call}}},
{{"seq":2,"timestamp":"2026-08-08T10:00:00.1Z","direction":"s2c","raw":{answer}}}]}}"#
            ),
        ),
        (
            "mcp-cassette-npm",
            format!(
                r#"{{"type":"header","cassetteVersion":2,"transport":"http","url":"http://h:3000/mcp"}}
{{"type":"frame","t":5,"dir":"c2s","frame":{call}}}
{{"type":"chunks","t":50,"dir":"s2c","id":1,"chunks":[{{"t":105,"frame":{answer}}}]}}"#
            ),
        ),
        (
            "mcp-cassette-pypi",
            format!(
                r#"{{"format_version":2,"transport":"stdio","server_info":{{"name":"e"}},"messages":[
{{"seq":1,"t_offset_ms":5,"sender":"client","kind":"request","payload":{call},"exchange":null}},
{{"seq":2,"t_offset_ms":105,"sender":"server","kind":"response","payload":{answer}}}]}}"#
            ),
        ),
        (
            "json-rpc-log",
            format!(
                "2026-05-16T12:00:00.000Z [s] [info] Message from client: {call}\n2026-05-16T12:00:00.100Z [s] [info] Message from server: {answer} {{}}\nready"
            ),
        ),
    ]
}

fn import(text: &str, args: &[&str]) -> Run {
    Rehearse::new().file("recording", text).args(["trace", "import", "recording"]).args(args.iter().copied()).run()
}

/// The frames of a trace: the number of the connection, the time, `>` of the client or `<` of the server, the message.
fn frames(trace: &str) -> Vec<String> {
    let events = trace.lines().map(|line| serde_json::from_str::<Json>(line).expect(line));
    let frames = events.filter(|event| event["event"] == "frame");
    let frame = |event: Json| {
        let arrow = if event["from"] == "client" { '>' } else { '<' };
        format!(
            "{}:{}{arrow}{}",
            event["connection"],
            event["atMs"].as_f64().unwrap_or_default().round(),
            event["message"]
        )
    };
    frames.map(frame).collect()
}

#[test]
fn a_recording_is_recognized_and_becomes_a_trace_and_a_mock() {
    let listed = Rehearse::new().args(["trace", "import", "--help"]).run().code(0);
    for (name, text) in recordings() {
        let run = import(&text, &["-o", "trace.jsonl"]).stderr_has(&format!("is read as {name}: ")).stdout("").code(0);
        let trace = run.read("trace.jsonl");
        assert_eq!(frames(&trace), [format!("1:0>{CALL}"), format!("1:100<{ANSWER}")], "{name}");
        let mock = Rehearse::new().file("trace.jsonl", &trace).args(["mock", "--from-trace", "trace.jsonl"]).run();
        assert_eq!(mock.code(0).stderr(), "", "{name}");
        assert!(listed.stdout_text().contains(&format!("  {name} ")), "{name}");
    }
}

#[test]
fn what_is_missing_is_said() {
    for (name, lost) in [
        ("har", "HTTP requests that are not of MCP (1)"),
        ("mcpsnoop", "frames that the recorder dropped (2)"),
        ("mcpsnoop", "lines that are no JSON (1)"),
        ("json-rpc-log", "lines without a message (1)"),
        ("mcp-recorder-devhelm", "headers, progress and logs, of which the format has none"),
    ] {
        let (_, text) = recordings().into_iter().find(|(it, _)| *it == name).expect(name);
        import(&text, &["--from", name]).stderr_has(&format!("not in the trace: {lost}")).code(0);
    }
}

#[test]
fn http_keeps_its_heads_and_hides_secrets() {
    let (_, har) = recordings().swap_remove(0);
    let har =
        har.replace(r#""name":":authority","value":"h""#, r#""name":"authorization","value":"Bearer geheim-12345""#);
    let trace = import(&har, &[]).stderr_has("secrets (1)").code(0);
    let trace = trace.stdout_text();
    assert!(trace.contains(r#""target":"/mcp?a""#) && trace.contains(r#""status":200"#), "{trace}");
    assert!(trace.contains(r#""server":"h:3","transport":"http""#) && !trace.contains("geheim"), "{trace}");
    assert!(import(&har, &["--show-secrets"]).stdout_text().contains("geheim-12345"));
}

#[test]
fn a_log_without_directions_is_read_by_its_messages() {
    let log = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}
{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}
{"jsonrpc":"2.0","id":1,"result":{"role":"assistant"}}
{"jsonrpc":"2.0","id":1,"result":{}}
{"jsonrpc":"2.0","id":7,"result":{}}
{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
    let run = import(log, &[]).stderr_has("guessed by the messages (5)").stderr_has("responses to no request").code(0);
    let directions: Vec<_> = frames(run.stdout_text()).iter().map(|frame| frame[..4].to_owned()).collect();
    assert_eq!(directions, ["1:0>", "1:0<", "1:0>", "1:0<", "2:0>"], "the second handshake begins another connection");
    let arrow = "[server → client] {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}";
    assert!(frames(import(arrow, &[]).stdout_text())[0].starts_with("1:0<"));
}

#[test]
fn a_file_of_no_format_or_of_several_is_refused() {
    let refused = |text: &str, args: &[&str]| import(text, args).stdout("").code(2);
    let unknown = refused("{\"a\":1}", &[]);
    let unknown = unknown.stderr();
    assert!(recordings().iter().all(|(name, _)| unknown.contains(&format!("  {name} "))), "{unknown}");
    refused("x", &["--from", "hars"]).stderr_has("there is no format `hars`");
    refused("{\"mcpServers\":{}}", &[]).stderr_has("validate-config");
    refused("{\"format\":\"rehearse-trace\",\"version\":1}\n{}", &[]).stderr_has("a trace already");
    refused("{\"log\":{\"entries\":[]}}", &[]).stderr_has("no message of MCP in it, read as `har`");
    let both = r#"{"log":{"entries":[]},"session":{},"calls":[],"events":[]}"#;
    refused(both, &[]).stderr_has("it may be har or mcpsnoop-export: choose one with --from");
}
