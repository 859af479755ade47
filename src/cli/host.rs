//! `rehearse host`: a server in real hosts, with a scripted model and without a person.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::{Args, Subcommand};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Exit, Failure,
    hosts_args::HostsArgs,
    job::Job,
    mcp::target::{
        Server, TargetArgs,
        connection::{SessionArgs, duration},
    },
    output,
    process_guard::{block_on_guarded, program as own_program},
    report::OutputArgs,
    style,
    tool_permission_args::ToolPermissionArgs,
};
use rehearse_check::target_text;
use rehearse_client::{CallOptions, ConnectOptions, Listing, ServerParams, Session};
use rehearse_client_configs::headless::not_headless;
use rehearse_host::{
    HeadlessHost, HostError, HostEvidence, HostOptions, PROMPT, WalkedTool, judge, plain_name, run_host, version_of,
    walk,
};
use rehearse_llm::model::ScriptedModel;
use rehearse_protocol::Protocol;
use rehearse_report::{
    Format, Layout, Verdict,
    host::{HostResult, HostRun},
    summary::Results,
};

const EXAMPLES: &str = "\
Examples:
  rehearse host list                                     the hosts, and those on this machine
  rehearse host run claude-code -- node server.js        your server in the real Claude Code
  rehearse host run all --allow-tool '*' -- node server.js
  rehearse host run codex --model script.yaml --http http://127.0.0.1:3000/mcp";

const RUN_EXAMPLES: &str = "\
Examples:
  rehearse host run claude-code -- node server.js
  rehearse host run claude-code codex --allow-tool add -- node server.js
  rehearse host run all --report hosts.html -- npx -y my-server

The host gets a home of its own, a config with the server, and a scripted model in place of its own. It needs no \
key, and its proxy lets nothing through. The model calls each tool once that has readOnlyHint, or that --allow-tool \
names, and ends; with --model it follows your script, in which a tool has the name that the server gives it.

A program is looked for in --hosts FOLDER, as FOLDER/HOST, and then in PATH. Nothing is installed.

Exit codes:
  0  it works, or a part is lost    1  the server is blocked in a host
  2  wrong usage                    3  a host or the server cannot be started; interrupted";

/// Run a server in real hosts, such as Claude Code or Codex, with a scripted model
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct HostArgs {
    #[command(subcommand)]
    command: HostCommand,
}

#[derive(Debug, Subcommand)]
enum HostCommand {
    List(ListArgs),
    Run(Box<RunArgs>),
}

/// List the hosts that can be run, and which of them are on this machine
#[derive(Debug, Args)]
struct ListArgs {
    /// human or json
    #[arg(long, value_name = "FORMAT", value_parser = Format::among(&[Format::Human, Format::Json]), default_value = "human", hide_default_value = true)]
    format: Format,
    #[command(flatten)]
    hosts: HostsArgs,
}

/// Run a server in hosts, and say what the model saw of it
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES, mut_args(hide_session))]
struct RunArgs {
    /// The names of hosts, files of hosts, or `all` that are on this machine
    #[arg(value_name = "HOST", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    tools: ToolPermissionArgs,
    /// The script of the model [default: it calls each tool once]
    #[arg(long, value_name = "SCRIPT")]
    model: Option<PathBuf>,
    /// What the host is asked to do
    #[arg(long, value_name = "TEXT", default_value = PROMPT, hide_default_value = true, hide_short_help = true)]
    prompt: String,
    /// How long each host may run
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    max_time: Duration,
    #[command(flatten)]
    hosts: HostsArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    session: SessionArgs,
}

/// The session is only for the list of tools; the host opens its own.
fn hide_session(arg: clap::Arg) -> clap::Arg {
    if arg.get_help_heading() == Some("Connections") { arg.hide_short_help(true) } else { arg }
}

pub(super) fn run(args: &HostArgs) -> Result<Exit, Failure> {
    match &args.command {
        HostCommand::List(args) => list(args),
        HostCommand::Run(args) => args.run(),
    }
}

/// Prints the hosts.
///
/// # Errors
/// Signals cannot be handled.
fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let found: Vec<_> = HeadlessHost::all().into_iter().map(|host| (args.hosts.program(&host), host)).collect();
    let versions = block_on_guarded(async {
        let version =
            async |(program, _): &(Option<PathBuf>, HeadlessHost)| version_of(program.as_deref()?).await.ok()?;
        Ok(join_all(found.iter().map(version)).await)
    })?;
    let rows = found.iter().zip(versions);
    if args.format == Format::Json {
        let hosts = rows.map(|((program, host), version)| {
            json!({ "host": host.name, "title": host.title, "program": program, "version": version, "install": host.install() })
        });
        let others = not_headless().map(|(name, title, why)| json!({ "host": name, "title": title, "reason": why }));
        let all = json!({ "hosts": hosts.collect::<Vec<_>>(), "notHeadless": others.collect::<Vec<_>>() });
        output::write(format!("{all:#}\n").as_bytes())?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    for ((program, host), version) in rows {
        let what = match program {
            Some(program) => format!("{:10} {}", version.unwrap_or_default(), program.display()),
            None => format!("not found; {}", host.install()),
        };
        text.push_str(&format!("{:12} {:16} {what}\n", host.name, host.title));
    }
    text.push_str("\nNot without a person:\n");
    for (name, title, why) in not_headless() {
        text.push_str(&format!("{name:12} {title:16} {why}\n"));
    }
    output::write(text.as_bytes())?;
    Ok(Exit::Success)
}

