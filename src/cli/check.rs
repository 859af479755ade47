//! `rehearse check`: a server against the specification.

mod again;
mod auth_server;
mod baseline;
mod browser;
mod checks;
mod client;
mod gateway;
mod profiles;
mod progress;
mod report_args;
mod trace;

use std::{
    collections::BTreeSet,
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;
use url::Url;

use self::{
    again::Again,
    auth_server::AuthServerArgs,
    profiles::SelectedProfile,
    progress::{INTERRUPTED, Progress},
    report_args::ReportArgs,
};
use super::{
    Exit, Failure,
    job::Job,
    mcp::target::{Server, TargetsArgs, authorization::stored_authorizer, connection::duration, print_no_servers},
    process_guard::block_on_guarded,
    repository,
    secrets::Secrets,
    sinks::Sinks,
    spans::OtlpArgs,
    style,
    tool_permission_args::ToolPermissionArgs,
};
use rehearse_check::{CheckEvent, CheckOptions, RecordSink, Tokens, check, target_text};
use rehearse_conformance::Role;
use rehearse_document::{nearest, text::matches_wildcard};
use rehearse_protocol::{UnknownVersion, Version, trace_file::ConnectionInfo};
use rehearse_report::{Format, check::CheckResult};

pub(super) use browser::{BrowseArgs, browse};

const EXAMPLES: &str = "\
Examples:
  rehearse check -- node server.js                   a server on stdio
  rehearse check --http URL --allow-tool 'search*'   may also call these tools

Tools are called only if they are annotated with readOnlyHint, or named by --allow-tool.

Exit codes:
  0  no MUST is violated    1  a MUST is violated, or what --strict, --baseline or --profile say
  2  wrong usage    3  the server cannot be reached, or not all was tried    4  nothing was tested";

/// Check a server against the MCP specification
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(super) struct CheckArgs {
    /// Servers of a config [default: all enabled servers]
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,
    /// The same, as an option (repeatable)
    #[arg(long = "server", hide_short_help = true, value_name = "SERVER")]
    named: Vec<String>,
    #[command(flatten)]
    target: TargetsArgs,
    /// Check recorded traffic; nothing is sent
    #[arg(long, hide_short_help = true, value_name = "FILE", conflicts_with_all = ["servers", "named", "stdio", "command", "http", "sse", "ws", "mcp_config", "config", "dialect", "trace_file"])]
    trace: Option<PathBuf>,
    /// Write all traffic to this file as it happens
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    trace_file: Option<PathBuf>,
    #[command(flatten)]
    otlp: OtlpArgs,
    /// Check only this version, or `all` in full (repeatable)
    #[arg(long = "protocol", alias = "protocol-version", hide_short_help = true, value_name = "VERSION", value_parser = versions)]
    versions: Vec<CheckedVersions>,
    #[command(flatten)]
    tools: ToolPermissionArgs,
    /// Vary the arguments of these prompts, too (repeatable)
    #[arg(long = "allow-prompt", hide_short_help = true, value_name = "NAME")]
    varied_prompts: Vec<String>,
    /// A bearer token that lacks scopes for some requests
    #[arg(long, hide_short_help = true, value_name = "TOKEN")]
    token_low_scope: Option<String>,
    /// A bearer token that has expired
    #[arg(long, hide_short_help = true, value_name = "TOKEN")]
    token_expired: Option<String>,
    /// A bearer token for another server
    #[arg(long, hide_short_help = true, value_name = "TOKEN")]
    token_wrong_audience: Option<String>,
    /// Does it work in this host or API? Also `all` and `list`
    #[arg(long = "profile", value_name = "NAME", value_delimiter = ',')]
    profiles: Vec<String>,
    /// With --profile: where cloud hosts will find the server
    #[arg(long, hide_short_help = true, value_name = "URL", requires = "profiles")]
    deployed_at: Option<Url>,
    /// Also say what a server of an older version has to do for 2026-07-28
    #[arg(long, hide_short_help = true, conflicts_with = "trace")]
    migrate: bool,
    /// Also count violations that come from an SDK
    #[arg(long, hide_short_help = true)]
    sdk: bool,
    /// Also count harm, such as hidden characters
    #[arg(long, hide_short_help = true)]
    safety: bool,
    /// How long the whole run may take
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "3m", value_parser = duration)]
    budget: Duration,
    /// Timeout of a start with its handshake
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "30s", value_parser = duration)]
    start_timeout: Duration,
    /// How long one request may take
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "10s", value_parser = duration)]
    timeout: Duration,
    /// When silence counts as silence
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "300ms", value_parser = duration)]
    grace: Duration,
    #[command(flatten)]
    issuer: AuthServerArgs,
    #[command(flatten)]
    report: ReportArgs,
    #[command(subcommand)]
    role: Option<CheckedRole>,
}

