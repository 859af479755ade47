//! `rehearse init -- COMMAND`: a scenario of a server, with its snapshots, a mock of it and a CI workflow.
//!
//! The server is listed, and what may be called is called once. That is a recording, so it becomes the scenario and the mock
//! as any recording does. Its lists become steps such as `discover`.

use std::{
    path::Path,
    pin::pin,
    time::{Duration, SystemTime},
};

use clap::Parser;
use serde_json::{Map, Value, value::RawValue};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{InitArgs, WORKFLOW, write_new};
use crate::cli::{
    Cli, Exit, Failure,
    mcp::target::Server,
    output,
    process_guard::block_on_guarded,
    scenario_server::{scenario_server, variables, without_variables},
    sources::resolved_server::default_protocol,
    style::{self, printable},
    trace_file::mask,
};
use mcp_rehearsal::builtin_scripts::BUILTIN_SCRIPTS;
use rehearse_client::{CallOptions, Session, ToolPermission, example_operation};
use rehearse_document::template::without_templates;
use rehearse_mock::recording::RecordedScript;
use rehearse_protocol::{
    List, Protocol, Trace,
    trace_file::{ConnectionInfo, RecordedConnection, TraceFile},
};
use rehearse_scenario::{RecordedScenario, Replay, ReplayTarget, RunOptions, replay};
use rehearse_system::program::quoted;

/// The most resources that are read.
const MAX_READS: usize = 20;
/// How long one request may take, unless the user says more.
const LONGEST_CALL: Duration = Duration::from_secs(10);
/// After what time without an answer something is said.
const SILENCE: Duration = Duration::from_secs(3);
/// How many requests may take as long as they may, before nothing more is called.
const MOST_WAITS: u32 = 6;
/// The name of a tool that no server has.
const UNKNOWN: &str = "no_such_tool";

/// What a server has shown.
struct Survey {
    name: String,
    trace: Trace,
    /// The tools that may not be called.
    uncalled: Vec<Value>,
}

pub(super) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    let mut server = args.target.one("--stdio or --http")?;
    let timeouts = &mut server.resolved.config.timeouts;
    timeouts.connect = args.session.start_timeout.unwrap_or(timeouts.connect);
    timeouts.call = args.session.timeout.unwrap_or(timeouts.call.min(LONGEST_CALL));
    timeouts.list = args.session.timeout.unwrap_or(timeouts.list);
    let permission = args.tools.permission();
    let survey = block_on_guarded(Box::pin(survey(&server, args.session.protocol, &permission)))?;
    let name = survey.name.clone();
    let folder = args.folder.strip_prefix(".").unwrap_or(&args.folder);
    let scenario = folder.join("scenarios").join(format!("{name}.yaml"));
    let mock = folder.join("mocks").join(format!("{name}.yaml"));
    if let Some(path) = [&scenario, &mock].into_iter().find(|path| path.exists() && !args.force) {
        return Err(Failure::Usage(format!("{} exists; --force overwrites it", path.display())));
    }
    let info = ConnectionInfo::new(&*name, server.resolved.config.target.transport());
    let mut file = TraceFile { connections: vec![RecordedConnection { info, trace: survey.trace }], is_cut: false };
    let recorded = RecordedScenario::all_with_surface(&file).pop();
    let Some(mut recorded) = recorded else {
        return Err(Failure::cannot(format!("the server '{}' has answered nothing", server.name())));
    };
    recorded.head = format!("# Tests of the server {name}. Run them with: rehearse run\n");
    recorded.tail = comment(&survey.uncalled);
    for what in &recorded.lost {
        style::warn(&format!("not in the scenario: {what}"));
    }
    let written = scenario_server(&server.resolved.config.target, scenario.parent().unwrap_or(Path::new("")));
    let neutral = without_variables(&written);
    let replay = block_on_guarded(Box::pin(replayed(&server, recorded, &neutral, &scenario)))?;
    replay.notes.iter().for_each(|note| style::warn(note));
    let cannot = |path: &Path, error| Failure::cannot(format!("cannot write {}: {error}", path.display()));
    replay.write(&written).map_err(|error| cannot(&scenario, error))?;
    // What looks like a secret is no part of a mock.
    mask(&mut file, &server.resolved.secrets);
    let script = RecordedScript::new(&file);
    if let Some(folder) = mock.parent() {
        std::fs::create_dir_all(folder).map_err(|error| cannot(&mock, error))?;
    }
    output::write_file(&mock, script.text.as_bytes())?;
    let (workflow, text) = WORKFLOW;
    let place = folder.join(workflow);
    let is_new = write_new(&place, &text.replace(RUN, INSTALL)).map_err(|error| cannot(&place, error))?;
    let (one, other) = (scenario.display(), mock.display());
    let third = if is_new { "wrote " } else { "exists" };
    style::print(&format!("wrote  {one}\nwrote  {other}\n{third} {}\n\n", place.display()));
    let needed = variables(&written);
    // What was typed is in no file, so the scenario runs only where its variables are set.
    let exit = match needed.iter().all(|name| std::env::var_os(name).is_some()) {
        true => {
            let limit = format!("{}ms", server.resolved.config.timeouts.connect.as_millis());
            let file = scenario.display().to_string();
            let ran = Cli::try_parse_from(["rehearse", "run", "--start-timeout", &limit, &file]);
            ran.map_err(|error| Failure::cannot(error.to_string()))?.command.run()?
        }
        false => Exit::Success,
    };
    let set = if needed.is_empty() { String::new() } else { format!("\nThe scenario needs: {}\n", needed.join(", ")) };
    let (scenario, mock) = (quoted(&scenario.display().to_string()), quoted(&mock.display().to_string()));
    let next = [
        (format!("rehearse run {scenario}"), "compare again after a change of the server"),
        (format!("rehearse run {scenario} --update"), "accept the change"),
        (format!("rehearse mock {mock} --listen 8888"), "serve the mock"),
    ];
    let width = next.iter().map(|(line, _)| line.len()).max().unwrap_or_default();
    let next: String = next.iter().map(|(line, what)| format!("  {line:width$}  {what}\n")).collect();
    output::write(format!("{set}\nNext:\n{next}").as_bytes())?;
    Ok(exit)
}

