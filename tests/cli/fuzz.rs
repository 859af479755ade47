//! `rehearse fuzz`.

use serde_json::Value as Json;

use crate::rehearse::{Rehearse, Run};

/// A tool for each kind of bug, and one without.
const PLANTED: &str = r#"
server: { name: planted, version: 1.0.0 }
tools:
  - name: crash
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { n: { type: integer, minimum: 0, maximum: 9 }, note: { type: string } }, required: [n] }
    rules:
      - { when: { args: { n: 9 } }, steps: [{ exit: 3 }] }
      - { reply: fine }
  - name: shape
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { kind: { enum: [a, b, c] } }, required: [kind] }
    rules:
      - { when: { args: { kind: c } }, reply: { raw: '{"jsonrpc":"2.0","id":{{ id | tojson }},"result":{"content":"text"}}' } }
      - { reply: fine }
  - name: trace
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { text: { type: string } }, required: [text] }
    rules:
      - when: { args: { text: "`" } }
        reply: { error: "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: no" }
      - { reply: fine }
  - name: strict
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { text: { type: string, maxLength: 3 } }, required: [text], additionalProperties: false }
    reply: fine
  - name: picture
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { text: { type: string } }, required: [text] }
    rules:
      - { when: { args: { text: "~" } }, reply: { content: [{ type: image, data: "???", mimeType: image/png }] } }
      - { reply: fine }
  - name: private
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { text: { type: string } }, required: [text] }
    rules:
      - { when: { args: { text: "%00" } }, reply: { error: "KeyError: {{ env.REHEARSE_CANARY }}" } }
      - { reply: fine }
  - { name: writes, inputSchema: { type: object }, reply: done }
"#;

pub(crate) fn fuzz(args: &[&str]) -> Rehearse {
    let server = format!("'{}' mock mock.yaml", Rehearse::BINARY);
    let args =
        ["fuzz", "--cases", "150", "--stdio", &server].into_iter().chain(args.iter().copied()).map(ToOwned::to_owned);
    Rehearse::new().file("mock.yaml", PLANTED).args(args.collect::<Vec<_>>())
}

#[test]
fn planted_bugs_are_found_with_their_smallest_input_and_become_scenarios() {
    let run =
        fuzz(&["--format", "json", "--write", "scenarios", "--report", "r.xml", "--report", "r.html"]).run().code(1);
    let result: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    let bugs = result["bugs"].as_array().expect("bugs").iter();
    let bugs: Vec<_> = bugs.map(|bug| format!("{} {} {}", bug["oracle"], bug["name"], bug["arguments"])).collect();
    let expected = [
        r#""crash" "crash" {"n":9}"#,
        r#""malformed" "shape" {"kind":"c"}"#,
        r#""violation" "picture" {"text":"~"}"#,
        r#""stack-trace" "trace" {"text":"`"}"#,
        r#""private-data" "private" {"text":"%00"}"#,
    ];
    assert_eq!(bugs, expected);
    assert!(run.read("r.xml").contains("crash") && run.read("r.html").contains("Fuzzing"));
    let again = |mock: &str| {
        let names = ["crash-crash", "shape-malformed", "trace-stack-trace", "private-private-data"]
            .map(|name| format!("scenarios/{name}.yaml"));
        let story = names.iter().fold(Rehearse::new(), |story, name| story.file(name, &run.read(name)));
        story.file("mock.yaml", mock).args(["run"]).run()
    };
    let violation = Rehearse::new().file("mock.yaml", PLANTED);
    let violation = violation.file("violation.yaml", &run.read("scenarios/picture-violation.yaml"));
    violation.args(["run", "--check", "violation.yaml"]).run().stdout_has("schema.content.image").code(1);
    again(PLANTED).stdout_has("4 failed").code(1);
    let mended = PLANTED.replace("steps: [{ exit: 3 }]", "reply: { error: too large }");
    let mended = mended
        .replace("content\":\"text\"", "content\":[]")
        .replace("Traceback", "No")
        .replace("{{ env.REHEARSE_CANARY }}", "x");
    again(&mended).stdout_has("4 passed").code(0);
}

/// A bug in a prompt, a template, the resources, completions and a list, and no other.
const READ: &str = r#"
server: { name: read, version: 1.0.0 }
pageSize: 1
prompts:
  - name: greet
    arguments: [{ name: who, required: true }, { name: note }]
    rules:
      - when: { args: { who: "~" } }
        reply: { rpcError: { code: -32000, message: "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError" } }
      - { messages: [{ role: user, content: "Hello" }] }
  - { name: fine, arguments: [{ name: who, required: true }], messages: [{ role: user, content: "Hello {{ args.who }}" }] }
