//! `rehearse mcp auth`, and the use of its tokens by other commands.

use std::{os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::{
    issuer::{Issuer, READER, REFRESH, REFRESHED, SECRET, WRITER},
    mcp::{json_of, mcp},
    rehearse::{Rehearse, Run, Running, request},
    terminal::Terminal,
};

#[test]
fn the_prompt_says_how_to_authorize() {
    let world = Fixture::new();
    let server = json!({ "type": "http", "url": world.url });
    let config = json!({ "mcpServers": { "my notes": server } }).to_string();
    let story = Rehearse::new().file(".mcp.json", &config).env("HOME", "home").env("XDG_DATA_HOME", world.data);
    let run = story.args(["repl", "--mcp-config", ".mcp.json"]).stdin("connect 'my notes'\n").run().code(1);
    let hint = "a user must authorize it in a browser\nhint: auth 'my notes'\n";
    assert_eq!(run.stderr().matches(hint).count(), 2, "{}", run.stderr());
}

/// A server that requires tokens, its authorization server, and the token store.
struct Fixture {
    issuer: Issuer,
    _server: Running,
    url: String,
    data: &'static str,
    _folder: TempDir,
}

impl Fixture {
    /// Tokens are valid for an hour.
    fn new() -> Fixture {
        Fixture::with_tokens_for(3600)
    }

    fn with_tokens_for(seconds: u64) -> Fixture {
        let issuer = Issuer::start(seconds);
        let script = json!({
            "server": { "name": "notes", "version": "1.0.0" },
            "auth": {
                "scopes": ["read"],
                "tokens": [
                    { "token": READER, "scopes": ["read"] },
                    { "token": WRITER, "scopes": ["read", "write"] },
                    { "token": REFRESHED, "scopes": ["read"] },
                ],
                "authorizationServers": [issuer.url],
            },
            "tools": [
                { "name": "read", "reply": "Buy milk." },
                { "name": "forgets", "reply": "Buy bread." },
                { "name": "write", "scopes": ["write"], "reply": "Written." },
                { "name": "reveal", "reply": format!("It is {READER}") },
                { "name": "refuse", "reply": { "rpcError": { "code": 1, "message": format!("not {READER}") } } },
            ],
            "faults": [{
                "on": { "tool": "forgets", "call": 1 },
                "do": { "status": { "code": 401, "headers": { "WWW-Authenticate": "Bearer error=\"invalid_token\"" } } },
            }],
        });
        let server = Rehearse::new().file("notes.yaml", &script.to_string());
        let mut server = server.args(["mock", "notes.yaml", "--listen", "127.0.0.1:0"]).start();
        let url = format!("http://{}/mcp", server.address("http://", "/mcp"));
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().to_str().expect("UTF-8").to_owned().leak();
        Fixture { issuer, _server: server, url, data, _folder: folder }
    }

    /// `rehearse mcp` with this server in a config.
    fn story(&self, args: &[&str]) -> Rehearse {
        self.with_oauth(args, &json!({}))
    }

    fn with_oauth(&self, args: &[&str], oauth: &Json) -> Rehearse {
        let server = json!({ "type": "http", "url": self.url, "oauth": oauth });
        let config = json!({ "mcpServers": { "web": server } }).to_string();
        mcp(args.iter().copied()).env("XDG_DATA_HOME", self.data).file(".mcp.json", &config)
    }

    /// Runs a command and checks that it prints no secrets.
    #[track_caller]
    fn run(&self, args: &[&str]) -> Run {
        without_secrets(self.story(args).run())
    }
}

#[track_caller]
fn without_secrets(run: Run) -> Run {
    let said = format!("{}{}", run.stdout_text(), run.stderr());
    assert!(!said.contains(SECRET), "{said}");
    run
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("it is there").permissions().mode() & 0o777
}

#[test]
fn the_trace_of_an_authorization_has_no_secrets() {
    let world = Fixture::with_tokens_for(0);
    let issuer = &world.issuer.url;
    let run = world.run(&["auth", "--headless", "--trace"]).code(0);
    let run = run
        .stderr_has(&format!("→ HTTP GET {issuer}/.well-known/oauth-authorization-server | accept: application/json"))
        .stderr_has("← HTTP body: {\"issuer\":")
        .stderr_has(&format!("→ HTTP POST {issuer}/register | "))
        .stderr_has("→ HTTP body: {\"client_name\":\"rehearse\"")
        .stderr_has(&format!("→ HTTP GET {issuer}/authorize\n"))
        .stderr_has(&format!("→ HTTP POST {issuer}/token | "))
        .stderr_has("→ HTTP body: grant_type=authorization_code&code=***&")
        .stderr_has("&code_verifier=***&");
    assert!(!run.stderr().contains("state="), "{}", run.stderr());
    // Requests for tokens are in the trace of a command.
    let run = world.run(&["call-tool", "read", "--trace"]).stdout("Buy milk.\n").code(0);
    let run = run.stderr_has("→ HTTP body: grant_type=refresh_token&refresh_token=***").stderr_has("\"tools/call\"");
    assert!(run.stderr().find("/token |") < run.stderr().find("\"tools/call\""), "{}", run.stderr());
    world.run(&["auth", "--logout", "--trace"]).stderr_has("→ HTTP GET ").code(0);
}

#[test]
fn a_token_is_reused_until_logout() {
    let world = Fixture::new();
    let first = world.run(&["call-tool", "read"]).stdout("").code(3);
    let hint = "requires authorization: a user must authorize it in a browser\nhint: rehearse mcp auth web\n";
    first.stderr_has(hint);
    assert_eq!(world.issuer.count("GET /authorize"), 0);
    world.run(&["auth", "--status"]).stdout("✗ web no token\n").code(1);

    let got = world.run(&["auth", "--headless"]).code(0);
    got.stdout_has(&format!("✓ web\n  Issuer: {}\n  Scopes: read\n  Expires: ", world.issuer.url))
        .stdout_has("  Refreshed automatically: yes\n");
    let folder = Path::new(world.data).join("rehearse/tokens");
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = folder.read_dir().expect("a folder").map(|file| file.expect("a file").path()).collect();
    assert!(!files.is_empty() && files.iter().all(|file| mode(file) == 0o600), "{files:?}");

    for _ in 0..2 {
        world.run(&["call-tool", "read", "--trace"]).stdout("Buy milk.\n").stderr_has("tools/call").code(0);
    }
    assert_eq!(world.issuer.count("GET /authorize"), 1);
    assert_eq!(world.issuer.count("POST /token"), 1);
    let status = json_of(world.story(&["auth", "--status"]), 0);
    let web = &status["servers"][0];
    assert_eq!((&web["server"], &web["isAuthorized"], &web["scopes"]), (&json!("web"), &json!(true), &json!(["read"])));
    assert_eq!((&web["issuer"], &web["canBeRefreshed"]), (&json!(world.issuer.url), &json!(true)));
    assert!(web["expires"].as_str().is_some_and(|at| at.ends_with('Z')) && !status.to_string().contains(SECRET));

    world.run(&["auth", "--logout"]).stdout("The token of web was revoked and deleted.\n").code(0);
    world.run(&["auth", "--logout"]).stdout("There is no token of web.\n").code(0);
    let again = world.run(&["ping"]).code(3);
    assert!(again.stderr().ends_with("hint: rehearse mcp auth web\n"), "{}", again.stderr());
}

#[test]
fn the_tokens_of_code_agent_are_in_its_folder() {
    let world = Fixture::new();
    let config = json!({ "mcp": { "servers": { "my web": { "type": "http", "httpUrl": world.url } } } }).to_string();
    let story = |args: &[&str]| {
        let story = mcp(args.iter().copied()).args(["--mcp-config", "c.json", "--dialect", "code_agent"]);
        story.env("HOME", world.data).env("XDG_DATA_HOME", world.data).file("c.json", &config).run()
    };
    story(&["auth", "--headless"]).stdout_has("✓ my web\n").code(0);
    let file = Path::new(world.data).join(".code_agent/mcp-tokens/my_web.json");
    assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
    assert!(!Path::new(world.data).join("rehearse").exists(), "there is one store");
    story(&["call-tool", "read"]).stdout("Buy milk.\n").code(0);
    story(&["auth", "--logout"]).code(0);
    assert!(!file.exists() || !std::fs::read_to_string(&file).expect("reads").contains("refresh"));
}

#[test]
fn a_token_in_server_output_is_hidden_except_in_results() {
    let world = Fixture::new();
    world.run(&["auth", "--headless"]).code(0);
    let result = format!("It is {READER}\n");
    let run = world.story(&["call-tool", "reveal", "--trace"]).run().stdout(&result).stderr_has("It is ***").code(0);
    assert!(!run.stderr().contains(SECRET), "{}", run.stderr());
    world.run(&["call-tool", "refuse", "--trace"]).stderr_has("error: rpc: error 1: not ***\n").code(1);
    world.story(&["call-tool", "refuse", "--show-secrets"]).run().stderr_has(&format!("not {READER}\n")).code(1);
}

#[test]
fn without_a_possible_login_no_authorization_server_is_contacted() {
    let mut server = Rehearse::new().args(["mock", "oauth-protected", "--listen", "127.0.0.1:0"]).start();
    let url = format!("http://{}/mcp", server.address("http://", "/mcp"));
    for flags in [&[][..], &["--no-browser"]] {
        let run = mcp(["call-tool", "add_note", "text=x", "--http", &url, "--trace"].iter().chain(flags).copied());
        let run = run.env("XDG_DATA_HOME", "data").stdin("").run().stdout("").code(3);
        let run =
            run.stderr_has("requires authorization: a user must authorize it in a browser\n").stderr_has(&format!(
                "\nhint: rehearse mcp auth --http {url}; or pass a token with --header 'Authorization: Bearer TOKEN'\n"
            ));
        assert!(!run.stderr().contains("auth.example.com"), "{}", run.stderr());
    }
}

#[test]
fn an_expired_token_is_refreshed_without_the_user() {
    let world = Fixture::with_tokens_for(0);
    world.run(&["auth", "--headless"]).code(0);
    world.run(&["call-tool", "read", "--no-browser"]).stdout("Buy milk.\n").code(0);
    assert_eq!(world.issuer.last("POST /token").form["grant_type"], "refresh_token");
    assert_eq!((world.issuer.count("GET /authorize"), world.issuer.count("POST /token")), (1, 2));
}

#[test]
fn a_token_is_refreshed_with_the_client_of_its_authorization() {
    let world = Fixture::with_tokens_for(0);
    let renewed = "  Refreshed automatically: yes\n";
    world.run(&["auth", "--headless", "--client-id", "me"]).stdout_has(renewed).code(0);
    world.run(&["auth", "--status"]).stdout_has(renewed).code(0);
    world.run(&["call-tool", "read", "--no-browser"]).stdout("Buy milk.\n").code(0);
    let asked = world.issuer.last("POST /token").form;
    assert_eq!((&*asked["grant_type"], &*asked["client_id"]), ("refresh_token", "me"));

    let alone = ["auth", "--client-credentials", "--client-id", "robot", "--client-secret-env", "ROBOT"];
    let with_secret = |args: &[&str]| without_secrets(world.story(args).env("ROBOT", "geheim-robot-1234").run());
    with_secret(&alone).code(0);
    with_secret(&["auth", "--status"]).stdout_has(renewed).code(0);
    with_secret(&["call-tool", "read"]).stdout("Buy milk.\n").code(0);
    let asked = world.issuer.last("POST /token");
    assert_eq!((&*asked.form["grant_type"], &*asked.form["client_id"]), ("client_credentials", "robot"));
    assert!(asked.authorization.is_some_and(|it| it.starts_with("Basic ")));
    assert_eq!(world.issuer.count("GET /authorize"), 1);
    let status = world.run(&["auth", "--status"]);
    status.stdout_has("✗ web\n").stdout_has("  Refreshed automatically: no\n").code(1);
}

#[test]
fn the_command_to_authorize_again_is_reported() {
    let world = Fixture::new();
    let args = ["auth", "--headless", "--client-id", "me", "--client-secret-env", "ME", "--issuer", &world.issuer.url];
    without_secrets(world.story(&args).env("ME", "geheim-me-1234").run()).code(0);
    let hint = format!("--client-id me --client-secret-env ME --issuer {}", world.issuer.url);
    let refused = world.run(&["call-tool", "write"]).stdout("").code(3);
    refused.stderr_has(&format!("\nhint: rehearse mcp auth web {hint} --scope write\n"));
    let elsewhere = ["auth", "--headless", "--issuer", "https://as.example"];
    let why = format!("the server names {}, and not the authorization server https://as.example\n", world.issuer.url);
    world.run(&elsewhere).stdout("").stderr_has(&why).code(3);
}

#[test]
fn a_client_does_not_follow_a_server_to_another_issuer() {
    let world = Fixture::new();
    let oauth = json!({ "clientId": "known" });
    world.with_oauth(&["auth", "--headless"], &oauth).run().code(0);
    world.with_oauth(&["auth", "--logout"], &oauth).run().stdout_has("was revoked and deleted").code(0);
    let other = Issuer::start(3600);
    let metadata = format!("{}/.well-known/oauth-authorization-server", other.url);
    let moved = json!({ "clientId": "known", "authServerMetadataUrl": metadata });
    let refused = world.with_oauth(&["auth", "--headless"], &moved).run().stdout("").code(3);
    refused
        .stderr_has(&format!("the client id belongs to the authorization server {}", world.issuer.url))
        .stderr_has("\nhint: if the authorization server has moved, use --issuer\n");
    assert_eq!(other.count("POST /token"), 0);
    world.with_oauth(&["auth", "--headless", "--issuer", &other.url], &moved).run().code(0);
    assert_eq!(other.last("POST /token").form["client_id"], "known");
}

#[test]
fn a_rejected_token_is_refreshed_and_the_call_is_repeated() {
    let world = Fixture::new();
    world.run(&["auth", "--headless"]).code(0);
    let run = world.run(&["call-tool", "forgets", "--no-browser", "--trace"]).stdout("Buy bread.\n").code(0);
    let calls = run.stderr().lines().filter(|line| line.contains("\"method\":\"tools/call\"")).count();
    assert_eq!(calls, 2, "{}", run.stderr());
    run.stderr_has("← HTTP 401 Unauthorized | ").stderr_has("| www-authenticate: Bearer error=\"invalid_token\"\n");
    assert_eq!(world.issuer.last("POST /token").form["grant_type"], "refresh_token");
    assert_eq!((world.issuer.count("GET /authorize"), world.issuer.count("POST /token")), (1, 2));
    // A configured header is never replaced.
    let refused = mcp(["call-tool", "forgets", "--http", &world.url, "--header", "Authorization: Bearer no"]).run();
    refused.stdout("").stderr_has("answered with HTTP 401: ").code(3);
}

#[test]
fn missing_scopes_are_reported() {
    let world = Fixture::new();
    world.run(&["auth", "--headless"]).code(0);
    let refused = world.run(&["call-tool", "write"]).stdout("").code(3);
    refused.stderr_has("error: unauthorized: ").stderr_has("\nhint: rehearse mcp auth web --scope write\n");
    world.run(&["auth", "web", "--scope", "write", "--headless"]).stdout_has("Scopes: read write\n").code(0);
    world.run(&["call-tool", "write"]).stdout("Written.\n").code(0);
}

#[test]
fn logout_revokes_and_always_deletes_the_token() {
    let world = Fixture::new();
    let kept = || Path::new(world.data).join("rehearse/tokens").read_dir().expect("a folder").flatten();
    let tokens = || kept().filter(|file| file.path().extension().is_some_and(|it| it == "json")).count();
    world.run(&["auth", "--headless"]).code(0);
    assert_eq!(tokens(), 1);
    let logout = json_of(world.story(&["auth", "--logout"]), 0);
    assert_eq!(logout, json!({ "server": "web", "loggedOut": true, "revoked": true }));
    let asked = world.issuer.all("POST /revoke");
    let of = |name: &str| asked.iter().map(|asked| asked.form[name].clone()).collect::<Vec<_>>();
    assert_eq!(
        (of("token"), of("client_id")),
        (vec![REFRESH.to_owned(), READER.to_owned()], vec!["registered".to_owned(); 2])
    );
    assert_eq!(of("token_type_hint"), ["refresh_token", "access_token"]);
    assert!(asked.iter().all(|asked| asked.authorization.is_some()) && tokens() == 0);

    let forgotten = "The token of web was deleted.\n";
    for (status, why) in [
        (
            Some("503 Service Unavailable"),
            "warning: the token of 'web' was not revoked and may still be valid: the authorization server did not revoke the token: HTTP 503\n",
        ),
        (None, ""),
    ] {
        world.run(&["auth", "--headless"]).code(0);
        world.issuer.revoke_with(status);
        let run = world.run(&["auth", "--logout"]).stdout(forgotten).code(0);
        assert_eq!((run.stderr(), tokens()), (why, 0));
    }
    // Without a token there is no request.
    let before = world.issuer.all("POST /revoke").len();
    world.run(&["auth", "--logout"]).stdout("There is no token of web.\n").code(0);
    assert_eq!(world.issuer.all("POST /revoke").len(), before);
}

/// As a person in a browser does.
#[track_caller]
fn approve(url: &str) {
    let to = |url: &str| {
        let url = url::Url::parse(url).expect("a URL");
        let address = format!("127.0.0.1:{}", url.port().expect("a port"));
        request("GET", &address, &url[url::Position::BeforePath..], &[], "")
    };
    let redirected = to(url);
    let back = redirected.lines().find_map(|line| line.strip_prefix("location: ")).expect("a redirect");
    assert!(to(back).starts_with("HTTP/1.1 200"), "{back}");
}

#[test]
fn the_repl_gets_uses_and_deletes_a_token() {
    let world = Fixture::new();
    let story = Rehearse::new().env("XDG_DATA_HOME", world.data).env("HOME", "home").env("XDG_CONFIG_HOME", "");
    let mut running = story.args(["repl", "--http", &world.url]).start();
    running.stderr_line("hint: auth 127.0.0.1");
    running.send("auth 127.0.0.1");
    running.stderr_line("Open this URL to authorize 127.0.0.1:");
    let url = running.stderr_line("  http://").trim().to_owned();
    approve(&url);
    running.stdout_line("MCP server '127.0.0.1' is connected, with 5 tools");
    running.send("call read");
    running.stdout_line("Buy milk.");
    running.send("auth 127.0.0.1 --logout");
    running.stdout_line("The token of 127.0.0.1 was revoked and deleted.");
    running.stdout_line("MCP server '127.0.0.1' is disconnected");
    running.send("connect 127.0.0.1");
    running.stderr_line("connection failed: http://");
    running.stderr_line("hint: auth 127.0.0.1");
    running.send("auth unknown");
    running.stderr_line("unknown server \"unknown\"");
    running.close_stdin();
    without_secrets(running.end().code(1));
}

/// Replaces the browser by a program that writes the URL to `opened`.
fn with_browser(mut story: Rehearse) -> Rehearse {
    let opener = "#!/bin/sh\necho \"$1\" > opened.part && mv opened.part opened\n";
    for name in ["xdg-open", "open"] {
        story = story.file(name, opener).mode(name, 0o700);
    }
    let path = format!("{}:{}", story.folder().display(), std::env::var("PATH").expect("a path"));
    story.env("PATH", path.leak())
}

#[test]
fn auth_replaces_a_pending_authorization_in_the_repl() {
    let world = Fixture::new();
    let story = Rehearse::new().env("XDG_DATA_HOME", world.data).env("HOME", "home").env("XDG_CONFIG_HOME", "");
    let mut terminal = Terminal::start(with_browser(story).args(["repl", "--http", &world.url]));
    let opened = terminal.path("opened");
    let url = |terminal: &mut Terminal| {
        terminal.shows("Open this URL to authorize 127.0.0.1:");
        while !opened.exists() {
            std::thread::yield_now();
        }
        let url = std::fs::read_to_string(&opened).expect("reads");
        std::fs::remove_file(&opened).expect("is removed");
        url.trim().to_owned()
    };
    url(&mut terminal);
    terminal.types("auth 127.0.0.1\r");
    approve(&url(&mut terminal));
    terminal.shows("is connected, with 5 tools").types("call read\r").shows("Buy milk.").types("quit\r");
    terminal.end(0);
}

#[test]
fn the_browser_opens_and_redirects_back() {
    let world = Fixture::new();
    for flags in [&["--no-browser"][..], &[]] {
        let story = world.story(&["auth", "--http", &world.url]).args(flags.iter().copied());
        let mut running = with_browser(story).start();
        running.stderr_line("Open this URL to authorize 127.0.0.1:");
        let url = running.stderr_line("  http://").trim().to_owned();
        approve(&url);
        let opened = running.path("opened");
        let run = without_secrets(running.end().code(0)).stdout_has("✓ 127.0.0.1\n");
        match flags {
            [] => {
                // The program that opens the URL keeps running.
                while !opened.exists() {
                    std::thread::yield_now();
                }
                assert_eq!(run.read("opened").trim(), url);
            }
            _ => assert!(!opened.exists()),
        }
    }
    let run = mcp(["call-tool", "read", "--http", &world.url]).env("XDG_DATA_HOME", world.data).run();
    without_secrets(run).stdout("Buy milk.\n").code(0);
}

#[test]
fn json_output_is_one_object_without_the_url() {
    let world = Fixture::new();
    let mut running = world.story(&["auth", "--no-browser", "--json"]).start();
    running.stderr_line("Open this URL to authorize web:");
    approve(running.stderr_line("  http://").trim());
    let run = without_secrets(running.end().code(0));
    let document = |run: &Run| serde_json::from_str::<Json>(run.stdout_text()).expect("one JSON document");
    let mut printed = document(&run);
    let expires = printed["expires"].take();
    assert!(expires.as_str().is_some_and(|at| at.ends_with('Z')), "{expires}");
    assert_eq!(
        printed,
        json!({
            "server": "web",
            "isAuthorized": true,
            "issuer": world.issuer.url,
            "scopes": ["read"],
            "expires": null,
            "canBeRefreshed": true,
        })
    );
    let forgotten = document(&world.run(&["auth", "--logout", "--json"]).code(0));
    assert_eq!(forgotten, json!({ "server": "web", "loggedOut": true, "revoked": true }));
    let none = mcp(["auth", "--status", "--json"]).file(".mcp.json", r#"{ "mcpServers": {} }"#).run().code(4);
    assert_eq!(document(&none), json!({ "servers": [] }));
}

#[test]
fn the_oauth_client_comes_from_the_config_and_the_options() {
    let world = Fixture::new();
    let metadata = format!("{}/.well-known/oauth-authorization-server", world.issuer.url);
    let oauth = json!({ "clientId": "known", "scopes": "read write", "authServerMetadataUrl": metadata });
    world.with_oauth(&["auth", "--headless"], &oauth).run().code(0);
    let asked = world.issuer.last("GET /authorize").form;
    assert_eq!((&*asked["client_id"], &*asked["scope"]), ("known", "read write"));
    assert_eq!(world.issuer.count("POST /register"), 0);

    let alone = ["auth", "--client-credentials", "--client-id", "robot", "--client-secret-env", "ROBOT"];
    let run = world.story(&alone).env("ROBOT", "geheim-robot-1234").run().code(0);
    without_secrets(run);
    let asked = world.issuer.last("POST /token");
    assert_eq!((&*asked.form["grant_type"], &*asked.form["client_id"]), ("client_credentials", "robot"));
    assert!(asked.authorization.is_some_and(|it| it.starts_with("Basic ")));
    world.run(&["call-tool", "write"]).stdout("Written.\n").code(0);

    let usage = |args: &[&str], part: &str| drop(world.run(args).stdout("").stderr_has(part).code(2));
    usage(&["auth", "--client-credentials", "--client-id", "robot"], "requires --client-id and --client-secret-env");
    usage(&["auth", "--client-id", "robot", "--client-secret-env", "NOBODY_HAS_SET_THIS"], "is not set");
    usage(&["auth", "--status", "--scope", "read"], "cannot be used with");
    usage(&["auth", "--stdio", "x"], "uses stdio and needs no token");
    usage(
        &["auth", "--http", &world.url, "--header", "Authorization: Bearer geheim-own-1234"],
        "already has an Authorization header",
    );
}

#[test]
fn an_issuer_without_a_token_is_reported() {
    let args = ["auth", "--headless", "--http", "http://127.0.0.1:1/mcp"];
    let run = mcp(args).env("XDG_DATA_HOME", "/nowhere").run();
    run.stdout("").stderr_has("error: 127.0.0.1 is not authorized: cannot reach http://127.0.0.1:1/").code(3);
    let run = mcp(args).run().stdout("").code(3);
    run.stderr_has("no folder for tokens: set HOME or XDG_DATA_HOME");
    // The server requires no token.
    let server = Rehearse::new().args(["mock", "basic", "--listen", "127.0.0.1:0"]);
    let mut server = server.start();
    let url = format!("http://{}/mcp", server.address("http://", "/mcp"));
    let run = mcp(["auth", "--headless", "--http", &url]).env("XDG_DATA_HOME", "/nowhere").run().code(3);
    run.stderr_has("refused to register the client: HTTP 404\nhint: use --client-id if");
    mcp(["auth"]).run().stdout("").stderr_has("No MCP servers configured.\n").code(4);
}
