//! A user with a browser.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{sync::oneshot, task::JoinHandle};

use super::*;

/// The page that the browser got after the redirect.
type Pages = JoinHandle<Vec<(u16, String)>>;

/// A browser that first sends an invalid response, and then the answer.
fn browser() -> (Browser, Arc<Mutex<Vec<Pages>>>) {
    let windows: Arc<Mutex<Vec<Pages>>> = Arc::default();
    let opened = windows.clone();
    let browser = Browser::new(move |url| {
        let url = url.to_owned();
        opened.lock().expect("no panic").push(tokio::spawn(async move {
            let client = rehearse_net::http_client::builder(true).redirect(reqwest::redirect::Policy::none());
            let client = client.build().expect("a client");
            let response = client.get(&url).send().await.expect("a response");
            let back: reqwest::Url = response.headers()["location"].to_str().expect("text").parse().expect("a URL");
            let mut pages = Vec::new();
            let forged = format!("{}?code=stolen&state=guessed", back.as_str().split('?').next().unwrap_or_default());
            let elsewhere = back.join("/favicon.ico").expect("a URL");
            for url in [elsewhere.as_str(), &forged, back.as_str()] {
                let page = client.get(url).send().await.expect("a page");
                let status = page.status().as_u16();
                pages.push((status, page.text().await.expect("text")));
            }
            let posted = client.post(back).send().await.map(|page| page.status().as_u16()).unwrap_or_default();
            assert_ne!(posted, 200);
            pages
        }));
    });
    (browser, windows)
}

async fn pages(windows: &Mutex<Vec<Pages>>) -> Vec<(u16, String)> {
    let window = windows.lock().expect("no panic").pop().expect("a window");
    window.await.expect("no panic")
}

#[tokio::test]
async fn a_browser_comes_back_to_a_page_that_takes_only_the_answer() {
    let servers = FakeServers::new().await;
    let (browser, windows) = browser();
    let options = Options { interaction: Interaction::Browser(browser), ..Options::default() };
    connect(&servers, &servers.authorizer(options), MODERN).await.close().await;
    let pages = pages(&windows).await;
    assert_eq!(pages[0].0, 404);
    assert_eq!(pages[1], (400, "This is the answer to something else. Nothing has happened.".into()));
    assert_eq!(pages[2], (200, "It is authorized. You can close this window.".into()));
    let redirect: reqwest::Url = servers.last("/as1/authorize").await["redirect_uri"].parse().expect("a URL");
    assert_eq!((redirect.host_str(), redirect.path()), (Some("127.0.0.1"), "/callback"));
    assert_eq!(servers.last("/as1/token").await["redirect_uri"], redirect.as_str());
}

#[tokio::test]
async fn a_browser_is_informed_that_it_is_not_authorized() {
    let servers = FakeServers::new().await;
    servers.behaviour().iss = Some("https://evil.example.com");
    let (browser, windows) = browser();
    let options = Options { interaction: Interaction::Browser(browser), ..Options::default() };
    let error = refused(&servers, &servers.authorizer(options)).await;
    assert!(matches!(error, AuthError::Response(_)), "{error}");
    assert_eq!(pages(&windows).await[2].0, 400);
    assert_eq!(servers.times("POST /as1/token").await, 0);
}

#[tokio::test]
async fn a_registration_is_used_again_with_the_port_that_it_is_for() {
    let servers = FakeServers::new().await;
    let (browser, _windows) = browser();
    let options = Options { interaction: Interaction::Browser(browser), ..Options::default() };
    let session = connect(&servers, &servers.authorizer(options), MODERN).await;
    let first = servers.last("/as1/authorize").await["redirect_uri"].clone();
    let port = first.parse::<reqwest::Url>().expect("a URL").port().expect("a port");
    servers.behaviour().forget_tokens();
    call(&session).await.expect("a result");
    assert_eq!(
        (servers.last("/as1/authorize").await["redirect_uri"].clone(), servers.times("POST /as1/register").await),
        (first, 1)
    );
    let _taken = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("the port");
    servers.behaviour().forget_tokens();
    call(&session).await.expect("a result");
    assert_eq!(servers.times("POST /as1/register").await, 2);
    session.close().await;
}

#[tokio::test]
async fn the_wait_for_the_browser_has_a_limit() {
    let servers = FakeServers::new().await;
    let browser = Browser { limit: Duration::ZERO, ..Browser::new(|_| ()) };
    let options = Options { interaction: Interaction::Browser(browser), ..Options::default() };
    assert_eq!(refused(&servers, &servers.authorizer(options)).await, AuthError::TimedOut(Duration::ZERO));
}

#[tokio::test]
async fn the_time_of_a_person_does_not_count() {
    let servers = FakeServers::new().await;
    let (asked, shown) = oneshot::channel();
    let asked = Mutex::new(Some(asked));
    let slow = Browser::new(move |url| {
        if let Some(asked) = asked.lock().expect("no panic").take() {
            let _ = asked.send(url.to_owned());
        }
    });
    let authorizer = servers.authorizer(Options { interaction: Interaction::Browser(slow), ..Options::default() });
    let mut config = servers.config(&authorizer);
    config.timeouts.connect = Duration::from_secs(20);
    let connecting = tokio::spawn(async move { Session::connect(&config, MODERN).await });
    let url = shown.await.expect("a URL");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    assert!(authorizer.paused() >= Duration::from_secs(60));
    assert!(!connecting.is_finished());
    let (comes_back, _windows) = browser();
    (comes_back.show)(&url);
    connecting.await.expect("no panic").expect("a session").close().await;
}
