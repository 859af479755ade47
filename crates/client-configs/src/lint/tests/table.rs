//! Every file of `cases.txt` with its findings, in a snapshot.
//!
//! A line is the path of a file, or `--dialect=` with a dialect (and perhaps `@` and a path), and its text, with ⏎ for a
//! line break and ␍ for a carriage return. A file with a forced dialect is checked on a machine with a few programs and variables.

use std::{collections::BTreeSet, fmt::Write, io};

use super::*;
use crate::{PathKind, System, dialect::by_name, server::Timeouts};

/// A Windows, if the path of the config is one of it.
fn machine(path: &str) -> Machine {
    let system = if path.starts_with("C:") { System::Windows } else { System::Linux };
    let (folder, directory) = if system.is_windows() { (r"C:\bin", r"C:\srv") } else { ("/bin", "/srv") };
    let look = |path: &Path| match path.to_str() {
        Some("/bin/npx" | "/bin/node" | "/bin/sh" | "/bin/x") => PathKind::Program,
        Some(r"C:\bin\npx.cmd" | r"C:\bin\node.exe" | r"C:\bin\cmd.exe") => PathKind::Program,
        Some("/srv" | r"c:\srv") => PathKind::Directory,
        _ => PathKind::Nothing,
    };
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Machine {
        system,
        variables: [set("PATH", folder), set("SET", "value")].into(),
        directory: directory.into(),
        look,
        read: |_| Err(io::ErrorKind::NotFound.into()),
    }
}

fn report(key: &str, text: &str) -> LintReport {
    let text = text.replace('␍', "\r").replace('⏎', "\n");
    let Some(forced) = key.strip_prefix("--dialect=") else {
        return lint(&Source::new(key, text), Some(Path::new(key)), None, None);
    };
    let (name, path) = forced.split_once('@').unwrap_or((forced, ""));
    let dialect = by_name(name).expect(name);
    let path = match dialect.syntax {
        _ if !path.is_empty() => path,
        dialect::Syntax::Yaml => "t.yaml",
        dialect::Syntax::Toml => "t.toml",
        _ => "t.json",
    };
    lint(&Source::new(path, text), Some(Path::new(path)), Some(dialect), Some(&machine(path)))
}

/// A server in a line: what the program starts or connects to.
fn summary(server: &ConfiguredServer) -> String {
    let address = server.command.iter().chain(&server.args).chain(&server.url).map(|it| it.value.clone());
    let env = server.env.iter().map(|pair| format!("{}={}", pair.name.value, pair.value.value));
    let Timeouts { connect, call, .. } = &server.timeouts;
    let start = connect.iter().filter(|_| call.is_none()).map(|it| format!("start={:?}", it.value));
    let timeout = call.iter().map(|it| format!("{:?}", it.value)).chain(start);
    let debug = server.debug.iter().map(|it| format!("debug={}", it.value));
    let auth = &server.auth;
    let flags =
        [(!server.is_enabled(), "disabled"), (auth.bearer.is_some(), "bearer"), (auth.api_key.is_some(), "key")];
    let flags = flags.into_iter().filter(|it| it.0).map(|it| it.1.to_owned());
    let words: Vec<_> = address.chain(env).chain(timeout).chain(debug).chain(flags).collect();
    format!("{} {} {}", server.name.value, server.transport.value, words.join(" "))
}

#[test]
fn every_case_has_its_findings() {
    let (mut shown, mut seen) = (String::new(), BTreeSet::new());
    for line in include_str!("cases.txt").lines() {
        let Some((key, text)) = line.split_once(' ').filter(|_| !line.starts_with('#')) else {
            writeln!(shown, "\n{line}").expect("a string");
            continue;
        };
        let report = report(key, text);
        is_sound(&report);
        let (dialect, is_guess) = report.detected.as_ref().map_or(("none", false), |it| (it.dialect.name, it.is_guess));
        writeln!(shown, "{key} {text}\n  {dialect}{}", if is_guess { " (a guess)" } else { "" }).expect("a string");
        for server in report.config.iter().flat_map(|config| &config.servers) {
            writeln!(shown, "  = {}", summary(server)).expect("a string");
        }
        for Finding { code, problem, .. } in &report.findings {
            let (line, column) = report.source.position(problem.span.start);
            let part = report.source.text[problem.span.start..problem.span.end].replace('\n', "⏎");
            let (message, hint) = (&problem.message, problem.hint.as_deref().unwrap_or_default());
            writeln!(shown, "  {} {line}:{column} {part}: {message} ({hint})", code.name).expect("a string");
            seen.insert(code.name);
        }
    }
    let others = codes::OF_CONNECTIONS
        .iter()
        .chain(&codes::OF_RELEASES)
        .chain(&[&codes::FILE])
        .map(|code| code.name)
        .collect::<Vec<_>>();
    let expected = codes::ALL.iter().map(|code| code.name).filter(|name| !others.contains(name));
    assert_eq!(expected.filter(|name| !seen.contains(name)).collect::<Vec<_>>(), [""; 0], "codes without a case");
    insta::assert_snapshot!(shown);
}
