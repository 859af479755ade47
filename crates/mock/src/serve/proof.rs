//! Proofs that a client has the key that its token is bound to (RFC 9449).

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{HeaderMap, Method};
use ring::{
    digest::{SHA256, digest},
    signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey},
};
use serde_json::Value as Json;
use url::Url;

use crate::script::{INVALID_PROOF, NONCE_WANTED};

/// How many seconds the clocks may differ (SEP-1932).
const WINDOW: u64 = 300;

/// What a proof must be about.
pub(super) struct ProofContext<'a> {
    pub(super) method: &'a Method,
    /// The URL of the request, without its query.
    pub(super) url: &'a str,
    /// The access token that comes with it.
    pub(super) token: Option<&'a str>,
    /// The nonce that it must have.
    pub(super) nonce: Option<&'a str>,
}

/// What a proof shows.
pub(super) struct Proven {
    /// The thumbprint of the key (RFC 7638).
    pub(super) key: String,
    /// The id of the proof, which no other one may have.
    pub(super) id: String,
}

impl ProofContext<'_> {
    /// Checks the proof in the headers of a request (section 4.3).
    ///
    /// # Errors
    /// The error code: the proof is missing or wrong, or lacks the nonce.
    pub(super) fn verify(&self, headers: &HeaderMap) -> Result<Proven, &'static str> {
        let mut proofs = headers.get_all("dpop").iter();
        let (Some(proof), None) = (proofs.next(), proofs.next()) else { return Err(INVALID_PROOF) };
        let proof = proof.to_str().map_err(|_| INVALID_PROOF)?;
        let (proven, nonce) = self.read(proof).ok_or(INVALID_PROOF)?;
        match self.nonce {
            Some(wanted) if nonce.as_deref() != Some(wanted) => Err(NONCE_WANTED),
            _ => Ok(proven),
        }
    }

    /// What a valid proof shows, and its nonce.
    fn read(&self, proof: &str) -> Option<(Proven, Option<String>)> {
        let (signed, signature) = proof.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let [header, claims]: [Json; 2] = [json(header)?, json(claims)?];
        let jwk = &header["jwk"];
        let is_ours = header["typ"] == "dpop+jwt" && header["alg"] == "ES256" && jwk["kty"] == "EC";
        if !is_ours || jwk["crv"] != "P-256" || !jwk["d"].is_null() {
            return None;
        }
        let (x, y) = (jwk["x"].as_str()?, jwk["y"].as_str()?);
        let point = [vec![4], decoded(x)?, decoded(y)?].concat();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        public.verify(signed.as_bytes(), &decoded(signature)?).ok()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let is_about_request = claims["htm"] == self.method.as_str()
            && Url::parse(claims["htu"].as_str()?).ok()? == Url::parse(self.url).ok()?
            && claims["iat"].as_u64()?.abs_diff(now) <= WINDOW;
        let is_about_token = self.token.is_none_or(|token| claims["ath"] == hash(token));
        if !is_about_request || !is_about_token {
            return None;
        }
        let key = hash(&format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#));
        let id = claims["jti"].as_str()?.to_owned();
        Some((Proven { key, id }, claims["nonce"].as_str().map(str::to_owned)))
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

fn json(part: &str) -> Option<Json> {
    serde_json::from_slice(&decoded(part)?).ok()
}

fn hash(text: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
    };
    use serde_json::json;

    use super::*;

    /// The headers of a request with a proof, whose header and claims are changed before it is signed.
    fn headers(change: impl Fn(&mut Json, &mut Json)) -> HeaderMap {
        let random = SystemRandom::new();
        let stored = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, stored.as_ref(), &random).expect("a key");
        let (x, y) = key.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(|number| BASE64_URL_SAFE_NO_PAD.encode(number));
        let jwk = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
        let mut header = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": jwk });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
        let mut claims = json!({
            "jti": "1", "htm": "POST", "htu": "http://h/mcp", "iat": now, "ath": hash("secret"), "nonce": "n",
        });
        change(&mut header, &mut claims);
        let part = |json: &Json| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = key.sign(&random, signed.as_bytes()).expect("signs");
        let proof = format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
        HeaderMap::from_iter([("dpop".parse().expect("a name"), proof.parse().expect("a value"))])
    }

    fn verify(headers: &HeaderMap) -> Result<Proven, &'static str> {
        let (url, token, nonce) = ("http://h/mcp", Some("secret"), Some("n"));
        ProofContext { method: &Method::POST, url, token, nonce }.verify(headers)
    }

    #[test]
    fn a_proof_is_refused_for_each_thing_that_is_wrong_with_it() {
        assert_eq!(verify(&headers(|_, _| {})).map(|proven| proven.id), Ok("1".to_owned()));
        let header = |pointer: &'static str, value: Json| headers(move |header, _| set(header, pointer, &value));
        let claim = |pointer: &'static str, value: Json| headers(move |_, claims| set(claims, pointer, &value));
        for wrong in [
            header("/typ", json!("jwt")),
            header("/alg", json!("none")),
            header("/jwk/kty", json!("RSA")),
            header("/jwk/crv", json!("P-384")),
            header("/jwk/d", json!("private")),
            // The signature is not of this key.
            header("/jwk/x", json!(BASE64_URL_SAFE_NO_PAD.encode([1; 32]))),
            claim("/htm", json!("GET")),
            claim("/htu", json!("http://h/other")),
            claim("/iat", json!(1)),
            claim("/ath", json!(hash("other"))),
            claim("/jti", Json::Null),
            HeaderMap::new(),
        ] {
            assert_eq!(verify(&wrong).err(), Some(INVALID_PROOF), "{wrong:?}");
        }
        let mut two = headers(|_, _| {});
        two.append("dpop", two["dpop"].clone());
        assert_eq!(verify(&two).err(), Some(INVALID_PROOF));
        assert_eq!(verify(&claim("/nonce", json!("old"))).err(), Some(NONCE_WANTED));
        assert_eq!(verify(&claim("/nonce", Json::Null)).err(), Some(NONCE_WANTED));
    }

    fn set(json: &mut Json, pointer: &str, value: &Json) {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        json.pointer_mut(parent).expect("an object")[name] = value.clone();
    }
}
