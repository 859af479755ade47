//! The challenge in a refused request (RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9728, section 5.1).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use super::error::quoted;

/// The `Bearer` challenge of a response.
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
}

impl Challenge {
    /// The challenge in these headers: of several the first with `resource_metadata`. `None` without a `Bearer`
    /// challenge.
    pub fn from_headers(headers: &HeaderMap) -> Option<Challenge> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let mut challenges: Vec<_> = values
            .flat_map(parse)
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, params)| Challenge::read(params))
            .collect();
        if challenges.is_empty() {
            return None;
        }
        let telling = challenges.iter().position(|challenge| challenge.resource_metadata.is_some()).unwrap_or(0);
        Some(challenges.swap_remove(telling))
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

    fn read(params: Vec<(String, String)>) -> Challenge {
        let mut challenge = Challenge::default();
        for (name, value) in params {
            match &*name.to_ascii_lowercase() {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => {
                    let scopes: Vec<_> = value.split_ascii_whitespace().map(str::to_owned).collect();
                    challenge.scopes = Some(scopes).filter(|scopes| !scopes.is_empty());
                }
                "error" => challenge.error = Some(value),
                "error_description" => challenge.error_description = Some(value),
                _ => {}
            }
        }
        challenge
    }
}

type Params = Vec<(String, String)>;

/// The challenges of one header field with their parameters. Reading stops at a syntax error.
fn parse(text: &str) -> Vec<(String, Params)> {
    let mut challenges: Vec<(String, Params)> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((word, after)) = token(rest) else { return challenges };
        let behind = after.trim_start_matches([' ', '\t']);
        match (behind.strip_prefix('='), challenges.last_mut()) {
            (Some(value), Some((_, params))) => {
                let Some((value, after)) = value_of(value.trim_start_matches([' ', '\t'])) else { return challenges };
                params.push((word.to_owned(), value));
                rest = after;
            }
            (Some(_), None) => return challenges,
            (None, _) => {
                challenges.push((word.to_owned(), Vec::new()));
                rest = skip_token68(behind);
            }
        }
    }
}

fn token(text: &str) -> Option<(&str, &str)> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else { return token(text).map(|(word, rest)| (word.to_owned(), rest)) };
    let (mut value, mut chars) = (String::new(), quoted.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// The text after a token68, which some schemes have in place of parameters.
fn skip_token68(text: &str) -> &str {
    let is_token68 = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
    let rest = text.trim_start_matches(is_token68).trim_start_matches('=');
    let ends = |rest: &str| rest.is_empty() || rest.trim_start_matches([' ', '\t']).starts_with(',');
    if ends(rest) { rest } else { text }
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
        Some(Challenge { resource_metadata, scopes, error, error_description: None })
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
                challenge(Some(metadata), None, None),
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
