//! The process of a server: started in a process group of its own, and stopped with all processes that it started.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsStr,
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, BufReader},
    process::{ChildStdin, ChildStdout, Command},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::OpenError;
use crate::recorder::ClientRecorder;
use rehearse_protocol::{EventKind, ProcessEvent};
use rehearse_system::{
    process::{Pipes, ProcessGroup},
    program,
};

const KEPT_LINES: usize = 20;
const LONGEST_LINE: usize = 64 << 10;

/// A command that serves MCP on its standard streams.
#[derive(Clone, Debug, Default)]
pub struct CommandSpec {
    /// The program: a path, or a name to find in `PATH`.
    pub program: String,
    /// The arguments.
    pub args: Vec<String>,
    /// Variables added to the inherited environment.
    pub env: BTreeMap<String, String>,
    /// The names of the inherited variables; all if `None`.
    pub inherit: Option<&'static [&'static str]>,
    /// The working directory; by default that of this process.
    pub cwd: Option<PathBuf>,
    /// The time limits for stopping the process.
    pub grace: StopGrace,
}

/// How long each step of stopping a process may take (2026-07-28, stdio: Shutdown).
#[derive(Clone, Copy, Debug)]
pub struct StopGrace {
    /// From closing its standard input to SIGTERM; zero during a shutdown.
    pub exit: Duration,
    /// From its end to SIGTERM for the processes that it started and that still run.
    pub others: Duration,
    /// From SIGTERM to SIGKILL.
    pub terminate: Duration,
    /// From SIGKILL to the end of the wait.
    pub kill: Duration,
}

impl Default for StopGrace {
    fn default() -> Self {
        let (exit, others) = (Duration::from_secs(5), Duration::from_millis(200));
        StopGrace { exit, others, terminate: Duration::from_secs(5), kill: Duration::from_secs(1) }
    }
}

/// A line that a server wrote to its standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StderrLine {
    /// The name of the server.
    pub server: Arc<str>,
    /// The line without its newline.
    pub line: String,
}

/// Called with each line that servers write to their standard error. Until it returns, no more is read.
pub type StderrSink = Arc<dyn Fn(StderrLine) + Send + Sync>;

