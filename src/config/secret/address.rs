//! What is secret in URLs.

use std::{borrow::Cow, ops::Range};

use super::name::is_secret_name;

/// A part of a path that is shorter is no token.
const LONG: usize = 20;

pub(super) const BEFORE_PARAMETERS: &[u8] = b"?&;#";

/// Every `name=value` among the parameters of URLs: the name, and where the value stands.
pub(super) fn parameters(text: &str) -> impl Iterator<Item = (Cow<'_, str>, Range<usize>)> {
    let mut at = 0;
    let next = move || {
        let begin = at + text[at..].find(begins_parameter)? + 1;
        let equals = begin + text[begin..].find(|c: char| !is_of_name(c))?;
        at = equals;
        let name = &text[begin..equals];
        let Some(rest) = text[equals..].strip_prefix('=').filter(|_| !name.is_empty()) else { return Some(None) };
        at = equals + 1 + end_of_parameter(rest);
        let unescaped = || url::form_urlencoded::parse(name.as_bytes()).next().map(|(name, _)| name);
        let name = name.contains('%').then(unescaped).flatten().unwrap_or(name.into());
        Some((at > equals + 1).then_some((name, equals + 1..at)))
    };
    std::iter::from_fn(next).flatten()
}

/// How long the value of a parameter is. A semicolon ends it if there is another parameter after it, as in what
/// databases are connected with: `Server=h;Pwd=x`.
fn end_of_parameter(text: &str) -> usize {
    let ends = |c: char| matches!(c, '&' | '#' | '"' | '\'' | '`' | '<' | '>') || c.is_whitespace();
    let value = &text[..text.find(ends).unwrap_or(text.len())];
    let begins_next = |at: &usize| {
        let next = &text[at + 1..];
        let name = next.trim_start().trim_start_matches(|c| is_of_name(c) || c == ' ');
        name.len() < next.len() && name.starts_with('=')
    };
    value.match_indices(';').map(|(at, _)| at).find(begins_next).unwrap_or(value.len())
}

/// Whether a parameter holds a secret, by its name; with a name of many meanings, also by its value.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    let is_ambiguous = || ["key", "code"].iter().any(|it| it.eq_ignore_ascii_case(name));
    is_secret_name(name) || (is_ambiguous() && is_token(value))
}

/// Whether a flag is `--key`: the name of many things, above all of files.
pub(super) fn is_key(flag: &str) -> bool {
    flag.trim_start_matches('-').eq_ignore_ascii_case("key")
}

/// Whether the value after `--key` says that it is a secret.
pub(super) fn is_of_key(flag: &str, value: &str) -> bool {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '=');
    is_key(flag) && is_token(value) && value.chars().all(is_of_token)
}

/// Where tokens stand among the parts of the paths of URLs.
pub(super) fn tokens_in_paths(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut begins = text.match_indices("://").map(|(at, _)| at).peekable();
    let urls = std::iter::from_fn(move || {
        let begin = begins.next()? + 3;
        let url = &text[begin..begins.peek().copied().unwrap_or(text.len()).max(begin)];
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '?' | '#');
        Some((begin, &url[..url.find(ends).unwrap_or(url.len())]))
    });
    urls.flat_map(|(begin, url)| {
        let part = move |part: &str| {
            let start = begin + part.as_ptr() as usize - url.as_ptr() as usize;
            start..start + part.len()
        };
        url.split('/').skip(1).filter(|it| is_random(it)).map(part)
    })
}

/// Whether a word is so long and so mixed that it is no name and no number of anything.
fn is_random(word: &str) -> bool {
    if word.len() < LONG {
        return false;
    }
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        b'a'..=b'z' => 2,
        _ => 3,
    };
    let (mut counts, mut changes, mut before) = ([0; 4], 0, 3);
    for byte in word.bytes() {
        let now = kind(byte);
        if now == 3 && !matches!(byte, b'-' | b'_' | b'=' | b'~' | b'.') {
            return false;
        }
        counts[now] += 1;
        changes += usize::from(now != before && now != 3 && before != 3);
        before = now;
    }
    counts[..3].iter().all(|count| *count >= 2) && changes * 4 >= word.len()
}

/// What a parameter may begin after.
pub(super) fn begins_parameter(c: char) -> bool {
    u8::try_from(c).is_ok_and(|byte| BEFORE_PARAMETERS.contains(&byte))
}

/// A parameter's name may have escapes in it.
fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '%')
}

/// Where the passwords of URLs stand, `://user:password@`, and tokens in the place of a user. A password with characters
/// that belong into escapes is taken for one as well; of `://` a part may be missing.
pub(super) fn passwords(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut begins = text.match_indices("://").map(|(at, _)| at).peekable();
    let urls = std::iter::from_fn(move || {
        let begin = begins.next()? + 3;
        Some(begin..begins.peek().copied().unwrap_or(text.len()).max(begin))
    });
    let slashes = text.match_indices('/').map(|(at, _)| at);
    let is_slip = |at: &usize| {
        let (before, after) = (&text[..*at], &text[at + 1..]);
        before.ends_with([':', '/']) && !before.ends_with(":/") && !after.starts_with('/')
    };
    let mut slips = slashes.filter(is_slip).map(|at| at + 1).peekable();
    let misspelt = std::iter::from_fn(move || Some(slips.next()?..slips.peek().copied().unwrap_or(text.len())));
    urls.chain(misspelt).flat_map(|url| {
        let (begin, rest) = (url.start, &text[url]);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
        let rest = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let user = &rest[..rest.find([':', '/', '?', '#', '@', '[', '\\']).unwrap_or(rest.len())];
        let after = &rest[user.len()..];
        let password = after.strip_prefix(':').and_then(|after| {
            let authority = &after[..after.find(['/', '?', '#']).unwrap_or(after.len())];
            let is_port = authority.bytes().all(|byte| byte.is_ascii_digit());
            let length = authority.rfind('@').or_else(|| after.rfind('@').filter(|_| !is_port))?;
            let start = begin + user.len() + 1;
            (length > 0).then_some(start..start + length)
        });
        let is_alone = (password.is_some() || after.starts_with('@')) && is_token(user);
        [is_alone.then_some(begin..begin + user.len()), password].into_iter().flatten()
    })
}

