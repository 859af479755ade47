//! Runs the binary: [`Rehearse`] is the builder, [`Running`] the process, [`Run`] the result.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        LazyLock,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};

/// Longer than any step takes on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(3 * 60);

/// A signal that is ignored, as SIGHUP is under `nohup`, is ignored by children too; one that is received has its default
/// effect on them.
static HANGUPS: LazyLock<(Runtime, Signal)> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("starts");
    let hangups = runtime.block_on(async { signal(SignalKind::hangup()) }).expect("a handler");
    (runtime, hangups)
});

/// Builds a run in a new folder.
pub(crate) struct Rehearse {
    program: &'static str,
    folder: TempDir,
    args: Vec<String>,
    env: Vec<(&'static str, &'static str)>,
    stdin: String,
    unheard: bool,
    reads_on_demand: bool,
}

impl Rehearse {
    pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_rehearse");

    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Rehearse {
            program: Rehearse::BINARY,
            folder,
            args: Vec::new(),
            env: Vec::new(),
            stdin: String::new(),
            unheard: false,
            reads_on_demand: false,
        }
    }

    /// Writes a file to the working folder.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        self.bytes(name, text.as_bytes())
    }

    /// Writes the files that are there for each section of a console page.
    pub(crate) fn files_of(self, page: &str) -> Self {
        let path = format!("{}/tests/console/{page}.md", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a page");
        let head = text.split("\n## ").next().expect("a head");
        let blocks = head.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
        blocks.fold(self, |story, (info, text)| story.file(info.split_once(' ').expect("a name").1, text))
    }

    /// As [`Rehearse::file`], with bytes.
    pub(crate) fn bytes(self, name: &str, text: &[u8]) -> Self {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        std::fs::write(path, text).expect("writes");
        self
    }

    /// Sets the permissions of a file.
    pub(crate) fn mode(self, name: &str, mode: u32) -> Self {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(self.folder.path().join(name), permissions).expect("changes");
        self
    }

    pub(crate) fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Runs this program instead.
    pub(crate) fn program(mut self, program: &'static str) -> Self {
        self.program = program;
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.stdin = text.into();
        self
    }

    /// Reads stderr only when the test waits for a line, until the end.
    pub(crate) fn unread_stderr(mut self) -> Self {
        self.unheard = true;
        self
    }

    /// Reads stdout only when the test waits for a line.
    pub(crate) fn unread_stdout(mut self) -> Self {
        self.reads_on_demand = true;
        self
    }

    /// Creates a named pipe in the working folder.
    pub(crate) fn fifo(self, name: &str) -> Self {
        let made = Command::new("mkfifo").arg(self.folder.path().join(name)).status();
        assert!(made.expect("mkfifo runs").success());
        self
    }

    /// The working folder.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn command(&self) -> Command {
        LazyLock::force(&HANGUPS);
        let mut command = Command::new(self.program);
        // Killed processes leave temporary files.
        command.current_dir(self.folder.path()).args(&self.args).env("TMPDIR", self.folder.path());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.envs(self.env.iter().copied());
        command
    }

    /// Runs to the end.
    pub(crate) fn run(self) -> Run {
        let mut command = assert_cmd::Command::from_std(self.command());
        let output = command.write_stdin(self.stdin).timeout(TIMEOUT).output().expect("runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Run { folder: self.folder, status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Runs with these streams.
    pub(crate) fn status(self, stdin: impl Into<Stdio>, stdout: impl Into<Stdio>) -> ExitStatus {
        self.command().stdin(stdin).stdout(stdout).stderr(Stdio::null()).status().expect("runs")
    }

    /// Starts the process without waiting for its end.
    pub(crate) fn start(self) -> Running {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let stdin = child.stdin.take().map(|mut stdin| {
            stdin.write_all(self.stdin.as_bytes()).expect("writes");
            stdin
        });
        let stdout = match self.reads_on_demand {
            true => Lines::on_demand(child.stdout.take().expect("a pipe")),
            false => Lines::read(child.stdout.take().expect("a pipe")),
        };
        let stderr = match self.unheard {
            true => Lines::on_demand(child.stderr.take().expect("a pipe")),
            false => Lines::read(child.stderr.take().expect("a pipe")),
        };
        Running { folder: self.folder, process: Process(child), stdin, stdout, stderr }
    }
}

/// The lines of a stream.
struct Lines {
    next: Receiver<String>,
    seen: String,
}

impl Lines {
    fn read(stream: impl Read + Send + 'static) -> Lines {
        let (sender, next) = mpsc::channel();
        Lines::fed(stream, next, move |line| sender.send(line).is_ok())
    }

    /// Reads only when the test waits for a line.
    fn on_demand(stream: impl Read + Send + 'static) -> Lines {
        let (sender, next) = mpsc::sync_channel(0);
        Lines::fed(stream, next, move |line| sender.send(line).is_ok())
    }

    fn fed(
        stream: impl Read + Send + 'static,
        next: Receiver<String>,
        take: impl Fn(String) -> bool + Send + 'static,
    ) -> Lines {
        let mut lines = BufReader::new(stream).lines();
        std::thread::spawn(move || while lines.next().is_some_and(|line| take(line.expect("UTF-8"))) {});
        Lines { next, seen: String::new() }
    }

    fn wait_for(&mut self, part: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.next.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("no line with {part:?} in:\n{}", self.seen));
            self.seen += &format!("{line}\n");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The whole text, after the end of the stream.
    fn all(mut self) -> String {
        loop {
            match self.next.recv_timeout(TIMEOUT) {
                Ok(line) => self.seen += &format!("{line}\n"),
                Err(RecvTimeoutError::Disconnected) => return self.seen,
                Err(RecvTimeoutError::Timeout) => panic!("still running after:\n{}", self.seen),
            }
        }
    }
}

/// A running process.
pub(crate) struct Running {
    folder: TempDir,
    process: Process,
    stdin: Option<ChildStdin>,
    stdout: Lines,
    stderr: Lines,
}

impl Running {
    /// Waits for a line on stderr that contains the text.
    pub(crate) fn stderr_line(&mut self, part: &str) -> String {
        self.stderr.wait_for(part)
    }

    /// Waits for a line on stdout that contains the text.
    pub(crate) fn stdout_line(&mut self, part: &str) -> String {
        self.stdout.wait_for(part)
    }

    /// The address in the line that announces a URL of this scheme and path.
    pub(crate) fn address(&mut self, scheme: &str, path: &str) -> String {
        let line = self.stderr_line(scheme);
        let rest = line.split_once(scheme).expect("the scheme").1;
        rest.strip_suffix(path).unwrap_or_else(|| panic!("{line} ends with {path}")).to_owned()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.type_in(&format!("{line}\n"));
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(text.as_bytes()).expect("writes");
    }

    /// Closes stdin.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.process.0.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
    }

    /// Waits for the end, without closing stdin.
    pub(crate) fn end(self) -> Run {
        let Running { folder, mut process, stdin, stdout, stderr } = self;
        let (stdout, stderr) = (stdout.all(), stderr.all());
        let status = process.0.wait().expect("waits");
        drop(stdin);
        Run { folder, status, stdout, stderr }
    }
}

