//! The response to the authorization request: the redirect to the client.

use serde_json::Value;
use url::Url;

use super::MOST_ATTEMPTS;
use super::asked::{Asked, Step, asked, servers};
use crate::areas::Judge;
use crate::{Evidence, Judgement};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("client-auth.authz.state-verified", |e, j| {
        let all = asked(e);
        for it in all.iter().filter(|it| it.step == Step::Authorize && it.location().is_some()) {
            let sent = it.param("state");
            if sent.is_some() && it.redirected("state").as_deref() != sent {
                check_unused(j, it, &all);
            }
        }
    }),
    ("client-auth.authz.error-handled", |e, j| {
        let all = asked(e);
        let denied = |it: &&Asked<'_>| {
            it.step == Step::Authorize && it.redirected("error").is_some_and(|error| error == "access_denied")
        };
        let denials: Vec<_> = all.iter().filter(denied).collect();
        if let Some(last) = denials.last() {
            let is_use = |it: &&Asked<'_>| {
                it.step == Step::Token && it.http.request > last.http.request && it.param("code").is_some()
            };
            let used = all.iter().any(|it| is_use(&it));
            last.check(j, !used && denials.len() <= MOST_ATTEMPTS, || match used {
                true => "a token request".to_owned(),
                false => format!("{} authorization requests", denials.len()),
            });
        }
    }),
    ("client-auth.iss.compare", |e, j| issuer(e, j, Case::Announced)),
    ("client-auth.iss.required-if-advertised", |e, j| issuer(e, j, Case::Missing)),
    ("client-auth.iss.unadvertised-compared", |e, j| issuer(e, j, Case::Unannounced)),
    ("client-auth.iss.no-normalisation", |e, j| issuer(e, j, Case::Similar)),
    ("client-auth.iss.absent-ok", |e, j| {
        let all = asked(e);
        for it in all.iter().filter(|it| it.step == Step::Authorize) {
            let is_announced = metadata_of(it, &all)
                .is_none_or(|metadata| metadata["authorization_response_iss_parameter_supported"] == true);
            let Some(code) = it.redirected("code").filter(|_| !is_announced && it.redirected("iss").is_none()) else {
                continue;
            };
            let is_used = all.iter().any(|it| it.step == Step::Token && it.param("code") == Some(&code));
            if !is_used && !e.is_over() {
                continue;
            }
            it.check(j, is_used, || "no token request with the code");
        }
    }),
];

/// What is wrong with the issuer in the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// It is another one, and the metadata announce it.
    Announced,
    /// It is missing, and the metadata announce it.
    Missing,
    /// It is another one, and nothing announces it.
    Unannounced,
    /// It is the same after a normalisation.
    Similar,
}

/// Checks that the code of a response is not used.
fn check_unused(j: &mut Judgement, it: &Asked<'_>, all: &[Asked<'_>]) {
    let code = it.redirected("code");
    let is_use = |one: &&Asked<'_>| {
        one.step == Step::Token && one.param("code").is_some() && one.param("code") == code.as_deref()
    };
    let used = all.iter().find(is_use);
    it.check(j, used.is_none(), || "a token request with the code");
}

/// The metadata of the authorization server that a request goes to.
fn metadata_of(it: &Asked<'_>, all: &[Asked<'_>]) -> Option<Value> {
    let path =
        |metadata: &Value| Url::parse(metadata["authorization_endpoint"].as_str()?).ok().map(|it| it.path().to_owned());
    let mut found = servers(all).map(|(_, metadata)| metadata);
    found.find(|metadata| path(metadata).as_deref() == Some(it.path()))
}

/// A URL with what is often thought not to matter in one form.
fn normalised(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_lowercase(), String::from).trim_end_matches('/').to_lowercase()
}

/// Each response with a problem of this kind.
fn issuer(e: &Evidence<'_>, j: &mut Judgement, case: Case) {
    let all = asked(e);
    for it in all.iter().filter(|it| it.step == Step::Authorize && it.location().is_some()) {
        let Some(metadata) = metadata_of(it, &all) else { continue };
        let is_announced = metadata["authorization_response_iss_parameter_supported"] == true;
        let (own, stated) = (metadata["issuer"].as_str().unwrap_or_default(), it.redirected("iss"));
        let found = match stated.as_deref() {
            Some(stated) if stated == own => None,
            Some(stated) if normalised(stated) == normalised(own) => Some(Case::Similar),
            Some(_) if is_announced => Some(Case::Announced),
            Some(_) => Some(Case::Unannounced),
            None => is_announced.then_some(Case::Missing),
        };
        if found == Some(case) {
            check_unused(j, it, &all);
        }
    }
    j.untested("every response had the right issuer, or another problem");
}
