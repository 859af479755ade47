//! The resources before and after calls of tools.

use std::time::Duration;

use rehearse_conformance::{Case, CaseGroup, Material};
use rehearse_protocol::Trace;
use serde_json::{Value, json};

use crate::{CheckOptions, connection::ProbeConnection, lists, options::selects, prober::Prober};

/// How many resources are read.
const READ: usize = 3;
/// After what time a resource is seen again, to know whether it changes without a call: longer than a second, by which
/// many a text changes.
const IDLE: Duration = Duration::from_millis(1200);
/// The check whose judge looks at it.
pub(crate) const FEEDS: &[&str] = &["safety.hint.effect"];

/// What the resources were before the calls.
#[derive(Debug)]
pub(crate) struct Before(Vec<Option<String>>);

/// Sees the resources twice before tools are called. `None` if there is nothing to see, or nothing that is called says
/// that it changes nothing.
pub(crate) async fn before(
    connection: &mut ProbeConnection,
    material: &Material,
    options: &CheckOptions,
) -> Option<Before> {
    let is_wanted = options.selected().any(|check| FEEDS.iter().any(|pattern| selects(pattern, &check.id)));
    let is_read_only = |name: &str| {
        material.tools.iter().any(|tool| tool["name"] == name && tool["annotations"]["readOnlyHint"] == true)
    };
    let mut called = lists::callable(&material.tools, options).map(|(name, _)| name).peekable();
    if !is_wanted || material.resources.is_empty() || called.peek().is_none() || !called.all(|it| is_read_only(&it)) {
        return None;
    }
    see(connection, material, "effects/before").await;
    Some(Before(see(connection, material, "effects/before").await))
}

/// Sees the resources after the calls. Whether anything differs; then they are seen once more.
pub(crate) async fn after(connection: &mut ProbeConnection, material: &Material, before: Option<Before>) -> bool {
    let Some(Before(before)) = before else { return false };
    let after = see(connection, material, "effects/after").await;
    // What had no answer, or was too large to be read again, says nothing.
    let differs = before.iter().zip(&after).any(|(one, other)| one.is_some() && other.is_some() && one != other);
    if differs {
        connection.wait(IDLE).await;
        see(connection, material, "effects/again").await;
    }
    differs
}

/// Sees on a connection of its own whether the resources change without a call.
pub(crate) async fn idle(prober: &Prober<'_>) -> Vec<Trace> {
    if !prober.has_effects {
        return Vec::new();
    }
    let Some(mut connection) = prober.open_session().await else { return Vec::new() };
    see(&mut connection, &prober.material, "effects/idle").await;
    connection.wait(IDLE).await;
    see(&mut connection, &prober.material, "effects/idle").await;
    vec![connection.close().await]
}

/// Lists the resources and reads some. Returns the answers without digits: clocks and counters differ only in them.
async fn see(connection: &mut ProbeConnection, material: &Material, case: &str) -> Vec<Option<String>> {
    let request = |method: &str, params: Value| Case::request(case, CaseGroup::Main, method, params);
    let uris = material.resources.iter().filter_map(|it| it["uri"].as_str()).take(READ);
    let reads = uris.map(|uri| request("resources/read", json!({ "uri": uri })));
    let mut seen = Vec::new();
    for case in [request("resources/list", json!({}))].into_iter().chain(reads) {
        let answer = connection.send(&case).await.into_result();
        seen.push(answer.map(|it| it.to_string().replace(|it: char| it.is_ascii_digit(), "")));
    }
    seen
}
