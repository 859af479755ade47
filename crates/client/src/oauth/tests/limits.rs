//! Requests that need more scopes, and servers that refuse every token.

use futures_util::future::join_all;

use super::*;

#[tokio::test]
async fn a_call_that_needs_more_scopes_gets_the_union() {
    let servers = FakeServers::new().await;
    servers.behaviour().challenge = Some("scope=\"basic\"".into());
    let authorizer = servers.authorizer(FakeServers::options());
    let session = connect(&servers, &authorizer, MODERN).await;
    servers.behaviour().needed = vec!["write"];
    servers.behaviour().challenge = Some(String::new());
    assert_eq!(call(&session).await.expect("a result"), "hello");
    session.close().await;
    assert_eq!(servers.last("/as1/authorize").await["scope"], "basic write");
    assert_eq!(servers.times("POST /as1/register").await, 1);
    assert_eq!(authorizer.status().expect("a status").expect("a token").scopes, ["basic", "write"]);
}

#[tokio::test]
async fn more_scopes_are_requested_at_most_twice() {
    let servers = FakeServers::new().await;
    let session = connect(&servers, &servers.authorizer(FakeServers::options()), MODERN).await;
    servers.behaviour().needed = vec!["write", "admin"];
    servers.behaviour().is_stingy = true;
    for _ in 0..2 {
        let failure = call(&session).await.expect_err("a failure");
        assert_eq!(failure.kind(), "unauthorized");
        assert_eq!(failure.to_string(), "the server still says that the token lacks admin write");
        assert_eq!(servers.times("GET /as1/authorize").await, 3);
    }
    session.close().await;
}

#[tokio::test]
async fn a_token_that_is_refused_at_once_is_not_requested_again() {
    let servers = FakeServers::new().await;
    servers.behaviour().takes_nothing = true;
    let authorizer = servers.authorizer(FakeServers::options());
    let rejected = AuthError::Rejected { issuer: format!("{}/as1", servers.base()), said: None };
    assert_eq!(refused(&servers, &authorizer).await, rejected);
    assert_eq!(refused(&servers, &authorizer).await, rejected);
    assert_eq!(servers.times("GET /as1/authorize").await, 1);
}

#[tokio::test]
async fn a_refused_renewed_token_is_reported_without_another_request() {
    let servers = FakeServers::new().await;
    let store = TokenStore::memory();
    let options = |interaction| Options { interaction, store: store.clone(), ..Options::default() };
    servers.behaviour().token = json!({ "refresh_token": "refresh-1", "expires_in": 3600 });
    servers.authorizer(options(FakeServers::options().interaction)).authorize().await.expect("a token");
    servers.behaviour().takes_nothing = true;
    servers.behaviour().challenge = Some("error=\"invalid_token\", error_description=\"not for\u{9}me\"".to_owned());
    let authorizer = servers.authorizer(options(Interaction::None));
    for _ in 0..2 {
        let why = refused(&servers, &authorizer).await;
        let issuer = format!("{}/as1", servers.base());
        let expected = format!(
            "the server refuses the token that {issuer} has just issued for it, and says \"invalid_token: not for me\""
        );
        assert_eq!((why.to_string(), why.needs_user()), (expected, false));
        // One renewal is enough.
        assert_eq!((servers.times("POST /as1/token").await, servers.times("GET /as1/authorize").await), (2, 1));
    }
    // The user is asked, because another authorization may help.
    let authorizer = servers.authorizer(options(FakeServers::options().interaction));
    assert!(matches!(refused(&servers, &authorizer).await, AuthError::Rejected { .. }));
    assert_eq!((servers.times("POST /as1/token").await, servers.times("GET /as1/authorize").await), (4, 2));
}

#[tokio::test]
async fn a_client_of_its_own_does_not_ask_for_one_token_after_another() {
    let servers = FakeServers::new().await;
    let registered =
        Some(PreregisteredClient { id: "me".into(), secret: ClientSecret::Text(Secret::new("s")), issuer: None });
    let identity = Identity { registered, ..Identity::default() };
    let options = Options { identity, grant: GrantKind::ClientCredentials, ..Options::default() };
    let authorizer = servers.authorizer(options);
    authorizer.authorize().await.expect("a token");
    authorizer.reload().await;
    servers.behaviour().takes_nothing = true;
    assert!(matches!(refused(&servers, &authorizer).await, AuthError::Rejected { .. }));
    assert_eq!(servers.times("POST /as1/token").await, 2);
}

#[tokio::test]
async fn requests_that_are_refused_at_the_same_time_wait_for_one_authorization() {
    let servers = FakeServers::new().await;
    let session = connect(&servers, &servers.authorizer(FakeServers::options()), MODERN).await;
    servers.behaviour().forget_tokens();
    let outcomes = join_all((0..8).map(|_| call(&session))).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(servers.times("GET /as1/authorize").await, 2);
    servers.behaviour().forget_tokens();
    servers.behaviour().refusal = Some("access_denied");
    let failure = call(&session).await.expect_err("a failure");
    assert_eq!(failure.kind(), "unauthorized");
    assert_eq!(failure.to_string(), "the authorization was refused: access_denied");
    session.close().await;
}

#[tokio::test]
async fn a_403_that_is_not_about_scopes_is_left_as_it_is() {
    let servers = FakeServers::new().await;
    let session = connect(&servers, &servers.authorizer(FakeServers::options()), MODERN).await;
    servers.behaviour().needed = vec![" "];
    let failure = call(&session).await.expect_err("a failure");
    assert!(matches!(failure, Failure::Http { status: 403, .. }), "{failure:?}");
    session.close().await;
    assert_eq!(servers.times("GET /as1/authorize").await, 1);
}
