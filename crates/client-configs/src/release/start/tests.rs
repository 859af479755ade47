use std::{collections::BTreeMap, io, path::PathBuf};

use rehearse_document::{Source, json};

use super::*;
use crate::{PathKind, System};

/// What is started on this machine: the words or the URL with what is set, or the reasons.
fn started(release: Release, system: System, text: &str) -> Vec<String> {
    let set = [("HOME", "/home/ada"), ("WEATHER_API_KEY", "geheim"), ("X_KEY", "k"), ("LEVEL", "debug")];
    let machine = Machine {
        system,
        variables: set.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect::<BTreeMap<_, _>>(),
        directory: PathBuf::from("/work"),
        look: |_| PathKind::Nothing,
        read: |_| Err(io::ErrorKind::NotFound.into()),
    };
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
    let named = |name: &str, rest: &str| format!(r#"{{"type": "named", "name": "{name}", {rest}}}"#);
    for (server, expected) in [
        (
            r#""packages": [{"registryType": "npm", "identifier": "@a/w", "version": "1.0.0", "transport": {"type": "stdio"},
            "packageArguments": [{"type": "positional", "value": "start"}, {"type": "positional", "valueHint": "x"}]}]"#,
            "npx -y @a/w@1.0.0 start",
        ),
        (
            &format!(
                r#""packages": [{{"registryType": "pypi", "identifier": "w", "version": "1", "transport": {{"type": "stdio"}},
            "runtimeArguments": [{}], "packageArguments": [{}]}}]"#,
                named("--python", r#""value": "3.12""#),
                named("--port", r#""default": "80""#)
            ),
            "uvx --python 3.12 w==1 --port 80",
        ),
        (
            r#""packages": [{"registryType": "oci", "identifier": "ghcr.io/a/w:1", "transport": {"type": "stdio"}, "runtimeHint": "podman",
            "runtimeArguments": [{"type": "positional", "value": "run"}, {"type": "positional", "value": "-i"},
                {"type": "named", "name": "-e", "value": "MODE=x"}],
            "environmentVariables": [{"name": "LEVEL", "default": "info"}, {"name": "FIXED", "value": "f"}, {"name": "NONE"}]}]"#,
            "LEVEL=debug FIXED=f podman run -i --rm -e LEVEL -e FIXED -e MODE=x ghcr.io/a/w:1",
        ),
        (
            r#""remotes": [{"type": "sse", "url": "https://{t}.example/{t}", "variables": {"t": {"default": "eu"}}, "headers":
            [{"name": "X-Key", "isRequired": true}, {"name": "Y", "value": "v {a}", "variables": {"a": {"value": "b"}}}]}]"#,
            "X-Key=k Y=v b https://eu.example/eu",
        ),
        (
            r#""remotes": [{"type": "sse", "url": "https://{t}.example", "variables": {"t": {}}, "headers":
            [{"name": "Authorization", "value": "Bearer {k}", "variables": {"k": {"isRequired": true}}}]}]"#,
            "cannot start `https://{t}.example`: `t` has no value; start the server with its values yourself: --connect --stdio COMMAND | \
             cannot start `https://{t}.example`: `k` has no value; set the environment variable AUTHORIZATION to all of `Authorization`",
        ),
        (
            r#""packages": [{"registryType": "nuget", "identifier": "W", "version": "1", "transport": {"type": "stdio"}}]"#,
            "cannot start `nuget W@1`: no runtime for packages of `nuget` is known; start it yourself: --connect --stdio COMMAND",
        ),
        (
            r#""packages": [{"registryType": "npm", "identifier": "w", "version": "1", "transport": {"type": "stdio"}, "runtimeHint": "node"}]"#,
            "cannot start `npm w@1`: how `node` starts a package is not known; start it yourself: --connect --stdio COMMAND",
        ),
        (
            r#""packages": [{"registryType": "npm", "identifier": "w", "version": "1", "transport": {"type": "stdio"}, "registryBaseUrl": "https://npm.example"}]"#,
            "cannot start `npm w@1`: it is in another registry than the usual one; start it yourself: --connect --stdio COMMAND",
        ),
        (
            r#""packages": [{"registryType": "npm", "identifier": "w", "version": "1", "transport": {"type": "sse", "url": "http://h"},
            "environmentVariables": [{"name": "NO_SUCH_KEY", "isRequired": true}]}]"#,
            "cannot start `npm w@1`: it serves HTTP itself; start it yourself: --connect --stdio COMMAND | \
             cannot start `npm w@1`: `NO_SUCH_KEY` has no value; set the environment variable NO_SUCH_KEY",
        ),
    ] {
        assert_eq!(started(Release::ServerJson, System::Linux, &format!("{{{server}}}")), [expected], "{server}");
    }
}
