//! Names under which people keep secrets.

/// Words under which people keep secrets; `key` only after one of [`OF_KEYS`].
const SECRET: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "apikey",
    "authtoken",
    "accesstoken",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "pat",
    "bearer",
    "pass",
    "pgpass",
    "auth",
];

/// What also ends a longer word: `PGPASSWORD`.
const ENDINGS: &[&str] = &["password", "passwd", "secret", "apikey"];

const OF_KEYS: &[&str] =
    &["api", "access", "private", "secret", "auth", "service", "account", "encryption", "signing", "license"];

/// Words at the end of a name that say something about a secret.
const ABOUT: &[&str] = &[
    "type",
    "mode",
    "url",
    "uri",
    "file",
    "path",
    "id",
    "name",
    "host",
    "user",
    "username",
    "enabled",
    "limit",
    "max",
    "count",
    "ttl",
    "expiry",
    "expires",
    "header",
    "prefix",
    "env",
    "dir",
    "endpoint",
    "length",
    "size",
    "timeout",
    "scope",
    "scopes",
    "provider",
    "method",
    "server",
    "ref",
    "var",
    "variable",
    "helper",
    "port",
    "policy",
    "domain",
    "list",
    "manager",
    "store",
    "version",
    "format",
    "algorithm",
];

/// Whether people keep secrets under this name: `GITHUB_TOKEN`, `x-api-key`, `--password`, `clientSecret`.
pub fn is_secret_name(name: &str) -> bool {
    let is_one_of = |word: &str, list: &[&str]| list.iter().any(|it| it.eq_ignore_ascii_case(word));
    let (mut last, mut found) = ("", false);
    for word in words(name) {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        found |= is_one_of(word, SECRET)
            || ENDINGS.iter().any(|ending| ends_with(word, ending))
            || (word.eq_ignore_ascii_case("key") && is_one_of(last, OF_KEYS));
        last = word;
    }
    found && !is_one_of(last, ABOUT)
}

fn ends_with(word: &str, ending: &str) -> bool {
    let start = word.len().checked_sub(ending.len());
    start.and_then(|start| word.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

/// The words of a name: `apiKey` and `API_KEY` are both api and key.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let parts = name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            let mut was_lower = false;
            let humps = rest.char_indices().find(|(_, character)| {
                let begins = character.is_uppercase() && was_lower;
                was_lower = character.is_lowercase() || character.is_ascii_digit();
                begins
            });
            let (word, after) = rest.split_at(humps.map_or(rest.len(), |(at, _)| at));
            rest = after;
            (!word.is_empty()).then_some(word)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_names_about_secrets() {
        for name in [
            "GITHUB_TOKEN",
            "x-api-key",
            "--password",
            "clientSecret",
            "Authorization",
            "API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "apikey",
            "GH_PAT",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "MAX_TOKENS",
            "TOKEN_LIMIT",
            "AUTH_TYPE",
            "KEY",
            "PUBLIC_KEY",
            "API_KEY_FILE",
            "SECRET_NAME",
            "PATH",
            "monkey",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
