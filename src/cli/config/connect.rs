//! `--connect`: connects to the servers of valid files and lists their tools.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    checked_file::CheckedFile,
    tool_names::{self, Described, Offer},
};
use crate::cli::{
    Failure,
    job::Job,
    mcp::{list::list_tools::name_of, session::first_notices},
    process_guard::block_on_guarded,
    profile::tool_findings,
    secrets::Secrets,
    sources::resolved_server::{ResolvedServer, default_protocol, prepare},
    style,
};
use rehearse_client::{
    CallOptions, ConnectError, ConnectOptions, LastLines, Malformed, ServerParams, Session, StderrLine,
    UnsolicitedFrame, wrong_output,
};
use rehearse_client_configs::{
    ClientConfig, Machine, Project, Variables, codes,
    policy::{Patterns, Policy},
    secret::is_secret_name,
    server,
};
use rehearse_document::{Node, Source, nearest};
use rehearse_hub::Notice;
use rehearse_profile::{Profile, builtin_of_dialect};
use rehearse_protocol::List;
use rehearse_release::{Offered, Release, compare};
use rehearse_report::findings::{Contact, Finding};

const CONCURRENCY: usize = 8;
/// How many tools are named that the program does not accept.
const UNFIT: usize = 5;
/// How many lines of a server's standard error are shown.
const STDERR_LINES: usize = 5;

/// Connects to every enabled server of the valid files, except those of other projects, and to those of release files.
/// Returns whether the user interrupted it.
///
/// # Errors
/// Processes or the async runtime cannot be started.
pub(super) fn connect_all(
    checked: &mut [CheckedFile],
    released: Vec<Candidate>,
    start_timeout: Option<Duration>,
    shows_secrets: bool,
) -> Result<bool, Failure> {
    let mut plan = plan(checked);
    plan.extend(released);
    if shows_secrets {
        let prepared = plan.iter_mut().filter_map(|candidate| candidate.config.as_mut().ok());
        prepared.for_each(|prepared| prepared.secrets = Secrets::default());
    }
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
        // Several packages usually have the same server.
        let is_known = |finding: &Finding| file.findings.iter().any(|it| it.problem.message == finding.problem.message);
        let findings: Vec<_> = findings.into_iter().filter(|it| !(file.release.is_some() && is_known(it))).collect();
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
pub(super) struct Candidate {
    pub(super) file: usize,
    /// The index in the file.
    pub(super) server: usize,
    /// The resolved server, or why it cannot be resolved.
    pub(super) config: Result<ResolvedServer, Vec<Finding>>,
    pub(super) name: server::At<String>,
    pub(super) tools: server::ToolFilter,
    /// Other tools that the config names.
    pub(super) others: Vec<server::At<String>>,
    pub(super) policy: &'static Policy,
    /// What the program of the config accepts.
    pub(super) profile: Option<&'static Profile>,
    /// The release file that describes it, and its text.
    pub(super) release: Option<(Release, Node, Arc<Source>)>,
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

fn plan(checked: &[CheckedFile]) -> Vec<Candidate> {
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
                let config = prepare(server, dialect, &variables, folder);
                let (name, tools, policy) = (server.name.clone(), server.tools.clone(), &dialect.policy);
                let timed = server.timeouts.tools.iter().map(|(tool, _)| tool);
                let others = server.approval.always_allow.iter().chain(timed).cloned().collect();
                let (profile, server, release) = (builtin_of_dialect(dialect.name), number + index, None);
                plan.push(Candidate { file, server, config, name, tools, others, policy, profile, release });
            }
            number += servers.len();
        }
    }
    plan
}

async fn execute(plan: Vec<Candidate>) -> Result<(Vec<CandidateResult>, bool), Failure> {
    // The packages of a release file are downloaded first.
    let concurrency = if plan.iter().any(|candidate| candidate.release.is_some()) { 1 } else { CONCURRENCY };
    let progress = style::progress("{spinner} connecting {pos}/{len} {wide_msg}", Some(plan.len()));
    let cancel = CancellationToken::new();
    let mut job = Job::start(cancel.clone(), "interrupted: stopping the servers\n")?;
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
    let reaching = reached.buffer_unordered(concurrency).collect::<Vec<_>>();
    let outcomes = job.run(reaching).await;
    progress.finish_and_clear();
    Ok((outcomes.unwrap_or_default(), cancel.is_cancelled()))
}

