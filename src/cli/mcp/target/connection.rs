//! The connection arguments of commands.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    Server,
    authorization::{Consent, authorizer},
};
use crate::cli::{Failure, sources::resolved_server::default_protocol, terminal_user::TerminalUser};
use rehearse_client::{AnswerScript, Answers, ClientInfo, ConnectError, Timeouts};
use rehearse_client_configs::policy::{Duplicates, Naming, Unreachable};
use rehearse_document::{Source, parse_duration};
use rehearse_hub::{ApprovalMode, HubOptions, HubServer, Retry, Routing, configured::hub_server};
use rehearse_protocol::{Protocol, Transport};
use rehearse_scenario::parse_answers;

/// What every command that opens a session can set.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Connections")]
pub(crate) struct SessionArgs {
    /// Protocol version, or `auto` to negotiate the newest [default: auto]
    #[arg(long, value_name = "VERSION", alias = "protocol-version")]
    pub(crate) protocol: Option<Protocol>,
    /// Timeout of each request [default: from the config, or 30s for lists and 60s for others]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Timeout from the start of a server to the end of its handshake [default: from the config, or 30s]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    pub(crate) start_timeout: Option<Duration>,
}

#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionArgs {
    #[command(flatten)]
    session: SessionArgs,
    /// Timeout of the calls of one tool, as TOOL=TIME (repeatable)
    #[arg(long, value_name = "LIMIT", value_parser = tool_timeout, hide_short_help = true)]
    tool_timeout: Vec<(String, Duration)>,
    /// Number of servers to connect to at once [default: the client's]
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    parallel: Option<NonZeroUsize>,
    /// Print all frames and the stderr of servers
    #[arg(short, long)]
    pub(crate) trace: bool,
    /// Do not print the stderr of servers
    #[arg(short, long, conflicts_with = "trace", hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Name of this client for servers, or its `clientInfo` as JSON
    #[arg(long, value_name = "NAME", value_parser = client_info, hide_short_help = true)]
    client_info: Option<ClientInfo>,
    /// Answer server requests (elicitation, sampling, roots) from this file
    #[arg(long = "answer", value_name = "FILE", hide_short_help = true)]
    answers: Option<PathBuf>,
    /// Do not open a browser for authorization [default without a terminal]
    #[arg(long, hide_short_help = true)]
    pub(crate) no_browser: bool,
    /// Show tokens and passwords
    #[arg(long, hide_short_help = true)]
    pub(crate) show_secrets: bool,
}

/// Retries of failed connections.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Connections")]
pub(crate) struct RetryArgs {
    /// Number of retries after a failed connection
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_short_help = true)]
    retries: u32,
    /// Delay before the first retry; doubled for each next one, up to 16 times
    #[arg(long, value_name = "TIME", value_parser = pause, default_value = "1s", requires = "retries")]
    #[arg(hide_short_help = true)]
    retry_pause: Duration,
}

/// How tools are called.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Several servers")]
pub(crate) struct CallArgs {
    #[command(flatten)]
    routing: RoutingArgs,
    /// Send a call even if its arguments break the input schema of the tool
    #[arg(long, hide_short_help = true, help_heading = None::<&'static str>)]
    no_check_arguments: bool,
}

/// The choice among servers that have the same tool.
#[derive(Debug, clap::Args)]
pub(crate) struct RoutingArgs {
    /// If several servers have the tool: registered, fallback or round-robin
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, hide_possible_values = true, hide_short_help = true)]
    routing: RoutingChoice,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum RoutingChoice {
    /// The server of the registered tool
    #[default]
    Registered,
    /// Another one if that server cannot be reached
    Fallback,
    /// Each in turn
    RoundRobin,
}

impl CallArgs {
    pub(crate) fn apply(&self, options: &mut HubOptions) {
        options.checks_arguments = !self.no_check_arguments;
        options.routing = self.routing.routing();
    }

    /// Whether a call may go to any server that has the tool.
    pub(crate) fn needs_all(&self) -> bool {
        self.routing.routing() != Routing::Registered
    }
}

impl RoutingArgs {
    pub(crate) fn routing(&self) -> Routing {
        match self.routing {
            RoutingChoice::Registered => Routing::Registered,
            RoutingChoice::Fallback => Routing::Fallback,
            RoutingChoice::RoundRobin => Routing::RoundRobin,
        }
    }
}

