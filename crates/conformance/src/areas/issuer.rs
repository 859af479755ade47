//! What an authorization server does (2026-07-28, Authorization; the RFCs that it builds on).

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;
use url::Url;

use super::Judge;
use super::auth::{check, status};
use super::common::shown;
use super::query::{Exchanges, Query};
use crate::{Evidence, HttpExchange, Judgement, Level};

const METADATA: &str = "issuer/metadata";
/// The cases of requests to the token endpoint.
const TOKEN: [&str; 3] = ["issuer/token", "issuer/refresh", "issuer/error"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("issuer.metadata.exists", |e, j| {
        let asked: Vec<_> = exchanges(e, METADATA).collect();
        let Some(first) = asked.first() else { return };
        let http = documents(e).next().map_or(*first, |(http, _)| http);
        check(j, documents(e).next().is_some(), http, || {
            asked.iter().map(|http| format!("{} at {}", status(http), http.target)).collect::<Vec<_>>().join(", ")
        });
    }),
    ("issuer.metadata.identical", |e, j| {
        // RFC 8414, section 3.3: compared as text, without any normalization.
        each_document(e, j, |metadata| {
            let (issuer, asked) = (&metadata["issuer"], e.facts.endpoint.as_deref().unwrap_or_default());
            (issuer != asked).then(|| format!("the issuer {}, and it was asked for as {asked:?}", shown(issuer)))
        });
    }),
    ("issuer.metadata.members", |e, j| {
        each_document(e, j, |metadata| {
            let grants = metadata["grant_types_supported"].as_array();
            let redirects = |grant: &Value| grant == "authorization_code" || grant == "implicit";
            let has_codes = grants.is_none_or(|grants| grants.iter().any(redirects));
            let is_text = |name: &&str| metadata[*name].as_str().is_some_and(|text| !text.is_empty());
            let mut wanted = vec!["issuer", "token_endpoint"];
            wanted.extend(has_codes.then_some("authorization_endpoint"));
            let missing = wanted.into_iter().find(|name| !is_text(name));
            let missing =
                missing.or((!metadata["response_types_supported"].is_array()).then_some("response_types_supported"));
            missing.map(|name| format!("`{name}`: {}", shown(&metadata[name])))
        });
    }),
    ("issuer.metadata.media-type", |e, j| {
        let all = documents(e).map(|(http, _)| http).by_case();
        all.must(j, |http| http.media_type() == "application/json", |http| format!("{:?}", http.media_type()));
    }),
    ("issuer.metadata.https", |e, j| {
        each_document(e, j, |metadata| {
            let is_url = |name: &str| name == "issuer" || name == "jwks_uri" || name.ends_with("_endpoint");
            let members = metadata.as_object().into_iter().flatten().filter(|(name, _)| is_url(name));
            let mut urls = members.filter_map(|(name, url)| Some((name, url.as_str()?)));
            urls.find(|(_, url)| !is_protected(url)).map(|(name, url)| format!("`{name}`: {url:?}"))
        });
    }),
    ("issuer.metadata.pkce", |e, j| {
        let name = "code_challenge_methods_supported";
        each_document(e, j, |it| (!names(&it[name], "S256")).then(|| format!("`{name}`: {}", shown(&it[name]))));
    }),
    ("issuer.metadata.iss", |e, j| promises(e, j, "authorization_response_iss_parameter_supported")),
    ("issuer.metadata.client-documents", |e, j| promises(e, j, "client_id_metadata_document_supported")),
    ("issuer.registration.created", |e, j| {
        has_endpoint(e, j, "registration_endpoint");
        // A server may want a token for it (RFC 7591, section 3).
        let registered = exchanges(e, "issuer/registration/valid");
        for http in registered.filter(|http| http.status.is_some_and(|status| status < 300)) {
            let id = &body(http)["client_id"];
            let wrong_id = (!id.is_string()).then(|| format!("`client_id`: {}", shown(id)));
            check_required(j, http, wrong_id, http.status == Some(201), || status(http));
        }
    }),
    ("issuer.registration.error", |e, j| {
        has_endpoint(e, j, "registration_endpoint");
        let refused = exchanges(e, "issuer/registration/invalid");
        for http in refused.filter(|http| http.status.is_some_and(|it| (400..500).contains(&it))) {
            // Who may not register learns no more (RFC 7591, section 3).
            if matches!(http.status, Some(401 | 403 | 429)) {
                continue;
            }
            let error = &body(http)["error"];
            let wrong_error = (!error.is_string()).then(|| format!("{}, `error`: {}", status(http), shown(error)));
            check_required(j, http, wrong_error, http.status == Some(400), || status(http));
        }
    }),
    ("issuer.registration.redirect-uri", |e, j| {
        has_endpoint(e, j, "registration_endpoint");
        if exchanges(e, "issuer/registration/valid").any(is_registered) {
            let answered = exchanges(e, "issuer/registration/unprotected").filter(|http| !is_busy(http));
            answered.by_case().must(j, |http| !is_registered(http), |_| "a client with an `http:` URI of another host");
        }
    }),
    ("issuer.redirect.exact", |e, j| {
        for http in exchanges(e, "issuer/redirect") {
            let is_there = location(http).is_some_and(|location| is_at(location, &asked(http, "redirect_uri")));
            // A page may be the error or a form, after which the user is redirected or not.
            if is_there || is_error_page(http) {
                check(j, !is_there, http, || format!("a redirect to {}", asked(http, "redirect_uri")));
            }
        }
    }),
    ("issuer.response.state", |e, j| {
        for (http, response) in responses(e) {
            let (sent, got) = (asked(http, "state"), all(&response, "state"));
            check(j, got == [sent.as_str()], http, || format!("`state` {got:?}, and {sent:?} was sent"));
        }
    }),
    ("issuer.response.iss", |e, j| {
        for (http, response) in responses(e).filter(|_| promises_iss(e)) {
            let (issuer, got) = (metadata(e)["issuer"].clone(), all(&response, "iss"));
            let holds = got.len() == 1 && issuer == got[0].as_str();
            check(j, holds, http, || format!("`iss` {got:?}, and the issuer is {}", shown(&issuer)));
        }
    }),
    ("issuer.response.iss-promised", |e, j| {
        for (http, response) in responses(e).filter(|(_, response)| !all(response, "iss").is_empty()) {
            check(j, promises_iss(e), http, || format!("`iss` {:?}, which nothing promises", all(&response, "iss")));
        }
    }),
    ("issuer.pkce.plain", |e, j| {
        let is_supported = names(&metadata(e)["code_challenge_methods_supported"], "plain");
        for (http, response) in responses_to(e, "issuer/authorize/plain") {
            let is_refused = all(&response, "code").is_empty();
            check(j, is_refused, http, || "a code");
            // No sentence forbids the method to a server that names it.
            j.at_level_if(is_supported && !is_refused, Level::Info);
        }
        for http in exchanges(e, "issuer/authorize/plain").filter(|http| is_error_page(http)) {
            check(j, true, http, String::new);
        }
    }),
    ("issuer.pkce.required", |e, j| {
        let case = "issuer/authorize/no-challenge";
        for (http, response) in responses_to(e, case) {
            check(j, all(&response, "code").is_empty(), http, || "a code");
        }
        exchanges(e, case).filter(|http| is_error_page(http)).for_each(|http| check(j, true, http, String::new));
    }),
    ("issuer.pkce.verifier-wrong", |e, j| refused(e, j, "issuer/token/wrong-verifier")),
    ("issuer.pkce.verifier-missing", |e, j| refused(e, j, "issuer/token/no-verifier")),
    ("issuer.pkce.verifier-error", |e, j| {
        if !gives_tokens(e, j) {
            return;
        }
        for http in exchanges(e, "issuer/token/wrong-verifier").filter(|http| !is_accepted(http) && !is_busy(http)) {
            let error = &body(http)["error"];
            check(j, error == "invalid_grant", http, || format!("`error`: {}", shown(error)));
        }
    }),
    ("issuer.pkce.verifier-long", |e, j| {
        if gives_tokens(e, j) {
            let answered = exchanges(e, "issuer/token/long-verifier").filter(|http| !is_busy(http));
            answered.by_case().must(j, is_accepted, status);
        }
    }),
    ("issuer.pkce.verifier-short", |e, j| refused(e, j, "issuer/token/short-verifier")),
    ("issuer.code.single-use", |e, j| refused(e, j, "issuer/token/again")),
    ("issuer.code.client-bound", |e, j| refused(e, j, "issuer/token/other-client")),
    ("issuer.token.members", |e, j| {
        for http in TOKEN.iter().flat_map(|case| exchanges(e, case)).filter(|http| http.status == Some(200)) {
            let token = body(http);
            // A refusal with this status is another fault.
            if token["error"].is_null() {
                let missing = ["access_token", "token_type"].into_iter().find(|name| !token[*name].is_string());
                let missing = missing.map(|name| format!("`{name}`: {}", shown(&token[name])));
                let is_json = http.media_type() == "application/json";
                check_required(j, http, missing, is_json, || format!("{:?}", http.media_type()));
            }
        }
    }),
    ("issuer.token.no-store", |e, j| {
        for http in TOKEN.iter().flat_map(|case| exchanges(e, case)).filter(|http| is_accepted(http)) {
            let control = http.header("cache-control").unwrap_or_default().to_ascii_lowercase();
            let holds = control.split(',').any(|directive| directive.trim() == "no-store");
            check(j, holds, http, || format!("`Cache-Control` {control:?}"));
        }
    }),
    ("issuer.token.audience", |e, j| {
        let Some(wanted) = e.facts.resource.as_deref() else { return };
        for http in exchanges(e, "issuer/token/usual").filter(|http| is_accepted(http)) {
            let Some(claims) = body(http)["access_token"].as_str().and_then(claims) else { continue };
            let holds = claims["aud"] == wanted || names(&claims["aud"], wanted);
            check(j, holds, http, || format!("`aud` {}, and the resource is {wanted:?}", shown(&claims["aud"])));
        }
        j.untested("the access token is no JSON Web Token");
    }),
    ("issuer.error.shape", |e, j| {
        for http in TOKEN.iter().flat_map(|case| exchanges(e, case)).filter(|http| !is_accepted(http) && !is_busy(http))
        {
            let error = body(http)["error"].clone();
            let is_code = error.as_str().is_some_and(|text| {
                !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !b"\"\\".contains(&byte))
            });
            let is_usual = matches!(http.status, Some(400 | 401)) && http.media_type() == "application/json";
            let wrong_code = (!is_code).then(|| format!("{}, `error`: {}", status(http), shown(&error)));
            check_required(j, http, wrong_code, is_usual, || format!("{}, {:?}", status(http), http.media_type()));
        }
    }),
    ("issuer.error.unknown-client", |e, j| {
        for http in exchanges(e, "issuer/error/client").filter(|http| body(http)["error"] == "invalid_client") {
            let holds = http.status == Some(401) && http.header("www-authenticate").is_some();
            let challenge = http.header("www-authenticate").map_or("no challenge", |_| "a challenge");
            check(j, holds, http, || format!("{} with {challenge}", status(http)));
        }
    }),
    ("issuer.refresh.rotation", |e, j| {
        let first = exchanges(e, "issuer/token/usual").map(|http| body(http)["refresh_token"].clone()).next();
        for http in exchanges(e, "issuer/refresh/public").filter(|http| is_accepted(http)) {
            let next = &body(http)["refresh_token"];
            check(j, next.is_string() && Some(next) != first.as_ref(), http, || match next.is_string() {
                true => "the same refresh token".to_owned(),
                false => "no refresh token".to_owned(),
            });
        }
    }),
    ("issuer.refresh.replaced", |e, j| refused(e, j, "issuer/refresh/replaced")),
    ("issuer.revocation.status", |e, j| {
        has_endpoint(e, j, "revocation_endpoint");
        let answered = exchanges(e, "issuer/revocation").filter(|http| !is_busy(http));
        answered.by_case().must(j, |http| http.status == Some(200), status);
    }),
    ("issuer.revocation.effective", |e, j| {
        has_endpoint(e, j, "revocation_endpoint");
        if exchanges(e, "issuer/revocation/refresh-token").any(|http| http.status == Some(200)) {
            refused(e, j, "issuer/refresh/revoked");
        }
    }),
];

