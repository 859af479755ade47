//! The client in one act: it is started, driven, and ended.

use std::{
    any::Any,
    ffi::OsString,
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rehearse_llm::{
    endpoint::{EndpointOptions, ModelEndpoint},
    model::scripted::{WalkedTool, walk},
};
use rehearse_mock::script::ScriptError;
use rehearse_system::{
    Signal,
    process::{ProcessChange, ProcessGroup},
    program::{self, quoted},
    usage::of_group,
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    ActRun, ActScript, ActServer, ClientError, ClientEvent, ClientOptions, ClientStarter, trigger::TriggerRun,
};

/// How often it is looked whether the client is idle.
const LOOK: Duration = Duration::from_millis(100);
/// How long the client must be quiet before the triggers run.
const QUIET: Duration = Duration::from_millis(500);
/// How many times as much time a client has in an act that is repeated.
const MORE_PATIENCE: u32 = 3;
/// What a client that computes uses of a processor while it may be idle, in seconds. Others have less of it, for timers.
const COMPUTING: f64 = 0.1;
/// How long a process may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How much of the client's standard error is shown.
const SHOWN: usize = 2000;
/// The variables that the SDKs of models require.
const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

/// How the client has ended.
enum Ended {
    Exited(Option<i32>),
    /// It was idle, and was ended.
    Idle,
    /// It was still busy after the time limit.
    TimedOut,
}

impl ClientOptions {
    /// Runs the client in an act. `must_connect` says whether it is a failure if it does not.
    ///
    /// # Errors
    /// The mock or the client cannot be started.
    pub(super) async fn run_act(&self, act: ActScript, must_connect: bool) -> Result<ActRun, ClientError> {
        let begun = Instant::now();
        let model = match self.has_model {
            true => Some(start_model(&act).await?),
            false => None,
        };
        let runs: Vec<_> = self.triggers.iter().flat_map(|trigger| trigger.runs(&act)).collect();
        let mut server = ActServer::start(act, self.seed, ([127, 0, 0, 1], 0).into(), self.program.as_deref()).await?;
        let (name, log) = (server.name().to_owned(), server.path("stderr"));
        let mut undriven = None;
        let ended = self.drive(&mut server, model.as_ref(), &runs, must_connect, &mut undriven).await;
        let said = said(&log);
        let mut run = server.finish(matches!(ended, Ok(Ended::Exited(_)))).await;
        if let Some(model) = model {
            model.stop(Duration::ZERO).await;
        }
        (run.said, run.duration, run.undriven) = (said, begun.elapsed(), undriven);
        run.exit_code = match ended? {
            Ended::Exited(code) => code,
            Ended::Idle => None,
            Ended::TimedOut => {
                // What is run again says so then.
                if run.acts.len() == 1 {
                    self.tell(ClientEvent::TimedOut { act: name });
                }
                None
            }
        };
        Ok(run)
    }

    /// Runs the client until it ends, is idle, or has no time left. `undriven` gets why a trigger has failed.
    ///
    /// # Errors
    /// It cannot be started, or does not connect.
    async fn drive(
        &self,
        server: &mut ActServer,
        model: Option<&ModelEndpoint>,
        runs: &[TriggerRun],
        must_connect: bool,
        undriven: &mut Option<String>,
    ) -> Result<Ended, ClientError> {
        let variables = variables(server, model);
        let mut words = self.command.iter().map(|word| filled(&word.to_string_lossy(), &variables));
        let program = words.next().unwrap_or_default();
        let log = server.path("stderr");
        let (command, _kept) = match &self.starter {
            Some(ClientStarter(starter)) => starter(&variables.iter().cloned().collect())
                .map_err(|source| ClientError::Run { program: program.clone(), source })?,
            None => {
                let mut command = program::command(&program, None);
                command.args(words).envs(variables.iter().map(|(name, value)| (name, value)));
                (command, Box::new(()) as Box<dyn Any + Send>)
            }
        };
        let mut process = start(command, &program, &log)?;
        let begun = Instant::now();
        let patience = if self.is_repeat { MORE_PATIENCE } else { 1 };
        let idle = patience * server.rules().idle.unwrap_or_default().max(self.idle);
        let mut triggered = std::pin::pin!(trigger(runs, &variables, &log, self.timeout));
        let (mut is_ready, mut is_driven) = (false, runs.is_empty());
        let mut used_since_quiet = None;
        let ended = loop {
            tokio::select! {
                change = process.change() => match change {
                    Ok(ProcessChange::Ended(status)) => break Ended::Exited(status.code()),
                    Ok(ProcessChange::Stopped { .. }) => drop(process.signal(Signal::Continue)),
                    Err(source) => return Err(ClientError::Run { program, source }),
                },
                failure = triggered.as_mut(), if is_ready && !is_driven => {
                    is_driven = true;
                    if let Err(TriggerFailure { command, why }) = failure {
                        let (act, said) = (server.name().to_owned(), said(&log));
                        *undriven = Some(format!("{command} ({why})"));
                        self.tell(ClientEvent::TriggerFailed { act, command, why, said });
                    }
                }
                () = sleep(LOOK) => {
                    let quiet = server.quiet_for();
                    is_ready |= quiet.is_some_and(|quiet| quiet > QUIET);
                    if begun.elapsed() > patience * self.timeout {
                        break Ended::TimedOut;
                    }
                    if quiet.is_none_or(|quiet| quiet < LOOK) {
                        used_since_quiet = None;
                    } else if self.is_repeat {
                        used_since_quiet.get_or_insert_with(|| ProcessorTime::of(process.id()));
                    }
                    let computes = |used: &mut ProcessorTime| used.has_grown(process.id(), idle);
                    let is_idle = quiet.is_some_and(|quiet| quiet > idle);
                    if is_driven && is_idle && !used_since_quiet.as_mut().is_some_and(computes) {
                        break Ended::Idle;
                    }
                }
            }
        };
        if !matches!(ended, Ended::Exited(_)) {
            process.signal(Signal::Terminate);
            let _ = timeout(GRACE, process.change()).await;
        }
        server.note_left().await;
        process.finish(GRACE).await;
        if must_connect && server.quiet_for().is_none() {
            let said = said(&log);
            let has_address = self.command.iter().any(|word| names_address(&word.to_string_lossy()));
            return Err(ClientError::NotConnected { program, said, has_address });
        }
        Ok(ended)
    }
}

/// The processor time that the processes of a group have used up to a moment.
struct ProcessorTime {
    at: Instant,
    seconds: f64,
}

impl ProcessorTime {
    fn of(group: u32) -> ProcessorTime {
        ProcessorTime { at: Instant::now(), seconds: of_group(group).map_or(0.0, |usage| usage.cpu_seconds) }
    }

    /// Whether they have computed within this time; the moment is then now.
    fn has_grown(&mut self, group: u32, within: Duration) -> bool {
        let now = ProcessorTime::of(group);
        if now.seconds - self.seconds > COMPUTING {
            *self = now;
        }
        self.at.elapsed() <= within
    }
}

/// Serves a model that calls each tool of an act once.
///
/// # Errors
/// It cannot be served.
async fn start_model(act: &ActScript) -> Result<ModelEndpoint, ClientError> {
    let walked = |(name, arguments)| WalkedTool { server: String::new(), name, arguments };
    let model = walk(&act.tools().into_iter().map(walked).collect::<Vec<_>>()).map_err(ScriptError::Invalid)?;
    ModelEndpoint::start(model, EndpointOptions::default()).await.map_err(ClientError::Model)
}

/// Whether a word of a command stands for the address of the mock, or for a variable with it.
fn names_address(word: &str) -> bool {
    ["{url}", "{sse_url}", "{ws_url}", "{command}", "{config}", "REHEARSE_"].iter().any(|name| word.contains(name))
}

/// The environment of the client and of the commands that drive it.
fn variables(server: &ActServer, model: Option<&ModelEndpoint>) -> Vec<(&'static str, OsString)> {
    let mut variables = server.variables();
    if let Some(model) = model {
        let url = model.url();
        variables.push(("OPENAI_BASE_URL", format!("{url}/v1").into()));
        variables.push(("ANTHROPIC_BASE_URL", url.into()));
        let missing = KEYS.into_iter().filter(|key| std::env::var_os(key).is_none());
        variables.extend(missing.map(|key| (key, "sk-0".into())));
    }
    variables
}

/// Starts a command whose output goes to a file.
fn start(mut command: Command, program: &str, log: &Path) -> Result<ProcessGroup, ClientError> {
    let file = File::options().create(true).append(true).open(log);
    let started = file.and_then(|file| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        ProcessGroup::start(command.into())
    });
    started.map_err(|source| ClientError::Run { program: program.to_owned(), source })
}

