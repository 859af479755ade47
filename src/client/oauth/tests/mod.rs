//! Whole flows, with servers that are right and servers that are wrong.

mod browser;
mod fake;
mod issuer;
mod limits;
mod renewal;
mod transports;
mod wrong;

use fake::World;
use serde_json::json;

use super::*;
use crate::{
    client::{CallOptions, Failure, Protocol, Session},
    wire::Version,
};

const MODERN: Protocol = Protocol::Exact(Version::V2026_07_28);
const LEGACY: Protocol = Protocol::Exact(Version::V2025_11_25);

async fn connect(world: &World, authorizer: &Authorizer, protocol: Protocol) -> Session {
    Session::connect(&world.config(authorizer), protocol).await.expect("a session")
}

/// Why there is no session.
async fn refused(world: &World, authorizer: &Authorizer) -> AuthError {
    let error = Session::connect(&world.config(authorizer), MODERN).await.expect_err("no session").to_string();
    let why = authorizer.failure().expect("a reason");
    assert!(error.ends_with(&format!("wants an authorization: {why}")), "{error}");
    why
}

async fn call(session: &Session) -> Result<String, Failure> {
    let outcome = session.call_tool("echo", None, CallOptions::default()).await;
    outcome.map(|outcome| outcome.text())
}

/// What one authorization asks for, in order.
const WHOLE: [&str; 5] = [
    "GET /.well-known/oauth-protected-resource/mcp",
    "GET /.well-known/oauth-authorization-server/as1",
    "POST /as1/register",
    "GET /as1/authorize",
    "POST /as1/token",
];

#[tokio::test]
async fn a_challenge_leads_to_a_token_that_every_request_carries() {
    for protocol in [MODERN, LEGACY] {
        let world = World::new().await;
        let authorizer = world.authorizer(World::options());
        let session = connect(&world, &authorizer, protocol).await;
        assert_eq!(call(&session).await.expect("a result"), "hello");
        session.close().await;
        assert_eq!(world.asked(), WHOLE);
        let (authorization, token) = (world.last("/as1/authorize"), world.last("/as1/token"));
        assert_eq!(authorization["resource"], world.server.url);
        assert_eq!(token["resource"], world.server.url);
        assert_eq!(authorization["client_id"], "client-of/as1");
        assert_eq!(token["redirect_uri"], authorization["redirect_uri"]);
        assert!(!authorization.contains_key("scope") && !token.contains_key("client_secret"));
        let seen = world.server.seen();
        let to_server: Vec<_> = seen.iter().filter(|seen| seen.uri.path() == "/mcp").collect();
        assert!(to_server[1..].iter().all(|seen| seen.header("authorization").is_some()));
        let header = to_server[0].headers.get("authorization");
        assert_eq!((header, to_server[0].body == to_server[1].body), (None, true));
        let posted = seen.iter().find(|seen| seen.uri.path() == "/as1/token").expect("a request for a token");
        // RFC 8414, section 2: nothing else is said.
        assert_eq!(posted.header("authorization"), Some("Basic Y2xpZW50LW9mJTJGYXMxOnMzY3JldA=="));
    }
}