/// The exchanges of a case that were answered.
fn exchanges<'e>(evidence: &'e Evidence<'_>, case: &'e str) -> impl Iterator<Item = &'e HttpExchange<'e>> {
    evidence.http_case(case).map(|(_, http)| http).filter(|http| http.status.is_some())
}

fn body(http: &HttpExchange<'_>) -> Value {
    serde_json::from_slice(&http.body).unwrap_or_default()
}

/// The metadata that were found, in the order in which a client looks for them.
fn documents<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (&'e HttpExchange<'e>, Value)> {
    let found = exchanges(evidence, METADATA).filter(|http| http.status == Some(200));
    found.map(|http| (http, body(http))).filter(|(_, metadata)| metadata.is_object())
}

fn metadata(evidence: &Evidence<'_>) -> Value {
    documents(evidence).next().map(|(_, metadata)| metadata).unwrap_or_default()
}

/// Checks each document; `wrong` says what is wrong with it.
fn each_document(e: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&Value) -> Option<String>) {
    for (http, metadata) in documents(e) {
        let wrong = wrong(&metadata);
        check(j, wrong.is_none(), http, || wrong.unwrap_or_default());
    }
}

/// Checks what is required, and what only follows from the text: that is a violation at a lower level.
fn check_required(
    j: &mut Judgement,
    http: &HttpExchange<'_>,
    missing: Option<String>,
    is_usual: bool,
    found: impl FnOnce() -> String,
) {
    let is_there = missing.is_none();
    check(j, is_there && is_usual, http, || missing.unwrap_or_else(found));
    j.at_level_if(is_there && !is_usual, Level::Derived);
}

