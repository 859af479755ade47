//! How a client uses its token, and gets one that allows more.

use rehearse_protocol::names::SESSION_HEADER;
use std::collections::BTreeSet;

use serde_json::Value;
use url::form_urlencoded;

use super::super::common::{header as request_header, is_same, sent_in};
use super::MOST_ATTEMPTS;
use super::asked::{Asked, Step, asked, issued, refused, shown_token, used, wants_nonce, words};
use crate::areas::Judge;
use crate::{Connection, EventRef, Evidence, HttpExchange, Judgement, Kind, areas::auth::challenge};

const NO_TOKEN: &str = "the client got no token";
/// How often a client may ask for the same scopes, whatever it does.
const MOST_IN_ALL: usize = 10;
/// With what the tokens of the mock begin.
const PREFIX: &str = "rehearse.";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("client-auth.use.header", header),
    ("client-auth.use.not-in-query", query),
    ("client-auth.use.right-audience", |e, j| {
        // Tokens are opaque, but the mock knows those that a mock has issued.
        let issued: Vec<_> = issued(&asked(e)).into_iter().map(|(token, ..)| core(&token)).collect();
        // Where none was issued, a client of both eras has asked for it in the other one.
        for (http, token) in used(e).filter(|_| !issued.is_empty()).filter_map(|http| Some((http, shown_token(http)?)))
        {
            let is_foreign = token.starts_with(PREFIX) && !issued.contains(&core(&token));
            j.check_at(!is_foreign, None, http.places(), || "a token of another server");
        }
    }),
    ("client-auth.use.not-to-metadata", |e, j| {
        let all = asked(e);
        let issued = issued(&all);
        for it in all.iter().filter(|_| !issued.is_empty()) {
            let shown = shown_token(it.http);
            let is_token = issued.iter().any(|(token, ..)| shown.as_ref() == Some(token));
            it.check(j, !is_token, || format!("the token in {} {}", it.http.method, it.path()));
        }
    }),
    ("client-auth.use.reauth-on-401", again),
    ("client-auth.use.opaque", |e, j| {
        let issued = issued(&asked(e));
        for (http, shown) in used(e).filter_map(|http| Some((http, shown_token(http)?))) {
            let Some((token, ..)) = issued.iter().find(|(token, ..)| core(token) == core(&shown)) else { continue };
            j.check_at(*token == shown, None, http.places(), || format!("`{shown}` in place of `{token}`"));
        }
    }),
    ("client-auth.step.403", |e, j| {
        if let Some((lack, _, later)) = upgrades(e) {
            j.check_at(!later.is_empty(), None, lack.places(None), || "no authorization request after it");
        }
    }),
    ("client-auth.step.union", |e, j| {
        if let Some((lack, first, later)) = upgrades(e)
            && let Some(it) = later.iter().find(|it| lack.is_asked_for(it))
        {
            let lost = first.scopes().into_iter().find(|scope| !it.scopes().contains(scope)).map(ToOwned::to_owned);
            let places = lack.places(Some(it.http.request));
            j.check_at(lost.is_none(), None, places, || format!("a request without `{}`", lost.unwrap_or_default()));
        }
    }),
    ("client-auth.step.challenge-authoritative", |e, j| {
        if let Some((lack, _, later)) = upgrades(e)
            && let Some(last) = later.last()
        {
            let holds = later.iter().any(|it| lack.is_asked_for(it));
            let found = || format!("`scope={}`", last.param("scope").unwrap_or_default());
            j.check_at(holds, None, lack.places(Some(last.http.request)), found);
        }
    }),
    ("client-auth.step.retry-request", |e, j| {
        let all = asked(e);
        if let Some((lack, _, later)) = upgrades(e)
            && let Some(upgrade) = later.iter().find(|it| lack.is_asked_for(it))
            && issued(&all).iter().any(|(.., got)| *got > upgrade.http.request)
            && let Some(message) = sent_in(lack.connection, lack.http)
        {
            let same = e.messages().filter(|it| !it.is_from_server() && is_same(it, message)).count();
            j.check_at(same > 1, message.method(), lack.places(None), || "no second attempt");
        }
    }),
    ("client-auth.step.limit", |e, j| {
        let refused = lacks(e);
        if let Some((lack, _, later)) = upgrades(e).filter(|_| refused.len() > 1) {
            let count = later.iter().filter(|it| lack.is_asked_for(it)).count();
            let messages = refused.iter().filter_map(|it| sent_in(it.connection, it.http)?.id().map(Value::to_string));
            // A client may try for each call of the application.
            let calls = messages.collect::<BTreeSet<_>>().len();
            let found = || format!("{count} authorization requests");
            j.check_at(count <= calls.clamp(MOST_ATTEMPTS, MOST_IN_ALL), None, lack.places(None), found);
        }
    }),
    ("client-auth.step.401-limit", |e, j| {
        let all = asked(e);
        let issued = issued(&all);
        let is_of =
            |http: &HttpExchange<'_>| shown_token(http).is_some_and(|token| issued.iter().any(|(it, ..)| *it == token));
        let is_accepted = used(e).any(|http| http.status != Some(401) && is_of(http));
        if let Some(last) = refused(e).filter(|http| is_of(http)).last().filter(|_| !is_accepted) {
            let count = issued.len();
            let found = || format!("{count} tokens, each of which was refused");
            j.check_at(count <= MOST_ATTEMPTS, None, last.places(), found);
        }
    }),
];