resources:
  - { uri: "page://1", text: "First page" }
  - { uri: "page://2", text: "Second page" }
resourceTemplates:
  - { uriTemplate: "fine:///{name}", text: fine }
  - uriTemplate: "note:///{name}"
    rules:
      - { when: { args: { name: "\\" } }, steps: [{ exit: 3 }] }
      - { text: a note }
  - { uriTemplate: "unknown://host/{name}", reply: { rpcError: { code: -32603, message: broken } } }
completions:
  - { prompt: greet, argument: who, values: [Ada] }
  - { prompt: greet, argument: note, values: [Ada] }
methods:
  - method: completion/complete
    rules:
      - { when: { params: { argument: { value: "$HOME" } } }, reply: { result: { completion: { values: [1] } } } }
      - { reply: { result: { completion: { values: [Ada] } } } }
  - method: resources/list
    rules:
      - { when: { params: { cursor: "0" } }, reply: { rpcError: { code: -32601, message: unknown } } }
      - { reply: { result: { resources: [{ uri: "page://1", name: one }] } } }
"#;

#[test]
fn bugs_of_what_is_only_read_are_found_and_become_scenarios() {
    let server = format!("'{}' mock mock.yaml", Rehearse::BINARY);
    let args = ["fuzz", "--cases", "100", "--format", "json", "--write", "scenarios", "--stdio", &server];
    let run = Rehearse::new().file("mock.yaml", READ).args(args).run().code(1);
    let result: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    let bugs = result["bugs"].as_array().expect("bugs").iter();
    let bugs: Vec<_> =
        bugs.map(|bug| format!("{} {} {} {}", bug["oracle"], bug["kind"], bug["name"], bug["arguments"])).collect();
    let expected = [
        r#""crash" "template" "note:///{name}" {"name":"\\"}"#,
        r#""malformed" "completion" "greet" {"ref":"greet","argument":"who","value":"$HOME"}"#,
        r#""stack-trace" "prompt" "greet" {"who":"~"}"#,
        r#""internal-error" "template" "unknown://host/{name}" {"name":"a"}"#,
        r#""internal-error" "resource" "resources/read" {"uri":"unknown://host/p"}"#,
        r#""wrong-error" "list" "resources/list" {"cursor":"0"}"#,
    ];
    let other: Vec<_> = bugs.iter().filter(|bug| !expected.contains(&bug.as_str())).collect();
    assert!(other.iter().all(|bug| bug.contains(r#""malformed" "completion""#)) && other.len() == 4, "{bugs:?}");
    assert_eq!(bugs.len(), 10, "{bugs:?}");
    let names = [
        "template-note-----name--crash",
        "completion-greet-malformed",
        "prompt-greet-stack-trace",
        "template-unknown---host--name--internal-error",
        "resource-resources-read-internal-error",
        "list-resources-list-wrong-error",
    ];
    let again = |mock: &str| {
        let names = names.map(|name| format!("scenarios/{name}.yaml"));
        let story = names.iter().fold(Rehearse::new(), |story, name| story.file(name, &run.read(name)));
        story.file("mock.yaml", mock).args(["run"]).run()
    };
    again(READ).stdout_has("6 failed").code(1);
    let mended = READ.replace("steps: [{ exit: 3 }]", "text: a note").replace("values: [1]", "values: [a]");
    let mended = mended.replace("Traceback", "No").replace("-32603", "-32602").replace("-32601", "-32602");
    again(&mended).stdout_has("6 passed").code(0);
}

#[test]
fn a_tool_that_says_it_is_idempotent_and_is_not_is_a_warning() {
    let server = format!("'{}' mock mock.yaml", Rehearse::BINARY);
    let tool = |name: &str, set: &str| {
        format!(
            "  - {{ name: {name}, annotations: {{ idempotentHint: true }}, steps: [{{ set: {set} }}, {{ reply: done }}] }}\n"
        )
    };
    let mock = format!(
        "state: {{ count: 0, name: a }}\ntools:\n{}{}resources: [{{ uri: 'a://count', text: '{{{{ state.count }}}}' }}, {{ uri: 'a://name', text: '{{{{ state.name }}}}' }}]\n",
        tool("grows", "{ count: '{{ state.count + 1 }}' }"),
        tool("renames", "{ name: b }"),
    );
    let args = ["fuzz", "--allow-tool", "*", "--cases", "5", "--format", "json", "--stdio", &server];
    let run = Rehearse::new().file("mock.yaml", &mock).args(args).run().code(0);
    let result: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    let bugs = result["bugs"].as_array().expect("bugs");
    assert!(bugs.len() == 1 && bugs[0]["oracle"] == "not-idempotent" && bugs[0]["name"] == "grows", "{result}");
    assert!(bugs[0]["message"].as_str().is_some_and(|it| it.ends_with("the resource a://count.")), "{result}");
}

/// A tool that breaks with a value of another, and only after a call of that.
const SEQUENCE: &str = r#"
state: { open: false }
tools:
  - name: close
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { handle: { type: string } }, required: [handle] }
    rules:
      - { when: { args: { handle: h-77 }, state: { open: true } }, steps: [{ exit: 3 }] }
      - { reply: fine }
  - name: open
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { handle: { type: integer } } }
    steps: [{ set: { open: true } }, { reply: { structured: { files: [{ handle: h-77, size: 3 }] } } }]
"#;

pub(crate) fn sequence() -> Run {
    let server = format!("'{}' mock mock.yaml", Rehearse::BINARY);
    let args = ["fuzz", "--cases", "60", "--format", "json", "--write", "scenarios", "--stdio", &server];
    Rehearse::new().file("mock.yaml", SEQUENCE).args(args).run().code(1)
}

/// A run with the server in a config.
pub(crate) fn of_config(args: &[&str]) -> Rehearse {
    let server = format!(
        r#"{{"mcpServers": {{"planted": {{"command": "{}", "args": ["mock", "mock.yaml"]}}}}}}"#,
        Rehearse::BINARY
    );
    let all = ["fuzz", "--cases", "150", "--mcp-config", ".mcp.json"].iter().chain(args).copied();
    Rehearse::new().file("mock.yaml", PLANTED).file(".mcp.json", &server).args(all)
}

#[test]
fn a_bug_has_the_place_of_its_server_in_a_config() {
    let run = of_config(&["--format", "sarif", "--report", "r.sarif"]).run().code(1);
    let written: Json = serde_json::from_str(&run.read("r.sarif")).expect("JSON");
    let sarif: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    assert_eq!(sarif["runs"][0]["results"], written["runs"][0]["results"]);
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let crash = results.iter().find(|it| it["ruleId"] == "fuzz-crash").expect("the crash");
    let place = &crash["locations"][0]["physicalLocation"];
    assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&".mcp.json".into(), &1.into()));
    assert!(crash["message"]["text"].as_str().is_some_and(|text| text.contains(r#"{"n":9}"#)), "{crash}");
    fuzz(&["--format", "sarif"]).run().stdout("").stderr_has("SARIF needs a place").code(2);
}

#[test]
fn a_value_of_one_tool_breaks_the_next() {
    let run = sequence();
    let result: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    let bugs = result["bugs"].as_array().expect("bugs");
    assert!(bugs.len() == 1 && bugs[0]["inputKind"] == "sequence", "{result}");
    assert_eq!(bugs[0]["arguments"], serde_json::json!({ "handle": "h-77" }));
    assert_eq!(bugs[0]["before"]["name"], "open");
    let story = Rehearse::new().file("mock.yaml", SEQUENCE).file("a.yaml", &run.read("scenarios/close-crash.yaml"));
    story.args(["run", "a.yaml"]).run().stdout_has("1 failed").code(1);
}

#[test]
fn an_input_of_the_corpus_is_sent_first() {
    let first = fuzz(&["--corpus", "corpus", "--format", "json"]).run().code(1);
    let of_trace = |name: &String| first.read(&format!("corpus/{name}")).contains(r#""text": "`""#);
    let names = || std::fs::read_dir(first.path("corpus")).expect("a folder").flatten();
    let mut names = names().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let name = names.find(of_trace).expect("the input of a bug");
    let server = format!("'{}' mock mock.yaml", Rehearse::BINARY);
    let args = ["fuzz", "--corpus", "corpus", "--cases", "1", "--format", "json", "--stdio", &server];
    let again = Rehearse::new().file("mock.yaml", PLANTED).args(args);
    let again = again.file(&format!("corpus/{name}"), &first.read(&format!("corpus/{name}"))).run().code(1);
    let result: Json = serde_json::from_str(again.stdout_text()).expect("JSON");
    let found = result["bugs"].as_array().expect("bugs").iter().find(|bug| bug["name"] == "trace");
    assert_eq!(found.expect("the bug")["inputKind"], "corpus");
    let broken = fuzz(&["--corpus", "corpus"]).file("corpus/a.json", "{").run();
    broken.stderr_has("cannot read corpus").code(3);
}

#[test]
fn a_tool_that_may_not_be_called_is_not_tested_and_a_dry_run_calls_nothing() {
    let run = fuzz(&["--dry-run"]).run().code(0);
    let run = run
        .stdout_has("tool writes: not called: it is not annotated with readOnlyHint")
        .stdout_has("tool crash border {\"n\":9}");
    run.stdout_has("tool strict broken {\"text\":null}");
    let only = format!("'{}' mock only.yaml", Rehearse::BINARY);
    let none = Rehearse::new()
        .file("only.yaml", "tools: [{ name: a, reply: b }]")
        .args(["fuzz", "--cases", "20", "--stdio", &only])
        .run();
    let none = none.stdout_has("Not tested: 1").stdout_has("  it is not annotated with readOnlyHint");
    none.stdout_has("nothing was tested").code(4);
}

#[test]
fn a_tool_that_is_nested_too_deeply_is_an_error_and_not_lost() {
    let deep = format!("{}{{}}{}", r#"{"properties":{"a":"#.repeat(70), "}}".repeat(70));
    let tool = format!(r#"{{"name":"two","annotations":{{"readOnlyHint":true}},"inputSchema":{deep}}}"#);
    let listed = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}]}}}}"#);
    let fault = format!("{{ on: {{ method: tools/list }}, do: {{ garbage: {{ text: '{listed}' }} }} }}");
    let script = format!("tools: [{{ name: two, reply: a }}]\nfaults: [{fault}]");
    let server = format!("'{}' mock deep.yaml", Rehearse::BINARY);
    let args = ["fuzz", "--cases", "20", "--protocol", "2025-11-25", "--stdio", &server];
    let run = Rehearse::new().file("deep.yaml", &script).args(args).run();
    run.stderr_has("its tools cannot be listed: recursion limit exceeded").code(3);
}

