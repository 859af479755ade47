//! Event streams of streamable HTTP: several at once, those of GET, and streams that are resumed.

use rehearse_conformance::{Case, CaseGroup, Material};
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
    let Some(mut connection) = prober.open_session().await else { return Vec::new() };
    let material = &prober.material;
    let list = |name: String| Case::request(name, CaseGroup::Fresh, material.cheap_method(), json!({}));
    let get = |name: &str| Case::http(name, CaseGroup::Fresh, "GET");
    let is_legacy = prober.version.era() == Era::Legacy;
    let lists: Vec<_> =
        (0..3).filter_map(|number| connection.begin_exchange(&list(format!("concurrent/{number}")))).collect();
    connection.finish_exchanges(lists).await;
    if is_legacy {
        let unknown = get("get-stream/unknown-id").header(LAST_EVENT_HEADER, "rehearse-none");
        let streams = [get("get-stream/get"), get("get-stream/second"), unknown];
        let streams = streams.iter().filter_map(|case| connection.begin_exchange(case)).collect();
        connection.read(streams).await;
        let mut requests = vec![list("resume/list".to_owned()), list("resume/list".to_owned())];
        requests.extend(material.callable.iter().take(CALLED_TOOLS).map(|(tool, arguments)| {
            Case::request("resume/call", CaseGroup::Fresh, "tools/call", Material::call_params(tool, arguments))
        }));
        let mut ids = Vec::new();
        for request in &requests {
            let Some(exchange) = connection.begin_exchange(request) else { break };
            ids.extend(connection.first_event_id(&exchange).await);
        }
        let resumed =
            ids.iter().filter_map(|id| connection.begin_exchange(&get("resume/stream").header(LAST_EVENT_HEADER, id)));
        let resumed = resumed.collect();
        connection.read(resumed).await;
    }
    vec![connection.close().await]
}
