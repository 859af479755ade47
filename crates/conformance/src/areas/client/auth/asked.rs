//! What a client asks for on its way to a token.

use rehearse_protocol::challenge::Challenge;
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::super::common::credentials;
use crate::areas::query::subject;
use crate::{EventRef, Evidence, HttpExchange, Judgement, areas::auth::challenge};

pub(super) const RESOURCE: &str = "/.well-known/oauth-protected-resource";
pub(super) const SERVER: &str = "/.well-known/oauth-authorization-server";
pub(super) const OPENID: &str = "/.well-known/openid-configuration";

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The metadata of the resource.
    Resource,
    /// The metadata of an authorization server.
    Server,
    Register,
    Authorize,
    Token,
}

/// One request with its response.
#[derive(Debug)]
pub(super) struct Asked<'e> {
    pub(super) step: Step,
    pub(super) http: &'e HttpExchange<'e>,
    /// Of the query, or of the form.
    params: Vec<(String, String)>,
}

/// All requests, in order: the mock has one trace for them.
pub(super) fn asked<'e>(evidence: &'e Evidence<'_>) -> Vec<Asked<'e>> {
    let all = evidence.exchanges().filter_map(|(_, http)| Some((http, step_of(http)?)));
    all.map(|(http, step)| Asked { step, http, params: params(http, step) }).collect()
}

/// Those for one purpose.
pub(super) fn asked_for<'e>(evidence: &'e Evidence<'_>, step: Step) -> Vec<Asked<'e>> {
    asked(evidence).into_iter().filter(|it| it.step == step).collect()
}

/// The requests to the server itself.
pub(super) fn used<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = &'e HttpExchange<'e>> {
    let is_use = |http: &&HttpExchange<'_>| {
        !http.method.is_empty() && step_of(http).is_none() && !http.target.starts_with("/.well-known/")
    };
    evidence.exchanges().map(|(_, http)| http).filter(is_use)
}

/// The requests to the server that got HTTP 401, for more than the nonce of a proof.
pub(super) fn refused<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = &'e HttpExchange<'e>> {
    used(evidence).filter(|http| http.status == Some(401) && !wants_nonce(http))
}

fn step_of(http: &HttpExchange<'_>) -> Option<Step> {
    let path = http.target.split('?').next().unwrap_or_default();
    if path.starts_with(RESOURCE) {
        return Some(Step::Resource);
    }
    if path.contains(SERVER) || path.contains(OPENID) {
        return Some(Step::Server);
    }
    match path.rsplit('/').next() {
        Some("register") => Some(Step::Register),
        Some("authorize") => Some(Step::Authorize),
        Some("token") => Some(Step::Token),
        _ => None,
    }
}

fn params(http: &HttpExchange<'_>, step: Step) -> Vec<(String, String)> {
    let query = http.target.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let text = if step == Step::Token { &http.sent[..] } else { query.as_bytes() };
    form_urlencoded::parse(text).into_owned().collect()
}