#[test]
fn a_server_that_does_nothing_wrong_has_no_bug() {
    let server = format!("'{}' mock everything", Rehearse::BINARY);
    for protocol in ["2025-11-25", "2026-07-28"] {
        let args = ["fuzz", "--cases", "40", "--protocol", protocol, "--format", "json", "--stdio", &server];
        let run = Rehearse::new().args(args).run();
        let result: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
        assert!(result["targets"].as_array().is_some_and(|it| it.len() > 10), "{result}");
        assert_eq!(result["bugs"], serde_json::json!([]), "{protocol}");
    }
}

#[cfg(unix)]
#[test]
fn the_last_input_of_a_server_that_does_not_start_again_is_named() {
    let mock = "tools: [{ name: ends, annotations: { readOnlyHint: true }, steps: [{ exit: 3 }] }]";
    let server = format!("sh -c 'test ! -e started && touch started && exec {} mock mock.yaml'", Rehearse::BINARY);
    let run =
        Rehearse::new().file("mock.yaml", mock).args(["fuzz", "--protocol", "2025-11-25", "--stdio", &server]).run();
    run.stdout_has("does not start any more; its last input was tool ends with {}").code(3);
}

#[test]
fn what_a_schema_refuses_and_a_tool_accepts_is_a_warning() {
    let lax = format!("'{}' mock lax.yaml", Rehearse::BINARY);
    let mock = "tools: [{ name: a, annotations: { readOnlyHint: true }, unchecked: true, inputSchema: { type: object, properties: { n: { type: integer } }, required: [n] }, reply: fine }]";
    let run = |args: &[&str]| {
        let args =
            ["fuzz", "--cases", "60", "--stdio", &lax].into_iter().chain(args.iter().copied()).map(ToOwned::to_owned);
        Rehearse::new().file("lax.yaml", mock).args(args.collect::<Vec<_>>()).run()
    };
    run(&[]).stdout_has("invalid-accepted tool a").stdout_has("with {}").stdout_has("passed, with warnings").code(0);
    run(&["--strict"]).code(1);
}

