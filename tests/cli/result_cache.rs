//! The hub caches results of a mock for their TTL.

use std::time::Duration;

use mcp_rehearsal::{
    client::{CallOptions, Endpoint, ServerParams, Target},
    hub::{Hub, HubOptions, HubServer},
    mock::{MockServer, Resource},
    protocol::{Protocol, Transport, Version},
};
use serde_json::json;

#[tokio::test]
async fn a_result_with_a_ttl_is_requested_once() {
    let contents = json!([{ "uri": "note://a", "text": "a" }]);
    let reply = json!({ "result": { "contents": contents, "ttlMs": 60_000, "cacheScope": "private" } });
    let mock = MockServer::builder().resource(Resource::new("note://a").reply(reply).expect(1));
    let mock = mock.start().await.expect("listens");
    let endpoint = Endpoint { url: mock.url(Transport::Http).expect("a URL"), headers: Vec::new() };
    let server = HubServer::new(ServerParams::new("s", Target::Http(endpoint)));
    let options = HubOptions {
        protocol: Protocol::Exact(Version::V2026_07_28),
        result_ttl: Some(Duration::from_secs(1)),
        ..HubOptions::default()
    };
    let hub = Hub::new([server], options);
    let read = || async {
        let uri = "note://a";
        let read = hub.request("s", async |session, _| {
            hub.caching_session(session).read_resource(uri, CallOptions::default()).await
        });
        read.await.expect("a session").expect("a result").get().to_owned()
    };
    assert_eq!(read().await, read().await);
    mock.assert_verified();
    hub.close().await;
}
