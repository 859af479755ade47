//! Requests without a token, with bad tokens, and with those that the user gives; and the metadata about them.

use rehearse_client::{ServerParams, Target, oauth::server_metadata_urls};
use rehearse_conformance::{Case, CaseGroup, ISSUER, Material};
use rehearse_protocol::{Direction, Era, EventKind, Trace, Transport, Version};
use serde_json::{Value, json};

use crate::{
    connection::{ProbeConnection, client_info},
    prober::Prober,
};

/// A JSON Web Token without a signature.
const UNSIGNED: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyZWhlYXJzZSJ9.";
/// The header `{"alg":"none"}`.
const NO_ALGORITHM: &str = "eyJhbGciOiJub25lIn0";
/// `rehearse:rehearse`
const BASIC: &str = "Basic cmVoZWFyc2U6cmVoZWFyc2U=";
/// How many authorization servers are asked.
const ISSUERS: usize = 2;
const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Asks without a token; if the server wants one, asks with wrong and right ones.
pub(crate) async fn auth(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.transport() != Transport::Http || prober.version == Version::V2024_11_05 {
        return Vec::new();
    }
    let stranger = without_token(prober.params);
    let open = || ProbeConnection::open(&stranger, prober.version, prober.options, &prober.budget);
    let Ok(mut connection) = open().await else { return Vec::new() };
    let tokens = &prober.options.tokens;
    let first = opening(prober.version);
    let list = Case::request("", CaseGroup::Fresh, prober.material.cheap_method(), json!({}));
    connection.send(&named(&first, "auth/no-token/first")).await;
    let mut refused = &first;
    if !is_refused(&connection) {
        connection.send(&named(&list, "auth/no-token/list")).await;
        refused = &list;
        if !is_refused(&connection) && tokens.valid.is_none() {
            connection.end_session();
            return vec![connection.close().await];
        }
    }
    let is_required = connection.last_head().is_some_and(|(status, _)| *status >= 400);
    let issuers = ask_metadata(&mut connection, prober).await;
    let mut bad = vec![
        ("auth/invalid/opaque", "Bearer rehearse-invalid".to_owned()),
        ("auth/invalid/unsigned", format!("Bearer {UNSIGNED}")),
        ("auth/wrong-scheme/basic", BASIC.to_owned()),
        ("auth/malformed/empty", "Bearer".to_owned()),
    ];
    bad.extend(tokens.expired.iter().map(|token| ("auth/expired", format!("Bearer {token}"))));
    bad.extend(tokens.wrong_audience.iter().map(|token| ("auth/wrong-audience", format!("Bearer {token}"))));
    if let Some((signature, unsigned)) = tokens.valid.as_deref().and_then(tampered) {
        bad.push(("auth/tampered/signature", format!("Bearer {signature}")));
        bad.push(("auth/tampered/unsigned", format!("Bearer {unsigned}")));
    }
    for (name, value) in bad {
        connection.send(&named(refused, name).header("authorization", &value)).await;
    }
    connection.end_session();
    let mut traces = vec![connection.close().await];
    for (number, issuer) in issuers.iter().take(ISSUERS).enumerate().filter(|_| is_required) {
        traces.extend(ask_issuer(prober, number, issuer).await);
    }
    if let (Some(token), Ok(mut connection)) = (&tokens.valid, open().await) {
        let value = format!("Bearer {token}");
        enter(&mut connection, "auth/valid", &first, &value).await;
        connection.send(&named(&list, "auth/valid/list").header("authorization", &value)).await;
        connection.send(&named(&list, "auth/every-request")).await;
        traces.push(leave(connection, "auth/valid", &value).await);
    }
    if let (Some(token), Ok(mut connection)) = (&tokens.low_scope, open().await) {
        let value = format!("Bearer {token}");
        enter(&mut connection, "auth/low-scope", &first, &value).await;
        connection.send(&named(&list, "auth/low-scope/list").header("authorization", &value)).await;
        for (tool, arguments) in &prober.material.callable {
            let params = Material::call_params(tool, arguments);
            let call = Case::request(format!("auth/low-scope/{tool}"), CaseGroup::Fresh, "tools/call", params);
            connection.send(&call.header("authorization", &value)).await;
        }
        traces.push(leave(connection, "auth/low-scope", &value).await);
    }
    traces
}

/// Opens a session with a token.
async fn enter(connection: &mut ProbeConnection, name: &str, first: &Case, value: &str) {
    connection.send(&named(first, &format!("{name}/first")).header("authorization", value)).await;
    if connection.version().era() == Era::Legacy {
        let name = format!("{name}/initialized");
        let initialized = Case::notification(name, CaseGroup::Fresh, "notifications/initialized", Value::Null);
        connection.send(&initialized.header("authorization", value)).await;
    }
}

/// Ends a session with a token.
async fn leave(mut connection: ProbeConnection, name: &str, value: &str) -> Trace {
    if connection.session().is_some() {
        let delete = Case::http(format!("{name}/delete"), CaseGroup::Fresh, "DELETE");
        connection.send(&delete.header("authorization", value)).await;
        connection.end_session();
    }
    connection.close().await
}

