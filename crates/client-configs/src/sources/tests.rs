use std::{fs, time::Duration};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{PathKind, System, dialect::by_name, secret::KnownSecrets};
use rehearse_report::findings::Severity;

/// A machine with a home folder, a project and nothing in them.
struct TestMachine {
    folder: TempDir,
    machine: Machine,
    sources: Sources,
}

impl TestMachine {
    fn new() -> TestMachine {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home").display().to_string();
        let variables = [("HOME", &home), ("USERPROFILE", &home)];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        let machine = Machine {
            system: System::HERE,
            variables,
            directory: folder.path().join("project"),
            look: |_| PathKind::Nothing,
            read: |path| fs::read_to_string(path),
        };
        TestMachine { folder, machine, sources: Sources::default() }
    }

    fn file(self, path: &str, text: impl ToString) -> TestMachine {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        fs::write(path, text.to_string()).expect("writes");
        self
    }

    fn variable(mut self, name: &str, value: impl ToString) -> TestMachine {
        self.machine.variables.insert(name.to_owned(), value.to_string());
        self
    }

    /// Puts a server with this name and command into a source.
    fn with_server(mut self, source: &str, name: &str) -> TestMachine {
        let text = json!({ "mcpServers": { name: { "command": source } } });
        match source {
            "variable" => self.variable(environment::SERVERS, json!([{ "name": name, "command": source }])),
            "first flag" | "second flag" => {
                self.sources.mcp_config.push(format!("{source}.json").into());
                self.file(&format!("project/{source}.json"), text)
            }
            "config" => {
                self.sources.config = Some("~/some.json".into());
                self.file("home/some.json", text)
            }
            "path" => self.variable(environment::CONFIG_PATH, "path.json").file("project/path.json", text),
            "local" => {
                let projects = json!({ self.machine.directory.display().to_string(): text });
                self.file("home/.claude.json", json!({ "projects": projects }))
            }
            "project" => self.file("project/.mcp.json", text),
            "other project" => self.file("project/.cursor/mcp.json", text),
            "user" => self.file("home/.cursor/mcp.json", text),
            other => panic!("{other}"),
        }
    }

    fn load(&self) -> Effective {
        self.sources.load(&self.machine).expect("everything is there")
    }

    /// Names as on Unix, where `~` is the home folder.
    fn shown(&self, text: &str) -> String {
        let home = self.machine.home().expect("a home").display().to_string();
        text.replace(&home, "~").replace('\\', "/")
    }
}

/// `name: command`
fn kept_names(effective: &Effective) -> Vec<String> {
    let shown = |Kept { server, .. }: &Kept| {
        format!("{}: {}", server.name.value, server.command.as_ref().map_or("", |command| &command.value))
    };
    effective.servers.iter().map(shown).collect()
}

/// `name: origin, origin of the one that counts`
fn lost(effective: &Effective) -> Vec<String> {
    effective.lost.iter().map(|lost| format!("{}: {}, {}", lost.name, lost.origin, lost.to)).collect()
}

fn check_pairs(sources: &[&str]) {
    for (index, higher) in sources.iter().enumerate() {
        for lower in &sources[index + 1..] {
            // The order of the flags is part of what is tested.
            let effective = TestMachine::new().with_server(lower, "s").with_server(higher, "s").load();
            assert_eq!(kept_names(&effective), [format!("s: {higher}")], "{higher} against {lower}");
            let [lost] = &effective.lost[..] else { panic!("{higher} against {lower}: {:?}", effective.lost) };
            assert_eq!(lost.to, effective.servers[0].origin(), "{higher} against {lower}");
            assert_eq!(effective.files.len(), if *lower == "local" || *higher == "local" { 3 } else { 2 });

            let effective = TestMachine::new().with_server(lower, "b").with_server(higher, "a").load();
            assert_eq!(kept_names(&effective), [format!("a: {higher}"), format!("b: {lower}")]);
            assert_eq!(effective.lost, []);
        }
    }
}

#[test]
fn of_two_sources_that_are_named_the_higher_one_counts_and_both_are_read() {
    check_pairs(&["variable", "second flag", "config", "path"]);
    let both = TestMachine::new().with_server("first flag", "s").with_server("second flag", "s").load();
    assert_eq!(kept_names(&both), ["s: second flag"]);
    assert_eq!(lost(&both), ["s: first flag.json:1:16, second flag.json:1:16"]);
}

#[test]
fn of_default_files_those_of_the_project_count_more_in_the_order_of_the_dialects() {
    check_pairs(&["local", "project", "other project", "user"]);
}

#[test]
fn default_files_are_read_only_if_nothing_is_named() {
    for source in ["variable", "first flag", "config", "path"] {
        let effective =
            TestMachine::new().with_server("project", "a").with_server("user", "b").with_server(source, "c").load();
        assert_eq!(kept_names(&effective), [format!("c: {source}")]);
        assert!(effective.missing.is_empty(), "{source}");
    }
    let empty = TestMachine::new()
        .with_server("user", "b")
        .variable(environment::SERVERS, "")
        .variable(environment::CONFIG_PATH, "");
    assert_eq!(kept_names(&empty.load()), ["b: user"], "an empty variable is none");
}

