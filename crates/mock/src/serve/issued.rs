//! What the mock issues as an authorization server.
//!
//! Every authorization request is approved at once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use parking_lot::Mutex;
use ring::{
    digest::{SHA256, digest},
    hmac,
    rand::SystemRandom,
};
use serde_json::{Value as Json, json};
use url::{Url, form_urlencoded};

use super::proof::ProofContext;
use crate::script::{Dpop, INVALID_PROOF, INVALID_TOKEN, Issuer, Token, patched};

/// How many ids of proofs are remembered.
const PROOFS: usize = 10_000;

/// The lengths of a code verifier (RFC 7636, section 4.1).
const VERIFIER: std::ops::RangeInclusive<usize> = 43..=128;

/// What the mock has issued so far.
#[derive(Debug, Default)]
pub(super) struct Issued {
    state: Mutex<State>,
    /// Signs tokens. Strangers must not guess it.
    key: OnceLock<Option<hmac::Key>>,
    /// The ids of the proofs that were used.
    proofs: Mutex<HashSet<String>>,
}

#[derive(Debug, Default)]
struct State {
    clients: HashMap<String, Client>,
    codes: HashMap<String, Code>,
    tokens: HashMap<String, IssuedToken>,
    refresh_tokens: HashMap<String, Grant>,
    count: usize,
    /// How many issuers are no longer in charge.
    retired: usize,
}

/// A client that has registered itself.
#[derive(Debug)]
struct Client {
    issuer: usize,
    secret: Option<String>,
    redirect_uris: Vec<Url>,
}

/// What a token is issued for.
#[derive(Clone, Debug)]
struct Grant {
    issuer: usize,
    client: String,
    scopes: Vec<String>,
    /// The thumbprint of the key that the tokens are bound to.
    key: Option<String>,
    /// What the tokens are for.
    resource: Option<String>,
}

#[derive(Debug)]
struct Code {
    grant: Grant,
    redirect_uri: String,
    challenge: String,
}

#[derive(Debug)]
struct IssuedToken {
    token: Arc<Token>,
    issuer: usize,
    used: usize,
    key: Option<String>,
}

/// The parameters of a query or a form.
pub(super) struct Params(HashMap<String, String>);

/// An error response (RFC 6749, section 5.2; RFC 7591, section 3.2.2).
pub(super) type Refused = (StatusCode, String);

impl Issued {
    /// The path of the issuer that is in charge.
    pub(super) fn current<'i>(&self, issuer: &'i Issuer) -> &'i str {
        let last = issuer.paths.len().saturating_sub(1);
        issuer.paths.get(self.state.lock().retired.min(last)).map_or("", String::as_str)
    }

    /// The token with this text, if it is still good; `prove` checks the proof for the key that it is bound to.
    ///
    /// # Errors
    /// The error code.
    pub(super) fn use_token(
        &self,
        text: &str,
        issuer: &Issuer,
        prove: impl FnOnce(&str) -> Result<(), &'static str>,
    ) -> Result<Arc<Token>, &'static str> {
        let mut state = self.state.lock();
        let retired = state.retired;
        let is_last = retired > 0 && retired + 1 >= issuer.paths.len();
        let known = state.tokens.get_mut(text).ok_or(INVALID_TOKEN)?;
        if known.issuer < retired.min(issuer.paths.len().saturating_sub(1)) {
            return Err(INVALID_TOKEN);
        }
        known.key.as_deref().map_or(Ok(()), prove)?;
        known.used += 1;
        if !is_last && issuer.expire_after.is_some_and(|uses| known.used > uses) {
            state.tokens.remove(text);
            state.retired += usize::from(issuer.paths.len() > 1);
            return Err(INVALID_TOKEN);
        }
        Ok(known.token.clone())
    }

    /// Checks that a request comes with a new proof for this key.
    ///
    /// # Errors
    /// The error code.
    pub(super) fn check_proof(
        &self,
        headers: &HeaderMap,
        proof: &ProofContext<'_>,
        key: &str,
    ) -> Result<(), &'static str> {
        match self.prove(headers, proof)? == key {
            true => Ok(()),
            false => Err(INVALID_TOKEN),
        }
    }

    /// A JSON Web Token with these claims (RFC 9068, section 2); `None` if the system has no randomness.
    fn sign(&self, claims: &Json) -> Option<String> {
        let key =
            self.key.get_or_init(|| hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()).as_ref()?;
        let part = |value: &Json| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({ "typ": "at+jwt", "alg": "HS256" })), part(claims));
        let signature = BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(key, signed.as_bytes()));
        Some(format!("{signed}.{signature}"))
    }

    /// The key of a proof that was not used before.
    fn prove(&self, headers: &HeaderMap, proof: &ProofContext<'_>) -> Result<String, &'static str> {
        let proven = proof.verify(headers)?;
        let mut proofs = self.proofs.lock();
        if proofs.len() == PROOFS {
            proofs.clear();
        }
        if proofs.insert(proven.id) { Ok(proven.key) } else { Err(INVALID_PROOF) }
    }
}

