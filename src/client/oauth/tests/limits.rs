//! Requests that want more, and servers that are never content.

use futures_util::future::join_all;

use super::*;

#[tokio::test]
async fn a_call_that_needs_more_scopes_gets_the_union() {
    let world = World::new().await;
    world.play().challenge = Some("scope=\"basic\"".into());
    let authorizer = world.authorizer(World::options());
    let session = connect(&world, &authorizer, MODERN).await;
    world.play().needed = vec!["write"];
    world.play().challenge = Some(String::new());
    assert_eq!(call(&session).await.expect("a result"), "hello");
    session.close().await;
    assert_eq!(world.last("/as1/authorize")["scope"], "basic write");
    assert_eq!(world.times("POST /as1/register"), 1);
    assert_eq!(authorizer.status().expect("a status").expect("a token").scopes, ["basic", "write"]);
}

#[tokio::test]
async fn more_scopes_are_asked_for_twice_and_never_again() {
    let world = World::new().await;
    let session = connect(&world, &world.authorizer(World::options()), MODERN).await;
    world.play().needed = vec!["write", "admin"];
    world.play().is_stingy = true;
    for _ in 0..2 {
        let failure = call(&session).await.expect_err("a failure");
        assert_eq!(failure.kind(), "unauthorized");
        assert_eq!(failure.to_string(), "the server still says that the token lacks admin write");
        assert_eq!(world.times("GET /as1/authorize"), 3);
    }
    session.close().await;
}

#[tokio::test]
async fn a_token_that_is_refused_at_once_is_not_asked_for_again() {
    let world = World::new().await;
    world.play().takes_nothing = true;
    let authorizer = world.authorizer(World::options());
    assert_eq!(refused(&world, &authorizer).await, AuthError::Rejected);
    assert_eq!(refused(&world, &authorizer).await, AuthError::Rejected);
    assert_eq!(world.times("GET /as1/authorize"), 1);
}

#[tokio::test]
async fn requests_that_are_refused_at_the_same_time_wait_for_one_authorization() {
    let world = World::new().await;
    let session = connect(&world, &world.authorizer(World::options()), MODERN).await;
    world.play().forget_tokens();
    let outcomes = join_all((0..8).map(|_| call(&session))).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(world.times("GET /as1/authorize"), 2);
    world.play().forget_tokens();
    world.play().refusal = Some("access_denied");
    let failure = call(&session).await.expect_err("a failure");
    assert_eq!(failure.kind(), "unauthorized");
    assert_eq!(failure.to_string(), "the authorization was refused: access_denied");
    session.close().await;
}

#[tokio::test]
async fn a_403_that_is_not_about_scopes_is_left_as_it_is() {
    let world = World::new().await;
    let session = connect(&world, &world.authorizer(World::options()), MODERN).await;
    world.play().needed = vec![" "];
    let failure = call(&session).await.expect_err("a failure");
    assert!(matches!(failure, Failure::Http { status: 403, .. }), "{failure:?}");
    session.close().await;
    assert_eq!(world.times("GET /as1/authorize"), 1);
}
