use super::*;
use crate::config::{Problem, json};

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
fn what_is_said_and_shown_of_a_source_has_no_secrets() {
    let source = Source::new("x", "token: ghp_0123456789abcdefABCD\nné: x\n");
    let secrets = secrets_of(&source, None);
    assert_eq!(blotted(&source, &secrets).text, "token: ************************\nné: x\n");
    let references = Source::new("x", "\"API_TOKEN\": \"${env:API_TOKEN}\", --token $TOKEN");
    assert_eq!(secrets_of(&references, None), []);
    assert_eq!(blotted(&source, &[]).text, source.text);
}

#[test]
fn what_is_quoted_is_censored_and_words_of_ours_are_not() {
    let source = Source::new("x", "password: 0123456789\npasswd: over\n");
    let secrets = secrets_of(&source, None);
    let censored = |problem| {
        let Problem { message, hint, .. } = Censor::new(&source, &secrets).problem(&problem);
        (message.into_owned(), hint.map(Cow::into_owned).unwrap_or_default())
    };
    let formatted = |message: &str, hint: &str| Problem::new(Span::default(), message.to_owned()).hint(hint.to_owned());
    for (message, hint, expected) in [
        ("found `ghp_0123456789abcdefABCD`", "not `0123456789`", ("found `***`", "not `***`")),
        ("`over` is passed over", "write \"over\"", ("`over` is passed over", "write \"***\"")),
        ("no 0123456789 here", "", ("no *** here", "")),
    ] {
        assert_eq!(censored(formatted(message, hint)), (expected.0.to_owned(), expected.1.to_owned()));
    }
    let constant = Problem::new(Span::default(), "a `pass` of 0123456789");
    assert_eq!(censored(constant).0, "a `pass` of 0123456789");
}

#[test]
fn secrets_are_found_where_nobody_reads_them() {
    for text in [
        "{ // API_KEY: geheim1234\n}",
        r#"{"env": {"API_KEY": "geheim1234", "API_KEY": "${X}"}}"#,
        r#"{"env": "API_KEY=geheim1234"}"#,
        r#"{"args": "-y b --api-key geheim1234"}"#,
        r#"{"args": ["--api-key", "geheim1234"], "x": }"#,
        r#"{"headers": "Authorization: Bearer geheim1234"}"#,
        r#"{"inputs": [{"password": true, "default": "geheim1234"}]}"#,
        r#"{ // "API_KEY": "${API_KEY:-geheim1234}""#,
        r#"{"env": "DB_PASSWORD geheim1234"}"#,
        r#"{"env": ["DB_PASSWORD", "geheim1234"]}"#,
        r#"{"env": [["DB_PASSWORD", "geheim1234"]]}"#,
        r#"{"env": ["DB_PASSWORD", "Pw-geheim1234"]}"#,
        r#"{"env": {"DB_PASSWORD 'geheim1234'": null}}"#,
        r#"{"env": ["PORT 1", "DB_PASSWORD geheim1234"]}"#,
        r#"{"headers": "A: b\nX-Api-Key geheim1234"}"#,
        "{ // password - geheim1234\n}",
        "a: b # the token is geheim1234\n",
        "{＂DB_PASSWORD＂: ＂geheim1234＂}",
        r#"{"args": ["-u", "ada:geheim1234"]}"#,
        r#"{"args": ["--user=ada:geheim1234"]}"#,
        r#"{"args": ["--user=ada:geheim1234"], }}"#,
        r#"{"args": "curl -u ada:geheim1234 x"}"#,
        r#"{"env": {"DSN": "root:geheim1234@tcp(h:3306)/db"}}"#,
    ] {
        let source = Source::new("x", text);
        let root = json::parse(&source).map(|document| document.root).ok();
        let found = secrets_of(&source, root.as_ref());
        assert!(found.iter().any(|span| text[span.start..span.end].contains("geheim1234")), "{text}: {found:?}");
    }
}

