//! Proofs that a request comes from the client that a token was issued to (RFC 9449; MCP extension DPoP, SEP-1932).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use reqwest::{
    Method, Url,
    header::{HeaderMap, HeaderValue},
};
use ring::digest::{SHA256, digest};
use serde_json::json;

use super::{AuthError, Secret, SigningKey, pkce::unguessable};

/// The header of a proof.
pub(crate) const PROOF: &str = "dpop";
/// The header in which a server gives a nonce (section 8.1).
pub(super) const NONCE: &str = "dpop-nonce";
/// The error of a request whose proof needs a nonce (sections 8 and 9).
pub(super) const NONCE_WANTED: &str = "use_dpop_nonce";
/// The algorithm of our proofs.
pub(super) const ALGORITHM: &str = "ES256";

/// The last nonce of the server of a token. No other server gets it (section 8).
pub(super) type LastNonce = Arc<Mutex<Option<String>>>;

/// Makes the proofs of the requests with a token.
#[derive(Debug)]
pub(crate) struct Prover {
    key: SigningKey,
    token: Secret,
    nonce: LastNonce,
}

impl Prover {
    /// `None` if the stored key cannot be read.
    pub(super) fn new(key: &Secret, token: &Secret, nonce: LastNonce) -> Option<Prover> {
        Some(Prover { key: SigningKey::from_base64(key.reveal())?, token: token.clone(), nonce })
    }

    /// The proof of one request. Each request has its own, also a repeated one.
    pub(crate) fn proof(&self, method: &Method, url: &Url) -> Option<HeaderValue> {
        let nonce = self.nonce.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let proof = proof(&self.key, method, url, Some(&self.token), nonce.as_deref()).ok()?;
        HeaderValue::from_str(&proof).ok()
    }

    /// Keeps the nonce of a response, if it has one, for the next proofs (sections 8.2 and 9).
    pub(crate) fn keep_nonce(&self, headers: &HeaderMap) {
        if let Some(nonce) = nonce_of(headers) {
            *self.nonce.lock().unwrap_or_else(PoisonError::into_inner) = Some(nonce);
        }
    }
}

/// The nonce of a response.
pub(super) fn nonce_of(headers: &HeaderMap) -> Option<String> {
    Some(headers.get(NONCE)?.to_str().ok()?.to_owned())
}

/// Whether these algorithms have ours.
pub(super) fn is_supported(algorithms: Option<&[String]>) -> bool {
    algorithms.is_some_and(|all| all.iter().any(|algorithm| algorithm == ALGORITHM))
}

/// A proof (section 4.2).
///
/// # Errors
/// [`AuthError::Invalid`] if the key cannot sign.
pub(super) fn proof(
    key: &SigningKey,
    method: &Method,
    url: &Url,
    token: Option<&Secret>,
    nonce: Option<&str>,
) -> Result<String, AuthError> {
    let header = json!({ "typ": "dpop+jwt", "alg": ALGORITHM, "jwk": key.jwk() });
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut claims = json!({ "jti": unguessable(), "htm": method.as_str(), "htu": target(url), "iat": now.as_secs() });
    if let Some(token) = token {
        claims["ath"] = json!(BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, token.reveal().as_bytes())));
    }
    if let Some(nonce) = nonce {
        claims["nonce"] = json!(nonce);
    }
    key.sign(&header, &claims)
}

/// The URL of a request without query and fragment. A WebSocket begins with a request over HTTP.
fn target(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for URLs without a host.
    let _ = (url.set_username(""), url.set_password(None));
    let text = url.to_string();
    if text.starts_with("ws") { text.replacen("ws", "http", 1) } else { text }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    fn decoded(part: &str) -> Vec<u8> {
        BASE64_URL_SAFE_NO_PAD.decode(part).expect("Base64")
    }

    #[test]
    fn a_proof_is_signed_and_is_about_one_request_and_one_token() {
        let (key, token) = (SigningKey::generate().expect("a key"), Secret::new("secret"));
        let prover = Prover::new(&key, &token, LastNonce::default()).expect("a key");
        let url = "wss://user:word@h/mcp?key=1#x".parse().expect("a URL");
        let made = || prover.proof(&Method::GET, &url).expect("a proof").to_str().expect("text").to_owned();
        let claims = |proof: &str| -> Value {
            serde_json::from_slice(&decoded(proof.split('.').nth(1).expect("parts"))).expect("JSON")
        };
        let first = made();
        let (signed, signature) = first.rsplit_once('.').expect("parts");
        let header: Value = serde_json::from_slice(&decoded(signed.split('.').next().expect("parts"))).expect("JSON");
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        let [x, y] = ["x", "y"].map(|name| decoded(header["jwk"][name].as_str().expect("a number")));
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, [vec![4], x, y].concat());
        assert!(public.verify(signed.as_bytes(), &decoded(signature)).is_ok());
        // The SHA-256 of `secret`.
        let ath = "K7gNU3sdo-OL0wNhqoVWhr3g6s1xYv72ol_pe_Unols";
        let (claimed, again) = (claims(&first), claims(&made()));
        assert_eq!([&claimed["htm"], &claimed["htu"], &claimed["ath"]], ["GET", "https://h/mcp", ath]);
        assert_ne!(claimed["jti"], again["jti"]);
        assert!(claimed["iat"].as_u64().is_some() && claimed["nonce"].is_null());
        prover.keep_nonce(&[(NONCE.parse().expect("a name"), HeaderValue::from_static("n1"))].into_iter().collect());
        prover.keep_nonce(&HeaderMap::new());
        assert_eq!(claims(&made())["nonce"], "n1");
    }
}
