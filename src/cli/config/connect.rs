//! `--connect`: the servers of valid files, started or dialled to see what they offer.

use std::{collections::BTreeMap, io::IsTerminal, path::Path, process::Command, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::validate::Checked;
use crate::{
    cli::{Failure, signals::Signals, style},
    client::{ConnectError, Guard, LastLines, Protocol, ServerConfig, Session, StderrLine},
    config::{
        ClientConfig, Machine, Unresolved,
        dialect::Dialect,
        finding::{Finding, codes},
        policy::Policy,
        references, resolve,
        secret::{MASK, hidden_in, is_secret_name, secrets_in_argument},
        server,
    },
    report::findings::Contact,
    transport::{Tap, Transport},
    wire::Version,
};

const AT_ONCE: usize = 8;
/// A server that leaves the newest way to begin unanswered is asked in the older way only after 10 s.
const LONG_ENOUGH_TO_ASK_TWICE: Duration = Duration::from_secs(12);
/// How many of a server's last words are told.
const LAST_WORDS: usize = 5;

/// Reaches for every enabled server of the valid files: whether somebody interrupted that.
///
/// # Errors
/// This machine does not let us start anything.
pub(super) fn all(checked: &mut [Checked], shows_secrets: bool) -> Result<bool, Failure> {
    let plan = plan(checked, shows_secrets);
    if plan.is_empty() {
        return Ok(false);
    }
    let rehearse = std::env::current_exe()
        .map_err(|error| Failure::cannot(format!("the path of this program is unknown: {error}")))?;
    let mut guard = Command::new(rehearse);
    guard.arg("guard");
    Guard::install(guard);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::cannot(format!("the runtime cannot start: {error}")))?;
    let (outcomes, is_interrupted) = runtime.block_on(execute(plan))?;
    drop(runtime);
    Guard::dismiss();
    for Outcome { file, server, contact, findings } in outcomes {
        let file = &mut checked[file].file;
        file.servers[server].contact = contact;
        file.add(findings);
    }
    Ok(is_interrupted)
}

/// A server to be reached.
struct Candidate {
    file: usize,
    /// Its number within the file.
    server: usize,
    /// Ready to be connected to, with what must not be told of it; otherwise why not.
    config: Result<(ServerConfig, Vec<String>), Vec<Finding>>,
    name: server::At<String>,
    tools: server::ToolFilter,
    policy: &'static Policy,
}

/// What came of it.
struct Outcome {
    file: usize,
    server: usize,
    contact: Contact,
    findings: Vec<Finding>,
}

fn plan(checked: &[Checked], shows_secrets: bool) -> Vec<Candidate> {
    let mut plan = Vec::new();
    for (file, checked) in checked.iter().enumerate() {
        let Some(ClientConfig { dialect, servers }) = &checked.config else { continue };
        let variables = variables(&checked.folder);
        for (index, server) in servers.iter().enumerate() {
            if server.is_enabled() {
                let config = prepare(server, dialect, &variables, &checked.folder, shows_secrets);
                let (name, tools, policy) = (server.name.clone(), server.tools.clone(), &dialect.policy);
                plan.push(Candidate { file, server: index, config, name, tools, policy });
            }
        }
    }
    plan
}

/// The variables of this process, and what programs know by themselves of a project.
pub(super) fn variables(project: &Path) -> BTreeMap<String, String> {
    let mut variables = Machine::here().variables;
    let home = variables.get("HOME").cloned().unwrap_or_default();
    let folder = project.display().to_string();
    let base = project.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let known = [
        ("workspaceFolder", folder.clone()),
        ("workspaceFolderBasename", base),
        ("cwd", folder),
        ("userHome", home),
        ("pathSeparator", std::path::MAIN_SEPARATOR.to_string()),
        ("/", std::path::MAIN_SEPARATOR.to_string()),
    ];
    variables.extend(known.map(|(name, value)| (name.to_owned(), value)));
    variables
}

fn prepare(
    server: &server::ServerConfig,
    dialect: &Dialect,
    variables: &BTreeMap<String, String>,
    folder: &Path,
    shows_secrets: bool,
) -> Result<(ServerConfig, Vec<String>), Vec<Finding>> {
    let name = &server.name;
    let resolved = resolve(server, dialect, variables).map_err(|unresolved| {
        let finding = |it: &Unresolved| {
            let message = format!("cannot connect to `{}`: {}", name.value, it.describe(dialect.program));
            codes::CONNECT.at(it.span, message).about(&name.value)
        };
        unresolved.iter().map(finding).collect::<Vec<_>>()
    })?;
    let config = ServerConfig::configured(&resolved, &dialect.policy, folder).map_err(|error| {
        vec![codes::CONNECT.at(name.span, format!("cannot connect to `{}`: {error}", name.value)).about(&name.value)]
    })?;
    let secrets = if shows_secrets { Vec::new() } else { secrets_of(server, &resolved, variables) };
    Ok((config, secrets))
}