#[test]
fn without_any_source_there_are_no_servers_and_every_place_was_looked_at() {
    let test = TestMachine::new();
    let effective = test.load();
    assert!(effective.servers.is_empty() && effective.files.is_empty());
    let missing: Vec<_> = effective.missing.iter().map(|missing| test.shown(&missing.name)).collect();
    for name in [".mcp.json", ".cursor/mcp.json", "cpe.yaml", "~/.code_agent/config.json", "~/.claude.json"] {
        assert!(missing.iter().any(|it| it == name), "{name} in {missing:?}");
    }
    assert!(effective.missing.iter().all(|missing| missing.error.is_none()));
}

#[test]
fn mistakes_in_servers_of_other_projects_are_ignored() {
    let servers = json!({ "mcpServers": { "s": { "comand": "x" }, "t": { "command": "elsewhere" } } });
    let projects = json!({ "/elsewhere": servers });
    let test = TestMachine::new().with_server("user", "t").file("home/.claude.json", json!({ "projects": projects }));
    let effective = test.load();
    assert_eq!((kept_names(&effective), effective.unread), (vec!["t: user".to_owned()], vec![]));
}

#[test]
fn a_named_file_must_be_there() {
    for (precedence, sources, name) in [
        (Precedence::McpConfig, Sources { mcp_config: vec!["gone.json".into()], ..Sources::default() }, "gone.json"),
        (Precedence::Config, Sources { config: Some("~/gone.yaml".into()), ..Sources::default() }, "~/gone.yaml"),
    ] {
        let error = sources.load(&TestMachine::new().machine).expect_err("it is not there");
        assert_eq!((error.precedence, error.name.as_str()), (precedence, name));
        assert!(error.to_string().starts_with(&format!("cannot read the config {name}, which {precedence} names: ")));
    }
    let test = TestMachine::new().variable(environment::CONFIG_PATH, "gone.json");
    assert_eq!(test.sources.load(&test.machine).expect_err("it is not there").precedence, Precedence::ConfigPath);
}

