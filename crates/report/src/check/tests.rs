//! The formats of a result.

use super::{baseline::Baseline, *};
use crate::{Layout, marks, summary::Results};
use rehearse_document::{Source, parse_yaml};
use rehearse_protocol::Direction;

const IDS: [&str; 3] = ["tools.list.name-charset", "io.stdout.only-messages", "ping.result.empty"];

fn violation(verdict: CheckVerdict, subject: &str, found: &str, frame: &str) -> FoundViolation {
    let line =
        |direction, text: &str| WireLine::new(direction, Duration::ZERO, text.as_bytes(), &marks(Some(subject), found));
    let evidence = vec![line(Direction::ClientToServer, "{}"), line(Direction::ServerToClient, frame)];
    FoundViolation {
        verdict,
        subject: Some(subject.to_owned()),
        found: found.to_owned(),
        accepted: None,
        sdk: None,
        evidence,
    }
}

fn check(id: &str, verdict: CheckVerdict, violations: Vec<FoundViolation>) -> JudgedCheck {
    JudgedCheck {
        id: id.to_owned(),
        level: Some("MUST".into()),
        verdict,
        reason: (verdict == CheckVerdict::NotTested).then(|| "no tool may be called".to_owned()),
        rule: format!("The rule of {id}."),
        help: Some("Do it.".to_owned()),
        spec: "https://modelcontextprotocol.io/specification/2025-11-25/basic".to_owned(),
        official: vec!["tools-name-format".to_owned()],
        cause: None,
        capability: None,
        is_left_out: false,
        exercised: 1,
        act: None,
        again: None,
        violation_count: violations.len(),
        violations,
    }
}

fn result(transports: &[Transport], checks: &[JudgedCheck]) -> CheckResult {
    let mut result = CheckResult::new("2026-11-24T12:00:00Z".to_owned(), 1, false);
    result.servers = transports
        .iter()
        .map(|transport| CheckedServer {
            target: "node server.js".to_owned(),
            transport: *transport,
            name: Some("files".to_owned()),
            server_version: Some("1.2.0".to_owned()),
            started_in: Duration::from_millis(212),
            again: "rehearse check --stdio 'node server.js' --seed 1".to_owned(),
            command: None,
            place: Some(ConfigPlace {
                file: "/repo/.mcp.json".to_owned(),
                line: 3,
                column: 5,
                server: "files".to_owned(),
            }),
            error: None,
            unanswered: Vec::new(),
            profiles: Vec::new(),
            is_budget_spent: false,
            is_interrupted: false,
            untried: Vec::new(),
            uncalled_tools: Vec::new(),
            lost_stderr: 0,
            migration: None,
            versions: [Version::V2025_11_25, Version::V2025_06_18]
                .map(|version| CheckedVersion { version, checks: checks.to_vec() })
                .into(),
        })
        .collect();
    result
}

