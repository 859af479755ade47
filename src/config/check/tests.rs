//! Every finding in every dialect that has it: each fault is planted between « and », where it must be found.

mod agent;
mod file;
mod input;
mod sample;
mod server;
mod syntax;

use std::{collections::BTreeSet, fmt::Write, io, path::Path};

use super::*;
use crate::config::{
    Found, Problem,
    dialect::{ALL, Syntax},
    examine,
    finding::{Code, codes},
};

fn machine() -> Machine {
    let look = |path: &Path| match path.to_str() {
        Some("/bin/npx" | "/bin/node" | "/bin/sh") => Found::Program,
        Some("/srv") => Found::Directory,
        _ => Found::Nothing,
    };
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Machine {
        variables: [set("PATH", "/bin"), set("SET", "value")].into(),
        directory: "/srv".into(),
        look,
        read: |_| Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

/// A fault: what it is called, and a file with it.
struct Fault {
    code: &'static Code,
    text: String,
}

/// The file with the marks taken out, and what they enclose.
fn unmarked(text: &str) -> (String, Span) {
    let start = text.find('«').unwrap_or_else(|| panic!("{text} has no mark"));
    let end = text.find('»').expect("two marks") - '«'.len_utf8();
    (text.replace(['«', '»'], ""), Span { start, end })
}

/// Every fault that the dialect has a place for.
fn faults(dialect: &Dialect) -> Vec<Fault> {
    let file = |server: String| sample::file(dialect, &[("\"s\"", server)]);
    let mut faults: Vec<_> =
        server::faults(dialect).into_iter().map(|(code, server)| Fault { code, text: file(server) }).collect();
    let whole = file(sample::process(dialect, ""));
    let mut add = |code, text| faults.push(Fault { code, text });
    file::faults(dialect, &whole, &mut add);
    input::faults(dialect, &whole, &mut add);
    agent::faults(dialect, &whole, &mut add);
    syntax::faults(dialect, &whole, &mut add);
    faults
}

#[test]
fn every_fault_is_found_where_it_is_in_every_dialect_that_has_it() {
    let machine = machine();
    let (mut told, mut seen, mut failed) = (String::new(), BTreeSet::new(), Vec::new());
    for dialect in ALL {
        let name = if dialect.syntax == Syntax::Yaml { "t.yaml" } else { "t.json" };
        for Fault { code, text } in faults(dialect) {
            let (text, span) = unmarked(&text);
            let source = Source::new(name, text.clone());
            let examined = examine(&source, Some(Path::new(name)), Some(dialect), Some(&machine));
            let found = examined.findings.iter().find(|finding| finding.code == code && finding.problem.span == span);
            let Some(Finding { problem: Problem { message, hint, .. }, .. }) = found else {
                let found = examined.findings.iter().map(|it| (it.code.name, it.problem.span, &it.problem.message));
                failed.push(format!(
                    "{} {} in {text} at {span:?}: {:?}",
                    dialect.name,
                    code.name,
                    found.collect::<Vec<_>>()
                ));
                continue;
            };
            let others = examined.findings.iter().filter(|it| it.code != code && it.code.name.starts_with("E-"));
            let others: Vec<_> = others.map(|finding| finding.code.name).collect();
            if !others.is_empty() && code.name != "E-SYNTAX" {
                failed.push(format!("{} {} in {text}: also {others:?}", dialect.name, code.name));
            }
            let Some(hint) = hint else {
                failed.push(format!("{} {}: {message}: no hint", dialect.name, code.name));
                continue;
            };
            writeln!(told, "{} {} {message} ({hint})", dialect.name, code.name).expect("a text");
            seen.insert(code.name);
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Only whoever connects finds that a server cannot be reached.
    let by_checks = codes::ALL.iter().map(|code| code.name).filter(|name| *name != codes::CONNECT.name);
    let unseen: Vec<_> = by_checks.filter(|name| !seen.contains(name)).collect();
    assert_eq!(unseen, [""; 0], "codes that no fault has");
    insta::assert_snapshot!("findings", told);
}
