//! What the prober does in normal work: what it reads, gets, completes and calls.

use rehearse_conformance::{CaseGroup, Material};
use serde_json::{Value, json};

use super::{
    case_groups::send_cases,
    completions::{expand_templates, get_prompts},
};
use crate::{connection::ProbeConnection, lists, prober::Prober};

/// How many listed resources are read.
const USED_ITEMS: usize = 3;
/// How many listed resources are subscribed to until the server accepts one.
const SUBSCRIBED: usize = 12;
/// How many requests are sent at once.
const PIPELINED: usize = 8;

/// Does the normal work on the connection on which the lists were read.
pub(super) async fn main_connection(prober: &Prober<'_>, mut connection: ProbeConnection) -> ProbeConnection {
    let material = &prober.material;
    if !material.is_modern() {
        connection.request("ping", Value::Null).await;
    }
    read_listed(&mut connection, material).await;
    send_cases(&mut connection, prober, CaseGroup::Main).await;
    pipeline(&mut connection, material).await;
    let mut again = material.clone();
    lists::read_again(&mut connection, &mut again).await;
    send_cases(&mut connection, prober, CaseGroup::Calls).await;
    lists::read_again(&mut connection, &mut again).await;
    connection
}

/// Reads listed resources, subscribes to one, gets prompts and expands templates.
async fn read_listed(connection: &mut ProbeConnection, material: &Material) {
    let mut resources: Vec<_> = material.resources.iter().filter(|it| it["uri"].is_string()).collect();
    resources.sort_by_key(|resource| resource["size"].as_u64().unwrap_or(u64::MAX));
    for resource in resources.iter().take(USED_ITEMS) {
        for _ in 0..2 {
            connection.request("resources/read", json!({ "uri": resource["uri"] })).await;
        }
    }
    if !material.is_modern() && material.declares("resources/subscribe") {
        subscribe_once(connection, &resources).await;
    }
    get_prompts(connection, material).await;
    expand_templates(connection, material).await;
}

/// Subscribes to listed resources until the server accepts one: not each must be one to subscribe to.
async fn subscribe_once(connection: &mut ProbeConnection, resources: &[&Value]) {
    for resource in resources.iter().take(SUBSCRIBED) {
        let params = json!({ "uri": resource["uri"] });
        if connection.is_over() {
            return;
        }
        if connection.request("resources/subscribe", params.clone()).await.result().is_some() {
            connection.request("resources/unsubscribe", params).await;
            return;
        }
    }
}

/// Sends several requests before it reads an answer.
async fn pipeline(connection: &mut ProbeConnection, material: &Material) {
    let method = material.served_list().unwrap_or("ping");
    if connection.wire().is_http() || (material.is_modern() && method == "ping") {
        return;
    }
    let from = connection.wire().recorder().end();
    for number in 0..PIPELINED {
        connection.start(&format!("pipelining/{number}"), method).await;
    }
    let mut left = PIPELINED;
    let grace = connection.grace() * 4;
    connection
        .wire()
        .wait_for(from, grace, |frame| {
            let is_response = serde_json::from_slice::<Value>(&frame.bytes).is_ok_and(|it| it.get("method").is_none());
            if frame.direction == rehearse_protocol::Direction::ServerToClient && is_response {
                left -= 1;
            }
            left == 0
        })
        .await;
}
