//! The process of a program: its pipes, its limits and its end.
//!
//! Messages are lines of JSON. The process writes `{"call", "tool", "arguments"}` and, at its end, `{"end", …}` to its
//! standard output, and reads `{"id", "result"}` or `{"id", "error"}` from its standard input. What the program prints
//! goes to standard error. Connections and secrets stay on our side. The process ends when its standard input does, so
//! it does not outlive us.

use std::{
    pin::pin,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use rehearse_protocol::{LineSplitter, TooLong};
use rehearse_system::{
    Signal,
    process::{Pipes, ProcessGroup},
};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    task::JoinSet,
    time::timeout,
};

use crate::{
    Tool,
    execution::{CallError, Execution, ExecutionError, Limits, ProgramEnd, ToolCall, value_of},
};

/// How long the output of a process that has ended may take to arrive.
const OUTPUT_DELAY: Duration = Duration::from_secs(1);

/// How a process ended.
pub(crate) struct Ended {
    how: End,
    pub(crate) is_timed_out: bool,
    /// `None` if it was killed by us.
    status: Option<ExitStatus>,
    output: String,
}

impl Ended {
    /// What became of the program. `read` says what its last message, without the content, means.
    pub(crate) fn into_execution(
        self,
        limits: &Limits,
        read: impl FnOnce(Map<String, Value>) -> ProgramEnd,
    ) -> Execution {
        let mut content = Vec::new();
        let outcome = match self.how {
            End::Message(mut message) => {
                let returned = message.remove("content").and_then(|it| it.as_array().cloned());
                let outcome = read(message);
                if outcome == ProgramEnd::Success {
                    content = returned.unwrap_or_default();
                }
                outcome
            }
            End::Killed => ProgramEnd::TimedOut(None),
            End::Silence if self.is_timed_out => ProgramEnd::TimedOut(None),
            End::Silence if self.status.is_some_and(|status| status.success()) => ProgramEnd::Success,
            End::Silence => ProgramEnd::crashed(self.status),
            End::Invalid(what) => ProgramEnd::Crashed(format!("the program was killed: {what}")),
            End::Fatal(message) => ProgramEnd::Fatal(message),
        };
        Execution { outcome, output: self.output, content, time: limits.time }
    }
}

/// The end of a conversation.
#[derive(Debug)]
enum End {
    /// The message with the key `end`.
    Message(Map<String, Value>),
    /// The process closed its output without one.
    Silence,
    /// A call ended it.
    Fatal(String),
    /// It was killed at its limit of time.
    Killed,
    /// It wrote something that is not a message, or is too large.
    Invalid(String),
}

/// Runs a process that calls tools, until it has ended or is killed. If the future is dropped, its process group is
/// killed. A process with `is_interruptible` gets SIGINT at its limit of time.
///
/// # Errors
/// It cannot be started.
pub(crate) async fn run<F>(
    command: Command,
    first: Option<Value>,
    tools: &[Tool],
    limits: &Limits,
    is_interruptible: bool,
    call: impl Fn(ToolCall) -> F,
) -> Result<Ended, ExecutionError>
where
    F: Future<Output = Result<Value, CallError>>,
{
    let mut process = Process::start(command)?;
    let output = Output::of(&mut process, limits.output);
    let mut conversation = pin!(converse(&mut process.pipes, first, tools, limits, call));
    let mut is_timed_out = false;
    let how = match timeout(limits.time, &mut conversation).await {
        Ok(how) => how,
        Err(_) => {
            is_timed_out = true;
            if is_interruptible {
                process.group.signal(Signal::Interrupt);
            }
            timeout(limits.grace, &mut conversation).await.unwrap_or(End::Killed)
        }
    };
    let may_end = matches!(how, End::Message(_) | End::Silence);
    let status = match may_end {
        true => timeout(limits.grace, process.group.leader_exit()).await.ok().flatten(),
        false => None,
    };
    // Also what the program has started.
    process.group.end(Duration::MAX).await;
    Ok(Ended { how, is_timed_out, status, output: output.finish().await })
}

struct Process {
    group: ProcessGroup,
    pipes: ProgramPipes,
    stderr: Option<ChildStderr>,
}