/// Where the password stands in `user:password`. Two numbers are the ids of a user and a group, and a user who is called as
/// the group is one as well; a name with a number is a host with a port.
pub(super) fn password_of(user: &str) -> Option<Range<usize>> {
    let (name, password) = user.split_once(':')?;
    let is_port = password.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace) && !text.starts_with("//");
    let is_told = is_word(name) && is_word(password) && !is_port && name != password;
    is_told.then_some(name.len() + 1..user.len())
}

/// Where the passwords of addresses without a scheme stand, as the driver of a database takes them:
/// `user:password@tcp(host)/database`.
pub(super) fn passwords_before_networks(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    text.match_indices('(').filter_map(move |(at, _)| {
        let network = ["@tcp", "@unix", "@udp", "@tcp6"].into_iter().find(|it| text[..at].ends_with(it))?;
        let end = at - network.len();
        let before = text.get(from..end)?;
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
        let start = before.rfind(ends).map_or(0, |at| at + 1);
        let start = from + before.ceil_char_boundary(start);
        from = at;
        let user = text[start..end].find(':')?;
        (start + user + 1 < end).then_some(start + user + 1..end)
    })
}

/// Whether what stands in the place of a user, or is a part of a path, is hardly a name.
pub(super) fn is_token(user: &str) -> bool {
    user.len() >= 16 && user.bytes().any(|it| it.is_ascii_digit()) && user.bytes().any(|it| it.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_parameters() {
        let url = "https://h:1/p?a=b&c&=d&token=é#e=f;g=h i?j=k\"";
        let values: Vec<_> = parameters(url).map(|(name, range)| format!("{name} {}", &url[range])).collect();
        assert_eq!(values, ["a b", "token é", "e f", "g h", "j k"]);
        let connection = "Server=h;Initial Catalog=d;AccountKey=a+b==;Pwd=p;q;";
        let values: Vec<_> =
            parameters(connection).map(|(name, range)| format!("{name} {}", &connection[range])).collect();
        assert_eq!(values, ["AccountKey a+b==", "Pwd p;q;"]);
        assert!(is_secret("key", "AIzx0123456789abcdef") && !is_secret("key", "feature") && is_secret("sig", "a"));
        assert!(parameters("?api%5Fkey=x").all(|(name, _)| name == "api_key"));
        assert!(parameters("?a=?a=?a=").map(|(_, range)| range).eq(std::iter::once(3..9)));
    }

    #[test]
    fn a_password_goes_to_the_last_sign_before_the_host() {
        let of = |url: &str| passwords(url).map(|range| url[range].to_owned()).collect::<Vec<_>>();
        assert_eq!(of("https://ada:geheim@h:1/p?a=b k://a:b@/"), ["geheim", "b"]);
        assert_eq!(of("a://u:a@b@h/ b://u:a/b@h/x"), ["a@b", "a/b"]);
        assert_eq!(of("https://0123456789abcdef@h git+https://0123456789abcdef:x@h").len(), 3);
        for url in ["https://h:80/@a/b", "https://h/a:b@c", "https://git@h", "http://[::1]:80/@a", "a://b c:d@e"] {
            assert_eq!(of(url), [""; 0], "{url}");
        }
        assert_eq!(of("://c:@ a://b://c:d@e"), ["d"]);
        for url in
            ["https//u:geheim@h", "https:/u:geheim@h/p", "https;//u:geheim@h:1", "a //u:x@h /b:/c:d b//u:geheim@h"]
        {
            assert_eq!(of(url).last().map(String::as_str), Some("geheim"), "{url}");
        }
    }

    #[test]
    fn a_password_follows_its_user_unless_it_is_a_group_or_a_port() {
        let of = |user: &str| password_of(user).map(|range| user[range].to_owned());
        assert_eq!((of("ada:geheim"), of("ada:a:b")), (Some("geheim".to_owned()), Some("a:b".to_owned())));
        for user in ["1000:1000", "node:node", "localhost:8080", "ada", "ada:", ":x", "https://h", "a: b"] {
            assert_eq!(of(user), None, "{user}");
        }
        let of = |text: &str| passwords_before_networks(text).map(|range| text[range].to_owned()).collect::<Vec<_>>();
        assert_eq!(of("root:a:b@c@tcp(h:1)/db DSN=\"é:geheim@unix(/s)/x\""), ["a:b@c", "geheim"]);
        assert_eq!(of("root@tcp(h) :@tcp(h) f(@tcp) ("), [""; 0]);
    }
}
