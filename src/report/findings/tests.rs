use std::path::Path;

use serde_json::Value as Json;

use super::*;
use crate::config::{
    Problem, examine,
    finding::{Code, codes},
};

fn finding(code: &'static Code, span: std::ops::Range<usize>, message: &'static str) -> Finding {
    Finding { code, problem: Problem::new(Span { start: span.start, end: span.end }, message), server: None }
}

fn file(path: &str, text: &str) -> File {
    let source = Source::new(path, text);
    let examined = examine(&source, Some(Path::new(path)), None, None);
    File::new(path.into(), examined, false)
}

fn rendered(format: FindingsFormat, files: Vec<File>) -> String {
    let report = Report { files, is_strict: false, is_quiet: false };
    let layout = Layout { width: 10_000, directory: "/here".into() };
    String::from_utf8(format.render(&report, &layout)).expect("UTF-8")
}

fn plain(files: Vec<File>) -> String {
    anstream::adapter::strip_str(&rendered(FindingsFormat::Human, files)).to_string()
}

const WRONG: &str = r#"{
  "mcpServers": {
    "é": { "command": "npx", "arg": [] }
  }
}
"#;

#[test]
fn a_finding_is_shown_with_its_line_and_the_file_with_a_verdict() {
    let expected = "\
W-UNKNOWN-KEY

  ⚠ Claude Code does not know `arg`
   ╭─[.mcp.json:3:30]
 2 │   \"mcpServers\": {
 3 │     \"é\": { \"command\": \"npx\", \"arg\": [] }
   ·                              ──┬──
   ·                                ╰── in the server `é`
 4 │   }
   ╰────
  help: did you mean `args`?

✓ Configuration is valid
  - File: .mcp.json
  - Dialect: claude-code (its path ends with .mcp.json)
  - Servers: 1
  - Findings: 1 warning
";
    assert_eq!(plain(vec![file(".mcp.json", WRONG)]), expected);
}

