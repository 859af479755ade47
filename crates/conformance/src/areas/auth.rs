//! Authorization: what a server that requires tokens answers without one, and where it says how to get one.

use rehearse_protocol::challenge::{self, Challenge};
use serde_json::Value;
use url::Url;

use super::query::{Exchanges, Query};
use super::{Judge, common::shown};
use crate::{Call, Evidence, HttpExchange, ISSUER, Judgement};

/// The flags that give tokens, by the case that needs them.
const FLAGS: [(&str, &str); 5] = [
    ("auth/valid", "--token"),
    ("auth/tampered", "--token"),
    ("auth/expired", "--token-expired"),
    ("auth/wrong-audience", "--token-wrong-audience"),
    ("auth/low-scope", "--token-low-scope"),
];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("auth.challenge.status-401", |e, j| {
        e.case("auth/no-token")
            .filter(|call| call.is_answered() && !call.has_result())
            .must_get(j, |call| call.status() == Some(401))
    }),
    ("auth.challenge.www-authenticate", |e, j| {
        challenges(e).must(j, has_url, |_| "no `resource_metadata` in the `WWW-Authenticate` header")
    }),
    ("auth.challenge.discovery-present", |e, j| {
        let is_found = document(e).is_some();
        challenges(e).take(1).must(
            j,
            |it| has_url(it) || is_found,
            |_| "neither `resource_metadata` in the challenge nor metadata at a well-known URI",
        );
    }),
    ("auth.challenge.header-syntax", |e, j| {
        for (_, http) in e.http_case("auth").filter(|(_, http)| http.status == Some(401)) {
            for text in headers(http).filter(|text| text.to_ascii_lowercase().contains("bearer")) {
                check(j, challenge::parse(text).1, http, || format!("the header {text:?}"));
            }
        }
    }),
    ("auth.challenge.scope-present", |e, j| {
        let all = challenges(e).filter_map(|(http, challenge)| Some((http, challenge?)));
        all.must(j, |challenge| challenge.param("scope").is_some(), |_| "no `scope` in the challenge");
    }),
    ("auth.challenge.no-offline-access", |e, j| {
        for (http, challenge) in challenges(e) {
            let scope = challenge.as_ref().and_then(|it| it.param("scope")).unwrap_or_default();
            let has = scope.split(' ').any(|scope| scope == "offline_access");
            check(j, !has, http, || format!("the scope {scope:?}"));
        }
        for (http, metadata) in documents(e) {
            let has =
                metadata["scopes_supported"].as_array().is_some_and(|all| all.iter().any(|it| it == "offline_access"));
            check(j, !has, http, || format!("`scopes_supported`: {}", shown(&metadata["scopes_supported"])));
        }
    }),
    ("auth.challenge.every-request", |e, j| refused(e, j, "auth/every-request", &[401])),
    ("auth.prm.exists", |e, j| {
        let found = document(e);
        let asked: Vec<_> = e.http_case("auth/metadata").filter(|(_, http)| http.status.is_some()).collect();
        let Some((_, first)) = asked.first() else { return };
        let (http, holds) = found.map_or((*first, false), |(http, _)| (http, true));
        check(j, holds, http, || {
            let answers: Vec<_> =
                asked.iter().map(|(_, http)| format!("{} at {}", status(http), http.target)).collect();
            answers.join(", ")
        });
    }),
    ("auth.prm.authorization-servers", |e, j| {
        let is_url = |server: &Value| server.as_str().is_some_and(|text| Url::parse(text).is_ok());
        let are_urls = |it: &Value| it.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_url));
        documents(e).must(
            j,
            |metadata| are_urls(&metadata["authorization_servers"]),
            |metadata| format!("`authorization_servers`: {}", shown(&metadata["authorization_servers"])),
        );
    }),
    ("auth.prm.resource-matches", resource),
    ("auth.prm.no-token-needed", |e, j| {
        let asked = e.http_case("auth/metadata").map(|(_, http)| http).filter(|http| http.status.is_some());
        asked.by_case().must(j, |http| !matches!(http.status, Some(401 | 403)), status);
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
        let others = all.filter(|(http, other)| !is_of_root(http) || other["resource"] == first["resource"]);
        others.must(j, |other| first == *other, |_| "another document than at the first URL");
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
        e.case("auth/valid").must_get(j, |call| !matches!(call.status(), Some(401 | 403)));
    }),
    ("auth.scope.insufficient-403", |e, j| {
        // The refusals of requests with the token of `--token-low-scope`.
        untested_without(j, e, "auth/low-scope");
        j.untested("no request was refused with the token of --token-low-scope");
        for call in e.case("auth/low-scope").filter(|call| call.status().is_some_and(|status| status >= 400)) {
            let http = call.http.and_then(challenge);
            let says_so = http.is_some_and(|it| it.param("error") == Some("insufficient_scope"));
            if says_so || matches!(call.status(), Some(401 | 403)) {
                j.check_call(call.status() == Some(403), &call);
            }
        }
    }),
    ("auth.scope.challenge-params", |e, j| {
        untested_without(j, e, "auth/low-scope");
        j.untested("no request was refused with the token of --token-low-scope");
        for (_, http) in e.http_case("auth/low-scope").filter(|(_, http)| http.status == Some(403)) {
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
    }),
    ("auth.misc.401-not-jsonrpc-200", |e, j| {
        let is_hidden = |call: &Call<'_>| call.status() == Some(200) && call.has_error();
        let calls = ["auth/no-token", "auth/invalid"].iter().flat_map(|case| e.case(case));
        let refused = calls.filter(|call| call.status() >= Some(400) || is_hidden(call));
        refused.must_get(j, |call| !is_hidden(call));
    }),
    ("auth.status.400-malformed", |e, j| refused(e, j, "auth/malformed", &[400, 401])),
    ("auth.misc.cookie-free", |e, j| {
        let answered = e.exchanges().map(|(_, http)| http).filter(|http| http.status.is_some());
        answered.by_case().must(j, |http| http.header("set-cookie").is_none(), |_| "a `Set-Cookie` header");
    }),
];

