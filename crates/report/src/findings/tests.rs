use serde_json::Value as Json;

use super::*;

static UNKNOWN_KEY: Code = Code { name: "W-UNKNOWN-KEY", title: "unknown key" };
static MISSING_KEY: Code = Code { name: "E-MISSING", title: "missing key" };

/// A finding about the first occurrence of `part`.
fn finding(text: &str, part: &str) -> Finding {
    let start = text.find(part).expect(part);
    let span = Span { start, end: start + part.len() };
    UNKNOWN_KEY.at(span, format!("unknown key `{}`", part.trim_matches('"'))).hint("did you mean `args`?").about("é")
}

fn server(name: &str) -> Server {
    Server { name: name.into(), project: None, transport: "stdio", is_enabled: true, contact: Contact::NotTried }
}

/// A file with one server, and a finding about the first `"arg"`.
fn file(path: &str, text: &str) -> File {
    let dialect = Dialect { name: "claude-code", why: "its path ends with .mcp.json".into(), is_guess: false };
    File {
        path: path.into(),
        source: Source::new(path, text),
        is_readable: true,
        release: None,
        dialect: Some(dialect),
        servers: vec![server("é")],
        findings: if text.contains("\"arg\"") { vec![finding(text, "\"arg\"")] } else { Vec::new() },
        secrets: Vec::new(),
    }
}

fn report(files: Vec<File>) -> Report {
    let rules = [&MISSING_KEY, &UNKNOWN_KEY].map(|code| Rule { code, help: "What to do." }).to_vec();
    Report { files, rules, is_strict: false, is_quiet: false }
}

fn rendered(format: Format, files: Vec<File>) -> String {
    let layout = Layout { width: 10_000, directory: "/here".into(), ..Layout::default() };
    String::from_utf8(report(files).render(format, &layout)).expect("UTF-8")
}

fn plain(files: Vec<File>) -> String {
    anstream::adapter::strip_str(&rendered(Format::Human, files)).to_string()
}

const WRONG: &str = r#"{
  "mcpServers": {
    "é": { "command": "npx", "arg": [] }
  }
}
"#;

/// One line with this many servers, each with a finding.
fn line_with(count: usize) -> File {
    let servers: Vec<_> = (0..count).map(|n| format!("\"s{n}\": {{\"command\": \"é\", \"arg\": []}}")).collect();
    let text = format!("{{\"mcpServers\": {{{}}}}}", servers.join(","));
    let mut file = file(".mcp.json", &text);
    let at = |(start, _)| UNKNOWN_KEY.at(Span { start, end: start + 5 }, "unknown key `arg`");
    file.findings = text.match_indices("\"arg\"").map(at).collect();
    file
}

