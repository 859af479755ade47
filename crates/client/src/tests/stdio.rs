use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use super::{LEGACY, call};
use crate::recorder::ClientRecorder;
use crate::{
    CallOptions, CommandSpec, ConnectError, ConnectOptions, Failure, ServerParams, Session, StderrSink, StopGrace,
    Target,
};
use rehearse_protocol::{EventKind, ProcessEvent, Protocol, Version};
use rehearse_system::TempFolder;
use rehearse_testing::{DISCOVERED, HELLO, INITIALIZED, is_running};

const GRACE_STEP: Duration = Duration::from_millis(100);
const GRACE: StopGrace =
    StopGrace { exit: GRACE_STEP, others: GRACE_STEP, terminate: GRACE_STEP, kill: Duration::from_secs(5) };

/// A shell that shakes hands and then runs `then`; `answer ID RESULT` writes a response.
fn shell(then: &str) -> ServerParams {
    let answer = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }"#;
    let script = format!("{answer}\nread -r line\nanswer 0 '{INITIALIZED}'\nread -r line\n{then}");
    command(CommandSpec {
        program: "sh".into(),
        args: vec!["-c".into(), script],
        grace: GRACE,
        ..CommandSpec::default()
    })
}

fn command(spec: CommandSpec) -> ServerParams {
    ServerParams::new("shell", Target::Stdio(spec))
}

async fn gone(pid: &str) {
    let patience = Instant::now() + Duration::from_secs(5);
    while is_running(pid) {
        assert!(Instant::now() < patience, "process {pid} is still there");
        tokio::task::yield_now().await;
    }
}

/// The pids that the script wrote to its standard error as `pid N`.
async fn pids<const N: usize>(config: &ServerParams) -> (Session, [String; N]) {
    let (sender, mut lines) = mpsc::unbounded_channel();
    let sink: StderrSink = Arc::new(move |line| drop(sender.send(line)));
    let options = ConnectOptions { stderr: Some(sink), ..ConnectOptions::default() };
    let session = Session::connect_with(config, LEGACY, options).await.expect("a session");
    let mut pids = Vec::new();
    while pids.len() < N {
        let line = lines.recv().await.expect("a line");
        assert_eq!(&*line.server, "shell");
        pids.extend(line.line.strip_prefix("pid ").map(str::to_owned));
    }
    (session, pids.try_into().expect("as many as asked for"))
}

#[tokio::test]
async fn a_call_goes_through_the_pipes_and_the_process_exits_by_itself() {
    let mut config = shell(&format!("read -r line\nanswer 1 '{HELLO}'\nread -r line\nexit $CODE"));
    let Target::Stdio(spec) = &mut config.target else { unreachable!("stdio") };
    spec.env.insert("CODE".into(), "7".into());
    let session = Session::connect(&config, LEGACY).await.expect("a session");
    assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
    assert_eq!(session.close().await.expect("a status").code(), Some(7));
}

#[tokio::test]
async fn a_process_that_ignores_everything_is_killed() {
    let config = shell("trap '' TERM\necho pid $$ >&2\nwhile :; do sleep 60; done");
    let (session, [pid]) = pids(&config).await;
    assert!(is_running(&pid));
    let status = session.close().await.expect("a status");
    assert_eq!(rehearse_system::process::exit_signal(status), Some(9));
    gone(&pid).await;
}

#[tokio::test]
async fn a_process_that_stays_is_asked_to_terminate_first() {
    let config = shell("trap 'exit 3' TERM\necho pid $$ >&2\nwhile :; do sleep 60 & wait; done");
    let (session, [pid]) = pids(&config).await;
    assert_eq!(session.close().await.expect("a status").code(), Some(3));
    gone(&pid).await;
}