async fn connect(candidate: Candidate, cancel: &CancellationToken) -> CandidateResult {
    let Candidate { file, server, config, name, tools, others, policy, profile, release } = candidate;
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
    let (reached, output) = Box::pin(listed(&config, stderr.clone(), cancel, release.is_some())).await;
    match reached {
        _ if cancel.is_cancelled() => of(Contact::Interrupted, Vec::new()),
        Ok(Listed { info, names, prompts, mut definitions, unusable }) => {
            let mut described: Vec<_> = definitions.iter().filter_map(Described::of).collect();
            let mut findings = unknown_tools(&tools, &others, policy, &names);
            if let Some((release, root, _)) = &release {
                let text = |key: &str| info[key].as_str().unwrap_or_default().to_owned();
                let offered = Offered { name: text("name"), version: text("version"), tools: names.clone(), prompts };
                findings.extend(compare(*release, root, &offered));
                // Its other packages have the same.
                described.clear();
            }
            let finding = |text: &str| codes::TOOL.at(name.span, secrets.hidden(text)).about(&*name.value);
            findings.extend(first_notices(&unusable).map(|text| finding(&text)));
            let listed_properties = definitions.iter().find(|tool| tool["inputSchema"]["properties"].is_array());
            findings.extend(listed_properties.map(|tool| {
                let tool = tool["name"].as_str().unwrap_or_default();
                let text =
                    format!("`properties` in the input schema of `{tool}` is an array: many clients refuse the list");
                finding(&text).hint("write {} for no properties, as PHP does with `new stdClass()`")
            }));
            // One cause, one finding.
            definitions.retain(|tool| !tool["inputSchema"]["properties"].is_array());
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
            let finding = match &telling(&lines)[..] {
                [] => finding,
                lines => finding.hint(secrets.hidden(&format!("its standard error: {}", lines.join("\n")))),
            };
            let text = release.as_ref().map(|(_, _, source)| &source.text);
            let undeclared = text.into_iter().flat_map(|text| undeclared(&lines, text)).map(|variable| {
                let message = format!("the server asks for the variable {variable}, which the file does not declare");
                let hint = "add it to `environmentVariables` of the package, or to `env` of `server.mcp_config`";
                codes::RELEASE_MISMATCH.at(name.span, message).hint(hint)
            });
            of(Contact::Failed, std::iter::once(finding).chain(undeclared).collect())
        }
    }
}

/// The lines of standard error that say most: from the first that names an error on, without where in the code it was;
/// else the last ones.
fn telling(lines: &[String]) -> Vec<&str> {
    let has = |line: &str, words: &[&str]| {
        let text = line.to_lowercase();
        !line.starts_with(char::is_whitespace) && words.iter().any(|word| text.contains(word))
    };
    let first_with = |words: &[&str]| lines.iter().position(|line| has(line, words));
    let first = first_with(&["error:", "exception:", "error[", "panicked at"]);
    let Some(first) = first.or_else(|| first_with(&["error", "exception", "fatal"])) else {
        return lines[lines.len().saturating_sub(STDERR_LINES)..].iter().map(String::as_str).collect();
    };
    let is_place = |line: &str| line.trim_start().starts_with("at ") || line.trim().is_empty();
    lines[first..].iter().map(String::as_str).filter(|line| !is_place(line)).take(STDERR_LINES).collect()
}

/// The variables that a server which did not start names, that are not set, and that the file does not name. Only certain
/// ones: it calls them environment variables, or they have the name of a secret.
fn undeclared(lines: &[String], file: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    // The launcher complains of its own settings.
    let of_server = lines.iter().filter(|line| !line.starts_with("npm "));
    let names = of_server.flat_map(|line| {
        let is_about_variables = line.to_lowercase().contains("environment variable");
        let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(move |word| {
            let is_name = word.contains('_') && word.starts_with(|c: char| c.is_ascii_uppercase());
            is_name && word.chars().all(is_part) && (is_about_variables || is_secret_name(word))
        })
    });
    let is_known = |name: &str| file.contains(name) || std::env::var_os(name).is_some();
    names.filter(|name| !is_known(name)).map(str::to_owned).collect()
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
    let texts = findings.iter().map(|it| (it.sentence(), it.evidence()));
    let mut texts: Vec<_> = texts.take(UNFIT).collect();
    if let (more @ 1.., Some((_, hint))) = (findings.len().saturating_sub(UNFIT), texts.last_mut()) {
        hint.push_str(&format!("; {more} more: `rehearse check --profile {} --verbose` shows all", profile.name));
    }
    texts
}