struct TriggerFailure {
    command: String,
    why: String,
}

/// Runs the triggers, one after the other, up to the first that cannot be started, fails, or takes too long.
async fn trigger(
    runs: &[TriggerRun],
    variables: &[(&'static str, OsString)],
    log: &Path,
    limit: Duration,
) -> Result<(), TriggerFailure> {
    for run in runs {
        let all: Vec<_> = variables.iter().chain(&run.variables).cloned().collect();
        let shell: Vec<_> = all.iter().map(|(name, value)| (*name, quoted(&value.to_string_lossy()).into())).collect();
        let line = filled(&run.command, &shell);
        let mut command = program::shell(&line);
        command.envs(all);
        let mut process = match start(command, &line, log) {
            Ok(process) => process,
            Err(error) => return Err(TriggerFailure { command: line, why: error.to_string() }),
        };
        let ended = timeout(limit, async {
            loop {
                match process.change().await {
                    Ok(ProcessChange::Ended(status)) => break status.code(),
                    Ok(ProcessChange::Stopped { .. }) => drop(process.signal(Signal::Continue)),
                    Err(_) => break None,
                }
            }
        });
        let code = ended.await.ok().flatten();
        process.finish(GRACE).await;
        if code != Some(0) {
            let why = code.map_or_else(|| "it did not end".to_owned(), |code| format!("exit code {code}"));
            return Err(TriggerFailure { command: line, why });
        }
    }
    Ok(())
}

/// The end of what was written to standard error.
fn said(log: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let start = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
    let line = text[start..].find('\n').filter(|_| start > 0).map_or(start, |end| start + end + 1);
    if text.is_empty() { String::new() } else { format!("; it said:\n{}", &text[line..]) }
}

/// The text with the values of the variables in place of their names.
fn filled(text: &str, variables: &[(&'static str, OsString)]) -> String {
    let mut text = text.to_owned();
    for (variable, value) in variables {
        if let Some(name) = placeholder(variable) {
            text = text.replace(name, &value.to_string_lossy());
        }
    }
    text
}

/// What stands in a command for a variable.
fn placeholder(variable: &str) -> Option<&'static str> {
    Some(match variable {
        "REHEARSE_URL" => "{url}",
        "REHEARSE_SSE_URL" => "{sse_url}",
        "REHEARSE_WS_URL" => "{ws_url}",
        "REHEARSE_STDIO" => "{command}",
        "REHEARSE_TOKEN" => "{token}",
        "REHEARSE_CONFIG" => "{config}",
        "REHEARSE_TOOL" => "{tool}",
        "REHEARSE_ARGUMENTS" => "{arguments}",
        "REHEARSE_RESOURCE" => "{resource}",
        "REHEARSE_PROMPT" => "{prompt}",
        "ANTHROPIC_BASE_URL" => "{model_url}",
        _ => return None,
    })
}
