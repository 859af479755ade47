//! `rehearse check client`: a client against the specification. It is started for each act, or for several that do not
//! disturb each other, each time with a mock of its own.

mod attach;

use std::{
    any::Any,
    ffi::OsString,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use super::{
    progress::{INTERRUPTED, Progress},
    report_args::ReportArgs,
};
use crate::cli::{
    Exit, Failure,
    hosts_args::HostsArgs,
    job::{INTERRUPTED_AGAIN, Job},
    mcp::target::connection::duration,
    mock::parse_address,
    output,
    process_guard::{block_on_guarded, program},
    shard::ShardArgs,
    signals::Signals,
    style::{self, STRONG},
    usage_hint::quoted_command,
};
use rehearse_check::{
    client::{
        ACTS, Act, ActRun, ActScript, ClientEvent, ClientOptions, ClientStarter, Trigger, acts_of_shard, judge_client,
        note_crashes, note_migration, run_client,
    },
    selects,
};
use rehearse_client::{CommandSpec, Endpoint, Target};
use rehearse_client_configs::headless::Headless;
use rehearse_conformance::Role;
use rehearse_host::{HeadlessHost, PROMPT, PreparedHost};
use rehearse_report::{
    Format,
    check::{ActDuration, CheckedServer},
};
use rehearse_system::program::{quoted, words};

/// The port of `--attach`, if none is given.
const FREE_PORT: &str = "127.0.0.1:0";

macro_rules! examples {
    () => {
        "\
Examples:
  rehearse check client -- python client.py {url}
  rehearse check client -- node client.js --stdio {command}
  rehearse check client --act pages -- my-agent --mcp-config {config}
  rehearse check client --model -- my-agent --mcp-config {config} 'Do it.'
  rehearse check client --host codex
  rehearse check client --drive call='curl -s localhost:3000/{tool}' -- my-app {url}
  rehearse check client --attach --listen 8888 --act pages
  rehearse check client --shard 1/4 --report part-1.json -- my-agent {url}
  rehearse check client --list-acts"
    };
}

const LONG_EXAMPLES: &str = concat!(
    examples!(),
    "

The client is started again and again, each time in an act, or in several that do not disturb each other. An act is a \
mock script: a way in which a server may behave. In each act the client should do its normal work: connect, list, call a \
tool, end.

In the arguments, {url}, {sse_url} and {ws_url} stand for the URLs of the mock, {command} for a command that serves it \
on stdio, and {config} for a config file with the URL. The client also gets the environment variables of `rehearse mock \
--exec`: REHEARSE_URL, REHEARSE_SSE_URL, REHEARSE_WS_URL, REHEARSE_STDIO, REHEARSE_CONFIG. Commands of --drive also \
have {tool}, {arguments}, {resource} and {prompt}. With --host, `rehearse host list` names the hosts; each start has a \
home, a config and a model of its own.

Exit codes:
  0  no MUST is violated    1  a MUST is violated, or a condition of --strict, --require or --baseline
  2  wrong usage            3  the client cannot be started; or interrupted
  4  nothing was selected, or nothing selected was tested"
);

/// Check a client against the MCP specification
#[derive(Debug, Args)]
#[command(after_help = examples!(), after_long_help = LONG_EXAMPLES)]
pub(super) struct ClientArgs {
    /// Run only these acts: a name, `x*`, or the file of a mock script (repeatable)
    #[arg(long = "act", value_name = "ACT")]
    acts: Vec<String>,
    /// Print the acts and exit
    #[arg(long)]
    list_acts: bool,
    #[command(flatten)]
    part: ShardArgs,
    /// How long one act may take
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    /// End a client after this time without traffic
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    idle: Duration,
    /// Serve a model that calls the tools, at ANTHROPIC_BASE_URL and OPENAI_BASE_URL
    #[arg(long)]
    model: bool,
    /// Check a real host, such as codex, in an empty home and with that model
    #[arg(long, value_name = "HOST", conflicts_with_all = ["command", "attach"])]
    host: Option<String>,
    /// How the host reaches the mock: http or stdio
    #[arg(long, value_name = "TRANSPORT", requires = "host", default_value = "http", hide_short_help = true)]
    #[arg(value_parser = ["http", "stdio"], hide_possible_values = true)]
    transport: String,
    #[command(flatten)]
    hosts: HostsArgs,
    /// Run a command for each tool of an act: call=CMD; or read=, prompt=, any=CMD
    #[arg(long = "drive", value_name = "WORK=CMD")]
    triggers: Vec<Trigger>,
    /// Serve one act for a client that you start yourself
    #[arg(long, conflicts_with_all = ["command", "triggers", "model"])]
    attach: bool,
    /// The address of --attach [default: a free port]
    #[arg(long, value_name = "ADDR", requires = "attach", value_parser = parse_address, default_value = FREE_PORT)]
    #[arg(hide_short_help = true, hide_default_value = true)]
    listen: SocketAddr,
    /// Also say what a client of an older version has to do for 2026-07-28
    #[arg(long, hide_short_help = true)]
    migrate: bool,
    /// Also count violations that come from an SDK
    #[arg(long, hide_short_help = true)]
    sdk: bool,
    #[command(flatten)]
    report: ReportArgs,
    /// The command that starts the client
    #[arg(value_name = "COMMAND", last = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

pub(super) fn run(args: &ClientArgs) -> Result<Exit, Failure> {
    if args.list_acts {
        return list_acts(args.report.output.format);
    }
    if let Some(exit) = args.report.list(Role::Client)? {
        return Ok(exit);
    }
    if args.command.is_empty() && args.host.is_none() && !args.attach {
        let message = "which client? give its command after `--`: rehearse check client -- python client.py {url}";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let Some(wrong) = quoted_command(&args.command) {
        return Err(Failure::Usage(wrong));
    }
    if args.report.output.format == Format::Sarif {
        let message = "SARIF needs a place in a file for each result, and a client has none; use --format junit";
        return Err(Failure::Usage(message.to_owned()));
    }
    let durations = args.part.durations("check client", |results| results.check.as_ref()?.durations())?;
    let mut scripts = ActScript::select(&args.acts)?;
    if let Some(shard) = args.part.shard {
        if args.attach || args.report.requires_checks() {
            let wrong = "--shard runs a part of the acts: --attach serves one act, and --require is about all of them";
            return Err(Failure::Usage(wrong.to_owned()));
        }
        scripts = acts_of_shard(scripts, shard, &durations, args.acts.is_empty());
    }
    let host = args.host.as_deref().map(|name| args.hosts.find(name)).transpose()?;
    let baseline = args.report.read_baseline()?;
    let mut checked = args.report.begin();
    let begun = Instant::now();
    let (runs, is_interrupted) = match args.attach {
        true => (block_on_guarded(args.attach(scripts))?, false),
        false => block_on_guarded(args.run_acts(scripts, host.as_ref()))?,
    };
    checked.duration = begun.elapsed();
    let usual = runs.iter().find(|run| run.acts == [ACTS[0].name]).and_then(|run| run.exit_code);
    if let Some(code) = usual.filter(|code| *code != 0) {
        style::warn(&format!(
            "the client ends with exit code {code} in the act {}, where the server does nothing unusual: its exit codes \
             in other acts say nothing",
            ACTS[0].name
        ));
    }
    checked.servers = judge_client(&runs, &args.report.only);
    if args.acts.len() == 1 && args.report.only.is_empty() {
        note_crashes(&mut checked.servers, &runs);
        let crashed = runs.iter().skip(1).filter(|_| usual == Some(0));
        for (run, code) in crashed.filter_map(|run| Some((run, run.exit_code.filter(|code| *code != 0)?))) {
            style::warn(&format!("act {}: the client ended with exit code {code}{}", run.acts.join(", "), run.said));
        }
    }
    if args.migrate {
        note_migration(&mut checked.servers, &runs);
    }
    if !args.sdk {
        checked.servers.iter_mut().for_each(CheckedServer::accept_sdk);
    }
    let undriven = runs.iter().map(|run| run.undriven.as_deref()).collect::<Option<Vec<_>>>().unwrap_or_default();
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    for server in &mut checked.servers {
        server.untried.extend(undriven.first().map(|why| format!("the command of --drive failed in every act: {why}")));
        server.target = args.host.clone().unwrap_or_else(|| words.join(" "));
        server.again = format!("rehearse check client{}", if args.sdk { " --sdk" } else { "" });
        if let Some(host) = &args.host {
            let folder = args.hosts.again();
            server.again.push_str(&format!(" --host {} --transport {}{folder}", quoted(host), args.transport));
        }
        server.command =
            (!words.is_empty()).then(|| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    }
    let act = |run: &ActRun| ActDuration { acts: run.acts.clone(), duration: run.duration };
    checked.acts = runs.iter().map(act).collect();
    // A part that was interrupted is none: acts of it are missing.
    checked.shard = args.part.shard.filter(|_| !is_interrupted);
    let is_whole = args.acts.is_empty() && args.part.shard.is_none();
    args.report.conclude(&mut checked, baseline, is_whole, is_interrupted)?;
    args.report.write(checked)
}

fn list_acts(format: Format) -> Result<Exit, Failure> {
    let line = |act: &Act| format!("{STRONG}{:18}{STRONG:#} {}\n", act.name, act.description());
    let entry = |act: &Act| json!({ "name": act.name, "description": act.description() });
    let (text, entries) = (ACTS.iter().map(line).collect::<String>(), ACTS.iter().map(entry).collect());
    output::write_list("--list-acts", format, &text, &entries).map(|()| Exit::Success)
}

impl ClientArgs {
    /// Serves the one act that was asked for.
    ///
    /// # Errors
    /// Several were asked for, or the address is in use.
    async fn attach(&self, mut scripts: Vec<ActScript>) -> Result<Vec<ActRun>, Failure> {
        let mut signals = Signals::install()?;
        // What others are compared with is not served.
        scripts.retain(|act| self.acts.is_empty() || self.acts.iter().any(|it| selects(it, &act.name)));
        let act = if self.acts.is_empty() { Some(scripts.swap_remove(0)) } else { scripts.pop() };
        let Some(act) = act.filter(|_| scripts.is_empty() || self.acts.is_empty()) else {
            return Err(Failure::Usage("--attach serves one act: give one --act".to_owned()));
        };
        Ok(vec![attach::run(act, self.listen, self.report.seed, &program()?, self.idle, &mut signals).await?])
    }

    /// Runs all acts. Returns what the client did, and whether it was interrupted.
    ///
    /// # Errors
    /// A mock or the client cannot be started.
    async fn run_acts(
        &self,
        acts: Vec<ActScript>,
        host: Option<&(HeadlessHost, PathBuf)>,
    ) -> Result<(Vec<ActRun>, bool), Failure> {
        let (sender, mut events) = unbounded_channel();
        let shutdown = CancellationToken::new();
        let mut job = Job::start(shutdown.clone(), INTERRUPTED)?;
        let options = ClientOptions {
            command: host.map_or_else(|| self.command.clone(), |(_, program)| vec![program.into()]),
            starter: host.map(|(host, program)| self.starter(host.headless.clone(), program.clone())),
            triggers: self.triggers.clone(),
            has_model: self.model || host.is_some(),
            seed: self.report.seed,
            timeout: self.timeout,
            idle: self.idle,
            program: Some(program()?),
            is_repeat: false,
            are_merged: self.acts.is_empty(),
            events: Some(sender),
            shutdown,
        };
        let mut progress = Progress::new();
        let running = run_client(acts, &options);
        let show = |progress: &mut Progress, event| self.show(event, progress);
        match progress.watch(&mut job, running, &mut events, show).await {
            Some(runs) => Ok((runs?, job.is_interrupted())),
            None => Err(Failure::cannot(INTERRUPTED_AGAIN)),
        }
    }

    /// Starts the host with a home of its own, and a config with the mock of an act.
    fn starter(&self, headless: Headless, program: PathBuf) -> ClientStarter {
        let is_process = self.transport == "stdio";
        ClientStarter(Arc::new(move |variables| {
            let text = |name: &str| variables.get(name).map(|value| value.to_string_lossy().into_owned());
            let target = if is_process {
                let words = words(&text("REHEARSE_STDIO").unwrap_or_default()).map_err(io::Error::other)?;
                let mut words = words.into_iter();
                let program = words.next().unwrap_or_default();
                Target::Stdio(CommandSpec { program, args: words.collect(), ..CommandSpec::default() })
            } else {
                let token = text("REHEARSE_TOKEN").map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
                let headers = token.into_iter().collect();
                // A server of 2024-11-05 has no other transport.
                match (text("REHEARSE_URL"), text("REHEARSE_SSE_URL")) {
                    (None, Some(url)) => Target::Sse(Endpoint { url, headers }),
                    (url, _) => Target::Http(Endpoint { url: url.unwrap_or_default(), headers }),
                }
            };
            let model = text("ANTHROPIC_BASE_URL").unwrap_or_default();
            let prepared = PreparedHost::create(&headless, ("act", &target), model, PROMPT.to_owned());
            let prepared = prepared.map_err(io::Error::other)?;
            let mut command = prepared.command(&program);
            command.envs(variables.get_key_value("BROWSER"));
            Ok((command, Box::new(prepared) as Box<dyn Any + Send>))
        }))
    }

    fn show(&self, event: ClientEvent, progress: &mut Progress) {
        match event {
            ClientEvent::Act { name, ended, all } => progress.begin(&format!("act {name}"), ended, all),
            ClientEvent::TimedOut { act } => {
                style::warn(&format!("act {act}: the client was ended after {:?}", self.timeout));
            }
            ClientEvent::TriggerFailed { act, command, why, said } => {
                style::warn(&format!("act {act}: the command of --drive failed ({why}): {command}{said}"));
            }
        }
    }
}
