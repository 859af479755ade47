//! `--connect`: connects to the servers of valid files and lists their tools.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    checked_file::CheckedFile,
    resolved_server::{ResolvedServer, default_protocol, prepare},
    tool_names::{self, Described, Offer},
};
use crate::cli::{
    Failure,
    mcp::{list_tools::name_of, session::first_notices},
    process_guard::block_on_guarded,
    profile::tool_findings,
    secrets::Secrets,
    signals::Signals,
    style,
};
use rehearse_client::{
    CallOptions, ConnectError, ConnectOptions, LastLines, Malformed, ServerParams, Session, StderrLine,
    UnsolicitedFrame, wrong_output,
};
use rehearse_client_configs::{
    ClientConfig, Machine, Project, Variables, codes,
    policy::{Patterns, Policy},
    server,
};
use rehearse_document::nearest;
use rehearse_hub::Notice;
use rehearse_profile::{Profile, builtin_of_dialect};
use rehearse_report::findings::{Contact, Finding};

const CONCURRENCY: usize = 8;
/// How many tools are named that the program does not accept.
const UNFIT: usize = 5;
/// How many lines of a server's standard error are shown.
const STDERR_LINES: usize = 5;

/// Connects to every enabled server of the valid files, except those of other projects. Returns whether the user
/// interrupted it.
///
/// # Errors
/// Processes or the async runtime cannot be started.
pub(super) fn connect_all(
    checked: &mut [CheckedFile],
    start_timeout: Option<Duration>,
    shows_secrets: bool,
) -> Result<bool, Failure> {
    let mut plan = plan(checked, shows_secrets);
    if let Some(limit) = start_timeout {
        let prepared = plan.iter_mut().filter_map(|candidate| candidate.config.as_mut().ok());
        prepared.for_each(|prepared| prepared.config.timeouts.connect = limit);
    }
    if plan.is_empty() {
        return Ok(false);
    }
    let (mut outcomes, is_interrupted) = block_on_guarded(execute(plan))?;
    for outcome in &mut outcomes {
        // The name may have been masked.
        outcome.name.value.clone_from(&checked[outcome.file].file.servers[outcome.server].name);
    }
    let shared = shared_names(&outcomes);
    for CandidateResult { file, server, contact, findings, name, .. } in outcomes {
        let file = &mut checked[file].file;
        let server = &mut file.servers[server];
        server.contact = contact;
        file.add(findings.into_iter().map(|finding| finding.about(&*name.value)));
    }
    for (file, finding) in shared {
        checked[file].file.add(std::iter::once(finding));
    }
    Ok(is_interrupted)
}

/// Findings about tools of several servers of one file, with the file.
fn shared_names(outcomes: &[CandidateResult]) -> Vec<(usize, Finding)> {
    let mut order: Vec<_> = outcomes.iter().collect();
    order.sort_by_key(|it| (it.file, it.server));
    let mut found = Vec::new();
    for of_file in order.chunk_by(|one, other| one.file == other.file) {
        let offers: Vec<_> = of_file.iter().map(|it| Offer { name: &it.name, tools: &it.tools }).collect();
        let findings = (1..=offers.len()).flat_map(|end| tool_names::findings(&offers[..end]));
        found.extend(findings.map(|finding| (of_file[0].file, finding)));
    }
    found
}

/// A server to connect to.
struct Candidate {
    file: usize,
    /// The index in the file.
    server: usize,
    /// The resolved server, or why it cannot be resolved.
    config: Result<ResolvedServer, Vec<Finding>>,
    name: server::At<String>,
    tools: server::ToolFilter,
    /// Other tools that the config names.
    others: Vec<server::At<String>>,
    policy: &'static Policy,
    /// What the program of the config accepts.
    profile: Option<&'static Profile>,
}

/// The result for a candidate.
struct CandidateResult {
    file: usize,
    server: usize,
    contact: Contact,
    findings: Vec<Finding>,
    name: server::At<String>,
    /// The tools that may be used.
    tools: Vec<Described>,
}

