//! The access to a server over the network: tokens and their scopes (2026-07-28, Authorization; RFC 6750, RFC 9449).

use std::sync::Arc;

use http::{HeaderMap, header::AUTHORIZATION};
use serde_json::{Value as Json, json};

use super::{
    issuer::{Dpop, Issuer, challenge_text, patched},
    keys::KEYS,
    scope,
};
use rehearse_document::{Node, Problems};

/// The error of a token that is not valid (RFC 6750, section 3.1).
pub(crate) const INVALID_TOKEN: &str = "invalid_token";
/// The error of a proof that is missing or wrong (RFC 9449, section 7.1).
pub(crate) const INVALID_PROOF: &str = "invalid_dpop_proof";
/// The error of a proof without the nonce (RFC 9449, sections 8 and 9).
pub(crate) const NONCE_WANTED: &str = "use_dpop_nonce";

/// The tokens that a server accepts.
#[derive(Debug)]
pub struct Auth {
    tokens: Vec<Arc<Token>>,
    /// The scopes that every request needs.
    scopes: Vec<String>,
    /// The authorization servers.
    authorization_servers: Vec<String>,
    /// The scopes in the metadata.
    supported: Vec<String>,
    /// How the mock issues tokens, if it does.
    issuer: Option<Arc<Issuer>>,
}

/// An access token and its scopes.
#[derive(Debug, PartialEq, Eq)]
pub struct Token {
    token: String,
    scopes: Vec<String>,
    /// Whether the mock has issued it; it has one user only.
    is_issued: bool,
    /// Whether it is bound to a key.
    is_bound: bool,
}

/// The reason why a request is refused, and the scopes that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// 401 without a valid token, 403 with a token that lacks scopes.
    pub status: u16,
    /// Whether the token must be bound to a key.
    is_bound: bool,
    /// The error code of RFC 6750, section 3.1, or of RFC 9449; none for a request without a token.
    error: Option<&'static str>,
    /// All scopes that the request needs.
    scopes: Vec<String>,
    /// What the script says in place of the usual header.
    text: Option<String>,
}

impl Token {
    /// Identifies the owner of the token.
    pub fn principal(&self) -> &str {
        if self.is_issued { "the user" } else { &self.token }
    }

    /// A token that the mock has issued.
    pub(crate) fn issued(token: &str, scopes: &[String], is_bound: bool) -> Token {
        Token { token: token.to_owned(), scopes: scopes.to_vec(), is_issued: true, is_bound }
    }

    /// # Errors
    /// The token lacks some of the scopes.
    pub fn allows(&self, scopes: &[String]) -> Result<(), Challenge> {
        match scopes.iter().all(|scope| self.scopes.contains(scope)) {
            true => Ok(()),
            false => {
                let (is_bound, scopes, error) = (self.is_bound, scopes.to_vec(), Some("insufficient_scope"));
                Err(Challenge { status: 403, is_bound, error, scopes, text: None })
            }
        }
    }

    fn read(node: &Node) -> Result<Arc<Token>, Problems> {
        let fields = KEYS.fields(node, "token")?;
        let token = fields.required("token")?;
        let is_token = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
        if token.str()?.is_empty() || !token.str()?.chars().all(is_token) {
            return Err(token.problem("a token may have only letters, digits and -._~+/=").into());
        }
        let scopes = fields.read_each("scopes", scope::read)?;
        Ok(Arc::new(Token { token: token.str()?.to_owned(), scopes, is_issued: false, is_bound: false }))
    }
}

impl Auth {
    pub(super) fn read(node: &Node) -> Result<Auth, Problems> {
        let fields = KEYS.fields(node, "auth")?;
        let issuer = fields.read("issuer", Issuer::read)?.map(Arc::new);
        let tokens = match issuer {
            Some(_) => fields.read_each("tokens", Token::read)?,
            None => fields.required("tokens")?.each(Token::read)?,
        };
        let scopes = fields.read_each("scopes", scope::read)?;
        let mut supported = scopes.clone();
        for scope in tokens.iter().flat_map(|token| &token.scopes) {
            if !supported.contains(scope) {
                supported.push(scope.clone());
            }
        }
        let authorization_servers = fields.read_each("authorizationServers", |node| Ok(node.str()?.to_owned()))?;
        Ok(Auth { tokens, scopes, authorization_servers, supported, issuer })
    }

