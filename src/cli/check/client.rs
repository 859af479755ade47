//! `rehearse check client`: a client against the specification. It is started once for each act, each time with a mock of
//! its own.

use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use futures_util::{StreamExt, stream};
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use super::{again::quoted, report_args::ReportArgs, result};
use crate::cli::{
    Exit, Failure,
    mcp::connection::duration,
    mock::{exec_environment::ExecEnvironment, relay},
    process_guard::block_on_guarded,
    signals::Signals,
    style::{self, STRONG},
};
use rehearse_check::{ACTS, ActRun, ClientVersion, judge_client, selects};
use rehearse_client::{ProcessChange, ProcessHandle};
use rehearse_conformance::Role;
use rehearse_document::Source;
use rehearse_mock::{
    engine::{Engine, Seed},
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer, TraceRecorder},
};
use rehearse_protocol::{Direction, Trace};
use rehearse_report::check::{CheckFormat, CheckLayout, CheckedServer};

/// How many acts run at the same time.
const AT_ONCE: usize = 4;
/// How often it is looked whether the client is idle.
const LOOK: Duration = Duration::from_millis(100);
/// How long the client may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How much of the client's standard error is shown.
const SHOWN: usize = 2000;

const EXAMPLES: &str = "\
Examples:
  rehearse check client -- python client.py {url}
  rehearse check client -- node client.js --stdio {command}
  rehearse check client --act pages -- my-agent --mcp-config {config}
  rehearse check client --list-acts

The client is started once for each act. An act is a mock script: a way in which a server may behave. In each act the \
client should do its normal work: connect, list, call a tool, end.

In the arguments, {url}, {sse_url} and {ws_url} stand for the URLs of the mock, {command} for a command that serves it \
on stdio, and {config} for a config file with the URL. The client also gets the environment variables of `rehearse mock \
--exec`: REHEARSE_URL, REHEARSE_SSE_URL, REHEARSE_WS_URL, REHEARSE_STDIO, REHEARSE_CONFIG.

Exit codes:
  0  no MUST is violated    1  a MUST is violated, or what --strict, --require and --baseline say
  2  wrong usage            3  the client cannot be started; or interrupted
  4  nothing was selected, or nothing of it was tested";

