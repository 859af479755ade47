//! Tokens that expire, are stored, or come from another issuer than before.

use std::time::Duration;

use super::*;

fn refreshable(life: u64) -> serde_json::Value {
    json!({ "refresh_token": "refresh-1", "expires_in": life })
}

#[tokio::test]
async fn a_token_that_expires_is_replaced_before_it_is_refused() {
    let servers = FakeServers::new().await;
    servers.behaviour().token = refreshable(0);
    let authorizer = servers.authorizer(FakeServers::options());
    let session = connect(&servers, &authorizer, MODERN).await;
    let before = servers.times("POST /as1/token").await;
    servers.behaviour().token = json!({ "expires_in": 3600 });
    call(&session).await.expect("a result");
    call(&session).await.expect("a result");
    session.close().await;
    assert_eq!((servers.times("POST /as1/token").await, servers.times("GET /as1/authorize").await), (before + 1, 1));
    let form = servers.last("/as1/token").await;
    assert_eq!((&*form["grant_type"], &*form["refresh_token"]), ("refresh_token", "refresh-1"));
    assert_eq!(form["resource"], servers.url);
    // It was not replaced, so it stays (RFC 6749, section 6).
    assert!(authorizer.status().expect("a status").expect("a token").can_be_refreshed);
}

#[tokio::test]
async fn a_token_that_is_refused_is_refreshed_where_that_is_possible() {
    let servers = FakeServers::new().await;
    servers.behaviour().token = refreshable(3600);
    let session = connect(&servers, &servers.authorizer(FakeServers::options()), MODERN).await;
    servers.behaviour().forget_tokens();
    call(&session).await.expect("a result");
    assert_eq!((servers.times("POST /as1/token").await, servers.times("GET /as1/authorize").await), (2, 1));
    servers.behaviour().forget_tokens();
    servers.behaviour().refusal_of_refresh = Some((400, "invalid_grant"));
    call(&session).await.expect("a result");
    assert_eq!((servers.times("POST /as1/token").await, servers.times("GET /as1/authorize").await), (4, 2));
    assert_eq!(servers.times("POST /as1/register").await, 1);
    session.close().await;
}

#[tokio::test]
async fn nothing_of_an_issuer_is_shown_to_the_one_that_comes_after_it() {
    for document in [None, Some("https://h/client.json".to_owned())] {
        let servers = FakeServers::new().await;
        servers.behaviour().issuer = json!({ "client_id_metadata_document_supported": true });
        servers.behaviour().token = refreshable(3600);
        let identity = Identity { document: document.clone(), ..Identity::default() };
        let options = Options { identity, ..FakeServers::options() };
        let session = connect(&servers, &servers.authorizer(options), MODERN).await;
        let base = servers.base();
        servers.behaviour().resource["authorization_servers"] = json!([format!("{base}/as2")]);
        servers.behaviour().forget_tokens();
        call(&session).await.expect("a result");
        session.close().await;
        // The URL of a document is known everywhere.
        let expected = document.as_deref().unwrap_or("client-of/as2");
        assert_eq!(servers.last("/as2/authorize").await["client_id"], expected);
        assert_eq!(servers.times("POST /as2/register").await, usize::from(document.is_none()));
        for request in servers.requests().await.iter().filter(|request| request.url.path().starts_with("/as2")) {
            let body = String::from_utf8_lossy(&request.body);
            let text = format!("{} {body} {:?}", request.url, request.headers);
            // With its slash, which no random text has.
            assert!(!["/as1", "%2Fas1", "refresh-1"].iter().any(|it| text.contains(it)), "{text}");
        }
    }
}

#[tokio::test]
async fn a_registered_client_does_not_go_to_another_issuer() {
    let servers = FakeServers::new().await;
    let registered = Some(PreregisteredClient { id: "me".into(), secret: ClientSecret::None, issuer: None });
    let options = Options { identity: Identity { registered, ..Identity::default() }, ..FakeServers::options() };
    let session = connect(&servers, &servers.authorizer(options), MODERN).await;
    let base = servers.base();
    servers.behaviour().resource["authorization_servers"] = json!([format!("{base}/as2")]);
    servers.behaviour().forget_tokens();
    let failure = call(&session).await.expect_err("a failure").to_string();
    let expected =
        format!("the client id belongs to the authorization server {base}/as1, but the server now names {base}/as2");
    assert_eq!(failure, expected);
    assert_eq!(servers.times("GET /as2/authorize").await, 0);
    session.close().await;
}