struct ProgramPipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Process {
    fn start(mut command: Command) -> Result<Process, ExecutionError> {
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |source| ExecutionError::Start { program: program.clone(), source };
        let mut group = ProcessGroup::start_untracked(command).map_err(failed)?;
        match group.take_pipes() {
            Pipes { stdin: Some(stdin), stdout: Some(stdout), stderr } => {
                Ok(Process { group, pipes: ProgramPipes { stdin, stdout }, stderr })
            }
            _ => Err(failed(std::io::Error::other("it has no pipes"))),
        }
    }
}

/// What a process prints, read by a task that this owns.
struct Output {
    kept: Arc<Mutex<Kept>>,
    task: JoinSet<()>,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    lost: usize,
}

impl Output {
    fn of(process: &mut Process, limit: usize) -> Output {
        let (kept, mut task) = (Arc::new(Mutex::new(Kept::default())), JoinSet::new());
        if let Some(mut stderr) = process.stderr.take() {
            let kept = Arc::clone(&kept);
            task.spawn(async move {
                let mut buffer = [0; 8192];
                while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                    let mut kept = kept.lock();
                    let free = count.min(limit - kept.bytes.len());
                    kept.bytes.extend(&buffer[..free]);
                    kept.lost += count - free;
                }
            });
        }
        Output { kept, task }
    }

    async fn finish(mut self) -> String {
        // A process that left the group may hold the pipe.
        let _ = timeout(OUTPUT_DELAY, self.task.join_next()).await;
        let kept = self.kept.lock();
        let mut text = String::from_utf8_lossy(&kept.bytes).into_owned();
        if kept.lost > 0 {
            text.push_str(&format!("\n[{} more bytes of output are lost]", kept.lost));
        }
        text
    }
}

/// Answers the calls of a process until it says that it has ended.
async fn converse<F>(
    pipes: &mut ProgramPipes,
    first: Option<Value>,
    tools: &[Tool],
    limits: &Limits,
    call: impl Fn(ToolCall) -> F,
) -> End
where
    F: Future<Output = Result<Value, CallError>>,
{
    let mut calls = FuturesUnordered::new();
    let mut lines = Lines { stdout: &mut pipes.stdout, splitter: LineSplitter::new(limits.message) };
    if let Some(first) = first {
        send(&mut pipes.stdin, &first).await;
    }
    loop {
        tokio::select! {
            Some((id, answer)) = calls.next() => match answer {
                Ok(result) => send(&mut pipes.stdin, &json!({ "id": id, "result": result })).await,
                Err(CallError::Failed(error)) => {
                    send(&mut pipes.stdin, &json!({ "id": id, "error": error })).await;
                }
                Err(CallError::Fatal(message)) => return End::Fatal(message),
            },
            line = lines.next(), if calls.len() < limits.calls => {
                let mut message: Map<String, Value> = match line {
                    Some(Ok(line)) => serde_json::from_slice(&line).unwrap_or_default(),
                    Some(Err(error)) => return End::Invalid(error.to_string()),
                    None => return End::Silence,
                };
                if message.contains_key("end") {
                    return End::Message(message);
                }
                let (Some(id), Some(Value::String(name)), Some(Value::Object(arguments))) =
                    (message.remove("call"), message.remove("tool"), message.remove("arguments"))
                else {
                    return End::Invalid("a message that is not a call".to_owned());
                };
                let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
                    return End::Invalid(format!("a call of the unknown tool {name:?}"));
                };
                let is_structured = tool.structured_output().is_some();
                let answer = call(ToolCall { tool: name, arguments });
                calls.push(async move { (id, answer.await.and_then(|result| value_of(&result, is_structured))) });
            }
        }
    }
}

/// A process that does not read has ended, which its output says.
async fn send(stdin: &mut ChildStdin, message: &Value) {
    let _ = stdin.write_all(format!("{message}\n").as_bytes()).await;
}

struct Lines<'p> {
    stdout: &'p mut ChildStdout,
    splitter: LineSplitter,
}

impl Lines<'_> {
    /// The next line, or `None` at the end. Loses nothing if it is dropped.
    async fn next(&mut self) -> Option<Result<Bytes, TooLong>> {
        loop {
            let line = self.splitter.next_line();
            if line.is_some() || !matches!(self.stdout.read_buf(self.splitter.buffer()).await, Ok(1..)) {
                return line;
            }
        }
    }
}
