mod table;

use std::sync::LazyLock;

use proptest::{prelude::*, sample::Index};

use super::*;
use crate::dialect;
use rehearse_testing::table::rows;

static SAMPLES: LazyLock<Vec<[String; 2]>> = LazyLock::new(|| rows(include_str!("tests/samples.txt"), "samples"));

/// Typing errors.
const TYPOS: &[&str] = &[
    "", "\"", "'", "{", "}", "[", "]", ",", ":", "\\", "\n", "\t", "#", "//", "/*", "${", "}", "$", "&a ", "*a", "é",
    "\u{feff}", "\u{200b}", "“", "-", "1e999", "null", "\0", "<<: ", "- ", "  ",
];

fn mutated() -> impl Strategy<Value = (&'static str, String)> {
    let typos = prop::collection::vec((any::<Index>(), 0_usize..6, any::<Index>()), 1..4);
    (any::<Index>(), typos).prop_map(|(sample, typos)| {
        let [name, text] = sample.get(&SAMPLES);
        let mut characters: Vec<char> = text.chars().collect();
        for (at, removed, typo) in typos {
            let at = at.index(characters.len() + 1);
            let end = (at + removed).min(characters.len());
            characters.splice(at..end, typo.get(TYPOS).chars());
        }
        (name.as_str(), characters.into_iter().collect())
    })
}

/// What is true of every report.
fn is_sound(report: &LintReport) {
    let text = &report.source.text;
    for finding in &report.findings {
        let Span { start, end } = finding.problem.span;
        assert!(text.get(start..end).is_some(), "{finding:?} in {text:?}");
        assert!(finding.problem.hint.is_some(), "{finding:?} has no hint");
    }
    for Span { start, end } in &report.secrets {
        assert!(text.get(*start..*end).is_some(), "{start}..{end} in {text:?}");
    }
    assert_eq!(report.config.is_some(), report.detected.is_some());
    assert!(report.detected.is_some() || !report.findings.is_empty(), "no finding in {text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_config_has_a_sound_report((name, text) in mutated(), dialect in 0..dialect::all().count() * 2) {
        let source = Source::new(name, text);
        let forced = dialect::all().nth(dialect);
        is_sound(&lint(&source, Some(Path::new(name)), forced, None));
    }

    #[test]
    fn no_text_makes_the_linter_panic(text in "\\PC*", name in prop::sample::select(vec!["x.json", "x.yaml", "x"])) {
        is_sound(&lint(&Source::new(name, text), Some(Path::new(name)), None, None));
    }
}

#[test]
fn the_samples_have_no_findings() {
    for [name, text] in &*SAMPLES {
        let report = lint(&Source::new(name.as_str(), text.as_str()), Some(Path::new(name)), None, None);
        assert_eq!(
            report.count(Severity::Error) + report.count(Severity::Warning),
            0,
            "{name}: {:#?}",
            report.findings
        );
        is_sound(&report);
    }
}

#[test]
fn large_files_and_bombs_come_to_an_end() {
    let servers: Vec<_> =
        (0..20_000).map(|n| format!("\"s{n}\":{{\"command\":\"npx\",\"args\":[\"-y\",\"${{V}}\"]}}")).collect();
    let aliases: String =
        ('b'..='z').map(|c| format!("{c}: &{c} [*{p}, *{p}, *{p}, *{p}]\n", p = char::from(c as u8 - 1))).collect();
    let same = "\"a\":{\"command\":\"x\"},".repeat(20_000);
    let dollars = "$A é ".repeat(50_000);
    let defaults = format!("{}x{}", "${TOKEN:-".repeat(5000), "}".repeat(5000));
    let secret = |n| format!("\"s{n}\":{{\"command\":\"npx\",\"env\":{{\"TOKEN\":\"abc{n}xyzsecret9\"}}}}");
    let secrets: Vec<_> = (0..20_000).map(secret).collect();
    for (name, text, servers) in [
        ("a.json", format!("{{\"mcpServers\":{{{}}}}}", servers.join(",")), 20_000),
        ("b.json", format!("{{\"mcpServers\":{}1{}}}", "{\"a\":".repeat(10_000), "}".repeat(10_000)), 0),
        ("c.yaml", format!("mcpServers: {}{}", "[".repeat(10_000), "]".repeat(10_000)), 0),
        ("d.yaml", format!("a: &a [x]\n{aliases}mcpServers: {{}}\n"), 0),
        ("e.json", format!("{{\"mcpServers\":{{{}}}}}", same.trim_end_matches(',')), 1),
        ("f.json", format!("{{\"mcpServers\":{{\"a\":{{\"command\":\"x\",\"args\":[\"{dollars}\"]}}}}}}"), 1),
        ("h.json", format!("{{\"mcpServers\":{{\"a\":{{\"command\":\"x\",\"args\":[\"{defaults}\"]}}}}}}"), 1),
        ("i.json", format!("{{\"mcpServers\":{{{}}}}}", secrets.join(",")), 20_000),
        ("g.yaml", format!("mcpServers:\n  s:\n    type: stdio\n    command: \"{}\"\n", "${".repeat(50_000)), 1),
    ] {
        let report = lint(&Source::new(name, text), Some(Path::new(name)), None, None);
        is_sound(&report);
        assert_eq!(report.config.map_or(0, |config| config.servers.len()), servers, "{name}");
    }
}

#[test]
fn of_an_unreadable_file_every_value_is_hidden() {
    let text =
        "{\"mcpServers\": {\"a\": {\"env\": {\"API_KEY\": ghp_0123456789abcdefghij, ghp_0123456789abcdefghij: [\"b-c d";
    let report = lint(&Source::new(".mcp.json", text), Some(Path::new(".mcp.json")), None, None);
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert!(!report.is_readable && report.config.is_none());
    let shown = format!("{:?}", report.findings);
    assert!(!shown.contains("ghp_"), "{shown}");
    let hidden: Vec<_> = report.secrets.iter().map(|it| &text[it.start..it.end]).collect();
    assert_eq!(hidden, ["ghp_0123456789abcdefghij", "ghp_0123456789abcdefghij", "b-c", "d"]);
}
