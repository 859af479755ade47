//! `rehearse run --watch`.

use std::{fs, path::Path};

use crate::{
    orphans::started,
    rehearse::{Rehearse, Running},
    terminal::Terminal,
};

fn scenario(name: &str, expected: &str) -> String {
    format!(
        "servers: {{ s: {{ mock: ../{name}-mock.yaml }} }}\n\
         matrix: {{ transport: memory, protocol: [2025-11-25] }}\n\
         steps: [{{ call: {{ tool: hello }}, expect: {{ text: {expected} }} }}]\n"
    )
}

fn mock(reply: &str) -> String {
    format!("tools: [{{ name: hello, reply: {reply} }}]\n")
}

/// Two scenarios, each with a mock of its own.
fn story(args: &[&str]) -> Rehearse {
    let two = ["one", "two"].into_iter().fold(Rehearse::new(), |story, name| {
        let story = story.file(&format!("scenarios/{name}.yaml"), &scenario(name, "hello"));
        story.file(&format!("{name}-mock.yaml"), &mock("hello"))
    });
    two.env("CI", "").args(["run", "--watch"]).args(args.iter().copied())
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("writes");
}

/// Waits for the next run, which must be of these scenarios.
fn runs(running: &mut Running, scenarios: &str, summary: &str) {
    let line = running.stderr_line("running again: ");
    assert_eq!(line, format!("running again: {scenarios} scenarios"));
    running.stdout_line(summary);
}

fn ends(running: Running) {
    running.signal("TERM");
    running.end().stderr_has("interrupted").code(3);
}

#[test]
fn an_edit_runs_the_scenarios_that_it_concerns() {
    let mut running = story(&[]).start();
    running.stdout_line("2 passed");
    write(&running.path("scenarios/one.yaml"), &scenario("one", "goodbye"));
    runs(&mut running, "1 of 2", "scenarios/one.yaml");
    running.stdout_line("1 failed");
    write(&running.path("two-mock.yaml"), &mock("goodbye"));
    runs(&mut running, "1 of 2", "scenarios/two.yaml");
    running.stdout_line("1 failed");
    write(&running.path("scenarios/three.yaml"), &scenario("one", "hello"));
    runs(&mut running, "1 of 3", "1 passed");
    ends(running);
}

#[test]
fn an_edit_of_the_server_runs_everything() {
    let story = story(&["--watch-path", "server.js", "--watch-path", "source"]);
    let mut running = story.file("server.js", "1").file("source/deep/a.js", "1").start();
    running.stdout_line("2 passed");
    write(&running.path("server.js"), "22");
    runs(&mut running, "2 of 2", "2 passed");
    write(&running.path("source/deep/b.js"), "");
    runs(&mut running, "2 of 2", "2 passed");
    ends(running);
}

#[test]
fn what_a_run_writes_starts_no_other() {
    let written = ["--report", "snapshots/report.xml", "--trace-file", "snapshots/trace.jsonl"];
    let story = story(&["--watch-path", "snapshots"]).args(written).file("snapshots/notes", "");
    let snapshot = scenario("two", "hello").replace(" }]", ", snapshot: hello }]");
    let mut running = story.file("scenarios/two.yaml", &snapshot).start();
    running.stdout_line("1 failed");
    running.stderr_line("waiting for an edit");
    assert!(running.path("snapshots/two/hello.snap.new").exists());
    write(&running.path("one-mock.yaml"), &mock("goodbye"));
    runs(&mut running, "1 of 2", "1 failed");
    ends(running);
}

#[test]
fn mistakes_are_printed_and_mended() {
    let mut running = story(&[]).file("scenarios/two.yaml", "stepps: []").start();
    running.stderr_line("scenarios/two.yaml:1:1");
    running.stderr_line("waiting for an edit");
    // No scenario has run yet.
    write(&running.path("scenarios/two.yaml"), &scenario("two", "hello"));
    runs(&mut running, "2 of 2", "2 passed");
    write(&running.path("one-mock.yaml"), "tools: [{ name: hello, repply: x }]");
    running.stderr_line("running again: 1 of 2");
    running.stderr_line("a tool has no key `repply`");
    write(&running.path("one-mock.yaml"), &mock("goodbye"));
    runs(&mut running, "1 of 2", "1 failed");
    ends(running);
}

#[test]
fn the_others_run_when_a_file_with_a_mistake_is_removed() {
    let mut running = story(&[]).file("scenarios/two.yaml", "stepps: []").start();
    running.stderr_line("waiting for an edit");
    fs::remove_file(running.path("scenarios/two.yaml")).expect("removes");
    runs(&mut running, "1 of 1", "1 passed");
    ends(running);
}

#[test]
fn keys_run_all_or_what_has_failed() {
    const KEYS: &str = "a: all, f: only the failed, Enter: the same again, q: quit";
    let mut terminal = Terminal::start(story(&[]));
    terminal.shows("2 passed").shows(KEYS).types("f").shows("nothing has failed").types("a");
    terminal.shows("running again: all of 2").shows("2 passed").shows(KEYS);
    write(&terminal.path("two-mock.yaml"), &mock("goodbye"));
    terminal.shows("running again: 1 of 2").shows("1 failed").shows(KEYS).types("a");
    terminal.shows("running again: all of 2").shows("1 passed").shows(KEYS).types("f");
    terminal.shows("running again: 1 of 2").shows("1 failed").shows(KEYS).types("\r");
    terminal.shows("running again: 1 of 2").shows("1 failed").shows(KEYS).types("q");
    terminal.end(1);
}

#[test]
fn a_signal_during_a_run_ends_the_watch_with_a_report() {
    let never = scenario("one", "hello").replace("memory", "stdio");
    let slow = "tools: [{ name: hello, delay: 60s, reply: x }]";
    let story = story(&[]).file("scenarios/one.yaml", &never).file("one-mock.yaml", slow);
    let (running, _) = started(story, ["one-mock.yaml --seed 1"]);
    running.signal("INT");
    running
        .end()
        .stderr_has("interrupted: stopping the servers")
        .stdout_has("    interrupted\n")
        .stdout_has(" not run")
        .code(3);
}

#[test]
fn what_cannot_be_watched_is_refused() {
    for other in ["--list", "--shard=1/2", "--output=report", "--from-trace=t.jsonl", "--coverage"] {
        story(&[other]).run().stderr_has("cannot be used with").code(2);
    }
    story(&["--watch-path", "gone.js"]).run().stdout("").stderr_has("gone.js").stderr_has("cannot watch").code(2);
}