#[tokio::test]
async fn the_next_process_uses_the_stored_token() {
    let servers = FakeServers::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let options = || Options { store: TokenStore::Folder(folder.path().join("tokens")), ..FakeServers::options() };
    servers.behaviour().token = refreshable(3600);
    connect(&servers, &servers.authorizer(options()), MODERN).await.close().await;
    assert_eq!(servers.auth_requests().await.len(), WHOLE.len());
    // As it is.
    let second = servers.authorizer(options());
    let session = connect(&servers, &second, MODERN).await;
    assert_eq!(servers.auth_requests().await.len(), WHOLE.len());
    // By the refresh token.
    servers.behaviour().forget_tokens();
    call(&session).await.expect("a result");
    // What another process has got in the meantime.
    let third = servers.authorizer(options());
    let other = connect(&servers, &third, MODERN).await;
    servers.behaviour().forget_tokens();
    call(&other).await.expect("a result");
    let asked = servers.times("POST /as1/token").await;
    call(&session).await.expect("a result");
    assert_eq!(servers.times("POST /as1/token").await, asked);
    // With the client that is registered already.
    servers.behaviour().refusal_of_refresh = Some((400, "invalid_grant"));
    servers.behaviour().forget_tokens();
    call(&session).await.expect("a result");
    assert_eq!((servers.times("POST /as1/register").await, servers.times("GET /as1/authorize").await), (1, 2));
    session.close().await;
    other.close().await;
}

#[tokio::test]
async fn a_client_that_was_forgotten_registers_itself_again() {
    let servers = FakeServers::new().await;
    let authorizer = servers.authorizer(FakeServers::options());
    let session = connect(&servers, &authorizer, MODERN).await;
    servers.behaviour().forget_tokens();
    servers.behaviour().token = json!({ "error": "invalid_client" });
    assert_eq!(call(&session).await.expect_err("a failure").kind(), "unauthorized");
    servers.behaviour().token = json!({});
    call(&session).await.expect("a result");
    assert_eq!(servers.times("POST /as1/register").await, 2);
    session.close().await;
}

#[tokio::test]
async fn a_refresh_that_fails_for_a_while_is_made_again_later() {
    for refusal in [(503, "temporarily_unavailable"), (429, "slow_down"), (400, "temporarily_unavailable")] {
        let servers = FakeServers::new().await;
        servers.behaviour().token = refreshable(3600);
        let authorizer = servers.authorizer(FakeServers::options());
        let session = connect(&servers, &authorizer, MODERN).await;
        servers.behaviour().forget_tokens();
        servers.behaviour().refusal_of_refresh = Some(refusal);
        let failure = call(&session).await.expect_err("a failure").to_string();
        assert_eq!(failure, format!("the authorization server did not issue a token: {}", refusal.1));
        assert!(authorizer.status().expect("a status").expect("a token").can_be_refreshed);
        servers.behaviour().refusal_of_refresh = None;
        call(&session).await.expect("a result");
        assert_eq!(servers.times("GET /as1/authorize").await, 1, "{refusal:?}");
        session.close().await;
    }
}

/// An authorizer with a short-lived token and its options, and one without the options; both use this store.
async fn two(
    servers: &FakeServers,
    identity: Identity,
    grant: GrantKind,
) -> (Authorizer, Authorizer, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = TokenStore::Folder(folder.path().to_owned());
    let lookup = |name: &str| (name == "SECRET").then(|| "s".to_owned());
    let unknowing = Options { identity: Identity { lookup, ..Identity::default() }, ..Options::default() };
    let second = servers.authorizer(Options { store: store.clone(), ..unknowing });
    let first = servers.authorizer(Options { identity, grant, store, ..FakeServers::options() });
    first.authorize().await.expect("a token");
    (first, second, folder)
}

fn registered(secret: ClientSecret) -> Identity {
    let registered = Some(PreregisteredClient { id: "me".into(), secret, issuer: None });
    Identity { registered, ..Identity::default() }
}

#[tokio::test]
async fn a_token_is_renewed_for_its_client_even_without_the_options() {
    let secret = || ClientSecret::Text(Secret::new("s"));
    let named = || Identity { secret_variable: Some("SECRET".into()), ..registered(secret()) };
    let document = Identity { document: Some("https://h/client.json".into()), ..Identity::default() };
    for (identity, grant, expected) in [
        (registered(ClientSecret::None), GrantKind::AuthorizationCode, ("refresh_token", "me")),
        (document, GrantKind::AuthorizationCode, ("refresh_token", "https://h/client.json")),
        (named(), GrantKind::AuthorizationCode, ("refresh_token", "me")),
        (named(), GrantKind::ClientCredentials, ("client_credentials", "me")),
    ] {
        let servers = FakeServers::new().await;
        servers.behaviour().issuer = json!({ "client_id_metadata_document_supported": true });
        servers.behaviour().token = refreshable(0);
        let (_, second, _folder) = two(&servers, identity, grant).await;
        assert!(second.status().expect("a status").expect("a token").can_be_refreshed);
        servers.behaviour().token = json!({ "expires_in": 3600 });
        for _ in 0..2 {
            let session = connect(&servers, &second, MODERN).await;
            call(&session).await.expect("a result");
            servers.behaviour().forget_tokens();
            call(&session).await.expect("a result");
            session.close().await;
            let form = servers.last("/as1/token").await;
            assert_eq!((&*form["grant_type"], &*form["client_id"]), expected);
        }
    }
}

