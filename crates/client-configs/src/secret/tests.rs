use super::*;
use rehearse_document::{Problem, json};

#[test]
fn only_what_is_secret_is_masked() {
    for (name, value, expected) in [
        ("X", "ghp_0123456789abcdefABCD", "***"),
        ("Authorization", "Bearer abcdefgh12345678", "Bearer ***"),
        ("Authorization", "Bearer ${TOKEN}", "Bearer ${TOKEN}"),
        ("url", "https://u:pässwort@h/?api_key=abcdef&q=1", "https://u:***@h/?api_key=***&q=1"),
        ("PASSWORD", "hunter22", "***"),
        ("PASSWORD", "<your-password>", "<your-password>"),
        ("API_TOKEN", "", ""),
        ("PGTOKEN", "x", "***"),
        ("NAME", "Ada", "Ada"),
        ("API_KEY", "${KEY:-geheim}", "${KEY:-***}"),
        ("OTHER", "Bearer 0123456789", "Bearer ***"),
        ("PGPASSWORD", "abc", "***"),
        ("DATABASE_URL", "postgres://ada:geheim@db/x", "postgres://ada:***@db/x"),
    ] {
        assert_eq!(mask(name, value), expected, "{name}");
    }
    let argument = |flag: &str, text: &str| {
        in_argument(flag, text, hidden_in).into_iter().map(|range| text[range].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(argument("--api-key", "0123456789"), ["0123456789"]);
    assert_eq!(argument("", "--token=0123456789"), ["0123456789"]);
    assert_eq!(argument("--header", "Authorization: Bearer 0123456789"), ["0123456789"]);
    assert_eq!(argument("", "postgres://a:geheim@h/x"), ["geheim"]);
    for complete in ["--env=API_KEY=${KEY}", "--auth=none", "--header=Authorization: Bearer x", "--password-stdin"] {
        assert_eq!(argument(flag(complete), "ghcr.io/github/github-mcp-server"), [""; 0], "{complete}");
    }
    assert_eq!(argument("--name", "0123456789"), [""; 0]);
    assert_eq!(argument("", "root:0123456789@tcp(h)/db"), ["0123456789"]);
}

#[test]
fn a_shown_source_has_no_secrets() {
    let source = Source::new("x", "token: ghp_0123456789abcdefABCD\nné: x\n");
    let secrets = secrets_of(&source, &rehearse_document::parse_yaml(&source).expect("YAML"));
    assert_eq!(blotted(&source, &secrets).text, "token: ************************\nné: x\n");
    let references = Source::new("x", "{\"API_TOKEN\": \"${env:API_TOKEN}\", \"args\": [\"--token\", \"$TOKEN\"]}");
    assert_eq!(secrets_of(&references, &json::parse(&references).expect("JSON").root), []);
    assert_eq!(blotted(&source, &[]).text, source.text);
}

#[test]
fn secrets_are_taken_out_of_sentences_unless_they_are_constant() {
    let source = Source::new("x", "password: x0123456789\n");
    let secrets = secrets_of(&source, &rehearse_document::parse_yaml(&source).expect("YAML"));
    let redacted = |problem| {
        let Problem { message, hint, .. } = Redactor::new(&source, &secrets).problem(&problem);
        (message.into_owned(), hint.map(Cow::into_owned).unwrap_or_default())
    };
    let formatted = |message: &str, hint: &str| Problem::new(Span::default(), message.to_owned()).hint(hint.to_owned());
    for (message, hint, expected) in [
        ("found `ghp_0123456789abcdefABCD`", "not `x0123456789`", ("found `***`", "not `***`")),
        ("no x0123456789 here", "", ("no *** here", "")),
    ] {
        assert_eq!(redacted(formatted(message, hint)), (expected.0.to_owned(), expected.1.to_owned()));
    }
    let constant = Problem::new(Span::default(), "a `pass` of x0123456789");
    assert_eq!(redacted(constant).0, "a `pass` of x0123456789");
}

#[test]
fn secrets_are_found_in_values_and_comments() {
    for text in [
        r#"{"env": {"API_KEY": "geheim1234", "API_KEY": "${X}"}}"#,
        r#"{"env": "API_KEY=geheim1234"}"#,
        r#"{"args": "-y b --api-key geheim1234"}"#,
        r#"{"headers": "Authorization: Bearer geheim1234"}"#,
        r#"{"inputs": [{"password": true, "default": "geheim1234"}]}"#,
        r#"{"args": ["-u", "ada:geheim1234"]}"#,
        r#"{"args": ["--user=ada:geheim1234"]}"#,
        r#"{"args": "curl -u ada:geheim1234 x"}"#,
        r#"{"env": {"DSN": "root:geheim1234@tcp(h:3306)/db"}}"#,
    ] {
        let source = Source::new("x", text);
        let root = json::parse(&source).expect(text).root;
        let found = secrets_of(&source, &root);
        assert!(found.iter().any(|span| text[span.start..span.end].contains("geheim1234")), "{text}: {found:?}");
    }
}

#[test]
fn a_secret_is_hidden_wherever_it_occurs_again() {
    for text in [
        r#"{"env": {"API_KEY": "geheim1234", "NAME": "geheim1234"}}"#,
        r#"{"env": {"NAME": "x:geheim1234", "PASSWORD": "${P}geheim1234"}, "url": "https://h/geheim1234/mcp"}"#,
    ] {
        let source = Source::new("x", text);
        let root = json::parse(&source).expect(text).root;
        let shown = blotted(&source, &secrets_of(&source, &root));
        assert!(!shown.text.contains("geheim"), "{}", shown.text);
    }
    let plain = r#"{"env": {"PASSWORD": "postgres", "USER": "postgres", "PWD": "/home/ada/work"}}"#;
    let source = Source::new("x", plain);
    let root = json::parse(&source).expect("reads").root;
    let shown = blotted(&source, &secrets_of(&source, &root));
    assert_eq!(shown.text, plain.replacen("postgres", "********", 1));
}

#[test]
fn a_secret_of_yaml_is_hidden_in_every_style() {
    for (written, expected) in [
        ("env: {API_KEY: geheim1234, N: 5}", "env: {API_KEY: **********, N: 5}"),
        ("env: {API_KEY: geheim1234}", "env: {API_KEY: **********}"),
        (
            "env: {\"API_KEY\": \"geheim1234\", DB_PASSWORD: a b-c}",
            "env: {\"API_KEY\": \"**********\", DB_PASSWORD: *****}",
        ),
        ("env: {\n    API_KEY: geheim1234,\n    N: 5\n  }", "env: {\n    API_KEY: **********,\n    N: 5\n  }"),
        ("API_KEY: geheim1234 # go geheim1234", "API_KEY: ********** # go **********"),
        ("API_KEY: |\n    geheim1234", "API_KEY: *\n    **********"),
        ("API_KEY: >-\n    geheim1234\n    more", "API_KEY: >-\n    **********\n    ****"),
        ("API_KEY: &k geheim1234", "API_KEY: &k **********"),
        ("API_KEY: !!str &k geheim1234", "API_KEY: ***** &k **********"),
        ("API_KEY:\n    geheim1234", "API_KEY:\n    **********"),
        ("API_KEY: geheim1234\n    tail", "API_KEY: **********\n    ****"),
        ("? API_KEY\n  : geheim1234", "? API_KEY\n  : **********"),
    ] {
        let text = format!("a:\n  x: go geheim1234 now\n  {written}\n");
        let source = Source::new("x", text.as_str());
        let root = rehearse_document::parse_yaml(&source).expect(&text);
        let shown = blotted(&source, &secrets_of(&source, &root)).text.clone();
        assert_eq!(shown, format!("a:\n  x: go ********** now\n  {expected}\n"));
    }
}

#[test]
fn a_secret_is_hidden_in_a_value() {
    for (name, value, expected) in [
        // What only looks like a reference is part of the password.
        ("PASSWORD", "Zq7$wordabc1234", "***"),
        ("PASSWORD", "$geheim1234", "***"),
        ("PASSWORD", "${P}geheim1234", "${P}***"),
        ("PASSWORD", "geheim1234${P}", "***${P}"),
        ("PASSWORD", "geheim{{X}}", "***{{X}}"),
        ("PASSWORD", "geheim{{X", "***"),
        ("PASSWORD", "$PASSWORD", "$PASSWORD"),
        ("PASSWORD", "$A-$B", "$A-$B"),
        ("API_KEY", "${API_KEY-geheim}", "${API_KEY-***}"),
        ("API_KEY", "${API_KEY:=geheim}", "${API_KEY:=***}"),
        ("API_KEY", "${input:api-key}", "${input:api-key}"),
        ("API_KEY", "${API_KEY:-a}b}", "${API_KEY:-***}***"),
        ("API_KEY", "Zq7WvK9mxxxxLx2PfR4tJh8N", "***"),
        ("API_KEY", "your-Zq7WvK9mLx2PfR4tJh8N", "***"),
        ("CONN", "Server=h; User Id=sa; Password=geheim", "Server=h; User Id=sa; Password=***"),
        ("CONN", "host=h password=geheim", "host=h password=***"),
        ("OPTS", "--token geheim --name x", "--token *** --name x"),
        ("HEADERS", r#"{"X-API-Key": "geheim", "v": "1"}"#, r#"{"X-API-Key": "***", "v": "1"}"#),
        ("command", r#"x --password "a geheim" y"#, r#"x --password "***" y"#),
        ("X", "Bearer 0123456789 Bearer 0123456789", "Bearer *** Bearer ***"),
        ("K", "-----BEGIN PRIVATE KEY-----\nab-cd\n-----END PRIVATE KEY-----", "***-----END PRIVATE KEY-----"),
        ("url", "https://u:a@geheim@h/#access_token=geheim", "https://u:***@h/#access_token=***"),
        ("url", "https://h/?api%5Fkey=geheim", "https://h/?api%5Fkey=***"),
        ("DSN", "root:geheim@tcp(h:3306)/db", "root:***@tcp(h:3306)/db"),
        ("command", "curl -u ada:geheim x", "curl -u ada:*** x"),
        ("command", "docker run --user=node:node -u 1000:1000 x", "docker run --user=node:node -u 1000:1000 x"),
        ("X", "r8_0123456789abcdefghijklmnop", "***"),
        ("X", "pat-na1-01234567-89ab-cdef-0123-456789abcdef", "***"),
        ("X", "key-0123456789abcdef0123456789abcdef", "***"),
        ("X", "sntrys_eyJpYXQiOjE3MDAwMDAw_0123456789", "***"),
        ("PWD", "/home/ada/work", "/home/ada/work"),
        ("CONN", "Uid=sa;PWD=geheim;", "Uid=sa;PWD=***"),
        ("OPTS", "--key k9Zq7Lm2Wv4Rt8Yb --key=k9Zq7Lm2Wv4Rt8Yb x", "--key *** --key=*** x"),
        ("OPTS", "--key feature --key=certs/server-2026-01.pem", "--key feature --key=certs/server-2026-01.pem"),
        ("url", "https://h/s/NDk4ZTYxYmMtOTI3Zi00YTQ1/mcp?a=b", "https://h/s/***/mcp?a=b"),
        ("url", "https://h/Model-Context-Protocol-2026-Server", "https://h/Model-Context-Protocol-2026-Server"),
        ("url", "https://h/0123456789abcdef0123456789abcdef", "https://h/0123456789abcdef0123456789abcdef"),
        ("X", "pk_live_abcdefghijklmnop1234", "***"),
        ("X", "secret_abcdefghijklmnopqrstuv", "***"),
        ("X", "pcsk_abc123_defghijklmnop", "***"),
        ("API_KEY", "SECRETxxxx2345", "***"),
        ("API_KEY", "ghp_xxxxxxxx1234", "ghp_xxxxxxxx1234"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/ada/cred.json", "/home/ada/cred.json"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "cred.json", "cred.json"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "geheim", "***"),
    ] {
        assert_eq!(mask(name, value), expected, "{name}");
    }
    for (before, argument, expected) in [
        ("--token", "a:geheim", "***"),
        ("--token", "-Zq7WvK9mLx2P", "***"),
        ("--token", "--name", "--name"),
        (" \"--token\"", "geheim", "***"),
        ("-y", "--header=X-API-Key: geheim", "--header=X-API-Key: ***"),
        ("run", "--env=API_KEY=geheim", "--env=API_KEY=***"),
        ("-c", "export API_KEY=geheim && x", "export API_KEY=*** && x"),
        ("-u", "ada:geheim", "ada:***"),
        ("--key", "9c4b2d1e-7f6a-4e3b-8c2d-1a0b9c8d7e6f", "***"),
        ("--key", "/etc/ssl/private/server-2026.key", "/etc/ssl/private/server-2026.key"),
        ("-y", "--key=k9Zq7Lm2Wv4Rt8Yb", "--key=***"),
        ("--sort", "k9Zq7Lm2Wv4Rt8Yb", "k9Zq7Lm2Wv4Rt8Yb"),
        ("-y", "--user=ada:geheim", "--user=ada:***"),
        ("--user", "${UID}:${GID}", "${UID}:${GID}"),
    ] {
        assert_eq!(mask_argument(before, argument), expected);
    }
}

#[test]
fn a_warning_needs_more_evidence() {
    assert_eq!(secrets_in("PASSWORD", "Zq7$wordabc1234").len(), 1);
    assert_eq!(secrets_in("PASSWORD", "${P}geheim1234").len(), 1);
    assert_eq!(secrets_in("OPTS", "--token geheim1234").len(), 1);
    for (name, value) in [
        ("Authorization", "Custom-Scheme ${TOKEN}"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "service-account.json"),
        ("CREDENTIALS", r"C:\keys\sa"),
        ("DB_SECRET", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db"),
        ("API_KEY", "%API_KEY%"),
        ("GITHUB_TOKEN", "keychain:github"),
        ("API_KEY", "ollama"),
        ("REQUIRE_AUTH", "Disabled1"),
        ("MCP_AUTH", "oauth2"),
        ("REGISTRY_AUTH", "https://registry.example.com/auth"),
        ("DB_PASSWORD", "${DB_PASSWORD:?missing}"),
        ("GITHUB_TOKEN", "COPILOT_MCP_GITHUB_TOKEN"),
        ("--session", "work-2026"),
    ] {
        assert!(secrets_in(name, value).is_empty(), "{name} {value}");
    }
    for (name, value) in [
        ("REGISTRY_AUTH", "https://registry.example.com/0123456789abcdef0123"),
        ("CONNECTION", "Server=h;Database=d;Uid=sa;Pwd=Zq7WvK9mLx;"),
        ("AZURE", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=Zq7WvK9mLx+/==;EndpointSuffix=core"),
        ("X-Session-Id", "0123456789abcdef0123456789abcdef"),
        ("X", "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"),
        ("API_KEY", "SECRETxxxx2345"),
        ("url", "https://mcp.zapier.com/api/mcp/s/NDk4ZTYxYmMtOTI3Zi00YTQ1LWI2ZTItMGQ4NjM3/mcp"),
        ("--key", "9c4b2d1e-7f6a-4e3b-8c2d-1a0b9c8d7e6f"),
        ("X", "https://hooks.slack.com/services/T0123456/B0123456/abcdefgh01234567"),
    ] {
        assert_eq!(secrets_in(name, value).len(), 1, "{name} {value}");
    }
    assert!(secrets_in("API_KEY", "${input:my-api-key}").is_empty());
}

#[test]
fn a_doubtful_placeholder_is_hidden_without_a_warning() {
    for value in ["my_password", "my-dog-token", "add your key", "[API_KEY]", "REDACTED"] {
        assert_eq!((mask("API_KEY", value).as_ref(), secrets_in("API_KEY", value)), (MASK, vec![]), "{value}");
    }
    for value in ["$env:API_KEY", "process.env.API_KEY", "os.environ['A_KEY']", "%API_KEY%", "env:API_KEY_2"] {
        assert!(secrets_in("API_KEY", value).is_empty(), "{value}");
    }
    for value in ["$(cat token)", "{file:./key}", "!secret api_key", "${cmd:cat /run/key}"] {
        assert!(secrets_in("API_KEY", value).is_empty(), "{value}");
    }
}

#[test]
fn a_sentence_keeps_its_words() {
    for sentence in [
        "the key `token`: nobody knows it",
        "cannot connect to `auth`: the process ended",
        "nothing uses the input `api-key`",
        "write { \"NAME\": \"value\" }",
        "keep it in a variable and write ${API_KEY}",
        "set it before you start it, or write ${TOKEN:-default}",
        "the program does not replace `$AUTH_TOKEN`: it stays as it is written",
        "there is no x-api-key header",
    ] {
        assert_eq!(mask("", sentence), sentence);
    }
}