fn promises(e: &Evidence<'_>, j: &mut Judgement, name: &str) {
    each_document(e, j, |it| (it[name] != true).then(|| format!("`{name}`: {}", shown(&it[name]))));
}

fn promises_iss(evidence: &Evidence<'_>) -> bool {
    metadata(evidence)["authorization_response_iss_parameter_supported"] == true
}

/// Gives the reason if an endpoint is not in the metadata.
fn has_endpoint(e: &Evidence<'_>, j: &mut Judgement, name: &str) {
    if metadata(e)[name].is_null() {
        j.untested(format!("the metadata have no `{name}`"));
    }
}

fn names(list: &Value, wanted: &str) -> bool {
    list.as_array().is_some_and(|all| all.iter().any(|it| it == wanted))
}

/// Whether a URL uses HTTPS, or stays on this machine.
fn is_protected(url: &str) -> bool {
    Url::parse(url)
        .is_ok_and(|url| url.scheme() == "https" || matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")))
}

/// The target of a redirect.
fn location<'e>(http: &'e HttpExchange<'_>) -> Option<&'e str> {
    http.header("location").filter(|_| http.status.is_some_and(|status| (300..400).contains(&status)))
}

/// Whether a redirect goes to this URI.
fn is_at(location: &str, uri: &str) -> bool {
    let rest = location.strip_prefix(uri);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['?', '&', '#']))
}

