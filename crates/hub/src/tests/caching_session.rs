//! Caching with the TTL and the scope of the server.

use super::*;
use rehearse_client::oauth::{Authorizer, Options, TokenStore};

const MODERN: Protocol = Protocol::Exact(Version::V2026_07_28);

fn caching_options(ttl: Duration) -> HubOptions {
    HubOptions { protocol: MODERN, result_ttl: Some(ttl), ..HubOptions::default() }
}

/// The responses of a modern server to common requests.
fn modern_response(message: &Value) -> Vec<String> {
    match message["method"].as_str() {
        Some("server/discover") => {
            let capabilities = json!({ "tools": {}, "resources": {} });
            let discovered = json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                "ttlMs": 0, "cacheScope": "private",
            });
            vec![result(message, &discovered.to_string())]
        }
        Some("tools/list") => {
            let tools = definitions(&["read", "write", "read-changes"]);
            let listed = json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "public" });
            vec![result(message, &listed.to_string())]
        }
        _ => greet(message),
    }
}

/// A server with this TTL and scope, and the number of its requests.
fn caching_server(ttl: Value, scope: &'static str) -> (Server, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = in_memory(move |message| {
        let with = |mut servers: Value| {
            count.fetch_add(1, Ordering::Relaxed);
            (servers["resultType"], servers["ttlMs"], servers["cacheScope"]) =
                ("complete".into(), ttl.clone(), scope.into());
            vec![result(message, &servers.to_string())]
        };
        let params = &message["params"];
        match message["method"].as_str() {
            Some("resources/read") if params["uri"] == "a://asks" && params["requestState"].is_null() => {
                let asks = json!({ "resultType": "input_required", "requestState": "x" });
                vec![result(message, &asks.to_string())]
            }
            Some("resources/read") => with(json!({ "contents": [{ "uri": params["uri"], "text": "a" }] })),
            Some("resources/list") if params["cursor"].is_null() => with(json!({ "resources": [], "nextCursor": "2" })),
            Some("resources/list") => with(json!({ "resources": [{ "uri": "a://b", "name": "b" }] })),
            Some("tools/call") if params["name"] == "read-changes" => {
                let changed = r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#.to_owned();
                [changed].into_iter().chain(with(json!({ "content": [] }))).collect()
            }
            Some("tools/call") => with(json!({ "content": [] })),
            _ => modern_response(message),
        }
    });
    (server, asked)
}

fn times(asked: &AtomicUsize) -> usize {
    asked.swap(0, Ordering::Relaxed)
}