impl RunArgs {
    fn run(&self) -> Result<Exit, Failure> {
        self.output.check()?;
        self.model.as_deref().map(super::model::load).transpose()?;
        let mut server = self.target.one("--stdio or --http")?;
        let timeouts = &mut server.resolved.config.timeouts;
        timeouts.connect = self.session.start_timeout.unwrap_or(timeouts.connect);
        timeouts.list = self.session.timeout.unwrap_or(timeouts.list);
        let hosts = self.selected()?;
        let stop = CancellationToken::new();
        let result = block_on_guarded(self.run_hosts(&server, &hosts, &stop))?;
        let Some(result) = result else { return Ok(Exit::CannotRun) };
        let mut result = result.map_err(|error| Failure::cannot(server.resolved.secrets.hidden(&error)))?;
        if stop.is_cancelled() {
            result.verdict = Verdict::CannotRun;
        }
        let verdict = result.verdict;
        let results = Results { host: Some(result), ..Results::default() };
        self.output.write(results, &Layout { width: style::width(), ..Layout::default() })?;
        Ok(verdict.into())
    }

    /// The hosts of these names, each with its program.
    ///
    /// # Errors
    /// There is no such host, or it is not on this machine.
    fn selected(&self) -> Result<Vec<(HeadlessHost, PathBuf)>, Failure> {
        let mut selected = Vec::new();
        for name in &self.names {
            if name == "all" {
                let found = HeadlessHost::all().into_iter();
                selected.extend(found.filter_map(|host| self.hosts.program(&host).map(|program| (host, program))));
            } else {
                selected.push(self.hosts.find(name)?);
            }
        }
        if selected.is_empty() {
            return Err(Failure::cannot("no host is on this machine; `rehearse host list` says how to get one"));
        }
        Ok(selected)
    }

    /// Runs the hosts, one after the other; `None` if it was interrupted twice, or why the server cannot be listed.
    async fn run_hosts(
        &self,
        server: &Server,
        hosts: &[(HeadlessHost, PathBuf)],
        stop: &CancellationToken,
    ) -> Result<Option<Result<HostResult, String>>, Failure> {
        let mut job = Job::start(stop.clone(), "interrupted: reporting what was found so far\n")?;
        let progress = style::progress("{spinner} {wide_msg} {elapsed}", None);
        let work = async {
            let begun = Instant::now();
            let config = &server.resolved.config;
            let params = &ServerParams { name: plain_name(&config.name), ..config.clone() };
            let listed = tools(params, self.session.protocol.unwrap_or(Protocol::Auto)).await?;
            let mut result = HostResult {
                format: 1,
                rehearse: env!("CARGO_PKG_VERSION").to_owned(),
                target: target_text(&params.target),
                server: listed.server.clone(),
                duration: Duration::ZERO,
                hosts: Vec::new(),
                verdict: Verdict::NothingTested,
            };
            for (host, program) in hosts {
                if stop.is_cancelled() {
                    break;
                }
                progress.set_message(host.title.clone());
                result
                    .hosts
                    .push(Box::pin(self.run_one((host, program.as_path()), params, &listed.tools, stop)).await?);
            }
            result.duration = begun.elapsed();
            result.decide();
            Ok(result)
        };
        Ok(job.run(Box::pin(work)).await)
    }

    async fn run_one(
        &self,
        (host, program): (&HeadlessHost, &Path),
        server: &ServerParams,
        tools: &[Value],
        stop: &CancellationToken,
    ) -> Result<HostRun, String> {
        let mut run = HostRun::new(&host.name, &host.title);
        let permission = self.tools.permission();
        let allowed = tools.iter().filter(|tool| permission.allows(tool) && self.model.is_none());
        let walked: Vec<_> = allowed
            .map(|tool| WalkedTool {
                server: server.name.clone(),
                name: tool["name"].as_str().unwrap_or_default().to_owned(),
                arguments: permission.arguments_of(tool),
            })
            .collect();
        let model = match &self.model {
            Some(script) => ScriptedModel::load(script).map_err(|error| error.to_string())?,
            None => walk(&walked).map_err(|wrong| wrong.to_string())?,
        };
        run.version = version_of(program).await.ok().flatten();
        let options = HostOptions {
            headless: &host.headless,
            program: program.to_owned(),
            server,
            rehearse: own_program().map_err(|error| error.to_string())?,
            model,
            prompt: self.prompt.clone(),
            limit: self.max_time,
            shutdown: stop.clone(),
        };
        match run_host(options).await {
            Ok(outcome) => judge(
                &HostEvidence {
                    headless: &host.headless,
                    server: &server.name,
                    tools,
                    walked: &walked,
                    outcome: &outcome,
                },
                &mut run,
            ),
            // It holds for every host.
            Err(error @ HostError::Transport(_)) => return Err(error.to_string()),
            Err(error) => run.error = Some(error.to_string()),
        }
        Ok(run)
    }
}

/// What a server lists.
struct ListedTools {
    server: Option<String>,
    tools: Vec<Value>,
}

/// Opens a session and lists the tools.
///
/// # Errors
/// Why that is not possible.
async fn tools(params: &ServerParams, protocol: Protocol) -> Result<ListedTools, String> {
    let session = Session::connect_with(params, protocol, ConnectOptions::default()).await;
    let session = session.map_err(|error| error.to_string())?;
    let listed = match session.info().declares("tools") {
        true => session.list_tools(CallOptions::default()).await,
        false => Ok(Listing::default()),
    };
    let info = session.info().server_info.as_ref();
    let info = info.and_then(|info| serde_json::from_str::<Value>(info.get()).ok()).unwrap_or_default();
    let text = |key: &str| info[key].as_str().unwrap_or_default().to_owned();
    let server = Some(format!("{} {}", text("name"), text("version")).trim().to_owned()).filter(|it| !it.is_empty());
    session.close().await;
    let listed = listed.map_err(|error| format!("the tools cannot be listed: {error}"))?;
    Ok(ListedTools { server, tools: listed.values().collect() })
}