/// Requests that begin anew, as those of another process, may be without a token.
fn header(e: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(e);
    let Some((_, _, got)) = issued(&all).into_iter().next() else { return j.untested(NO_TOKEN) };
    for (connection, http) in e.exchanges().filter(|(_, http)| used(e).any(|it| it.request == http.request)) {
        let is_later = http.request.connection != got.connection || http.request > got;
        let method = sent_in(connection, http).and_then(|it| it.method());
        let begins =
            http.header(SESSION_HEADER).is_some() || matches!(method, None | Some("initialize" | "server/discover"));
        let is_in_session = request_header(http, SESSION_HEADER).is_some();
        if is_later && (shown_token(http).is_some() || is_in_session || !begins) {
            let found = || "no token in `Authorization`";
            j.check_at(shown_token(http).is_some(), method.or(Some(http.method)), http.places(), found);
        }
    }
    j.untested(NO_TOKEN);
}

fn query(e: &Evidence<'_>, j: &mut Judgement) {
    let issued = issued(&asked(e));
    for http in used(e).filter(|_| !issued.is_empty()) {
        let query = http.target.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let found = pairs.find(|(key, value)| key == "access_token" || issued.iter().any(|(token, ..)| token == value));
        let text = || format!("a token in `{}`", found.as_ref().map(|it| &*it.0).unwrap_or_default());
        j.check_at(found.is_none(), None, http.places(), text);
    }
}

/// What of a token is the same, however it is encoded.
fn core(token: &str) -> String {
    let end = token.find(|c: char| !c.is_ascii_alphanumeric() && !".-".contains(c)).unwrap_or(token.len());
    token[..end].to_ascii_lowercase()
}

/// A token that was accepted before and is refused for a request leads to another one, which is used. Without a refresh
/// token, or with another authorization server, a user may be needed.
fn again(e: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(e);
    let issued = issued(&all);
    let is_accepted =
        |token: &str| used(e).any(|http| shown_token(http).as_deref() == Some(token) && http.status != Some(401));
    let names = |it: &Asked<'_>| it.answer()["authorization_servers"].to_string();
    let mut named: Vec<_> = all.iter().filter(|it| it.step == Step::Resource).map(names).collect();
    named.dedup();
    let can_renew = |answer: &Value| answer["refresh_token"].is_string() && named.len() < 2;
    for (token, ..) in issued.iter().filter(|(token, answer, _)| can_renew(answer) && is_accepted(token)) {
        let is_request = |connection: &Connection<'_>, http: &HttpExchange<'_>| {
            sent_in(connection, http).is_some_and(|it| it.kind == Kind::Request)
        };
        let expired = e.exchanges().find(|(connection, http)| {
            let is_refused = http.status == Some(401) && !wants_nonce(http);
            is_refused && shown_token(http).as_ref() == Some(token) && is_request(connection, http)
        });
        let Some((_, expired)) = expired else { continue };
        let holds = issued.iter().any(|(other, _, got)| *got > expired.request && is_accepted(other));
        j.check_at(holds, None, expired.places(), || "no request with another token");
    }
}

/// A refusal for lack of scopes.
struct Lack<'e> {
    connection: &'e Connection<'e>,
    http: &'e HttpExchange<'e>,
    scopes: Vec<String>,
}

fn lacks<'e>(evidence: &'e Evidence<'_>) -> Vec<Lack<'e>> {
    let all = evidence.exchanges().filter(|(_, http)| http.status == Some(403)).filter_map(|(connection, http)| {
        let challenge = challenge(http).filter(|it| it.param("error") == Some("insufficient_scope"))?;
        let scopes = words(challenge.param("scope")?).into_iter().map(ToOwned::to_owned).collect();
        Some(Lack { connection, http, scopes })
    });
    all.collect()
}

/// The first refusal for lack of scopes with all authorization requests after the first one.
fn upgrades<'e>(evidence: &'e Evidence<'_>) -> Option<(Lack<'e>, Asked<'e>, Vec<Asked<'e>>)> {
    let mut requests = asked(evidence).into_iter().filter(|it| it.step == Step::Authorize);
    let first = requests.next()?;
    let later = requests.filter(|it| it.http.target != first.http.target).collect();
    Some((lacks(evidence).into_iter().next()?, first, later))
}

impl Lack<'_> {
    fn places(&self, more: Option<EventRef>) -> Vec<EventRef> {
        self.http.places().into_iter().chain(more).collect()
    }

    fn is_asked_for(&self, it: &Asked<'_>) -> bool {
        self.scopes.iter().all(|scope| it.scopes().contains(&scope.as_str()))
    }
}