fn bad_names() -> JudgedCheck {
    let long =
        format!(r#"{{"result":{{"tools":[{{"d":"{}","name":"read/file"}},{{"name":"a b"}}]}}}}"#, "x".repeat(900));
    let violations = vec![
        violation(CheckVerdict::Fail, "read/file", "the name \"read/file\"", &long),
        violation(CheckVerdict::Warn, "a b", "the name \"a b\"", &long),
    ];
    check(IDS[0], CheckVerdict::Fail, violations)
}

fn text(result: &mut CheckResult, width: usize) -> String {
    shown(result, &Layout { width, ..Layout::default() })
}

fn shown(result: &mut CheckResult, layout: &Layout) -> String {
    result.conclude(false);
    let results = Results { check: Some(result.clone()), ..Results::default() };
    let bytes = results.render(Format::Human, layout);
    anstream::adapter::strip_str(std::str::from_utf8(&bytes).expect("UTF-8")).to_string()
}

fn baseline(text: &str) -> Result<Baseline, String> {
    let source = Source::new("accepted.yaml", text);
    let ids = |pattern: &str| {
        let all = IDS.iter().filter(|id| pattern == "*" || **id == pattern);
        all.map(|id| (*id).to_owned()).collect()
    };
    let read = parse_yaml(&source).and_then(|node| Baseline::read(&node, &ids));
    read.map_err(|problems| problems.in_source(&source).to_string())
}

#[test]
fn the_violating_text_is_marked_in_a_frame_that_is_shortened_around_it() {
    for width in [80, 160] {
        let shown = text(&mut result(&[Transport::Stdio], &[bad_names()]), width);
        let lines: Vec<_> = shown.lines().collect();
        let at = lines.iter().position(|line| line.contains("^^^")).expect("a mark");
        let (frame, carets) = (lines[at - 1], lines[at]);
        assert!(frame.starts_with("  ← …") && frame.chars().count() <= width, "{frame}");
        let start = carets.chars().take_while(|it| *it == ' ').count();
        let marked: String = frame.chars().skip(start).take(carets.trim().len()).collect();
        assert_eq!(marked, r#""read/file""#, "{shown}");
    }
}

#[test]
fn a_run_that_did_not_finish_is_incomplete_in_every_format() {
    let mut unfinished = result(&[Transport::Stdio], &[check(IDS[2], CheckVerdict::Pass, Vec::new())]);
    unfinished.servers[0].is_budget_spent = true;
    let shown = text(&mut unfinished, 160);
    assert_eq!(unfinished.verdict, Verdict::Incomplete);
    assert!(shown.contains("a longer --budget") && shown.contains("incomplete: "), "{shown}");
    for format in [Format::Junit, Format::Sarif, Format::Markdown, Format::Html] {
        let results = Results { check: Some(unfinished.clone()), ..Results::default() };
        let rendered = String::from_utf8(results.render(format, &Layout::default())).expect("text");
        let is_said = rendered.contains("incomplete") || rendered.contains("\"executionSuccessful\": false");
        assert!(is_said, "{format:?}: {rendered}");
    }
    let mut failed = result(&[Transport::Stdio], &[bad_names()]);
    failed.servers[0].is_budget_spent = true;
    failed.conclude(false);
    assert_eq!(failed.verdict, Verdict::Failed, "what was found is found");
    failed.servers[0].is_interrupted = true;
    failed.conclude(true);
    assert_eq!(failed.verdict, Verdict::Incomplete);
    assert!(failed.servers[0].unfinished()[0].contains("interrupted"));
}

#[test]
fn a_version_or_a_declared_area_without_a_tested_check_makes_the_run_incomplete() {
    let of = |area: &str, verdict| JudgedCheck {
        capability: Some(area.to_owned().into()),
        ..check(IDS[0], verdict, vec![])
    };
    let (passed, open) = (of("tools", CheckVerdict::Pass), of("tools/x", CheckVerdict::NotTested));
    let decided = |first: &[&JudgedCheck], second: &[&JudgedCheck]| {
        let mut result = result(&[Transport::Stdio], &[]);
        result.servers[0].versions[0].checks = first.iter().copied().cloned().collect();
        result.servers[0].versions[1].checks = second.iter().copied().cloned().collect();
        let shown = text(&mut result, 160);
        (result.verdict, shown)
    };
    assert_eq!(decided(&[&passed, &open], &[&passed]).0, Verdict::Passed);
    let (verdict, shown) = decided(&[&passed], &[&open]);
    assert_eq!(verdict, Verdict::Incomplete);
    assert!(shown.contains("incomplete: 2025-06-18: no check was tested: no tool may be called\n"), "{shown}");
    let info = of("tools", CheckVerdict::Info);
    assert_eq!(decided(&[&passed], &[&info, &open]).0, Verdict::Incomplete, "information is no test");
    let left_out = JudgedCheck { is_left_out: true, ..open.clone() };
    assert_eq!(decided(&[&passed], &[&left_out]).0, Verdict::Passed, "it is tried in the other version");
    let prompts = of("prompts", CheckVerdict::NotTested);
    let (verdict, shown) = decided(&[&passed, &prompts], &[&passed]);
    assert_eq!(verdict, Verdict::Incomplete);
    assert!(
        shown.contains("incomplete: `prompts` is declared, and nothing of it was tested: no tool may be called\n"),
        "{shown}"
    );
    let tested = of("prompts", CheckVerdict::Warn);
    assert_eq!(decided(&[&passed, &prompts], &[&passed, &tested]).0, Verdict::Passed);
    assert_eq!(decided(&[&open], &[&open]).0, Verdict::NothingTested);
}

#[test]
fn a_version_that_was_not_opened_and_what_was_not_tried_make_the_run_incomplete() {
    let passed = || result(&[Transport::Stdio], &[check(IDS[2], CheckVerdict::Pass, Vec::new())]);
    let mut unopened = passed();
    let version = Version::V2025_03_26;
    unopened.servers[0].unanswered = vec![UnansweredVersion { version, reason: "no answer".to_owned() }];
    let shown = text(&mut unopened, 160);
    assert!(shown.contains("incomplete: 2025-03-26 was not checked: no answer\n"), "{shown}");
    assert_eq!(unopened.verdict, Verdict::Incomplete);
    let mut untried = passed();
    untried.servers[0].untried = vec!["the server requires authorization".to_owned()];
    untried.servers[0].lost_stderr = 5;
    let shown = text(&mut untried, 160);
    assert!(
        shown.contains("incomplete: the server requires authorization\n")
            && shown.contains("5 lines of standard error not kept\n"),
        "{shown}"
    );
    assert_eq!(untried.verdict, Verdict::Incomplete);
}

#[test]
fn a_violation_of_several_versions_and_transports_is_one_entry() {
    let checks = [bad_names(), check(IDS[2], CheckVerdict::NotTested, Vec::new())];
    let shown = text(&mut result(&[Transport::Stdio, Transport::Http], &checks), 80);
    assert_eq!(shown.matches("MUST   in all 4 versions").count(), 1, "{shown}");
    assert!(shown.contains("failed   1 rule broken, 1 not tried"), "{shown}");
    assert!(shown.contains("Not tested: 1; 4 in all versions together\n    1  no tool may be called\n"), "{shown}");
    assert!(shown.contains("again: rehearse check --stdio 'node server.js' --seed 1 --only tools.list.name-charset"));
}

#[test]
fn what_matters_most_stands_at_the_end() {
    let warned = violation(CheckVerdict::Warn, "a", "x", "{}");
    let untested = |number: usize| JudgedCheck {
        reason: Some(if number == 5 { "use --budget".to_owned() } else { format!("reason {number}") }),
        ..check(&format!("rpc.a.b{number}"), CheckVerdict::NotTested, Vec::new())
    };
    let mut checks = vec![bad_names(), check(IDS[2], CheckVerdict::Warn, vec![warned])];
    checks.extend((0..6).map(untested));
    let text = text(&mut result(&[Transport::Stdio], &checks), 80);
    let parts = ["JSON-RPC", "✓ kept", "Not tested: 6", "▲ The rule of ping", "✗ The rule of tools", "\nfailed"];
    let at: Vec<_> = parts.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"))).collect();
    assert!(at.is_sorted(), "{at:?} {text}");
    let untested = "Not tested: 6; 12 in all versions together\n    1  use --budget\n    1  reason 0\n    1  reason 1\n    3  for other reasons";
    assert!(text.contains(untested), "{text}");
    let layout = Layout { width: 80, is_verbose: true, ..Layout::default() };
    assert!(shown(&mut result(&[Transport::Stdio], &checks), &layout).contains("reason 4: rpc.a.b4"));
}

#[test]
fn what_comes_from_an_sdk_is_one_remark_and_fails_nothing() {
    let mut of_sdk = violation(CheckVerdict::Fail, "a", "x", "{}");
    of_sdk.sdk = Some("TypeScript SDK".into());
    let own = violation(CheckVerdict::Fail, "b", "y", "{}");
    let checks = [check(IDS[0], CheckVerdict::Fail, vec![of_sdk.clone()]), check(IDS[2], CheckVerdict::Pass, vec![])];
    let mut checked = result(&[Transport::Stdio], &checks);
    checked.servers[0].accept_sdk();
    let shown = text(&mut checked, 160);
    assert!(shown.contains("1 violation comes from the TypeScript SDK") && !shown.contains(IDS[0]), "{shown}");
    assert_eq!(checked.verdict, Verdict::Passed, "{shown}");
    for format in [Format::Junit, Format::Html, Format::Markdown] {
        let results = Results { check: Some(checked.clone()), ..Results::default() };
        let rendered = String::from_utf8(results.render(format, &Layout::default())).expect("text");
        assert!(rendered.contains("from the TypeScript SDK"), "{format:?}: {rendered}");
    }
    let checks = [check(IDS[0], CheckVerdict::Fail, vec![of_sdk, own])];
    let mut checked = result(&[Transport::Stdio], &checks);
    checked.servers[0].accept_sdk();
    let shown = text(&mut checked, 160);
    assert_eq!(checked.verdict, Verdict::Failed, "the author's own fault stays the author's: {shown}");
    assert!(shown.contains("b: found y") && shown.contains("1 more violation accepted"), "{shown}");
}

#[test]
fn what_follows_from_another_violation_is_named_with_it() {
    let mut follower = check(IDS[1], CheckVerdict::NotTested, vec![violation(CheckVerdict::Fail, "a", "x", "{}")]);
    follower.cause = Some(IDS[0].into());
    let mut checked = result(&[Transport::Stdio], &[bad_names(), follower]);
    let shown = text(&mut checked, 80);
    assert!(shown.contains("also seen by io.stdout.only-messages\n"), "{shown}");
    assert_eq!(checked.totals.failed, 2, "one for each version");
}

#[test]
fn what_follows_from_an_accepted_violation_is_judged_by_itself() {
    let mut follower = check(IDS[1], CheckVerdict::NotTested, vec![violation(CheckVerdict::Fail, "a", "x", "{}")]);
    follower.cause = Some(IDS[0].into());
    let mut checked = result(&[Transport::Stdio], &[bad_names(), follower]);
    let known = format!("version: 1\naccept:\n  - {{ id: {}, reason: known }}\n", IDS[0]);
    let mut fresh = checked.clone();
    baseline(&known).expect("a baseline").apply(&mut checked, "a.yaml".into(), "2026-11-27", true);
    let shown = text(&mut checked, 80);
    assert_eq!((checked.verdict, checked.totals.failed), (Verdict::Failed, 2), "{shown}");
    assert!(shown.contains("\n  io.stdout.only-messages   MUST"), "{shown}");
    let mut written = Baseline::default();
    written.extend(&fresh);
    written.apply(&mut fresh, "a.yaml".into(), "2026-11-27", true);
    fresh.conclude(false);
    assert_eq!(fresh.verdict, Verdict::Passed, "{}", written.to_yaml());
}

#[test]
fn a_client_is_checked_again_with_its_command_at_the_end() {
    let mut checked = result(&[Transport::Stdio], &[bad_names()]);
    checked.servers[0].again = "rehearse check client".to_owned();
    checked.servers[0].versions[0].checks.iter_mut().for_each(|check| check.act = Some("pages".to_owned()));
    checked.servers[0].command = Some("node client.js '{url}'".to_owned());
    let shown = text(&mut checked, 80);
    let again = "again: rehearse check client --act pages --only tools.list.name-charset -- node client.js '{url}'";
    assert!(shown.contains(again), "{shown}");
}

#[test]
fn a_required_check_that_was_not_tested_fails_the_run() {
    let checks = [check(IDS[1], CheckVerdict::Pass, Vec::new()), check(IDS[2], CheckVerdict::NotTested, Vec::new())];
    let mut checked = result(&[Transport::Stdio], &checks);
    checked.conclude(false);
    assert_eq!(checked.verdict, Verdict::Passed);
    checked.require(|id| id == IDS[2]);
    assert!(text(&mut checked, 80).contains("--require wants it tested, but it was not: no tool may be called"));
    assert_eq!(checked.verdict, Verdict::Failed);
}

#[test]
fn a_run_in_which_nothing_was_tested_has_not_passed() {
    let mut checked = result(&[Transport::Stdio], &[check(IDS[2], CheckVerdict::NotTested, Vec::new())]);
    checked.conclude(false);
    assert_eq!(checked.verdict, Verdict::NothingTested);
}

#[test]
fn a_baseline_accepts_what_it_names_and_nothing_else() {
    let apply = |file: &str| {
        let mut checked = result(&[Transport::Stdio], &[bad_names(), check(IDS[2], CheckVerdict::Pass, Vec::new())]);
        let kept = baseline(file).expect("a baseline").apply(&mut checked, "b.yaml".into(), "2026-11-24", true);
        checked.conclude(false);
        (checked, kept)
    };
    let entry =
        |rest: &str| format!("version: 1\naccept:\n  - {{ id: tools.list.name-charset, reason: public{rest} }}\n");
    let (all, _) = apply(&entry(""));
    assert_eq!((all.verdict, all.totals.accepted), (Verdict::Passed, 2));
    let (one, _) = apply(&entry(", subject: read/file"));
    assert_eq!((one.verdict, one.totals.warnings), (Verdict::Passed, 2), "the other tool is a warning");
    let (cell, _) = apply(&entry(", when: { transport: [stdio, ws], version: '>=2025-11-25' }"));
    assert_eq!((cell.verdict, cell.totals.failed, cell.totals.accepted), (Verdict::Failed, 1, 1));
    let (expired, kept) = apply(&entry(", until: 2026-11-23"));
    assert_eq!((expired.verdict, expired.totals.failed), (Verdict::Failed, 2));
    assert_eq!(expired.baseline.expect("a use").expired, [IDS[0]]);
    assert_eq!(kept, Baseline::default());
    let (today, _) = apply(&entry(", until: 2026-11-24"));
    assert_eq!(today.verdict, Verdict::Passed);
    for stale in [entry(", subject: other"), entry("").replace("tools.list.name-charset", IDS[2])] {
        let (flaky, kept) = apply(&stale.replace(" }\n", ", flaky: true }\n"));
        assert_eq!(flaky.baseline.expect("a use").stale, Vec::<String>::new());
        assert!(kept.to_yaml().contains("    flaky: true\n"), "{}", kept.to_yaml());
        let (stale, kept) = apply(&stale);
        assert_eq!((stale.verdict, kept), (Verdict::Failed, Baseline::default()));
        assert_eq!(stale.baseline.expect("a use").stale.len(), 1);
    }
}

#[test]
fn an_entry_whose_check_was_not_tested_is_not_stale() {
    for (verdict, is_whole, stale) in [
        (CheckVerdict::NotTested, true, 0),
        (CheckVerdict::NotApplicable, true, 1),
        (CheckVerdict::NotApplicable, false, 0),
        (CheckVerdict::Pass, false, 1),
    ] {
        let mut checked = result(&[Transport::Stdio], &[check(IDS[2], verdict, Vec::new())]);
        let file = "version: 1\naccept: [{ id: ping.result.empty, reason: later }]\n";
        baseline(file).expect("a baseline").apply(&mut checked, "b.yaml".into(), "2026-11-24", is_whole);
        assert_eq!(checked.baseline.expect("a use").stale.len(), stale, "{verdict:?}");
    }
}

#[test]
fn an_entry_of_a_transport_that_was_not_met_is_not_stale() {
    for (transport, stale) in [("http", 0), ("stdio", 1)] {
        let mut checked = result(&[Transport::Stdio], &[check(IDS[2], CheckVerdict::Pass, Vec::new())]);
        let when = format!("{{ transport: {transport} }}");
        let file = format!("version: 1\naccept: [{{ id: ping.result.empty, when: {when}, reason: later }}]\n");
        baseline(&file).expect("a baseline").apply(&mut checked, "b.yaml".into(), "2026-11-24", true);
        assert_eq!(checked.baseline.expect("a use").stale.len(), stale, "{transport}");
    }
}

#[test]
fn a_written_baseline_accepts_the_run_that_wrote_it() {
    let mut checked = result(&[Transport::Stdio], &[bad_names()]);
    let file = "version: 1\naccept:\n  - id: ping.result.empty\n    reason: gone\n";
    let mut kept = baseline(file).expect("a baseline").apply(&mut checked, "b.yaml".into(), "2026-11-24", true);
    kept.extend(&checked);
    assert_eq!(
        kept.to_yaml(),
        "version: 1\naccept:\n  - id: tools.list.name-charset\n    subject: \"read/file\"\n    reason: \"TODO\"\n"
    );
    baseline(&kept.to_yaml()).expect("a baseline").apply(&mut checked, "b.yaml".into(), "2026-11-24", true);
    checked.conclude(false);
    assert_eq!(checked.verdict, Verdict::Passed);
    assert_eq!(baseline(&Baseline::default().to_yaml()), Ok(Baseline::default()));
}

#[test]
fn the_expected_failures_of_the_official_suite_are_accepted_by_their_ids() {
    for (entry, verdict, unknown) in [
        ("tools-list", Verdict::Passed, 0),
        ("tools-list:tools-name-format", Verdict::Passed, 0),
        ("ping", Verdict::Failed, 1),
    ] {
        let mut checked = result(&[Transport::Http], &[bad_names()]);
        let file = format!("server:\n  - {entry}\nclient:\n  - sse-retry\n");
        baseline(&file).expect("a baseline").apply(&mut checked, "b.yaml".into(), "2026-11-24", true);
        checked.conclude(false);
        assert_eq!((checked.verdict, checked.baseline.expect("a use").unknown.len()), (verdict, unknown), "{entry}");
    }
}

#[test]
fn mistakes_in_a_baseline_have_a_position() {
    let wrong = |file: &str| baseline(file).expect_err("wrong");
    let entry = |text: &str| format!("version: 1\naccept:\n  - {{ {text} }}\n");
    assert_eq!(wrong("version: 2\naccept: []\n"), "accepted.yaml:1:10: the version of a baseline must be 1");
    assert!(wrong(&entry("id: ping.result.empti, reason: x")).contains(":3:11: no check has the id"));
    assert!(wrong(&entry("id: ping.result.empty")).contains("needs a `reason`"));
    assert!(wrong(&entry("id: ping.result.empty, reason: x, untill: 2027-01-31")).contains("has no key `untill`"));
    assert!(wrong(&entry("id: ping.result.empty, reason: x, until: soon")).contains("is not a date"));
    assert!(
        wrong(&entry("id: ping.result.empty, reason: x, when: { version: '2025' }"))
            .contains("is not a protocol version")
    );
}

#[test]
fn sarif_has_a_place_and_a_fingerprint_for_every_result() {
    let mut checked = result(&[Transport::Stdio, Transport::Http], &[bad_names()]);
    checked.conclude(false);
    let layout = Layout { directory: "/repo".into(), ..Layout::default() };
    let results = Results { check: Some(checked), ..Results::default() };
    let log: serde_json::Value = serde_json::from_slice(&results.render(Format::Sarif, &layout)).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), 2, "one for each tool, whatever the version and the transport");
    for result in results {
        assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], ".mcp.json");
        assert!(result["partialFingerprints"]["rehearse/v1"].is_string());
    }
    assert!(log["runs"][0]["tool"]["driver"]["rules"][0]["help"]["text"].is_string());
}

