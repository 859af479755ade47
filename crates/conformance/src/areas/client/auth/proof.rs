//! Tokens that are bound to a key of the client (RFC 9449).

use serde_json::Value;

use super::super::common::credentials;
use super::asked::{Asked, Step, asked, error, issued, used, wants_nonce};
use crate::areas::Judge;
use crate::{Evidence, HttpExchange};

const NO_BOUND_TOKEN: &str = "the client got no token that is bound to a key";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("client-auth.proof.scheme", |e, j| {
        let bound = bound(&asked(e));
        for (http, (scheme, token)) in used(e).filter_map(|http| Some((http, credentials(http)?))) {
            if bound.contains(&token) {
                j.check_at(scheme == "dpop", None, http.places(), || format!("the scheme {scheme}"));
            }
        }
        j.untested(NO_BOUND_TOKEN);
    }),
    ("client-auth.proof.valid", |e, j| {
        let bound = bound(&asked(e));
        for http in with_proof(e) {
            let is_refused = error(http).is_some_and(|error| error == "invalid_dpop_proof");
            j.check_at(!is_refused, None, http.places(), || "a proof that the server refuses");
        }
        for (http, (_, token)) in used(e).filter_map(|http| Some((http, credentials(http)?))) {
            if bound.contains(&token) && http.request_header("dpop").is_none() {
                j.check_at(false, None, http.places(), || "no proof");
            }
        }
        j.untested("the client sent no proof of a key");
    }),
    ("client-auth.proof.nonce", |e, j| {
        for http in with_proof(e).filter(|http| wants_nonce(http)) {
            let next = with_proof(e).filter(|it| it.request > http.request && path(it) == path(http));
            let next = next.min_by_key(|it| it.request);
            if next.is_some() || e.is_over() {
                let found = || if next.is_some() { "a proof without the nonce again" } else { "no second request" };
                let holds = next.is_some_and(|next| !wants_nonce(next));
                j.check_at(holds, None, http.places_with(next.map(|it| it.request)), found);
            }
        }
        j.untested("the client sent no proof that lacked a nonce");
    }),
];

/// The tokens that were issued for a key.
fn bound(all: &[Asked<'_>]) -> Vec<String> {
    let is_bound = |answer: &Value| answer["token_type"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("dpop"));
    issued(all).into_iter().filter(|(_, answer, _)| is_bound(answer)).map(|(token, ..)| token).collect()
}

/// The requests for a token, or with one, that have a proof.
fn with_proof<'e>(e: &'e Evidence<'_>) -> impl Iterator<Item = &'e HttpExchange<'e>> {
    let for_token = asked(e).into_iter().filter(|it| it.step == Step::Token).map(|it| it.http);
    for_token.chain(used(e)).filter(|http| http.request_header("dpop").is_some())
}

fn path<'e>(http: &'e HttpExchange<'_>) -> &'e str {
    http.target.split('?').next().unwrap_or_default()
}
