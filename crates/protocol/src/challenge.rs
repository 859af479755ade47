//! The challenges of a refused HTTP request (RFC 9110, 11.6.1).

/// One challenge of a `WWW-Authenticate` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The scheme, in lower case.
    pub scheme: String,
    /// The parameters; the names are in lower case.
    pub params: Vec<(String, String)>,
}

impl Challenge {
    /// The value of a parameter, by its name in lower case.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

/// The challenges of one header field, as far as it can be read, and whether it is valid: a list with commas.
///
/// ```
/// use rehearse_protocol::challenge;
///
/// let (challenges, is_valid) = challenge::parse(r#"Basic realm="a, b", Bearer scope=read"#);
/// assert!(is_valid);
/// assert_eq!(challenges[1].param("scope"), Some("read"));
/// ```
pub fn parse(text: &str) -> (Vec<Challenge>, bool) {
    let (mut challenges, mut is_valid) = (Vec::new(), true);
    let is_read = read(text, &mut challenges, &mut is_valid).is_some();
    is_valid &= is_read && !challenges.is_empty();
    (challenges, is_valid)
}

/// Adds the challenges; `None` where nothing can be read.
fn read(text: &str, challenges: &mut Vec<Challenge>, is_valid: &mut bool) -> Option<()> {
    const BETWEEN: [char; 3] = [' ', '\t', ','];
    const SPACE: [char; 2] = [' ', '\t'];
    let mut rest = text.trim_start_matches(BETWEEN);
    while !rest.is_empty() {
        let (word, after) = token(rest)?;
        let behind = after.trim_start_matches(SPACE);
        rest = match behind.strip_prefix('=') {
            Some(value) => {
                let (value, after) = value_of(value.trim_start_matches(SPACE))?;
                challenges.last_mut()?.params.push((word.to_ascii_lowercase(), value));
                let after = after.trim_start_matches(SPACE);
                *is_valid &= after.is_empty() || after.starts_with(',');
                after
            }
            None => {
                challenges.push(Challenge { scheme: word.to_ascii_lowercase(), params: Vec::new() });
                skip_token68(behind)
            }
        };
        rest = rest.trim_start_matches(BETWEEN);
    }
    Some(())
}

fn token(text: &str) -> Option<(&str, &str)> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// A token or a quoted string, and what follows.
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
    use super::*;

    #[test]
    fn what_can_be_read_is_read_and_what_is_wrong_is_said() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let bearer = |params| Challenge { scheme: "bearer".to_owned(), params };
        let basic = Challenge { scheme: "basic".to_owned(), params: vec![pair("realm", "x")] };
        let negotiate = Challenge { scheme: "negotiate".to_owned(), params: Vec::new() };
        for (text, expected, is_valid) in [
            ("Bearer", vec![bearer(vec![])], true),
            (
                r#"Bearer Realm="a \"b\"", scope=x"#,
                vec![bearer(vec![pair("realm", "a \"b\""), pair("scope", "x")])],
                true,
            ),
            (
                "Basic realm=\"x\", Bearer , , error = \"e\"",
                vec![basic.clone(), bearer(vec![pair("error", "e")])],
                true,
            ),
            ("Negotiate YWJj==, Bearer", vec![negotiate, bearer(vec![])], true),
            ("", vec![], false),
            ("realm=\"x\"", vec![], false),
            ("Bearer error=\"e\", realm=\"x", vec![bearer(vec![pair("error", "e")])], false),
            ("Bearer realm=x scope=y", vec![bearer(vec![pair("realm", "x"), pair("scope", "y")])], false),
            ("Bearer url=https://x/y", vec![bearer(vec![pair("url", "https")])], false),
        ] {
            assert_eq!(parse(text), (expected, is_valid), "{text}");
        }
    }
}
