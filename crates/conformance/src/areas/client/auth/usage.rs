//! How a client uses its token, and gets one that allows more.

use rehearse_protocol::names::SESSION_HEADER;
use std::collections::BTreeSet;

use serde_json::Value;
use url::form_urlencoded;

use super::{
    super::common::{header as request_header, heads, is_same, sent_in},
    MOST_ATTEMPTS,
    asked::{Asked, Step, asked, bearer, issued, refused, used, words},
};
use crate::{Connection, EventRef, Evidence, HttpExchange, Judgement, Kind, areas::auth::challenge};

const NO_TOKEN: &str = "the client got no token";
/// How often a client may ask for the same scopes, whatever it does.
const MOST_IN_ALL: usize = 10;
/// With what the tokens of the mock begin.
const PREFIX: &str = "rehearse.";

/// Requests that begin anew, as those of another process, may be without a token.
pub(super) fn header(evidence: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(evidence);
    let Some((_, _, got)) = issued(&all).into_iter().next() else { return j.untested(NO_TOKEN) };
    for (connection, http) in
        evidence.exchanges().filter(|(_, http)| used(evidence).any(|it| it.request == http.request))
    {
        let is_later = http.request.connection != got.connection || http.request > got;
        let method = sent_in(connection, http).and_then(|it| it.method());
        let begins =
            http.header(SESSION_HEADER).is_some() || matches!(method, None | Some("initialize" | "server/discover"));
        let is_in_session = request_header(http, SESSION_HEADER).is_some();
        if is_later && (bearer(http).is_some() || is_in_session || !begins) {
            let subject = Some(method.unwrap_or(http.method).to_owned());
            j.check_at(bearer(http).is_some(), subject, heads(http), || "no `Authorization: Bearer`".to_owned());
        }
    }
    j.untested(NO_TOKEN);
}

pub(super) fn query(evidence: &Evidence<'_>, j: &mut Judgement) {
    let issued = issued(&asked(evidence));
    for http in used(evidence).filter(|_| !issued.is_empty()) {
        let query = http.target.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let found = pairs.find(|(key, value)| key == "access_token" || issued.iter().any(|(token, ..)| token == value));
        j.check_at(found.is_none(), None, heads(http), || {
            format!("a token in `{}`", found.map(|it| it.0).unwrap_or_default())
        });
    }
    j.untested(NO_TOKEN);
}

/// What of a token is the same, however it is encoded.
fn core(token: &str) -> String {
    let end = token.find(|c: char| !c.is_ascii_alphanumeric() && !".-".contains(c)).unwrap_or(token.len());
    token[..end].to_ascii_lowercase()
}

/// Tokens are opaque, but the mock knows those that a mock has issued.
pub(super) fn audience(evidence: &Evidence<'_>, j: &mut Judgement) {
    let issued: Vec<_> = issued(&asked(evidence)).into_iter().map(|(token, ..)| core(&token)).collect();
    // Where none was issued, a client of both eras has asked for it in the other one.
    for (http, token) in used(evidence).filter(|_| !issued.is_empty()).filter_map(|http| Some((http, bearer(http)?))) {
        let is_foreign = token.starts_with(PREFIX) && !issued.contains(&core(&token));
        j.check_at(!is_foreign, None, heads(http), || "a token of another server".to_owned());
    }
    j.untested(NO_TOKEN);
}

pub(super) fn verbatim(evidence: &Evidence<'_>, j: &mut Judgement) {
    let issued = issued(&asked(evidence));
    for (http, shown) in used(evidence).filter_map(|http| Some((http, bearer(http)?))) {
        let Some((token, ..)) = issued.iter().find(|(token, ..)| core(token) == core(&shown)) else { continue };
        j.check_at(*token == shown, None, heads(http), || format!("`{shown}` in place of `{token}`"));
    }
    j.untested(NO_TOKEN);
}

pub(super) fn metadata(evidence: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(evidence);
    let issued = issued(&all);
    for it in all.iter().filter(|_| !issued.is_empty()) {
        let shown = bearer(it.http);
        let is_token = issued.iter().any(|(token, ..)| shown.as_ref() == Some(token));
        it.check(j, !is_token, || format!("the token in {} {}", it.http.method, it.path()));
    }
    j.untested(NO_TOKEN);
}

