//! Keys that sign JSON Web Tokens, and client authentication with a signature (RFC 7523, section 3; SEP-1046).

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};

use super::{AuthError, Secret, pkce::unguessable};

const LIFE: Duration = Duration::from_secs(300);

/// A private key for `ES256` (RFC 7518, section 3.4).
pub struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    /// Reads a key for P-256 from PKCS #8 in PEM.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] if it is not such a key.
    pub fn from_pem(text: &str) -> Result<SigningKey, AuthError> {
        let wrong = || AuthError::Invalid("the key is not a PKCS #8 key for P-256 in PEM".to_owned());
        let body = text.split_once("-----BEGIN PRIVATE KEY-----").and_then(|(_, rest)| rest.split_once("-----END"));
        let body: String = body.ok_or_else(wrong)?.0.split_ascii_whitespace().collect();
        SigningKey::from_base64(&body).ok_or_else(wrong)
    }

    /// A new key as it is stored: PKCS #8 in Base64.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] if the system has no randomness.
    pub(super) fn generate() -> Result<Secret, AuthError> {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let key = key.map_err(|_| AuthError::Invalid("no key can be made".to_owned()))?;
        Ok(Secret::new(BASE64_STANDARD.encode(key.as_ref())))
    }

    /// Reads a stored key.
    pub(super) fn from_base64(text: &str) -> Option<SigningKey> {
        let bytes = BASE64_STANDARD.decode(text).ok()?;
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &bytes, &SystemRandom::new()).ok().map(SigningKey)
    }

    /// The public part (RFC 7518, section 6.2.1).
    pub(super) fn jwk(&self) -> Value {
        // The point is not compressed: 4, x, y.
        let (x, y) = self.0.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(|number| BASE64_URL_SAFE_NO_PAD.encode(number));
        json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y })
    }

    /// An assertion of the client for this issuer, which is valid for five minutes.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] if the key cannot sign.
    pub(super) fn assertion(&self, client: &str, issuer: &str) -> Result<String, AuthError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = json!({ "alg": "ES256", "typ": "JWT" });
        let claims = json!({
            "iss": client,
            "sub": client,
            "aud": issuer,
            "jti": unguessable(),
            "iat": now.as_secs(),
            "exp": (now + LIFE).as_secs(),
        });
        self.sign(&header, &claims)
    }

    /// A signed token with these claims (RFC 7515, section 7.1).
    ///
    /// # Errors
    /// [`AuthError::Invalid`] if the key cannot sign.
    pub(super) fn sign(&self, header: &Value, claims: &Value) -> Result<String, AuthError> {
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|_| AuthError::Invalid("the key does not sign".to_owned()))?;
        Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl PartialEq for SigningKey {
    fn eq(&self, other: &SigningKey) -> bool {
        self.0.public_key().as_ref() == other.0.public_key().as_ref()
    }
}

impl Eq for SigningKey {}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(***)")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    /// A new key in PEM.
    pub(crate) fn pem() -> String {
        let key = SigningKey::generate().expect("a key");
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", key.reveal())
    }

    #[test]
    fn an_assertion_is_signed_and_has_issuer_audience_and_lifetime() {
        let key = SigningKey::from_pem(&pem()).expect("a key");
        let token = key.assertion("me", "https://as").expect("a token");
        let (signed, signature) = token.rsplit_once('.').expect("three parts");
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).expect("Base64");
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.0.public_key().as_ref().to_vec());
        assert!(public.verify(signed.as_bytes(), &signature).is_ok());
        let (_, claims) = signed.split_once('.').expect("two parts");
        let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).expect("Base64");
        let claims: serde_json::Value = serde_json::from_slice(&claims).expect("JSON");
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"]),
            (&json!("me"), &json!("me"), &json!("https://as"))
        );
        let life = claims["exp"].as_u64().zip(claims["iat"].as_u64()).map(|(end, start)| end - start);
        assert_eq!(life, Some(300));
    }

    #[test]
    fn an_invalid_key_is_reported_without_its_text() {
        for text in ["", "secret", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----"] {
            let error = SigningKey::from_pem(text).expect_err("no key").to_string();
            assert_eq!(error, "the key is not a PKCS #8 key for P-256 in PEM");
        }
    }
}
