use rehearse_client_configs::System;
use rehearse_document::{Source, json};
use rehearse_testing::table;

use super::*;
use crate::tests::machine;

/// What is started on this machine: the words or the URL with what is set, or the reasons.
fn started(release: Release, system: System, text: &str) -> Vec<String> {
    let set = [("HOME", "/home/ada"), ("WEATHER_API_KEY", "geheim"), ("X_KEY", "k"), ("LEVEL", "debug")];
    let machine =
        Machine { system, variables: set.map(|(name, value)| (name.to_owned(), value.to_owned())).into(), ..machine() };
    let source = Source::new("a.json", text);
    let root = json::parse(&source).expect("JSON").root;
    let starts = starts(release, &root, &source, Path::new("/srv/b"), &machine);
    let shown = starts.into_iter().map(|start| match start.server {
        Ok(server) => {
            let pairs = server.env.iter().chain(&server.headers);
            let pairs = pairs.map(|pair| format!("{}={}", pair.name.value, pair.value.value));
            let words = server.command.iter().chain(&server.args).chain(&server.url).map(|at| at.value.clone());
            pairs.chain(words).collect::<Vec<_>>().join(" ")
        }
        Err(findings) => {
            let reason = |it: &Finding| format!("{}; {}", it.problem.message, it.problem.hint.as_deref().unwrap_or(""));
            findings.iter().map(reason).collect::<Vec<_>>().join(" | ")
        }
    });
    shown.collect()
}

fn bundle(config: &str, settings: &str) -> String {
    let text = format!(r#"{{"name": "w", "server": {{{config}}}, "user_config": {{{settings}}}}}"#);
    started(Release::Bundle, System::Linux, &text).remove(0)
}

#[test]
fn a_bundle_is_started_with_its_defaults_and_variables_of_the_machine() {
    let config = r#""mcp_config": {"command": "node", "args": ["${__dirname}/i.js", "${user_config.dirs}", "--n=${user_config.n}${/}${user_config.none}"],
        "env": {"A": "${user_config.on}", "WEATHER_API_KEY": "${user_config.key}"}, "platform_overrides": {"win32": {"command": "node.exe"}}}"#;
    let settings = r#""dirs": {"multiple": true, "default": ["${HOME}/x", "${DOCUMENTS}"]}, "n": {"default": 10}, "on": {"default": false},
        "key": {"required": true}, "none": {}"#;
    let expected =
        "A=false WEATHER_API_KEY=geheim node /srv/b/i.js /home/ada/x /home/ada/Documents --n=10/${user_config.none}";
    assert_eq!(bundle(config, settings), expected);
    let windows = started(Release::Bundle, System::Windows, &format!(r#"{{"server": {{{config}}}}}"#)).remove(0);
    assert!(windows.contains(" node.exe /srv/b/i.js ") && windows.contains(r"}\${user"), "{windows}");
    assert_eq!(bundle(r#""type": "uv", "entry_point": "src/s.py""#, ""), "uv run --directory /srv/b src/s.py");
}

#[test]
fn a_value_that_a_bundle_needs_is_named_with_the_variable_that_gives_it() {
    let config = r#""mcp_config": {"command": "c", "args": ["${user_config.dirs}"], "env": {"OTHER_KEY": "${user_config.key}"}}"#;
    let settings = r#""dirs": {"required": true, "default": []}, "key": {"required": true, "default": ""}"#;
    let expected = "cannot start `w`: `user_config.dirs` has no value; start the server with its values yourself: --connect --stdio COMMAND | \
                    cannot start `w`: `user_config.key` has no value; set the environment variable OTHER_KEY";
    assert_eq!(bundle(config, settings), expected);
}

#[test]
fn packages_and_remotes_are_started_as_the_registry_describes_them() {
    for [server, expected] in table::rows(include_str!("registry.txt"), "packages and remotes") {
        assert_eq!(started(Release::ServerJson, System::Linux, &server), [expected], "{server}");
    }
}
