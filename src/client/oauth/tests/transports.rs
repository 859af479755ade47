//! Our own mock as the protected server, on every transport over the network.

use crate::{
    client::{CallOptions, Endpoint, ServerConfig, Session, Target},
    config::Source,
    mock::{
        engine::Engine,
        journal::Journal,
        script::Script,
        serve::{ListenOptions, MockServer},
    },
    transport::Transport,
};

use super::*;

async fn protected(world: &World) -> MockServer {
    let script = format!(
        "auth: {{ tokens: [{{ token: issued, scopes: [use] }}], scopes: [use], authorizationServers: ['{}/as1'] }}\n\
         tools: [{{ name: echo, reply: hello }}]",
        world.base()
    );
    let script = Script::parse(&Source::new("mock.yaml", script)).unwrap_or_else(|error| panic!("{error}"));
    let engine = Engine::new(script, 1, Journal::default());
    MockServer::start(engine, ListenOptions::default()).await.expect("listens")
}

#[tokio::test]
async fn every_transport_over_the_network_gets_its_token() {
    for (transport, protocol) in [
        (Transport::Http, LEGACY),
        (Transport::Http, MODERN),
        (Transport::Sse, LEGACY),
        (Transport::Ws, LEGACY),
        (Transport::Ws, MODERN),
    ] {
        let world = World::new().await;
        world.play().fixed = Some("issued");
        let mock = protected(&world).await;
        let url = mock.url(transport).expect("a URL");
        let endpoint = Endpoint { url: url.clone(), headers: Vec::new() };
        let target = match transport {
            Transport::Sse => Target::Sse(endpoint),
            Transport::Ws => Target::Ws(endpoint),
            _ => Target::Http(endpoint),
        };
        let authorizer = Authorizer::new(&url, World::options()).expect("an authorizer");
        let config = ServerConfig { authorizer: Some(authorizer), ..ServerConfig::new("mock", target.clone()) };
        let session = Session::connect(&config, protocol).await.unwrap_or_else(|error| panic!("{transport}: {error}"));
        let outcome = session.call_tool("echo", None, CallOptions::default()).await.expect("a result");
        assert_eq!(outcome.text(), "hello", "{transport}");
        session.close().await;
        assert_eq!(world.times("GET /as1/authorize"), 1, "{transport}");
        let asked = world.last("/as1/authorize");
        let resource = url.replacen("ws://", "http://", 1);
        assert_eq!((&asked["resource"], &*asked["scope"]), (&resource, "use"), "{transport}");
        let error = Session::connect(&ServerConfig::new("mock", target), protocol).await.expect_err("no token");
        assert!(error.to_string().contains("HTTP 401"), "{transport}: {error}");
    }
}