/// The handling of several servers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Several servers")]
pub(crate) struct PolicyArgs {
    /// Tool naming scheme: bare, tool@server, mcp_server_tool, server::tool, server.tool, or a template with `{tool}` and
    /// `{server}` [default: that of the client]
    #[arg(long, value_name = "NAMES", value_parser = naming, hide_short_help = true)]
    naming: Option<Naming>,
    /// If two servers have a tool of the same name: first, last, reject or qualify [default: that of the client]
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true, hide_short_help = true)]
    duplicates: Option<OnDuplicate>,
    #[command(flatten)]
    unreachable: UnreachableArgs,
}

/// The handling of unreachable servers.
#[derive(Debug, clap::Args)]
pub(crate) struct UnreachableArgs {
    /// If one of several servers cannot be reached: fail or continue [default: that of the client]
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true, hide_short_help = true)]
    on_connect_error: Option<OnConnectError>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnDuplicate {
    /// Use the first tool
    First,
    /// Use the last tool
    Last,
    /// Fail
    Reject,
    /// Add the server to the name of the later tool
    Qualify,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnConnectError {
    /// Fail
    Fail,
    /// Use the other servers
    Continue,
}

impl ConnectionArgs {
    /// The version that the command asks for.
    pub(crate) fn protocol(&self) -> Option<Protocol> {
        self.session.protocol.filter(|protocol| *protocol != Protocol::Auto)
    }

    /// The servers as members of a hub. Server requests are answered from `answers`, then by the user, if there is one.
    /// `shutdown` speeds up closing.
    ///
    /// # Errors
    /// The transport of the only server does not support the requested version.
    pub(crate) fn members(
        &self,
        servers: &[Server],
        answers: &AnswerScript,
        person: Option<&TerminalUser>,
        shutdown: &CancellationToken,
    ) -> Result<Vec<HubServer>, Failure> {
        if let ([server], Some(protocol)) = (servers, self.session.protocol) {
            let transport = server.resolved.config.target.transport();
            if !protocol.can_connect_over(transport) {
                return Err(Failure::Usage(ConnectError::NotApplicable { transport, protocol }.to_string()));
            }
        }
        // Do not open several browser windows at once.
        let ask = Consent::for_command(self.no_browser || servers.len() > 1);
        let member = |server: &Server| {
            let mut config = server.resolved.config.clone();
            let protocol = self.session.protocol.unwrap_or_else(|| default_protocol(&config));
            if let Some(limit) = self.session.timeout {
                // Only a process has a start that no request waits for.
                let is_process = config.target.transport() == Transport::Stdio;
                let connect = if is_process { config.timeouts.connect } else { limit };
                config.timeouts = Timeouts { connect, list: limit, call: limit };
            }
            if let Some(limit) = self.session.start_timeout {
                config.timeouts.connect = limit;
            }
            if let Some(client_info) = &self.client_info {
                config.client_info.clone_from(client_info);
            }
            config.authorizer = authorizer(server, ask);
            config.shutdown = shutdown.clone();
            config.answers = match person {
                Some(person) => Answers::with_handler(answers.clone(), person.input_handler(server.name())),
                None => Answers::from_script(answers.clone(), []),
            };
            let mut member = hub_server(&server.written, server.policy, config);
            member.protocol = Some(protocol);
            if self.session.timeout.is_some() {
                member.tool_timeouts.clear();
                member.waits_for_tools = false;
            }
            member.tool_timeouts.extend(self.tool_timeout.iter().cloned());
            member
        };
        Ok(servers.iter().map(member).collect())
    }

    pub(crate) fn apply(&self, options: &mut HubOptions) {
        if let Some(parallel) = self.parallel {
            options.concurrency = parallel;
        }
    }

    /// Reads the answers to server requests from the file of `--answer`.
    ///
    /// # Errors
    /// The file cannot be read, or has mistakes.
    pub(crate) fn answer_script(&self) -> Result<AnswerScript, Failure> {
        let Some(path) = &self.answers else { return Ok(AnswerScript::default()) };
        let source = Source::read(path)
            .map_err(|error| Failure::Usage(format!("cannot read the answers {}: {error}", path.display())))?;
        parse_answers(&source).map_err(Failure::Invalid)
    }
}

/// The options of the first server's client. Typing a command approves its call, and a single command does not watch for
/// changes.
pub(crate) fn hub_options(servers: &[Server]) -> HubOptions {
    let usual = servers.first().map(|server| HubOptions::from_policy(server.policy)).unwrap_or_default();
    HubOptions { approval: ApprovalMode::AllowAll, watch_changes: false, ..usual }
}

impl RetryArgs {
    pub(crate) fn retry(&self) -> Retry {
        Retry { attempts: self.retries, pause: self.retry_pause, max_pause: self.retry_pause.saturating_mul(16) }
    }
}

impl PolicyArgs {
    pub(crate) fn apply(&self, options: &mut HubOptions) {
        self.unreachable.apply(options);
        if let Some(naming) = self.naming {
            options.naming = naming;
        }
        if let Some(duplicates) = self.duplicates {
            options.duplicates = match duplicates {
                OnDuplicate::First => Duplicates::FirstWins,
                OnDuplicate::Last => Duplicates::LastWins,
                OnDuplicate::Reject => Duplicates::Rejected,
                OnDuplicate::Qualify => Duplicates::Qualified,
            };
        }
    }
}

impl UnreachableArgs {
    pub(crate) fn apply(&self, options: &mut HubOptions) {
        if let Some(on_connect_error) = self.on_connect_error {
            options.unreachable = match on_connect_error {
                OnConnectError::Fail => Unreachable::Fatal,
                OnConnectError::Continue => Unreachable::Skipped,
            };
        }
    }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let limit = parse_duration(text).filter(|limit| !limit.is_zero());
    limit.ok_or_else(|| "write it as 500ms, 30s or 2m".to_owned())
}

fn tool_timeout(text: &str) -> Result<(String, Duration), String> {
    let (tool, limit) = text.rsplit_once('=').filter(|(tool, _)| !tool.is_empty()).ok_or("write it as TOOL=30s")?;
    Ok((tool.to_owned(), duration(limit)?))
}

pub(crate) fn pause(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write it as 500ms, 30s or 0s".to_owned())
}

/// A name alone, or the name, the title and the version.
fn client_info(text: &str) -> Result<ClientInfo, String> {
    match text.starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| error.to_string()),
        false => Ok(ClientInfo { name: text.to_owned(), ..ClientInfo::default() }),
    }
}