/// Gets the metadata of the resource from the URL of the challenge and from the well-known ones. Returns the authorization
/// servers that they name.
async fn ask_metadata(connection: &mut ProbeConnection, prober: &Prober<'_>) -> Vec<String> {
    let Target::Http(at) = &prober.params.target else { return Vec::new() };
    let Ok(endpoint) = at.url.parse::<http::Uri>() else { return Vec::new() };
    let challenge = connection.last_head().and_then(|(_, headers)| {
        let value = headers.get("www-authenticate")?.to_str().ok()?;
        let url: http::Uri = value.split_once("resource_metadata=\"")?.1.split_once('"')?.0.parse().ok()?;
        (url.authority() == endpoint.authority()).then(|| url.path().to_owned())
    });
    let below = format!("{METADATA}{}", endpoint.path().trim_end_matches('/'));
    let (mut asked, mut found): (Vec<String>, Option<Value>) = (Vec::new(), None);
    let places = [("header", challenge), ("path", Some(below)), ("root", Some(METADATA.to_owned()))];
    for (name, path) in places {
        let Some(path) = path.filter(|path| !asked.contains(path)) else { continue };
        let (_, document) = get(connection, format!("auth/metadata/{name}"), &path).await;
        found = found.or(document);
        asked.push(path);
    }
    let named = found.as_ref().and_then(|it| it["authorization_servers"].as_array());
    named.into_iter().flatten().map(|issuer| issuer.as_str().unwrap_or_default().to_owned()).collect()
}

/// Gets the metadata of an authorization server from where clients look for it. The server has named it, so it gets no
/// header that is for the server.
async fn ask_issuer(prober: &Prober<'_>, number: usize, issuer: &str) -> Option<Trace> {
    let urls = server_metadata_urls(issuer).ok()?;
    let params = ServerParams {
        named_by: prober.params.target.endpoint().map(|at| at.url.clone()),
        shutdown: prober.params.shutdown.clone(),
        ..ServerParams::new(ISSUER, Target::http(issuer))
    };
    let open = ProbeConnection::open(&params, prober.version, prober.options, &prober.budget).await;
    let mut connection = open.ok()?;
    for (place, url) in urls.iter().enumerate() {
        let (status, document) = get(&mut connection, format!("{ISSUER}/{number}/{place}"), url.path()).await;
        if status.is_none() || document.is_some() {
            break;
        }
    }
    Some(connection.close().await)
}

/// Gets a JSON object from a path. Returns the status, and the object if it is there.
async fn get(connection: &mut ProbeConnection, case: String, path: &str) -> (Option<u16>, Option<Value>) {
    let case = Case::http(case, CaseGroup::Fresh, "GET").path(path).header("accept", "application/json");
    let mut read = connection.wire().recorder().end();
    let Some(exchange) = connection.begin_exchange(&case) else { return (None, None) };
    let number = exchange.number;
    connection.finish_exchanges(vec![exchange]).await;
    let status = connection.head(number).map(|(status, _)| status);
    let mut body = Vec::new();
    for event in connection.wire().recorder().read(&mut read) {
        if let (true, EventKind::HttpBody { direction: Direction::ServerToClient, bytes }) =
            (event.exchange == Some(number), &event.kind)
        {
            body.extend_from_slice(bytes);
        }
    }
    let document = serde_json::from_slice::<Value>(&body).ok().filter(Value::is_object);
    (status, document.filter(|_| status == Some(200)))
}

/// The first request of a client.
fn opening(version: Version) -> Case {
    if version.era() == Era::Modern {
        return Case::request("", CaseGroup::Fresh, "server/discover", json!({}));
    }
    let params = json!({ "protocolVersion": version.as_str(), "capabilities": {}, "clientInfo": client_info() });
    Case::request("", CaseGroup::Fresh, "initialize", params)
}

fn named(case: &Case, name: &str) -> Case {
    Case { name: name.to_owned(), ..case.clone() }
}

fn is_refused(connection: &ProbeConnection) -> bool {
    connection.last_head().is_some_and(|(status, headers)| *status == 401 || headers.contains_key("www-authenticate"))
}

/// The same server for a client without a token.
fn without_token(params: &ServerParams) -> ServerParams {
    let mut params = ServerParams { authorizer: None, ..params.clone() };
    if let Target::Http(at) = &mut params.target {
        at.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
    }
    params
}

/// A JSON Web Token with another signature, and one without.
fn tampered(token: &str) -> Option<(String, String)> {
    let (head, signature) = token.rsplit_once('.')?;
    let (_, claims) = head.split_once('.')?;
    if !token.starts_with("eyJ") || signature.is_empty() || claims.contains('.') {
        return None;
    }
    let other = if signature.starts_with('A') { 'B' } else { 'A' };
    let rest = signature.get(1..)?;
    Some((format!("{head}.{other}{rest}"), format!("{NO_ALGORITHM}.{claims}.")))
}
