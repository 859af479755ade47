//! Event streams of streamable HTTP: several at once, those of GET, and streams that are resumed.

use rehearse_conformance::{Case, Lane as CaseLane, Material};
use rehearse_protocol::{Era, Trace, Transport, names::LAST_EVENT_HEADER};
use serde_json::json;

use crate::prober::Prober;

/// How many tools are called to have their streams.
const CALLED_TOOLS: usize = 2;

/// Opens streams, sends requests at the same time, drops their streams and resumes them.
pub(super) async fn streams(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.transport() != Transport::Http {
        return Vec::new();
    }
    let Some(mut lane) = prober.open_session().await else { return Vec::new() };
    let material = &prober.material;
    let list = |name: String| Case::request(name, CaseLane::Fresh, material.cheap_method(), json!({}));
    let get = |name: &str| Case::http(name, CaseLane::Fresh, "GET");
    let is_legacy = prober.version.era() == Era::Legacy;
    let lists: Vec<_> =
        (0..3).filter_map(|number| lane.begin_exchange(&list(format!("concurrent/{number}")))).collect();
    lane.finish_exchanges(lists).await;
    if is_legacy {
        let unknown = get("get-stream/unknown-id").header(LAST_EVENT_HEADER, "rehearse-none");
        let streams = [get("get-stream/get"), get("get-stream/second"), unknown];
        let streams = streams.iter().filter_map(|case| lane.begin_exchange(case)).collect();
        lane.read(streams).await;
        let mut requests = vec![list("resume/list".to_owned()), list("resume/list".to_owned())];
        requests.extend(material.callable.iter().take(CALLED_TOOLS).map(|(tool, arguments)| {
            Case::request("resume/call", CaseLane::Fresh, "tools/call", Material::call_params(tool, arguments))
        }));
        let mut ids = Vec::new();
        for request in &requests {
            let Some(exchange) = lane.begin_exchange(request) else { break };
            ids.extend(lane.first_event_id(&exchange).await);
        }
        let resumed =
            ids.iter().filter_map(|id| lane.begin_exchange(&get("resume/stream").header(LAST_EVENT_HEADER, id)));
        let resumed = resumed.collect();
        lane.read(resumed).await;
    }
    vec![lane.close().await]
}
