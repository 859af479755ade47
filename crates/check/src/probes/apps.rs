//! Apps: their tools are listed for a client that shows them, and their pages are read.

use rehearse_conformance::{Case, CaseGroup};
use serde_json::{Value, json};

use crate::{connection::ProbeConnection, prober::Prober};

const CASE: &str = "apps";
/// How many pages are read, and of how many parts of the list.
const USED_PAGES: usize = 8;
const MAX_PARTS: usize = 50;

/// Lists the tools as a client that shows apps: others may get other tools. Then reads the pages that they name.
pub(super) async fn apps(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    if !prober.material.declares("tools") || prober.material.large.iter().any(|(method, _)| *method == "tools/list") {
        return;
    }
    let (mut uris, mut cursor) = (Vec::<String>::new(), None::<Value>);
    for _ in 0..MAX_PARTS {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let answer = connection.send(&Case::request(CASE, CaseGroup::Calls, "tools/list", params)).await;
        let Some(result) = answer.result() else { break };
        for tool in result["tools"].as_array().into_iter().flatten() {
            let meta = &tool["_meta"];
            let uri = meta["ui"]["resourceUri"].as_str().or_else(|| meta["ui/resourceUri"].as_str());
            // Another scheme may be one that costs something to read.
            if let Some(uri) = uri.filter(|uri| uri.starts_with("ui://") && !uris.iter().any(|it| it == uri)) {
                uris.push(uri.to_owned());
            }
        }
        match result.get("nextCursor").filter(|next| next.is_string() && Some(*next) != cursor.as_ref()) {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    for uri in uris.iter().take(USED_PAGES) {
        if connection.is_over() || !connection.has_room() {
            return;
        }
        let params = json!({ "uri": uri });
        connection.send(&Case::request(CASE, CaseGroup::Calls, "resources/read", params)).await;
    }
}
