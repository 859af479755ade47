//! Access tokens (OAuth 2.1, section 3.2).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::{StatusCode, header::HeaderValue};
use serde::{Deserialize, Serialize};

use super::{AuthError, Secret, error::quoted};

/// A token expires this long before its end, to allow for the way of a request.
const MARGIN: Duration = Duration::from_secs(30);
/// The margin is at most this part of the life of a token, so that short-lived tokens are used.
const SHARE: u32 = 10;

/// A token for one server, and what its renewal needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Token {
    pub(super) access: Secret,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refresh: Option<Secret>,
    /// When it expires, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<u64>,
    /// Its life in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) life: Option<u64>,
    /// Its scopes as the issuer says, or else the requested ones.
    pub(super) scopes: Vec<String>,
    pub(super) requested: Vec<String>,
    pub(super) resource: String,
    /// The client that it was issued to.
    pub(super) client: String,
    /// The key that it is bound to, as a proof of each request needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<Secret>,
}

/// The request of a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenContext<'a> {
    pub(super) resource: &'a str,
    pub(super) client: &'a str,
    pub(super) endpoint: &'a str,
    /// The requested scopes.
    pub(super) scopes: &'a [String],
    /// The key whose possession the request has proven.
    pub(super) key: Option<&'a Secret>,
}

impl Token {
    /// The value of `Authorization` (RFC 6750, section 2.1; RFC 9449, section 7.1).
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let scheme = if self.key.is_some() { "DPoP" } else { "Bearer" };
        let mut header = HeaderValue::from_str(&format!("{scheme} {}", self.access.reveal())).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    pub(super) fn is_expired(&self) -> bool {
        self.is_expired_at(now())
    }

    fn is_expired_at(&self, now: Duration) -> bool {
        let margin = self.life.map_or(MARGIN, |life| MARGIN.min(Duration::from_secs(life) / SHARE));
        self.expires.is_some_and(|end| Duration::from_secs(end) <= now + margin)
    }

    /// The token in the response of a token endpoint (RFC 6749, sections 5.1 and 5.2). A refresh token that is not
    /// replaced remains.
    ///
    /// # Errors
    /// [`AuthError::Token`] if the endpoint refused, [`AuthError::Http`] and [`AuthError::Malformed`] for other
    /// responses.
    pub(super) fn read(
        status: StatusCode,
        body: &[u8],
        purpose: TokenContext<'_>,
        refresh: Option<&Secret>,
    ) -> Result<Token, AuthError> {
        #[derive(Deserialize)]
        struct Answer {
            access_token: Secret,
            token_type: String,
            expires_in: Option<serde_json::Value>,
            refresh_token: Option<Secret>,
            scope: Option<String>,
        }
        let TokenContext { resource, client, endpoint, scopes, key } = purpose;
        check(status, body, endpoint)?;
        let malformed = |what| AuthError::Malformed { url: endpoint.to_owned(), what };
        let answer: Answer = serde_json::from_slice(body).map_err(|_| malformed("a token"))?;
        // A token of type `Bearer` is not bound, also after a proof (RFC 9449, section 5).
        let is_bound = answer.token_type.eq_ignore_ascii_case("dpop") && key.is_some();
        if !is_bound && !answer.token_type.eq_ignore_ascii_case("bearer") {
            return Err(malformed("a bearer token"));
        }
        // Some servers write numbers as strings.
        let life = answer.expires_in.and_then(|life| life.as_u64().or_else(|| life.as_str()?.parse().ok()));
        let granted = match answer.scope {
            Some(granted) => granted.split_ascii_whitespace().map(str::to_owned).collect(),
            None => scopes.to_vec(),
        };
        let token = Token {
            access: answer.access_token,
            refresh: answer.refresh_token.filter(|it| !it.reveal().is_empty()).or_else(|| refresh.cloned()),
            expires: life.map(|life| now().as_secs().saturating_add(life)),
            life,
            scopes: granted,
            requested: scopes.to_vec(),
            resource: resource.to_owned(),
            client: client.to_owned(),
            key: key.filter(|_| is_bound).cloned(),
        };
        let is_sendable = !token.access.reveal().is_empty() && token.header().is_some();
        if is_sendable { Ok(token) } else { Err(malformed("a token that can be sent")) }
    }
}

/// The token of a token exchange (RFC 8693, section 2.2.1).
///
/// # Errors
/// As for [`Token::read`].
pub(super) fn exchanged(status: StatusCode, body: &[u8], endpoint: &str) -> Result<Secret, AuthError> {
    #[derive(Deserialize)]
    struct Answer {
        access_token: Secret,
    }
    check(status, body, endpoint)?;
    let answer = serde_json::from_slice(body).map(|Answer { access_token }| access_token);
    answer.map_err(|_| AuthError::Malformed { url: endpoint.to_owned(), what: "a token" })
}

