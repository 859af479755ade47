//! Servers that are wrong, and how far the client goes with them.

use serde_json::{Value, json};

use super::{fake::Behaviour, *};
use crate::{ConnectError, ServerParams, Target};

/// The mistake, the last request, and the message.
type Case = (&'static str, fn(&mut Behaviour), &'static [&'static str], &'static str);

const CASES: &[Case] = &[
    (
        "another resource",
        |behaviour| behaviour.resource["resource"] = json!("https://evil.example.com/mcp"),
        &WHOLE_1,
        "the metadata of the server are those of \"https://evil.example.com/mcp\"",
    ),
    (
        "no resource",
        |behaviour| behaviour.resource["resource"] = Value::Null,
        &WHOLE_1,
        "the metadata of the server are those of \"\"",
    ),
    (
        "no authorization server",
        |behaviour| behaviour.resource["authorization_servers"] = json!([]),
        &WHOLE_1,
        "does not name an authorization server",
    ),
    ("metadata that are not there", |behaviour| behaviour.resource = Value::Null, &WHOLE_1, "answered with HTTP 404"),
    (
        "an issuer without protection",
        |behaviour| behaviour.resource["authorization_servers"] = json!(["http://as.example.com"]),
        &WHOLE_1,
        "http://as.example.com/.well-known/oauth-authorization-server is not used because it is not protected by https",
    ),
    (
        "another issuer",
        |behaviour| behaviour.issuer["issuer"] = json!("https://attacker.example.com"),
        &WHOLE_2,
        "say that they are of \"https://attacker.example.com\"",
    ),
    ("no issuer", |behaviour| behaviour.issuer["issuer"] = Value::Null, &NOWHERE, "has no metadata"),
    ("no metadata", |behaviour| behaviour.has_metadata = false, &NOWHERE, "has no metadata"),
    (
        "no PKCE",
        |behaviour| behaviour.issuer["code_challenge_methods_supported"] = Value::Null,
        &WHOLE_2,
        "does not support PKCE with S256",
    ),
    (
        "plain PKCE",
        |behaviour| behaviour.issuer["code_challenge_methods_supported"] = json!(["plain"]),
        &WHOLE_2,
        "does not support PKCE with S256",
    ),
    (
        "no authorization endpoint",
        |behaviour| behaviour.issuer["authorization_endpoint"] = Value::Null,
        &WHOLE_2,
        "has no authorization endpoint",
    ),
    (
        "an authorization endpoint without protection",
        |behaviour| behaviour.issuer["authorization_endpoint"] = json!("http://as.example.com/authorize?x"),
        &WHOLE_2,
        "http://as.example.com/authorize is not used",
    ),
    (
        "a token endpoint without protection",
        |behaviour| behaviour.issuer["token_endpoint"] = json!("http://as.example.com/token"),
        &WHOLE_4,
        "http://as.example.com/token is not used",
    ),
    (
        "no registration",
        |behaviour| behaviour.issuer["registration_endpoint"] = Value::Null,
        &WHOLE_2,
        "does not register clients",
    ),
    (
        "a registration that is refused",
        |behaviour| {
            behaviour.registration = json!({ "error": "invalid_redirect_uri", "error_description": "no loopback" })
        },
        &WHOLE_3,
        "refused to register the client: invalid_redirect_uri: no loopback",
    ),
    (
        "a registration without an id",
        |behaviour| behaviour.registration = json!({ "client_id": null }),
        &WHOLE_3,
        "did not answer with a registered client",
    ),
    (
        "a refusal",
        |behaviour| behaviour.refusal = Some("access_denied"),
        &WHOLE_4,
        "the authorization was refused: access_denied",
    ),
    ("another state", |behaviour| behaviour.state = Some("forged"), &WHOLE_4, "its `state` is not that of the request"),
    ("an absent iss", |behaviour| behaviour.iss = Some(""), &WHOLE_4, "it does not say from which issuer it is"),
    (
        "a wrong iss",
        |behaviour| behaviour.iss = Some("https://evil.example.com"),
        &WHOLE_4,
        "it says that it is from \"https://evil.example.com\"",
    ),
    ("a wrong iss that was not promised", unexpected, &WHOLE_4, "it says that it is from \"https://evil.example.com\""),
    ("an iss with a slash", |behaviour| behaviour.iss = Some("slash"), &WHOLE_4, "/as1/\", and not from"),
    (
        "no token",
        |behaviour| behaviour.token = json!({ "error": "invalid_request" }),
        &WHOLE,
        "did not issue a token: invalid_request",
    ),
    (
        "a token of another type",
        |behaviour| behaviour.token = json!({ "token_type": "mac" }),
        &WHOLE,
        "did not answer with a bearer token",
    ),
];

const WHOLE_1: [&str; 1] = [WHOLE[0]];
const WHOLE_2: [&str; 2] = [WHOLE[0], WHOLE[1]];
const WHOLE_3: [&str; 3] = [WHOLE[0], WHOLE[1], WHOLE[2]];
const WHOLE_4: [&str; 4] = [WHOLE[0], WHOLE[1], WHOLE[2], WHOLE[3]];
const NOWHERE: [&str; 4] =
    [WHOLE[0], WHOLE[1], "GET /.well-known/openid-configuration/as1", "GET /as1/.well-known/openid-configuration"];

fn unexpected(behaviour: &mut Behaviour) {
    behaviour.issuer["authorization_response_iss_parameter_supported"] = json!(false);
    behaviour.iss = Some("https://evil.example.com");
}

#[tokio::test]
async fn a_server_that_is_wrong_is_followed_up_to_its_mistake_and_no_further() {
    for (what, spoil, expected, said) in CASES {
        let servers = FakeServers::new().await;
        spoil(&mut servers.behaviour());
        let error = refused(&servers, &servers.authorizer(FakeServers::options())).await.to_string();
        assert!(error.contains(said), "{what}: {error}");
        assert_eq!(servers.auth_requests().await, *expected, "{what}");
    }
}

#[tokio::test]
async fn iss_may_be_absent_where_it_is_not_promised() {
    let servers = FakeServers::new().await;
    servers.behaviour().issuer = json!({ "authorization_response_iss_parameter_supported": false });
    servers.behaviour().iss = Some("");
    connect(&servers, &servers.authorizer(FakeServers::options()), MODERN).await.close().await;
}

#[tokio::test]
async fn the_first_issuer_that_has_metadata_is_taken() {
    let servers = FakeServers::new().await;
    let base = servers.base();
    servers.behaviour().resource["authorization_servers"] = json!([format!("{base}/none?"), format!("{base}/as2")]);
    connect(&servers, &servers.authorizer(FakeServers::options()), MODERN).await.close().await;
    assert_eq!(servers.times("GET /as2/authorize").await, 1);
}

#[tokio::test]
async fn an_unreachable_issuer_is_ignored_unless_the_token_is_from_it() {
    let servers = FakeServers::new().await;
    let (away, there) = ("http://127.0.0.1:1/as", format!("{}/as2", servers.base()));
    servers.behaviour().resource["authorization_servers"] = json!([away, there]);
    connect(&servers, &servers.authorizer(FakeServers::options()), MODERN).await.close().await;
    assert_eq!(servers.times("GET /as2/authorize").await, 1);
    let registered = PreregisteredClient { id: "me".into(), secret: ClientSecret::None, issuer: Some(away.into()) };
    let identity = Identity { registered: Some(registered), ..Identity::default() };
    let error = refused(&servers, &servers.authorizer(Options { identity, ..FakeServers::options() })).await;
    assert!(matches!(error, AuthError::Unreachable { .. }), "{error}");
    assert_eq!(servers.times("GET /as2/authorize").await, 1);
}

#[tokio::test]
async fn without_a_user_no_browser_is_opened() {
    let servers = FakeServers::new().await;
    assert_eq!(refused(&servers, &servers.authorizer(Options::default())).await, AuthError::InteractionRequired);
    assert_eq!(servers.auth_requests().await, Vec::<String>::new());
}

#[tokio::test]
async fn another_scheme_is_not_for_us() {
    let server =
        peer::start(|_| ResponseTemplate::new(401).insert_header("www-authenticate", "Basic realm=\"x\"")).await;
    let authorizer = Authorizer::new(&peer::url(&server), FakeServers::options()).expect("an authorizer");
    let params = ServerParams::new("basic", Target::http(peer::url(&server)));
    let params = ServerParams { authorizer: Some(authorizer.clone()), ..params };
    let error = Session::connect(&params, MODERN).await.expect_err("no session");
    assert!(matches!(error, ConnectError::Http { status: 401, .. }), "{error}");
    assert_eq!((peer::requests(&server).await.len(), authorizer.failure()), (1, None));
}

#[tokio::test]
async fn a_server_without_protection_gets_no_token() {
    let authorizer =
        Authorizer::new("http://user:pass@192.0.2.1/mcp?key=x", FakeServers::options()).expect("an authorizer");
    let error = authorizer.authorize().await.expect_err("no token");
    assert_eq!(error, AuthError::Insecure { url: "http://192.0.2.1/mcp".into() });
}
