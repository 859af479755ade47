//! No run leaves processes behind, however it ends.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use mcp_rehearsal::{
    client::{CommandSpec, ConnectError, ReaperProcess, ServerParams, Session, Target},
    protocol::{Protocol, Version},
};

use crate::rehearse::{Rehearse, Running, children};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A server and its child that ignore signals.
const DEAF: &str =
    r#"{ command: sh, args: [-c, "trap '' TERM; sleep 4321 & sleep 4322; true"], timeouts: { connect: 10m } }"#;

/// A mock that logs its requests to a file.
const BUSY: &str = r#"{ command: sh, args: [-c, 'exec "$0" mock mock.yaml --verbose 2> log', "$REHEARSE"] }"#;

/// `BUSY` with a shell that stays when the mock has ended.
const STAYING: &str = r#"{ command: sh, args: [-c, 'trap "" TERM; "$0" mock mock.yaml --verbose 2> log; sleep 4327; true', "$REHEARSE"] }"#;

/// A server that ends when `gate` is opened, and a child that stays.
const GATED: &str = r#"{ command: sh, args: [-c, "mkfifo gate; sleep 4323 >&2 & read line < gate"] }"#;

/// A server whose child has its own session.
const AWAY: &str = r#"{ command: sh, args: [-c, "setsid sleep 4324 & sleep 4325; true"], timeouts: { connect: 10m } }"#;

/// A run in a run, started as with `nohup`.
const NESTED: &str =
    r#"{ command: sh, args: [-c, 'trap "" HUP; exec "$0" run inner.yaml', "$REHEARSE"], timeouts: { connect: 10m } }"#;

const MOCK: &str = "tools: [{ name: never, delay: 60s, reply: never }]";

fn scenario(server: &str) -> String {
    let server = server.replace("$REHEARSE", env!("CARGO_BIN_EXE_rehearse"));
    format!(
        "servers: {{ s: {server} }}\nmatrix: {{ protocol: [2025-11-25] }}\nsteps: [{{ call: {{ tool: never }} }}]\n"
    )
}

fn story(server: &str) -> Rehearse {
    Rehearse::new()
        .file("mock.yaml", MOCK)
        .file("demo.yaml", &scenario(server))
        .file("inner.yaml", &scenario(DEAF))
        .env("CI", "")
        .args(["run", "demo.yaml"])
}

/// Starts, waits for descendants with these command line suffixes, and returns them in order.
pub(crate) fn started<const N: usize>(story: Rehearse, commands: [&str; N]) -> (Running, [Process; N]) {
    let running = story.start();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let processes = descendants(running.id());
        let find = |part: &&str| processes.iter().find(|process| process.command().ends_with(*part)).cloned();
        match commands.iter().map(find).collect::<Option<Vec<_>>>() {
            Some(found) => return (running, found.try_into().expect("one for each")),
            None => assert!(Instant::now() < deadline, "{commands:?} run: {processes:?}"),
        }
        thread::yield_now();
    }
}

pub(crate) fn descendants(process: u32) -> Vec<Process> {
    children(process)
        .into_iter()
        .flat_map(|id| [Process::find(id)].into_iter().flatten().chain(descendants(id)))
        .collect()
}

/// A process with its start time, because ids are reused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Process {
    id: u32,
    started: String,
}

impl Process {
    /// `None` if it has ended.
    fn find(id: u32) -> Option<Process> {
        let fields = stat(id);
        let runs = fields.first().is_some_and(|state| state != "Z");
        runs.then(|| Process { id, started: fields[19].clone() })
    }

    pub(crate) fn command(&self) -> String {
        fs::read_to_string(format!("/proc/{}/cmdline", self.id))
            .unwrap_or_default()
            .replace('\0', " ")
            .trim_end()
            .to_owned()
    }

    fn group(&self) -> u32 {
        stat(self.id)[2].parse().expect("a number")
    }
}

