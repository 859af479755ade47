//! Signed request state, digests of requests, and unguessable names.
//!
//! 2026-07-28, Multi Round-Trip Requests, Server Requirements 4 and 5: `requestState` comes back from the client, so
//! its integrity is protected, and it says for which request it was made. Anyone with the key can forge everything
//! here; it is secret unless the user sets a seed ([`Seed`](super::Seed)).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{digest::SHA256, hmac};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Number, Value as Json};

/// The keys of one mock, derived from a single key.
pub(super) struct RequestStateSigner {
    state: hmac::Key,
    names: hmac::Key,
}

/// The reason why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureError {
    /// The token is malformed, or its payload has another type.
    #[error("it is malformed")]
    Malformed,
    /// The signature is not that of the payload.
    #[error("its signature is wrong")]
    Tampered,
}

impl RequestStateSigner {
    pub(super) fn new(key: &[u8]) -> RequestStateSigner {
        let root = hmac::Key::new(hmac::HMAC_SHA256, key);
        // One key for each purpose, so that no name is ever a valid signature.
        let key = |purpose: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&root, purpose).as_ref());
        RequestStateSigner { state: key(b"state"), names: key(b"names") }
    }

    /// A token that holds the payload, readable but signed. A payload that JSON cannot express (an object whose keys
    /// are not strings) produces a token that is never valid.
    pub(super) fn sign(&self, payload: &impl Serialize) -> String {
        let mut token = BASE64.encode(serde_json::to_vec(payload).unwrap_or_default());
        let signature = hmac::sign(&self.state, token.as_bytes());
        token.push('.');
        BASE64.encode_string(signature, &mut token);
        token
    }

    /// The payload of a token from [`RequestStateSigner::sign`]. Signatures are compared in constant time.
    ///
    /// # Errors
    /// The token is malformed, was changed, or is signed with another key.
    pub(super) fn verify<T: DeserializeOwned>(&self, token: &str) -> Result<T, SignatureError> {
        let (payload, signature) = token.split_once('.').ok_or(SignatureError::Malformed)?;
        let signature = BASE64.decode(signature).map_err(|_| SignatureError::Malformed)?;
        hmac::verify(&self.state, payload.as_bytes(), &signature).map_err(|_| SignatureError::Tampered)?;
        let payload = BASE64.decode(payload).map_err(|_| SignatureError::Malformed)?;
        serde_json::from_slice(&payload).map_err(|_| SignatureError::Malformed)
    }

    /// An unguessable name of 32 hexadecimal digits, such as the id of a task: the same for
    /// the same `what` and `number`, and another for every other.
    pub(super) fn unguessable(&self, what: &str, number: u64) -> String {
        let mut context = hmac::Context::with_key(&self.names);
        context.update(&number.to_le_bytes());
        context.update(what.as_bytes());
        hex(&context.sign().as_ref()[..16])
    }
}

impl std::fmt::Debug for RequestStateSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestStateSigner")
    }
}

/// The SHA-256 of the parts as 64 hexadecimal digits. The order of the members of an object does not matter, nor how a
/// number is written: `1`, `1.0` and `1e0` are equal.
pub(super) fn digest(parts: &[&Json]) -> String {
    let mut text = String::new();
    for part in parts {
        // Complete JSON values on separate lines cannot be confused.
        write_canonical(part, &mut text);
        text.push('\n');
    }
    hex(ring::digest::digest(&SHA256, text.as_bytes()).as_ref())
}