#[tokio::test]
async fn a_client_continues_with_a_token_from_another_process() {
    let servers = FakeServers::new().await;
    let (first, second, _folder) = two(&servers, registered(ClientSecret::None), GrantKind::AuthorizationCode).await;
    let session = connect(&servers, &second, MODERN).await;
    let before = servers.last_authorization().await;
    first.authorize().await.expect("another token");
    call(&session).await.expect("a result");
    assert_eq!(servers.last_authorization().await, before);
    second.reload().await;
    call(&session).await.expect("a result");
    assert_ne!(servers.last_authorization().await, before);
    session.close().await;
}

#[tokio::test]
async fn a_token_without_renewal_is_used_until_refused_without_asking_the_user() {
    let servers = FakeServers::new().await;
    servers.behaviour().token = refreshable(0);
    let secret = ClientSecret::Text(Secret::new("s"));
    let (_, second, _folder) = two(&servers, registered(secret), GrantKind::AuthorizationCode).await;
    assert!(!second.status().expect("a status").expect("a token").can_be_refreshed);
    let before = servers.auth_requests().await.len();
    let session = connect(&servers, &second, MODERN).await;
    for _ in 0..3 {
        call(&session).await.expect("a result");
    }
    // The metadata, once.
    assert_eq!(servers.auth_requests().await.len(), before + 1);
    servers.behaviour().forget_tokens();
    assert_eq!(call(&session).await.expect_err("a failure").to_string(), AuthError::InteractionRequired.to_string());
    session.close().await;
    let choice = SavedOptions { client_id: Some("me".into()), ..SavedOptions::default() };
    assert_eq!(second.saved_options(), Ok(choice));
}

#[tokio::test]
async fn a_refused_token_that_cannot_be_renewed_is_reported_without_discovery() {
    let servers = FakeServers::new().await;
    let (first, second, _folder) = two(&servers, Identity::default(), GrantKind::AuthorizationCode).await;
    let session = connect(&servers, &second, MODERN).await;
    let before = servers.auth_requests().await.len();
    servers.behaviour().forget_tokens();
    servers.behaviour().challenge = Some("error=\"invalid_token\"".to_owned());
    let failure = call(&session).await.expect_err("a failure").to_string();
    let expected = "the server refuses the stored token, and says \"invalid_token\"; a user must authorize it again \
                    in a browser";
    assert_eq!((&*failure, servers.auth_requests().await.len()), (expected, before));
    assert!(second.failure().expect("a reason").needs_user());
    // Another process gets a token, and this one uses it.
    first.authorize().await.expect("another token");
    call(&session).await.expect("a result");
    session.close().await;
}

#[tokio::test]
async fn a_secret_that_is_not_in_its_variable_any_more_is_reported() {
    let servers = FakeServers::new().await;
    servers.behaviour().token = json!({ "expires_in": 0 });
    let secret = ClientSecret::Text(Secret::new("s"));
    let identity = Identity { secret_variable: Some("LOST".into()), ..registered(secret) };
    let (_, second, _folder) = two(&servers, identity, GrantKind::ClientCredentials).await;
    servers.behaviour().forget_tokens();
    assert_eq!(refused(&servers, &second).await, AuthError::NoSecret { variable: "LOST".into() });
    let choice = second.saved_options().expect("what was said");
    assert_eq!((choice.secret_variable.as_deref(), choice.is_unattended), (Some("LOST"), true));
}

#[tokio::test]
async fn a_token_that_is_forgotten_while_it_is_renewed_stays_forgotten() {
    for is_memory in [true, false] {
        let servers = FakeServers::new().await;
        let folder = tempfile::tempdir().expect("a folder");
        let store = if is_memory { TokenStore::memory() } else { TokenStore::Folder(folder.path().to_owned()) };
        let authorizer = || servers.authorizer(Options { store: store.clone(), ..FakeServers::options() });
        let (first, second) = (authorizer(), authorizer());
        servers.behaviour().token = refreshable(0);
        first.authorize().await.expect("a token");
        servers.behaviour().delay = Duration::from_secs(1);
        let config = servers.config(&first);
        let renewing = tokio::spawn(async move { Session::connect(&config, MODERN).await });
        while servers.times("POST /as1/token").await < 2 {
            tokio::task::yield_now().await;
        }
        assert!(second.logout().await.expect("logs out").was_there);
        // Only a store in files has a lock for which the logout waits.
        assert!(!is_memory || !renewing.is_finished());
        renewing.await.expect("no panic").expect("a session").close().await;
        assert_eq!(authorizer().status(), Ok(None), "{is_memory}");
    }
}
