//! The `_meta` of a modern request (2026-07-28, Base Protocol: `_meta`).

use serde_json::{Map, Value};

use crate::{
    Version,
    names::{META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_VERSION},
};

/// What every request of a client in this version has in its `_meta`.
///
/// ```
/// use rehearse_protocol::{Version, meta};
/// use serde_json::json;
///
/// let meta = meta::of_request(Version::V2026_07_28, json!({ "name": "c", "version": "1" }), json!({}));
/// assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
/// ```
pub fn of_request(version: Version, client_info: Value, capabilities: Value) -> Map<String, Value> {
    let members = [
        (META_VERSION, version.as_str().into()),
        (META_CLIENT_INFO, client_info),
        (META_CLIENT_CAPABILITIES, capabilities),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
