//! `rehearse validate-config`: secrets and signals. The rest is in `tests/console/validate-config.md`.

use crate::{
    orphans::{gone, started},
    rehearse::Rehearse,
};

const MOCK: &str = "
server: { name: stories }
tools:
  - { name: first, reply: hello }
  - { name: second, reply: hello }
";

fn validate(path: &str, text: &str) -> Rehearse {
    Rehearse::new().file(path, text).args(["validate-config", path])
}

/// A config with servers with these commands.
fn config(servers: &[(&str, &[&str])]) -> String {
    let server = |words: &[&str]| serde_json::json!({ "command": words[0], "args": words[1..] });
    let servers: serde_json::Map<_, _> =
        servers.iter().map(|(name, words)| ((*name).to_owned(), server(words))).collect();
    serde_json::json!({ "mcpServers": servers }).to_string()
}

/// Values in places of secrets.
const SECRETS: [&str; 6] = [
    "ghp_0123456789abcdefABCD",
    "geheim-8f2a91c7",
    "hunter2hunter2",
    "sk-abcdef0123456789",
    "q1w2e3r4t5z6",
    "zzz9zzz8zzz7",
];

#[test]
fn no_format_shows_secrets_by_default() {
    let [token, header, password, argument, key, broken] = SECRETS;
    let servers = format!(
        r#""a": {{"command": "sh", "args": ["--api-key", "{argument}"], "env": {{"GH_TOKEN": "{token}"}}, "arg": []}},
        "b": {{"type": "http", "url": "https://u:{password}@h.example.com/?api_key={key}", "headers": {{"Authorization": "Bearer {header}"}}, "nam": 1}},
        "c": {{"type": "nope", "env": {{"API_KEY": "{broken}"}}}}"#
    );
    let one_line = format!("{{\"mcpServers\": {{{}}}}}", servers.replace('\n', ""));
    let many_lines = format!("{{\"mcpServers\": {{{servers}}}}}");
    let unreadable = one_line.replace("\"arg\": []", "\"arg\": [");
    for text in [&one_line, &many_lines, &unreadable] {
        for format in ["human", "json", "sarif", "github"] {
            for connect in [None, Some("--connect")] {
                let run = validate(".mcp.json", text).args(["--format", format]).args(connect).run();
                for secret in SECRETS {
                    let output = format!("{}{}", run.stdout_text(), run.stderr());
                    assert!(!output.contains(secret), "{secret} is in {format}: {output}");
                }
            }
        }
    }
    validate(".mcp.json", &one_line).args(["--show-secrets"]).run().stdout_has(token);
}

#[test]
fn an_interrupt_stops_the_servers_and_reports_the_results() {
    let mock = [Rehearse::BINARY, "mock", "mock.yaml"];
    let text = config(&[("one", &mock), ("slow", &["sh", "-c", "exec sleep 4326"])]);
    let story = validate(".mcp.json", &text).file("mock.yaml", MOCK).args(["--connect"]);
    let (mut running, processes) = started(story, ["sleep 4326", " guard"]);
    running.signal("INT");
    running.stderr_line("interrupted");
    running.end().stdout_has("    · slow: interrupted\n").code(3);
    gone(&processes);
}
