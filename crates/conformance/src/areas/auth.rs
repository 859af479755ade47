//! Authorization: what a server that requires tokens answers without one, and where it says how to get one.

use rehearse_protocol::challenge::{self, Challenge};
use serde_json::Value;
use url::Url;

use super::{Judge, common::shown};
use crate::{Call, Case, Evidence, HttpExchange, ISSUER, Judgement, Material};

/// The flags that give tokens, by the case that needs them.
const FLAGS: [(&str, &str); 5] = [
    ("auth/valid", "--token"),
    ("auth/tampered", "--token"),
    ("auth/expired", "--token-expired"),
    ("auth/wrong-audience", "--token-wrong-audience"),
    ("auth/low-scope", "--token-low-scope"),
];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("auth.challenge.status-401", without_token),
    ("auth.challenge.www-authenticate", |e, j| {
        for (http, challenge) in challenges(e) {
            let has_url = challenge.is_some_and(|it| it.param("resource_metadata").is_some());
            check(j, has_url, http, || "no `resource_metadata` in the `WWW-Authenticate` header".to_owned());
        }
    }),
    ("auth.challenge.discovery-present", |e, j| {
        let is_found = document(e).is_some();
        for (http, challenge) in challenges(e).take(1) {
            let has_url = challenge.is_some_and(|it| it.param("resource_metadata").is_some());
            check(j, has_url || is_found, http, || {
                "neither `resource_metadata` in the challenge nor metadata at a well-known URI".to_owned()
            });
        }
    }),
    ("auth.challenge.header-syntax", syntax),
    ("auth.challenge.scope-present", |e, j| {
        for (http, challenge) in challenges(e) {
            let Some(challenge) = challenge else { continue };
            check(j, challenge.param("scope").is_some(), http, || "no `scope` in the challenge".to_owned());
        }
    }),
    ("auth.challenge.no-offline-access", offline_access),
    ("auth.challenge.every-request", |e, j| refused(e, j, "auth/every-request", &[401])),
    ("auth.prm.exists", exists),
    ("auth.prm.authorization-servers", authorization_servers),
    ("auth.prm.resource-matches", resource),
    ("auth.prm.no-token-needed", |e, j| {
        for (_, http) in e.http_case("auth/metadata").filter(|(_, http)| http.status.is_some()) {
            check(j, !matches!(http.status, Some(401 | 403)), http, || status(http));
        }
    }),
    ("auth.prm.bearer-methods", |e, j| {
        for (http, metadata) in documents(e) {
            let Some(methods) = metadata.get("bearer_methods_supported") else { continue };
            let named = |name: &str| methods.as_array().is_some_and(|all| all.iter().any(|it| it == name));
            let holds = methods.as_array().is_some_and(Vec::is_empty) || (named("header") && !named("query"));
            check(j, holds, http, || shown(methods));
        }
    }),
    ("auth.prm.url-consistent", |e, j| {
        let mut all = documents(e);
        let Some((_, first)) = all.next() else { return };
        for (http, other) in all {
            check(j, first == other, http, || "another document than at the first URL".to_owned());
        }
    }),
    ("auth.issuer.identical", |e, j| {
        // RFC 8414, section 3.3: compared as text, without any normalization.
        each_issuer(e, j, |named, metadata| {
            let issuer = &metadata["issuer"];
            (issuer != named).then(|| format!("the issuer {}, and the server names {named:?}", shown(issuer)))
        });
    }),
    ("auth.issuer.pkce", |e, j| {
        each_issuer(e, j, |_, metadata| {
            let methods = &metadata["code_challenge_methods_supported"];
            let has_s256 = methods.as_array().is_some_and(|all| all.iter().any(|it| it == "S256"));
            (has_codes(metadata) && !has_s256)
                .then(|| format!("`code_challenge_methods_supported`: {}", shown(methods)))
        });
    }),
    ("auth.issuer.iss-parameter", |e, j| {
        each_issuer(e, j, |_, metadata| {
            let promised = &metadata["authorization_response_iss_parameter_supported"];
            let is_missing = has_codes(metadata) && promised != true;
            is_missing.then(|| format!("`authorization_response_iss_parameter_supported`: {}", shown(promised)))
        });
    }),
    ("auth.token.invalid-401", |e, j| refused(e, j, "auth/invalid", &[401])),
    ("auth.token.invalid-error-param", |e, j| {
        for (_, http) in e.http_case("auth/invalid").filter(|(_, http)| http.status == Some(401)) {
            let error = challenge(http).and_then(|it| it.param("error").map(ToOwned::to_owned));
            check(j, error.as_deref() == Some("invalid_token"), http, || match &error {
                Some(error) => format!("the error {error:?}"),
                None => "no `error` in the challenge".to_owned(),
            });
        }
    }),
    ("auth.token.wrong-scheme", |e, j| refused(e, j, "auth/wrong-scheme", &[400, 401])),
    ("auth.token.tampered-jwt", |e, j| refused(e, j, "auth/tampered", &[401])),
    ("auth.token.expired-401", |e, j| refused(e, j, "auth/expired", &[401])),
    ("auth.token.audience", |e, j| refused(e, j, "auth/wrong-audience", &[401, 403])),
    ("auth.token.valid-accepted", |e, j| {
        untested_without(j, e, "auth/valid");
        for call in e.case("auth/valid") {
            j.check_call(!matches!(call.status(), Some(401 | 403)), &call);
        }
    }),
    ("auth.scope.insufficient-403", insufficient),
    ("auth.scope.challenge-params", scope_params),
    ("auth.misc.401-not-jsonrpc-200", |e, j| {
        for call in ["auth/no-token", "auth/invalid"].iter().flat_map(|case| e.case(case)) {
            let is_hidden = call.status() == Some(200) && call.error_code().is_some();
            if call.status().is_some_and(|status| status >= 400) || is_hidden {
                j.check_call(!is_hidden, &call);
            }
        }
    }),
    ("auth.status.400-malformed", |e, j| refused(e, j, "auth/malformed", &[400, 401])),
    ("auth.misc.cookie-free", |e, j| {
        for (_, http) in e.exchanges().filter(|(_, http)| http.status.is_some()) {
            check(j, http.header("set-cookie").is_none(), http, || "a `Set-Cookie` header".to_owned());
        }
    }),
];

