//! Whole flows, with correct and with faulty servers.

mod browser;
mod fake;
mod issuer;
mod limits;
mod renewal;
mod wrong;

use fake::FakeServers;
use serde_json::json;
use wiremock::ResponseTemplate;

use super::*;
use crate::{
    CallOptions, Failure, Session,
    tests::peer::{self, header},
};
use rehearse_protocol::{Protocol, Version};

const MODERN: Protocol = Protocol::Exact(Version::V2026_07_28);
const LEGACY: Protocol = Protocol::Exact(Version::V2025_11_25);

async fn connect(servers: &FakeServers, authorizer: &Authorizer, protocol: Protocol) -> Session {
    Session::connect(&servers.config(authorizer), protocol).await.expect("a session")
}

/// The error of a failed connection.
async fn refused(servers: &FakeServers, authorizer: &Authorizer) -> AuthError {
    let error = Session::connect(&servers.config(authorizer), MODERN).await.expect_err("no session").to_string();
    let why = authorizer.failure().expect("a reason");
    assert!(error.ends_with(&format!("requires authorization: {why}")), "{error}");
    why
}

async fn call(session: &Session) -> Result<String, Failure> {
    let outcome = session.call_tool("echo", None, CallOptions::default()).await;
    outcome.map(|outcome| outcome.text())
}

/// The requests of one authorization, in order.
const WHOLE: [&str; 5] = [
    "GET /.well-known/oauth-protected-resource/mcp",
    "GET /.well-known/oauth-authorization-server/as1",
    "POST /as1/register",
    "GET /as1/authorize",
    "POST /as1/token",
];

#[tokio::test]
async fn a_token_for_a_parent_of_the_server_is_used_and_shown() {
    let servers = FakeServers::new().await;
    let exact = servers.authorizer(FakeServers::options()).authorize().await.expect("a token");
    assert_eq!(exact.other_resource, None);
    let parent = servers.url.trim_end_matches("/mcp").to_owned();
    servers.behaviour().resource["resource"] = json!(parent);
    let above = servers.authorizer(FakeServers::options()).authorize().await.expect("a token");
    assert_eq!(above.other_resource, Some(parent));
}

#[tokio::test]
async fn a_challenge_leads_to_a_token_that_every_request_carries() {
    for protocol in [MODERN, LEGACY] {
        let servers = FakeServers::new().await;
        let authorizer = servers.authorizer(FakeServers::options());
        let session = connect(&servers, &authorizer, protocol).await;
        assert_eq!(call(&session).await.expect("a result"), "hello");
        session.close().await;
        assert_eq!(servers.auth_requests().await, WHOLE);
        let (authorization, token) = (servers.last("/as1/authorize").await, servers.last("/as1/token").await);
        assert_eq!(authorization["resource"], servers.url);
        assert_eq!(token["resource"], servers.url);
        assert_eq!(authorization["client_id"], "client-of/as1");
        assert_eq!(token["redirect_uri"], authorization["redirect_uri"]);
        assert!(!authorization.contains_key("scope") && !token.contains_key("client_secret"));
        let to_server = servers.to_server().await;
        assert!(to_server[1..].iter().all(|request| header(request, "authorization").is_some()));
        let first = header(&to_server[0], "authorization");
        assert_eq!((first, to_server[0].body == to_server[1].body), (None, true));
        let requests = servers.requests().await;
        let posted = requests.iter().find(|request| request.url.path() == "/as1/token").expect("a token request");
        // RFC 8414, section 2: the default if the metadata name no method.
        assert_eq!(header(posted, "authorization"), Some("Basic Y2xpZW50LW9mJTJGYXMxOnMzY3JldA=="));
    }
}