subject!(['e] Asked<'e>, Asked<'e>, |it| it, (None, it.http.places(), false));

impl Asked<'_> {
    pub(super) fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The scopes that are asked for.
    pub(super) fn scopes(&self) -> Vec<&str> {
        words(self.param("scope").unwrap_or_default())
    }

    pub(super) fn path(&self) -> &str {
        self.http.target.split('?').next().unwrap_or_default()
    }

    /// The path of the issuer that an endpoint belongs to.
    pub(super) fn issuer(&self) -> &str {
        self.path().rsplit_once('/').map(|(issuer, _)| issuer).unwrap_or_default()
    }

    pub(super) fn is_ok(&self) -> bool {
        self.http.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// Whether it got an error, other than one that only gives the nonce of a proof.
    pub(super) fn is_refused(&self) -> bool {
        self.http.status.is_some_and(|status| status >= 400) && !wants_nonce(self.http)
    }

    /// The JSON of the answer; null if it is none, or an error.
    pub(super) fn answer(&self) -> Value {
        if self.is_ok() { serde_json::from_slice(&self.http.body).unwrap_or_default() } else { Value::Null }
    }

    /// The JSON of the request.
    pub(super) fn body(&self) -> Value {
        serde_json::from_slice(&self.http.sent).unwrap_or_default()
    }

    /// Where the client is redirected to.
    pub(super) fn location(&self) -> Option<Url> {
        Url::parse(self.http.header("location")?).ok()
    }

    /// A parameter of the redirect.
    pub(super) fn redirected(&self, name: &str) -> Option<String> {
        let location = self.location()?;
        location.query_pairs().find(|(it, _)| it == name).map(|(_, value)| value.into_owned())
    }

    pub(super) fn check<S: Into<String>>(&self, j: &mut Judgement, holds: bool, found: impl FnOnce() -> S) {
        j.check_at(holds, None, self.http.places(), found);
    }

    /// Checks that none of these steps comes after this one.
    pub(super) fn check_last(&self, j: &mut Judgement, all: &[Asked<'_>], steps: &[Step]) {
        let is_after = |it: &&Asked<'_>| it.http.request > self.http.request && steps.contains(&it.step);
        let next = all.iter().find(is_after);
        let places = self.http.places_with(next.map(|it| it.http.request));
        j.check_at(next.is_none(), None, places, || next.map(Asked::name).unwrap_or_default().to_owned());
    }

    fn name(&self) -> &'static str {
        match self.step {
            Step::Resource | Step::Server => "a request of metadata",
            Step::Register => "a registration",
            Step::Authorize => "an authorization request",
            Step::Token => "a token request",
        }
    }
}

pub(super) fn words(text: &str) -> Vec<&str> {
    text.split_ascii_whitespace().collect()
}

/// The URL that a client used for a path of the mock.
pub(super) fn origin(http: &HttpExchange<'_>) -> String {
    format!("http://{}", http.request_header("host").unwrap_or_default())
}

/// The metadata of the resource.
pub(super) fn resource(all: &[Asked<'_>]) -> Value {
    let mut found = all.iter().filter(|it| it.step == Step::Resource).map(Asked::answer);
    found.find(Value::is_object).unwrap_or_default()
}

/// The metadata of the authorization servers, each with its request.
pub(super) fn servers<'a, 'e>(all: &'a [Asked<'e>]) -> impl Iterator<Item = (&'a Asked<'e>, Value)> {
    let found = all.iter().filter(|it| it.step == Step::Server).map(|it| (it, it.answer()));
    found.filter(|(_, metadata)| metadata.is_object())
}

/// The challenge before a request: that of the last refused one.
pub(super) fn challenge_before(evidence: &Evidence<'_>, place: EventRef) -> Option<Challenge> {
    let before = refused(evidence).filter(|http| http.request < place && http.request.connection == place.connection);
    before.last().and_then(challenge)
}

/// The token in the header of a request.
pub(super) fn shown_token(http: &HttpExchange<'_>) -> Option<String> {
    credentials(http).map(|(_, token)| token)
}

/// The error of a response, of a server or an authorization server.
pub(super) fn error(http: &HttpExchange<'_>) -> Option<String> {
    let stated = challenge(http).and_then(|it| it.param("error").map(ToOwned::to_owned));
    stated.or_else(|| {
        let answer = serde_json::from_slice::<Value>(&http.body).ok()?;
        answer["error"].as_str().map(ToOwned::to_owned)
    })
}

/// Whether a proof of a key is refused only because it lacks the nonce of the response (RFC 9449, sections 8 and 9).
pub(super) fn wants_nonce(http: &HttpExchange<'_>) -> bool {
    error(http).is_some_and(|error| error == "use_dpop_nonce")
}

/// The access tokens that were issued, with the responses.
pub(super) fn issued(all: &[Asked<'_>]) -> Vec<(String, Value, EventRef)> {
    let answers = all.iter().filter(|it| it.step == Step::Token).map(|it| (it.answer(), it.http.request));
    answers.filter_map(|(answer, place)| Some((answer["access_token"].as_str()?.to_owned(), answer, place))).collect()
}
