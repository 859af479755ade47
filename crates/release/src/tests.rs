//! Every file of `cases.txt` with its findings, in a snapshot.

use std::{collections::BTreeSet, fmt::Write, io};

use rehearse_client_configs::System;
use rehearse_testing::table;

use super::*;

/// A machine with packages in some folders.
pub(crate) fn machine() -> Machine {
    Machine {
        system: System::Linux,
        variables: [].into(),
        directory: "/srv".into(),
        look: |_| PathKind::Nothing,
        read: |path| {
            let text = match path.to_str().unwrap_or_default() {
                "/srv/npm/package.json" => {
                    r#"{"name": "weather", "version": "1.2.3", "mcpName": "io.github.ada/weather"}"#
                }
                "/srv/other/package.json" => r#"{"name": "@ada/w", "version": "2.0.0", "mcpName": "io.github.ada/w"}"#,
                "/srv/bare/package.json" => r#"{"name": "weather", "version": "0.0.0-development"}"#,
                "/srv/private/package.json" => r#"{"name": "root", "version": "0.1.0", "private": true}"#,
                "/srv/pypi/pyproject.toml" => {
                    "[project]\nname = \"ada_weather\"\nversion = \"1.2.3\"\nreadme = \"README.md\"\n"
                }
                "/srv/pypi/README.md" => "<!-- mcp-name: io.github.ada/weather -->",
                _ => return Err(io::ErrorKind::NotFound.into()),
            };
            Ok(text.to_owned())
        },
    }
}

#[test]
fn every_case_has_its_findings() {
    let (mut shown, mut seen) = (String::new(), BTreeSet::new());
    for [path, text] in table::all(include_str!("tests/cases.txt")) {
        let report = check(&Source::new(&*path, &*text), Path::new(&path), Some(&machine()));
        let kind = report.as_ref().map_or("none", |report| report.release.name());
        writeln!(shown, "{path} {}\n  {kind}", text.replace('\n', "⏎")).expect("a string");
        for Finding { code, problem, .. } in report.into_iter().flat_map(|report| report.findings) {
            let (line, column) = Source::new("", &*text).position(problem.span.start);
            let part = text[problem.span.start..problem.span.end].replace('\n', "⏎");
            let hint = problem.hint.expect("a hint");
            writeln!(shown, "  {} {line}:{column} {part}: {} ({hint})", code.name, problem.message).expect("a string");
            seen.insert(code.name);
        }
    }
    let expected = codes::OF_RELEASES.iter().map(|code| code.name);
    assert_eq!(expected.filter(|name| !seen.contains(name)).collect::<Vec<_>>(), [""; 0], "codes without a case");
    insta::assert_snapshot!(shown);
}