/// The step of the workflow that runs the scenarios.
const RUN: &str = "      - run: rehearse run";
/// The same after what a server needs.
const INSTALL: &str = "      # Install your server here: the scenario starts it.\n      - run: rehearse run";

/// What waits for a server, and says so after a while.
struct Waiting {
    /// How long one request may take.
    limit: Duration,
    /// When nothing more is called.
    end: Instant,
    uncalled: usize,
}

impl Waiting {
    /// The result of what is done; after a while, each time, what that is.
    async fn for_result<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match timeout(SILENCE.min(self.limit / 2), &mut work).await {
                Ok(done) => return done,
                Err(_) => style::print(&format!("waiting for {}…\n", printable(what))),
            }
        }
    }

    /// Sends a request, if there is time. What comes is in the recording.
    async fn call<T>(&mut self, what: &str, work: impl Future<Output = T>) {
        match Instant::now() < self.end {
            true => drop(self.for_result(what, work).await),
            false => self.uncalled += 1,
        }
    }
}

/// Lists everything, and calls what may be called.
async fn survey(server: &Server, protocol: Option<Protocol>, permission: &ToolPermission) -> Result<Survey, Failure> {
    let config = &server.resolved.config;
    let limit = config.timeouts.call;
    let mut waiting = Waiting { limit, end: Instant::now(), uncalled: 0 };
    let protocol = protocol.unwrap_or_else(|| default_protocol(config));
    let connecting = Box::pin(Session::connect(config, protocol));
    let session = waiting.for_result("the server", connecting).await;
    let session =
        session.map_err(|error| Failure::cannot(format!("cannot connect to server '{}': {error}", server.name())))?;
    waiting.end = Instant::now() + limit * MOST_WAITS;
    let (info, recorder) = (session.info(), session.recorder().clone());
    let own = info.server_info.as_deref().map(json_of).unwrap_or_default();
    let name = file_name(own["name"].as_str().unwrap_or_else(|| server.name()));
    let mut uncalled = Vec::new();
    let options = CallOptions::default;
    for list in info.lists() {
        let what = format!("the {}", list.title().to_lowercase());
        let listing = waiting.for_result(&what, session.list(list, options())).await.unwrap_or_default();
        let is_tools = list == List::Tools;
        let (used, others): (Vec<_>, Vec<_>) = listing.values().partition(|item| !is_tools || permission.allows(item));
        uncalled.extend(others);
        let most = if list == List::Resources { MAX_READS } else { usize::MAX };
        for (item, operation) in used.iter().filter_map(|item| Some((item, example_operation(list, item)?))).take(most)
        {
            let what = format!("the {} {}", list.noun(), text(&item[list.key()]));
            waiting.call(&what, session.perform(operation, options())).await;
        }
        if is_tools {
            let needs = |tool: &&Value| tool["inputSchema"]["required"].as_array().is_some_and(|it| !it.is_empty());
            let refused = used.iter().find(needs).map_or(UNKNOWN, |tool| text(&tool["name"]));
            let refusal = session.call_tool(refused, Some(Map::new()), options());
            waiting.call(&format!("the tool {refused}"), refusal).await;
        }
    }
    if waiting.uncalled > 0 {
        let count = waiting.uncalled;
        style::warn(&format!("{count} more were not called: the server takes too long; a longer --timeout calls them"));
    }
    session.close().await;
    Ok(Survey { name, trace: recorder.trace(), uncalled })
}

async fn replayed(
    server: &Server,
    recorded: RecordedScenario,
    neutral: &Value,
    path: &Path,
) -> Result<Replay, Failure> {
    let config = &server.resolved.config;
    let today = humantime::format_rfc3339(SystemTime::now()).to_string();
    let options = RunOptions { builtin_scripts: BUILTIN_SCRIPTS, ..RunOptions::default() };
    let (target, timeouts) = (&config.target, config.timeouts);
    let at = ReplayTarget { target, server: neutral, timeouts, path, today: &today[..10] };
    replay(recorded, at, &options, &CancellationToken::new()).await.map_err(Failure::Invalid)
}

/// The calls of tools that were not called, for people to fill in.
fn comment(uncalled: &[Value]) -> String {
    if uncalled.is_empty() {
        return String::new();
    }
    let mut comment =
        "  # These tools may change something, so they were not called. Fill in the arguments, remove the\n  \
                       # number sign and run `rehearse run --update`, or run `rehearse init` with --allow-tool NAME.\n"
            .to_owned();
    for tool in uncalled {
        let Some((key, call)) = example_operation(List::Tools, tool).map(|it| it.step()) else { continue };
        let name = file_name(text(&tool["name"]));
        comment += &format!("  # - {{ {key}: {}, snapshot: call-{name} }}\n", without_templates(call));
    }
    comment
}

fn json_of(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A name with the characters that every file system and every snapshot may have.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words: Vec<_> = name.split(|c| !is_plain(c)).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "server".to_owned() } else { words.join("-") }
}