pub(super) fn cases(_: &Material) -> Vec<Case> {
    Vec::new()
}

pub(super) fn headers<'e>(http: &'e HttpExchange<'_>) -> impl Iterator<Item = &'e str> {
    let all = http.headers.into_iter().flat_map(|headers| headers.get_all("www-authenticate"));
    all.map(|value| value.to_str().unwrap_or("\u{fffd}"))
}

/// The challenges of a response, without those of a header that is not valid.
pub(super) fn valid_challenges(http: &HttpExchange<'_>) -> impl Iterator<Item = Challenge> {
    headers(http).map(challenge::parse).filter(|(_, is_valid)| *is_valid).flat_map(|(challenges, _)| challenges)
}

/// The Bearer challenge of a response: of several the first with `resource_metadata`.
pub(super) fn challenge(http: &HttpExchange<'_>) -> Option<Challenge> {
    let mut all: Vec<_> = valid_challenges(http).filter(|it| it.scheme == "bearer").collect();
    all.sort_by_key(|it| it.param("resource_metadata").is_none());
    all.into_iter().next()
}

/// The responses 401 to requests without a token, with the challenge of each.
fn challenges<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (&'e HttpExchange<'e>, Option<Challenge>)> {
    let all = evidence.http_case("auth/no-token").filter(|(_, http)| http.status == Some(401));
    all.map(|(_, http)| (http, challenge(http)))
}

pub(super) fn check(j: &mut Judgement, holds: bool, http: &HttpExchange<'_>, found: impl FnOnce() -> String) {
    let places = [http.request].into_iter().chain(http.response).collect();
    j.check_at(holds, http.case.map(ToOwned::to_owned), places, found);
}