/// The last 20 lines, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    /// Adds a line, and drops the oldest one if there are too many.
    pub fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Oldest first.
    pub fn to_vec(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// The streams of a process that has just been started.
pub(crate) struct ChildStreams {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

/// A running server process and its group. Dropping it kills the whole group.
#[derive(Debug)]
pub(crate) struct Child {
    group: ProcessGroup,
    grace: StopGrace,
    stderr: LastLines,
    listener: JoinHandle<()>,
    recorder: ClientRecorder,
    silent: watch::Receiver<bool>,
}

impl Child {
    /// Starts the process, and the reaper if one is installed; must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`OpenError::Spawn`] if the command cannot be started.
    pub(crate) fn spawn(
        spec: &CommandSpec,
        name: &str,
        sink: Option<StderrSink>,
        recorder: ClientRecorder,
    ) -> Result<(Child, ChildStreams), OpenError> {
        let failed = |source| OpenError::Spawn { program: spec.program.clone(), source };
        let path = spec.env.get("PATH").map(OsStr::new);
        let mut command = Command::from(program::command(&spec.program, path));
        if let Some(names) = spec.inherit {
            command.env_clear();
            command.envs(names.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        command.args(&spec.args).envs(&spec.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(cwd) = &spec.cwd {
            if !cwd.is_dir() {
                return Err(failed(io::Error::other(format!("{} is not a directory", cwd.display()))));
            }
            command.current_dir(cwd);
        }
        let mut group = ProcessGroup::start(command).map_err(failed)?;
        let Pipes { stdin: Some(stdin), stdout: Some(stdout), stderr: Some(stderr) } = group.take_pipes() else {
            return Err(failed(io::Error::other("its standard streams are missing")));
        };
        recorder.note(EventKind::Process(ProcessEvent::Started { pid: group.id() }));
        let (kept, server) = (LastLines::default(), Arc::from(name));
        let (done, silent) = watch::channel(false);
        let (last_lines, trace) = (kept.clone(), recorder.clone());
        let listener = tokio::spawn(async move {
            let report = |line: String| {
                trace.note_stderr(&line);
                if let Some(sink) = &sink {
                    sink(StderrLine { server: Arc::clone(&server), line: line.clone() });
                }
                last_lines.push(line);
            };
            listen(BufReader::new(stderr), Some(&trace), report).await;
            done.send_replace(true);
        });
        let child = Child { group, grace: spec.grace, stderr: kept, listener, recorder, silent };
        Ok((child, ChildStreams { stdin, stdout }))
    }

    /// The last lines of standard error, oldest first.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.stderr.to_vec()
    }

    /// The exit status, if the process ends within `patience`, and the last lines of its standard error.
    pub(crate) async fn exit_details(&self, patience: Duration) -> (Option<ExitStatus>, Vec<String>) {
        let mut silent = self.silent.clone();
        let ended = timeout(patience, async {
            let status = self.group.leader_exit().await;
            let _ = silent.wait_for(|silent| *silent).await;
            status
        });
        let status = ended.await.unwrap_or_else(|_| self.group.leader_status().ok().flatten());
        (status, self.last_lines())
    }

    pub(crate) fn set_exit_grace(&mut self, grace: Duration) {
        self.grace = StopGrace { exit: grace, others: self.grace.others.min(grace), terminate: grace, ..self.grace };
    }

    /// Waits for the process, whose standard input is closed, to exit, at most until `shutdown` is cancelled; then
    /// sends SIGTERM to it and all processes that it started; then kills them. Returns the exit status of the process,
    /// and ends within the sum of its [`StopGrace`].
    pub(crate) async fn stop(mut self, shutdown: &CancellationToken) -> Option<ExitStatus> {
        let grace = self.grace;
        tokio::select! {
            _ = timeout(grace.exit, self.group.leader_exit()) => {}
            () = shutdown.cancelled() => {}
        }
        let has_exited = matches!(self.group.leader_status(), Ok(Some(_)));
        if has_exited && self.group.has_others().await {
            tokio::select! {
                _ = timeout(grace.others, self.group.all_ended()) => {}
                () = shutdown.cancelled() => {}
            }
        }
        if !has_exited || self.group.has_others().await {
            let is_left = has_exited && !shutdown.is_cancelled();
            let event = if is_left { ProcessEvent::LeftBehind } else { ProcessEvent::Terminated };
            self.recorder.note_detail(None, || EventKind::Process(event));
            self.group.terminate().await;
            let _ = timeout(grace.terminate, self.group.all_ended()).await;
        }
        let status = self.group.end(grace.kill).await;
        if let Some(status) = &status {
            self.recorder.note(EventKind::Process(ProcessEvent::Exited { code: status.code() }));
        }
        if timeout(grace.kill, &mut self.listener).await.is_err() {
            self.listener.abort();
        }
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// Reports every line that is not empty when the trace has room for it, until the stream ends; of one that is too long, its start.
pub(crate) async fn listen(
    mut stream: impl AsyncBufRead + Unpin,
    trace: Option<&ClientRecorder>,
    report: impl Fn(String),
) {
    let (mut line, mut length) = (Vec::new(), 0);
    loop {
        let chunk = stream.fill_buf().await.unwrap_or_default();
        let newline = chunk.iter().position(|byte| *byte == b'\n');
        let (part, used) = (&chunk[..newline.unwrap_or(chunk.len())], newline.map_or(chunk.len(), |at| at + 1));
        line.extend_from_slice(&part[..part.len().min(LONGEST_LINE - line.len())]);
        length += part.len();
        stream.consume(used);
        if newline.is_none() && used > 0 {
            continue;
        }
        let mut text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        if length > LONGEST_LINE {
            text.push_str(&format!("… ({length} bytes)"));
        }
        if !text.is_empty() {
            if let Some(trace) = trace {
                trace.room(None).await;
            }
            report(text);
        }
        if used == 0 {
            return;
        }
        line.clear();
        length = 0;
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use rehearse_system::{Signal, process::exit_signal};

    use super::*;

    async fn heard(stream: &[u8], at_once: usize) -> Vec<String> {
        let lines = Mutex::new(Vec::new());
        listen(BufReader::with_capacity(at_once, stream), None, |line| lines.lock().expect("alone").push(line)).await;
        lines.into_inner().expect("alone")
    }

    #[tokio::test]
    async fn text_after_the_last_newline_is_a_line_and_an_empty_line_is_not() {
        for at_once in [1, 3, 64] {
            assert_eq!(heard(b"one\r\n\n  \ntwo\nthree", at_once).await, ["one", "two", "three"]);
            assert_eq!(heard(b"one\n", at_once).await, ["one"]);
        }
        assert_eq!(heard(b"", 1).await, [""; 0]);
    }

    #[tokio::test]
    async fn of_a_line_that_is_too_long_the_beginning_is_kept_also_at_the_end_of_the_stream() {
        let longest = "x".repeat(LONGEST_LINE);
        let stream = format!("{longest}\n{longest}yz\nshort\n{longest}y");
        let cut = |length: usize| format!("{longest}… ({length} bytes)");
        let expected = [longest.clone(), cut(LONGEST_LINE + 2), "short".into(), cut(LONGEST_LINE + 1)];
        for at_once in [1000, 1 << 20] {
            assert!(heard(stream.as_bytes(), at_once).await == expected, "read {at_once} at once");
        }
    }

    #[test]
    fn the_last_lines_are_kept_from_any_source() {
        let lines = LastLines::default();
        let other = lines.clone();
        (0..25).for_each(|n| if n % 2 == 0 { &lines } else { &other }.push(n.to_string()));
        assert_eq!(lines.to_vec(), (5..25).map(|n| n.to_string()).collect::<Vec<_>>());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn of_our_environment_a_process_has_what_it_may_inherit_and_its_own() {
        let environment = async |inherit| {
            // A shell would add variables; `env` prints what it got.
            let env = BTreeMap::from([("OWN".to_owned(), "1".to_owned())]);
            let spec = CommandSpec { program: "env".into(), env, inherit, ..CommandSpec::default() };
            let (child, mut pipes) = Child::spawn(&spec, "env", None, ClientRecorder::new()).expect("starts");
            let mut text = String::new();
            tokio::io::AsyncReadExt::read_to_string(&mut pipes.stdout, &mut text).await.expect("UTF-8");
            child.stop(&CancellationToken::new()).await;
            text.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect::<Vec<_>>()
        };
        assert!(environment(None).await.iter().any(|name| name == "CARGO_MANIFEST_DIR"), "set for every test");
        let only = environment(Some(&["PATH", "SET_NOWHERE"])).await;
        let mut known: Vec<_> = only.iter().filter(|name| !name.starts_with("REHEARSE")).collect();
        known.sort();
        assert_eq!(known, ["OWN", "PATH"], "{only:?}");
        assert_eq!(only.len(), 3, "the mark is there, too: {only:?}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_exit_of_a_process_is_known_until_it_is_stopped() {
        let report = async |script: &str| {
            let args = vec!["-c".into(), script.into()];
            let spec = CommandSpec { program: "sh".into(), args, ..CommandSpec::default() };
            let (child, _pipes) = Child::spawn(&spec, "shell", None, ClientRecorder::new()).expect("starts");
            for patience in [Duration::from_secs(60), Duration::ZERO] {
                let (status, lines) = child.exit_details(patience).await;
                assert_eq!(lines, ["last words"]);
                assert!(child.group.signal(Signal::Terminate), "its group is still there: {status:?}");
            }
            let report = child.group.leader_status().expect("a child of ours");
            assert_eq!(child.stop(&CancellationToken::new()).await, report);
            report.map(|status| (status.code(), exit_signal(status)))
        };
        assert_eq!(report("echo last words >&2; exit 7").await, Some((Some(7), None)));
        assert_eq!(report("echo last words >&2; kill -9 $$").await, Some((None, Some(9))));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn an_immediate_stop_sends_sigterm_at_once_and_leaves_time_to_exit() {
        let never = Duration::from_secs(3600);
        let grace = StopGrace { exit: never, others: never, terminate: never, kill: never };
        let script = "trap 'echo asked >&2; exit 3' TERM; echo ready; while :; do sleep 0.05 & wait; done";
        for is_waited_for in [true, false] {
            let args = vec!["-c".into(), script.into()];
            let spec = CommandSpec { program: "sh".into(), args, grace, ..CommandSpec::default() };
            let (child, mut pipes) = Child::spawn(&spec, "shell", None, ClientRecorder::new()).expect("starts");
            let mut ready = [0; 6];
            tokio::io::AsyncReadExt::read_exact(&mut pipes.stdout, &mut ready).await.expect("it is ready");
            let (shutdown, lines) = (CancellationToken::new(), child.stderr.clone());
            let mut stopping = std::pin::pin!(child.stop(&shutdown));
            if is_waited_for {
                assert!(futures_util::poll!(&mut stopping).is_pending());
            }
            shutdown.cancel();
            assert_eq!(stopping.await.and_then(|status| status.code()), Some(3));
            assert_eq!(lines.to_vec(), ["asked"]);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn processes_of_a_shell_script_have_time_to_terminate_as_well() {
        let long = Duration::from_secs(3600);
        let grace = StopGrace { exit: long, others: long, terminate: long, kill: long };
        let saving = "trap 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo saved >&2; exit' TERM";
        let script =
            format!("sh -c \"{}; echo ready; while :; do sleep 0.05 & wait; done\"; true", saving.replace('$', "\\$"));
        let spec =
            CommandSpec { program: "sh".into(), args: vec!["-c".into(), script], grace, ..CommandSpec::default() };
        let (child, mut pipes) = Child::spawn(&spec, "shell", None, ClientRecorder::new()).expect("starts");
        let mut ready = [0; 6];
        tokio::io::AsyncReadExt::read_exact(&mut pipes.stdout, &mut ready).await.expect("it is ready");
        let (shutdown, lines) = (CancellationToken::new(), child.stderr.clone());
        shutdown.cancel();
        child.stop(&shutdown).await;
        assert_eq!(lines.to_vec(), ["saved"]);
    }

    #[test]
    fn a_process_has_five_seconds_for_each_step() {
        let StopGrace { exit, terminate, .. } = StopGrace::default();
        assert_eq!([exit, terminate], [Duration::from_secs(5); 2]);
    }
}
