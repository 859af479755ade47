//! Whether a tool that says it is idempotent has the same effect once and twice.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

use crate::{oracle::is_accepted, server::Server, survey, target::Target};
use rehearse_client::CallOptions;
use rehearse_protocol::{List, Operation};
use rehearse_report::fuzz::{FuzzBug, InputKind, Oracle};

/// How many resources are compared.
const RESOURCES: usize = 20;
/// How many equal calls follow the first: a late effect of the first is no effect of all of them.
const REPEATS: usize = 3;

/// What a server shows: its lists and the contents of its resources.
type Shown = BTreeMap<String, Json>;

/// The bug of a tool with `idempotentHint`, of which each further call with the same arguments has an effect (2026-07-28,
/// Tools: Tool Annotations).
pub(crate) async fn difference(server: &mut Server<'_>, target: &Target, input: &Json) -> Option<FuzzBug> {
    if server.grace().is_zero() {
        return None;
    }
    server.restart().await.ok()?;
    call(server, target, input).await?;
    let mut before = shown(server).await?;
    let mut changing: Vec<String> = before.keys().cloned().collect();
    let mut longest = Duration::ZERO;
    for _ in 0..REPEATS {
        let begun = Instant::now();
        call(server, target, input).await?;
        let after = shown(server).await?;
        longest = longest.max(begun.elapsed());
        changing.retain(|name| before.get(name) != after.get(name));
        before = after;
    }
    if changing.is_empty() {
        return None;
    }
    // What changes by itself, such as a clock, is no effect of a call.
    sleep(longest).await;
    let later = shown(server).await?;
    let name = changing.into_iter().find(|name| before.get(name) == later.get(name))?;
    let message = format!(
        "The tool is annotated with idempotentHint, and each further call with the same arguments changes {name}."
    );
    let (oracle, target) = (Oracle::NotIdempotent, target.id.clone());
    Some(FuzzBug {
        oracle,
        target,
        before: None,
        arguments: input.clone(),
        message,
        is_valid: Some(true),
        input_kind: InputKind::Valid,
    })
}

async fn call(server: &mut Server<'_>, target: &Target, input: &Json) -> Option<()> {
    let left = server.grace();
    let outcome = server.send(target, input, left).await.filter(|_| !left.is_zero())?;
    is_accepted(&outcome).then_some(())
}

async fn shown(server: &Server<'_>) -> Option<Shown> {
    let session = server.session()?;
    let mut shown = Shown::new();
    for list in session.info().lists().filter(|list| *list != List::ResourceTemplates) {
        let (items, _) = survey::list(session, list).await.ok()?;
        shown.insert(list.method().to_owned(), items.into());
    }
    let listed = shown.get(List::Resources.method()).and_then(Json::as_array).cloned().unwrap_or_default();
    for uri in listed.iter().filter_map(|it| it["uri"].as_str()).take(RESOURCES) {
        let Operation { method, params } = Operation::read(uri);
        let options = CallOptions::with_timeout(server.grace());
        let read = session.request_until_final(&method, Some(params), options).await;
        let contents = read.ok().and_then(|read| serde_json::from_str::<Json>(read.result.get()).ok());
        shown.insert(format!("the resource {uri}"), contents.unwrap_or_default()["contents"].clone());
    }
    Some(shown)
}