pub(super) fn status(http: &HttpExchange<'_>) -> String {
    http.status.map_or_else(|| "no answer".to_owned(), |status| format!("HTTP {status}"))
}

/// Whether the server requires a token: it refuses a request without one.
pub(crate) fn is_required(evidence: &Evidence<'_>) -> bool {
    let accepts = || evidence.case("auth/valid").any(|call| call.result().is_some());
    evidence.case("auth/no-token").any(|call| match call.status() {
        Some(401) => true,
        Some(400 | 403) => call.http.is_some_and(|http| http.header("www-authenticate").is_some()) || accepts(),
        _ => call.error_code().is_some() && accepts(),
    })
}

fn without_token(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("auth/no-token").filter(|call| call.is_answered() && call.result().is_none()) {
        j.check_call(call.status() == Some(401), &call);
    }
}

fn untested_without(j: &mut Judgement, evidence: &Evidence<'_>, case: &str) {
    if evidence.http_case(case).next().is_none()
        && let Some((_, flag)) = FLAGS.iter().find(|(it, _)| *it == case)
    {
        j.untested(match case {
            "auth/tampered" => format!("{flag} with a JSON Web Token is needed"),
            _ => format!("{flag} is needed"),
        });
    }
}

/// Checks that a request with a bad token is refused with one of these statuses.
fn refused(evidence: &Evidence<'_>, j: &mut Judgement, case: &str, statuses: &[u16]) {
    untested_without(j, evidence, case);
    if case == "auth/every-request" {
        j.untested("--token is needed");
    }
    for call in evidence.case(case).filter(Call::is_answered) {
        j.check_call(call.status().is_some_and(|status| statuses.contains(&status)), &call);
    }
}

fn syntax(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (_, http) in evidence.http_case("auth").filter(|(_, http)| http.status == Some(401)) {
        for text in headers(http).filter(|text| text.to_ascii_lowercase().contains("bearer")) {
            check(j, challenge::parse(text).1, http, || format!("the header {text:?}"));
        }
    }
}

/// The metadata documents that were found, in the order in which a client looks for them.
fn documents<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (&'e HttpExchange<'e>, Value)> {
    let all = evidence.http_case("auth/metadata").filter(|(_, http)| http.status == Some(200));
    let read = |body: &[u8]| serde_json::from_slice::<Value>(body).ok().filter(Value::is_object);
    all.filter_map(move |(_, http)| Some((http, read(&http.body)?)))
}

fn document<'e>(evidence: &'e Evidence<'_>) -> Option<(&'e HttpExchange<'e>, Value)> {
    documents(evidence).next()
}

/// Whether an authorization server gives codes, which PKCE protects.
fn has_codes(metadata: &Value) -> bool {
    metadata.get("authorization_endpoint").is_some()
}

/// Checks the metadata of each authorization server that the server names; `wrong` says what is wrong with them.
fn each_issuer(evidence: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&str, &Value) -> Option<String>) {
    let Some((_, resource)) = document(evidence) else { return };
    let found = evidence.http_case(ISSUER).filter(|(_, http)| http.status == Some(200));
    for (_, http) in found {
        let number = http.case.and_then(|case| case.split('/').nth(1)?.parse::<usize>().ok());
        let named = number.and_then(|number| resource["authorization_servers"].get(number)?.as_str());
        let metadata = serde_json::from_slice::<Value>(&http.body).ok().filter(Value::is_object);
        let (Some(named), Some(metadata)) = (named, metadata) else { continue };
        let wrong = wrong(named, &metadata);
        let places = [http.request].into_iter().chain(http.response).collect();
        j.check_at(wrong.is_none(), Some(named.to_owned()), places, || wrong.unwrap_or_default());
    }
    j.untested("no metadata of an authorization server were found where the prober may look");
}

fn exists(evidence: &Evidence<'_>, j: &mut Judgement) {
    let found = document(evidence);
    let asked: Vec<_> = evidence.http_case("auth/metadata").filter(|(_, http)| http.status.is_some()).collect();
    let Some((_, first)) = asked.first() else { return };
    let (http, holds) = found.map_or((*first, false), |(http, _)| (http, true));
    check(j, holds, http, || {
        let answers: Vec<_> = asked.iter().map(|(_, http)| format!("{} at {}", status(http), http.target)).collect();
        answers.join(", ")
    });
}

