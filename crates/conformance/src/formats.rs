//! The formats of strings.

/// What is allowed in a URI besides letters, digits and `%` (RFC 3986, section 2).
const URI_MARKS: &[u8] = b"-._~:/?#[]@!$&'()*+,;=";

/// Whether a text is a scheme of a URI (RFC 3986, section 3.1).
pub(crate) fn is_scheme(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it))
}

/// Whether a text is an absolute URI (RFC 3986), or would be if its letters were ASCII (RFC 3987).
pub(crate) fn is_uri(text: &str) -> bool {
    let is_rest = |rest: &str| {
        let marks = rest
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || !it.is_ascii() || it == b'%' || URI_MARKS.contains(&it));
        marks && are_escapes(rest)
    };
    text.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && is_rest(rest))
}

/// Whether each `%` has two hexadecimal digits after it.
fn are_escapes(text: &str) -> bool {
    let mut parts = text.split('%').skip(1).map(str::as_bytes);
    parts.all(|it| matches!(it, [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit()))
}

/// Whether a URI is another one, or that of a part of it (server/resources#subscriptions: "may be a sub-resource").
pub(crate) fn is_at_or_below(uri: &str, base: &str) -> bool {
    let (uri, base) = (normalized(uri), normalized(base));
    uri.strip_prefix(&base).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#', ':', '&']))
}

/// A URI in the form in which those that are equivalent are equal (RFC 3986, section 6.2.2): scheme and host in lower
/// case, no escapes, no `/` at the end.
fn normalized(uri: &str) -> String {
    let (scheme, rest) = uri.split_once(':').unwrap_or(("", uri));
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
        None => ("", rest),
    };
    let slashes = if rest.starts_with("//") { "//" } else { "" };
    let text = format!("{}:{slashes}{}{}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase(), unescaped(path));
    text.trim_end_matches('/').to_owned()
}

/// A text with the characters that its escapes stand for.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => bytes.extend([b"%", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a text is a URI template (RFC 6570).
pub(crate) fn is_template(text: &str) -> bool {
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once('{') {
        let Some((expression, after)) = after.split_once('}') else { return false };
        if !is_literal(literal) || !is_expression(expression) {
            return false;
        }
        rest = after;
    }
    is_literal(rest)
}

fn is_literal(text: &str) -> bool {
    !text.contains(|it: char| it.is_ascii_control() || " \"<>\\^`|{}".contains(it)) && are_escapes(text)
}

fn is_expression(text: &str) -> bool {
    let variables = text.trim_start_matches(['+', '#', '.', '/', ';', '?', '&', '=', ',', '!', '@', '|']);
    text.len() - variables.len() <= 1 && variables.split(',').all(is_variable)
}

fn is_variable(text: &str) -> bool {
    let name = match text.split_once(':') {
        Some((name, length)) if (1..=4).contains(&length.len()) && length.bytes().all(|it| it.is_ascii_digit()) => name,
        Some(_) => return false,
        None => text.strip_suffix('*').unwrap_or(text),
    };
    let is_part = |it: &str| {
        !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_' || it == b'%') && are_escapes(it)
    };
    name.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_a_scheme_and_no_characters_that_must_be_escaped() {
        for good in ["file:///a/b", "urn:x", "a+b-c.d://x?y#z", "test://t/{", "mailto:a@b", "x:", "https://é.example/é"]
        {
            assert_eq!(is_uri(good), !good.contains('{'), "{good}");
        }
        for bad in ["", "a", "/a/b", "1a:b", "file:///a b", "C:\\a", "a://b%2", "a://<b>", "://x"] {
            assert!(!is_uri(bad), "{bad}");
        }
    }

    #[test]
    fn a_uri_is_at_or_below_another_by_its_parts_and_not_by_its_beginning() {
        for (uri, base) in [
            ("a://1", "a://1"),
            ("a://1/2", "a://1"),
            ("a://1/2", "a://1/"),
            ("a://1/", "a://1"),
            ("A://Host/x y", "a://host/x%20y"),
            ("file:///%c3%a9", "file:///é"),
            ("a://1?page=2", "a://1"),
            ("urn:x:y", "urn:x"),
        ] {
            assert!(is_at_or_below(uri, base), "{uri} {base}");
        }
        for (uri, base) in [("a://10", "a://1"), ("a://1", "a://1/2"), ("a://host/X", "a://host/x"), ("b://1", "a://1")]
        {
            assert!(!is_at_or_below(uri, base), "{uri} {base}");
        }
    }

    #[test]
    fn a_template_has_expressions_of_rfc_6570() {
        for good in ["a://b/{id}", "{+path}", "a{?x,y*}", "{/a.b:3}", "a", "", "{a%20b}", "{;x:9999}"] {
            assert!(is_template(good), "{good}");
        }
        for bad in ["a://{", "}", "{}", "{a b}", "{a-b}", "{*a}", "{a:b}", "{a,}", "{++a}", "a b", "{{a}}", "{a:12345}"]
        {
            assert!(!is_template(bad), "{bad}");
        }
    }
}