/// A token that was accepted before and is refused for a request leads to another one, which is used. Without a refresh
/// token, or with another authorization server, a user may be needed.
pub(super) fn again(evidence: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(evidence);
    let issued = issued(&all);
    let is_accepted =
        |token: &str| used(evidence).any(|http| bearer(http).as_deref() == Some(token) && http.status != Some(401));
    let names = |it: &Asked<'_>| it.answer()["authorization_servers"].to_string();
    let mut named: Vec<_> = all.iter().filter(|it| it.step == Step::Resource).map(names).collect();
    named.dedup();
    let can_renew = |answer: &Value| answer["refresh_token"].is_string() && named.len() < 2;
    for (token, ..) in issued.iter().filter(|(token, answer, _)| can_renew(answer) && is_accepted(token)) {
        let is_request = |connection: &Connection<'_>, http: &HttpExchange<'_>| {
            sent_in(connection, http).is_some_and(|it| it.kind == Kind::Request)
        };
        let expired = evidence.exchanges().find(|(connection, http)| {
            http.status == Some(401) && bearer(http).as_ref() == Some(token) && is_request(connection, http)
        });
        let Some((_, expired)) = expired else { continue };
        let holds = issued.iter().any(|(other, _, got)| *got > expired.request && is_accepted(other));
        j.check_at(holds, None, heads(expired), || "no request with another token".to_owned());
    }
    j.untested("no token expired");
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

const ENOUGH: &str = "no token lacked a scope";

impl Lack<'_> {
    fn places(&self, more: Option<EventRef>) -> Vec<EventRef> {
        heads(self.http).into_iter().chain(more).collect()
    }

    fn is_asked_for(&self, it: &Asked<'_>) -> bool {
        self.scopes.iter().all(|scope| it.scopes().contains(&scope.as_str()))
    }
}

pub(super) fn step_up(evidence: &Evidence<'_>, j: &mut Judgement) {
    if let Some((lack, _, later)) = upgrades(evidence) {
        j.check_at(!later.is_empty(), None, lack.places(None), || "no authorization request after it".to_owned());
    }
    j.untested(ENOUGH);
}

pub(super) fn union(evidence: &Evidence<'_>, j: &mut Judgement) {
    if let Some((lack, first, later)) = upgrades(evidence)
        && let Some(it) = later.iter().find(|it| lack.is_asked_for(it))
    {
        let lost = first.scopes().into_iter().find(|scope| !it.scopes().contains(scope)).map(ToOwned::to_owned);
        let places = lack.places(Some(it.http.request));
        j.check_at(lost.is_none(), None, places, || format!("a request without `{}`", lost.unwrap_or_default()));
    }
    j.untested(ENOUGH);
}

pub(super) fn authoritative(evidence: &Evidence<'_>, j: &mut Judgement) {
    if let Some((lack, _, later)) = upgrades(evidence)
        && let Some(last) = later.last()
    {
        let holds = later.iter().any(|it| lack.is_asked_for(it));
        j.check_at(holds, None, lack.places(Some(last.http.request)), || {
            format!("`scope={}`", last.param("scope").unwrap_or_default())
        });
    }
    j.untested(ENOUGH);
}

pub(super) fn retry(evidence: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(evidence);
    if let Some((lack, _, later)) = upgrades(evidence)
        && let Some(upgrade) = later.iter().find(|it| lack.is_asked_for(it))
        && issued(&all).iter().any(|(.., got)| *got > upgrade.http.request)
        && let Some(message) = sent_in(lack.connection, lack.http)
    {
        let same = evidence.messages().filter(|it| !it.is_from_server() && is_same(it, message)).count();
        j.check_at(same > 1, message.method().map(ToOwned::to_owned), lack.places(None), || {
            "no second attempt".to_owned()
        });
    }
    j.untested(ENOUGH);
}

pub(super) fn limit(evidence: &Evidence<'_>, j: &mut Judgement) {
    let refused = lacks(evidence);
    if let Some((lack, _, later)) = upgrades(evidence).filter(|_| refused.len() > 1) {
        let count = later.iter().filter(|it| lack.is_asked_for(it)).count();
        let messages = refused.iter().filter_map(|it| sent_in(it.connection, it.http)?.id().map(Value::to_string));
        // A client may try for each call of the application.
        let calls = messages.collect::<BTreeSet<_>>().len();
        j.check_at(count <= calls.clamp(MOST_ATTEMPTS, MOST_IN_ALL), None, lack.places(None), || {
            format!("{count} authorization requests")
        });
    }
    j.untested("no request was refused for lack of scopes more than once");
}

pub(super) fn limit_401(evidence: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(evidence);
    let issued = issued(&all);
    let is_of = |http: &HttpExchange<'_>| bearer(http).is_some_and(|token| issued.iter().any(|(it, ..)| *it == token));
    let is_accepted = used(evidence).any(|http| http.status != Some(401) && is_of(http));
    if let Some(last) = refused(evidence).filter(|http| is_of(http)).last().filter(|_| !is_accepted) {
        let count = issued.len();
        j.check_at(count <= MOST_ATTEMPTS, None, heads(last), || format!("{count} tokens, each of which was refused"));
    }
    j.untested("the server accepted a token");
}