#[test]
fn a_finding_is_shown_with_its_line_and_the_file_with_a_verdict() {
    let expected = "\
W-UNKNOWN-KEY

  ⚠ unknown key `arg`
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
fn sarif_points_at_rules_and_regions() {
    let json: Json =
        serde_json::from_str(&rendered(Format::Sarif, vec![file("/here/a b/.mcp.json", WRONG)])).expect("JSON");
    assert_eq!(json["version"], "2.1.0");
    let run = &json["runs"][0];
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let result = &run["results"][0];
    let index = result["ruleIndex"].as_u64().and_then(|index| index.try_into().ok()).unwrap_or(usize::MAX);
    let rule = &run["tool"]["driver"]["rules"][index];
    assert_eq!((&result["ruleId"], &rule["id"]), (&Json::from("W-UNKNOWN-KEY"), &Json::from("W-UNKNOWN-KEY")));
    assert!(rule["help"]["text"].as_str().is_some_and(|text| text == "What to do."), "{rule}");
    assert_eq!(result["level"], "warning");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b/.mcp.json");
    let region = serde_json::json!({ "startLine": 3, "startColumn": 30, "endLine": 3, "endColumn": 35 });
    assert_eq!(place["region"], region);
}

#[test]
fn workflow_commands_are_escaped() {
    let mut file = file(".mcp.json", WRONG);
    file.path = "./a,b:c%/.mcp.json".into();
    file.findings[0].problem.message = "100%\r\nof".into();
    let expected = "::warning file=a%2Cb%3Ac%25/.mcp.json,line=3,col=30,endColumn=35,title=W-UNKNOWN-KEY\
                    ::100%25%0D%0Aof (did you mean `args`?)\n";
    assert_eq!(rendered(Format::Github, vec![file]), expected);
}

#[test]
fn several_files_have_a_summary_and_the_tools_of_servers_are_counted() {
    let mut good = file(".mcp.json", "{}");
    good.servers = vec![server("a"), server("b")];
    good.servers[0].contact = Contact::Reached { tools: vec!["x".into(), "y".into()], left_out: 1 };
    good.servers[1].is_enabled = false;
    let mut bad = file("x/.mcp.json", "{}");
    bad.findings = vec![MISSING_KEY.at(Span { start: 0, end: 1 }, "no command")];
    let unreadable = MISSING_KEY.at(Span { start: 0, end: 1 }, "never closed");
    let unreadable = File::unreadable("y.json".into(), Source::new("y.json", "{"), Vec::new(), unreadable);
    let text = plain(vec![good, bad, unreadable, file(".mcp.json", WRONG)]);
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
fn text_has_at_most_a_hundred_findings_and_json_all() {
    let human = plain(vec![line_with(150)]);
    assert_eq!(human.matches("W-UNKNOWN-KEY").count(), 100);
    assert!(human.contains("and 50 more (--format json has all)"), "{human}");
    let json: Json = serde_json::from_str(&rendered(Format::Json, vec![line_with(150)])).expect("JSON");
    assert_eq!(json["files"][0]["findings"].as_array().map(Vec::len), Some(150));
}

#[test]
fn only_a_part_of_a_long_line_is_shown() {
    let human = plain(vec![line_with(1000)]);
    let longest = human.lines().map(|line| line.chars().count()).max();
    assert!(longest < Some(300) && human.len() < 100_000, "{longest:?} {}", human.len());
    assert!(human.contains("…"), "{human}");
    for width in [50, 60, 80, 100] {
        let layout = Layout { width, ..Layout::default() };
        let human = String::from_utf8(report(vec![line_with(3)]).render(Format::Human, &layout));
        let human = anstream::adapter::strip_str(&human.expect("UTF-8")).to_string();
        let longest = human.lines().filter(|line| line.contains(['│', '·'])).map(|line| line.chars().count()).max();
        assert!(longest <= Some(width) && human.contains("\"arg\""), "{human}");
    }
}

#[test]
fn secrets_of_a_line_are_hidden_and_the_mark_stays_below_its_text() {
    let text = r#"{"mcpServers": {"s": {"command": "c", "env": {"API_KEY": "0123456789abc"}, "arg": [], "cwd": "x"}}}"#;
    let mut hiding = file(".mcp.json", text);
    let start = text.find("0123").expect("there");
    hiding.secrets = vec![Span { start, end: start + 13 }];
    let shown = plain(vec![hiding]);
    assert!(!shown.contains("0123456789") && shown.contains(r#"{"API_KEY": "***"}, "arg""#), "{shown}");
    let line = shown.lines().find(|line| line.contains("\"arg\"")).expect("a line");
    let column = line.split("\"arg\"").next().map(|before| before.chars().count());
    let mark = shown.lines().find(|line| line.contains('┬')).and_then(|line| line.chars().position(|it| it == '─'));
    assert_eq!(mark, column, "{shown}");
}

#[test]
fn a_text_cannot_control_the_terminal() {
    let text = "{\"a\u{1b}[2J\u{202e}\": {\"command\": \"c\", \"arg\": []}}";
    let shown = plain(vec![file("a\u{1b}b/.mcp.json", text)]);
    let harmful = |it: char| (it.is_control() && it != '\n') || it == '\u{202e}';
    assert!(!shown.contains(harmful), "{shown:?}");
}

#[test]
fn every_span_of_every_text_can_be_shown() {
    for text in ["", "\n", "a", "a\n", "é\r\nb\r\n", "a\tb\n\nc", "\r", "abc\n\u{1b}é\nx"] {
        for (start, end) in (0..=text.len() + 1).flat_map(|start| (start..=text.len() + 1).map(move |end| (start, end)))
        {
            for secret in text.char_indices().map(|(at, _)| at).chain([text.len()]) {
                let mut file = file("x", text);
                file.findings = vec![UNKNOWN_KEY.at(Span { start, end }, "m")];
                file.secrets =
                    vec![Span { start: secret, end: rehearse_document::text::boundary_after(text, secret + 1) }];
                let shown = plain(vec![file]);
                assert!(!shown.contains("Failed to read"), "{text:?} {start}..{end}: {shown}");
            }
        }
    }
}

#[test]
fn json_has_everything_with_positions_in_characters() {
    let json: Json = serde_json::from_str(&rendered(Format::Json, vec![file(".mcp.json", WRONG)])).expect("JSON");
    let file = &json["files"][0];
    assert_eq!((&file["path"], &file["dialect"]), (&Json::from(".mcp.json"), &Json::from("claude-code")));
    assert_eq!((&file["readable"], &file["valid"]), (&Json::from(true), &Json::from(true)));
    assert_eq!(file["servers"][0], serde_json::json!({ "name": "é", "transport": "stdio", "enabled": true }));
    let expected = serde_json::json!({
        "code": "W-UNKNOWN-KEY", "severity": "warning", "message": "unknown key `arg`",
        "hint": "did you mean `args`?", "server": "é", "line": 3, "column": 30, "endLine": 3, "endColumn": 35,
    });
    assert_eq!(file["findings"][0], expected);
    assert_eq!(json["totals"]["warnings"], 1);
}

#[test]
fn a_quiet_report_shows_only_failures() {
    let quiet = |is_strict| {
        let report = Report { is_strict, is_quiet: true, ..report(vec![file(".mcp.json", WRONG), file("x", "{}")]) };
        let layout = Layout { width: 100, ..Layout::default() };
        (report.verdict(), String::from_utf8(report.render(Format::Human, &layout)).expect("UTF-8"))
    };
    assert_eq!(quiet(false), (Verdict::Valid, String::new()));
    let (verdict, text) = quiet(true);
    assert!(verdict == Verdict::Invalid && text.contains("W-UNKNOWN-KEY"), "{text}");
}