    /// How the mock issues tokens, if it does.
    pub(crate) fn issuer(&self) -> Option<&Arc<Issuer>> {
        self.issuer.as_ref()
    }

    /// The scopes that every request needs.
    pub(crate) fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The first of the tokens.
    pub fn first_token(&self) -> Option<&str> {
        self.tokens.first().map(|token| token.token.as_str())
    }

    /// The token of a request; `issued` finds one that the mock has issued and that may be sent like this, or says
    /// with an error code why there is none.
    ///
    /// # Errors
    /// The token is missing, unknown, or lacks the scopes that every request needs.
    pub fn authorize(
        &self,
        headers: &HeaderMap,
        issued: impl FnOnce(&str) -> Result<Arc<Token>, &'static str>,
    ) -> Result<Arc<Token>, Challenge> {
        let text = self.issuer.as_ref().and_then(|issuer| issuer.challenge.clone());
        let is_bound = self.binds_tokens();
        let unauthorized =
            |error| Challenge { status: 401, is_bound, error, scopes: self.scopes.clone(), text: text.clone() };
        let header = headers.get(AUTHORIZATION).ok_or_else(|| unauthorized(None))?;
        let shown = header.to_str().ok().and_then(|header| header.split_once(' '));
        let (scheme, shown) = shown.ok_or_else(|| unauthorized(Some(INVALID_TOKEN)))?;
        let shown = shown.trim();
        let token = match self.tokens.iter().find(|token| is_same(&token.token, shown)) {
            Some(token) => token.clone(),
            None => issued(shown).map_err(|error| unauthorized(Some(error)))?,
        };
        if !scheme.eq_ignore_ascii_case(scheme_of(token.is_bound)) {
            return Err(unauthorized(Some(INVALID_TOKEN)));
        }
        token.allows(&self.scopes)?;
        Ok(token)
    }

    fn binds_tokens(&self) -> bool {
        self.issuer.as_ref().is_some_and(|issuer| issuer.dpop != Dpop::Off)
    }

    /// The metadata of the resource at `path` of `origin` (RFC 9728, section 2). They must name an authorization server
    /// (2026-07-28, Authorization Server Discovery); by default it is the origin itself, as before metadata existed
    /// (2025-03-26, Authorization Base URL). `issuer` is the path of the mock's own one.
    pub fn metadata(&self, origin: &str, path: &str, issuer: &str) -> Json {
        let mut metadata = json!({ "resource": format!("{origin}{path}"), "bearer_methods_supported": ["header"] });
        metadata["authorization_servers"] = match &self.authorization_servers[..] {
            [] => json!([format!("{origin}{issuer}")]),
            servers => json!(servers),
        };
        if !self.supported.is_empty() {
            metadata["scopes_supported"] = json!(self.supported);
        }
        if self.binds_tokens() {
            metadata["dpop_signing_alg_values_supported"] = json!(["ES256"]);
            metadata["dpop_bound_access_tokens_required"] = json!(true);
        }
        match &self.issuer {
            Some(issuer) => patched(metadata, &issuer.resource, origin),
            None => metadata,
        }
    }
}

/// The scheme of a token (RFC 6750, section 2.1; RFC 9449, section 7.1).
fn scheme_of(is_bound: bool) -> &'static str {
    if is_bound { "DPoP" } else { "Bearer" }
}

/// Whether a token is the expected one, in constant time for tokens of one length.
pub(crate) fn is_same(expected: &str, shown: &str) -> bool {
    let differs = expected.bytes().zip(shown.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) != 0;
    expected.len() == shown.len() && !differs
}

