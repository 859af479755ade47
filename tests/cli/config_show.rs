//! `rehearse config show` at the command line.

use serde_json::{Value as Json, json};

use crate::rehearse::Rehearse;

const TOKEN: &str = "ghp_0123456789abcdefABCD";

/// On a machine with configs only in `home`.
fn show(args: &[&str]) -> Rehearse {
    let unset = ["XDG_CONFIG_HOME", "CODE_AGENT_MCP_SERVERS", "CODE_AGENT_MCP_CONFIG_PATH"];
    let story = unset.into_iter().fold(Rehearse::new(), |story, name| story.env(name, ""));
    story.env("HOME", "home").args(["config", "show"]).args(args.iter().copied())
}

fn json(story: Rehearse) -> Json {
    serde_json::from_str(story.args(["--format", "json"]).run().code(0).stdout_text()).expect("JSON")
}

#[test]
fn values_are_shown_with_their_location_and_overridden_servers_with_the_winner() {
    let project = format!(
        r#"{{"mcpServers": {{
  "weather": {{
    "command": "npx",
    "args": ["-y", "weather", "--api-key", "0123456789"],
    "env": {{ "CITY": "Oslo", "TOKEN": "{TOKEN}" }}
  }}
}}}}"#
    );
    let user = r#"{"mcp": {"enabled": false, "globalSettings": {"timeout": 5000}, "servers": {
  "weather": {"type": "stdio", "command": "other"},
  "web": {"type": "http", "httpUrl": "https://a.example/mcp?token=0123456789"}
}}}"#;
    let story = || show(&[]).file(".mcp.json", &project).file("home/.code_agent/config.json", user);
    story()
        .run()
        .stdout_has(
            "\
weather  Claude Code, .mcp.json:2:3
  transport      stdio      .mcp.json:3:5
  command        npx        .mcp.json:3:16
  args.0         -y         .mcp.json:4:14
  args.1         weather    .mcp.json:4:20
  args.2         --api-key  .mcp.json:4:31
  args.3         ***        .mcp.json:4:44
  env.CITY       Oslo       .mcp.json:5:22
  env.TOKEN      ***        .mcp.json:5:39
  enabled        true       default
  timeouts.call  1m         default

web  disabled  code_agent, home/.code_agent/config.json:3:3
  transport         http                             home/.code_agent/config.json:3:19
  enabled           false                            home/.code_agent/config.json:1:21
  url               https://a.example/mcp?token=***  home/.code_agent/config.json:3:38
  timeouts.connect  5s                               home/.code_agent/config.json:1:58
  timeouts.list     5s                               home/.code_agent/config.json:1:58
  timeouts.call     5s                               home/.code_agent/config.json:1:58

weather  home/.code_agent/config.json:2:3  lost to .mcp.json:2:3

2 servers from 2 sources, 1 disabled, 1 lost
",
        )
        .stdout_has("warnings; see `rehearse validate-config .mcp.json home/.code_agent/config.json`")
        .code(0);
    let shown = json(story());
    let [weather, web] = &shown["servers"].as_array().expect("a list")[..] else { panic!("{shown}") };
    assert_eq!(weather["values"]["env.TOKEN"], json!({ "value": "***", "origin": ".mcp.json:5:39" }));
    assert_eq!(weather["values"]["enabled"], json!({ "value": true, "origin": "default" }));
    // The default timeout is the one of `rehearse mcp list-servers`.
    assert_eq!(weather["values"]["timeoutSeconds.call"], json!({ "value": 60.0, "origin": "default" }));
    assert_eq!((&web["enabled"], &web["transport"]), (&json!(false), &json!("http")));
    let lost = json!([{ "name": "weather", "origin": "home/.code_agent/config.json:2:3", "to": ".mcp.json:2:3" }]);
    assert_eq!(shown["lost"], lost);
    let found = shown["files"].as_array().expect("a list").iter().filter(|file| file["found"] == true);
    assert_eq!(found.map(|file| &file["dialect"]).collect::<Vec<_>>(), ["claude-code", "code_agent"]);

    story().args(["--show-secrets"]).run().stdout_has(TOKEN).stdout_has("--api-key").stdout_has("0123456789");
}