/// Check a client against the MCP specification
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ClientArgs {
    /// Run only these acts: a name, one with `*`, or the file of a mock script (repeatable)
    #[arg(long = "act", value_name = "ACT")]
    acts: Vec<String>,
    /// Print the acts and exit
    #[arg(long)]
    list_acts: bool,
    /// How long one act may take
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    /// After what time without traffic a client is ended
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    idle: Duration,
    #[command(flatten)]
    report: ReportArgs,
    /// The command that starts the client
    #[arg(value_name = "COMMAND", last = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// An act with its mock.
struct ActScript {
    name: String,
    script: Script,
}

/// How the client has ended.
enum Ended {
    Exited(Option<i32>),
    /// It was idle, and was ended.
    Idle,
    /// It was still busy after `--timeout`.
    TimedOut,
}

pub(super) fn run(args: &ClientArgs) -> Result<Exit, Failure> {
    if args.list_acts {
        return list_acts();
    }
    if let Some(exit) = args.report.list(Role::Client)? {
        return Ok(exit);
    }
    if args.command.is_empty() {
        let message = "which client? give its command after `--`: rehearse check client -- python client.py {url}";
        return Err(Failure::Usage(message.to_owned()));
    }
    if args.report.format == CheckFormat::Sarif {
        let message = "SARIF needs a place in a file for each result, and a client has none; take --format junit";
        return Err(Failure::Usage(message.to_owned()));
    }
    let scripts = args.scripts()?;
    let baseline = args.report.read_baseline()?;
    let mut checked = args.report.begin();
    let begun = Instant::now();
    let (runs, is_interrupted) = block_on_guarded(args.run_acts(scripts))?;
    checked.duration = begun.elapsed();
    let versions = judge_client(&runs);
    checked.servers = args.results(versions);
    args.report.conclude(&mut checked, baseline, args.acts.is_empty(), is_interrupted)?;
    args.report.write(&checked, &CheckLayout { width: style::width(), directory: PathBuf::new() })
}

fn list_acts() -> Result<Exit, Failure> {
    let lines: Vec<_> =
        ACTS.iter().map(|act| format!("{STRONG}{:18}{STRONG:#} {}\n", act.name, act.description())).collect();
    crate::cli::output::write_styled(lines.concat().as_bytes()).map(|()| Exit::Success)
}

impl ClientArgs {
    /// The acts that were asked for, and `clean`, with which the others are compared.
    ///
    /// # Errors
    /// An act does not exist, or its script has mistakes.
    fn scripts(&self) -> Result<Vec<ActScript>, Failure> {
        let is_wanted = |name: &str| self.acts.is_empty() || self.acts.iter().any(|it| selects(it, name));
        let mut scripts = Vec::new();
        for act in ACTS.iter().filter(|act| act.name == ACTS[0].name || is_wanted(act.name)) {
            let source = Source::new(format!("{}.yaml", act.name), act.script);
            let script = Script::parse(&source).map_err(Failure::Invalid)?;
            scripts.push(ActScript { name: act.name.to_owned(), script });
        }
        for asked in self.acts.iter().filter(|asked| !ACTS.iter().any(|act| selects(asked, act.name))) {
            if !Path::new(asked).is_file() {
                let names: Vec<_> = ACTS.iter().map(|act| act.name).collect();
                let near = rehearse_document::nearest(asked, &names).map(|near| format!("did you mean {near}?"));
                let hint = near.unwrap_or_else(|| "--list-acts prints all".to_owned());
                return Err(Failure::Usage(format!("there is no act {asked:?}, and no such file; {hint}")));
            }
            scripts.push(ActScript { name: asked.clone(), script: Script::load(Path::new(asked), &[])? });
        }
        Ok(scripts)
    }

    /// Runs all acts. Returns what the client did, and whether it was interrupted.
    ///
    /// # Errors
    /// A mock or the client cannot be started.
    async fn run_acts(&self, scripts: Vec<ActScript>) -> Result<(Vec<ActRun>, bool), Failure> {
        let mut signals =
            Signals::install().map_err(|error| Failure::cannot(format!("cannot handle signals: {error}")))?;
        let running = stream::iter(scripts).map(|script| self.run_act(script)).buffered(AT_ONCE);
        let running = running.collect::<Vec<_>>();
        tokio::pin!(running);
        let runs = tokio::select! {
            runs = &mut running => runs,
            _ = signals.next() => {
                style::print("interrupted\n");
                return Ok((Vec::new(), true));
            }
        };
        Ok((runs.into_iter().collect::<Result<_, _>>()?, false))
    }

    async fn run_act(&self, script: ActScript) -> Result<ActRun, Failure> {
        let engine = Engine::new(script.script, Seed::from(self.report.seed), Journal::default());
        let recorder = Arc::<TraceRecorder>::default();
        let listen = ListenOptions { lenient: true, recorder: Some(recorder.clone()), ..ListenOptions::default() };
        let server = MockServer::start(engine, listen).await;
        let server = server.map_err(|error| Failure::cannot(format!("cannot listen on 127.0.0.1: {error}")))?;
        let (environment, listener) = ExecEnvironment::create(&server)?;
        let stop = CancellationToken::new();
        let relays = tokio::spawn(relay::serve(listener, server.pipes(), stop.clone()));
        let ended = self.drive(&environment, &server, &script.name).await;
        stop.cancel();
        let _ = tokio::time::timeout(GRACE, relays).await;
        recorder.close("the client has ended");
        let traces = server.traces();
        server.stop(Duration::ZERO).await;
        let exit_code = match ended? {
            Ended::Exited(code) => code,
            Ended::Idle => None,
            Ended::TimedOut => {
                style::warn(&format!("act {}: the client was ended after {:?}", script.name, self.timeout));
                None
            }
        };
        Ok(ActRun { act: script.name.clone(), traces, exit_code })
    }

    /// Runs the client until it ends, is idle, or has no time left.
    ///
    /// # Errors
    /// It cannot be started.
    async fn drive(&self, environment: &ExecEnvironment, server: &MockServer, act: &str) -> Result<Ended, Failure> {
        let cannot = |error: std::io::Error| Failure::cannot(format!("cannot run the client: {error}"));
        let variables = environment.variables(server).map_err(cannot)?;
        let mut words = self.command.iter().map(|word| {
            let mut word = word.to_string_lossy().into_owned();
            for (variable, value) in &variables {
                word = word.replace(placeholder(variable), &value.to_string_lossy());
            }
            word
        });
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(&program);
        let log = environment.path("stderr");
        command.args(words).envs(&variables).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create_new(&log).map_err(cannot)?);
        let started =
            ProcessHandle::start(command).map_err(|error| Failure::cannot(format!("cannot run {program}: {error}")));
        let mut process = started?;
        let begun = Instant::now();
        let mut seen = (0, Instant::now());
        let ended = loop {
            tokio::select! {
                change = process.change() => match change {
                    Ok(ProcessChange::Ended(status)) => break Ended::Exited(status.code()),
                    Ok(ProcessChange::Stopped(_)) => process.signal(Signal::CONT),
                    Err(error) => return Err(cannot(error)),
                },
                () = tokio::time::sleep(LOOK) => {
                    let events = server.traces().iter().map(Trace::end).sum();
                    if events != seen.0 {
                        seen = (events, Instant::now());
                    }
                    if begun.elapsed() > self.timeout {
                        break Ended::TimedOut;
                    }
                    if events > 0 && seen.1.elapsed() > self.idle {
                        break Ended::Idle;
                    }
                }
            }
        };
        if !matches!(ended, Ended::Exited(_)) {
            process.signal(Signal::TERM);
            let _ = tokio::time::timeout(GRACE, process.change()).await;
        }
        process.finish(GRACE).await;
        if act == ACTS[0].name && server.traces().is_empty() {
            let text = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
            let start = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
            let said = if text.is_empty() { String::new() } else { format!("; it said:\n{}", &text[start..]) };
            let failure = Failure::cannot(format!("{program} did not connect to the mock{said}"));
            return Err(failure.hint("pass it the address: {url}, {command} or {config} in its arguments"));
        }
        Ok(ended)
    }

    /// One result for each transport.
    fn results(&self, versions: Vec<ClientVersion>) -> Vec<CheckedServer> {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut all: Vec<CheckedServer> = Vec::new();
        for mut run in versions {
            run.outcomes.retain(|(row, _)| self.report.is_selected(row));
            let traces: Vec<_> = run.traces.iter().collect();
            let version = result::version(&traces, run.version, &run.outcomes);
            if let Some(known) = all.iter_mut().find(|known| known.transport == run.transport) {
                known.versions.push(version);
                continue;
            }
            let (name, server_version) = traces.iter().find_map(|trace| client_info(trace)).unzip();
            let again = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            all.push(CheckedServer {
                target: words.join(" "),
                transport: run.transport,
                name,
                server_version,
                started_in: Duration::ZERO,
                again: format!("rehearse check client -- {again}"),
                place: None,
                error: None,
                versions: vec![version],
                unanswered: Vec::new(),
                is_budget_spent: false,
            });
        }
        all
    }
}

/// What stands in the arguments for a variable.
fn placeholder(variable: &str) -> &'static str {
    match variable {
        "REHEARSE_URL" => "{url}",
        "REHEARSE_SSE_URL" => "{sse_url}",
        "REHEARSE_WS_URL" => "{ws_url}",
        "REHEARSE_STDIO" => "{command}",
        "REHEARSE_TOKEN" => "{token}",
        _ => "{config}",
    }
}

/// The name and the version that a client gives itself.
fn client_info(trace: &Trace) -> Option<(String, String)> {
    trace.frames().filter(|frame| frame.direction == Direction::ClientToServer).find_map(|frame| {
        let message: serde_json::Value = serde_json::from_slice(&frame.bytes).ok()?;
        let params = message.get("params")?;
        let info = params.get("clientInfo").or_else(|| params.pointer("/_meta/io.modelcontextprotocol~1clientInfo"))?;
        let text = |key: &str| info[key].as_str().unwrap_or_default().to_owned();
        Some((text("name"), text("version")))
    })
}