impl Challenge {
    /// The value of `WWW-Authenticate`. `metadata` is the path of the resource's metadata.
    pub fn header(&self, origin: &str, metadata: &str) -> String {
        let metadata = format!("{origin}{metadata}");
        if let Some(text) = &self.text {
            return challenge_text(text, origin, &metadata);
        }
        let error = self.error.map(|error| format!("error=\"{error}\", ")).unwrap_or_default();
        let scope = match self.scopes.is_empty() {
            true => String::new(),
            false => format!("scope=\"{}\", ", self.scopes.join(" ")),
        };
        let algorithms = if self.is_bound { "algs=\"ES256\", " } else { "" };
        format!("{} {error}{algorithms}{scope}resource_metadata=\"{metadata}\"", scheme_of(self.is_bound))
    }

    /// Whether the proof of the request lacks a nonce.
    pub fn wants_nonce(&self) -> bool {
        self.error == Some(NONCE_WANTED)
    }

    /// The reason in words.
    pub fn reason(&self) -> String {
        match self.error {
            None if self.is_bound => "a token with a proof is required".into(),
            None => "a bearer token is required".into(),
            Some(INVALID_TOKEN) if self.is_bound => "the token is not valid".into(),
            Some(INVALID_TOKEN) => "the bearer token is not valid".into(),
            Some(INVALID_PROOF) => "the proof is missing or not valid".into(),
            Some(NONCE_WANTED) => "the proof needs the nonce of this response".into(),
            Some(_) => format!("the bearer token lacks a scope; needed are {}", self.scopes.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::script::Script;
    use rehearse_document::Source;

    const SCRIPT: &str = "
auth:
  tokens: [{ token: reader, scopes: [read] }, { token: admin, scopes: [read, write] }, { token: unscoped }]
  scopes: [read]
  authorizationServers: ['https://auth.example']
tools: [{ name: t, scopes: [read, write], reply: x }]";

    fn authorize(value: Option<&'static str>) -> Result<Arc<Token>, Challenge> {
        let script = Script::parse(&Source::new("m", SCRIPT)).unwrap_or_else(|error| panic!("{error}"));
        let mut headers = HeaderMap::new();
        if let Some(value) = value {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
        }
        script.auth.expect("auth").authorize(&headers, |_| Err(INVALID_TOKEN))
    }

    #[test]
    fn a_token_that_is_missing_unknown_or_not_enough_is_challenged() {
        let challenge = |value| authorize(value).expect_err("refused");
        let header = |challenge: &Challenge| challenge.header("http://127.0.0.1", "/m");
        assert_eq!(challenge(None).status, 401);
        assert_eq!(header(&challenge(None)), "Bearer scope=\"read\", resource_metadata=\"http://127.0.0.1/m\"");
        for unknown in ["Bearer nope", "Basic cmVhZGVy", "reader", "Bearer", "Bearer reader extra"] {
            let challenge = challenge(Some(unknown));
            assert_eq!((challenge.status, challenge.error), (401, Some(INVALID_TOKEN)), "{unknown}");
        }
        let poor = challenge(Some("Bearer unscoped"));
        assert_eq!(poor.status, 403);
        assert_eq!(
            header(&poor),
            "Bearer error=\"insufficient_scope\", scope=\"read\", resource_metadata=\"http://127.0.0.1/m\""
        );
    }

    #[test]
    fn a_token_allows_what_its_scopes_cover() {
        let needed = ["read".to_owned(), "write".to_owned()];
        let reader = authorize(Some("bearer reader")).expect("accepted");
        assert_eq!(reader.allows(&needed).expect_err("refused").scopes, needed);
        assert_eq!(authorize(Some("Bearer admin")).expect("accepted").allows(&needed), Ok(()));
    }

    #[test]
    fn the_metadata_name_the_issuer_and_the_scopes() {
        let script = Script::parse(&Source::new("m", SCRIPT)).expect("valid");
        let expected = json!({
            "resource": "http://127.0.0.1/mcp",
            "bearer_methods_supported": ["header"],
            "authorization_servers": ["https://auth.example"],
            "scopes_supported": ["read", "write"],
        });
        assert_eq!(script.auth.expect("auth").metadata("http://127.0.0.1", "/mcp", ""), expected);
        let script = Script::parse(&Source::new("m", "auth: { tokens: [{ token: t }] }")).expect("valid");
        let own = script.auth.expect("auth").metadata("http://127.0.0.1", "/mcp", "");
        assert_eq!(own["authorization_servers"], json!(["http://127.0.0.1"]));
    }
}
