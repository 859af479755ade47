//! The authorization request.

use serde_json::Value;
use url::Url;

use super::asked::{
    Asked, Step, asked, asked_for, challenge_before, origin, resource as resource_metadata, servers, used, words,
};
use crate::areas::Judge;
use crate::areas::query::{Query, elements};
use crate::{Evidence, Judgement};

/// How long a challenge of S256 is.
const S256_LENGTH: usize = 43;
/// Fewer characters can be guessed.
const SHORTEST_STATE: usize = 8;
/// Scopes that a client may add for itself.
const OWN_SCOPES: [&str; 2] = ["openid", "offline_access"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("client-auth.pkce.challenge", |e, j| {
        let is_long = |it: &Asked<'_>| match (it.param("code_challenge_method"), it.param("code_challenge")) {
            (Some("S256"), challenge) => challenge.map_or(0, str::len) == S256_LENGTH,
            (_, challenge) => (S256_LENGTH..=128).contains(&challenge.map_or(0, str::len)),
        };
        requests(e).iter().must(j, is_long, |it| said(it, "code_challenge"));
    }),
    ("client-auth.pkce.s256", |e, j| {
        let challenges = asked_for(e, Step::Authorize).into_iter().filter(|it| it.param("code_challenge").is_some());
        let is_s256 = |it: &Asked<'_>| it.param("code_challenge_method") == Some("S256");
        challenges.must(j, is_s256, |it| said(it, "code_challenge_method"));
    }),
    ("client-auth.pkce.fresh", |e, j| {
        // The same page may be opened twice.
        let all = requests(e);
        for (index, it) in all.iter().enumerate().skip(1) {
            let (challenge, earlier) = (it.param("code_challenge"), &all[..index]);
            if challenge.is_none() || earlier.iter().any(|one| one.http.target == it.http.target) {
                continue;
            }
            let holds = earlier.iter().all(|one| one.param("code_challenge") != challenge);
            it.check(j, holds, || format!("{} once more", said(it, "code_challenge")));
        }
    }),
    ("client-auth.pkce.refuse-unsupported", |e, j| {
        let all = asked(e);
        for (it, metadata) in servers(&all) {
            let methods = metadata["code_challenge_methods_supported"].as_array();
            if !methods.is_some_and(|methods| methods.iter().any(|method| method == "S256")) {
                it.check_last(j, &all, &[Step::Authorize, Step::Token]);
            }
        }
    }),
    ("client-auth.authz.response-type", |e, j| {
        for it in requests(e) {
            let missing =
                ["client_id", "redirect_uri"].into_iter().find(|name| it.param(name).is_none_or(str::is_empty));
            let holds = it.param("response_type") == Some("code") && missing.is_none();
            it.check(j, holds, || said(&it, missing.unwrap_or("response_type")));
        }
    }),
    ("client-auth.authz.state", |e, j| {
        let all = requests(e);
        for (index, it) in all.iter().enumerate() {
            let state = it.param("state");
            let is_other = |one: &&Asked<'_>| one.param("code_challenge") != it.param("code_challenge");
            let is_new = all[..index].iter().filter(is_other).all(|one| one.param("state") != state);
            it.check(j, state.is_some_and(|state| state.len() >= SHORTEST_STATE) && is_new, || said(it, "state"));
        }
    }),
    ("client-auth.authz.resource", resource),
    ("client-auth.authz.resource-canonical", |e, j| {
        let stated = resource_metadata(&asked(e))["resource"].as_str().map(ToOwned::to_owned);
        for it in requests(e) {
            let Some(text) = it.param("resource") else { continue };
            let head = text.split('/').take(3).collect::<Vec<_>>().join("/");
            let is_usual = !text.ends_with('/') && head.chars().all(|c| !c.is_ascii_uppercase());
            it.check(j, stated.as_deref().map_or(is_usual, |stated| stated == text), || said(&it, "resource"));
        }
    }),
    ("client-auth.authz.resource-always", |e, j| {
        requests(e).iter().must(j, |it| it.param("resource").is_some(), |it| said(it, "resource"))
    }),
    ("client-auth.authz.scope-from-challenge", |e, j| {
        if let Some((it, Some(challenged), _)) = first(e) {
            check_scopes(j, &it, &words(&challenged));
        }
    }),
    ("client-auth.authz.scope-from-prm", |e, j| {
        if let Some((it, None, listed)) = first(e)
            && !listed.is_empty()
        {
            check_scopes(j, &it, &listed.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }),
    ("client-auth.authz.scope-omitted", |e, j| {
        if let Some((it, None, listed)) = first(e)
            && listed.is_empty()
        {
            check_scopes(j, &it, &[]);
        }
    }),
    ("client-auth.authz.offline-only-if-listed", |e, j| {
        let all = asked(e);
        let lists = |metadata: &Value| {
            metadata["scopes_supported"].as_array().is_some_and(|all| all.iter().any(|scope| scope == "offline_access"))
        };
        let is_listed = lists(&resource_metadata(&all)) || servers(&all).any(|(_, metadata)| lists(&metadata));
        for it in all.iter().filter(|it| it.step == Step::Authorize && !is_listed) {
            it.check(j, !it.scopes().contains(&"offline_access"), || said(it, "scope"));
        }
    }),
    ("client-auth.authz.url-scheme", |e, j| {
        let all = asked(e);
        for (it, metadata) in servers(&all) {
            let endpoint = metadata["authorization_endpoint"].as_str().unwrap_or_default();
            if endpoint.is_empty() || endpoint.starts_with("http") {
                continue;
            }
            let opened = e.exchanges().map(|(_, http)| http).find(|http| http.target.starts_with(OPENED));
            let places = it.http.places_with(opened.map(|http| http.request));
            j.check_at(opened.is_none(), None, places, || format!("the browser was to open `{endpoint}`"));
        }
    }),
];

fn requests<'e>(evidence: &'e Evidence<'_>) -> Vec<Asked<'e>> {
    asked_for(evidence, Step::Authorize)
}

/// A parameter in words.
fn said(it: &Asked<'_>, name: &str) -> String {
    it.param(name).map_or_else(|| format!("no `{name}`"), |value| format!("`{name}={value}`"))
}

fn resource(e: &Evidence<'_>, j: &mut Judgement) {
    for it in requests(e) {
        let own = Url::parse(&origin(it.http)).ok();
        let endpoints: Vec<_> = used(e).map(|http| http.target.split('?').next().unwrap_or_default()).collect();
        let url = it.param("resource").and_then(|text| Url::parse(text).ok()).filter(|url| url.fragment().is_none());
        let url = url.filter(|url| own.as_ref().is_some_and(|own| own.origin() == url.origin()));
        let path = url.as_ref().map(|url| url.path().trim_end_matches('/'));
        let is_part = |path: &str| {
            let rest =
                |endpoint: &str| endpoint.strip_prefix(path).map(|rest| rest.is_empty() || rest.starts_with('/'));
            endpoints.is_empty() || endpoints.iter().any(|endpoint| rest(endpoint) == Some(true))
        };
        it.check(j, path.is_some_and(is_part), || said(&it, "resource"));
    }
}

/// The first authorization request, with the scopes of the challenge before it and those of the metadata.
fn first<'e>(evidence: &'e Evidence<'_>) -> Option<(Asked<'e>, Option<String>, Vec<String>)> {
    let all = asked(evidence);
    let metadata = resource_metadata(&all);
    let listed = elements(&metadata["scopes_supported"]).filter_map(Value::as_str);
    let listed = listed.map(ToOwned::to_owned).collect();
    let first = all.into_iter().find(|it| it.step == Step::Authorize)?;
    let challenged = challenge_before(evidence, first.http.request);
    let challenged = challenged.and_then(|it| it.param("scope").map(ToOwned::to_owned)).filter(|it| !it.is_empty());
    Some((first, challenged, listed))
}

fn check_scopes(j: &mut Judgement, it: &Asked<'_>, wanted: &[&str]) {
    let asked = it.scopes();
    let is_extra = |scope: &&&str| !wanted.contains(scope) && !OWN_SCOPES.contains(scope);
    let holds = wanted.iter().all(|scope| asked.contains(scope)) && !asked.iter().any(|scope| is_extra(&scope));
    it.check(j, holds, || said(it, "scope"));
}

/// The browser of the check requests this if it is to open a URL that is not one of the web.
const OPENED: &str = "/.well-known/rehearse-opened";
