//! OAuth between client and mock on every network transport.

use mcp_rehearsal::{
    client::{
        CallOptions, Endpoint, ServerParams, Session, Target,
        oauth::{Authorizer, Interaction, Options},
    },
    document::Source,
    mock::{
        engine::Engine,
        journal::Journal,
        script::Script,
        serve::{ListenOptions, MockServer},
    },
    protocol::{Protocol, Transport, Version},
};

use crate::issuer::{Issuer, READER};

const MODERN: Version = Version::V2026_07_28;
const LEGACY: Version = Version::V2025_11_25;

async fn protected(issuer: &Issuer) -> MockServer {
    start(&format!(
        "auth: {{ tokens: [{{ token: {READER}, scopes: [read] }}], scopes: [read], authorizationServers: ['{}'] }}",
        issuer.url
    ))
    .await
}

async fn start(auth: &str) -> MockServer {
    let script = format!("{auth}\ntools: [{{ name: echo, reply: hello }}]");
    let script = Script::parse(&Source::new("mock.yaml", script)).unwrap_or_else(|error| panic!("{error}"));
    MockServer::start(Engine::new(script, 1, Journal::default()), ListenOptions::default()).await.expect("listens")
}

const TRANSPORTS: [(Transport, Version); 5] = [
    (Transport::Http, LEGACY),
    (Transport::Http, MODERN),
    (Transport::Sse, LEGACY),
    (Transport::Ws, LEGACY),
    (Transport::Ws, MODERN),
];

/// A client that needs no user, and the URL of the server.
fn client(mock: &MockServer, transport: Transport) -> (ServerParams, String) {
    let url = mock.url(transport).expect("a URL");
    let endpoint = Endpoint { url: url.clone(), headers: Vec::new() };
    let target = match transport {
        Transport::Sse => Target::Sse(endpoint),
        Transport::Ws => Target::Ws(endpoint),
        _ => Target::Http(endpoint),
    };
    let interaction = Interaction::Headless { redirect_uri: "http://localhost:3000/callback".to_owned() };
    let authorizer = Authorizer::new(&url, Options { interaction, ..Options::default() }).expect("an authorizer");
    (ServerParams { authorizer: Some(authorizer), ..ServerParams::new("mock", target) }, url)
}

#[tokio::test]
async fn a_token_that_is_bound_to_a_key_works_on_every_transport() {
    // After two requests a token has expired, and is renewed with the same key.
    for auth in ["dpop: true", "dpop: nonce", "dpop: nonce, expireAfter: 2"] {
        for (transport, version) in TRANSPORTS {
            let mock = start(&format!("auth: {{ scopes: [read], issuer: {{ {auth} }} }}")).await;
            let (params, _) = client(&mock, transport);
            let session = Session::connect(&params, Protocol::Exact(version)).await;
            let session = session.unwrap_or_else(|error| panic!("{auth} {transport}: {error}"));
            for _ in 0..3 {
                let outcome = session.call_tool("echo", None, CallOptions::default()).await;
                assert_eq!(outcome.expect("a result").text(), "hello", "{auth} {transport}");
            }
            session.close().await;
        }
    }
    // A server that takes no such tokens gets none, whatever its issuer can do; and one whose issuer cannot make them
    // gets a usual one, too.
    for change in [
        "resource: { dpop_signing_alg_values_supported: null, dpop_bound_access_tokens_required: null }, challenge: Bearer",
        "metadata: { dpop_signing_alg_values_supported: [RS256] }",
    ] {
        let mock = start(&format!("auth: {{ issuer: {{ dpop: true, {change} }} }}")).await;
        let (params, _) = client(&mock, Transport::Http);
        let error = Session::connect(&params, Protocol::Exact(LEGACY)).await.expect_err("no proof").to_string();
        assert!(error.contains("invalid_dpop_proof"), "{change}: {error}");
    }
}

#[tokio::test]
async fn every_transport_over_the_network_gets_its_token() {
    for (transport, version) in TRANSPORTS {
        let issuer = Issuer::start(3600);
        let mock = protected(&issuer).await;
        let protocol = Protocol::Exact(version);
        let (params, url) = client(&mock, transport);
        let target = params.target.clone();
        let session = Session::connect(&params, protocol).await.unwrap_or_else(|error| panic!("{transport}: {error}"));
        let outcome = session.call_tool("echo", None, CallOptions::default()).await.expect("a result");
        assert_eq!(outcome.text(), "hello", "{transport}");
        session.close().await;
        assert_eq!(issuer.count("GET /authorize"), 1, "{transport}");
        let form = issuer.last("GET /authorize").form;
        let resource = url.replacen("ws://", "http://", 1);
        assert_eq!((&form["resource"], &*form["scope"]), (&resource, "read"), "{transport}");
        let error = Session::connect(&ServerParams::new("mock", target), protocol).await.expect_err("no token");
        assert!(error.to_string().contains("HTTP 401"), "{transport}: {error}");
    }
}
