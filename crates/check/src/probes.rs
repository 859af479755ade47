//! What the prober does in normal work: what it reads, gets, completes and calls.

use futures_util::future::BoxFuture;
use rehearse_conformance::{Case, CaseBody, Lane as CaseLane, Material};
use serde_json::{Value, json};

use crate::lane::Lane;

/// How many listed resources are read, and how many prompts are got.
const USED_ITEMS: usize = 3;
/// How many requests are sent at once.
const PIPELINED: usize = 8;

/// Reads listed resources, gets prompts and asks for completions.
pub(crate) async fn read_listed(lane: &mut Lane, material: &Material) {
    let mut resources: Vec<_> = material.resources.iter().filter(|it| it["uri"].is_string()).collect();
    resources.sort_by_key(|resource| resource["size"].as_u64().unwrap_or(u64::MAX));
    for resource in resources.iter().take(USED_ITEMS) {
        for _ in 0..2 {
            lane.request("resources/read", json!({ "uri": resource["uri"] })).await;
        }
    }
    for prompt in material.prompts.iter().filter(|it| it["name"].is_string()).take(USED_ITEMS) {
        let arguments: serde_json::Map<_, _> = prompt["arguments"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|argument| Some((argument["name"].as_str()?.to_owned(), json!("rehearse"))))
            .collect();
        lane.request("prompts/get", json!({ "name": prompt["name"], "arguments": arguments })).await;
    }
    if !material.declares("completions") {
        return;
    }
    let prompt = material.prompts.iter().find_map(|prompt| {
        let argument = prompt["arguments"].as_array()?.first()?["name"].as_str()?;
        Some((json!({ "type": "ref/prompt", "name": prompt["name"] }), argument.to_owned()))
    });
    let template = material.templates.iter().find_map(|template| {
        let uri = template["uriTemplate"].as_str()?;
        let variable =
            uri.split_once('{')?.1.split_once('}')?.0.trim_start_matches(['+', '#', '/', '?', '&', ';', '.']);
        let variable = variable.split([',', '*', ':']).next()?;
        Some((json!({ "type": "ref/resource", "uri": uri }), variable.to_owned()))
    });
    for (reference, argument) in prompt.into_iter().chain(template) {
        let argument = json!({ "name": argument, "value": "" });
        lane.request("completion/complete", json!({ "ref": reference, "argument": argument })).await;
    }
}

/// Calls the tools that may be called, each with a progress token.
pub(crate) async fn call_tools(lane: &mut Lane, material: &Material) {
    for (number, (name, arguments)) in material.callable.iter().enumerate() {
        let mut params = Material::call_params(name, arguments);
        params["_meta"] = json!({ "progressToken": format!("rehearse-{number}") });
        lane.request("tools/call", params).await;
    }
}

/// Sends several requests before it reads an answer.
pub(crate) async fn pipeline(lane: &mut Lane, material: &Material) {
    let method = material.list_methods().first().copied().unwrap_or("ping");
    if lane.wire().is_http() || (material.is_modern() && method == "ping") {
        return;
    }
    let from = lane.wire().recorder().end();
    for number in 0..PIPELINED {
        lane.start(&format!("pipelining/{number}"), method).await;
    }
    let mut left = PIPELINED;
    let grace = lane.grace() * 4;
    lane.wire()
        .wait_for(from, grace, |frame| {
            let is_response = serde_json::from_slice::<Value>(&frame.bytes).is_ok_and(|it| it.get("method").is_none());
            if frame.direction == rehearse_protocol::Direction::ServerToClient && is_response {
                left -= 1;
            }
            left == 0
        })
        .await;
}

/// Sends the cases of a lane, one after the other.
pub(crate) fn send_cases<'a>(lane: &'a mut Lane, cases: &'a [Case], on: CaseLane) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        let mut is_silence_awaited = false;
        for case in cases.iter().filter(|case| case.lane == on) {
            if lane.is_over() {
                return;
            }
            lane.send(case).await;
            is_silence_awaited |= matches!(case.body, CaseBody::Notification { .. });
        }
        if is_silence_awaited {
            lane.be_silent().await;
        }
    })
}