/// What must not be told of a server: what is secret as it is written, and what came of variables with it.
fn secrets_of(
    server: &server::ServerConfig,
    resolved: &server::ServerConfig,
    variables: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut secrets = Vec::new();
    let mut of = |name: &str, value: &str| {
        secrets.extend(hidden_in(name, value).into_iter().map(|range| value[range].to_owned()));
    };
    let pairs = resolved.env.iter().chain(&resolved.headers);
    pairs.for_each(|pair| of(&pair.name.value, &pair.value.value));
    resolved.url.iter().for_each(|url| of("url", &url.value));
    let auth = &resolved.auth;
    let keys = auth.bearer.iter().chain(auth.api_key.iter().map(|api_key| &api_key.key));
    keys.for_each(|key| of("token", &key.value));
    let mut flag = "";
    for arg in &resolved.args {
        let found = secrets_in_argument(flag, &arg.value);
        secrets.extend(found.into_iter().map(|range| arg.value[range].to_owned()));
        flag = if arg.value.starts_with('-') { &arg.value } else { "" };
    }
    // What a reference stands for is nobody's business, whatever its name is.
    let both = server.headers.iter().zip(&resolved.headers);
    secrets.extend(both.filter(|(written, it)| written.value != it.value).map(|(_, it)| it.value.value.clone()));
    for text in server.texts() {
        let secret = references(&text.at.value).filter(|reference| is_secret_name(reference.name));
        secrets.extend(secret.filter_map(|reference| variables.get(reference.name).cloned()));
    }
    secrets.retain(|secret| secret.len() >= 4);
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

async fn execute(plan: Vec<Candidate>) -> Result<(Vec<Outcome>, bool), Failure> {
    let mut signals =
        Signals::install().map_err(|error| Failure::cannot(format!("signals cannot be handled: {error}")))?;
    let (progress, cancel) = (progress(plan.len()), CancellationToken::new());
    let reached = stream::iter(plan).map(|candidate| {
        let (progress, cancel) = (&progress, &cancel);
        // On the heap, for eight of them are held at once.
        Box::pin(async move {
            progress.set_message(candidate.name.value.clone());
            let outcome = outcome(candidate, cancel).await;
            progress.inc(1);
            outcome
        })
    });
    let mut reaching = std::pin::pin!(reached.buffer_unordered(AT_ONCE).collect::<Vec<_>>());
    let (outcomes, is_interrupted) = tokio::select! {
        outcomes = &mut reaching => (outcomes, false),
        _ = signals.next() => {
            style::leave_line();
            style::print("interrupted: stopping what was started\n");
            cancel.cancel();
            (reaching.await, true)
        }
    };
    progress.finish_and_clear();
    Ok((outcomes, is_interrupted))
}

/// The live line on a terminal.
fn progress(servers: usize) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(servers as u64), target);
    let style = ProgressStyle::with_template("{spinner} connecting {pos}/{len} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

async fn outcome(candidate: Candidate, cancel: &CancellationToken) -> Outcome {
    let Candidate { file, server, config, name, tools, policy } = candidate;
    let of = |contact, findings| Outcome { file, server, contact, findings };
    let (config, secrets) = match config {
        Ok(prepared) => prepared,
        Err(findings) => return of(Contact::Failed, findings),
    };
    if cancel.is_cancelled() {
        return of(Contact::GivenUp, Vec::new());
    }
    let stderr = LastLines::default();
    let reached = tokio::select! {
        reached = reach(&config, stderr.clone()) => reached,
        () = cancel.cancelled() => return of(Contact::GivenUp, Vec::new()),
    };
    match reached {
        Ok(all) => {
            let count = all.len();
            let tools: Vec<_> = all.into_iter().filter(|tool| tools.offers(policy, tool)).collect();
            let left_out = count - tools.len();
            of(Contact::Reached { tools, left_out }, Vec::new())
        }
        Err(reason) => {
            let hidden = |text: &str| secrets.iter().fold(text.to_owned(), |text, it| text.replace(it.as_str(), MASK));
            let message = hidden(&format!("cannot connect to `{}`: {reason}", name.value));
            let finding = codes::CONNECT.at(name.span, message).about(&name.value);
            let lines = stderr.to_vec();
            let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
            of(
                Contact::Failed,
                vec![match last {
                    [] => finding,
                    last => finding.hint(hidden(&format!("it said: {}", last.join("\n")))),
                }],
            )
        }
    }
}

/// The names of a server's tools.
async fn reach(config: &ServerConfig, stderr: LastLines) -> Result<Vec<String>, String> {
    let is_asked_over_http = matches!(config.target.transport(), Transport::Http | Transport::Sse);
    let protocol = match is_asked_over_http || config.timeouts.connect >= LONG_ENOUGH_TO_ASK_TWICE {
        true => Protocol::Auto,
        false => Protocol::Exact(Version::LATEST_LEGACY),
    };
    let sink = Arc::new(move |line: StderrLine| stderr.push(line.line));
    let connecting = Box::pin(Session::connect_with(config, protocol, Some(sink), Tap::new()));
    let session = connecting.await.map_err(|error| reason(&error))?;
    let tools = tools(&session).await;
    session.close().await;
    tools
}

/// What is wrong, without the last words of the server, which are told beside it.
fn reason(error: &ConnectError) -> String {
    match error {
        ConnectError::Timeout { after, .. } => format!("no answer within {after:?}"),
        ConnectError::Closed { detail, .. } => format!("the server left during the handshake: {detail}"),
        error => error.to_string(),
    }
}

async fn tools(session: &Session) -> Result<Vec<String>, String> {
    #[derive(Deserialize)]
    struct Capabilities {
        tools: Option<serde::de::IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Tool {
        name: String,
    }
    let capabilities = serde_json::from_str::<Capabilities>(session.info().capabilities.get());
    if capabilities.is_ok_and(|capabilities| capabilities.tools.is_none()) {
        return Ok(Vec::new());
    }
    let listing = session.list_tools().await.map_err(|failure| format!("its tools cannot be listed: {failure}"))?;
    let name = |tool: &RawValue| serde_json::from_str::<Tool>(tool.get()).map(|tool| tool.name);
    let names = listing.items.iter().map(|tool| name(tool)).collect::<Result<Vec<_>, _>>();
    names.map_err(|error| format!("a tool of its list is none: {error}"))
}