#[tokio::test]
async fn grandchildren_go_with_the_process_even_if_it_exits_by_itself() {
    let config =
        shell("sh -c 'trap \"\" TERM; echo pid $$ >&2; while :; do sleep 60; done' &\necho pid $$ >&2\nread -r line");
    let (session, pids) = pids::<2>(&config).await;
    assert!(pids.iter().all(|pid| is_running(pid)));
    session.close().await;
    for pid in &pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn a_dropped_session_leaves_no_process_behind() {
    let config = shell("sleep 60 &\necho pid $! >&2\necho pid $$ >&2\nwait");
    let (session, pids) = pids::<2>(&config).await;
    drop(session);
    for pid in &pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn a_process_that_dies_leaves_its_status_and_last_words() {
    let config = shell("read -r line\nfor n in $(seq 30); do echo line $n >&2; done\nexit 9");
    let session = Session::connect(&config, LEGACY).await.expect("a session");
    let failure = call(&session, "echo", CallOptions::default()).await.expect_err("no answer");
    let Failure::Disconnected { detail } = &failure else { panic!("{failure:?}") };
    assert!(detail.contains("exit status: 9") && detail.ends_with("line 30"), "{detail}");
    assert!(detail.contains("line 11\n") && !detail.contains("line 10\n"), "the last 20 lines: {detail}");
    session.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_come_up_says_why() {
    let connect_error = async |config: &ServerParams| Session::connect(config, LEGACY).await.expect_err("no session");
    let spec = CommandSpec { program: "/no/such/program".into(), ..CommandSpec::default() };
    let error = connect_error(&command(spec)).await;
    assert!(matches!(error, ConnectError::Spawn { .. }), "{error}");
    assert!(error.to_string().ends_with("is it installed, and on the PATH?"), "{error}");
    let spec = CommandSpec { program: "sh".into(), cwd: Some("/no/such/place".into()), ..CommandSpec::default() };
    let error = connect_error(&command(spec)).await;
    assert!(error.to_string().ends_with("/no/such/place is not a directory"), "{error}");
    let args = vec!["-c".into(), "echo missing module >&2; exit 1".into()];
    let error = connect_error(&command(CommandSpec { program: "sh".into(), args, ..CommandSpec::default() })).await;
    let ConnectError::Closed { detail, stderr, .. } = &error else { panic!("{error:?}") };
    assert!(detail.contains("exit status: 1"), "{detail}");
    assert_eq!(stderr, &["missing module"]);
}

#[tokio::test]
async fn a_silent_server_is_late_and_does_not_survive() {
    let args = vec!["-c".into(), "echo pid $$ >&2; echo waiting >&2; exec sleep 60".into()];
    let mut config = command(CommandSpec { program: "sh".into(), args, grace: GRACE, ..CommandSpec::default() });
    config.timeouts.connect = Duration::from_millis(300);
    let error = Session::connect(&config, LEGACY).await.expect_err("no session");
    let ConnectError::Timeout { stderr, .. } = &error else { panic!("{error:?}") };
    assert_eq!(stderr.last().map(String::as_str), Some("waiting"));
    gone(stderr[0].trim_start_matches("pid ")).await;
}

#[tokio::test]
async fn a_line_on_standard_output_that_is_no_message_is_named() {
    for (script, text) in [
        ("echo '{\"log\":1}'; exec sleep 60", r#"300ms of its start; its standard output is not MCP: {"log":1}"#),
        ("echo Listening; echo more; exec sleep 60", "300ms of its start; its standard output is not MCP: Listening"),
        ("echo Listening; exit 3", "ended with exit status: 3; its standard output is not MCP: Listening"),
    ] {
        let args = vec!["-c".into(), script.into()];
        let mut config = command(CommandSpec { program: "sh".into(), args, grace: GRACE, ..CommandSpec::default() });
        config.timeouts.connect = Duration::from_millis(300);
        let error = Session::connect(&config, LEGACY).await.expect_err("no session").to_string();
        assert!(error.ends_with(text), "{error}");
    }
}

#[tokio::test]
async fn a_trace_has_the_whole_life_of_a_process_in_order() {
    let (heard, mut lines) = mpsc::unbounded_channel();
    let sink: StderrSink = Arc::new(move |line| drop(heard.send(line)));
    let recorder = ClientRecorder::new().with_details();
    let options = ConnectOptions { stderr: Some(sink), recorder: recorder.clone(), ..ConnectOptions::default() };
    let server = shell("echo working >&2; read -r line; exit 3");
    let session = Session::connect_with(&server, LEGACY, options).await.expect("a session");
    assert_eq!(lines.recv().await.expect("a line").line, "working");
    session.close().await;
    let trace = recorder.trace();
    let names = trace.events().map(|event| match &event.kind {
        EventKind::Opened(transport) => format!("opened {transport}"),
        EventKind::Frame(frame) => format!("{:?}", frame.direction),
        EventKind::Process(ProcessEvent::Started { pid }) => format!("started {}", *pid > 0),
        EventKind::Process(ProcessEvent::Exited { code }) => format!("exited {code:?}"),
        EventKind::Stderr(line) => String::from_utf8_lossy(line).into_owned(),
        EventKind::Closed(_) => "closed".to_owned(),
        other => format!("{other:?}"),
    });
    let expected = [
        "started true",
        "opened stdio",
        "ClientToServer",
        "ServerToClient",
        "ClientToServer",
        "working",
        "closed",
        "exited Some(3)",
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected);
}

/// A shell that runs `probed` if the first message is `server/discover`, and `initialized` if it is `initialize`.
fn probed_server(probed: &str, initialized: &str) -> ServerParams {
    let answer = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }"#;
    let script = format!(
        "{answer}\necho pid $$ >&2\nread -r line\ncase $line in\n*server/discover*)\necho probed >&2\n{probed}\n;;\n*)\n\
         echo initialize >&2\n{initialized}\n;;\nesac\nread -r line"
    );
    command(CommandSpec {
        program: "sh".into(),
        args: vec!["-c".into(), script],
        grace: GRACE,
        ..CommandSpec::default()
    })
}

/// What a legacy server does from its `initialize` on.
fn legacy_answers() -> String {
    format!("answer 0 '{INITIALIZED}'; read -r line; read -r line; answer 1 '{HELLO}'")
}

/// Stops the paused clock, which otherwise advances while nothing but a process works.
fn stop_clock() -> std::sync::mpsc::Sender<()> {
    let (stop, stopped) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || stopped.recv().is_ok());
    stop
}

/// Connects with `auto` while the clock stands still, but for 3 s when a process says `probed`. Returns the lines of
/// standard error.
async fn negotiate(config: &ServerParams) -> (Result<Session, ConnectError>, Vec<String>) {
    let (sender, mut lines) = mpsc::unbounded_channel();
    let sink: StderrSink = Arc::new(move |line| drop(sender.send(line.line)));
    let options = ConnectOptions { stderr: Some(sink), all_stderr: true, ..ConnectOptions::default() };
    let mut read = Vec::new();
    let mut connecting = Box::pin(Session::connect_with(config, Protocol::Auto, options));
    let connected = loop {
        tokio::select! {
            connected = &mut connecting => break connected,
            Some(line) = lines.recv() => {
                if line == "probed" {
                    tokio::time::advance(Duration::from_secs(3)).await;
                }
                read.push(line);
            }
        }
    };
    // Standard error may be read after standard output.
    let last = match &connected {
        Ok(session) if super::sent_methods(session).iter().any(|method| method == "initialize") => "initialize",
        _ => "pid ",
    };
    while !read.iter().any(|line| line.starts_with(last)) {
        read.push(lines.recv().await.expect("a line of standard error"));
    }
    read.extend(std::iter::from_fn(|| lines.try_recv().ok()));
    (connected, read)
}

fn process_ids(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("pid ")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_that_does_not_survive_the_probe_gets_a_second_process_once() {
    let _clock = stop_clock();
    for probed in ["read -r line; exit 1", "exit 1", "while read -r line; do :; done"] {
        let config = probed_server(probed, &legacy_answers());
        let (connected, lines) = negotiate(&config).await;
        let session = connected.unwrap_or_else(|error| panic!("{probed}: {error}"));
        assert_eq!(session.info().version.known(), Some(Version::V2025_11_25));
        let [first, second] = process_ids(&lines)[..] else { panic!("{probed}: {lines:?}") };
        assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
        assert!(is_running(second));
        assert_eq!(super::sent_methods(&session)[..1], ["initialize"], "{probed}");
        assert!(session.take_unsolicited().is_empty(), "{probed}");
        session.close().await;
        gone(first).await;
        gone(second).await;
        let (connected, lines) = negotiate(&config).await;
        assert!(process_ids(&lines).len() == 1 && !lines.contains(&"probed".to_owned()), "{probed}: {lines:?}");
        let session = connected.expect("a session");
        assert_eq!(super::sent_methods(&session)[..1], ["initialize"]);
        session.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_the_first_that_answers_is_used() {
    let _clock = stop_clock();
    let folder = TempFolder::create(&std::env::temp_dir()).expect("a folder");
    let fifo = folder.path().join("fifo");
    // The second process lets the first one answer.
    let probed = format!(
        "mkfifo {0}; read -r go < {0}; answer 0 '{DISCOVERED}'; read -r line; answer 1 '{HELLO}'",
        fifo.display()
    );
    let initialized = format!("until [ -p {0} ]; do :; done; echo go > {0}; read -r line", fifo.display());
    let (connected, lines) = negotiate(&probed_server(&probed, &initialized)).await;
    let session = connected.expect("a session");
    assert_eq!(session.info().version.known(), Some(Version::V2026_07_28));
    let [first, second] = process_ids(&lines)[..] else { panic!("{lines:?}") };
    gone(second).await;
    assert!(is_running(first));
    assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
    assert_eq!(super::sent_methods(&session), ["server/discover", "tools/call"]);
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_for_another_reason_is_started_twice_at_most() {
    let _clock = stop_clock();
    let (connected, lines) = negotiate(&probed_server("echo no key >&2; exit 7", "echo no key >&2; exit 7")).await;
    let ConnectError::Closed { detail, stderr, .. } = connected.expect_err("no session") else { panic!("{lines:?}") };
    assert!(detail.ends_with("exit status: 7") && stderr.ends_with(&["no key".into()]), "{detail} {stderr:?}");
    assert_eq!(process_ids(&lines).len(), 2, "{lines:?}");
    let refuse = r#"read -r line; printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no"}}\n'"#;
    let args = vec!["-c".into(), format!("echo pid $$ >&2; {refuse} 0; {refuse} 1; read -r line")];
    let spec = CommandSpec { program: "sh".into(), args, grace: GRACE, ..CommandSpec::default() };
    let (connected, lines) = negotiate(&command(spec)).await;
    assert!(matches!(connected, Err(ConnectError::Refused { .. })), "{lines:?}");
    assert_eq!(process_ids(&lines).len(), 1, "{lines:?}");
}

#[tokio::test]
async fn a_process_that_ends_before_it_reads_anything_is_started_once() {
    for script in ["echo pid $$ >&2; exit 7", "echo pid $$ >&2; exit 0"] {
        let args = vec!["-c".into(), script.into()];
        let config = command(CommandSpec { program: "sh".into(), args, grace: GRACE, ..CommandSpec::default() });
        let (connected, lines) = negotiate(&config).await;
        assert!(matches!(connected, Err(ConnectError::Closed { .. })), "{lines:?}");
        assert_eq!(process_ids(&lines).len(), 1, "{lines:?}");
    }
}

#[tokio::test]
async fn the_error_of_an_sdk_about_the_probe_is_no_output_and_its_server_is_not_probed_again() {
    const BANNER: &str = "Warning: no cache";
    let refuse = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"Invalid request parameters"}}"#;
    let script = format!(
        "echo '{BANNER}' >&2\nread -r line\ncase $line in\n*server/discover*)\necho 'Failed to validate: 2 validation errors' >&2\n\
         echo PingRequest.method >&2; echo \" Input should be 'ping', not server/discover\" >&2; echo more >&2\n\
         printf '%s\\n' '{refuse}'; read -r line\nset -- 1;;\n*) set -- 0;;\nesac\n\
         printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}}\\n' $1 '{INITIALIZED}'\nread -r line; echo opened >&2; read -r line"
    );
    let connect = async |all_stderr: bool| {
        let lines = crate::LastLines::default();
        let (sink, args) = (lines.clone(), vec!["-c".into(), script.clone(), all_stderr.to_string()]);
        let stderr: Option<StderrSink> = Some(Arc::new(move |line| sink.push(line.line)));
        let config = command(CommandSpec { program: "sh".into(), args, grace: GRACE, ..CommandSpec::default() });
        let options = ConnectOptions { stderr, all_stderr, ..ConnectOptions::default() };
        let session = Session::connect_with(&config, Protocol::Auto, options).await.expect("a session");
        let methods = super::sent_methods(&session);
        session.close().await;
        (methods, lines.to_vec())
    };
    for method in ["server/discover", "initialize"] {
        let (methods, lines) = connect(false).await;
        assert_eq!((&*methods[0], &lines[..]), (method, &[BANNER.to_owned(), "opened".to_owned()][..]));
    }
    assert_eq!(connect(true).await.1.len(), 6);
}