/// One of the issuers.
pub(super) struct NumberedIssuer<'i> {
    pub(super) issuer: &'i Issuer,
    pub(super) number: usize,
    pub(super) origin: &'i str,
}

impl NumberedIssuer<'_> {
    fn metadata(&self) -> Json {
        let path = self.issuer.paths.get(self.number).map_or("", String::as_str);
        self.issuer.metadata(self.origin, path, &[], false)
    }

    /// The secret of a client; `None` if the client is not known.
    fn client(&self, state: &State, id: &str) -> Option<Option<String>> {
        if let Some((_, secret)) = self.issuer.clients.iter().find(|(known, _)| known == id) {
            return Some(secret.clone());
        }
        if let Some(client) = state.clients.get(id) {
            return (client.issuer == self.number).then(|| client.secret.clone());
        }
        let takes_documents = self.metadata()["client_id_metadata_document_supported"] == true;
        let is_document = Url::parse(id).is_ok_and(|url| url.scheme() == "https" && url.path() != "/");
        (takes_documents && is_document).then_some(None)
    }

    /// Where an authorization request is redirected to (RFC 6749, section 4.1.2).
    ///
    /// # Errors
    /// The client is not known, or the redirect URI is not one of its own: the user is not redirected.
    pub(super) fn authorize(&self, issued: &Issued, params: &Params) -> Result<Url, &'static str> {
        let state = &mut *issued.state.lock();
        let id = params.get("client_id");
        self.client(state, id).ok_or("the client is not registered here")?;
        let mut location = Url::parse(params.get("redirect_uri")).map_err(|_| "there is no redirect URI")?;
        if let Some(client) = state.clients.get(id)
            && !client.redirect_uris.iter().any(|uri| is_same_redirect(uri, &location))
        {
            return Err("the redirect URI is not registered");
        }
        let is_valid = params.get("response_type") == "code"
            && params.get("code_challenge_method") == "S256"
            && !params.get("code_challenge").is_empty();
        let mut response = json!({});
        if is_valid {
            state.count += 1;
            let code = format!("code-{}", state.count);
            response["code"] = json!(code);
            let scopes = params.get("scope").split_ascii_whitespace().map(str::to_owned).collect();
            let resource = params.0.get("resource").cloned();
            let grant = Grant { issuer: self.number, client: id.to_owned(), scopes, key: None, resource };
            let redirect_uri = params.get("redirect_uri").to_owned();
            let challenge = params.get("code_challenge").to_owned();
            state.codes.insert(code, Code { grant, redirect_uri, challenge });
        } else {
            response["error"] = json!("invalid_request");
        }
        if params.0.contains_key("state") {
            response["state"] = json!(params.get("state"));
        }
        let metadata = self.metadata();
        if metadata["authorization_response_iss_parameter_supported"] == true {
            response["iss"] = metadata["issuer"].clone();
        }
        let response = patched(response, &self.issuer.response, self.origin);
        let members = response.as_object().into_iter().flatten();
        location.query_pairs_mut().extend_pairs(members.filter_map(|(name, value)| Some((name, value.as_str()?))));
        Ok(location)
    }

    /// The client as it is registered (RFC 7591, section 3.2.1).
    pub(super) fn register(&self, issued: &Issued, body: &Bytes) -> Result<Json, Refused> {
        let state = &mut *issued.state.lock();
        if let Some(error) = &self.issuer.fail_register {
            return Err(bad(error));
        }
        let mut client: Json = serde_json::from_slice(body).map_err(|_| bad("invalid_client_metadata"))?;
        let uris = client["redirect_uris"].as_array().ok_or_else(|| bad("invalid_redirect_uri"))?;
        let uris = uris.iter().map(|uri| Url::parse(uri.as_str().unwrap_or_default()));
        let redirect_uris: Vec<Url> = uris.collect::<Result<_, _>>().map_err(|_| bad("invalid_redirect_uri"))?;
        // 2026-07-28, Communication Security.
        if redirect_uris.iter().any(|uri| uri.scheme() == "http" && !is_loopback(uri)) {
            return Err(bad("invalid_redirect_uri"));
        }
        let metadata = self.metadata();
        let supported = metadata["token_endpoint_auth_methods_supported"].as_array().cloned().unwrap_or_default();
        let wanted = client.get("token_endpoint_auth_method").cloned().unwrap_or_else(|| json!("client_secret_basic"));
        let is_supported = supported.is_empty() || supported.contains(&wanted);
        let method = if is_supported { wanted } else { supported.first().cloned().unwrap_or_default() };
        state.count += 1;
        let id = format!("client-{}", state.count);
        let secret = (method != "none").then(|| format!("secret/{}", state.count));
        client["client_id"] = json!(id);
        client["token_endpoint_auth_method"] = method;
        if let Some(secret) = &secret {
            client["client_secret"] = json!(secret);
            client["client_secret_expires_at"] = json!(0);
        }
        state.clients.insert(id, Client { issuer: self.number, secret, redirect_uris });
        Ok(client)
    }

    /// The id of the client, and its secret if it has one.
    ///
    /// # Errors
    /// The client is not known, or does not show its secret.
    fn authenticate(
        &self,
        state: &State,
        headers: &HeaderMap,
        params: &Params,
    ) -> Result<(String, Option<String>), Refused> {
        let unknown = || (StatusCode::UNAUTHORIZED, "invalid_client".to_owned());
        let (id, shown) = credentials(headers, params).ok_or_else(unknown)?;
        match self.client(state, &id).ok_or_else(unknown)? {
            Some(secret) if shown.as_ref() != Some(&secret) => Err(unknown()),
            secret => Ok((id, secret)),
        }
    }

    /// Revokes a token of the client; one that is not known is no error (RFC 7009, section 2.2).
    ///
    /// # Errors
    /// The client is not known, or does not show its secret.
    pub(super) fn revoke(&self, issued: &Issued, headers: &HeaderMap, params: &Params) -> Result<(), Refused> {
        let state = &mut *issued.state.lock();
        let (id, _) = self.authenticate(state, headers, params)?;
        let token = params.get("token");
        if state.refresh_tokens.get(token).is_some_and(|grant| grant.client == id) {
            state.refresh_tokens.remove(token);
        }
        state.tokens.remove(token);
        Ok(())
    }

    /// The response of the token endpoint (RFC 6749, section 5.1).
    pub(super) fn token(
        &self,
        issued: &Issued,
        headers: &HeaderMap,
        params: &Params,
        default_scopes: &[String],
        proof: &ProofContext<'_>,
    ) -> Result<Json, Refused> {
        let state = &mut *issued.state.lock();
        let (id, secret) = self.authenticate(state, headers, params)?;
        if let Some(error) = &self.issuer.fail_token {
            return Err(bad(error));
        }
        let key = match self.issuer.dpop {
            Dpop::Off => None,
            Dpop::Proof | Dpop::Nonce => Some(issued.prove(headers, proof).map_err(bad)?),
        };
        let invalid = || bad("invalid_grant");
        let mut grant = match params.get("grant_type") {
            "authorization_code" => {
                let code = state.codes.remove(params.get("code")).ok_or_else(invalid)?;
                let verifier = digest(&SHA256, params.get("code_verifier").as_bytes());
                let is_right = BASE64_URL_SAFE_NO_PAD.encode(verifier) == code.challenge
                    && VERIFIER.contains(&params.get("code_verifier").len())
                    && params.get("redirect_uri") == code.redirect_uri
                    && code.grant.client == id
                    && code.grant.issuer == self.number;
                if is_right { code.grant } else { return Err(invalid()) }
            }
            "refresh_token" => {
                let grant = state.refresh_tokens.remove(params.get("refresh_token")).ok_or_else(invalid)?;
                // The refresh token of a public client is bound as well (RFC 9449, section 5).
                let is_its_own = grant.client == id && (secret.is_some() || grant.key == key);
                if is_its_own && grant.issuer == self.number { grant } else { return Err(invalid()) }
            }
            "client_credentials" if secret.is_some() => {
                let scopes = params.get("scope").split_ascii_whitespace().map(str::to_owned).collect();
                Grant { issuer: self.number, client: id.clone(), scopes, key: None, resource: None }
            }
            _ => return Err(bad("unsupported_grant_type")),
        };
        grant.key = key;
        grant.resource = params.0.get("resource").cloned().or(grant.resource);
        state.count += 1;
        // All the characters that a token may have.
        let name = |kind: &str| {
            let port = self.origin.rsplit(':').next().unwrap_or_default();
            format!("{kind}.{}-{}_~+/==", port.trim_start_matches('/'), state.count)
        };
        let (mut text, refresh) = (name("rehearse"), name("refresh"));
        let scopes = match &self.issuer.grant {
            Some(scopes) => scopes,
            None if grant.scopes.is_empty() => default_scopes,
            None => &grant.scopes,
        };
        if self.issuer.jwt {
            let issuer = &self.metadata()["issuer"];
            let claims = json!({
                "iss": issuer, "sub": "user", "aud": grant.resource, "client_id": id, "jti": text, "scope": scopes.join(" "),
            });
            text = issued.sign(&claims).ok_or_else(|| bad("server_error"))?;
        }
        let kind = if grant.key.is_some() { "DPoP" } else { "Bearer" };
        let mut response = json!({ "access_token": text, "token_type": kind, "expires_in": 3600 });
        if !scopes.is_empty() {
            response["scope"] = json!(scopes.join(" "));
        }
        if params.get("grant_type") != "client_credentials" {
            response["refresh_token"] = json!(refresh);
        }
        let response = patched(response, &self.issuer.token, self.origin);
        let text = response["access_token"].as_str().unwrap_or_default();
        let token = Arc::new(Token::issued(text, scopes, grant.key.is_some()));
        let token = IssuedToken { token, issuer: self.number, used: 0, key: grant.key.clone() };
        state.tokens.insert(text.to_owned(), token);
        state.refresh_tokens.insert(refresh, grant);
        Ok(response)
    }
}

