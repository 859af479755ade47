//! Tokens that expire, are kept, and come from somebody else than before.

use super::*;

fn refreshable(life: u64) -> serde_json::Value {
    json!({ "refresh_token": "refresh-1", "expires_in": life })
}

#[tokio::test]
async fn a_token_that_expires_is_replaced_before_it_is_refused() {
    let world = World::new().await;
    world.play().token = refreshable(1);
    let authorizer = world.authorizer(World::options());
    let session = connect(&world, &authorizer, MODERN).await;
    let before = world.times("POST /as1/token");
    world.play().token = json!({ "expires_in": 3600 });
    call(&session).await.expect("a result");
    call(&session).await.expect("a result");
    session.close().await;
    assert_eq!((world.times("POST /as1/token"), world.times("GET /as1/authorize")), (before + 1, 1));
    let form = world.last("/as1/token");
    assert_eq!((&*form["grant_type"], &*form["refresh_token"]), ("refresh_token", "refresh-1"));
    assert_eq!(form["resource"], world.server.url);
    // It was not replaced, so it stays (RFC 6749, section 6).
    assert!(authorizer.status().expect("a status").expect("a token").can_be_refreshed);
}

#[tokio::test]
async fn a_token_that_is_refused_is_refreshed_where_that_is_possible() {
    let world = World::new().await;
    world.play().token = refreshable(3600);
    let session = connect(&world, &world.authorizer(World::options()), MODERN).await;
    world.play().forget_tokens();
    call(&session).await.expect("a result");
    assert_eq!((world.times("POST /as1/token"), world.times("GET /as1/authorize")), (2, 1));
    world.play().forget_tokens();
    world.play().refuses_refresh = true;
    call(&session).await.expect("a result");
    assert_eq!((world.times("POST /as1/token"), world.times("GET /as1/authorize")), (4, 2));
    assert_eq!(world.times("POST /as1/register"), 1);
    session.close().await;
}

#[tokio::test]
async fn nothing_of_an_issuer_is_shown_to_the_one_that_comes_after_it() {
    for document in [None, Some("https://h/client.json".to_owned())] {
        let world = World::new().await;
        world.play().issuer = json!({ "client_id_metadata_document_supported": true });
        world.play().token = refreshable(3600);
        let identity = Identity { document: document.clone(), ..Identity::default() };
        let options = Options { identity, ..World::options() };
        let session = connect(&world, &world.authorizer(options), MODERN).await;
        let base = world.base();
        world.play().resource["authorization_servers"] = json!([format!("{base}/as2")]);
        world.play().forget_tokens();
        call(&session).await.expect("a result");
        session.close().await;
        // The URL of a document is known everywhere.
        let expected = document.as_deref().unwrap_or("client-of/as2");
        assert_eq!(world.last("/as2/authorize")["client_id"], expected);
        assert_eq!(world.times("POST /as2/register"), usize::from(document.is_none()));
        for seen in world.server.seen().iter().filter(|seen| seen.uri.path().starts_with("/as2")) {
            let text = format!("{} {:?} {:?}", seen.uri, seen.body, seen.headers);
            assert!(!text.contains("as1") && !text.contains("refresh-1"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_registered_client_does_not_go_to_another_issuer() {
    let world = World::new().await;
    let registered = Some(Registered { id: "me".into(), secret: ClientSecret::None, issuer: None });
    let options = Options { identity: Identity { registered, ..Identity::default() }, ..World::options() };
    let session = connect(&world, &world.authorizer(options), MODERN).await;
    let base = world.base();
    world.play().resource["authorization_servers"] = json!([format!("{base}/as2")]);
    world.play().forget_tokens();
    let failure = call(&session).await.expect_err("a failure").to_string();
    let expected =
        format!("the client id belongs to the authorization server {base}/as1, and the server now names {base}/as2");
    assert_eq!(failure, expected);
    assert_eq!(world.times("GET /as2/authorize"), 0);
    session.close().await;
}

#[tokio::test]
async fn what_is_kept_serves_the_next_process() {
    let world = World::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let options = || Options { store: TokenStore::Folder(folder.path().join("tokens")), ..World::options() };
    world.play().token = refreshable(3600);
    connect(&world, &world.authorizer(options()), MODERN).await.close().await;
    assert_eq!(world.asked().len(), WHOLE.len());
    // As it is.
    let second = world.authorizer(options());
    let session = connect(&world, &second, MODERN).await;
    assert_eq!(world.asked().len(), WHOLE.len());
    // By the refresh token.
    world.play().forget_tokens();
    call(&session).await.expect("a result");
    // What another process has got in the meantime.
    let third = world.authorizer(options());
    let other = connect(&world, &third, MODERN).await;
    world.play().forget_tokens();
    call(&other).await.expect("a result");
    let asked = world.times("POST /as1/token");
    call(&session).await.expect("a result");
    assert_eq!(world.times("POST /as1/token"), asked);
    // With the client that is registered already.
    world.play().refuses_refresh = true;
    world.play().forget_tokens();
    call(&session).await.expect("a result");
    assert_eq!((world.times("POST /as1/register"), world.times("GET /as1/authorize")), (1, 2));
    session.close().await;
    other.close().await;
}

#[tokio::test]
async fn a_client_that_was_forgotten_registers_itself_again() {
    let world = World::new().await;
    let authorizer = world.authorizer(World::options());
    let session = connect(&world, &authorizer, MODERN).await;
    world.play().forget_tokens();
    world.play().token = json!({ "error": "invalid_client" });
    assert_eq!(call(&session).await.expect_err("a failure").kind(), "unauthorized");
    world.play().token = json!({});
    call(&session).await.expect("a result");
    assert_eq!(world.times("POST /as1/register"), 2);
    session.close().await;
}