pub(super) fn headers<'e>(http: &'e HttpExchange<'_>) -> impl Iterator<Item = &'e str> {
    let all = http.headers.into_iter().flat_map(|headers| headers.get_all("www-authenticate"));
    all.map(|value| value.to_str().unwrap_or("\u{fffd}"))
}

/// The challenges of a response, without those of a header that is not valid.
pub(super) fn valid_challenges(http: &HttpExchange<'_>) -> impl Iterator<Item = Challenge> {
    headers(http).map(challenge::parse).filter(|(_, is_valid)| *is_valid).flat_map(|(challenges, _)| challenges)
}

/// The challenge of a response for a Bearer token, or one that is bound to a key (RFC 9449, section 7.1): of several the
/// first with `resource_metadata`.
pub(super) fn challenge(http: &HttpExchange<'_>) -> Option<Challenge> {
    let mut all: Vec<_> = valid_challenges(http).filter(|it| matches!(&*it.scheme, "bearer" | "dpop")).collect();
    all.sort_by_key(|it| it.param("resource_metadata").is_none());
    all.into_iter().next()
}

/// The responses 401 to requests without a token, with the challenge of each.
fn challenges<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (&'e HttpExchange<'e>, Option<Challenge>)> {
    let all = evidence.http_case("auth/no-token").filter(|(_, http)| http.status == Some(401));
    all.map(|(_, http)| (http, challenge(http)))
}

fn has_url(challenge: &Option<Challenge>) -> bool {
    challenge.as_ref().is_some_and(|it| it.param("resource_metadata").is_some())
}