#[test]
fn several_files_have_a_summary_and_the_tools_of_servers_are_counted() {
    let mut good = file(".mcp.json", r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}"#);
    good.servers[0].contact = Contact::Reached { tools: vec!["x".into(), "y".into()], left_out: 1 };
    good.servers[1].is_enabled = false;
    let bad = file("x/.mcp.json", r#"{"mcpServers": {"a": {}}}"#);
    let text = plain(vec![good, bad, file("y.json", "{"), file(".mcp.json", WRONG)]);
    for part in [
        "  - Servers: 2 (1 disabled)\n",
        "  - Total tools: 2\n    ✓ a: 2 tools (1 left out by its filter)\n    – b: disabled\n",
        "✗ Configuration validation failed\n  - File: x/.mcp.json\n",
        "\n4 files: 1 valid, 1 with warnings, ",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn only_so_many_findings_are_shown_to_people_and_all_to_programs() {
    let servers: Vec<_> = (0..150).map(|n| format!("\"s{n}\": {{\"command\": \"c\", \"arg\": []}}")).collect();
    let text = format!("{{\"mcpServers\": {{{}}}}}", servers.join(","));
    let human = plain(vec![file(".mcp.json", &text)]);
    assert_eq!(human.matches("W-UNKNOWN-KEY").count(), 100);
    assert!(human.contains("and 50 more (--format json has all)"), "{human}");
    let json: Json =
        serde_json::from_str(&rendered(FindingsFormat::Json, vec![file(".mcp.json", &text)])).expect("JSON");
    assert_eq!(json["files"][0]["findings"].as_array().map(Vec::len), Some(150));
}

#[test]
fn of_a_config_on_one_line_only_a_part_is_shown() {
    let servers: Vec<_> = (0..1000).map(|n| format!("\"s{n}\": {{\"command\": \"é\", \"arg\": []}}")).collect();
    let text = format!("{{\"mcpServers\": {{{}}}}}", servers.join(","));
    let human = plain(vec![file(".mcp.json", &text)]);
    let longest = human.lines().map(|line| line.chars().count()).max();
    assert!(longest < Some(300) && human.len() < 100_000, "{longest:?} {}", human.len());
    assert!(human.contains("…"), "{human}");
}

#[test]
fn what_is_shown_of_a_line_fits_the_width() {
    let text = r#"{"mcpServers": {"one": {"command": "npx", "args": ["-y", "a-server-with-a-long-name", "--and-a-flag"], "arg": []},
"two": {"command": "npx", "args": ["-y", "another-server-with-a-long-name", "--and-another-flag"], "env": {"A": "b"}}}}"#;
    for width in [50, 60, 80, 100] {
        let layout = Layout { width, directory: "/here".into() };
        let report = Report { files: vec![file(".mcp.json", text)], is_strict: false, is_quiet: false };
        let human = String::from_utf8(FindingsFormat::Human.render(&report, &layout)).expect("UTF-8");
        let human = anstream::adapter::strip_str(&human).to_string();
        let excerpt = human.lines().filter(|line| line.contains(['│', '·', '╰']));
        let longest = excerpt.map(|line| line.chars().count()).max();
        assert!(
            longest <= Some(width) && human.contains("\"arg\"") && human.contains("in the server `one`"),
            "{human}"
        );
    }
}

#[test]
fn secrets_are_hidden_in_lines_and_sentences_and_the_mark_stays_in_its_place() {
    let text = r#"{"mcpServers": {"s": {"command": "c", "env": {"API_KEY": "0123456789abc"}, "arg": [], "cwd": "x"}}}"#;
    let mut hiding = file(".mcp.json", text);
    hiding.findings.retain(|finding| finding.code == &codes::UNKNOWN_KEY);
    let shown = plain(vec![hiding]);
    assert!(!shown.contains("0123456789") && shown.contains(r#"{"API_KEY": "***"}, "arg""#), "{shown}");
    let line = shown.lines().find(|line| line.contains("\"arg\"")).expect("a line");
    let column = line.chars().collect::<String>().split("\"arg\"").next().map(|before| before.chars().count());
    let mark = shown.lines().find(|line| line.contains('┬')).and_then(|line| line.chars().position(|it| it == '─'));
    assert_eq!(mark, column, "{shown}");

    let at = text.find("\"0123").expect("there");
    let source = Source::new("x", text);
    let mut examined = examine(&source, Some(Path::new(".mcp.json")), None, None);
    let sentence = String::from("not `0123456789abc`");
    let problem = Problem::new(Span { start: at, end: at + 15 }, sentence.clone()).hint(sentence);
    examined.findings = vec![Finding { code: &codes::VALUE_TYPE, problem, server: None }];
    for format in FindingsFormat::ALL {
        let hidden = rendered(format, vec![File::new("x".into(), examined.clone(), false)]);
        assert!(!hidden.contains("0123456789"), "{hidden}");
        let open = rendered(format, vec![File::new("x".into(), examined.clone(), true)]);
        assert!(open.contains("0123456789"), "{open}");
    }
}

#[test]
fn names_of_servers_are_no_place_for_secrets() {
    let other = r#""env": {"TOKEN": "x0123456789"}, "#;
    for (name, env) in [("ghp_0123456789abcdefABCD", ""), ("API_KEY=0123456789abcdefABCD", ""), ("x0123456789", other)]
    {
        let text = format!(r#"{{"mcpServers": {{"{name}": {{"command": "c", {env}"arg": []}}}}}}"#);
        for format in FindingsFormat::ALL {
            let shown = rendered(format, vec![file(".mcp.json", &text)]);
            assert!(!shown.contains("0123456789"), "{shown}");
        }
    }
}

#[test]
fn a_text_cannot_control_the_terminal() {
    let text = "{\"mcpServers\": {\"a\u{1b}[2J\u{202e}\": {\"command\": \"c\", \"arg\": []}}}";
    let shown = plain(vec![file("a\u{1b}b/.mcp.json", text)]);
    let harmful = |it: char| (it.is_control() && it != '\n') || it == '\u{202e}';
    assert!(!shown.contains(harmful), "{shown:?}");
}

#[test]
fn every_place_of_every_text_can_be_shown() {
    for text in ["", "\n", "a", "a\n", "é\r\nb\r\n", "a\tb\n\nc", "\r", "abc\n\u{1b}é\nx"] {
        for (start, end) in (0..=text.len() + 1).flat_map(|start| (start..=text.len() + 1).map(move |end| (start, end)))
        {
            for secret in text.char_indices().map(|(at, _)| at).chain([text.len()]) {
                let found = finding(&codes::SYNTAX, start..end, "m");
                let mut file = File::unreadable("x".into(), Source::new("x", text), found);
                file.secrets = vec![Span { start: secret, end: text.ceil_char_boundary(secret + 1) }];
                let shown = plain(vec![file]);
                assert!(!shown.contains("Failed to read"), "{text:?} {start}..{end}: {shown}");
            }
        }
    }
}

#[test]
fn json_has_everything_with_positions_in_characters() {
    let json: Json =
        serde_json::from_str(&rendered(FindingsFormat::Json, vec![file(".mcp.json", WRONG)])).expect("JSON");
    let file = &json["files"][0];
    assert_eq!((&file["path"], &file["dialect"]), (&Json::from(".mcp.json"), &Json::from("claude-code")));
    assert_eq!((&file["readable"], &file["valid"]), (&Json::from(true), &Json::from(true)));
    assert_eq!(file["servers"][0], serde_json::json!({ "name": "é", "transport": "stdio", "enabled": true }));
    let expected = serde_json::json!({
        "code": "W-UNKNOWN-KEY", "severity": "warning", "message": "Claude Code does not know `arg`",
        "hint": "did you mean `args`?", "server": "é", "line": 3, "column": 30, "endLine": 3, "endColumn": 35,
    });
    assert_eq!(file["findings"][0], expected);
    assert_eq!(json["totals"]["warnings"], 1);
}

#[test]
fn sarif_points_at_rules_and_regions() {
    let json: Json =
        serde_json::from_str(&rendered(FindingsFormat::Sarif, vec![file("/here/a b/.mcp.json", WRONG)])).expect("JSON");
    assert_eq!(json["version"], "2.1.0");
    let run = &json["runs"][0];
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let result = &run["results"][0];
    let index = result["ruleIndex"].as_u64().and_then(|index| index.try_into().ok()).unwrap_or(usize::MAX);
    let rule = &run["tool"]["driver"]["rules"][index];
    assert_eq!((&result["ruleId"], &rule["id"]), (&Json::from("W-UNKNOWN-KEY"), &Json::from("W-UNKNOWN-KEY")));
    assert!(rule["help"]["text"].as_str().is_some_and(|text| text.contains("passed over")), "{rule}");
    assert_eq!(result["level"], "warning");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b/.mcp.json");
    let region = serde_json::json!({ "startLine": 3, "startColumn": 30, "endLine": 3, "endColumn": 35 });
    assert_eq!(place["region"], region);
}

#[test]
fn workflow_commands_escape_what_would_end_them() {
    let mut file = file(".mcp.json", WRONG);
    file.path = "./a,b:c%/.mcp.json".into();
    file.findings[0].problem.message = "100%\r\nof".into();
    let expected = "::warning file=a%2Cb%3Ac%25/.mcp.json,line=3,col=30,endColumn=35,title=W-UNKNOWN-KEY\
                    ::100%25%0D%0Aof (did you mean `args`?)\n";
    assert_eq!(rendered(FindingsFormat::Github, vec![file]), expected);
}

#[test]
fn what_is_quiet_tells_only_what_fails() {
    let report = |is_strict| {
        let files = vec![file(".mcp.json", WRONG), file(".mcp.json", "{\"mcpServers\": {}}")];
        let report = Report { files, is_strict, is_quiet: true };
        let layout = Layout { width: 100, directory: "/".into() };
        (report.verdict(), String::from_utf8(FindingsFormat::Human.render(&report, &layout)).expect("UTF-8"))
    };
    assert_eq!(report(false), (Verdict::Valid, String::new()));
    let (verdict, text) = report(true);
    assert!(verdict == Verdict::Invalid && text.contains("W-UNKNOWN-KEY"), "{text}");
}