#[test]
fn on_windows_a_project_is_known_in_every_spelling_of_its_folder() {
    let read = |path: &Path| match path.to_str() {
        Some(r"C:\Users\ada\.claude.json") => Ok(json!({ "projects": {
            r"D:\shop": { "history": [] },
            "d:/shop": { "mcpServers": { "s": { "command": "x" } } },
            "d:/shop2": { "mcpServers": { "t": { "command": "x" } } },
        } })
        .to_string()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let variables = [("UserProfile".to_owned(), r"C:\Users\ada".to_owned())].into();
    let look = |_: &Path| PathKind::Nothing;
    let machine = Machine { system: System::Windows, variables, directory: r"D:\Shop".into(), look, read };
    assert_eq!(kept_names(&Sources::default().load(&machine).expect("nothing is named")), ["s: x"]);
    let elsewhere = Machine { directory: r"D:\".into(), ..machine };
    assert_eq!(kept_names(&Sources::default().load(&elsewhere).expect("nothing is named")), [""; 0]);
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let mut test = TestMachine::new().with_server("first flag", "s");
    test.sources.config = Some(test.machine.directory.join("first flag.json"));
    let effective = test.load();
    assert_eq!((effective.files.len(), effective.lost.len()), (1, 0));
}

#[test]
fn the_higher_server_counts_whole_and_fields_are_never_mixed() {
    let low = json!({ "mcpServers": { "s": { "command": "low", "env": { "A": "b" }, "timeout": 5 } } });
    let test = TestMachine::new().with_server("second flag", "s").file("home/some.json", low);
    let sources = Sources { config: Some("~/some.json".into()), ..test.sources.clone() };
    let effective = sources.load(&test.machine).expect("all are there");
    assert_eq!(kept_names(&effective), ["s: second flag"]);
    assert!(effective.servers[0].server.env.is_empty() && effective.servers[0].server.timeouts.call.is_none());
}

#[test]
fn a_server_that_cannot_be_understood_keeps_its_name_from_lower_ones() {
    let broken = json!({ "mcpServers": { "s": { "args": [] }, "t": { "command": "fine" } } });
    let test = TestMachine::new().with_server("user", "s").file("project/.mcp.json", broken);
    let effective = test.load();
    assert_eq!(kept_names(&effective), ["t: fine"]);
    let unread: Vec<_> = effective.unread.iter().map(|it| (it.name.as_str(), it.code.name)).collect();
    assert_eq!(unread, [("s", "E-MISSING")]);
    let lost_names: Vec<_> = lost(&effective).iter().map(|name| test.shown(name)).collect();
    assert_eq!(lost_names, ["s: ~/.cursor/mcp.json:1:16, .mcp.json:1:16"]);
    let effective =
        TestMachine::new().with_server("variable", "s").file("project/p.json", r#"{"mcpServers": {"s": 7}}"#);
    let sources = Sources { config: Some("p.json".into()), ..Sources::default() };
    let effective = sources.load(&effective.machine).expect("all are there");
    assert_eq!((effective.unread.len(), kept_names(&effective)), (0, vec!["s: variable".to_owned()]));
    assert_eq!(lost(&effective), ["s: p.json:1:22, $CODE_AGENT_MCP_SERVERS:1:10"]);
}

#[test]
fn findings_in_the_list_of_the_variable_have_their_position() {
    let text = r#"[{"name": "fs", "command": "server"}, {"command": "x"}, {"name": "web", "url": 7, "type": "sse"},
        {"name": "fs", "type": "stdio", "command": "later"}]"#;
    let effective = TestMachine::new().variable(environment::SERVERS, text).load();
    assert_eq!(kept_names(&effective), ["web: ", "fs: later"]);
    assert_eq!(lost(&effective), ["fs: $CODE_AGENT_MCP_SERVERS:1:11, $CODE_AGENT_MCP_SERVERS:2:18"]);
    let [file] = &effective.files[..] else { panic!("{:?}", effective.files) };
    let errors = file.report.findings.iter().filter(|it| it.code.severity() == Severity::Error);
    let found = errors.map(|it| (it.code.name, it.problem.span.start)).collect::<Vec<_>>();
    let at = |part| text.find(part).expect("is there");
    assert_eq!(found, [("E-MISSING", at("{\"command")), ("E-VALUE-TYPE", at("7"))]);
    let twice = file.report.findings.iter().filter(|it| it.code.name == "W-DUPLICATE-SERVER");
    let second = text.rfind("\"fs\"").expect("is there");
    assert_eq!(twice.map(|it| it.problem.span.start).collect::<Vec<_>>(), [second]);
    assert!(file.report.findings.iter().all(|it| it.code.name != "W-NAME-CLASH"));
    for (wrong, code) in [(r#"{"fs": {"command": "x"}}"#, "E-VALUE-TYPE"), ("[{", "E-SYNTAX"), ("[\u{1}", "E-SYNTAX")] {
        let effective = TestMachine::new().variable(environment::SERVERS, wrong).load();
        let codes: Vec<_> = effective.files[0].report.findings.iter().map(|it| it.code.name).collect();
        assert!(effective.servers.is_empty() && codes.contains(&code), "{wrong}: {codes:?}");
    }
}

#[test]
fn a_dialect_limits_the_default_files_to_its_program() {
    let mut test = TestMachine::new().with_server("project", "a").with_server("user", "b");
    test.sources.dialect = by_name("cursor");
    assert_eq!(kept_names(&test.load()), ["b: user"]);
}

#[test]
fn everything_about_a_server_has_an_origin_or_is_a_default() {
    let text = json!({ "mcp": { "globalSettings": { "debug": true }, "servers": {
        "s": { "type": "http", "httpUrl": "https://h/", "headers": { "Authorization": "Bearer abcdefgh12345678" },
               "timeout": 90_500, "includeTools": [] }
    } } });
    let mut test = TestMachine::new().file("home/.code_agent/config.json", text);
    let effective = test.load();
    let shown = |setting: &Setting| {
        let origin = setting.origin.as_ref().map(|origin| origin.span.start > 0);
        (setting.key().into_owned(), setting.masked(&KnownSecrets::default()).to_string(), origin)
    };
    let usual = Duration::from_secs(7);
    let all: Vec<_> = settings(&effective.servers[0], usual).iter().map(shown).collect();
    let expected = [
        ("transport", r#""http""#, Some(true)),
        ("url", r#""https://h/""#, Some(true)),
        ("headers.Authorization", r#""Bearer ***""#, Some(true)),
        ("timeoutSeconds.connect", "90.5", Some(true)),
        ("timeoutSeconds.list", "90.5", Some(true)),
        ("timeoutSeconds.call", "90.5", Some(true)),
        ("tools.include", "[]", Some(true)),
        ("debug", "true", Some(true)),
        ("enabled", "true", None),
    ];
    assert_eq!(all, expected.map(|(path, value, origin)| (path.to_owned(), value.to_owned(), origin)));

    test = TestMachine::new().file("project/.roo/mcp.json", r#"{"mcpServers": {"s": {"command": "x"}}}"#);
    let filled = settings(&test.load().servers[0], usual).into_iter().filter(|it| it.origin.is_none());
    let filled: Vec<_> = filled.map(|it| (it.path, it.value)).collect();
    assert_eq!(filled, [("enabled".to_owned(), json!(true)), ("timeouts.call".to_owned(), json!(7.0))]);
}

#[test]
fn the_file_that_the_variable_names_is_of_code_agent() {
    let text = json!({ "mcpServers": { "a": { "command": "x" } } });
    let test = TestMachine::new().variable(environment::CONFIG_PATH, "team.json").file("project/team.json", text);
    let names: Vec<_> = test.load().servers.iter().map(|kept| kept.dialect.name).collect();
    assert_eq!(names, ["code_agent"]);
}
