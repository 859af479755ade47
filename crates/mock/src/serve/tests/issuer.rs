//! The mock as an authorization server.

use std::collections::HashMap;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rehearse_protocol::{Direction, EventKind};
use ring::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};

use super::{client::Client, *};

const REDIRECT: &str = "http://127.0.0.1:7/callback";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// A client that follows no redirect.
async fn open(script: &str) -> Client {
    let mut client = Client::open("tools: []").await;
    let listen = ListenOptions { recorder: Some(Arc::default()), ..ListenOptions::default() };
    client.server = MockServer::start(engine(script), listen).await.expect("binds");
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    client.http = http.build().expect("a client");
    client
}

async fn register(client: &Client) -> Json {
    let registration = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_post" });
    client.post("/register", &registration).await.json().await.expect("JSON")
}

/// The parameters of the redirect.
async fn authorize(client: &Client, id: &Json, more: &[(&str, &str)]) -> HashMap<String, String> {
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes()));
    let pairs = [
        ("response_type", "code"),
        ("client_id", id.as_str().expect("an id")),
        ("redirect_uri", REDIRECT),
        ("state", "s"),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs.iter().chain(more)).finish();
    let response = client.get(&format!("/authorize?{query}")).await;
    assert_eq!(response.status(), 302);
    let location = response.headers()["location"].to_str().expect("text").to_owned();
    let location = url::Url::parse(&location).expect("a URL");
    location.query_pairs().into_owned().collect()
}

async fn token(client: &Client, registered: &Json, form: &[(&str, &str)]) -> Json {
    let mut pairs = form.to_vec();
    pairs.push(("client_id", registered["client_id"].as_str().expect("an id")));
    pairs.push(("client_secret", registered["client_secret"].as_str().expect("a secret")));
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let request = client.http.post(format!("http://{}/token", client.server.address()));
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
    request.send().await.expect("a response").json().await.expect("JSON")
}

#[tokio::test]
async fn a_client_that_registers_itself_gets_a_token_and_renews_it() {
    let script = "auth: { scopes: [a], issuer: { expireAfter: 1 } }\ntools: [{ name: t, scopes: [b], reply: x }]";
    let mut client = open(script).await;
    let refused = client.post("/mcp", &initialize("2025-11-25")).await;
    assert_eq!(refused.status(), 401);
    let metadata: Json = client.get("/.well-known/oauth-protected-resource/mcp").await.json().await.expect("JSON");
    assert_eq!(metadata["authorization_servers"][0], format!("http://{}", client.server.address()));
    for path in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
        let metadata: Json = client.get(path).await.json().await.expect("JSON");
        assert_eq!(metadata["issuer"], format!("http://{}", client.server.address()), "{path}");
    }
    let registered = register(&client).await;
    let answer = authorize(&client, &registered["client_id"], &[("scope", "a b")]).await;
    assert_eq!((&*answer["state"], answer.contains_key("iss")), ("s", true));
    let code = [("grant_type", "authorization_code"), ("code", &answer["code"]), ("redirect_uri", REDIRECT)];
    let wrong = token(&client, &registered, &[&code[..], &[("code_verifier", "other")]].concat()).await;
    assert_eq!(wrong["error"], "invalid_grant");
    let answer = authorize(&client, &registered["client_id"], &[("scope", "a b")]).await;
    let code = [("grant_type", "authorization_code"), ("code", &answer["code"]), ("redirect_uri", REDIRECT)];
    let issued = token(&client, &registered, &[&code[..], &[("code_verifier", VERIFIER)]].concat()).await;
    assert_eq!(issued["scope"], "a b");
    let bearer =
        |issued: &Json| ("authorization", format!("Bearer {}", issued["access_token"].as_str().expect("a token")));
    client.headers.push(bearer(&issued));
    let opened = client.post("/mcp", &initialize("2025-11-25")).await;
    assert_eq!(opened.status(), 200);
    client.headers.push(("mcp-session-id", opened.headers()["mcp-session-id"].to_str().expect("text").to_owned()));
    assert_eq!(client.post("/mcp", &call(1, "t")).await.status(), 401, "it has expired");
    let refresh = [("grant_type", "refresh_token"), ("refresh_token", issued["refresh_token"].as_str().expect("text"))];
    let renewed = token(&client, &registered, &refresh).await;
    assert_eq!(token(&client, &registered, &refresh).await["error"], "invalid_grant", "it was used");
    client.headers.retain(|(name, _)| *name != "authorization");
    client.headers.push(bearer(&renewed));
    assert_eq!(client.post("/mcp", &call(1, "t")).await.status(), 200, "the session is that of the same user");

    let traces = client.server.traces();
    let about = traces[0].events().filter_map(|event| match &event.kind {
        EventKind::HttpRequest { method, target, .. } => Some(format!("{method} {}", target.split('?').next()?)),
        EventKind::Frame(frame) if frame.direction == Direction::ClientToServer => Some("a message".to_owned()),
        EventKind::HttpBody { direction: Direction::ClientToServer, bytes } if bytes.starts_with(b"grant_type=") => {
            Some("a form".to_owned())
        }
        _ => None,
    });
    let about = about.collect::<Vec<_>>();
    assert_eq!(about[..3], ["POST /mcp", "a message", "GET /.well-known/oauth-protected-resource/mcp"]);
    assert_eq!(about[about.len() - 6..], ["POST /mcp", "a message", "POST /token", "a form", "POST /token", "a form"]);
    assert_eq!(traces.len(), 2, "the session has the other");
}

