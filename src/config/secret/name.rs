//! Names under which people keep secrets.

/// Words under which people keep secrets. So is `key` after any word but those of [`PLAIN_KEYS`].
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
    "sig",
    "jwt",
    "cred",
    "creds",
    "secrets",
    "psk",
    "passcode",
    "pw",
];

/// What also ends a longer word: `PGPASSWORD`.
const ENDINGS: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "apikey",
    "accesskey",
    "authkey",
    "masterkey",
    "privatekey",
    "secretkey",
    "signingkey",
    "token",
    "dbpass",
    "userpass",
];

/// Words that end like those, and count tokens.
const COUNTS: &[&str] = &["maxtoken", "mintoken", "numtoken"];

/// Words at the begin of a name that say whether there is a secret.
const WHETHER: &[&str] = &["no", "use", "require", "enable", "disable", "skip", "allow", "is", "has"];

/// Before `keys` and `tokens`: models count tokens, too.
const OF_KEYS: &[&str] = &[
    "api",
    "access",
    "private",
    "secret",
    "auth",
    "service",
    "account",
    "encryption",
    "signing",
    "license",
    "bearer",
    "refresh",
    "session",
    "bot",
    "user",
];

/// Before `key` where it is none that opens anything.
const PLAIN_KEYS: &[&str] = &[
    "public",
    "primary",
    "foreign",
    "unique",
    "sort",
    "partition",
    "row",
    "index",
    "group",
    "hash",
    "cache",
    "storage",
    "object",
    "map",
    "item",
    "config",
    "data",
    "json",
    "message",
    "translation",
    "lookup",
    "lock",
    "routing",
    "event",
    "hot",
    "shortcut",
    "any",
    "a",
    "the",
    "this",
    "no",
];

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
    "jar",
    "stdin",
    "region",
    "source",
    "backend",
    "budget",
    "issuer",
    "in",
    "sock",
    "consent",
];

/// Whether people keep secrets under this name: `GITHUB_TOKEN`, `x-api-key`, `--password`, `clientSecret`.
pub fn is_secret_name(name: &str) -> bool {
    let is_one_of = |word: &str, list: &[&str]| list.iter().any(|it| it.eq_ignore_ascii_case(word));
    let (mut last, mut found) = ("", false);
    for word in words(name) {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        if last.is_empty() && is_one_of(word, WHETHER) {
            return false;
        }
        found |= is_one_of(word, SECRET)
            || (ENDINGS.iter().any(|ending| ends_with(word, ending)) && !is_one_of(word, COUNTS))
            || (word.eq_ignore_ascii_case("key") && !last.is_empty() && !is_one_of(last, PLAIN_KEYS))
            || (is_one_of(word, &["keys", "tokens"]) && is_one_of(last, OF_KEYS));
        last = word;
    }
    found && !is_one_of(last, ABOUT)
}

fn ends_with(word: &str, ending: &str) -> bool {
    let start = word.len().checked_sub(ending.len());
    start.and_then(|start| word.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

/// The words of a name: `apiKey`, `APIKey` and `API_KEY` are all api and key.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let parts = name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            let mut before = '_';
            let humps = rest.char_indices().find(|(at, character)| {
                let was_lower = before.is_lowercase() || before.is_ascii_digit();
                let mut after = rest[*at..].chars().skip(1);
                let ends_capitals = before.is_uppercase() && after.next().is_some_and(char::is_lowercase);
                before = *character;
                character.is_uppercase() && (was_lower || ends_capitals)
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
            "OPENAI_KEY",
            "API_TOKENS",
            "API_KEYS",
            "GITHUBToken",
            "OPENAIApiKey",
            "APIKey",
            "BOTTOKEN",
            "ACCESSKEY",
            "TS_AUTHKEY",
            "DBPASS",
            "DB_PW",
            "JWT",
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
            "sortKey",
            "maxOutputTokens",
            "PublicKEYFile",
            "MAXTOKEN",
            "--no-auth",
            "REQUIRE_AUTH",
            "--cookie-jar",
            "compass",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
