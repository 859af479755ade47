//! How a client finds the authorization server.

use rehearse_protocol::{Version, names::VERSION_HEADER};
use url::Url;

use super::super::common::{header, header_text};
use super::asked::{
    Asked, OPENID, RESOURCE, SERVER, Step, asked, asked_for, challenge_before, origin, refused, resource, servers,
    shown_token,
};
use crate::areas::Judge;
use crate::areas::auth::{challenge, valid_challenges};
use crate::areas::query::Query;
use crate::{Evidence, HttpExchange, Judgement};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("client-auth.discover.on-401", |e, j| {
        let all = asked(e);
        // A client may have a refresh token.
        if let Some(first) = all.iter().find(|it| it.param("grant_type") != Some("refresh_token")) {
            // Before there were metadata of resources, a server was its own authorization server.
            let is_old = e.version <= Version::V2025_03_26;
            let holds = first.step == Step::Resource || (is_old && first.step == Step::Server);
            first.check(j, holds, || {
                format!("{} {} before any metadata of the resource", first.http.method, first.path())
            });
        }
    }),
    ("client-auth.discover.www-authenticate", |e, j| stated_location(e, j, false)),
    ("client-auth.discover.header-parse", |e, j| stated_location(e, j, true)),
    ("client-auth.discover.path-then-root", |e, j| {
        let all = asked(e);
        let is_stated = |it: &Asked<'_>| {
            challenge_before(e, it.http.request).is_some_and(|it| it.param("resource_metadata").is_some())
        };
        let mut found = all.iter().filter(|it| it.step == Step::Resource && is_wanted(e, &all, it));
        if let Some(first) = found.next().filter(|it| !is_stated(it)) {
            let next = found.next();
            let wanted = |it: &Asked<'_>| it.path().trim_end_matches('/') == RESOURCE;
            let is_second_right = first.is_ok() || next.is_some_and(wanted);
            let endpoint = refused(e).next().and_then(|http| http.target.split('?').next());
            let own = endpoint.map(|path| format!("{RESOURCE}{}", path.trim_end_matches('/')));
            let is_first_right = own.map_or(first.path() != RESOURCE, |own| first.path() == own);
            let holds = is_first_right && is_second_right;
            j.check_at(holds, None, first.http.places_with(next.map(|it| it.http.request)), || match next {
                Some(next) => format!("GET {}, then GET {}", first.path(), next.path()),
                None => format!("only GET {}", first.path()),
            });
        }
    }),
    ("client-auth.discover.no-token-leak", |e, j| {
        let metadata = asked(e).into_iter().filter(|it| matches!(it.step, Step::Resource | Step::Server));
        metadata.must(j, |it| shown_token(it.http).is_none(), |it| format!("a token in GET {}", it.path()));
    }),
    ("client-auth.discover.prm-resource-check", |e, j| {
        let all = asked(e);
        for it in all.iter().filter(|it| it.step == Step::Resource) {
            let (answer, own) = (it.answer(), Url::parse(&origin(it.http)));
            let stated = answer["resource"].as_str().and_then(|text| Url::parse(text).ok());
            if let (Some(stated), Ok(own)) = (stated, own)
                && stated.origin() != own.origin()
            {
                it.check_last(j, &all, &ENDPOINTS);
            }
        }
    }),
    ("client-auth.discover.endpoints", |e, j| {
        let all = asked(e);
        for it in &all {
            let member = match it.step {
                Step::Register => "registration_endpoint",
                Step::Authorize => "authorization_endpoint",
                Step::Token => "token_endpoint",
                Step::Resource | Step::Server => continue,
            };
            let before = servers(&all).filter(|(at, _)| at.http.request < it.http.request);
            let named: Vec<_> =
                before.filter_map(|(_, metadata)| Url::parse(metadata[member].as_str()?).ok()).collect();
            if let Some(last) = named.last() {
                let holds = named.iter().any(|url| url.path() == it.path());
                it.check(j, holds, || format!("{} {}, and `{member}` is {last}", it.http.method, it.path()));
            }
        }
    }),
    ("client-auth.discover.as-order-path", |e, j| order(e, j, true)),
    ("client-auth.discover.as-order-root", |e, j| order(e, j, false)),
    ("client-auth.discover.as-rfc8414", |e, j| {
        let all = asked(e);
        if let Some(first) = all.iter().find(|it| ENDPOINTS.contains(&it.step) || it.step == Step::Server) {
            first
                .check(j, first.path().starts_with(SERVER), || format!("{} {} first", first.http.method, first.path()));
        }
    }),
    ("client-auth.discover.as-issuer-identical", |e, j| {
        let all = asked(e);
        let documents = all.iter().filter(|it| it.step == Step::Resource).map(Asked::answer);
        let named: Vec<_> =
            documents.flat_map(|it| it["authorization_servers"].as_array().cloned().unwrap_or_default()).collect();
        for (it, metadata) in
            servers(&all).filter(|(_, metadata)| !named.is_empty() && !named.contains(&metadata["issuer"]))
        {
            let is_text = metadata["issuer"].is_string();
            if is_text {
                it.check_last(j, &all, &ENDPOINTS);
            }
        }
    }),
    ("client-auth.discover.b-origin-metadata", |e, j| {
        let all = asked(e);
        if let Some(first) = all.iter().find(|it| it.step != Step::Resource).filter(|_| is_old(&all)) {
            first.check(j, first.path() == SERVER, || format!("{} {} first", first.http.method, first.path()));
        }
    }),
    ("client-auth.discover.b-fallback-endpoints", |e, j| {
        let all = asked(e);
        let has_metadata = servers(&all).next().is_some();
        if let Some(last) = all.last().filter(|_| is_old(&all) && !has_metadata) {
            let mut endpoints = all.iter().filter(|it| ENDPOINTS.contains(&it.step)).peekable();
            let holds = endpoints.peek().is_some() && endpoints.all(|it| it.issuer().is_empty());
            last.check(j, holds, || "no request to /register or /authorize");
        }
    }),
    ("client-auth.discover.b-version-header", |e, j| {
        let has_version = |it: &Asked<'_>| header(it.http, VERSION_HEADER).is_some();
        asked_for(e, Step::Server).iter().must(j, has_version, |_| header_text("MCP-Protocol-Version", None));
    }),
];

