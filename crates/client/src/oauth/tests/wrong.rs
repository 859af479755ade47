//! Servers that are wrong, and how far the client goes with them.

use rehearse_testing::table;
use serde_json::{Value, json};

use super::{fake::Behaviour, *};
use crate::{ConnectError, ServerParams, Target};

/// Sets a member of a behaviour, `NAME = JSON`, or one in it, `NAME.MEMBER = JSON`.
fn spoil(behaviour: &mut Behaviour, change: &str) {
    let (path, value) = change.split_once(" = ").expect("a value");
    let value: Value = serde_json::from_str(value).expect("JSON");
    let text = || value.as_str().map(|text| &*text.to_owned().leak());
    match path.split_once('.').unwrap_or((path, "")) {
        ("resource", "") => behaviour.resource = value,
        ("resource", member) => behaviour.resource[member] = value,
        ("issuer", member) => behaviour.issuer[member] = value,
        ("registration", "") => behaviour.registration = value,
        ("token", "") => behaviour.token = value,
        ("has_metadata", "") => behaviour.has_metadata = value == true,
        ("refusal", "") => behaviour.refusal = text(),
        ("state", "") => behaviour.state = text(),
        ("iss", "") => behaviour.iss = text(),
        _ => panic!("no behaviour: {path}"),
    }
}

#[tokio::test]
async fn a_server_that_is_wrong_is_followed_up_to_its_mistake_and_no_further() {
    let nowhere =
        [WHOLE[0], WHOLE[1], "GET /.well-known/openid-configuration/as1", "GET /as1/.well-known/openid-configuration"];
    for [what, changes, sent, said] in table::rows(include_str!("wrong.txt"), "wrong servers") {
        let servers = FakeServers::new().await;
        changes.split(" ; ").for_each(|change| spoil(&mut servers.behaviour(), change));
        let error = refused(&servers, &servers.authorizer(FakeServers::options())).await.to_string();
        assert!(error.contains(&said), "{what}: {error}");
        let sent = sent.parse().map_or(&nowhere[..], |count: usize| &WHOLE[..count]);
        assert_eq!(servers.auth_requests().await, sent, "{what}");
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
