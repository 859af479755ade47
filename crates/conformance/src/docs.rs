//! `docs/checks.md` is generated from the files in `checks`. `UPDATE_DOCS=1 cargo test -p rehearse-conformance` writes it.

use std::{fmt::Write, fs, path::Path};

use crate::{Check, checks};
use rehearse_protocol::Version;

const HEAD: &str = "\
# Checks

The checks of [`rehearse check`](check.md), by area. This page is generated from their definitions; do not edit it.

*Level* is that of the newest version with the rule: MUST, SHOULD, *derived* (it follows from a sentence without a \
keyword, or from a document that MCP builds on) or *info* (recorded, never counted). `rehearse check --explain ID` has \
the level and the link for each version.
";

fn page() -> String {
    let mut out = HEAD.to_owned();
    let mut area = "";
    for check in checks() {
        if check.area() != area {
            area = check.area();
            let _ = write!(
                out,
                "\n## {area}\n\n| id | level | versions | rule | looks at |\n| --- | --- | --- | --- | --- |\n"
            );
        }
        let newest = check.levels.iter().next_back();
        let (version, level) = newest.map_or((Version::LATEST, ""), |(version, level)| (*version, level.as_str()));
        let _ = writeln!(
            out,
            "| `{}` | {level} | {} | [{}]({}) | {} |",
            check.id,
            versions(check),
            cell(&check.rule),
            check.link(version),
            cell(&check.looks_at)
        );
    }
    out
}

/// `all`, one version, or the first and the last.
fn versions(check: &Check) -> String {
    let all: Vec<_> = check.levels.keys().map(|version| version.as_str()).collect();
    match all.as_slice() {
        [one] => (*one).to_owned(),
        all if all.len() == Version::ALL.len() => "all".to_owned(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn the_page_about_the_checks_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, page()).expect("a writable page");
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(written == page(), "docs/checks.md is not current; run UPDATE_DOCS=1 cargo test -p rehearse-conformance");
}