/// The fields of `/proc/PID/stat` from the state on.
fn stat(id: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    text.rsplit(") ").next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Whether a process ignores SIGHUP.
fn ignores_hangup(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("runs");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    u64::from_str_radix(ignored.trim(), 16).expect("hexadecimal") & 1 == 1
}

#[track_caller]
pub(crate) fn gone(processes: &[Process]) {
    let deadline = Instant::now() + TIMEOUT;
    for process in processes {
        while Process::find(process.id).as_ref() == Some(process) {
            assert!(Instant::now() < deadline, "{} is gone: {process:?}", process.command());
            thread::yield_now();
        }
    }
}

#[track_caller]
pub(crate) fn gone_already(processes: &[Process]) {
    for process in processes {
        assert!(Process::find(process.id).as_ref() != Some(process), "{} is gone: {process:?}", process.command());
    }
}

#[test]
fn servers_that_ignore_signals_end_when_the_run_is_killed() {
    let (running, processes) = started(story(DEAF), ["sleep 4321", "sleep 4322", " guard"]);
    running.signal("KILL");
    gone(&processes);
}

#[test]
fn a_starting_server_ends_when_the_run_is_killed() {
    for _ in 0..20 {
        let (running, processes) = started(story(DEAF), ["sleep 4322; true"]);
        running.signal("KILL");
        gone(&processes);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn children_in_other_sessions_end_when_the_run_is_killed() {
    let (running, processes) = started(story(AWAY), ["sleep 4324", "sleep 4325"]);
    running.signal("KILL");
    gone(&processes);
}

#[test]
fn a_mock_with_a_response_in_progress_ends_when_the_run_is_killed() {
    let (running, processes) = started(story(BUSY), [" mock mock.yaml --verbose", " guard"]);
    wait_for_request(&running);
    running.signal("KILL");
    gone(&processes);
}

#[test]
fn nested_runs_end_when_the_run_is_killed() {
    let (running, processes) = started(story(NESTED), [" run inner.yaml", "sleep 4321", "sleep 4322"]);
    running.signal("KILL");
    gone(&processes);
}

#[test]
fn a_response_in_progress_does_not_block_the_end_of_a_run() {
    for signal in ["HUP", "QUIT", "TERM", "INT"] {
        let (running, processes) = started(story(BUSY), [" mock mock.yaml --verbose", " guard"]);
        wait_for_request(&running);
        running.signal(signal);
        running.end().stderr_has("interrupted").stdout_has("1 not run").code(3);
        gone(&processes);
    }
}

#[test]
fn a_run_that_is_interrupted_twice_waits_for_no_server() {
    let (mut running, processes) = started(story(STAYING), [" mock mock.yaml --verbose", " guard"]);
    wait_for_request(&running);
    running.signal("INT");
    running.stderr_line("interrupted: stopping the servers");
    running.signal("INT");
    running.end().stdout("").stderr_has("interrupted again: killed all servers").code(3);
    gone(&processes);
}

#[test]
fn an_interrupted_run_kills_servers_that_ignore_signals() {
    let (running, [one, other, guard]) = started(story(DEAF), ["sleep 4321", "sleep 4322", " guard"]);
    running.signal("INT");
    running.end().stderr_has("interrupted").code(3);
    gone_already(&[one, other, guard]);
}

#[test]
fn a_finished_run_leaves_no_guard_and_no_child_of_a_server() {
    let (running, processes) = started(story(GATED), ["sleep 4323", " guard"]);
    fs::write(running.path("gate"), "\n").expect("opens");
    running.end().stdout_has("the server closed the connection during the handshake").code(1);
    gone_already(&processes);
}

#[test]
fn the_guard_ignores_ctrl_c_and_has_another_process_name() {
    let (running, [_, guard]) = started(story(DEAF), ["sleep 4322", " guard"]);
    assert_eq!(guard.group(), guard.id);
    let deadline = Instant::now() + TIMEOUT;
    while fs::read_to_string(format!("/proc/{}/comm", guard.id)).expect("runs") != "mcp-guard\n" {
        assert!(Instant::now() < deadline, "it has a name of its own");
        thread::yield_now();
    }
    drop(running);
    gone(&[guard]);
}

#[test]
fn sighup_is_ignored_under_nohup() {
    let (running, [inner, ..]) = started(story(NESTED), [" run inner.yaml", "sleep 4322"]);
    assert!(ignores_hangup(inner.id));
    running.signal("KILL");
    gone(&[inner]);
}

#[tokio::test]
async fn the_guard_is_notified_of_every_step_of_a_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let mut guard = std::process::Command::new("sh");
    guard.args(["-c", "cat >> \"$0\""]).arg(&log);
    ReaperProcess::install(guard);
    let args = vec!["-c".into(), "echo $$ >&2; exit 1".into()];
    let spec = CommandSpec { program: "sh".into(), args, ..CommandSpec::default() };
    let config = ServerParams::new("shell", Target::Stdio(spec));
    let protocol = Protocol::Exact(Version::LATEST_LEGACY);
    let error = Session::connect(&config, protocol).await.expect_err("no server");
    let ConnectError::Closed { stderr, .. } = &error else { panic!("{error:?}") };
    ReaperProcess::dismiss();
    let log = fs::read_to_string(log).expect("written");
    // Other tests of this program may start processes at the same time.
    let entries: Vec<_> = log.split_terminator('\0').collect();
    let running = entries.iter().find_map(|entry| entry.strip_prefix('=')?.strip_suffix(&format!(" {}", stderr[0])));
    let mark = running.unwrap_or_else(|| panic!("no process {} in {log:?}", stderr[0]));
    let own: Vec<_> = entries.into_iter().filter(|entry| entry.contains(mark)).collect();
    assert_eq!(own, [format!("+{mark}"), format!("={mark} {}", stderr[0]), format!("-{mark}")]);
}

/// Waits until the mock has received the call that it never answers.
fn wait_for_request(running: &Running) {
    let deadline = Instant::now() + TIMEOUT;
    while !fs::read_to_string(running.path("log")).is_ok_and(|log| log.contains("tools/call never")) {
        assert!(Instant::now() < deadline, "the mock is asked");
        thread::yield_now();
    }
}