/// A tool with one bug a line: the properties of its arguments, when it is wrong, what it does then, and what is found.
const BUGS: &str = r#"
empty | { text: { type: string } } | { text: "" } | { exit: 1 } | crash {"text":""}
long | { text: { type: string } } | { text: { matches: "^.{300,}$" } } | { exit: 1 } | crash {"text":"A300"}
negative | { n: { type: integer, minimum: -5 } } | { n: -5 } | { exit: 1 } | crash {"n":-5}
listed | { kind: { enum: [a, b, c] } } | { kind: b } | { exit: 1 } | crash {"kind":"b"}
flag | { on: { type: boolean }, n: { type: integer } } | { on: true } | { exit: 1 } | crash {"on":true}
absent | { note: { type: string }, n: { type: integer } } | { note: { exists: false } } | { exit: 1 } | crash {}
null | { note: { type: [string, "null"] } } | { note: null } | { exit: 1 } | crash {"note":null}
nested | { a: { type: object, properties: { tags: { type: array, items: { type: string } } } } } | { a: { tags: { length: 0 } } } | { exit: 1 } | crash {"a":{"tags":[]}}
path | { file: { type: string } } | { file: { matches: "^\\.\\./" } } | { exit: 1 } | crash {"file":"../"}
nul | { text: { type: string } } | { text: { matches: "\\x00" } } | { exit: 1 } | crash {"text":"\u0000"}
astral | { text: { type: string } } | { text: { matches: "[^\\x00-\\x{ffff}]" } } | { exit: 1 } | crash {"text":"🎉"}
javascript | { text: { type: string } } | { text: "\\" } | { reply: { error: "TypeError: x\n    at f (/app/a.js:1:2)" } } | stack-trace {"text":"\\"}
go | { text: { type: string } } | { text: "`" } | { reply: { text: "goroutine 1 [running]:" } } | stack-trace {"text":"`"}
java | { text: { type: string } } | { text: "~" } | { reply: { error: "Error\n\tat a.B.c(B.java:12)" } } | stack-trace {"text":"~"}
internal | { text: { type: string } } | { text: "%00" } | { reply: { rpcError: { code: -32603, message: boom } } } | internal-error {"text":"%00"}
throws | { text: { type: string } } | { text: "<b>x</b>" } | { reply: { error: "Cannot read properties of undefined (reading 'n')" } } | exception {"text":"<b>x</b>"}
class | { n: { type: integer, minimum: -5 } } | { n: -5 } | { reply: { error: "TypeError: no" } } | exception {"n":-5}
says | { n: { type: integer, minimum: -5 } } | { n: -5 } | { reply: { error: "Error: there is no such number" } } | none
unknown | { text: { type: string } } | { text: "NaN" } | { reply: { rpcError: { code: -32601, message: no } } } | wrong-error {"text":"NaN"}
refused | { text: { type: string } } | { text: "null" } | { reply: { rpcError: { code: -32602, message: no } } } | valid-refused {"text":"null"}
block | { text: { type: string } } | { text: "{}" } | { reply: { raw: '{"jsonrpc":"2.0","id":{{ id }},"result":{"content":[{"type":"text"}]}}' } } | malformed {"text":"{}"}
cut | { text: { type: string } } | { text: "[]" } | { reply: { raw: '{"jsonrpc":"2.0","id":{{ id }},"resu' } } | malformed {"text":"[]"}
picture | { text: { type: string } } | { text: "1e400" } | { reply: { content: [{ type: image, data: "???", mimeType: image/png }] } } | violation {"text":"1e400"}
private | { text: { type: string } } | { text: "true" } | { reply: { error: "no {{ env.REHEARSE_CANARY }}" } } | private-data {"text":"true"}
"#;

