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
    let script = format!(
        "auth: {{ tokens: [{{ token: {READER}, scopes: [read] }}], scopes: [read], authorizationServers: ['{}'] }}\n\
         tools: [{{ name: echo, reply: hello }}]",
        issuer.url
    );
    let script = Script::parse(&Source::new("mock.yaml", script)).unwrap_or_else(|error| panic!("{error}"));
    MockServer::start(Engine::new(script, 1, Journal::default()), ListenOptions::default()).await.expect("listens")
}

#[tokio::test]
async fn every_transport_over_the_network_gets_its_token() {
    for (transport, version) in [
        (Transport::Http, LEGACY),
        (Transport::Http, MODERN),
        (Transport::Sse, LEGACY),
        (Transport::Ws, LEGACY),
        (Transport::Ws, MODERN),
    ] {
        let issuer = Issuer::start(3600);
        let mock = protected(&issuer).await;
        let (url, protocol) = (mock.url(transport).expect("a URL"), Protocol::Exact(version));
        let endpoint = Endpoint { url: url.clone(), headers: Vec::new() };
        let target = match transport {
            Transport::Sse => Target::Sse(endpoint),
            Transport::Ws => Target::Ws(endpoint),
            _ => Target::Http(endpoint),
        };
        let interaction = Interaction::Headless { redirect_uri: "http://localhost:3000/callback".to_owned() };
        let authorizer = Authorizer::new(&url, Options { interaction, ..Options::default() }).expect("an authorizer");
        let params = ServerParams { authorizer: Some(authorizer), ..ServerParams::new("mock", target.clone()) };
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