/// What a server says of itself, and lists.
#[derive(Default)]
struct Listed {
    info: Value,
    /// The names of the tools that can be used.
    names: Vec<String>,
    prompts: Vec<String>,
    /// All tools.
    definitions: Vec<Value>,
    unusable: Vec<Notice>,
}

/// Connects to a server and returns its tools, for a release file its prompts, and its unexpected output.
async fn listed(
    config: &ServerParams,
    stderr: LastLines,
    cancel: &CancellationToken,
    is_released: bool,
) -> (Result<Listed, String>, Vec<UnsolicitedFrame>) {
    let protocol = default_protocol(config);
    let sink = Arc::new(move |line: StderrLine| stderr.push(line.line));
    let options = ConnectOptions { stderr: Some(sink), cancel: cancel.clone(), ..ConnectOptions::default() };
    let connecting = Box::pin(Session::connect_with(config, protocol, options));
    let session = match connecting.await {
        Ok(session) => session,
        Err(error) => return (Err(reason(&error)), Vec::new()),
    };
    let names = list(&session, cancel, is_released).await;
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
        ConnectError::Both { discover, initialize } => {
            return format!("`server/discover`: {discover}; `initialize`: {}", reason(initialize));
        }
        error => return error.to_string(),
    };
    what + &wrong_output(output.as_ref())
}

async fn list(session: &Session, cancel: &CancellationToken, is_released: bool) -> Result<Listed, String> {
    let options = || CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() };
    let info = session.info();
    let own = info.server_info.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let prompts = match is_released && info.declares("prompts") {
        true => session.list(List::Prompts, options()).await.map(|it| it.valid().filter_map(name_of).collect()),
        false => Ok(Vec::new()),
    };
    let mut listed = Listed { info: own, prompts: prompts.unwrap_or_default(), ..Listed::default() };
    if !info.declares("tools") {
        return Ok(listed);
    }
    let listing = session.list_tools(options()).await;
    let listing = listing.map_err(|failure| format!("its tools cannot be listed: {failure}"))?;
    let notice = |(index, malformed): &(usize, Malformed)| Notice::Unusable {
        server: session.name().into(),
        tool: name_of(&listing.items[*index]),
        why: malformed.to_string(),
    };
    listed.unusable = listing.malformed.iter().map(notice).collect();
    listed.definitions = listing.all_values().collect();
    listed.names = listing.valid().filter_map(name_of).collect();
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::{telling, undeclared};

    #[test]
    fn the_error_is_shown_and_not_what_follows_it() {
        let of = |text: &str| telling(&text.lines().map(str::to_owned).collect::<Vec<_>>()).join("|");
        let node = "/x.js:1\nthrow new Error(text);\n  ^\n\nError: Cannot find module '/x.js'\n    \
                    at Module._load (node:1)\n    at f (node:2)\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v22.1.0";
        assert_eq!(of(node), "Error: Cannot find module '/x.js'|  code: 'MODULE_NOT_FOUND'|}|Node.js v22.1.0");
        let python =
            "Traceback (most recent call last):\n  File \"x.py\", line 1\n    raise ValueError()\nValueError: no key";
        assert_eq!(of(python), "ValueError: no key");
        assert_eq!(of("1\n2\n3\n4\n5\n6"), "2|3|4|5|6");
    }

    #[test]
    fn a_variable_is_undeclared_if_the_server_names_it_as_one_and_the_file_does_not() {
        let lines = [
            "npm warn Failed to replace env in config: ${NPM_TOKEN}",
            "Error [ERR_MODULE_NOT_FOUND]: see MY_NOTES",
            "Error: WEATHER_API_KEY is required (process.env.WEATHER_API_KEY)",
            "the environment variable WEATHER_REGION is not set, nor OTHER_TOKEN",
        ];
        let found = undeclared(&lines.map(str::to_owned), "OTHER_TOKEN");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["WEATHER_API_KEY", "WEATHER_REGION"]);
    }
}
