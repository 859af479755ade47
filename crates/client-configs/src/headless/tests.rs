use std::path::Path;

use super::{values::placeholder, *};
use crate::{dialect, lint, server::At};
use rehearse_document::{Span, json, parse_yaml, toml};
use rehearse_protocol::Transport;
use rehearse_testing::table;

fn at<T>(value: T) -> At<T> {
    At { value, span: Span::default() }
}

fn server(name: &str, transport: Transport) -> ConfiguredServer {
    ConfiguredServer::new(Source::new("made", ""), at(name.to_owned()), at(transport))
}

fn servers(argument: &str) -> Vec<ConfiguredServer> {
    let (mut local, mut remote) = (server("local", Transport::Stdio), server("remote", Transport::Http));
    local.command = Some(at("/bin/a b".to_owned()));
    local.args = vec![at("--x=\"1\"".to_owned()), at(argument.to_owned())];
    remote.url = Some(at("http://127.0.0.1:1/mcp".to_owned()));
    vec![local, remote]
}

fn values() -> Values {
    let text = |text: &str| text.to_owned();
    let servers = vec![text("local"), text("remote")];
    let (model, key) = (text("http://127.0.0.1:2"), text("a-key"));
    Values { prompt: text("Say {key}."), model, key, home: text("/h"), work: text("/w"), servers }
}

fn host(name: &str) -> &'static Headless {
    let found = headless_hosts().find(|(known, ..)| *known == name);
    found.unwrap_or_else(|| panic!("{name} is headless")).2
}

#[test]
fn every_section_is_read() {
    for host in &dialect::HOSTS {
        let source = Source::new(format!("{}.yaml", host.name), host.text);
        let read = read::host(&source).map_err(|problems| problems.in_source(&source).to_string());
        let is_known = headless_hosts().any(|(name, ..)| name == host.name)
            || not_headless().any(|(name, _, reason)| name == host.name && !reason.is_empty());
        assert_eq!(read.map(|read| read.is_some()), Ok(is_known), "{}", host.name);
    }
    assert_eq!(host("claude-code").start_limit, Duration::from_secs(15));
    assert_eq!(host("codex").package.program, "node_modules/.bin/codex");
    let names = |name| (host(name).tool_names.form.as_str(), host(name).tool_names.namespace.as_deref());
    assert_eq!(names("claude-code"), ("mcp__{server}__{tool}", None));
    assert_eq!(names("codex"), ("{tool}", Some("mcp__{server}")));
    assert_eq!(names("continue"), ("{tool}", None));
    assert_eq!(names("kilo"), ("{server}_{tool}", None));
}

#[test]
fn a_placeholder_with_a_server_is_repeated_and_no_value_is_looked_at_again() {
    let arguments = host("claude-code").arguments(&values());
    assert_eq!(arguments[..2], ["-p", "Say {key}."]);
    let allowed = arguments.iter().position(|it| it == "--allowedTools").expect("a flag");
    assert_eq!(arguments[allowed + 1..allowed + 3], ["mcp__local", "mcp__remote"]);
    assert!(host("copilot").arguments(&values()).contains(&"--available-tools=local,remote".to_owned()));
    assert_eq!(host("codex").variables(&values())["CODEX_HOME"], "/h/.codex");
}

#[test]
fn the_files_of_every_host_have_the_servers_and_all_that_is_beside_them() {
    let values = values();
    for (name, _, host) in headless_hosts() {
        let written = host.write_files(&servers("a é"), &values).expect(name);
        assert!(host.files.iter().any(|file| file.servers.is_some()), "{name}");
        for (file, WrittenFile { path, text }) in host.files.iter().zip(&written) {
            assert_eq!(placeholder(text), None, "{path}: {text}");
            let source = Source::new(path.as_str(), text.as_str());
            let root = match Path::new(path).extension().and_then(|it| it.to_str()) {
                Some("toml") => toml::parse(&source),
                Some("yaml") => parse_yaml(&source),
                _ => json::parse(&source).map(|document| document.root),
            };
            let root = root.unwrap_or_else(|problems| panic!("{path}: {}\n{text}", problems.in_source(&source)));
            for entry in values.expand_node(&file.with).as_entries().unwrap_or_default() {
                let found = root.get(&entry.key).map(Node::to_json);
                assert_eq!(found, Some(entry.node.to_json()), "{path}, {}", entry.key);
            }
            let Some(dialect) = file.servers else { continue };
            let report = lint(&source, Some(Path::new(path)), Some(dialect), None);
            let read = report.config.map(|config| config.servers).unwrap_or_default();
            let said = |server: &ConfiguredServer| {
                let texts: Vec<_> = server.texts().map(|text| text.at.value.clone()).collect();
                (server.name.value.clone(), server.transport.value, texts)
            };
            let (read, made): (Vec<_>, Vec<_>) =
                (read.iter().map(said).collect(), servers("a é").iter().map(said).collect());
            assert_eq!(read, made, "{path}: {text}");
            assert!(file.each_server.as_entries().unwrap_or_default().iter().all(|entry| text.contains(&entry.key)));
        }
    }
}

#[test]
fn what_a_host_would_replace_in_a_server_is_an_error() {
    let losses = host("claude-code").write_files(&servers("${HOME}"), &values()).expect_err("it would be replaced");
    assert!(losses[0].to_string().contains("Claude Code replaces a `$`"), "{}", losses[0]);
    assert!(host("codex").write_files(&servers("${HOME}"), &values()).is_ok(), "it replaces nothing");
}

#[test]
fn what_a_host_says_of_a_failure_is_found() {
    let rows = table::rows(include_str!("tests.txt"), "host | server, tool and reason that are found | what it wrote");
    for [name, expected, output] in rows {
        let found = host(&name).failures.iter().flat_map(|pattern| pattern.find(&output));
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        let shown = found.map(|it| [&it.server, &it.tool, &it.reason].map(shown).join(" "));
        let shown: Vec<_> = shown.collect();
        let shown = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
        assert_eq!(shown, expected, "{name}: {output}");
    }
    for (name, _, headless) in headless_hosts() {
        assert!(!headless.failures.is_empty(), "{name}");
    }
}

#[test]
fn mistakes_have_their_place() {
    let usual = [
        ("package", "{ npm: a, version: 1.0.0 }"),
        ("command", "[run]"),
        ("files", "[{ path: a.json }]"),
        ("model", "gemini"),
    ];
    for [member, expected] in table::rows(include_str!("tests.txt"), "a member of `headless` | what is wrong with it") {
        let mut text = "host: 1\nname: t\nheadless:\n".to_owned();
        let mut is_in = false;
        for (key, value) in usual {
            let is_this = member.starts_with(&format!("{key}:"));
            is_in |= is_this;
            match is_this {
                true => text.push_str(&format!("  {member}\n")),
                false => text.push_str(&format!("  {key}: {value}\n")),
            }
        }
        if !is_in {
            text.push_str(&format!("  {member}\n"));
        }
        let source = Source::new("t.yaml", text.as_str());
        let problems = read::host(&source).err().unwrap_or_else(|| panic!("{member} is read"));
        let problems = problems.in_source(&source).to_string();
        assert!(problems.starts_with(&expected), "{member}: {problems}");
    }
}