impl Params {
    pub(super) fn parse(text: &[u8]) -> Params {
        Params(form_urlencoded::parse(text).into_owned().collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// The id and the secret that a client shows (RFC 6749, section 2.3.1).
fn credentials(headers: &HeaderMap, params: &Params) -> Option<(String, Option<String>)> {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(basic) = header.and_then(|value| value.strip_prefix("Basic ")) else {
        let secret = params.0.get("client_secret").cloned();
        return Some((params.0.get("client_id")?.clone(), secret));
    };
    let pair = String::from_utf8(BASE64_STANDARD.decode(basic).ok()?).ok()?;
    let (id, secret) = pair.split_once(':')?;
    let decoded = |text: &str| form_urlencoded::parse(text.as_bytes()).next().map(|(text, _)| text.into_owned());
    Some((decoded(id)?, decoded(secret)))
}

fn is_loopback(url: &Url) -> bool {
    matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"))
}

/// Whether a redirect URI is a registered one. The port of a loopback address is free (RFC 8252, section 7.3).
fn is_same_redirect(registered: &Url, used: &Url) -> bool {
    let mut used = used.clone();
    if is_loopback(registered) {
        let _ = used.set_port(registered.port());
    }
    *registered == used
}

fn bad(error: &str) -> Refused {
    (StatusCode::BAD_REQUEST, error.to_owned())
}
