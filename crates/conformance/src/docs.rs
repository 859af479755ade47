//! `docs/checks.md` and `docs/client-checks.md` are generated from the files in `checks`. `UPDATE_DOCS=1 cargo test -p rehearse-conformance` writes it.

use std::{fmt::Write, fs, path::Path};

use crate::{Check, checks};
use rehearse_protocol::Version;

const SERVERS: &str = "\
# Checks of a server

The checks of [`rehearse check`](check.md), by area; those of the area `issuer` are [about an authorization server](check.md#authorization-servers), those of the area `gateway` [about what is in between](check-gateways.md). Those of a client are [on a page of their own](client-checks.md).
";

const CLIENTS: &str = "\
# Checks of a client

The checks of [`rehearse check client`](check-clients.md), by area. Those of a server are [on a page of their own](checks.md).
";

const HEAD: &str = "
This page is generated from their definitions; do not edit it.

*Level* is that of the newest version with the rule: MUST, SHOULD, *derived* (it follows from a sentence without a \
keyword, or from a document that MCP builds on) or *info* (recorded, never counted). `rehearse check --explain ID` has \
the level and the link for each version.
";

fn page(title: &str, is_shown: impl Fn(&Check) -> bool) -> String {
    let mut out = format!("{title}{HEAD}");
    let mut area = "";
    for check in checks().iter().filter(|check| is_shown(check)) {
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
fn the_pages_about_the_checks_are_current() {
    let is_of_a_client = |check: &Check| check.area().starts_with("client-");
    let servers = page(SERVERS, |check| !is_of_a_client(check));
    for (name, page) in [("checks", servers), ("client-checks", page(CLIENTS, is_of_a_client))] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/{name}.md"));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &page).expect("a writable page");
        }
        let is_current = fs::read_to_string(path).is_ok_and(|written| written == page);
        assert!(is_current, "docs/{name}.md is not current; run UPDATE_DOCS=1 cargo test -p rehearse-conformance");
    }
}