#[test]
fn a_server_can_neither_control_the_terminal_nor_break_the_xml() {
    let hostile = "a\u{1b}[2Jb\u{9b}m\u{202e}\u{fffe}z";
    let violations = vec![violation(CheckVerdict::Fail, hostile, hostile, hostile)];
    let mut checked = result(&[Transport::Stdio], &[check(IDS[0], CheckVerdict::Fail, violations)]);
    checked.servers[0].name = Some(hostile.to_owned());
    let mut dead = checked.servers[0].clone();
    (dead.versions, dead.error, dead.target) = (Vec::new(), Some(hostile.to_owned()), hostile.to_owned());
    checked.servers.push(dead);
    checked.conclude(false);
    let official = checked.render_official(Format::Human);
    let mut results = Results { check: Some(checked), ..Results::default() };
    let layout = Layout { width: 160, ..Layout::default() };
    for bytes in [results.render(Format::Human, &layout), results.render(Format::Junit, &layout), official] {
        let text = anstream::adapter::strip_str(std::str::from_utf8(&bytes).expect("UTF-8")).to_string();
        let is_harmful = |it: char| (it.is_control() && it != '\n') || matches!(it, '\u{202e}' | '\u{fffe}');
        assert!(!text.contains(is_harmful), "{text:?}");
    }
    // A file may have been forged.
    let checked = results.check.iter_mut().flat_map(|check| &mut check.servers[0].versions[0].checks);
    checked.for_each(|check| check.level = Some("<i>MUST".into()));
    let markdown = results.render(Format::Markdown, &layout);
    let markdown = std::str::from_utf8(&markdown).expect("UTF-8");
    assert!(markdown.contains("&lt;i&gt;MUST") && !markdown.contains("<i>"), "{markdown}");
}

#[test]
fn bytes_that_are_no_text_are_kept_and_a_long_frame_is_cut_around_its_mark() {
    let line = WireLine::new(Direction::ServerToClient, Duration::ZERO, b"a\xffb", &[]);
    assert_eq!((line.text.as_str(), line.hex.as_deref()), ("a\u{fffd}b", Some("61ff62")));
    let long = format!("{}\"name\"{}", "ä".repeat(5000), "x".repeat(9000));
    let line = WireLine::new(Direction::ServerToClient, Duration::ZERO, long.as_bytes(), &marks(Some("name"), "it"));
    assert!(line.offset > 8000 && line.text.len() <= 4096 && line.is_cut() && line.hex.is_none());
    assert_eq!((line.mark.as_deref(), line.length), (Some("\"name\""), long.len()));
}
