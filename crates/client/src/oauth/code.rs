//! The authorization code grant: the request, and the validation of its response (OAuth 2.1, section 4.1).

use reqwest::Url;

use super::{
    AuthError, Secret,
    discovery::ServerMetadata,
    error::quoted,
    pkce::{Verifier, unguessable},
};

/// Parameters that may occur only once in a response (RFC 6749, section 3.1).
const ONCE: [&str; 3] = ["iss", "error", "code"];

/// An authorization request, with what its response is compared to.
#[derive(Debug)]
pub(super) struct Request {
    /// The URL at which the user authorizes the client.
    pub(super) url: Url,
    pub(super) redirect_uri: String,
    pub(super) verifier: Verifier,
    state: String,
    issuer: String,
    is_issuer_promised: bool,
}

impl Request {
    /// A request with PKCE, `state` and `resource` (2026-07-28, Authorization Flow Steps and Resource Parameter
    /// Implementation). Parameters in the URL of the endpoint are kept.
    pub(super) fn new(
        endpoint: Url,
        metadata: &ServerMetadata,
        client: &str,
        redirect_uri: String,
        scopes: &[String],
        resource: &str,
    ) -> Request {
        let (verifier, state, mut url) = (Verifier::random(), unguessable(), endpoint);
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", client)
            .append_pair("redirect_uri", &redirect_uri)
            .append_pair("code_challenge", &verifier.challenge())
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", &state)
            .append_pair("resource", resource);
        if !scopes.is_empty() {
            url.query_pairs_mut().append_pair("scope", &scopes.join(" "));
        }
        let is_issuer_promised = metadata.authorization_response_iss_parameter_supported;
        Request { url, redirect_uri, verifier, state, issuer: metadata.issuer.clone(), is_issuer_promised }
    }

    /// Whether a URL is the response to this request.
    pub(super) fn is_answered_by(&self, answer: &Url) -> bool {
        parameter(answer, "state").as_deref() == Some(&*self.state)
    }

    /// The code in the response. The issuer is checked first (2026-07-28, Authorization Response Validation; RFC 9207,
    /// section 2.4).
    ///
    /// # Errors
    /// [`AuthError::Response`] if it is from another issuer, for another request or has a parameter twice, and
    /// [`AuthError::Refused`].
    pub(super) fn code(&self, answer: &Url) -> Result<Secret, AuthError> {
        let unfit = |why: String| Err(AuthError::Response(why));
        if !self.is_answered_by(answer) {
            return unfit("its `state` is not that of the request".to_owned());
        }
        if let Some(name) = ONCE.iter().find(|name| answer.query_pairs().filter(|(key, _)| key == **name).count() > 1) {
            return unfit(format!("it says `{name}` more than once"));
        }
        match parameter(answer, "iss") {
            Some(issuer) if issuer != self.issuer => {
                return unfit(format!("it says that it is from {issuer:?}, and not from {:?}", self.issuer));
            }
            None if self.is_issuer_promised => {
                return unfit("it does not say from which issuer it is, though the metadata promise that".to_owned());
            }
            _ => {}
        }
        if let Some(error) = parameter(answer, "error") {
            let why = parameter(answer, "error_description").map(|why| format!(": {why}")).unwrap_or_default();
            return Err(AuthError::Refused(quoted(&format!("{error}{why}"))));
        }
        match parameter(answer, "code") {
            Some(code) if !code.is_empty() => Ok(Secret::new(code)),
            _ => unfit("it has no code".to_owned()),
        }
    }
}

/// The value of a parameter that is there exactly once.
fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut values = url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let value = values.next();
    if values.next().is_some() { None } else { value }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn request(promised: bool) -> Request {
        let metadata = ServerMetadata {
            issuer: "https://as".into(),
            authorization_response_iss_parameter_supported: promised,
            ..ServerMetadata::default()
        };
        let endpoint = "https://as/authorize?tenant=1".parse().expect("a URL");
        let scopes = ["a".to_owned(), "b".to_owned()];
        Request::new(endpoint, &metadata, "me", "http://127.0.0.1:1/callback".into(), &scopes, "https://h")
    }

    fn answer(request: &Request, rest: &str) -> Result<Secret, AuthError> {
        let url = format!("http://127.0.0.1:1/callback?state={}{rest}", request.state);
        request.code(&url.parse().expect("a URL"))
    }

    #[test]
    fn a_request_has_all_that_it_has_to_have() {
        let request = request(true);
        let pairs: BTreeMap<_, _> = request.url.query_pairs().into_owned().collect();
        let challenge = request.verifier.challenge();
        let expected = [
            ("client_id", "me"),
            ("code_challenge", &*challenge),
            ("code_challenge_method", "S256"),
            ("redirect_uri", "http://127.0.0.1:1/callback"),
            ("resource", "https://h"),
            ("response_type", "code"),
            ("scope", "a b"),
            ("state", &*request.state),
            ("tenant", "1"),
        ];
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(pairs, expected);
        assert_eq!(request.state.len(), 43);
    }

    #[test]
    fn an_answer_must_name_the_exact_issuer() {
        let (promised, open) = (request(true), request(false));
        let issuer = "&iss=https%3A%2F%2Fas";
        for (request, rest) in
            [(&promised, format!("&code=c{issuer}")), (&open, format!("&code=c{issuer}")), (&open, "&code=c".into())]
        {
            assert_eq!(answer(request, &rest).expect("a code").reveal(), "c");
        }
        for (request, rest) in [
            (&promised, "&code=c"),
            (&promised, "&code=c&iss="),
            (&promised, "&code=c&iss=https://evil.example.com"),
            (&promised, "&code=c&iss=https://as/"),
            (&open, "&code=c&iss=https://evil.example.com"),
            (&open, "&code=c&iss=HTTPS://as"),
            (&promised, "&code=c&iss=https://as&iss=https://as"),
            (&open, "&code=c&iss=https://evil.example.com&iss=https://evil.example.com"),
            (&open, "&code=c&iss=https://as&iss=https://evil.example.com"),
            (&open, "&code=c&error=access_denied&error=x"),
            (&open, "&code=c&code=d"),
        ] {
            assert!(matches!(answer(request, rest), Err(AuthError::Response(_))), "{rest}");
        }
    }

    #[test]
    fn an_answer_to_another_request_is_not_taken() {
        let request = request(false);
        for query in ["code=c", "code=c&state=", "code=c&state=other"] {
            let url = format!("http://127.0.0.1:1/callback?{query}").parse().expect("a URL");
            assert!(matches!(request.code(&url), Err(AuthError::Response(_))), "{query}");
        }
        let twice = format!("&state={}&code=c", request.state);
        assert!(matches!(answer(&request, &twice), Err(AuthError::Response(_))));
    }

    #[test]
    fn a_denial_is_reported_unless_its_state_is_foreign() {
        let request = request(true);
        let no = "&error=access_denied&error_description=not%1Btoday";
        let error = answer(&request, &format!("{no}&iss=https://as")).expect_err("a no");
        assert_eq!(error.to_string(), "the authorization was refused: access_denied: not today");
        let error = answer(&request, &format!("{no}&iss=https://evil")).expect_err("another issuer").to_string();
        assert!(!error.contains("denied") && !error.contains("today"), "{error}");
        assert!(matches!(answer(&request, "&iss=https://as"), Err(AuthError::Response(_))));
    }
}