fn write_canonical(value: &Json, text: &mut String) {
    match value {
        Json::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in members {
                text.push_str(&Json::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Json::Number(number) => text.push_str(&canonical(number)),
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// Whole numbers that a double holds exactly are written without a fraction.
fn canonical(number: &Number) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float.fract() == 0.0 && float.abs() <= EXACT => format!("{:.0}", float + 0.0),
        _ => number.to_string(),
    }
}

/// Lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rehearse_testing::table;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signed_state_is_valid_with_the_same_key_only() {
        let payload =
            json!({ "method": "tools/call", "step": 3, "until": 1_700_000_000_000_u64, "bound": { "guest": null } });
        let token = RequestStateSigner::new(&[1]).sign(&payload);
        assert_eq!(RequestStateSigner::new(&[1]).verify::<Json>(&token), Ok(payload.clone()));
        assert_eq!(RequestStateSigner::new(&[1]).sign(&payload), token);
        assert_eq!(RequestStateSigner::new(&[2]).verify::<Json>(&token), Err(SignatureError::Tampered));
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{token}");
    }

    #[test]
    fn every_changed_byte_of_a_token_is_noticed() {
        let signer = RequestStateSigner::new(&[7]);
        let token = signer.sign(&json!({ "step": 1 }));
        for index in 0..token.len() {
            for replacement in ["A", "B", "", "AA", ".", "="] {
                let mut changed = token.clone();
                changed.replace_range(index..=index, replacement);
                let opened = signer.verify::<Json>(&changed);
                assert!(changed == token || opened.is_err(), "{changed}");
            }
        }
        assert_eq!(signer.verify::<Json>(&format!("{token}-TAMPERED")), Err(SignatureError::Tampered));
        let (payload, signature) = token.split_once('.').expect("a dot");
        assert_eq!(signer.verify::<Json>(&format!("{payload}x.{signature}")), Err(SignatureError::Tampered));
        let other = signer.sign(&json!({ "step": 2 }));
        let (other, _) = other.split_once('.').expect("a dot");
        assert_eq!(signer.verify::<Json>(&format!("{other}.{signature}")), Err(SignatureError::Tampered));
    }

    #[test]
    fn an_invalid_token_is_malformed() {
        let signer = RequestStateSigner::new(&[7]);
        for token in ["", ".", "a", "e30", "e30.***", "e30.e30="] {
            let error = signer.verify::<Json>(token).expect_err(token);
            assert_eq!(
                error,
                if token == "." { SignatureError::Tampered } else { SignatureError::Malformed },
                "{token}"
            );
        }
        assert_eq!(signer.verify::<u64>(&signer.sign(&"text")), Err(SignatureError::Malformed));
        let no_json = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert_eq!(signer.verify::<Json>(&signer.sign(&no_json)), Err(SignatureError::Malformed));
    }

    #[test]
    fn the_digest_ignores_the_order_of_members_and_the_spelling_of_numbers_only() {
        let value = |text: &str| serde_json::from_str::<Json>(text).expect(text);
        let same = [
            r#"{"a":1,"b":[{"x":1e2,"y":-0.0}],"c":9007199254740992}"#,
            r#"{"c":9007199254740992.0,"b":[{"y":0,"x":100}],"a":1.0}"#,
        ];
        assert_eq!(digest(&[&value(same[0])]), digest(&[&value(same[1])]));
        let different = table::rows(include_str!("signer.txt"), "values");
        let digests: std::collections::HashSet<_> = different.iter().map(|[text]| digest(&[&value(text)])).collect();
        assert_eq!(digests.len(), different.len());
        assert_ne!(digest(&[&json!(1), &json!(2)]), digest(&[&json!(12)]));
        assert_ne!(digest(&[&json!("a"), &json!("b")]), digest(&[&json!("b"), &json!("a")]));
        assert_ne!(digest(&[&json!(null), &json!("b")]), digest(&[&json!("b")]));
    }

    #[test]
    fn digests_are_sha256() {
        assert_eq!(digest(&[]), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hex(&[0, 0x1f, 0xf1, 0xff]), "001ff1ff");
    }

    #[test]
    fn names_are_the_same_for_the_same_key_and_number_only() {
        let name = |key: u8, what: &str, number| RequestStateSigner::new(&[key]).unguessable(what, number);
        assert_eq!(name(1, "task", 1), name(1, "task", 1));
        let all = [name(1, "task", 1), name(1, "task", 2), name(1, "session", 1), name(2, "task", 1)];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        for name in &all {
            assert!(name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_token_makes_opening_panic(token in "\\PC{0,20}(\\.\\PC{0,20})?") {
            prop_assert!(RequestStateSigner::new(&[1]).verify::<Json>(&token).is_err());
        }
    }
}