/// What else can be checked.
#[derive(Debug, clap::Subcommand)]
enum CheckedRole {
    Client(client::ClientArgs),
    Gateway(gateway::GatewayArgs),
}

/// One version, or all of them.
#[derive(Clone, Copy, Debug)]
enum CheckedVersions {
    One(Version),
    All,
}

impl fmt::Display for CheckedVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckedVersions::One(version) => version.fmt(f),
            CheckedVersions::All => f.write_str("all"),
        }
    }
}

fn versions(text: &str) -> Result<CheckedVersions, UnknownVersion> {
    if text == "all" {
        return Ok(CheckedVersions::All);
    }
    text.parse().map(CheckedVersions::One)
}

pub(super) fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    match &args.role {
        Some(CheckedRole::Client(args)) => return client::run(args),
        Some(CheckedRole::Gateway(args)) => return gateway::run(args),
        None => {}
    }
    if let Some(named) = &args.issuer.auth_server {
        return auth_server::run(args, named.as_deref());
    }
    let report = &args.report;
    if let Some(exit) = report.list(Role::Server)? {
        return Ok(exit);
    }
    if args.profiles.iter().any(|name| name == "list") {
        return profiles::list(report.output.format).map(|()| Exit::Success);
    }
    let profiles = profiles::select(&args.profiles)?;
    let baseline = report.read_baseline()?;
    let names: Vec<_> = args.servers.iter().chain(&args.named).cloned().collect();
    let servers = if args.trace.is_some() { Vec::new() } else { args.target.selected(&names)? };
    if servers.is_empty() && args.trace.is_none() {
        print_no_servers();
        return Ok(Exit::NothingSelected);
    }
    if report.output.format == Format::Sarif {
        repository::check_places(&servers)?;
    }
    let mut checked = report.begin();
    let sinks = Sinks::open(args.trace_file.as_deref(), &args.otlp)?;
    let is_interrupted = match &args.trace {
        Some(path) => {
            checked.servers = trace::check(path, &args.options())?;
            false
        }
        None => block_on_guarded(args.check(&servers, &sinks, &profiles, &mut checked))?,
    };
    report.conclude(&mut checked, baseline, args.is_of_all(), is_interrupted)?;
    let exit = report.write(checked)?;
    sinks.finish()?;
    Ok(exit)
}

impl CheckArgs {
    fn options(&self) -> CheckOptions {
        CheckOptions {
            versions: self.wanted_versions(),
            start_timeout: self.start_timeout,
            request_timeout: self.timeout,
            grace: self.grace,
            budget: self.budget,
            tools: self.tools.permission(),
            varied_prompts: self.varied_prompts.clone(),
            tokens: self.tokens(),
            counts_sdk: self.sdk,
            migrates: self.migrate,
            counts_harm: self.safety,
            seed: self.report.seed,
            checks: self.report.only.clone(),
            events: None,
            record_sink: RecordSink::default(),
        }
    }

    /// Whether every version is checked.
    fn is_of_all(&self) -> bool {
        self.versions.is_empty() || self.versions.iter().any(|it| matches!(it, CheckedVersions::All))
    }

    fn wanted_versions(&self) -> Vec<Version> {
        let all = |wanted: &CheckedVersions| match wanted {
            CheckedVersions::One(version) => vec![*version],
            CheckedVersions::All => Version::ALL.to_vec(),
        };
        self.versions.iter().flat_map(all).collect()
    }

