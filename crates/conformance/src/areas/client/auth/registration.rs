//! How a client gets its id.

use serde_json::Value;
use url::Url;

use super::MOST_ATTEMPTS;
use super::asked::{Asked, Step, asked, asked_for, servers};
use crate::areas::Judge;
use crate::areas::query::{Query, elements};
use crate::{Evidence, Judgement, Level, areas::common::is_one_of, areas::shown};

const NO_REGISTRATION: &str = "the client did not register itself";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("client-auth.reg.cimd-url", |e, j| {
        for (it, id) in with_document(&asked(e)) {
            let is_valid = |url: &Url| url.scheme() == "https" && url.path() != "/" && url.fragment().is_none();
            it.check(j, Url::parse(id).is_ok_and(|url| is_valid(&url)), || format!("`client_id: {id}`"));
        }
    }),
    ("client-auth.reg.cimd-only-if-advertised", |e, j| {
        let all = asked(e);
        for (it, id) in with_document(&all) {
            let holds = servers(&all).any(|(_, metadata)| metadata["client_id_metadata_document_supported"] == true);
            it.check(j, holds, || format!("`client_id: {id}` without `client_id_metadata_document_supported`"));
        }
    }),
    ("client-auth.reg.dcr-request", |e, j| {
        for it in asked_for(e, Step::Register) {
            let (body, kind) = (it.body(), it.http.request_header("content-type").unwrap_or_default());
            let is_json = kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
            let uris = body["redirect_uris"].as_array();
            let has_uris = uris.is_some_and(|uris| !uris.is_empty() && uris.iter().all(Value::is_string));
            it.check(j, it.http.method == "POST" && is_json && has_uris, || {
                format!(
                    "{} with `Content-Type: {kind}` and `redirect_uris: {}`",
                    it.http.method,
                    shown(&body["redirect_uris"])
                )
            });
        }
    }),
    ("client-auth.reg.dcr-application-type", |e, j| {
        let found = |it: &Asked<'_>| format!("`application_type: {}`", shown(&it.body()["application_type"]));
        let is_right = |it: &Asked<'_>| is_one_of(&it.body()["application_type"], &["native", "web"]);
        asked_for(e, Step::Register).iter().must(j, is_right, found);
    }),
    ("client-auth.reg.dcr-native-localhost", native),
    ("client-auth.reg.dcr-failure-handled", |e, j| {
        // A client may register once more with other members, and have an id of another kind.
        let all = asked(e);
        let registrations: Vec<_> = all.iter().filter(|it| it.step == Step::Register).collect();
        let failed: Vec<_> =
            registrations.iter().filter(|it| it.http.status.is_some_and(|status| status >= 400)).collect();
        if let Some(last) = failed.last().filter(|_| registrations.len() == failed.len()) {
            let is_without = |it: &&Asked<'_>| {
                it.step == Step::Authorize && !it.param("client_id").is_some_and(|id| id.contains("://"))
            };
            let next = all.iter().filter(is_without).find(|it| it.http.request > last.http.request);
            last.check(j, next.is_none() && failed.len() <= MOST_ATTEMPTS, || match next {
                Some(_) => "an authorization request".to_owned(),
                None => format!("{} registrations", failed.len()),
            });
        }
    }),
    ("client-auth.reg.dcr-grant-refresh", |e, j| {
        let all = asked(e);
        let wants = all.iter().any(|it| match it.step {
            Step::Authorize => it.scopes().contains(&"offline_access"),
            Step::Token => it.param("grant_type") == Some("refresh_token"),
            _ => false,
        });
        for it in all.iter().filter(|it| wants && it.step == Step::Register) {
            let body = it.body();
            let has = body["grant_types"].as_array().is_some_and(|all| all.iter().any(|it| it == "refresh_token"));
            it.check(j, has, || format!("`grant_types: {}`", shown(&body["grant_types"])));
        }
    }),
    ("client-auth.reg.redirect-uri-safe", |e, j| {
        for it in asked(e) {
            let body = it.body();
            let uris = match it.step {
                Step::Register => redirect_uris(&body),
                Step::Authorize => it.param("redirect_uri").into_iter().collect(),
                _ => continue,
            };
            for uri in uris {
                let url = Url::parse(uri);
                let holds = url
                    .as_ref()
                    .is_ok_and(|url| url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url)));
                it.check(j, holds, || format!("`{uri}`"));
                // Of native applications.
                j.at_level_if(!holds && url.is_ok_and(|url| url.scheme().contains('.')), Level::Should);
            }
        }
    }),
    ("client-auth.reg.per-as", |e, j| {
        let all = asked(e);
        let given = given(&all);
        let endpoints = || all.iter().filter(|it| matches!(it.step, Step::Authorize | Step::Token));
        for it in
            endpoints().filter(|_| endpoints().any(|it| given.first().is_some_and(|(first, _)| it.issuer() != first)))
        {
            let Some(id) = shown_id(it) else { continue };
            let is_foreign = given.iter().any(|(issuer, known)| *known == id && issuer != it.issuer());
            it.check(j, !is_foreign, || format!("`client_id: {id}` at {}", it.path()));
        }
    }),
    ("client-auth.reg.reregister", |e, j| {
        let all = asked(e);
        let given = given(&all);
        let Some((first, _)) = given.first() else { return j.untested(NO_REGISTRATION) };
        for it in all.iter().filter(|it| it.step == Step::Authorize && it.issuer() != first) {
            let has_document = it.param("client_id").is_some_and(|id| id.contains("://"));
            let is_registered = given.iter().any(|(issuer, _)| issuer == it.issuer());
            it.check(j, has_document || is_registered, || format!("no registration at {}", it.issuer()));
        }
    }),
    ("client-auth.reg.obtains-id", |e, j| {
        let all = asked(e);
        let given = given(&all);
        for it in all.iter().filter(|it| it.step == Step::Authorize) {
            let id = it.param("client_id").unwrap_or_default();
            // The authorization server knows the clients that are registered beforehand.
            let is_known =
                given.iter().any(|(_, known)| known == id) || it.http.status.is_some_and(|status| status < 400);
            it.check(j, !id.is_empty() && is_known, || format!("`client_id: {id}`"));
        }
    }),
    ("client-auth.authz.redirect-registered", |e, j| {
        // The port of a redirect to this machine may differ (RFC 8252, section 7.3).
        let all = asked(e);
        let registered = all.iter().filter(|it| it.step == Step::Register && it.is_ok());
        let registered: Vec<_> = registered.map(|it| (it.answer()["client_id"].clone(), it.body())).collect();
        let form = |uri: &str| {
            let mut url = Url::parse(uri).ok()?;
            if is_loopback(&url) {
                let _ = url.set_port(None);
            }
            Some(url)
        };
        for it in all.iter().filter(|it| it.step == Step::Authorize) {
            let Some((_, body)) = registered.iter().find(|(id, _)| id.as_str() == it.param("client_id")) else {
                continue;
            };
            let used = it.param("redirect_uri").unwrap_or_default();
            let holds = redirect_uris(body)
                .into_iter()
                .any(|uri| uri == used || (form(uri).is_some() && form(uri) == form(used)));
            it.check(j, holds, || format!("`redirect_uri: {used}`"));
        }
    }),
];