fn authorization_servers(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (http, metadata) in documents(evidence) {
        let servers = &metadata["authorization_servers"];
        let is_url = |server: &Value| server.as_str().is_some_and(|text| Url::parse(text).is_ok());
        let holds = servers.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_url));
        check(j, holds, http, || format!("`authorization_servers`: {}", shown(servers)));
    }
}

/// The resource must be the endpoint or a part of its URL.
fn resource(evidence: &Evidence<'_>, j: &mut Judgement) {
    let Some(endpoint) = evidence.facts.endpoint.as_deref().and_then(|text| Url::parse(text).ok()) else { return };
    for (http, metadata) in documents(evidence) {
        let text = metadata["resource"].as_str().unwrap_or_default();
        let resource = Url::parse(text).ok();
        let covers = |resource: &Url| {
            let path = resource.path().trim_end_matches('/');
            let rest = endpoint.path().strip_prefix(path);
            is_same_origin(resource, &endpoint) && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        check(j, resource.as_ref().is_some_and(covers), http, || {
            format!("the resource {}", shown(&metadata["resource"]))
        });
    }
}

/// Whether two URLs have one origin; all names of this machine are one.
fn is_same_origin(one: &Url, other: &Url) -> bool {
    let host = |url: &Url| match url.host_str() {
        Some("localhost" | "127.0.0.1" | "[::1]") => "localhost".to_owned(),
        host => host.unwrap_or_default().to_owned(),
    };
    one.scheme() == other.scheme()
        && host(one) == host(other)
        && one.port_or_known_default() == other.port_or_known_default()
}

fn offline_access(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (http, challenge) in challenges(evidence) {
        let scope = challenge.as_ref().and_then(|it| it.param("scope")).unwrap_or_default();
        let has = scope.split(' ').any(|scope| scope == "offline_access");
        check(j, !has, http, || format!("the scope {scope:?}"));
    }
    for (http, metadata) in documents(evidence) {
        let has =
            metadata["scopes_supported"].as_array().is_some_and(|all| all.iter().any(|it| it == "offline_access"));
        check(j, !has, http, || format!("`scopes_supported`: {}", shown(&metadata["scopes_supported"])));
    }
}

/// The refusals of requests with the token of `--token-low-scope`.
fn insufficient(evidence: &Evidence<'_>, j: &mut Judgement) {
    untested_without(j, evidence, "auth/low-scope");
    j.untested("no request was refused with the token of --token-low-scope");
    for call in evidence.case("auth/low-scope").filter(|call| call.status().is_some_and(|status| status >= 400)) {
        let http = call.http.and_then(challenge);
        let says_so = http.is_some_and(|it| it.param("error") == Some("insufficient_scope"));
        if says_so || matches!(call.status(), Some(401 | 403)) {
            j.check_call(call.status() == Some(403), &call);
        }
    }
}

fn scope_params(evidence: &Evidence<'_>, j: &mut Judgement) {
    untested_without(j, evidence, "auth/low-scope");
    j.untested("no request was refused with the token of --token-low-scope");
    for (_, http) in evidence.http_case("auth/low-scope").filter(|(_, http)| http.status == Some(403)) {
        let challenge = challenge(http);
        let param = |name: &str| challenge.as_ref().and_then(|it| it.param(name));
        let missing = match (param("error"), param("scope"), param("resource_metadata")) {
            (Some("insufficient_scope"), Some(_), Some(_)) => None,
            (Some("insufficient_scope"), Some(_), None) => Some("no `resource_metadata` in the challenge"),
            (Some("insufficient_scope"), None, _) => Some("no `scope` in the challenge"),
            _ => Some("no `error=\"insufficient_scope\"` in the challenge"),
        };
        check(j, missing.is_none(), http, || missing.unwrap_or_default().to_owned());
    }
}
