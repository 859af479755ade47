//! `rehearse schema`, against what the other commands read and write; and `rehearse mock --faults`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use mcp_rehearsal::document::{Source, parse_yaml};
use serde_json::Value as Json;

use crate::{
    fuzz,
    mock::INITIALIZE,
    rehearse::{Post, Rehearse, Run, request},
};

const BROKEN: &str = "tools.call.structured-matches-schema";

fn schema(kind: &str) -> Json {
    let dialect: &[&str] = if kind == "config" { &["--dialect", "vscode"] } else { &[] };
    let run = Rehearse::new().args(["schema", kind].iter().chain(dialect).copied()).run().code(0);
    serde_json::from_str(run.stdout_text()).expect("JSON")
}

/// Each schema within a schema, and whether it is a definition.
fn visit(schema: &mut Json, is_definition: bool, see: &mut impl FnMut(&mut serde_json::Map<String, Json>, bool)) {
    match schema {
        Json::Object(members) => {
            for (name, member) in members.iter_mut() {
                match member {
                    Json::Object(all) if name == "$defs" => all.values_mut().for_each(|it| visit(it, true, see)),
                    member => visit(member, false, see),
                }
            }
            see(members, is_definition);
        }
        Json::Array(items) => items.iter_mut().for_each(|item| visit(item, false, see)),
        _ => {}
    }
}

