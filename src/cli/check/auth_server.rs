//! `rehearse check --auth-server`: an authorization server against the RFCs that MCP builds on.

use std::{sync::Arc, time::Duration};

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{
    CheckArgs,
    progress::{INTERRUPTED, Progress},
};
use crate::cli::{
    Exit, Failure, job::Job, mcp::target::Server, process_guard::block_on_guarded, repository::NO_PLACE, style,
};
use rehearse_check::{IssuerOptions, Login, check_issuer};
use rehearse_client::oauth::{Authorizer, Options, open_url};
use rehearse_conformance::Role;
use rehearse_report::{Format, check::CheckResult};
use rehearse_system::program::{open_url_with, quoted};

/// How long a user may take to log in.
const LOGIN: Duration = Duration::from_secs(300);

/// What `--auth-server` needs.
#[derive(Debug, Args)]
pub(super) struct AuthServerArgs {
    /// Check an authorization server, or those of the server
    #[arg(long, value_name = "ISSUER", num_args = 0..=1, hide_short_help = true, conflicts_with_all = ["trace", "trace_file"])]
    pub(super) auth_server: Option<Option<String>>,
    /// Log in with this command, or in the browser
    #[arg(long, value_name = "CMD", num_args = 0..=1, requires = "auth_server", hide_short_help = true)]
    login: Option<Option<String>>,
    /// The id of a public client [default: one is registered]
    #[arg(long, value_name = "ID", requires = "auth_server", hide_short_help = true)]
    client_id: Option<String>,
    /// The port of the redirect after the login [default: any]
    #[arg(long, value_name = "PORT", requires = "auth_server", hide_short_help = true)]
    callback_port: Option<u16>,
}

pub(super) fn run(args: &CheckArgs, named: Option<&str>) -> Result<Exit, Failure> {
    let report = &args.report;
    if let Some(exit) = report.list(Role::Issuer)? {
        return Ok(exit);
    }
    if report.output.format == Format::Sarif {
        return Err(Failure::Usage(NO_PLACE.to_owned()));
    }
    let baseline = report.read_baseline()?;
    let names: Vec<_> = args.servers.iter().chain(&args.named).cloned().collect();
    let servers = match args.target.is_described() || !names.is_empty() || named.is_none() {
        true => args.target.selected(&names)?,
        false => Vec::new(),
    };
    if servers.len() > 1 || (servers.is_empty() && named.is_none()) {
        let message = "--auth-server needs an issuer, or one server over HTTP that names it: --http URL --auth-server";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut checked = report.begin();
    let is_interrupted = block_on_guarded(check(args, named, servers.first(), &mut checked))?;
    report.conclude(&mut checked, baseline, true, is_interrupted)?;
    report.write(checked)
}

/// Checks the authorization server, or those that the server names. Returns whether it was interrupted.
///
/// # Errors
/// The server names none.
async fn check(
    args: &CheckArgs,
    named: Option<&str>,
    server: Option<&Server>,
    checked: &mut CheckResult,
) -> Result<bool, Failure> {
    let begun = std::time::Instant::now();
    let url = server.map(url_of).transpose()?;
    let found = match &url {
        Some(url) => {
            let authorizer = Authorizer::new(url, Options::default());
            let authorizer = authorizer.map_err(|error| Failure::Usage(error.to_string()))?;
            Some(authorizer.authorization_servers().await)
        }
        None => None,
    };
    let (resource, issuers) = match (found, named) {
        (None, named) => (None, named.into_iter().map(str::to_owned).collect()),
        (Some(Ok((resource, _))), Some(named)) => (Some(resource), vec![named.to_owned()]),
        (Some(Ok((resource, issuers))), None) => (Some(resource), issuers),
        (Some(Err(_)), Some(named)) => (url.clone(), vec![named.to_owned()]),
        (Some(Err(error)), None) => return Err(Failure::cannot(error.to_string())),
    };
    let shutdown = CancellationToken::new();
    let mut job = Job::start(shutdown.clone(), INTERRUPTED)?;
    let mut progress = Progress::new();
    for (number, issuer) in issuers.iter().enumerate() {
        progress.begin(issuer, number, issuers.len());
        let options = IssuerOptions {
            issuer: issuer.clone(),
            resource: resource.clone(),
            named_by: url.clone().filter(|_| named.is_none()),
            client: args.issuer.client_id.clone(),
            port: args.issuer.callback_port.unwrap_or_default(),
            login: args.issuer.login.clone().map(login),
            login_timeout: LOGIN,
            timeout: args.timeout,
            checks: args.report.only.clone(),
            shutdown: shutdown.clone(),
        };
        let checking = Box::pin(check_issuer(&options));
        let lines = async {
            loop {
                progress.next_line().await;
            }
        };
        let Some(mut result) = job.run_with(checking, lines).await.map(|run| run.checked) else { return Ok(true) };
        result.again = again(args, issuer, url.as_deref());
        checked.servers.push(result);
        if job.is_interrupted() {
            break;
        }
    }
    checked.duration = begun.elapsed();
    Ok(job.is_interrupted())
}

/// # Errors
/// The server is not on the network.
fn url_of(server: &Server) -> Result<String, Failure> {
    let at = server.resolved.config.target.endpoint();
    at.map(|at| at.url.clone()).ok_or_else(|| {
        Failure::Usage("--auth-server needs a server on the network; a server on stdio has none".to_owned())
    })
}

/// Opens URLs with a command, or in the browser.
fn login(command: Option<String>) -> Login {
    Arc::new(move |url| {
        let opened = match &command {
            Some(command) => open_url_with(command, url),
            None => open_url(url),
        };
        style::leave_line();
        if let Err(error) = opened {
            style::warn(&format!("cannot open the page: {error}"));
        }
        if command.is_none() {
            style::print(&format!("Log in at {}\n", style::printable(url)));
        }
    })
}

/// The command line that repeats the check.
fn again(args: &CheckArgs, issuer: &str, server: Option<&str>) -> String {
    let mut words = vec!["rehearse", "check"];
    words.extend(server.into_iter().flat_map(|url| ["--http", url]));
    words.extend(["--auth-server", issuer]);
    if let Some(login) = &args.issuer.login {
        words.push("--login");
        words.extend(login.as_deref());
    }
    words.extend(args.issuer.client_id.iter().flat_map(|id| ["--client-id", id]));
    let port = args.issuer.callback_port.map(|port| port.to_string());
    words.extend(port.iter().flat_map(|port| ["--callback-port", port]));
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}