async fn read(hub: &Hub, uri: &str) -> String {
    let read = hub
        .request("s", async |session, _| hub.caching_session(session).read_resource(uri, CallOptions::default()).await);
    read.await.expect("reaches").expect("a result").get().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_result_is_reused_for_its_ttl() {
    let (server, asked) = caching_server(json!(60_000), "private");
    let hub = Hub::new([member("s", &target(&server))], caching_options(Duration::ZERO));
    let first = read(&hub, "a://b").await;
    assert_eq!((read(&hub, "a://b").await, times(&asked)), (first, 1));
    read(&hub, "a://c").await;
    assert_eq!(times(&asked), 1);
    tokio::time::advance(Duration::from_secs(60)).await;
    read(&hub, "a://b").await;
    assert_eq!(times(&asked), 1);
    // Each page is cached separately.
    for expected in [2, 0] {
        let list = async |session: &Session, _| {
            hub.caching_session(session).list(List::Resources, CallOptions::default()).await
        };
        let listing = hub.request("s", list).await.expect("reaches").expect("a listing");
        assert_eq!((listing.items.len(), listing.pages, times(&asked)), (1, 2, expected));
    }
    // A result that needed client input is not cached.
    for _ in 0..2 {
        read(&hub, "a://asks").await;
        assert_eq!(times(&asked), 1);
    }
    // The session itself has no cache.
    let read_uncached = async |session: &Session, _| session.read_resource("a://b", CallOptions::default()).await;
    hub.request("s", read_uncached).await.expect("reaches").expect("a result");
    assert_eq!(times(&asked), 1);
    hub.close().await;
}

#[tokio::test]
async fn results_without_a_valid_ttl_are_not_reused() {
    for ttl in [json!(0), json!(-1), json!("60000"), Value::Null] {
        let (server, asked) = caching_server(ttl.clone(), "public");
        let hub = Hub::new([member("s", &target(&server))], caching_options(Duration::from_secs(60)));
        read(&hub, "a://b").await;
        read(&hub, "a://b").await;
        assert_eq!(times(&asked), 2, "{ttl}");
        hub.close().await;
    }
    let (server, asked) = caching_server(json!(60_000), "public");
    let hub =
        Hub::new([member("s", &target(&server))], HubOptions { result_ttl: None, ..caching_options(Duration::ZERO) });
    read(&hub, "a://b").await;
    read(&hub, "a://b").await;
    assert_eq!(times(&asked), 2);
    hub.close().await;
}

#[tokio::test]
async fn a_private_result_is_reused_only_with_the_same_authorization() {
    for (scope, expected) in [("private", 1), ("unknown", 1), ("public", 0)] {
        let (server, asked) = caching_server(json!(60_000), scope);
        let options = Options { store: TokenStore::memory(), ..Options::default() };
        let authorizer = Authorizer::new("https://h/mcp", options).expect("an authorizer");
        let mut with_token = member("s", &target(&server));
        with_token.config.authorizer = Some(authorizer.clone());
        let hub = Hub::new([with_token], caching_options(Duration::from_secs(60)));
        hub.discover().await.expect("discovers");
        text(&hub, "read").await.expect("a result");
        read(&hub, "a://b").await;
        assert_eq!(times(&asked), 2);
        // Another user has logged in.
        authorizer.reload().await;
        read(&hub, "a://b").await;
        assert_eq!(times(&asked), expected, "{scope}");
        text(&hub, "read").await.expect("a result");
        assert_eq!(times(&asked), expected, "{scope}");
        hub.close().await;
    }
}

#[tokio::test]
async fn changes_writing_calls_and_disconnects_invalidate_the_cache() {
    let (server, asked) = caching_server(json!(60_000), "public");
    let hub = Hub::new([member("s", &target(&server))], caching_options(Duration::from_secs(60)));
    hub.discover().await.expect("discovers");
    read(&hub, "a://b").await;
    text(&hub, "write").await.expect("a result");
    read(&hub, "a://b").await;
    assert_eq!(times(&asked), 3);
    text(&hub, "read-changes").await.expect("a result");
    // The call itself, and the read after it once the change is noticed.
    while asked.load(Ordering::Relaxed) < 2 {
        read(&hub, "a://b").await;
        tokio::task::yield_now().await;
    }
    times(&asked);
    hub.reconnect("s").await.expect("connects");
    read(&hub, "a://b").await;
    assert_eq!(times(&asked), 1);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_can_shorten_the_ttl_of_a_result() {
    for (ttl, is_kept) in [(json!(0), false), (json!(1_000), false), (json!(20_000), true), (Value::Null, true)] {
        let (server, asked) = caching_server(ttl.clone(), "public");
        let hub = Hub::new([member("s", &target(&server))], caching_options(Duration::from_secs(10)));
        hub.discover().await.expect("discovers");
        for seconds in [5, 6] {
            text(&hub, "read").await.expect("a result");
            tokio::time::advance(Duration::from_secs(seconds)).await;
        }
        assert_eq!(times(&asked), if is_kept { 1 } else { 2 }, "{ttl}");
        text(&hub, "read").await.expect("a result");
        assert_eq!(times(&asked), 1, "{ttl}");
        hub.close().await;
    }
}
