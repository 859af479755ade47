//! The challenge in a refused request (RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9449, section 7.1; RFC 9728,
//! section 5.1).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use super::{dpop, error::quoted};
use rehearse_protocol::challenge;

/// The `Bearer` or `DPoP` challenge of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The URL of the resource metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs, if it names any.
    pub scopes: Option<Vec<String>>,
    /// The code of RFC 6750, section 3.1.
    pub error: Option<String>,
    /// The description of the error for users.
    pub error_description: Option<String>,
    /// Whether the server takes tokens that are bound to a key, with proofs that we can make.
    pub takes_dpop: bool,
}

impl Challenge {
    /// The challenge in these headers: of several the one that wants a nonce, or else the first with
    /// `resource_metadata`. `None` without a `Bearer` or `DPoP` challenge.
    pub fn from_headers(headers: &HeaderMap) -> Option<Challenge> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let mut challenges: Vec<_> = values
            .flat_map(|value| challenge::parse(value).0)
            .filter(|challenge| matches!(&*challenge.scheme, "bearer" | "dpop"))
            .map(|challenge| Challenge::read(&challenge.scheme, challenge.params))
            .collect();
        if challenges.is_empty() {
            return None;
        }
        let takes_dpop = challenges.iter().any(|challenge| challenge.takes_dpop);
        let with_nonce = challenges.iter().position(Challenge::wants_nonce);
        let with_metadata = || challenges.iter().position(|challenge| challenge.resource_metadata.is_some());
        let chosen = with_nonce.or_else(with_metadata).unwrap_or(0);
        Some(Challenge { takes_dpop, ..challenges.swap_remove(chosen) })
    }

    /// Whether the proof of the request needs a nonce of the server (RFC 9449, section 9).
    pub(super) fn wants_nonce(&self) -> bool {
        self.error.as_deref() == Some(dpop::NONCE_WANTED)
    }

    /// Whether the token is valid but lacks scopes.
    pub fn wants_more_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// The error and its description on one line.
    pub(super) fn error_text(&self) -> Option<String> {
        let parts: Vec<&str> = self.error.iter().chain(&self.error_description).map(String::as_str).collect();
        (!parts.is_empty()).then(|| quoted(&parts.join(": ")))
    }

    fn read(scheme: &str, params: Vec<(String, String)>) -> Challenge {
        let mut challenge = Challenge { takes_dpop: scheme == "dpop", ..Challenge::default() };
        for (name, value) in params {
            match &*name {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => {
                    let scopes: Vec<_> = value.split_ascii_whitespace().map(str::to_owned).collect();
                    challenge.scopes = Some(scopes).filter(|scopes| !scopes.is_empty());
                }
                "error" => challenge.error = Some(value),
                "error_description" => challenge.error_description = Some(value),
                "algs" => challenge.takes_dpop &= value.split_ascii_whitespace().any(|it| it == dpop::ALGORITHM),
                _ => {}
            }
        }
        challenge
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn parse_all(values: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).expect("a header value"));
        }
        Challenge::from_headers(&headers)
    }

    fn challenge(metadata: Option<&str>, scopes: Option<&[&str]>, error: Option<&str>) -> Option<Challenge> {
        let owned = |text: &str| text.to_owned();
        let scopes = scopes.map(|scopes| scopes.iter().copied().map(owned).collect());
        let (resource_metadata, error) = (metadata.map(owned), error.map(owned));
        Some(Challenge { resource_metadata, scopes, error, ..Challenge::default() })
    }

    #[test]
    fn a_bearer_challenge_is_found_among_others_however_it_is_written() {
        let metadata = "https://h/.well-known/oauth-protected-resource";
        for (values, expected) in [
            (&[][..], None),
            (&["Basic realm=\"x\""][..], None),
            (&["Bearer"], challenge(None, None, None)),
            (&["bearer realm=\"x, y\", Scope=\"a b\""], challenge(None, Some(&["a", "b"]), None)),
            (&["Bearer scope=\"\""], challenge(None, None, None)),
            (
                &[&*format!("Bearer error=\"insufficient_scope\",scope=w,resource_metadata=\"{metadata}\"")],
                challenge(Some(metadata), Some(&["w"]), Some("insufficient_scope")),
            ),
            (
                &[&*format!("Negotiate YWJj==, Bearer resource_metadata = \"{metadata}\"")],
                challenge(Some(metadata), None, None),
            ),
            (
                &["DPoP", &*format!("Bearer , , resource_metadata=\"{metadata}\"")],
                challenge(Some(metadata), None, None).map(|it| Challenge { takes_dpop: true, ..it }),
            ),
            (
                &["Bearer scope=\"a\"", &*format!("Bearer resource_metadata=\"{metadata}\"")],
                challenge(Some(metadata), None, None),
            ),
            (&["Bearer scope=\"a\\\"b\""], challenge(None, Some(&["a\"b"]), None)),
            (&["Digest scope=\"bearer\", Basic"], None),
            (&["Bearer error=\"x\", scope=\"open"], challenge(None, None, Some("x"))),
            (&["Basic realm=\"resource_metadata=evil\", Bearer error=\"e\""], challenge(None, None, Some("e"))),
            (&["=, Bearer"], None),
        ] {
            assert_eq!(parse_all(values), expected, "{values:?}");
        }
    }

    #[test]
    fn a_challenge_says_whether_tokens_may_be_bound_to_our_kind_of_key() {
        for (values, takes_dpop) in [
            (&["DPoP"][..], true),
            (&["dpop algs=\"PS256 ES256\""], true),
            (&["Bearer resource_metadata=\"https://h/m\", DPoP algs=\"ES256\""], true),
            (&["DPoP algs=\"PS256\""], false),
            (&["Bearer algs=\"ES256\""], false),
        ] {
            assert_eq!(parse_all(values).expect("a challenge").takes_dpop, takes_dpop, "{values:?}");
        }
        let both = ["Bearer resource_metadata=\"https://h/m\"", "DPoP error=\"use_dpop_nonce\""];
        assert!(parse_all(&both).expect("a challenge").wants_nonce());
    }

    #[test]
    fn the_reason_for_a_refused_token_is_one_line() {
        let said = |value| parse_all(&[value]).expect("a challenge").error_text();
        let value = "Bearer error=\"invalid_token\", Error_Description=\"made for\tanother\"";
        assert_eq!(said(value).as_deref(), Some("invalid_token: made for another"));
        assert_eq!(said("Bearer error_description=late").as_deref(), Some("late"));
        assert_eq!(said("Bearer scope=\"a\""), None);
    }

    #[test]
    fn only_insufficient_scope_asks_for_more() {
        assert!(parse_all(&["Bearer error=\"insufficient_scope\""]).expect("a challenge").wants_more_scopes());
        assert!(!parse_all(&["Bearer error=\"invalid_token\""]).expect("a challenge").wants_more_scopes());
    }
}