#[test]
fn each_planted_bug_is_found_and_a_tool_without_it_has_none() {
    let rows: Vec<Vec<_>> = BUGS.trim().lines().map(|line| line.splitn(5, " | ").map(str::trim).collect()).collect();
    let tool = |row: &Vec<&str>, has_bug: bool| {
        let bug =
            if has_bug { format!("{{ when: {{ args: {} }}, steps: [{}] }}, ", row[2], row[3]) } else { String::new() };
        let schema = format!("{{ type: object, properties: {} }}", row[1]);
        let (name, hint) = (row[0], "annotations: { readOnlyHint: true }");
        format!("  - {{ name: '{name}', {hint}, inputSchema: {schema}, rules: [{bug}{{ reply: fine }}] }}\n")
    };
    let found = |has_bug: bool| {
        let server = format!("'{}' mock mock.yaml", Rehearse::BINARY);
        let mock: String = rows.iter().map(|row| tool(row, has_bug)).collect();
        let args = ["fuzz", "--cases", "120", "--budget", "3m", "--format", "json", "--stdio", &server];
        let run = Rehearse::new().file("mock.yaml", &format!("tools:\n{mock}")).args(args).run();
        let result: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
        let bugs = result["bugs"].as_array().expect("bugs").iter();
        let text = |bug: &Json, key: &str| bug[key].as_str().unwrap_or_default().to_owned();
        let found = |bug: &Json| (text(bug, "name"), format!("{} {}", text(bug, "oracle"), bug["arguments"]));
        let mut texts: Vec<_> = bugs.map(found).collect();
        texts.sort();
        texts
    };
    let wrong = rows.iter().filter(|row| row[4] != "none");
    let expected = wrong.map(|row| (row[0].to_owned(), row[4].replace("A300", &"a".repeat(300))));
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(found(true), expected);
    assert_eq!(found(false), []);
}
