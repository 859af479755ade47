//! Every finding in every dialect that has it: each fault is planted between « and », where it must be found.

mod file;
mod other;
mod sample;
mod server;

use std::{collections::BTreeSet, fmt::Write, io, path::Path};

use super::*;
use crate::{
    PathKind, codes,
    dialect::{ALL, Dialect, Syntax},
    lint,
};
use rehearse_document::Problem;
use rehearse_report::findings::Code;

fn machine() -> Machine {
    let look = |path: &Path| match path.to_str() {
        Some("/bin/npx" | "/bin/node" | "/bin/sh") => PathKind::Program,
        Some("/srv") => PathKind::Directory,
        _ => PathKind::Nothing,
    };
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Machine {
        variables: [set("PATH", "/bin"), set("SET", "value")].into(),
        directory: "/srv".into(),
        look,
        read: |_| Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

/// A fault: its code, and a file with it.
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
    other::inputs(dialect, &whole, &mut add);
    other::agent(dialect, &whole, &mut add);
    other::syntax(dialect, &whole, &mut add);
    if dialect.syntax == Syntax::Toml {
        let is_json_only = |fault: &Fault| fault.code.name.contains("DUPLICATE") || fault.text.starts_with("«»");
        faults.retain(|fault| !is_json_only(fault));
        faults.iter_mut().for_each(|fault| fault.text = toml(&fault.text));
    }
    faults
}

/// A text of JSON as TOML: the object of the root has no braces, its other keys have lines of their own.
fn toml(json: &str) -> String {
    let text =
        json.replace("\": ", "\" = ").replace("\"»: ", "\"» = ").replace("», \"mcp_servers\" ", "»\n\"mcp_servers\" ");
    let text = text.replace(", \"mcp_servers\" ", "\n\"mcp_servers\" ");
    let inner = text.strip_prefix('{').map_or(text.as_str(), |rest| rest.strip_suffix('}').unwrap_or(rest));
    inner.to_owned()
}

#[test]
fn every_fault_is_found_where_it_is_in_every_dialect_that_has_it() {
    let machine = machine();
    let (mut shown, mut seen, mut failed) = (String::new(), BTreeSet::new(), Vec::new());
    for dialect in ALL {
        let name = match dialect.syntax {
            Syntax::Yaml => "t.yaml",
            Syntax::Toml => "t.toml",
            _ => "t.json",
        };
        for Fault { code, text } in faults(dialect) {
            let (text, span) = unmarked(&text);
            let source = Source::new(name, text.clone());
            let report = lint(&source, Some(Path::new(name)), Some(dialect), Some(&machine));
            let found = report.findings.iter().find(|finding| finding.code == code && finding.problem.span == span);
            let Some(Finding { problem: Problem { message, hint, .. }, .. }) = found else {
                let found = report.findings.iter().map(|it| (it.code.name, it.problem.span, &it.problem.message));
                failed.push(format!(
                    "{} {} in {text} at {span:?}: {:?}",
                    dialect.name,
                    code.name,
                    found.collect::<Vec<_>>()
                ));
                continue;
            };
            let others = report.findings.iter().filter(|it| it.code != code && it.code.name.starts_with("E-"));
            let others: Vec<_> = others.map(|finding| finding.code.name).collect();
            if !others.is_empty() && code.name != "E-SYNTAX" {
                failed.push(format!("{} {} in {text}: also {others:?}", dialect.name, code.name));
            }
            let Some(hint) = hint else {
                failed.push(format!("{} {}: {message}: no hint", dialect.name, code.name));
                continue;
            };
            writeln!(shown, "{} {} {message} ({hint})", dialect.name, code.name).expect("a string");
            seen.insert(code.name);
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Only whoever connects finds that a server cannot be reached.
    let by_checks = codes::ALL.iter().map(|code| code.name).filter(|name| *name != codes::CONNECT.name);
    let unseen: Vec<_> = by_checks.filter(|name| !seen.contains(name)).collect();
    assert_eq!(unseen, [""; 0], "codes that no fault has");
    insta::assert_snapshot!("findings", shown);
}