/// Whether a user is not asked, because the request is wrong. Other statuses say nothing about it.
fn is_error_page(http: &HttpExchange<'_>) -> bool {
    matches!(http.status, Some(400 | 404 | 422))
}

/// A parameter of the authorization request.
fn asked(http: &HttpExchange<'_>, name: &str) -> String {
    let query = http.target.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// The redirects to the client after a request of this case, each with its URL.
fn responses_to<'e>(evidence: &'e Evidence<'_>, case: &'e str) -> impl Iterator<Item = (&'e HttpExchange<'e>, Url)> {
    exchanges(evidence, case).filter_map(|http| {
        let location = location(http).filter(|location| is_at(location, &asked(http, "redirect_uri")))?;
        Some((http, Url::parse(location).ok()?))
    })
}

fn responses<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (&'e HttpExchange<'e>, Url)> {
    responses_to(evidence, "issuer/authorize")
}

/// All values of a parameter of a response.
fn all(response: &Url, name: &str) -> Vec<String> {
    response.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value.into_owned()).collect()
}

fn is_accepted(http: &HttpExchange<'_>) -> bool {
    http.status == Some(200) && body(http)["access_token"].is_string()
}

fn is_registered(http: &HttpExchange<'_>) -> bool {
    http.status.is_some_and(|status| status < 300) && body(http)["client_id"].is_string()
}

/// Whether an answer says nothing about the request.
fn is_busy(http: &HttpExchange<'_>) -> bool {
    http.status.is_some_and(|status| status == 429 || status >= 500)
}

/// Whether the usual request gets a token. If not, a refusal may have any reason.
fn gives_tokens(e: &Evidence<'_>, j: &mut Judgement) -> bool {
    let gives = exchanges(e, "issuer/token/usual").any(is_accepted);
    if !gives {
        j.untested("the server gave no token for a valid code");
    }
    gives
}

/// Checks that a token request gets no token.
fn refused(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    if !gives_tokens(e, j) {
        return;
    }
    for http in exchanges(e, case).filter(|http| !is_busy(http)) {
        check(j, !is_accepted(http), http, || "an access token");
    }
}

/// The claims of a JSON Web Token.
fn claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (_, claims, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else { return None };
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}