#[test]
fn what_is_a_secret_somewhere_is_hidden_wherever_it_stands() {
    for text in [
        r#"{"env": {"API_KEY": "geheim1234", "NAME": "geheim1234"}}"#,
        r#"{"env": {"NAME": "x:geheim1234", "PASSWORD": "${P}geheim1234"}, "url": "https://h/geheim1234/mcp"}"#,
        "{ // now geheim1234\n\"args\": [\"--token\", \"geheim1234\", \"geheim1234\"]}",
        "a: geheim1234\ntoken: geheim1234\n",
    ] {
        let source = Source::new("x", text);
        let root = json::parse(&source).map(|document| document.root).ok();
        let shown = blotted(&source, &secrets_of(&source, root.as_ref()));
        assert!(!shown.text.contains("geheim"), "{}", shown.text);
    }
    let plain = r#"{"env": {"PASSWORD": "postgres", "USER": "postgres", "PWD": "/home/ada/work"}}"#;
    let source = Source::new("x", plain);
    let root = json::parse(&source).expect("reads").root;
    let shown = blotted(&source, &secrets_of(&source, Some(&root)));
    assert_eq!(shown.text, plain.replacen("postgres", "********", 1));
}

#[test]
fn a_secret_of_yaml_is_hidden_wherever_it_stands_however_it_is_written() {
    for (written, expected) in [
        ("env: {API_KEY: geheim1234, N: 5}", "env: {API_KEY: **********, N: 5}"),
        ("env: {API_KEY: geheim1234}", "env: {API_KEY: **********}"),
        (
            "env: {\"API_KEY\": \"geheim1234\", DB_PASSWORD: a b-c}",
            "env: {\"API_KEY\": \"**********\", DB_PASSWORD: *****}",
        ),
        ("env: {\n    API_KEY: geheim1234,\n    N: 5\n  }", "env: {\n    API_KEY: **********,\n    N: 5\n  }"),
        ("API_KEY: geheim1234 # the old one", "API_KEY: ********** *************"),
        ("API_KEY: |\n    geheim1234", "API_KEY: *\n    **********"),
        ("API_KEY: >-\n    geheim1234\n    more", "API_KEY: **\n    **********\n    ****"),
        ("API_KEY: &k geheim1234", "API_KEY: ** **********"),
        ("API_KEY: !!str &k geheim1234", "API_KEY: ***** ** **********"),
        ("API_KEY:\n    geheim1234", "API_KEY:\n    **********"),
        ("API_KEY: geheim1234\n    tail", "API_KEY: **********\n    ****"),
        ("? API_KEY\n  : geheim1234", "? API_KEY\n  : **********"),
    ] {
        let text = format!("a:\n  x: go geheim1234 now\n  {written}\n");
        let source = Source::new("x", text.as_str());
        let root = crate::config::parse_yaml(&source).expect(&text);
        for root in [Some(&root), None].into_iter().take(if written.contains('?') { 1 } else { 2 }) {
            let shown = blotted(&source, &secrets_of(&source, root)).text.clone();
            assert_eq!(shown, format!("a:\n  x: go ********** now\n  {expected}\n"), "{}", root.is_some());
        }
    }
}

#[test]
fn the_secrets_of_a_source_are_found_also_if_nobody_can_read_it() {
    let text = r#"{"s": {"env": {"API_KEY": "0123456789"}, "args": ["--token", "abcdefghij", "x"], "url": "https://h/?key=1"}}"#;
    let source = Source::new("x", text);
    let root = json::parse(&source).expect("reads").root;
    let shown =
        |root| secrets_of(&source, root).into_iter().map(|span| &text[span.start..span.end]).collect::<Vec<_>>();
    assert_eq!(shown(Some(&root)), ["0123456789", "abcdefghij"]);
    assert_eq!(shown(None), ["0123456789", "abcdefghij"]);
}