#[tokio::test]
async fn a_server_that_refuses_nothing_is_asked_nothing() {
    let world = World::new().await;
    world.play().valid.insert("known".into(), Vec::new());
    let authorizer = world.authorizer(World::options());
    let mut config = world.config(&authorizer);
    let crate::client::Target::Http(endpoint) = &mut config.target else { unreachable!("HTTP") };
    endpoint.headers.push(("Authorization".into(), "Bearer known".into()));
    let session = Session::connect(&config, MODERN).await.expect("a session");
    world.play().forget_tokens();
    // A header that is written out is meant as it is.
    assert!(matches!(call(&session).await, Err(Failure::Http { status: 401, .. })));
    assert_eq!(world.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_without_hints_is_looked_up_where_metadata_have_to_be() {
    let world = World::new().await;
    world.play().is_pointing = false;
    world.play().challenge = None;
    connect(&world, &world.authorizer(World::options()), MODERN).await.close().await;
    assert_eq!(world.asked(), WHOLE);
}

#[tokio::test]
async fn a_server_from_before_protected_resources_is_its_own_authorization_server() {
    for (has_metadata, well_known) in [(true, "GET /authorize"), (false, "GET /authorize")] {
        let world = World::new().await;
        {
            let mut play = world.play();
            (play.is_pointing, play.resource, play.has_metadata) = (false, serde_json::Value::Null, has_metadata);
            play.issuer = json!({ "code_challenge_methods_supported": null });
            play.iss = Some("");
            play.issuer["authorization_response_iss_parameter_supported"] = json!(null);
        }
        let session = connect(&world, &world.authorizer(World::options()), LEGACY).await;
        session.close().await;
        let expected = [
            "GET /.well-known/oauth-protected-resource/mcp",
            "GET /.well-known/oauth-protected-resource",
            "GET /.well-known/oauth-authorization-server",
            "POST /register",
            well_known,
            "POST /token",
        ];
        assert_eq!(world.asked(), expected);
        assert_eq!(world.last("/token")["resource"], world.server.url);
    }
}

#[tokio::test]
async fn a_client_is_what_it_is_known_as_before_it_registers_itself() {
    let identity = |registered: bool, document: bool| Identity {
        registered: registered.then(|| Registered {
            id: "known".into(),
            secret: ClientSecret::Text(Secret::new("s")),
            issuer: None,
        }),
        document: document.then(|| "https://h/client.json".to_owned()),
        ..Identity::default()
    };
    for (registered, document, is_supported, expected) in [
        (true, true, true, "known"),
        (false, true, true, "https://h/client.json"),
        (false, true, false, "client-of/as1"),
        (false, false, true, "client-of/as1"),
    ] {
        let world = World::new().await;
        world.play().issuer = json!({ "client_id_metadata_document_supported": is_supported });
        let options = Options { identity: identity(registered, document), ..World::options() };
        connect(&world, &world.authorizer(options), MODERN).await.close().await;
        assert_eq!(world.last("/as1/authorize")["client_id"], expected);
        assert_eq!(world.times("POST /as1/register"), usize::from(expected == "client-of/as1"));
    }
}

#[tokio::test]
async fn a_client_of_its_own_needs_nobody() {
    let pem = super::assertion::tests::pem();
    let key = ClientSecret::Key(std::sync::Arc::new(SigningKey::from_pem(&pem).expect("a key")));
    for secret in [ClientSecret::Text(Secret::new("s")), key] {
        let world = World::new().await;
        world.play().challenge = Some("scope=\"a b\"".into());
        let registered = Some(Registered { id: "me".into(), secret: secret.clone(), issuer: None });
        let identity = Identity { registered, ..Identity::default() };
        let options = Options { identity, grant: GrantKind::Client, ..Options::default() };
        connect(&world, &world.authorizer(options), MODERN).await.close().await;
        assert_eq!(world.asked(), [WHOLE[0], WHOLE[1], WHOLE[4]]);
        let form = world.last("/as1/token");
        assert_eq!((&*form["grant_type"], &*form["scope"]), ("client_credentials", "a b"));
        assert_eq!(form["resource"], world.server.url);
        assert_eq!(form.contains_key("client_assertion"), matches!(secret, ClientSecret::Key(_)));
    }
    let world = World::new().await;
    let options = Options { grant: GrantKind::Client, ..Options::default() };
    let error = refused(&world, &world.authorizer(options)).await;
    assert_eq!(error, AuthError::Invalid("a client that nobody authorizes needs an id and a secret".into()));
}

#[tokio::test]
async fn somebody_else_may_certify_who_the_client_is_or_acts_for() {
    let identity = |secret| {
        let registered = Some(Registered { id: "me".into(), secret, issuer: None });
        Identity { registered, ..Identity::default() }
    };
    let workload = |token: &str| {
        let grant = GrantKind::Workload(Secret::new(token));
        Options { identity: identity(ClientSecret::None), grant, ..Options::default() }
    };
    let world = World::new().await;
    connect(&world, &world.authorizer(workload("certificate")), MODERN).await.close().await;
    assert_eq!(world.asked(), [WHOLE[0], WHOLE[1], WHOLE[4]]);
    assert_eq!(world.last("/as1/token")["client_id"], "me");

    let world = World::new().await;
    let error = refused(&world, &world.authorizer(workload("forged"))).await;
    assert_eq!(error, AuthError::Token { status: 400, error: "invalid_grant".into(), description: None });
    assert_eq!(world.times(WHOLE[4]), 1);

    let world = World::new().await;
    let provider = |id_token: &str| IdentityProvider {
        token_endpoint: format!("{}/provider/token", world.base()),
        client_id: "here".into(),
        id_token: Secret::new(id_token),
    };
    let enterprise = |id_token: &str| {
        let grant = GrantKind::Enterprise(provider(id_token));
        Options { identity: identity(ClientSecret::Text(Secret::new("s"))), grant, ..Options::default() }
    };
    let error = refused(&world, &world.authorizer(enterprise("forged"))).await;
    assert_eq!(error, AuthError::Token { status: 400, error: "unsupported_grant_type".into(), description: None });
    connect(&world, &world.authorizer(enterprise("id-token")), MODERN).await.close().await;
    let form = world.last("/provider/token");
    let told = [&form["audience"], &form["resource"], &form["client_id"]];
    assert_eq!(told, [&format!("{}/as1", world.base()), &world.server.url, "here"]);
    assert_eq!(world.last("/as1/token")["assertion"], "certificate");
}

#[tokio::test]
async fn an_authorization_can_be_had_before_it_is_asked_for() {
    let world = World::new().await;
    let authorizer = world.authorizer(World::options());
    assert_eq!(authorizer.status().expect("a status"), None);
    let status = authorizer.authorize().await.expect("a token");
    assert_eq!((status.issuer, status.can_be_refreshed), (format!("{}/as1", world.base()), false));
    connect(&world, &authorizer, MODERN).await.close().await;
    assert_eq!(world.times("GET /as1/authorize"), 1);
    assert!(authorizer.logout().await.expect("logs out").was_there);
    connect(&world, &authorizer, MODERN).await.close().await;
    assert_eq!(world.times("GET /as1/authorize"), 2);
    assert_eq!(world.times("POST /as1/register"), 2);
}

#[tokio::test]
async fn whoever_wants_a_token_before_anything_is_refused_asks_as_the_server_wants_it() {
    let world = World::new().await;
    world.play().challenge = Some("scope=\"notes\"".to_owned());
    let status = world.authorizer(World::options()).authorize().await.expect("a token");
    assert_eq!((world.asked(), status.scopes), (WHOLE.map(str::to_owned).to_vec(), vec!["notes".to_owned()]));
}

#[tokio::test]
async fn metadata_that_the_user_has_chosen_come_before_what_the_server_says() {
    for is_protected in [true, false] {
        let world = World::new().await;
        world.play().token = json!({ "refresh_token": "refresh-1", "expires_in": 0 });
        if !is_protected {
            (world.play().is_pointing, world.play().resource) = (false, serde_json::Value::Null);
        }
        let metadata_url = Some(format!("{}/.well-known/oauth-authorization-server/as2", world.base()));
        let authorizer = world.authorizer(Options { metadata_url, ..World::options() });
        let session = connect(&world, &authorizer, MODERN).await;
        call(&session).await.expect("a result");
        session.close().await;
        assert_eq!(world.last("/as2/authorize")["resource"], world.server.url);
        assert_eq!(world.last("/as2/token")["grant_type"], "refresh_token");
        assert_eq!(world.times("GET /.well-known/oauth-authorization-server/as1"), 0);
        assert_eq!(world.times("GET /as2/authorize"), 1);
    }
    let world = World::new().await;
    for (url, expected) in [("x", "no URL"), ("http://as.example/m", "not protected by https")] {
        let options = Options { metadata_url: Some(url.to_owned()), ..World::options() };
        let error = refused(&world, &world.authorizer(options)).await.to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn where_a_get_is_not_refused_the_first_requests_of_a_session_are_asked_for_the_challenge() {
    for method in ["server/discover", "initialize"] {
        let world = World::new().await;
        world.play().refused_method = Some(method);
        world.play().resource_path = "/elsewhere";
        world.play().challenge = Some("scope=\"notes\"".to_owned());
        let status = world.authorizer(World::options()).authorize().await.expect("a token");
        assert_eq!(world.asked(), [&["GET /elsewhere"], &WHOLE[1..]].concat(), "{method}");
        assert_eq!(status.scopes, ["notes"]);
    }
}

#[tokio::test]
async fn a_session_that_nobody_wanted_is_not_left_behind() {
    let server = crate::client::tests::server::HttpServer::start(|seen| async move {
        let is_greeting = seen.method == "POST" && seen.message()["method"] == "initialize";
        let mut response = crate::client::tests::server::reply(if is_greeting { 200 } else { 400 }, "text/plain", "");
        response.headers_mut().insert("mcp-session-id", "s-1".parse().expect("a header"));
        response
    })
    .await;
    let authorizer = Authorizer::new(&server.url, World::options()).expect("an authorizer");
    authorizer.authorize().await.expect_err("nobody issues tokens");
    let seen = server.seen();
    let seen: Vec<_> = seen.iter().filter(|seen| seen.uri.path() == "/mcp").collect();
    let methods: Vec<_> = seen.iter().map(|seen| &*seen.method).collect();
    assert_eq!(methods, ["GET", "POST", "POST", "DELETE"]);
    assert_eq!(seen[3].header("mcp-session-id"), Some("s-1"));
}