#[test]
fn sources_have_an_order_of_precedence() {
    let server = |command: &str| format!(r#"{{"mcpServers": {{"s": {{"command": "{command}"}}}}}}"#);
    let story = |args: &[&str]| {
        let files = ["a.json", "b.json", "c.json", "d.json", ".mcp.json"];
        files.into_iter().fold(show(args), |story, name| story.file(name, &server(name)))
    };
    let command = |story: Rehearse| json(story)["servers"][0]["values"]["command"]["value"].clone();
    assert_eq!(command(story(&[])), ".mcp.json");
    assert_eq!(command(story(&[]).env("CODE_AGENT_MCP_CONFIG_PATH", "d.json")), "d.json");
    let config = ["--config", "c.json"];
    assert_eq!(command(story(&config).env("CODE_AGENT_MCP_CONFIG_PATH", "d.json")), "c.json");
    let flags = ["--mcp-config", "a.json", "--mcp-config", "b.json", "--config", "c.json"];
    assert_eq!(command(story(&flags)), "b.json");
    let list = r#"[{"name": "s", "command": "e"}]"#;
    let all = story(&flags).env("CODE_AGENT_MCP_SERVERS", list).env("CODE_AGENT_MCP_CONFIG_PATH", "d.json");
    let shown = json(all);
    assert_eq!(shown["servers"][0]["origin"], "$CODE_AGENT_MCP_SERVERS:1:11");
    assert_eq!(shown["lost"].as_array().map(Vec::len), Some(4));
}

#[test]
fn config_variables_apply_to_code_agent_or_without_a_dialect() {
    let list = r#"[{"name": "v", "command": "e"}]"#;
    let story = |args: &[&str]| {
        let story = show(args).env("CODE_AGENT_MCP_SERVERS", list).env("CODE_AGENT_MCP_CONFIG_PATH", "d.json");
        let file = |name: &str| format!(r#"{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}"#);
        story.file("d.json", &file("d")).file(".cursor/mcp.json", &file("c"))
    };
    let names = |args: &[&str]| {
        let shown = json(story(args));
        let servers = shown["servers"].as_array().expect("a list").iter();
        servers.map(|server| server["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["v", "d"]);
    assert_eq!(names(&["--dialect", "code_agent"]), ["v", "d"]);
    assert_eq!(names(&["--dialect", "cursor"]), ["c"]);
}

#[test]
fn only_named_files_must_exist_and_be_readable() {
    show(&["--config", "gone.yaml"]).run().stdout("").stderr_has("gone.yaml").stderr_has("--config").code(2);
    show(&[]).run().stdout_has("no servers").code(0);
    show(&["--dialect", "cursor", "--verbose"]).run().stdout_has("home/.cursor/mcp.json  user, not there").code(0);
    let broken = format!(r#"{{"mcpServers": {{"s": {{"env": {{"TOKEN": "{TOKEN}"}} {{"#) + "\u{1}";
    let named = show(&["--mcp-config", "b.json"]).file("b.json", &broken).run().stdout("").stderr_has("b.json").code(2);
    assert!(!named.stderr().contains(TOKEN), "{}", named.stderr());
    let default =
        show(&[]).file(".mcp.json", &broken).file(".cursor/mcp.json", r#"{"mcpServers": {"s": {"command": "x"}}}"#);
    default.run().stdout_has("1 server from 1 source").stderr_has("warning: .mcp.json:1:").code(0);
}

#[test]
fn problems_are_counted_with_a_command_that_shows_them() {
    let broken = r#"{"mcpServers": {"a": {"args": []}, "b": {"command": "x"}}}"#;
    let run = show(&["--config", "a.json"]).file("a.json", broken).run().code(0);
    run.stdout_has("a  a.json:1:17  not understood: E-MISSING").stdout_has("see `rehearse validate-config a.json`");
    let run = show(&[]).env("CODE_AGENT_MCP_SERVERS", r#"[{"command": "x"}]"#).run();
    run.stderr_has("warning: $CODE_AGENT_MCP_SERVERS:1:2: a server needs a `name`").code(0);
    show(&[]).env("CODE_AGENT_MCP_SERVERS", "- { name: yaml, command: x }").run().stderr_has("$CODE_AGENT_MCP").code(2);
}

#[test]
fn an_unknown_dialect_is_a_usage_error_with_the_nearest_one() {
    show(&["--dialect", "curser"]).run().stderr_has("did you mean `cursor`?").code(2);
}

#[test]
fn variables_are_resolved_on_request_without_secrets() {
    let text = r#"{"mcpServers": {"s": {"type": "http", "url": "https://${PLACE}/${KEY_TOKEN}"},
        "t": {"command": "x", "args": ["${PLACE:-there}", "${NOWHERE_SET}"]}}}"#;
    let story = |args: &[&str]| {
        let story = show(args).file(".mcp.json", text).env("PLACE", "here.example").env("KEY_TOKEN", "0123456789");
        json(story)["servers"].clone()
    };
    let url = |servers: &Json| servers[0]["values"]["url"]["value"].clone();
    assert_eq!(url(&story(&[])), "https://${PLACE}/${KEY_TOKEN}");
    let resolved = story(&["--resolve"]);
    assert_eq!(url(&resolved), "https://here.example/***");
    assert_eq!(resolved[1]["values"]["args.0"]["value"], "here.example");
    assert_eq!(resolved[1]["values"]["args.1"]["value"], "${NOWHERE_SET}");
    assert_eq!(url(&story(&["--resolve", "--show-secrets"])), "https://here.example/0123456789");

    let strict = r#"{"mcp": {"servers": {"s": {"type": "stdio", "command": "x", "args": ["${NOWHERE_SET}"]}}}}"#;
    let run = show(&["--resolve", "--config", "c.json"]).file("c.json", strict).run();
    run.stdout_has("${NOWHERE_SET}").stderr_has("warning: c.json:1:71: `${NOWHERE_SET}` has no value").code(0);
}

#[test]
fn long_names_and_secrets_in_names_are_supported() {
    let name = "A".repeat(70_000);
    let file = format!(
        r#"{{"mcpServers": {{"{TOKEN}": {{"command": "x", "env": {{"{name}": "y", "API_KEY=geheim77": ""}}}}}}}}"#
    );
    for format in ["human", "json"] {
        let run = show(&["--mcp-config", "a.json", "--format", format]).file("a.json", &file).run().code(0);
        assert!(run.stdout_text().contains(&name));
        assert!(!run.stdout_text().contains(&TOKEN[4..]) && !run.stdout_text().contains("geheim77"));
    }
}

#[test]
fn a_secret_is_masked_everywhere() {
    let file = r#"{"mcpServers": {
        "a": {"command": "x", "env": {"API_KEY": "geheim77", "NOTE": "geheim77"}, "args": ["of geheim77"]},
        "geheim77": {"command": "root:geheim88@tcp(h)/d", "args": ["geheim88"]},
        "b geheim77": {}}}"#;
    for format in ["human", "json"] {
        let run = show(&["--mcp-config", "a.json", "--format", format]).file("a.json", file).run().code(0);
        let shown = run.stdout_text();
        assert!(!shown.contains("geheim") && shown.contains("of ***") && shown.contains("b ***"), "{shown}");
    }
}