fn plan(checked: &[CheckedFile], shows_secrets: bool) -> Vec<Candidate> {
    let mut plan = Vec::new();
    let directory = std::env::current_dir().unwrap_or_default();
    for (file, checked) in checked.iter().enumerate() {
        let Some(ClientConfig { dialect, servers, projects, .. }) = &checked.config else { continue };
        let global = (servers, checked.folder.as_path(), true);
        // A program uses the servers of a project only in the folder of the project.
        let of_projects = projects.iter().map(|Project { servers, folder, .. }| {
            let folder = Path::new(folder);
            (servers, folder, directory.starts_with(folder))
        });
        let mut number = 0;
        for (servers, folder, is_here) in std::iter::once(global).chain(of_projects) {
            let variables = if is_here { Machine::here().variables_in(folder) } else { Variables::default() };
            for (index, server) in servers.iter().enumerate().filter(|(_, server)| is_here && server.is_enabled()) {
                let mut config = prepare(server, dialect, &variables, folder);
                if let (true, Ok(prepared)) = (shows_secrets, &mut config) {
                    prepared.secrets = Secrets::default();
                }
                let (name, tools, policy) = (server.name.clone(), server.tools.clone(), &dialect.policy);
                let timed = server.timeouts.tools.iter().map(|(tool, _)| tool);
                let others = server.approval.always_allow.iter().chain(timed).cloned().collect();
                let profile = builtin_of_dialect(dialect.name);
                plan.push(Candidate { file, server: number + index, config, name, tools, others, policy, profile });
            }
            number += servers.len();
        }
    }
    plan
}

async fn execute(plan: Vec<Candidate>) -> Result<(Vec<CandidateResult>, bool), Failure> {
    let mut signals = Signals::install().map_err(|error| Failure::cannot(format!("cannot handle signals: {error}")))?;
    let progress = style::progress("{spinner} connecting {pos}/{len} {wide_msg}", Some(plan.len()));
    let cancel = CancellationToken::new();
    let reached = stream::iter(plan).map(|candidate| {
        let (progress, cancel) = (&progress, &cancel);
        // Boxed, because several large futures exist at once.
        Box::pin(async move {
            progress.set_message(candidate.name.value.clone());
            let outcome = connect(candidate, cancel).await;
            progress.inc(1);
            outcome
        })
    });
    let reaching = reached.buffer_unordered(CONCURRENCY).collect::<Vec<_>>();
    let outcomes = signals.run_until_signal(&cancel, "interrupted: stopping the servers\n", reaching).await;
    progress.finish_and_clear();
    Ok((outcomes.unwrap_or_default(), cancel.is_cancelled()))
}

async fn connect(candidate: Candidate, cancel: &CancellationToken) -> CandidateResult {
    let Candidate { file, server, config, name, tools, others, policy, profile } = candidate;
    let of = |contact, findings| {
        let (name, tools) = (name.clone(), Vec::new());
        CandidateResult { file, server, contact, findings, name, tools }
    };
    let ResolvedServer { mut config, secrets, .. } = match config {
        Ok(prepared) => prepared,
        Err(findings) => return of(Contact::Failed, findings),
    };
    config.shutdown = cancel.clone();
    if cancel.is_cancelled() {
        return of(Contact::Interrupted, Vec::new());
    }
    let stderr = LastLines::default();
    let (reached, output) = Box::pin(tool_names(&config, stderr.clone(), cancel)).await;
    match reached {
        _ if cancel.is_cancelled() => of(Contact::Interrupted, Vec::new()),
        Ok(ListedTools { names, definitions, unusable }) => {
            let mut described: Vec<_> = definitions.iter().filter_map(Described::of).collect();
            let mut findings = unknown_tools(&tools, &others, policy, &names);
            let finding = |text: &str| codes::TOOL.at(name.span, secrets.hidden(text)).about(&*name.value);
            findings.extend(first_notices(&unusable).map(|text| finding(&text)));
            findings.extend(unfit_tools(profile, &name.value, definitions).into_iter().map(|(text, hint)| {
                codes::PROFILE.at(name.span, secrets.hidden(&text)).about(&*name.value).hint(hint)
            }));
            if let [first, more @ ..] = &output[..] {
                let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
                let message = format!("`{}` sent unexpected output: {first}{more}", name.value);
                let finding = codes::OUTPUT.at(name.span, secrets.hidden(&message));
                findings.push(finding.hint("on standard output, only messages of the protocol are allowed"));
            }
            let count = names.len();
            let tools: Vec<_> = names.into_iter().filter(|tool| tools.offers(policy, tool)).collect();
            let left_out = count - tools.len();
            described.retain(|it| tools.contains(&it.name));
            CandidateResult { tools: described, ..of(Contact::Reached { tools, left_out }, findings) }
        }
        Err(reason) => {
            let message = secrets.hidden(&format!("cannot connect to `{}`: {reason}", name.value));
            let finding = codes::CONNECT.at(name.span, message).about(&*name.value);
            let lines = stderr.to_vec();
            let last = &lines[lines.len().saturating_sub(STDERR_LINES)..];
            of(
                Contact::Failed,
                vec![match last {
                    [] => finding,
                    last => finding.hint(secrets.hidden(&format!("its standard error: {}", last.join("\n")))),
                }],
            )
        }
    }
}

