//! Proof Key for Code Exchange (RFC 7636), and other random strings.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::Rng;
use ring::digest::{SHA256, digest};

use super::Secret;

/// The secret that proves at the token endpoint who requested the code.
#[derive(Clone, Debug)]
pub(super) struct Verifier(Secret);

impl Verifier {
    /// A new verifier of 256 bits (RFC 7636, section 4.1).
    pub(super) fn random() -> Verifier {
        Verifier(Secret::new(unguessable()))
    }

    /// The verifier of another client.
    #[cfg(test)]
    pub(super) fn from_text(text: &str) -> Verifier {
        Verifier(Secret::new(text))
    }

    pub(super) fn text(&self) -> &str {
        self.0.reveal()
    }

    /// Its challenge by the method `S256` (RFC 7636, section 4.2).
    pub(super) fn challenge(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, self.text().as_bytes()))
    }
}

/// 256 random bits as 43 characters that need no escape in a URL.
pub(super) fn unguessable() -> String {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_example_in_the_rfc() {
        let verifier = Verifier::from_text("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn verifiers_have_full_strength_and_never_repeat() {
        let texts: std::collections::HashSet<_> = (0..100).map(|_| Verifier::random().text().to_owned()).collect();
        assert_eq!(texts.len(), 100);
        assert!(texts.iter().all(|text| text.len() == 43));
        assert!(!format!("{:?}", Verifier::random()).contains(Verifier::random().text()));
    }
}
