//! The binding of clients and users to an authorization server.

use super::*;

fn options(store: &TokenStore, issuer: Option<&str>, is_known: bool) -> Options {
    let issuer = issuer.map(str::to_owned);
    let secret = ClientSecret::Text(Secret::new("s"));
    let registered = is_known.then(|| PreregisteredClient { id: "me".into(), secret, issuer: issuer.clone() });
    let identity = Identity { registered, ..Identity::default() };
    Options { identity, issuer, store: store.clone(), ..FakeServers::options() }
}

#[tokio::test]
async fn a_client_belongs_to_its_issuer_also_when_its_token_is_forgotten() {
    let (servers, store) = (FakeServers::new().await, TokenStore::memory());
    let [as1, as2] = ["as1", "as2"].map(|name| format!("{}/{name}", servers.base()));
    let client = |issuer: Option<&str>| servers.authorizer(options(&store, issuer, true));
    client(None).authorize().await.expect("a token");
    assert!(client(None).logout().await.expect("logs out").was_there);
    assert!(!client(None).logout().await.expect("logs out").was_there);
    servers.behaviour().resource["authorization_servers"] = json!([as2]);
    let error = client(None).authorize().await.expect_err("another issuer");
    assert_eq!(error, AuthError::IssuerMismatch { registered: as1, issuer: as2.clone() });
    assert_eq!(servers.times("GET /as2/authorize").await + servers.times("POST /as2/token").await, 0);
    // The user says that it has moved.
    client(Some(&as2)).authorize().await.expect("a token");
    client(None).logout().await.expect("logs out");
    client(None).authorize().await.expect("a token");
    assert_eq!(servers.times("POST /as2/token").await, 2);
}

#[tokio::test]
async fn the_issuer_that_the_user_names_is_the_only_one() {
    for is_known in [true, false] {
        let (servers, store) = (FakeServers::new().await, TokenStore::memory());
        let [as1, as2] = ["as1", "as2"].map(|name| format!("{}/{name}", servers.base()));
        let client = |issuer: &str| servers.authorizer(options(&store, Some(issuer), is_known));
        let error = client(&as2).authorize().await.expect_err("another issuer");
        assert_eq!(error, AuthError::IssuerNotOffered { wanted: as2.clone(), named: as1.clone() });
        servers.behaviour().resource["authorization_servers"] = json!([as1, as2]);
        assert_eq!(client(&as2).authorize().await.expect("a token").issuer, as2);
        assert_eq!(client(&as2).saved_options().expect("what was said").issuer, Some(as2));
        assert_eq!((servers.times("POST /as1/token").await, servers.times("POST /as2/token").await), (0, 1));
        // A server from before protected resources is its own.
        (servers.behaviour().is_pointing, servers.behaviour().resource) = (false, serde_json::Value::Null);
        let (wanted, named) = ("https://as.example/".to_owned(), servers.base());
        let error = client(&wanted).authorize().await.expect_err("another issuer");
        assert_eq!(error, AuthError::IssuerNotOffered { wanted, named });
    }
}

#[test]
fn a_client_secret_is_sent_elsewhere_only_if_configured() {
    use crate::oauth::{
        deadline_pause::DeadlinePause, discovery::ServerMetadata, fetch::Fetcher, flow::Flow, ssrf_guard::SsrfGuard,
        store::Record,
    };
    let issuer = ServerMetadata { issuer: "https://as.example".into(), ..ServerMetadata::default() };
    let said = |change: fn(&mut Flow, &mut Record)| {
        let server: reqwest::Url = "https://h.example/mcp".parse().expect("a URL");
        let ssrf_guard = SsrfGuard::new(server.clone());
        let mut flow = Flow {
            server,
            identity: options(&TokenStore::memory(), None, true).identity,
            scopes: None,
            metadata_url: None,
            issuer: None,
            interaction: Interaction::None,
            fetcher: Fetcher::new(ssrf_guard.clone()),
            ssrf_guard,
            pause: DeadlinePause::default(),
        };
        let mut record = Record::default();
        change(&mut flow, &mut record);
        flow.known_client(&issuer, &record, None).map(|client| client.map(|client| client.id))
    };
    assert_eq!(said(|_, _| {}), Err(AuthError::UntrustedIssuer { issuer: issuer.issuer.clone() }));
    let ways: [fn(&mut Flow, &mut Record); 4] = [
        |flow, _| flow.issuer = Some("https://as.example".into()),
        |flow, _| flow.metadata_url = Some("https://as.example/metadata".into()),
        |flow, _| flow.identity.registered.as_mut().expect("a client").issuer = Some("https://as.example".into()),
        |_, record| drop(record.bound.insert("me".into(), "https://as.example".into())),
    ];
    for way in ways {
        assert_eq!(said(way), Ok(Some("me".to_owned())));
    }
}