fn naming(text: &str) -> Result<Naming, String> {
    Ok(match text {
        "bare" => Naming::Bare,
        "tool@server" => Naming::Literal("{tool}@{server}"),
        "mcp_server_tool" => Naming::Qualified("mcp_{server}_{tool}"),
        "server::tool" => Naming::Literal("{server}::{tool}"),
        "server.tool" => Naming::Literal("{server}.{tool}"),
        // Leaked once per process.
        template if template.contains("{tool}") => Naming::Literal(String::leak(template.to_owned())),
        _ => {
            return Err(
                "there are bare, tool@server, mcp_server_tool, server::tool, server.tool, and templates with {tool}"
                    .to_owned(),
            );
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_follow_the_flag() {
        let name = |text: &str| naming(text).map(|naming| naming.name("s", "t"));
        let names =
            ["bare", "tool@server", "mcp_server_tool", "server::tool", "server.tool", "{server}/{tool}!"].map(name);
        assert_eq!(names.map(Result::unwrap_or_default), ["t", "t@s", "mcp_s_t", "s::t", "s.t", "s/t!"]);
        assert!(name("server").is_err());
    }

    #[test]
    fn a_time_has_a_unit_and_only_a_pause_may_be_zero() {
        assert_eq!(
            (duration("1.5s"), pause("1.5s")),
            (Ok(Duration::from_millis(1500)), Ok(Duration::from_millis(1500)))
        );
        assert!(duration("0s").is_err() && duration("30").is_err() && pause("30").is_err());
        assert_eq!(pause("0s"), Ok(Duration::ZERO));
        assert_eq!(tool_timeout("a=b=2s"), Ok(("a=b".to_owned(), Duration::from_secs(2))));
        assert!(tool_timeout("a=2").is_err() && tool_timeout("=2s").is_err() && tool_timeout("a").is_err());
    }
}