/// Findings about the names in tool lists, and of `others`, that are not tools of the server. A pattern is not a name.
fn unknown_tools(
    lists: &server::ToolFilter,
    others: &[server::At<String>],
    policy: &Policy,
    all: &[String],
) -> Vec<Finding> {
    let known: Vec<&str> = all.iter().map(String::as_str).collect();
    let names = lists.include.iter().chain(&lists.exclude).flat_map(|list| &list.value);
    let is_pattern = |name: &str| policy.patterns != Patterns::Exact && name.contains(['*', '?', '[']);
    let others = others.iter().filter(|name| !name.value.contains('*'));
    let unknown = names.chain(others).filter(|name| !known.contains(&&*name.value) && !is_pattern(&name.value));
    unknown
        .map(|name| {
            let finding = codes::TOOL_UNKNOWN.at(name.span, format!("the server has no tool `{}`", name.value));
            finding.hint(match nearest(&name.value, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("`rehearse mcp list-tools --show-all` lists its {} tools", known.len()),
            })
        })
        .collect()
}

/// What the program of the config does not accept of the tools: a sentence, and where it was seen.
fn unfit_tools(profile: Option<&Profile>, server: &str, definitions: Vec<Value>) -> Vec<(String, String)> {
    let Some(profile) = profile else { return Vec::new() };
    let findings = tool_findings(profile, Some(server), definitions);
    let texts = findings.iter().map(|it| (it.sentence(), format!("seen {} in {}", it.seen, it.source)));
    let mut texts: Vec<_> = texts.take(UNFIT).collect();
    if let (more @ 1.., Some((_, hint))) = (findings.len().saturating_sub(UNFIT), texts.last_mut()) {
        hint.push_str(&format!("; {more} more: `rehearse check --profile {} --verbose` shows all", profile.name));
    }
    texts
}

/// The tools that a server lists.
#[derive(Default)]
struct ListedTools {
    /// The names of those that can be used.
    names: Vec<String>,
    /// All of them.
    definitions: Vec<Value>,
    unusable: Vec<Notice>,
}

/// Connects to a server and returns its tools, and its unexpected output.
async fn tool_names(
    config: &ServerParams,
    stderr: LastLines,
    cancel: &CancellationToken,
) -> (Result<ListedTools, String>, Vec<UnsolicitedFrame>) {
    let protocol = default_protocol(config);
    let sink = Arc::new(move |line: StderrLine| stderr.push(line.line));
    let options = ConnectOptions { stderr: Some(sink), cancel: cancel.clone(), ..ConnectOptions::default() };
    let connecting = Box::pin(Session::connect_with(config, protocol, options));
    let session = match connecting.await {
        Ok(session) => session,
        Err(error) => return (Err(reason(&error)), Vec::new()),
    };
    let names = list_tools(&session, cancel).await;
    let output = session.take_unsolicited();
    session.close().await;
    (names, output)
}

/// The error without the standard error of the server, which is in the hint.
fn reason(error: &ConnectError) -> String {
    let (what, output) = match error {
        ConnectError::Timeout { after, output, .. } => (format!("no answer within {after:?}"), output),
        ConnectError::Closed { detail, output, .. } => {
            (format!("the server closed the connection during the handshake: {detail}"), output)
        }
        error => return error.to_string(),
    };
    what + &wrong_output(output.as_ref())
}

async fn list_tools(session: &Session, cancel: &CancellationToken) -> Result<ListedTools, String> {
    if !session.info().declares("tools") {
        return Ok(ListedTools::default());
    }
    let listing = session
        .list_tools(CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() })
        .await
        .map_err(|failure| format!("its tools cannot be listed: {failure}"))?;
    let notice = |(index, malformed): &(usize, Malformed)| Notice::Unusable {
        server: session.name().into(),
        tool: name_of(&listing.items[*index]),
        why: malformed.to_string(),
    };
    let unusable = listing.malformed.iter().map(notice).collect();
    let definitions = listing.items.iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect();
    Ok(ListedTools { names: listing.valid().filter_map(name_of).collect(), definitions, unusable })
}