/// The children of a process; empty if it has ended.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    children.flat_map(|ids| ids.split_whitespace().map(|id| id.parse().expect("an id")).collect::<Vec<_>>()).collect()
}

/// A process that is killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The result of a run.
pub(crate) struct Run {
    folder: TempDir,
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl Run {
    fn description(&self) -> String {
        format!("{}\n--- stdout\n{}\n--- stderr\n{}", self.status, self.stdout, self.stderr)
    }

    #[track_caller]
    pub(crate) fn stdout(self, expected: &str) -> Self {
        assert_eq!(self.stdout, expected, "{}", self.description());
        self
    }

    #[track_caller]
    pub(crate) fn stdout_has(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "no {part:?} in stdout: {}", self.description());
        self
    }

    #[track_caller]
    pub(crate) fn stderr_has(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "no {part:?} in stderr: {}", self.description());
        self
    }

    #[track_caller]
    pub(crate) fn coloured(self, expected: bool) -> Self {
        let coloured = self.stdout.contains('\u{1b}') || self.stderr.contains('\u{1b}');
        assert_eq!(coloured, expected, "{}", self.description());
        self
    }

    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.status.code(), Some(expected), "{}", self.description());
        self
    }

    pub(crate) fn stdout_text(&self) -> &str {
        &self.stdout
    }

    pub(crate) fn stderr(&self) -> &str {
        &self.stderr
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect(name)
    }
}

/// A POST on a new connection: written first, then read to the end.
pub(crate) struct Post(TcpStream);

impl Post {
    pub(crate) fn send(address: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Post {
        let own = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        Post::write("POST", address, path, &[&own, headers].concat(), body)
    }

    fn write(method: &str, address: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Post {
        let mut stream = TcpStream::connect(address).expect("connects");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let length = body.len().to_string();
        let own = [("Content-Length", &*length), ("Connection", "close")];
        let lines: String = own.iter().chain(headers).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        stream.write_all(format!("{method} {path} HTTP/1.1\r\n{lines}\r\n{body}").as_bytes()).expect("writes");
        Post(stream)
    }

    /// The head and body of the response, until the server closes the connection.
    pub(crate) fn response(mut self) -> String {
        let mut text = Vec::new();
        self.0.read_to_end(&mut text).expect("reads");
        String::from_utf8(text).expect("UTF-8")
    }
}

/// The response to any request, with these headers and no others.
pub(crate) fn request(method: &str, address: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    Post::write(method, address, path, headers, body).response()
}