/// The names of all members of all objects.
fn names(value: &Json, found: &mut BTreeSet<String>) {
    match value {
        Json::Object(members) => {
            found.extend(members.keys().cloned());
            members.values().for_each(|member| names(member, found));
        }
        Json::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

fn errors(schema: &Json, value: &Json) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Outputs have no members that the schema does not describe. Returns those that it describes.
fn matches(kind: &str, outputs: &[Json]) -> BTreeSet<String> {
    let mut schema = schema(kind);
    let mut described = BTreeSet::new();
    visit(&mut schema, false, &mut |schema, is_definition| {
        schema.retain(|key, value| key != "additionalProperties" || *value != true);
        described
            .extend(schema.get("properties").and_then(Json::as_object).into_iter().flat_map(|it| it.keys().cloned()));
        if !is_definition && ["$ref", "properties"].iter().any(|key| schema.contains_key(*key)) {
            schema.insert("unevaluatedProperties".into(), false.into());
        }
    });
    for output in outputs {
        let errors = errors(&schema, output);
        assert!(errors.is_empty(), "{kind}: {errors:#?}\n{output:#}");
    }
    described
}

/// Like [`matches`], and the schema, which no type gives, has no members that no output has, but `rare`.
fn describes(kind: &str, outputs: &[Json], rare: &[&str]) {
    let (described, mut seen) = (matches(kind, outputs), BTreeSet::new());
    outputs.iter().for_each(|output| names(output, &mut seen));
    let missing: Vec<_> = described.difference(&seen).collect();
    assert_eq!(missing, rare, "{kind}");
}

/// The files of a console page, and these arguments.
fn page(name: &str, args: &[&str]) -> Rehearse {
    Rehearse::new().files_of(name).args(args.iter().copied())
}

fn target(script: &str) -> String {
    format!("{} mock {script}", Rehearse::BINARY)
}

/// Checks the shop of the console page in one version.
fn shop() -> Rehearse {
    page("check", &["check", "--stdio", &target("shop.yaml"), "--protocol", "2025-11-25"])
}

fn json(run: &Run) -> Json {
    serde_json::from_str(run.stdout_text()).expect("JSON and nothing else")
}

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn yaml(name: &str, text: &str) -> Json {
    let source = Source::new(name, text);
    parse_yaml(&source).unwrap_or_else(|problems| panic!("{}", problems.in_source(&source))).to_json()
}

#[test]
fn every_schema_is_valid() {
    let unknown = Rehearse::new().args(["schema", "scenarios"]).run().stdout("").code(2);
    let unknown = unknown.stderr_has("a similar value exists: 'scenario'");
    let (_, kinds) = unknown.stderr().split_once("[possible values: ").expect("the kinds");
    for kind in kinds.split(']').next().expect("an end").split(", ") {
        let schema = schema(kind);
        let draft = if ["script", "config"].contains(&kind) { "draft-07" } else { "2020-12" };
        assert!(
            schema["$schema"].as_str().is_some_and(|it| it.contains(draft)) && schema["title"].is_string(),
            "{kind}"
        );
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

#[test]
fn the_reports_and_the_baseline_of_a_check_match_their_schemas() {
    let accepted = format!("version: 1\naccept:\n  - {{ id: {BROKEN}, reason: known }}\n");
    let run = shop().file("a.yaml", &accepted).args(["--baseline", "a.yaml", "--format", "json"]).run();
    let config =
        format!(r#"{{"mcpServers": {{"s": {{"command": "{}", "args": ["mock", "good.yaml"]}}}}}}"#, Rehearse::BINARY);
    let good = ["check", "s", "--mcp-config", ".mcp.json", "--only", BROKEN, "--format", "json"];
    let good = page("check", &good).file(".mcp.json", &config).run();
    let dead = Rehearse::new().args(["check", "--stdio", "false", "--format", "json"]).run().code(3);
    let client = ["check", "client", "--act", "clean", "--format", "json", "--", Rehearse::BINARY, "mcp", "list-tools"];
    let client = Rehearse::new().args(client).args(["--http", "{url}"]);
    let part = ["check", "client", "--act", "clean", "--shard", "1/2", "--format", "json", "--", Rehearse::BINARY];
    let part = Rehearse::new().args(part).args(["mcp", "list-tools", "--http", "{url}"]).run().code(0);
    let merged =
        Rehearse::new().file("part.json", part.stdout_text()).args(["report", "part.json", "--format", "json"]);
    let (client, merged) = (client.run().code(0), merged.run().code(3));
    let fit = ["--only", "tools.list.order-legacy", "--profile", "house.yaml,claude-code", "--format", "json"];
    let fit = page("check-profiles", &["check", "--stdio", &target("mock.yaml")]).args(fit).run().code(0);
    let reports = [&run, &good, &dead, &client, &part, &merged, &fit].map(json);
    matches("check", &reports);
    let written =
        shop().file("a.yaml", &accepted).args(["--baseline", "a.yaml", "--update-baseline", "--only", BROKEN]).run();
    let written = yaml("a.yaml", &written.read("a.yaml"));
    assert_eq!(errors(&schema("baseline"), &written), [""; 0]);
}

/// Runs whose results have every member that evals add to a report.
fn evals() -> Vec<Run> {
    let eval = |models: &str, words: &[&str], earlier: &str| {
        let story = Rehearse::new().files_of("run-models");
        let scenario = std::fs::read_to_string(story.folder().join("evals/rain.yaml")).expect("a scenario");
        let story = story.file("evals/rain.yaml", &scenario.replace("[right]", &format!("[{models}]")));
        story.file("b.json", earlier).args(words.iter().copied()).args(["--format", "json"]).run()
    };
    let run = ["run", "evals"];
    let before = eval("right", &run, "").code(0);
    let against = |from: &str, to: &str| {
        let earlier = before.stdout_text().replace(from, to);
        eval("right", &[&run[..], &["--against", "b.json"]].concat(), &earlier).code(0)
    };
    let compared = against("\"passed\": true", "\"passed\": false");
    let otherwise = against("\"forecast\"", "\"other\"");
    let failed = eval("wrong, broken", &run, "").code(3);
    let provider = ["model", "right.yaml", "--exec", "--", Rehearse::BINARY];
    let priced = eval("real", &[&provider[..], &run].concat(), "").code(0);
    vec![before, compared, failed, priced, otherwise]
}

#[test]
fn the_report_of_a_comparison_matches_its_schema() {
    let surface = page("diff", &["surface", "--stdio", &target("old.yaml")]).run().code(0);
    assert_eq!(errors(&schema("surface"), &json(&surface)), [""; 0]);
    let accept = "version: 1\naccept: [{ id: tool.added, reason: x }, { id: tool.gone, reason: x }]\n";
    let call = ["mcp", "call-tool", "search", "n=70", "--stdio", &target("old.yaml"), "--trace-file", "t.jsonl"];
    let trace = page("diff", &call).run().read("t.jsonl");
    let args = ["--calls", "t.jsonl", "--baseline", "b.yaml", "--format", "json"];
    let diff = page("diff", &["diff", "surface.json", &target("new.yaml")]).args(args);
    let diff = diff.file("surface.json", surface.stdout_text()).file("b.yaml", accept).file("t.jsonl", &trace);
    matches("diff", &[json(&diff.run().code(1))]);
}

#[test]
fn the_report_and_the_trace_of_a_run_match_their_schemas() {
    let scenario = format!(
        "
description: A shop.
servers: {{ shop: {{ command: sh, args: [-c, 'echo starting >&2; exec {}'] }} }}
matrix: {{ protocol: [auto, 2025-11-25], transport: [stdio, http] }}
redact: [{{ at: /nothing }}]
steps:
  - {{ call: {{ tool: price }}, expect: {{ schemaErrors: true }} }}
  - {{ discover: {{}}, snapshot: tools, only: {{ protocol: auto }} }}
",
        target("shop.yaml")
    );
    let files = |args: &[&str]| {
        let files = page("check", &["run", "s.yaml", "--format", "json"]).file("s.yaml", &scenario);
        files.args(args.iter().copied()).env("CI", "")
    };
    let first = files(&["--update"]).run().code(0);
    let again = files(&["--check", "--trace-file", "trace.jsonl"]);
    let again = again.file("snapshots/s/tools.snap", "---\nsource: s\n---\n{}\n").run().code(1);
    let web = "servers: { s: { mock: good.yaml } }\nmatrix: { transport: http }\nsteps: [{ call: { tool: b } }]\n";
    let web = files(&["--trace-file", "trace.jsonl", "web.yaml"]).file("web.yaml", web).run().code(1);
    let part = files(&["--shard", "1/2"]).run();
    let merged =
        Rehearse::new().file("part.json", part.stdout_text()).args(["report", "part.json", "--format", "json"]);
    let used = page("run-coverage", &["run", "--coverage", "--format", "json", "--fail-under", "1%"]).run();
    let runs = [first, part, used, merged.run().code(3)].into_iter().chain(evals());
    let outputs: Vec<_> = runs.map(|run| json(&run)).chain([&again, &web].map(json)).collect();
    matches("run", &outputs);
    let check = shop().args(["--only", BROKEN, "--trace-file", "trace.jsonl"]).run().code(1).read("trace.jsonl");
    // Some messages of a check are nested too deeply for this reader.
    let case = check.lines().find(|line| line.contains(r#""event":"case""#)).expect("a case");
    let traces: Vec<_> =
        [&again, &web].iter().flat_map(|run| lines(&run.read("trace.jsonl"))).chain(lines(case)).collect();
    describes("trace", &traces, &["base64"]);
}

#[test]
fn the_report_of_a_benchmark_matches_its_schema() {
    let script = "
http: { answers: sse }
tools: [{ name: good, reply: x }, { name: bad, reply: { rpcError: { code: 1, message: m } } }]
";
    let mut mock = Rehearse::new().file("m.yaml", script).args(["mock", "m.yaml", "--listen", ":0"]).start();
    let url = format!("http://{}/mcp", mock.address("http://", "/mcp"));
    let bench = |args: &[&str]| {
        let args = ["bench"].iter().chain(args).chain(&["--format", "json", "--script", "m.yaml"]).copied();
        Rehearse::new().file("m.yaml", script).args(args)
    };
    let call = ["call", "--tool", "good", "--tool", "bad", "--allow-tool", "*", "--warmup", "0s"];
    let first = bench(&[&call[..], &["--requests", "50", "--fail-if", "errors > 0"]].concat()).run().code(1);
    let second = bench(&[&call[..], &["--requests", "50", "--against", "base.json"]].concat());
    let second = second.file("base.json", first.stdout_text()).run();
    let search = ["--duration", "100ms", "--find-max", "p99 < 2s", "--http", &url];
    let search = bench(&[&call[..], &search].concat()).run();
    let refused = bench(&["call", "--requests", "5", "--rate", "5"]).run().code(3);
    let discovery = bench(&["discovery", "--requests", "2"]).run().code(0);
    let network = ["bench", "call", "--http", &url, "--allow-tool", "*", "--warmup", "0s", "--format", "json"];
    let part = Rehearse::new().args(network).args(["--requests", "4", "--shard", "1/2"]).run();
    let merged =
        Rehearse::new().file("part.json", part.stdout_text()).args(["report", "part.json", "--format", "json"]);
    let merged = merged.run().code(3);
    let reports = [&first, &second, &search, &refused, &discovery, &part, &merged].map(json);
    matches("bench", &reports);
}

#[test]
fn the_journal_matches_its_schema() {
    let script = "
tools:
  - { name: later, steps: [{ wait: 1ms }, { reply: x }] }
  - { name: late, reply: '{{ args.none.none }}' }
faults: [{ on: { tool: late }, do: { delay: 1ms } }]
";
    let args = [
        "mock",
        "m.yaml",
        "--listen",
        ":0",
        "--journal",
        "j.jsonl",
        "--check",
        "--verify",
        "--admin",
        "--format",
        "json",
    ];
    let mut mock = Rehearse::new().file("m.yaml", script).args(args).start();
    let started: Json = serde_json::from_str(&mock.stdout_line("{")).expect("JSON");
    let text = |pointer: &str| started.pointer(pointer).and_then(Json::as_str).expect("a text");
    let address = text("/http").strip_prefix("http://").and_then(|it| it.strip_suffix("/mcp")).expect("an address");
    for tool in ["later", "late", "none"] {
        Rehearse::new().args(["mcp", "call-tool", tool, "--http", text("/http")]).run();
    }
    let session = Post::send(address, "/mcp", &[("Host", address)], INITIALIZE).response();
    let session = session.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    let session = [("Host", address), ("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")];
    Post::send(address, "/mcp", &session, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).response();
    Post::send(address, "/mcp", &session, "no JSON").response();
    request("DELETE", address, "/mcp", &session, "");
    let admin = text("/admin/url").strip_prefix("http://").expect("a URL");
    let token = format!("Bearer {}", text("/admin/token"));
    let headers = [("Host", admin), ("Authorization", &token)];
    let served = request("GET", admin, "/journal", &headers, "");
    let served: Json = serde_json::from_str(served.split_once("\r\n\r\n").expect("a body").1).expect("JSON");
    mock.signal("TERM");
    let mut all = lines(&mock.end().code(1).read("j.jsonl"));
    all.extend(served["entries"].as_array().expect("entries").iter().cloned());
    describes("journal", &all, &[]);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The YAML files below a folder.
fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let (mut open, mut files) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => open.push(path),
                false => files.extend(path.extension().is_some_and(|it| it == "yaml").then_some(path)),
            }
        }
    }
    files
}

#[test]
fn the_shipped_scenarios_and_those_of_the_documentation_match_the_schema() {
    let schema = schema("scenario");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a text");
    let mut texts: Vec<_> =
        ["scenarios", "interop/scenarios"].into_iter().flat_map(yaml_files).map(|path| read(&path)).collect();
    for page in std::fs::read_dir(root().join("docs")).expect("a folder") {
        let page = read(&page.expect("an entry").path());
        texts
            .extend(page.split("```yaml scenario\n").skip(1).filter_map(|it| Some(it.split_once("```")?.0.to_owned())));
    }
    for text in &texts {
        let errors = errors(&schema, &yaml("a scenario", text));
        assert!(errors.is_empty(), "{errors:#?}\n{text}");
    }
    assert!(texts.len() > 100, "{}", texts.len());
}

/// Scenarios with a key `zzz` that does not exist.
const UNKNOWN_KEYS: &[&str] = &[
    "servers: { s: { mock: basic } }\nsteps: [{ ping: {} }]\nzzz: 1",
    "servers: { s: { mock: basic } }\nmatrix: { zzz: 1 }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic } }\nredact: [{ at: /a, zzz: 1 }]\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic, zzz: 1 } }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic, timeouts: { zzz: 1 } } }\nsteps: [{ ping: {} }]",
    "servers: { s: { stdio: { command: a, zzz: 1 } } }\nsteps: [{ ping: {} }]",
    "servers: { s: { ws: { url: 'ws://a', zzz: 1 } } }\nsteps: [{ ping: {} }]",
    "{ ping: {}, zzz: 1 }",
    "{ parallel: [{ ping: {}, zzz: 1 }] }",
    "{ connect: { zzz: 1 } }",
    "{ call: { tool: a, zzz: 1 } }",
    "{ cancel: { tool: a, zzz: 1 } }",
    "{ read_resource: { uri: a, zzz: 1 } }",
    "{ get_prompt: { name: a, zzz: 1 } }",
    "{ complete: { prompt: a, argument: a, zzz: 1 } }",
    "{ listen: { tools: true, zzz: 1 } }",
    "{ await_notification: { method: a, zzz: 1 } }",
    "{ set_log_level: { level: info, zzz: 1 } }",
    "{ request: { method: a, zzz: 1 } }",
    "{ raw: { frame: {}, zzz: 1 } }",
    "{ final_answer: { dialog: [], zzz: 1 } }",
    "{ agent: { model: ../model.yaml, prompt: a, zzz: 1 } }",
    "servers: { s: { mock: basic } }\nmodels: { m: { model: 'openai:g', zzz: 1 } }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic } }\nmodels: { m: { model: 'openai:g', price: { input: 1, output: 1, date: 2026-11-01, zzz: 1 } } }\n\
         steps: [{ ping: {} }]",
    "{ agent: { model: ../model.yaml, prompt: a }, expect: { calls: [{ tool: a, zzz: 1 }] } }",
    "{ agent: { model: ../model.yaml, prompt: a }, expect: { calls: { exactly: [a], zzz: 1 } } }",
    "{ agent: { model: ../model.yaml, prompt: a }, expect: { turns: { max: 1, zzz: 1 } } }",
    "servers: { s: { mock: basic } }\nmodels: { m: 'openai:g' }\nsteps:\n  - agent: { models: m, prompt: a }\n    \
         expect: { judge: { model: m, prompt: a, zzz: 1 } }",
    "{ ping: {}, snapshot: { name: a, zzz: 1 } }",
    "{ ping: {}, only: { zzz: 1 } }",
    "{ ping: {}, expect: { text: a, zzz: 1 } }",
    "{ ping: {}, expect: { text: { not: { length: { zzz: 1 } } } } }",
    "{ ping: {}, answers: { sampling: a, zzz: 1 } }",
    "{ ping: {}, answers: { roots: [{ uri: a, zzz: 1 }] } }",
    "{ ping: {}, answers: { elicitation: { action: accept, zzz: 1 } } }",
    "{ ping: {}, answers: { sampling: [{ text: a, zzz: 1 }] } }",
    "{ ping: {}, answers: { sampling: { error: { code: 1, message: a, zzz: 1 } } } }",
];

/// Scenarios with one mistake each.
const MISTAKES: &[&str] = &[
    "steps: 1",
    "steps: []",
    "servers: { s: { mock: basic } }",
    "servers: [basic]\nsteps: [{ ping: {} }]",
    "servers: { s: {} }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic, url: 'http://a' } }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic, args: [a] } }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic, type: http } }\nsteps: [{ ping: {} }]",
    "servers: { s: { command: a, headers: { a: b } } }\nsteps: [{ ping: {} }]",
    "servers: { s: { command: a, stdio: { command: a } } }\nsteps: [{ ping: {} }]",
    "servers: { s: { url: 'http://a', ready: a } }\nsteps: [{ ping: {} }]",
    "servers: { s: { command: a, env: { a: 1 } } }\nsteps: [{ ping: {} }]",
    "servers: { s: { config: ../.mcp.json, timeouts: { call: 5s } } }\nsteps: [{ discover: {} }]",
    "servers: { s: { mock: basic, dialect: cline } }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic, timeouts: { call: 5 } } }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic } }\nmatrix: { transport: tcp }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic } }\nmatrix: { protocol: [negotiated] }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic } }\nredact: [{ at: /a, matches: a }]\nsteps: [{ ping: {} }]",
    "{ ping: 1 }",
    "{ ping: {}, discover: {} }",
    "{ timeout: 1s }",
    "{ ping: {}, timeout: 5 }",
    "{ ping: {}, server: 1 }",
    "{ ping: {}, capture: { a: b } }",
    "{ ping: {}, only: { era: old } }",
    "{ ping: {}, snapshot: a b }",
    "{ ping: {}, snapshot: { name: a, per: cell } }",
    "{ call: a }",
    "{ call: {} }",
    "{ call: { tool: [a] } }",
    "{ call: { tool: a, args: [a] } }",
    "{ call: { tool: a, task: 1 } }",
    "{ cancel: { tool: a, after: soon } }",
    "{ read_resource: 1 }",
    "{ complete: { argument: a } }",
    "{ listen: {} }",
    "{ listen: { uris: [] } }",
    "{ request: { method: a, params: [] } }",
    "{ raw: { frame: {}, headers: { a: 1 } } }",
    "{ parallel: [] }",
    "{ parallel: [{ connect: {} }] }",
    "{ parallel: [{ parallel: [{ ping: {} }] }] }",
    "{ parallel: [{ ping: {}, answers: { sampling: a } }] }",
    "{ parallel: [{ ping: {}, expect: { asked: [] } }] }",
    "{ parallel: [{ ping: {} }], expect: { noise: true } }",
    "{ parallel: [{ ping: {} }], timeout: 1s }",
    "{ final_answer: { dialog: 1 } }",
    "{ final_answer: { dialog: [] }, server: s }",
    "{ agent: { model: ../model.yaml, prompt: a, maxTurns: -1 } }",
    "{ agent: { model: ../model.yaml, prompt: a, toolFormat: json } }",
    "{ agent: { prompt: a } }",
    "{ agent: { model: ../model.yaml, models: [a], prompt: a } }",
    "{ agent: { models: [], prompt: a } }",
    "servers: { s: { mock: basic } }\nmodels: { m: 'oracle:g' }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic } }\nmodels: { m: { model: 'openai:g', temperature: -1 } }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic } }\nmodels: { m: { model: 'openai:g', price: { input: 1, output: 1 } } }\nsteps: [{ ping: {} }]",
    "servers: { s: { mock: basic } }\nmodels: { m: 'openai:g' }\nsteps: [{ agent: { models: m, prompt: a, runs: 0 } }]",
    "servers: { s: { mock: basic } }\nmodels: { m: 'openai:g' }\nsteps: [{ agent: { models: m, prompt: a, pass: most } }]",
    "{ agent: { model: ../model.yaml, prompt: a }, expect: { turns: {} } }",
    "{ agent: { model: ../model.yaml, prompt: a }, expect: { notCalled: [] } }",
    "{ agent: { model: ../model.yaml, prompt: a }, expect: { calls: [1] } }",
    "{ ping: {}, expect: {} }",
    "{ ping: {}, expect: { isError: 1 } }",
    "{ ping: {}, expect: { failure: late } }",
    "{ ping: {}, expect: { failure: [timeout] } }",
    "{ ping: {}, expect: { failure: timeout, rpcError: {} } }",
    "{ ping: {}, expect: { none: true, at: { /a: 1 } } }",
    "{ ping: {}, expect: { at: { a: 1 } } }",
    "{ ping: {}, expect: { noise: 5 } }",
    "{ ping: {}, expect: { text: { contains: a, b: 1 } } }",
    "{ ping: {}, expect: { at: { /a: [{ length: -1 }] } } }",
    "{ ping: {}, expect: { text: { matches: 1 } } }",
    "{ ping: {}, answers: {} }",
    "{ ping: {}, answers: { elicitation: [] } }",
    "{ ping: {}, answers: { elicitation: { _meta: {} } } }",
    "{ ping: {}, answers: { elicitation: { action: cancel, content: {} } } }",
    "{ ping: {}, answers: { elicitation: { action: accept, error: { code: 1, message: a } } } }",
    "{ ping: {}, answers: { sampling: { role: user } } }",
    "{ ping: {}, answers: { sampling: 1 } }",
    "{ ping: {}, answers: { roots: { uri: a } } }",
    "{ ping: {}, answers: { sampling: { error: { code: a, message: a } } } }",
];

/// A step, or a whole scenario, as a scenario.
fn scenario(text: &str) -> String {
    match text.starts_with('{') {
        true => format!("servers: {{ s: {{ mock: basic }} }}\nsteps: [{text}]\n"),
        false => format!("{text}\n"),
    }
}

/// Reads scenarios, of which the first is `list/100.yaml`.
fn list(texts: &[String]) -> Run {
    let files = Rehearse::new()
        .file("model.yaml", "rules: [{ reply: a }]")
        .file(".mcp.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let files = texts.iter().zip(100..).fold(files, |files, (text, at)| files.file(&format!("list/{at}.yaml"), text));
    files.args(["run", "--list", "list"]).run()
}

#[test]
fn the_schema_of_scenarios_refuses_what_a_run_refuses() {
    let schema = schema("scenario");
    let broken: Vec<_> = UNKNOWN_KEYS.iter().chain(MISTAKES).map(|text| scenario(text)).collect();
    let valid =
        |text: &String| ["\nzzz: 1", ", zzz: 1", "zzz: 1"].iter().fold(text.clone(), |it, key| it.replace(key, ""));
    let valid: Vec<_> = broken[..UNKNOWN_KEYS.len()].iter().map(valid).collect();
    for text in &valid {
        assert_eq!(errors(&schema, &yaml("valid", text)), [""; 0], "{text}");
    }
    list(&valid).code(0);
    let run = list(&broken).code(2);
    for (text, at) in broken.iter().zip(100..) {
        assert!(!errors(&schema, &yaml("broken", text)).is_empty(), "the schema allows\n{text}");
        assert!(run.stderr().contains(&format!("× list/{at}.yaml:")), "a run allows\n{text}");
    }
}

#[test]
fn every_fault_is_listed_with_an_example() {
    let listed = Rehearse::new().args(["mock", "--faults"]).run().code(0);
    let listed = listed.stdout_has("truncate").stdout_has("faults: [{ on: { tool: echo }, do: { delay: ");
    let json = Rehearse::new().args(["mock", "--faults", "--format", "json"]).run().code(0);
    let faults: Json = serde_json::from_str(json.stdout_text()).expect("JSON");
    for fault in faults.as_array().expect("a list") {
        let text = |value: &Json| value.as_str().is_some_and(|text| listed.stdout_text().contains(text));
        assert!(text(&fault["name"]) && text(&fault["summary"]) && text(&fault["example"]), "{fault}");
        assert!(fault["options"].as_object().expect("options").values().all(text), "{fault}");
    }
    Rehearse::new().args(["mock", "--faults", "basic"]).run().stderr_has("cannot be used with").code(2);
}

#[test]
fn each_program_has_a_config_schema() {
    let schema = |dialect: &str| {
        let run = Rehearse::new().args(["schema", "config", "--dialect", dialect]).run().code(0);
        serde_json::from_str::<Json>(run.stdout_text()).expect("JSON")
    };
    assert!(schema("vscode")["properties"]["servers"].is_object());
    let code_agent = &schema("code_agent")["properties"];
    assert!(code_agent["mcp"]["properties"]["servers"].is_object());
    assert_eq!(code_agent["mcp"]["properties"]["enabled"]["type"], "boolean");
    assert_eq!(code_agent["enabled"]["type"], "boolean");
    Rehearse::new()
        .args(["schema", "config"])
        .run()
        .stdout("")
        .stderr_has("claude-code, claude-desktop, vscode")
        .code(2);
    let wrong = Rehearse::new().args(["schema", "config", "--dialect", "vscod"]).run();
    wrong.stderr_has("did you mean `vscode`?").code(2);
    let other = Rehearse::new().args(["schema", "script", "--dialect", "vscode"]).run();
    other.stdout("").stderr_has("`--dialect` is for `rehearse schema config`").code(2);
}

#[test]
fn the_report_of_fuzzing_matches_its_schema() {
    let run = fuzz::fuzz(&["--format", "json", "--strict"]).run().code(1);
    let placed = fuzz::of_config(&["--format", "json"]).run().code(1);
    matches("fuzz", &[json(&run), json(&fuzz::sequence()), json(&placed)]);
}