#[tokio::test]
async fn a_server_that_refuses_nothing_gets_no_authorization_requests() {
    let servers = FakeServers::new().await;
    servers.behaviour().valid.insert("known".into(), Vec::new());
    let authorizer = servers.authorizer(FakeServers::options());
    let mut config = servers.config(&authorizer);
    let crate::Target::Http(endpoint) = &mut config.target else { unreachable!("HTTP") };
    endpoint.headers.push(("Authorization".into(), "Bearer known".into()));
    let session = Session::connect(&config, MODERN).await.expect("a session");
    servers.behaviour().forget_tokens();
    // An explicit header takes precedence.
    assert!(matches!(call(&session).await, Err(Failure::Http { status: 401, .. })));
    assert_eq!(servers.auth_requests().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_server_without_hints_is_looked_up_where_metadata_have_to_be() {
    let servers = FakeServers::new().await;
    servers.behaviour().is_pointing = false;
    servers.behaviour().challenge = None;
    connect(&servers, &servers.authorizer(FakeServers::options()), MODERN).await.close().await;
    assert_eq!(servers.auth_requests().await, WHOLE);
}

#[tokio::test]
async fn a_server_from_before_protected_resources_is_its_own_authorization_server() {
    for (has_metadata, well_known) in [(true, "GET /authorize"), (false, "GET /authorize")] {
        let servers = FakeServers::new().await;
        {
            let mut behaviour = servers.behaviour();
            (behaviour.is_pointing, behaviour.resource, behaviour.has_metadata) =
                (false, serde_json::Value::Null, has_metadata);
            behaviour.issuer = json!({ "code_challenge_methods_supported": null });
            behaviour.iss = Some("");
            behaviour.issuer["authorization_response_iss_parameter_supported"] = json!(null);
        }
        let session = connect(&servers, &servers.authorizer(FakeServers::options()), LEGACY).await;
        session.close().await;
        let expected = [
            "GET /.well-known/oauth-protected-resource/mcp",
            "GET /.well-known/oauth-protected-resource",
            "GET /.well-known/oauth-authorization-server",
            "POST /register",
            well_known,
            "POST /token",
        ];
        assert_eq!(servers.auth_requests().await, expected);
        assert_eq!(servers.last("/token").await["resource"], servers.url);
    }
}

#[tokio::test]
async fn a_client_is_what_it_is_known_as_before_it_registers_itself() {
    let identity = |registered: bool, document: bool| Identity {
        registered: registered.then(|| PreregisteredClient {
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
        let servers = FakeServers::new().await;
        servers.behaviour().issuer = json!({ "client_id_metadata_document_supported": is_supported });
        let options = Options { identity: identity(registered, document), ..FakeServers::options() };
        connect(&servers, &servers.authorizer(options), MODERN).await.close().await;
        assert_eq!(servers.last("/as1/authorize").await["client_id"], expected);
        assert_eq!(servers.times("POST /as1/register").await, usize::from(expected == "client-of/as1"));
    }
}

#[tokio::test]
async fn client_credentials_need_no_user() {
    let pem = super::assertion::tests::pem();
    let key = ClientSecret::Key(std::sync::Arc::new(SigningKey::from_pem(&pem).expect("a key")));
    for secret in [ClientSecret::Text(Secret::new("s")), key] {
        let servers = FakeServers::new().await;
        servers.behaviour().challenge = Some("scope=\"a b\"".into());
        let registered = Some(PreregisteredClient { id: "me".into(), secret: secret.clone(), issuer: None });
        let identity = Identity { registered, ..Identity::default() };
        let options = Options { identity, grant: GrantKind::ClientCredentials, ..Options::default() };
        connect(&servers, &servers.authorizer(options), MODERN).await.close().await;
        assert_eq!(servers.auth_requests().await, [WHOLE[0], WHOLE[1], WHOLE[4]]);
        let form = servers.last("/as1/token").await;
        assert_eq!((&*form["grant_type"], &*form["scope"]), ("client_credentials", "a b"));
        assert_eq!(form["resource"], servers.url);
        assert_eq!(form.contains_key("client_assertion"), matches!(secret, ClientSecret::Key(_)));
    }
    let servers = FakeServers::new().await;
    let options = Options { grant: GrantKind::ClientCredentials, ..Options::default() };
    let error = refused(&servers, &servers.authorizer(options)).await;
    assert_eq!(error, AuthError::Invalid("a client without a user needs an id and a secret".into()));
}

#[tokio::test]
async fn another_party_may_certify_the_client_or_its_user() {
    let identity = |secret| {
        let registered = Some(PreregisteredClient { id: "me".into(), secret, issuer: None });
        Identity { registered, ..Identity::default() }
    };
    let workload = |token: &str| {
        let grant = GrantKind::WorkloadIdentity(Secret::new(token));
        Options { identity: identity(ClientSecret::None), grant, ..Options::default() }
    };
    let servers = FakeServers::new().await;
    connect(&servers, &servers.authorizer(workload("certificate")), MODERN).await.close().await;
    assert_eq!(servers.auth_requests().await, [WHOLE[0], WHOLE[1], WHOLE[4]]);
    assert_eq!(servers.last("/as1/token").await["client_id"], "me");

    let servers = FakeServers::new().await;
    let error = refused(&servers, &servers.authorizer(workload("forged"))).await;
    assert_eq!(error, AuthError::Token { status: 400, error: "invalid_grant".into(), description: None });
    assert_eq!(servers.times(WHOLE[4]).await, 1);

    let servers = FakeServers::new().await;
    let provider = |id_token: &str| IdentityProvider {
        token_endpoint: format!("{}/provider/token", servers.base()),
        client_id: "here".into(),
        id_token: Secret::new(id_token),
    };
    let enterprise = |id_token: &str| {
        let grant = GrantKind::EnterpriseManaged(provider(id_token));
        Options { identity: identity(ClientSecret::Text(Secret::new("s"))), grant, ..Options::default() }
    };
    let error = refused(&servers, &servers.authorizer(enterprise("forged"))).await;
    assert_eq!(error, AuthError::Token { status: 400, error: "unsupported_grant_type".into(), description: None });
    connect(&servers, &servers.authorizer(enterprise("id-token")), MODERN).await.close().await;
    let form = servers.last("/provider/token").await;
    let sent = [&form["audience"], &form["resource"], &form["client_id"]];
    assert_eq!(sent, [&format!("{}/as1", servers.base()), &servers.url, "here"]);
    assert_eq!(servers.last("/as1/token").await["assertion"], "certificate");
}

#[tokio::test]
async fn a_client_can_be_authorized_before_a_request() {
    let servers = FakeServers::new().await;
    let authorizer = servers.authorizer(FakeServers::options());
    assert_eq!(authorizer.status().expect("a status"), None);
    let status = authorizer.authorize().await.expect("a token");
    assert_eq!((status.issuer, status.can_be_refreshed), (format!("{}/as1", servers.base()), false));
    connect(&servers, &authorizer, MODERN).await.close().await;
    assert_eq!(servers.times("GET /as1/authorize").await, 1);
    assert!(authorizer.logout().await.expect("logs out").was_there);
    connect(&servers, &authorizer, MODERN).await.close().await;
    assert_eq!(servers.times("GET /as1/authorize").await, 2);
    assert_eq!(servers.times("POST /as1/register").await, 2);
}

#[tokio::test]
async fn a_token_can_be_requested_before_any_refusal() {
    let servers = FakeServers::new().await;
    servers.behaviour().challenge = Some("scope=\"notes\"".to_owned());
    let status = servers.authorizer(FakeServers::options()).authorize().await.expect("a token");
    assert_eq!(
        (servers.auth_requests().await, status.scopes),
        (WHOLE.map(str::to_owned).to_vec(), vec!["notes".to_owned()])
    );
}

#[tokio::test]
async fn metadata_that_the_user_has_chosen_come_before_what_the_server_says() {
    for is_protected in [true, false] {
        let servers = FakeServers::new().await;
        servers.behaviour().token = json!({ "refresh_token": "refresh-1", "expires_in": 0 });
        if !is_protected {
            (servers.behaviour().is_pointing, servers.behaviour().resource) = (false, serde_json::Value::Null);
        }
        let metadata_url = Some(format!("{}/.well-known/oauth-authorization-server/as2", servers.base()));
        let authorizer = servers.authorizer(Options { metadata_url, ..FakeServers::options() });
        let session = connect(&servers, &authorizer, MODERN).await;
        call(&session).await.expect("a result");
        session.close().await;
        assert_eq!(servers.last("/as2/authorize").await["resource"], servers.url);
        assert_eq!(servers.last("/as2/token").await["grant_type"], "refresh_token");
        assert_eq!(servers.times("GET /.well-known/oauth-authorization-server/as1").await, 0);
        assert_eq!(servers.times("GET /as2/authorize").await, 1);
    }
    let servers = FakeServers::new().await;
    for (url, expected) in [("x", "is not a URL of metadata"), ("http://as.example/m", "not protected by https")] {
        let options = Options { metadata_url: Some(url.to_owned()), ..FakeServers::options() };
        let error = refused(&servers, &servers.authorizer(options)).await.to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn if_a_get_is_not_refused_the_first_requests_of_a_session_bring_the_challenge() {
    for method in ["server/discover", "initialize"] {
        let servers = FakeServers::new().await;
        servers.behaviour().refused_method = Some(method);
        servers.behaviour().resource_path = "/elsewhere";
        servers.behaviour().challenge = Some("scope=\"notes\"".to_owned());
        let status = servers.authorizer(FakeServers::options()).authorize().await.expect("a token");
        assert_eq!(servers.auth_requests().await, [&["GET /elsewhere"], &WHOLE[1..]].concat(), "{method}");
        assert_eq!(status.scopes, ["notes"]);
    }
}

#[tokio::test]
async fn an_unused_session_is_not_left_behind() {
    let server = peer::start(|request| {
        let is_initialize = peer::message(request)["method"] == "initialize";
        let response = ResponseTemplate::new(if is_initialize { 200 } else { 400 });
        response.insert_header("mcp-session-id", "s-1")
    })
    .await;
    let authorizer = Authorizer::new(&peer::url(&server), FakeServers::options()).expect("an authorizer");
    authorizer.authorize().await.expect_err("no issuer");
    let mut requests = peer::requests(&server).await;
    requests.retain(|request| request.url.path() == "/mcp");
    let methods: Vec<_> = requests.iter().map(|request| request.method.as_str()).collect();
    assert_eq!(methods, ["GET", "POST", "POST", "DELETE"]);
    assert_eq!(header(&requests[3], "mcp-session-id"), Some("s-1"));
}
