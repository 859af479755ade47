//! Checks `docs/config-diagnostics.md`: every code has a wrong and a right example.

use std::{collections::BTreeMap, io, path::Path};

use mcp_rehearsal::{
    client_configs::{Machine, PathKind, System, codes, dialect, lint},
    document::Source,
    release,
    report::findings::{Finding, Severity},
};

use crate::rehearse::Rehearse;

const PAGE: &str = include_str!("../../docs/config-diagnostics.md");

/// The machine that the examples assume: a Windows, if the path of a file is one of it.
fn machine(path: &str) -> Machine {
    let is_windows = path.starts_with("C:");
    let variables = [("HOME", "/home/ada"), ("PATH", if is_windows { r"C:\bin" } else { "/bin" })];
    Machine {
        system: if is_windows { System::Windows } else { System::Linux },
        variables: variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect::<BTreeMap<_, _>>(),
        directory: "/project".into(),
        look: |path| match path.to_str() {
            Some("/bin/npx" | "/bin/uvx" | "/bin/node" | "/bin/docker" | "/bin/sh" | "/bin/rehearse") => {
                PathKind::Program
            }
            Some(r"C:\bin\npx.cmd" | r"C:\bin\cmd.exe") => PathKind::Program,
            Some("/project" | "/project/server") => PathKind::Directory,
            Some("/project/index.js") => PathKind::File,
            _ => PathKind::Nothing,
        },
        read: |path: &Path| match path.to_str() {
            Some("/project/answer.schema.json") => Ok(r#"{"type": "object"}"#.into()),
            Some("/project/npm/package.json") => {
                Ok(r#"{"name": "weather", "version": "1.2.3", "mcpName": "io.github.ada/weather"}"#.into())
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        },
    }
}

struct Example {
    language: &'static str,
    /// A dialect, or the path of a file that says it.
    dialect: &'static str,
    is_wrong: bool,
    text: &'static str,
}

/// The sections of the page: headings and examples.
fn sections() -> Vec<(&'static str, Vec<Example>)> {
    let section = |section: &'static str| {
        let (heading, text) = section.split_once('\n').expect("a heading");
        let blocks = text.split("\n```").skip(1).step_by(2);
        let example = |block: &'static str| {
            let (info, text) = block.split_once('\n').expect("a block has a first line");
            let [language, dialect, kind] = info.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{heading}: {info}")
            };
            assert!(matches!(kind, "wrong" | "right"), "{heading}: {info}");
            Example { language, dialect, is_wrong: kind == "wrong", text }
        };
        (heading, blocks.map(example).collect())
    };
    PAGE.split("\n## ").skip(1).map(section).collect()
}

fn findings(example: &Example) -> Vec<Finding> {
    let dialect = dialect::by_name(example.dialect);
    assert!(dialect.is_some() || example.dialect.contains('.'), "there is no {}", example.dialect);
    let name = match dialect {
        Some(_) => format!("config.{}", example.language),
        None => example.dialect.to_owned(),
    };
    let (source, path, machine) = (Source::new(&*name, example.text), Path::new(&name), machine(&name));
    match release::check(&source, path, Some(&machine)) {
        Some(report) => report.findings,
        None => lint(&source, Some(path), dialect, Some(&machine)).findings,
    }
}

#[test]
fn every_code_has_a_section_in_order() {
    let headings: Vec<_> = sections().into_iter().map(|(heading, _)| heading).collect();
    let expected: Vec<_> = codes::ALL.iter().map(|code| format!("{}: {}", code.name, code.title)).collect();
    assert_eq!(headings, expected);
}

#[test]
fn every_example_has_the_findings_of_its_section() {
    for (heading, examples) in sections() {
        let code = heading.split(':').next().expect("a code");
        // No text of a file shows it.
        if code == codes::FILE.name {
            continue;
        }
        let kinds: Vec<_> = examples.iter().map(|example| example.is_wrong).collect();
        assert_eq!(kinds, [true, false], "{heading}: one that is wrong and one that is right");
        for example in examples.iter().filter(|_| !codes::OF_CONNECTIONS.iter().any(|it| it.name == code)) {
            let findings = findings(example);
            let has_code = findings.iter().any(|finding| finding.code.name == code);
            let other = findings
                .iter()
                .find(|it| it.code.severity() == Severity::Error && !(example.is_wrong && it.code.name == code));
            assert_eq!((has_code, other), (example.is_wrong, None), "{heading}: {}\n{findings:#?}", example.text);
        }
    }
}

#[test]
fn the_examples_of_connections_have_their_findings() {
    // No shipped mock lists such tools: other tests have servers that do.
    let has_no_mock =
        |name: &str| matches!(name, "W-TOOL" | "W-PROFILE" | "A-TOOL-MENTION") || name.contains("RELEASE");
    for code in codes::OF_CONNECTIONS.into_iter().filter(|code| !has_no_mock(code.name)) {
        let name = format!("{}: ", code.name);
        let (_, examples) = sections().into_iter().find(|(heading, _)| heading.starts_with(&name)).expect("is there");
        for Example { language, text, is_wrong, dialect } in examples {
            let file = format!("config.{language}");
            let text = ["\"rehearse\"", "command: rehearse", "exec rehearse"]
                .iter()
                .fold(text.to_owned(), |text, word| text.replace(word, &word.replace("rehearse", Rehearse::BINARY)));
            let story = Rehearse::new().file(&file, &text).args(["validate-config", &file, "--dialect", dialect]);
            let run = story.args(["--connect", "--strict"]).run();
            let fails = is_wrong && code.severity() != Severity::Advice;
            let run = run.code(i32::from(fails)).stdout_has("Total tools: ");
            assert_eq!(run.stdout_text().contains(code.name), is_wrong, "{}", run.stdout_text());
        }
    }
}
