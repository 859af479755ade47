//! What the acts promise to the clients that meet them.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use rehearse_check::client::{ActScript, ActServer};
use rehearse_client::{CallOptions, Endpoint, ServerParams, Session, Target, example};
use rehearse_protocol::{Era, Protocol, Transport, Version};
use serde_json::Value;

/// How many acts are played at the same time.
const AT_ONCE: usize = 24;

/// The tools that the mock of an act lists in this version, each with the failure of a call, if it fails.
async fn called(server: &ActServer, version: Version) -> Vec<(String, Option<String>)> {
    let url = server.mock().url(Transport::Http).expect("a URL");
    let params = ServerParams::new("act", Target::Http(Endpoint { url, headers: Vec::new() }));
    let Ok(session) = Session::connect(&params, Protocol::Exact(version)).await else { return Vec::new() };
    let listed = session.list_tools(CallOptions::default()).await.map(|listed| listed.items).unwrap_or_default();
    let mut called = Vec::new();
    for tool in listed {
        let tool: Value = serde_json::from_str(tool.get()).expect("JSON");
        let name = tool["name"].as_str().expect("a name");
        let arguments = Some(example::object(&tool["inputSchema"]));
        let failure = match session.call_tool(name, arguments, CallOptions::default()).await {
            Ok(outcome) if outcome.is_error => Some(outcome.raw.to_string()),
            Ok(_) => None,
            Err(failure) => Some(failure.to_string()),
        };
        called.push((name.to_owned(), failure));
    }
    session.close().await;
    called
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_that_an_act_lists_can_be_called() {
    let acts = ActScript::select(&[]).expect("the acts");
    let play = |mut act: ActScript| async move {
        // What an act does wrong on purpose, and who may come, have nothing to do with what its tools are.
        act.script.faults.clear();
        act.script.http.get = None;
        act.script.auth = None;
        let (name, tools, versions) = (act.name.clone(), act.tools().len(), act.script.versions.clone());
        let server = ActServer::start(act, 1, ([127, 0, 0, 1], 0).into(), None).await.expect("starts");
        let mut listed = BTreeSet::new();
        let mut refused = Vec::new();
        let newest = [Era::Legacy, Era::Modern].map(|era| versions.iter().copied().filter(|it| it.era() == era).max());
        for version in newest.into_iter().flatten() {
            for (tool, failure) in called(&server, version).await {
                refused.extend(failure.map(|failure| format!("{name}, {version}: {tool}: {failure}")));
                listed.insert(tool);
            }
        }
        server.finish(true).await;
        if tools > 0 && listed.is_empty() {
            refused.push(format!("{name}: no tool is listed"));
        }
        refused
    };
    let played: Vec<_> = stream::iter(acts).map(play).buffer_unordered(AT_ONCE).collect().await;
    let refused: Vec<_> = played.into_iter().flatten().collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