/// A proof with these claims.
fn proof(header: &Json, claims: &Json) -> String {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).expect("a key");
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &SystemRandom::new());
    let key = key.expect("a key");
    let base64 = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let (x, y) = key.public_key().as_ref()[1..].split_at(32);
    let mut header = header.clone();
    if header["jwk"].is_null() {
        header["jwk"] = json!({ "kty": "EC", "crv": "P-256", "x": base64(x), "y": base64(y) });
    }
    let signed = format!("{}.{}", base64(header.to_string().as_bytes()), base64(claims.to_string().as_bytes()));
    let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
    format!("{signed}.{}", base64(signature.as_ref()))
}

#[tokio::test]
async fn only_a_right_proof_gets_a_token_and_is_good_once() {
    let client = open("auth: { issuer: { dpop: nonce, clients: [{ id: me, secret: s }] } }").await;
    let url = format!("http://{}/token", client.server.address());
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a time").as_secs();
    let (header, nonce) = (json!({ "typ": "dpop+jwt", "alg": "ES256" }), "nonce-of-the-issuer");
    let claims = json!({ "jti": "1", "htm": "POST", "htu": url, "iat": now, "nonce": nonce });
    let with = |value: &Json, name: &str, other: Json| {
        let mut value = value.clone();
        value[name] = other;
        value
    };
    let ask = async |proofs: &[String]| -> (Option<String>, Json) {
        let mut request = client.http.post(&url).basic_auth("me", Some("s"));
        for proof in proofs {
            request = request.header("dpop", proof);
        }
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let request = request.header(form[0].0, form[0].1).body("grant_type=client_credentials");
        let response = request.send().await.expect("a response");
        let nonce = response.headers().get("dpop-nonce").map(|nonce| nonce.to_str().expect("text").to_owned());
        (nonce, response.json().await.expect("JSON"))
    };
    let right = proof(&header, &claims);
    let broken = format!("{}AAAA", &right[..right.len() - 4]);
    let foreign = json!({ "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA" });
    let wrong = [
        vec![],
        vec![right.clone(), right.clone()],
        vec![broken],
        vec![proof(&with(&header, "typ", json!("JWT")), &claims)],
        vec![proof(&with(&header, "alg", json!("none")), &claims)],
        vec![proof(&with(&header, "jwk", foreign), &claims)],
        vec![proof(&header, &with(&claims, "htm", json!("GET")))],
        vec![proof(&header, &with(&claims, "htu", json!("http://127.0.0.1/token")))],
        vec![proof(&header, &with(&claims, "iat", json!(now - 400)))],
        vec![proof(&header, &with(&claims, "jti", json!(null)))],
    ];
    for proofs in &wrong {
        assert_eq!(ask(proofs).await, (None, json!({ "error": "invalid_dpop_proof" })), "{proofs:?}");
    }
    let without_nonce = proof(&header, &with(&claims, "nonce", json!(null)));
    assert_eq!(ask(&[without_nonce]).await, (Some(nonce.to_owned()), json!({ "error": "use_dpop_nonce" })));
    assert_eq!(ask(std::slice::from_ref(&right)).await.1["token_type"], "DPoP");
    assert_eq!(ask(&[right]).await.1["error"], "invalid_dpop_proof", "it was used");
    let challenge = client.get("/mcp").await.headers()["www-authenticate"].to_str().expect("text").to_owned();
    assert!(challenge.starts_with("DPoP algs=\"ES256\""), "{challenge}");
}

#[tokio::test]
async fn an_issuer_misbehaves_as_the_script_says() {
    let script = "auth:\n  issuer:\n    path: [/one, /two]\n    challenge: Bearer\n    expireAfter: 0\n    \
        missing: [/.well-known/oauth-authorization-server/one]\n    fail: { register: invalid_redirect_uri }\n    \
        resource: { resource: 'https://other.example' }\n    metadata: { issuer: '{origin}', scopes_supported: null }";
    let client = open(script).await;
    let refused = client.get("/mcp").await;
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    let json = async |path: &str| -> Json { client.get(path).await.json().await.expect("JSON") };
    assert_eq!(json("/.well-known/oauth-protected-resource").await["resource"], "https://other.example");
    assert_eq!(client.get("/.well-known/oauth-authorization-server/one").await.status(), 404);
    let metadata = json("/one/.well-known/openid-configuration").await;
    let origin = format!("http://{}", client.server.address());
    assert_eq!(
        (&metadata["issuer"], &metadata["token_endpoint"]),
        (&json!(origin), &json!(format!("{origin}/one/token")))
    );
    let failed = client.post("/one/register", &json!({ "redirect_uris": [] })).await;
    assert_eq!(
        (failed.status().as_u16(), failed.text().await.expect("text")),
        (400, r#"{"error":"invalid_redirect_uri"}"#.into())
    );
}