    fn tokens(&self) -> Tokens {
        Tokens {
            valid: self.target.token().map(ToOwned::to_owned),
            low_scope: self.token_low_scope.clone(),
            expired: self.token_expired.clone(),
            wrong_audience: self.token_wrong_audience.clone(),
        }
    }

    /// Checks all servers, one after the other. Returns whether it was interrupted.
    ///
    /// # Errors
    /// Signals cannot be handled.
    async fn check(
        &self,
        servers: &[Server],
        sinks: &Sinks,
        profiles: &[SelectedProfile],
        checked: &mut CheckResult,
    ) -> Result<bool, Failure> {
        let stop = CancellationToken::new();
        let mut job = Job::start(stop.clone(), INTERRUPTED)?;
        let mut progress = Progress::new();
        let again = Again::new(self);
        let Tokens { valid, low_scope, expired, wrong_audience } = self.tokens();
        let tokens = [valid, low_scope, expired, wrong_audience].into_iter().flatten().collect();
        let tokens = Secrets::new(tokens).remembered();
        let mut tools = ListedTools::default();
        for (number, server) in servers.iter().enumerate() {
            let secrets = &server.resolved.secrets.clone().merge(&tokens);
            progress.begin(&secrets.hidden(&target_text(&server.resolved.config.target)), number, servers.len());
            let mut params = server.resolved.config.clone();
            params.shutdown = stop.clone();
            params.authorizer = stored_authorizer(server).filter(|_| self.target.token().is_none());
            let secrets = &secrets.clone().merge_tokens(params.authorizer.clone());
            let (sender, mut events) = unbounded_channel();
            let record_sink = recorded(sinks, server, secrets);
            let options = CheckOptions { events: Some(sender), record_sink, ..self.options() };
            let begun = Instant::now();
            let checking = Box::pin(check(&params, &options));
            let show = |progress: &mut Progress, event| {
                tools.add(number, &event);
                progress.show(event);
            };
            let Some(run) = progress.watch(&mut job, checking, &mut events, show).await else { return Ok(true) };
            let mut result = run.checked;
            result.profiles = {
                let (deployed_at, is_of_all) = (self.deployed_at.as_ref(), self.is_of_all());
                profiles::judge(profiles, deployed_at, is_of_all, server, &result, &run.traces)
            };
            (result.again, result.place) = (again.command(server), repository::place(server));
            checked.duration += begun.elapsed();
            checked.servers.push(result);
            if job.is_interrupted() {
                break;
            }
        }
        if tools.servers.len() == servers.len() {
            self.warn_of_unlisted(&tools.names);
        }
        Ok(job.is_interrupted())
    }

    /// Warns of tools that may be called, but that no server lists.
    fn warn_of_unlisted(&self, listed: &BTreeSet<String>) {
        for (option, name) in self.tools.names() {
            if listed.iter().any(|tool| matches_wildcard(name, tool)) {
                continue;
            }
            let known: Vec<_> = listed.iter().map(String::as_str).collect();
            let near = nearest(name, &known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            style::warn(&format!("{option} {name}: no server lists such a tool{near}"));
        }
    }
}

/// The tools of the servers that have listed all of theirs.
#[derive(Default)]
struct ListedTools {
    names: BTreeSet<String>,
    servers: BTreeSet<usize>,
}

impl ListedTools {
    fn add(&mut self, server: usize, event: &CheckEvent) {
        if let CheckEvent::Listed(names) = event {
            self.servers.insert(server);
            self.names.extend(names.iter().cloned());
        }
    }
}

/// Shows every connection with a server to the sinks.
fn recorded(sinks: &Sinks, server: &Server, secrets: &Secrets) -> RecordSink {
    if sinks.is_empty() {
        return RecordSink::default();
    }
    let (sinks, secrets) = (sinks.clone(), secrets.clone());
    let info = ConnectionInfo::new(server.name(), server.resolved.config.target.transport());
    RecordSink(Some(Arc::new(move |version, recorder| {
        let info = ConnectionInfo { protocol: Some(version), ..info.clone() };
        sinks.follow(&info, recorder, secrets.clone());
    })))
}