/// The redirect URIs in a registration.
fn redirect_uris(body: &Value) -> Vec<&str> {
    elements(&body["redirect_uris"]).filter_map(Value::as_str).collect()
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || host.starts_with("127.") || host == "[::1]"
}

/// The authorization requests whose client id is a URL.
fn with_document<'a, 'e>(all: &'a [Asked<'e>]) -> impl Iterator<Item = (&'a Asked<'e>, &'a str)> {
    let requests = all.iter().filter(|it| it.step == Step::Authorize);
    requests.filter_map(|it| Some((it, it.param("client_id").filter(|id| id.contains("://"))?)))
}

fn native(e: &Evidence<'_>, j: &mut Judgement) {
    for it in asked_for(e, Step::Register) {
        let body = it.body();
        let urls: Vec<_> = redirect_uris(&body).into_iter().filter_map(|uri| Url::parse(uri).ok()).collect();
        let is_native = urls.iter().any(|url| is_loopback(url) || !matches!(url.scheme(), "http" | "https"));
        if is_native && body["application_type"].is_string() {
            let holds = body["application_type"] == "native";
            it.check(j, holds, || format!("`application_type: {}`", shown(&body["application_type"])));
        }
    }
}

/// The ids that an issuer has given.
fn given(all: &[Asked<'_>]) -> Vec<(String, String)> {
    let answers = all.iter().filter(|it| it.step == Step::Register).map(|it| (it.issuer().to_owned(), it.answer()));
    answers.filter_map(|(issuer, answer)| Some((issuer, answer["client_id"].as_str()?.to_owned()))).collect()
}

/// The id that a client shows: in the query, in the form or in the header.
fn shown_id(it: &Asked<'_>) -> Option<String> {
    let basic = || super::token::basic(it.http).map(|(id, _)| id);
    it.param("client_id").map(ToOwned::to_owned).or_else(basic)
}