pub(super) fn check<S: Into<String>>(
    j: &mut Judgement,
    holds: bool,
    http: &HttpExchange<'_>,
    found: impl FnOnce() -> S,
) {
    j.check_at(holds, http.case, http.places(), found);
}

pub(super) fn status(http: &HttpExchange<'_>) -> String {
    http.status.map_or_else(|| "no answer".to_owned(), |status| format!("HTTP {status}"))
}

/// Whether the server requires a token: it refuses a request without one.
pub(crate) fn is_required(evidence: &Evidence<'_>) -> bool {
    let accepts = || evidence.case("auth/valid").any(|call| call.has_result());
    evidence.case("auth/no-token").any(|call| match call.status() {
        Some(401) => true,
        Some(400 | 403) => call.http.is_some_and(|http| http.header("www-authenticate").is_some()) || accepts(),
        _ => call.has_error() && accepts(),
    })
}

fn untested_without(j: &mut Judgement, e: &Evidence<'_>, case: &str) {
    if e.http_case(case).next().is_none()
        && let Some((_, flag)) = FLAGS.iter().find(|(it, _)| *it == case)
    {
        j.untested(match case {
            "auth/tampered" => format!("{flag} with a JSON Web Token is needed"),
            _ => format!("{flag} is needed"),
        });
    }
}

/// Checks that a request with a bad token is refused with one of these statuses.
fn refused(e: &Evidence<'_>, j: &mut Judgement, case: &str, statuses: &[u16]) {
    untested_without(j, e, case);
    if case == "auth/every-request" {
        j.untested("--token is needed");
    }
    e.case(case)
        .filter(Call::is_answered)
        .must_get(j, |call| call.status().is_some_and(|status| statuses.contains(&status)));
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
fn each_issuer(e: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&str, &Value) -> Option<String>) {
    let Some((_, resource)) = document(e) else { return };
    let found = e.http_case(ISSUER).filter(|(_, http)| http.status == Some(200));
    for (_, http) in found {
        let number = http.case.and_then(|case| case.split('/').nth(1)?.parse::<usize>().ok());
        let named = number.and_then(|number| resource["authorization_servers"].get(number)?.as_str());
        let metadata = serde_json::from_slice::<Value>(&http.body).ok().filter(Value::is_object);
        let (Some(named), Some(metadata)) = (named, metadata) else { continue };
        let wrong = wrong(named, &metadata);
        j.check_at(wrong.is_none(), Some(named), http.places(), || wrong.unwrap_or_default());
    }
    j.untested("no metadata of an authorization server were found where the prober may look");
}

/// Whether a document was found at the well-known URI of the whole host.
fn is_of_root(http: &HttpExchange<'_>) -> bool {
    http.case == Some("auth/metadata/root")
}

/// RFC 9728, section 3.3: the resource is identical to the one whose URL led to the document. The document of the whole host
/// may be about the host, or, beside one for the endpoint, about another resource.
fn resource(e: &Evidence<'_>, j: &mut Judgement) {
    let Some(endpoint) = e.facts.endpoint.as_deref().and_then(|text| Url::parse(text).ok()) else { return };
    let is_alone = documents(e).all(|(http, _)| is_of_root(http));
    for (http, metadata) in documents(e).filter(|(http, _)| is_alone || !is_of_root(http)) {
        let resource = metadata["resource"].as_str().and_then(|text| Url::parse(text).ok());
        let is_right = |resource: &Url| {
            let (path, own) = (resource.path(), endpoint.path());
            let is_same =
                resource.query().is_none_or(|it| endpoint.query() == Some(it)) && resource.fragment().is_none();
            let is_identical = is_same && (path == own || path == own.trim_end_matches('/'));
            is_same_origin(resource, &endpoint) && (is_identical || (is_of_root(http) && path == "/"))
        };
        check(j, resource.as_ref().is_some_and(is_right), http, || {
            format!("the resource {}, and the endpoint is {endpoint}", shown(&metadata["resource"]))
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