/// Whether a request of metadata is one of a client that wants a token: it comes after a refusal, or others follow it. A
/// client may look whether there is an authorization server before it begins.
fn is_wanted(evidence: &Evidence<'_>, all: &[Asked<'_>], it: &Asked<'_>) -> bool {
    refused(evidence).any(|http| http.request < it.http.request) || all.iter().any(|it| it.step != Step::Resource)
}

/// The location in the challenge comes first; of a header with more than it, that it is found at all.
fn stated_location(e: &Evidence<'_>, j: &mut Judgement, is_long: bool) {
    let all = asked_for(e, Step::Resource);
    let is_after = |http: &HttpExchange<'_>| asked(e).iter().any(|it| it.http.request > http.request);
    for http in refused(e).take(1).filter(|http| is_after(http)) {
        let count = valid_challenges(http).count();
        let Some(location) = challenge(http).and_then(|it| Some(it.param("resource_metadata")?.to_owned())) else {
            continue;
        };
        let path = Url::parse(&location).map(|url| url.path().to_owned()).unwrap_or_default();
        let mut later = all.iter().filter(|it| it.http.request > http.request);
        let holds = match is_long {
            true if count < 2 => continue,
            true => later.any(|it| it.path() == path),
            false => later.next().is_some_and(|it| it.path() == path),
        };
        j.check_at(holds, None, http.places_with(all.first().map(|it| it.http.request)), || match all.first() {
            Some(first) => format!("GET {} in place of {path}", first.path()),
            None => format!("no GET {path}"),
        });
    }
    j.untested("no challenge said where the metadata of the resource is");
}

const ENDPOINTS: [Step; 3] = [Step::Register, Step::Authorize, Step::Token];

/// The path of the first issuer that the metadata of the resource name.
fn issuer_path(all: &[Asked<'_>]) -> Option<String> {
    let named = resource(all)["authorization_servers"].as_array()?.first()?.as_str()?.to_owned();
    Some(Url::parse(&named).ok()?.path().trim_end_matches('/').to_owned())
}

/// The order of the locations of metadata, of an issuer with or without a path.
fn order(e: &Evidence<'_>, j: &mut Judgement, has_path: bool) {
    let all = asked(e);
    let path = issuer_path(&all).filter(|path| path.is_empty() != has_path);
    let mut found = all.iter().filter(|it| it.step == Step::Server).peekable();
    if let (Some(path), Some(first)) = (path, found.peek()) {
        let mut wanted = vec![format!("{SERVER}{path}"), format!("{OPENID}{path}")];
        if has_path {
            wanted.push(format!("{path}{OPENID}"));
        }
        let places = first.http.places();
        let until = found.clone().position(Asked::is_ok).map_or(wanted.len(), |at| at + 1);
        let is_tried_again = found.clone().take(until).filter(|it| it.is_ok()).count() == 0;
        let paths: Vec<_> = found.by_ref().take(until).map(|it| it.path().trim_end_matches('/').to_owned()).collect();
        let holds = paths.iter().zip(&wanted).all(|(path, wanted)| path == wanted)
            && (!is_tried_again || paths.len() == wanted.len());
        j.check_at(holds, None, places, || format!("GET {}", paths.join(", then GET ")));
    }
    j.untested(match has_path {
        true => "the issuer has no path, or the client did not look for its metadata",
        false => "the issuer has a path, or the client did not look for its metadata",
    });
}

/// Whether the server has no metadata of the resource.
fn is_old(all: &[Asked<'_>]) -> bool {
    !all.is_empty() && resource(all).is_null()
}