/// # Errors
/// The endpoint refused, or its response is not valid.
fn check(status: StatusCode, body: &[u8], endpoint: &str) -> Result<(), AuthError> {
    #[derive(Deserialize)]
    struct No {
        error: String,
        error_description: Option<String>,
    }
    if let Ok(No { error, error_description: description }) = serde_json::from_slice(body) {
        let description = description.as_deref().map(quoted);
        return Err(AuthError::Token { status: status.as_u16(), error: quoted(&error), description });
    }
    match status.is_success() {
        true => Ok(()),
        false => Err(AuthError::Http { url: endpoint.to_owned(), status: status.as_u16() }),
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Result<Token, AuthError> {
        read_with(None, status, body)
    }

    fn read_with(key: Option<&Secret>, status: u16, body: &str) -> Result<Token, AuthError> {
        let scopes = ["asked".to_owned()];
        let (resource, client, endpoint) = ("https://h", "me", "https://as/token");
        let purpose = TokenContext { resource, client, endpoint, scopes: &scopes, key };
        let status = StatusCode::from_u16(status).expect("a status");
        Token::read(status, body.as_bytes(), purpose, Some(&Secret::new("old")))
    }

    #[test]
    fn an_answer_overrides_the_options_of_the_request() {
        let token = read(200, r#"{"access_token":"a","token_type":"bearer"}"#).expect("a token");
        assert_eq!((token.access.reveal(), token.expires, &*token.scopes), ("a", None, &["asked".to_owned()][..]));
        assert_eq!(token.refresh, Some(Secret::new("old")));
        assert!(!token.is_expired());
        assert_eq!(token.header().expect("a header"), "Bearer a");
        let text =
            r#"{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":"new","scope":"x y"}"#;
        let token = read(200, text).expect("a token");
        assert_eq!((token.scopes.join(" ").as_str(), token.refresh), ("x y", Some(Secret::new("new"))));
    }

    #[test]
    fn a_token_expires_a_little_early_and_its_life_may_be_a_text() {
        let token = |life: &str| {
            let text = format!(r#"{{"access_token":"a","token_type":"Bearer","expires_in":{life}}}"#);
            read(200, &text).expect("a token")
        };
        assert!(token("0").is_expired() && token("\"0\"").is_expired());
        for life in ["3600", "\"3600\"", "18446744073709551615"] {
            assert!(!token(life).is_expired(), "{life}");
        }
        // Records of earlier versions have no life.
        let text = r#"{"access":"a","expires":100,"scopes":[],"requested":[],"resource":"","client":""}"#;
        let kept: Token = serde_json::from_str(text).expect("a token");
        for (life, last_good) in [(None, 69_999), (Some(3600), 69_999), (Some(25), 97_499), (Some(1), 99_899)] {
            let token = Token { life, ..kept.clone() };
            let is_expired_at = |milliseconds| token.is_expired_at(Duration::from_millis(milliseconds));
            assert!(!is_expired_at(last_good) && is_expired_at(last_good + 1), "{life:?}");
        }
    }

    #[test]
    fn a_token_is_bound_to_the_proven_key_if_its_type_says_so() {
        let (key, body) = (Secret::new("k"), |kind: &str| format!(r#"{{"access_token":"a","token_type":"{kind}"}}"#));
        let bound = read_with(Some(&key), 200, &body("dpop")).expect("a token");
        assert_eq!(
            (bound.header().expect("a header").to_str().expect("text"), bound.key),
            ("DPoP a", Some(key.clone()))
        );
        let free = read_with(Some(&key), 200, &body("Bearer")).expect("a token");
        assert_eq!((free.header().expect("a header").to_str().expect("text"), free.key), ("Bearer a", None));
        assert!(read(200, &body("DPoP")).is_err(), "nothing was proven");
    }

    #[test]
    fn an_invalid_token_is_refused_without_showing_it() {
        let no = r#"{"error":"invalid_grant","error_description":"too\nlate"}"#;
        let error = read(400, no).expect_err("a no").to_string();
        assert_eq!(error, "the authorization server did not issue a token: invalid_grant: too late");
        assert_eq!(read(503, "<html>").expect_err("no token").to_string(), "https://as/token answered with HTTP 503");
        for body in [
            "{}",
            "secret",
            r#"{"access_token":"secret","token_type":"mac"}"#,
            r#"{"access_token":"sec\nret","token_type":"Bearer"}"#,
            r#"{"access_token":"","token_type":"Bearer"}"#,
            r#"{"access_token":"secret"}"#,
        ] {
            let error = read(200, body).expect_err(body).to_string();
            assert!(!error.contains("sec"), "{error}");
        }
        let token = read(200, r#"{"access_token":"secret","token_type":"Bearer"}"#).expect("a token");
        assert!(!format!("{token:?}").contains("secret"));
    }
}
