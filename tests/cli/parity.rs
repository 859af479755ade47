//! Generated scripts and calls have the same responses on every transport.

use std::path::Path;

use mcp_rehearsal::{
    client::{CallOptions, CommandSpec, Endpoint, Failure, ServerParams, Session, Target, pipe},
    document::Source,
    mock::{
        engine::Engine,
        journal::Journal,
        script::Script,
        serve::{ListenOptions, MockServer, serve_pipe},
    },
    protocol::{Protocol, Transport, Version},
};
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};
use tokio_util::sync::CancellationToken;

const TOOLS: usize = 3;

fn reply() -> impl Strategy<Value = Json> {
    let text = "[ -~é世]{0,12}".prop_filter("no template", |text: &String| !text.contains('{'));
    prop_oneof![
        text.prop_map(|text| json!({ "text": text })),
        Just(json!({ "text": "{{ args.n | default('none') }} of call {{ call }}" })),
        Just(json!({ "json": { "n": "{{ args.n | default(0) }}", "drawn": "{{ rand(1, 1000) }}" } })),
        any::<i32>().prop_map(|n| json!({ "structured": { "n": n, "list": [n, null] }, "_meta": { "k": n } })),
        Just(json!({ "error": "broken" })),
        Just(json!({ "rpcError": { "code": -7, "message": "no", "data": [1.5] } })),
        Just(json!({ "result": { "content": [], "x": { "y": 1.0 } } })),
    ]
}

fn tool(index: usize) -> impl Strategy<Value = Json> {
    let answers = prop_oneof![
        reply().prop_map(|reply| json!({ "reply": reply })),
        (proptest::collection::vec(reply(), 1..4), prop_oneof!["last", "cycle", "error"])
            .prop_map(|(replies, then)| json!({ "replies": replies, "then": then })),
        reply().prop_map(
            |reply| json!({ "steps": [{ "progress": { "progress": 1 } }, { "wait": "1ms" }, { "reply": reply }] })
        ),
        (reply(), reply()).prop_map(|(yes, no)| json!({
            "rules": [{ "when": { "args": { "n": { "schema": { "minimum": 5 } } } }, "reply": yes }, { "reply": no }]
        })),
    ];
    answers.prop_map(move |mut answer| {
        answer["name"] = format!("tool{index}").into();
        answer["inputSchema"] = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        answer
    })
}

fn script() -> impl Strategy<Value = Json> {
    let tools: Vec<_> = (0..TOOLS).map(tool).collect();
    (tools, 1usize..4).prop_map(|(tools, page)| json!({ "server": { "name": "p" }, "pageSize": page, "tools": tools }))
}

fn calls() -> impl Strategy<Value = Vec<(usize, Json)>> {
    let argument =
        prop_oneof![(-10i64..20).prop_map(|n| json!({ "n": n })), Just(json!({})), Just(json!({ "n": "x" }))];
    proptest::collection::vec((0..=TOOLS, argument), 1..8)
}

/// All responses, in order. All cells have the same version, so the envelopes are equal, too.
async fn answers(target: Target, version: Version, calls: &[(usize, Json)]) -> Vec<String> {
    let session = Session::connect(&ServerParams::new("p", target), Protocol::Exact(version)).await;
    let session = session.unwrap_or_else(|error| panic!("{error}"));
    let tools = session.list_tools(CallOptions::default()).await.expect("a list");
    let mut answers: Vec<_> = tools.items.iter().map(|tool| tool.get().to_owned()).collect();
    for (tool, arguments) in calls {
        let arguments: Map<String, Json> = serde_json::from_value(arguments.clone()).expect("an object");
        answers.push(match session.call_tool(&format!("tool{tool}"), Some(arguments), CallOptions::default()).await {
            Ok(outcome) => outcome.raw.get().to_owned(),
            Err(Failure::Rpc(error)) => serde_json::to_string(&error).expect("serialises"),
            Err(failure) => panic!("{failure}"),
        });
    }
    session.close().await;
    answers
}

async fn compare(path: &Path, version: Version, calls: &[(usize, Json)]) -> Result<(), TestCaseError> {
    let engine = || {
        let source = Source::read(path).expect("reads");
        Engine::new(Script::parse(&source).unwrap_or_else(|error| panic!("{error}")), 1, Journal::default())
    };
    let (address, mut listener) = pipe::listen();
    let (served, stop) = (engine(), CancellationToken::new());
    let serving = tokio::spawn(async move {
        let pipe = listener.accept().await.expect("a client");
        let (reader, writer) = tokio::io::split(pipe);
        serve_pipe(served, Transport::Memory, reader, writer, stop, std::time::Duration::ZERO).await
    });
    let in_memory = answers(Target::Memory(address), version, calls).await;
    serving.await.expect("no panic").expect("no error");

    let args = ["mock", &path.display().to_string(), "--seed", "1"].map(str::to_owned).to_vec();
    let program = env!("CARGO_BIN_EXE_rehearse").to_owned();
    let over_stdio =
        answers(Target::Stdio(CommandSpec { program, args, ..CommandSpec::default() }), version, calls).await;
    prop_assert_eq!(&in_memory, &over_stdio);

    let server = MockServer::start(engine(), ListenOptions::default()).await.expect("a free port");
    let endpoint = Endpoint { url: server.url(Transport::Http).expect("a URL"), headers: Vec::new() };
    let over_http = answers(Target::Http(endpoint), version, calls).await;
    server.stop(std::time::Duration::ZERO).await;
    prop_assert_eq!(&in_memory, &over_http);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn any_script_and_calls_give_the_same_answers_on_memory_stdio_and_http(script in script(), calls in calls(), modern: bool) {
        let version = if modern { Version::LATEST } else { Version::LATEST_LEGACY };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("script.yaml");
        std::fs::write(&path, script.to_string()).expect("writes");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(compare(&path, version, &calls))?;
    }
}