#[test]
fn a_secret_is_hidden_wherever_it_stands_in_a_value() {
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
fn what_a_password_is_around_a_reference_is_warned_of_and_a_word_is_not() {
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
fn what_may_be_to_fill_in_is_hidden_and_not_warned_of() {
    for value in ["my_password", "my-dog-token", "add your key", "[API_KEY]", "REDACTED"] {
        assert_eq!((mask("API_KEY", value).as_ref(), secrets_in("API_KEY", value)), (MASK, vec![]), "{value}");
    }
    for value in ["$env:API_KEY", "process.env.API_KEY", "os.environ['A_KEY']", "%API_KEY%", "env:API_KEY_2"] {
        assert_eq!((mask("API_KEY", value).as_ref(), secrets_in("API_KEY", value)), (value, vec![]), "{value}");
    }
    for value in ["%A8F3K2J1%", "env:A8F3K2J1", "$env:Xk29fJ3", "x-env:API_KEY-9f8d7s6a"] {
        assert_eq!(mask("API_KEY", value), MASK, "{value}");
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

#[test]
fn what_a_note_says_of_a_secret_is_found_as_in_a_comment() {
    let text =
        r#"{"_comment": "the password is geheim99", "notes": ["a", "token - geheim98"], "x": "the password is one"}"#;
    let source = Source::new("x.json", text);
    let root = crate::config::json::parse(&source).expect("JSON").root;
    let secrets = secrets_of(&source, Some(&root));
    let found: Vec<_> = secrets.iter().map(|span| &text[span.start..span.end]).collect();
    assert_eq!(found, ["geheim99", "geheim98"]);
}

/// The text with all that is secret replaced.
fn hidden(text: &str) -> String {
    let (mut shown, mut at) = (String::new(), 0);
    for Span { start, end } in secrets_of(&Source::new("x", text), None) {
        shown += &text[at..start];
        shown += MASK;
        at = end;
    }
    shown + &text[at..]
}

#[test]
fn a_value_in_a_broken_text_goes_as_far_as_it_may() {
    for (text, expected) in [
        (r#"{"PASSWORD":"a b", "x": 1"#, r#"{"PASSWORD":"***", "x": 1"#),
        (r#"{"PASSWORD":",a}\"'b","#, r#"{"PASSWORD":"***","#),
        (r#"{"PASSWORD": "=a","#, r#"{"PASSWORD": "***","#),
        (r#"{"API\u005fKEY": "a b","#, r#"{"API\u005fKEY": "***","#),
        (r#"{"token":"https://h/<id>?token=A;password:S&token=C","#, r#"{"token":"***","#),
        (r#"{"Authorization": ["Bearer","S"],"#, r#"{"Authorization": [***],"#),
        (r#"{"password":true,"default":"S1234","#, r#"{"password":true,"default":"***","#),
        (r#"[{"name":"API_KEY","value":"S1234"},"#, r#"[{"name":"API_KEY","value":"***"},"#),
        (r#"["--1password-token","S1234"]"#, r#"["--1password-token","***"]"#),
        ("{ // https://u:geheim@h", "{ // https://u:***@h"),
        ("{ // --2fa-secret geheim", "{ // --2fa-secret ***"),
        ("{ `API_KEY`: `a b`, «API_KEY»: «a b»", "{ `API_KEY`: `***`, «API_KEY»: «***»"),
        (r#"{"env": "PASSWORD=a b", "x""#, r#"{"env": "PASSWORD=***", "x""#),
        ("a:\n  PASSWORD: a b\n  x: [", "a:\n  PASSWORD: ***\n  x: ["),
        ("a:\n  PASSWORD: |\n    a\n\n    b\n  x: [", "a:\n  PASSWORD: ***\n    ***\n\n    ***\n  x: ["),
        ("a:\n  PASSWORD:\n  S1\n", "a:\n  PASSWORD:\n  ***\n"),
        ("a:\n  PASSWORD: |\n  S1\nb: c\n", "a:\n  PASSWORD: ***\n  ***\nb: c\n"),
        ("a:\n  PASSWORD: S1\n\n  S2\n", "a:\n  PASSWORD: ***\n\n  ***\n"),
        ("a:\n  PASSWORD:\n  b: c\n", "a:\n  PASSWORD:\n  b: c\n"),
        ("a:\n  token:\n    - a\n  x: [", "a:\n  token:\n    ***\n  x: ["),
        ("a:\n  token: &a b\n  x: [", "a:\n  token: *** ***\n  x: ["),
        ("Authorization: Token S1\nx: [", "Authorization: Token ***\nx: ["),
        ("a: # token: b c\n    x: [", "a: # token: ***\n    x: ["),
        ("auth:\n  type: bearer\n", "auth:\n  type: bearer\n"),
        ("token: ${TOKEN} # mine\n", "token: ${TOKEN} # mine\n"),
    ] {
        assert_eq!(hidden(text), expected);
    }
    let long = format!("{{\"API_KEY\": \"{}\"", "äb".repeat(1000));
    assert_eq!(hidden(&long), "{\"API_KEY\": \"***\"");
}
