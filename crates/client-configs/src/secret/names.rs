//! Names under which people keep secrets.

/// Words under which people keep secrets. So is `key` after any word but those of [`PLAIN_KEYS`].
const SECRET: &str = "token secret password passwd pwd passphrase apikey authtoken accesstoken credential credentials \
    authorization cookie pat bearer pass pgpass auth sig jwt cred creds secrets psk passcode pw pgpw \
    dbpw session totp otp mnemonic verifier dpop";

/// What also ends a longer word: `PGPASSWORD`.
const ENDINGS: &str = "password passwd secret apikey accesskey authkey masterkey privatekey secretkey signingkey token \
    dbpass userpass sessionid sessid";

/// Words that end like those, and count tokens.
const COUNTS: &str = "maxtoken mintoken numtoken";

/// Words at the start of a name that say whether there is a secret.
const WHETHER: &str = "no use require enable disable skip allow is has";

/// Before `keys` and `tokens`: models count tokens, too.
const KEYS_OF: &str = "api access private secret auth service account encryption signing license bearer refresh session bot \
    user";

/// Before `key` where it opens nothing.
const PLAIN_KEYS: &str = "public primary foreign unique sort partition row index group hash cache storage object map item \
    config data json message issue project ticket epic space board field record column translation lookup lock routing event hot shortcut any a the this no";

/// Words at the end of a name that say something about a secret.
const ABOUT: &str = "type mode url uri file path id name host user username enabled limit max count ttl expiry expires \
    header prefix env dir endpoint length size timeout scope scopes provider method server servers \
    supported ref var variable helper port policy domain list manager store version format algorithm jar \
    stdin region source backend budget issuer in sock consent expiration expire lifetime duration \
    interval period digits audience bus address desktop class";

/// Two words that are only together the name of a secret: cookies of sites.
const TOGETHER: [(&str, &str); 2] = [("session", "id"), ("li", "at")];

/// Which session a message belongs to is what a trace is read for.
const PROTOCOL_SESSION: &str = "Mcp-Session-Id";

/// The working directory, and a password in connection strings.
const DIRECTORY: &str = "PWD";

/// Where the programs of Google find a file with secrets.
const FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// Whether people keep secrets under this name: `GITHUB_TOKEN`, `x-api-key`, `--password`, `clientSecret`.
pub fn is_secret_name(name: &str) -> bool {
    let is_in = |word: &str, list: &str| list.split(' ').any(|it| it.eq_ignore_ascii_case(word));
    if name.eq_ignore_ascii_case(PROTOCOL_SESSION) {
        return false;
    }
    let (mut last, mut found) = ("", false);
    for word in words(name) {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        if last.is_empty() && is_in(word, WHETHER) {
            return false;
        }
        if TOGETHER.iter().any(|(one, two)| one.eq_ignore_ascii_case(last) && two.eq_ignore_ascii_case(word)) {
            return true;
        }
        let lower = word.to_ascii_lowercase();
        found |= is_in(word, SECRET)
            || (ENDINGS.split(' ').any(|ending| lower.ends_with(ending)) && !is_in(word, COUNTS))
            || (lower == "key" && !last.is_empty() && !is_in(last, PLAIN_KEYS))
            || (is_in(word, "keys tokens") && is_in(last, KEYS_OF));
        last = word;
    }
    found && !is_in(last, ABOUT)
}

/// Whether this is a directory or a file, although people keep secrets under its name as well.
pub(super) fn is_path(name: &str, value: &str) -> bool {
    let is_drive = || value.get(1..3).is_some_and(|rest| rest == ":\\" || rest == ":/");
    let is_file = || name == FILE && value.ends_with(".json") && !value.contains(char::is_whitespace);
    matches!(name, DIRECTORY | FILE) && (value.starts_with(['/', '.', '~', '\\']) || is_drive() || is_file())
}

/// Whether a name has another meaning as well: a session is a secret of a site, or a thing to work in.
pub(super) fn is_ambiguous(name: &str) -> bool {
    words(name).any(|word| word.eq_ignore_ascii_case("session"))
}

/// Whether the value of this flag may be `user:password`.
pub(super) fn is_user(flag: &str) -> bool {
    flag.starts_with('-') && matches!(flag.trim_start_matches('-'), "u" | "U" | "user" | "proxy-user" | "userpwd")
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
    fn names_of_secrets_differ_from_names_about_secrets() {
        for name in "GITHUB_TOKEN x-api-key --password clientSecret Authorization API_KEY AWS_SECRET_ACCESS_KEY \
             apikey GH_PAT OPENAI_KEY API_TOKENS API_KEYS GITHUBToken OPENAIApiKey APIKey BOTTOKEN ACCESSKEY \
             TS_AUTHKEY DBPASS DB_PW JWT SESSION SESSIONID PHPSESSID X-Session-Id sessionId TOTP_SEED \
             OTP_CODE PGPW LI_AT code_verifier dpop"
            .split(' ')
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in "MAX_TOKENS TOKEN_LIMIT AUTH_TYPE KEY PUBLIC_KEY API_KEY_FILE SECRET_NAME PATH monkey sortKey \
             maxOutputTokens PublicKEYFile MAXTOKEN --no-auth REQUIRE_AUTH --cookie-jar compass \
             JWT_EXPIRES_IN JWT_EXPIRATION TOKEN_REFRESH_INTERVAL OTP_DIGITS DBUS_SESSION_BUS_ADDRESS \
             XDG_SESSION_TYPE SESSION_NAME authorization_servers token_endpoint_auth_methods_supported \
             LOOK_AT mcp-session-id issue_key projectKey code_challenge dpop_signing_alg_values_supported"
            .split(' ')
        {
            assert!(!is_secret_name(name), "{name}");
        }
        assert!(!is_secret_name(""));
    }

    #[test]
    fn a_path_is_classified_by_its_file_type() {
        for value in ["/home/ada", "~/x", ".", r"C:\work", "C:/work"] {
            assert!(is_path("PWD", value) && is_path(FILE, value), "{value}");
        }
        assert!(!is_path("PWD", "geheim12") && !is_path("DB_PWD", "/geheim") && !is_path(FILE, "{\"a\": \"b.json"));
        assert!(is_path(FILE, "sa.json") && !is_path("PWD", "sa.json"));
    }
}
