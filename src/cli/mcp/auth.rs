//! `rehearse mcp auth`: gets, shows or deletes the OAuth token of a server.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{
    args::FormatArgs,
    print::{print, print_json, trace::Tracer},
    target::{
        Select, Server, TargetArgs,
        authorization::{self, Consent},
        check_single, print_no_servers,
    },
};
use crate::cli::{
    Exit, Failure, Format,
    process_guard::runtime,
    signals::Signals,
    style::{self, BAD, DOUBTFUL, GOOD, STRONG, printable},
};
use rehearse_client::oauth::{
    AuthError, Authorizer, ClientSecret, GrantKind, Interaction, Logout, Options, PreregisteredClient, Secret,
    TokenStatus, TokenStore,
};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp auth web                                       opens a browser
  rehearse mcp auth --http https://example.com/mcp --no-browser
  rehearse mcp auth web --scope notes:read --scope notes:write
  rehearse mcp auth web --client-credentials --client-id me --client-secret-env SECRET
  rehearse mcp auth --status                                  all tokens
  rehearse mcp auth web --logout

Tokens are stored in $XDG_DATA_HOME/rehearse/tokens, readable only by you. All `rehearse mcp` commands use and refresh \
them. Tokens are never printed.

With --status the exit code is 1 if a token is missing or expired.";

/// Get, show or delete the OAuth token of a server
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("token", |it| it.hide(true)))]
pub(crate) struct AuthArgs {
    /// The server [default: the only HTTP server; with --status, all of them]
    server: Option<String>,
    /// Show the issuer, scopes and expiry of the token
    #[arg(long, group = "what")]
    status: bool,
    /// Revoke the token if possible, and delete it and the client registration
    #[arg(long, group = "what")]
    logout: bool,
    /// Print the authorization URL instead of opening a browser
    #[arg(long)]
    no_browser: bool,
    /// Approve without a browser (for test authorization servers)
    #[arg(long, hide = true, conflicts_with = "no_browser")]
    headless: bool,
    /// Print all HTTP requests, without secrets
    #[arg(short, long, hide_short_help = true, conflicts_with = "status")]
    trace: bool,
    /// Show tokens and passwords of configs in error messages
    #[arg(long, hide_short_help = true)]
    show_secrets: bool,
    #[command(flatten)]
    print: FormatArgs,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    client: ClientArgs,
}

impl AuthArgs {
    /// Runs work with an authorizer, and prints its requests with `--trace`.
    async fn run_traced<T>(&self, server: &Server, authorizer: &Authorizer, work: impl Future<Output = T>) -> T {
        let tracer = self.trace.then(|| {
            let tracer = Tracer::new(Some(server.resolved.secrets.clone()), false);
            tracer.follow(&server.name().into(), &authorizer.recorder());
            tracer
        });
        let done = Box::pin(work).await;
        if let Some(tracer) = tracer {
            tracer.finish().await;
        }
        done
    }
}

/// The OAuth client and its request.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "OAuth client")]
struct ClientArgs {
    /// A scope to request (repeatable) [default: from the config or the server]
    #[arg(long = "scope", value_name = "SCOPE", conflicts_with = "what")]
    scopes: Vec<String>,
    /// Client ID [default: from the config, or dynamic registration]
    #[arg(long, value_name = "ID", conflicts_with = "what")]
    client_id: Option<String>,
    /// The environment variable with the client secret
    #[arg(long, value_name = "NAME", conflicts_with = "what")]
    client_secret_env: Option<String>,
    /// The https URL of a client ID metadata document
    #[arg(long, value_name = "URL", hide_short_help = true, conflicts_with = "what")]
    client_metadata_url: Option<String>,
    /// Trust only this authorization server, even on a private network
    #[arg(long, value_name = "URL", hide_short_help = true, conflicts_with = "what")]
    issuer: Option<String>,
    /// Use the client credentials grant, without a user
    #[arg(long, conflicts_with_all = ["what", "no_browser", "headless"])]
    client_credentials: bool,
}

pub(crate) fn run(args: &AuthArgs) -> Result<Exit, Failure> {
    let found = args.target.servers(Select::from_name(args.server.as_deref()), args.show_secrets)?;
    if found.is_empty() {
        if args.status && args.print.format() == Format::Json {
            print_json(&json!({ "servers": [] }))?;
        }
        print_no_servers();
        return Ok(Exit::NothingSelected);
    }
    let is_one = found.len() == 1;
    let mut servers = Vec::new();
    for server in found {
        match exclusion_reason(&server) {
            Some(why) if is_one => return Err(Failure::Usage(why)),
            Some(_) => {}
            None => servers.push(server),
        }
    }
    if args.status {
        return status(args, &servers);
    }
    check_single(&servers, "SERVER")?;
    let Some(server) = servers.first() else {
        style::print("no server uses OAuth tokens\n");
        return Ok(Exit::NothingSelected);
    };
    match args.logout {
        true => logout(args, server),
        false => authorize(args, server),
    }
}

/// Why a server uses no OAuth tokens.
fn exclusion_reason(server: &Server) -> Option<String> {
    let name = server.name();
    if authorization::url(server).is_none() {
        return Some(format!("the server {name:?} uses stdio and needs no token"));
    }
    authorization::has_authorization(server).then(|| format!("the server {name:?} already has an Authorization header"))
}

fn authorize(args: &AuthArgs, server: &Server) -> Result<Exit, Failure> {
    let ask = match (args.headless, args.no_browser) {
        (true, _) => Consent::Headless,
        (false, true) => Consent::PrintUrl,
        (false, false) => Consent::Browser,
    };
    let options = args.client.apply(authorization::options(server, ask))?;
    if matches!(options.store, TokenStore::Memory(_)) {
        let what = "no folder for tokens: set HOME or XDG_DATA_HOME";
        return Err(Failure::cannot(what));
    }
    let authorizer = authorizer(server, options)?;
    let got = runtime()?.block_on(async {
        let mut signals = Signals::install()?;
        let authorizing = async {
            tokio::select! {
                got = Box::pin(authorizer.authorize()) => got.map(Some).map_err(|error| failed(server, &error)),
                _ = signals.next() => Ok(None),
            }
        };
        args.run_traced(server, &authorizer, authorizing).await
    });
    let Some(token) = got? else {
        style::leave_line();
        style::print("interrupted: no new token\n");
        return Ok(Exit::CannotRun);
    };
    if let Some(resource) = &token.other_resource {
        let what = format!(
            "the metadata of '{}' name the resource {resource}, and not exactly the URL of the server; other clients refuse \
             them (RFC 9728, section 3.3)",
            server.name()
        );
        style::print(&format!("{DOUBTFUL}warning:{DOUBTFUL:#} {}\n", printable(&what)));
    }
    match args.print.format() {
        Format::Human => print(&human(server, Some(&token)))?,
        Format::Json => print_json(&described(server, Some(&token)))?,
    }
    Ok(Exit::Success)
}

fn status(args: &AuthArgs, servers: &[Server]) -> Result<Exit, Failure> {
    let mut tokens = Vec::new();
    for server in servers {
        let known = authorizer(server, authorization::options(server, Consent::NonInteractive))?.status();
        tokens.push((server, known.map_err(|error| failed(server, &error))?));
    }
    match args.print.format() {
        Format::Human => {
            print(&tokens.iter().map(|(server, token)| human(server, token.as_ref())).collect::<String>())?
        }
        Format::Json => {
            let servers: Vec<_> = tokens.iter().map(|(server, token)| described(server, token.as_ref())).collect();
            print_json(&json!({ "servers": servers }))?;
        }
    }
    let is_valid = |token: &Option<TokenStatus>| token.as_ref().is_some_and(is_valid);
    Ok(match tokens.is_empty() {
        true => Exit::NothingSelected,
        false if tokens.iter().all(|(_, token)| is_valid(token)) => Exit::Success,
        false => Exit::Violation,
    })
}

fn logout(args: &AuthArgs, server: &Server) -> Result<Exit, Failure> {
    let authorizer = authorizer(server, authorization::options(server, Consent::NonInteractive))?;
    let LogoutResult { had_token, is_revoked } =
        runtime()?.block_on(args.run_traced(server, &authorizer, delete_token(server, &authorizer)))?;
    match args.print.format() {
        Format::Json => {
            print_json(&json!({ "server": server.name(), "loggedOut": had_token, "revoked": is_revoked }))?;
        }
        Format::Human => print(&logout_message(server, LogoutResult { had_token, is_revoked }))?,
    }
    Ok(Exit::Success)
}

/// The result of a logout.
#[derive(Clone, Copy)]
struct LogoutResult {
    had_token: bool,
    /// Whether the authorization server revoked the token.
    is_revoked: bool,
}

/// Revokes and deletes the token; warns if it cannot be revoked.
///
/// # Errors
/// The file of the token cannot be changed.
async fn delete_token(server: &Server, authorizer: &Authorizer) -> Result<LogoutResult, Failure> {
    let Logout { was_there: had_token, revoked } =
        Box::pin(authorizer.logout()).await.map_err(|error| failed(server, &error))?;
    let is_revoked = match revoked {
        Ok(is_revoked) => is_revoked,
        Err(error) => {
            let what = server.resolved.secrets.hidden(&error.to_string());
            let what = format!("the token of '{}' was not revoked and may still be valid: {what}", server.name());
            style::print(&format!("{DOUBTFUL}warning:{DOUBTFUL:#} {}\n", printable(&what)));
            false
        }
    };
    Ok(LogoutResult { had_token, is_revoked })
}

fn logout_message(server: &Server, result: LogoutResult) -> String {
    let name = printable(server.name());
    match result {
        LogoutResult { is_revoked: true, .. } => {
            format!("The token of {STRONG}{name}{STRONG:#} was revoked and deleted.\n")
        }
        LogoutResult { had_token: true, .. } => format!("The token of {STRONG}{name}{STRONG:#} was deleted.\n"),
        LogoutResult { had_token: false, .. } => format!("There is no token of {STRONG}{name}{STRONG:#}.\n"),
    }
}

/// Gets or deletes the token of a server for the REPL, and returns the message. `current` is the authorizer of the
/// connection; a new authorizer is passed to `follow`.
///
/// # Errors
/// The server uses no tokens, or the authorization failed.
pub(crate) async fn authorize_or_logout(
    server: &Server,
    current: Option<&Authorizer>,
    is_logout: bool,
    opens_browser: bool,
    follow: impl Fn(&Authorizer),
) -> Result<String, Failure> {
    if let Some(why) = exclusion_reason(server) {
        return Err(Failure::Usage(why));
    }
    if is_logout {
        let new;
        let authorizer = match current {
            Some(current) => current,
            None => {
                new = authorizer(server, authorization::options(server, Consent::NonInteractive))?;
                follow(&new);
                &new
            }
        };
        return delete_token(server, authorizer).await.map(|what| logout_message(server, what));
    }
    let ask = if opens_browser { Consent::Browser } else { Consent::PrintUrl };
    let authorizer = authorizer(server, authorization::options(server, ask))?;
    follow(&authorizer);
    let token = Box::pin(authorizer.authorize()).await.map_err(|error| failed(server, &error))?;
    if let Some(current) = current {
        current.reload().await;
    }
    Ok(human(server, Some(&token)))
}

/// # Errors
/// The URL cannot be used.
fn authorizer(server: &Server, options: Options) -> Result<Authorizer, Failure> {
    let url = authorization::url(server).unwrap_or_default();
    Authorizer::new(url, options).map_err(|error| Failure::Usage(server.resolved.secrets.hidden(&error.to_string())))
}

fn failed(server: &Server, error: &AuthError) -> Failure {
    let text = server.resolved.secrets.hidden(&error.to_string());
    let failure = Failure::cannot(format!("{} is not authorized: {text}", server.name()));
    match error {
        AuthError::Registration(_) | AuthError::NoIdentity { .. } => {
            failure.hint("use --client-id if you have a client registration; a public server needs no token")
        }
        AuthError::Internal { .. } => failure.hint("use --issuer to trust this authorization server"),
        AuthError::UntrustedIssuer { issuer } => {
            failure.hint(format!("if the client is registered there, use --issuer {}", authorization::word(issuer)))
        }
        AuthError::IssuerMismatch { .. } => failure.hint("if the authorization server has moved, use --issuer"),
        _ => failure,
    }
}

impl ClientArgs {
    /// Adds the options of the command line.
    ///
    /// # Errors
    /// The variable of the secret is not set, or options are missing.
    fn apply(&self, mut options: Options) -> Result<Options, Failure> {
        if !self.scopes.is_empty() {
            options.scopes = Some(self.scopes.clone());
        }
        if let Some(id) = &self.client_id {
            options.identity.registered =
                Some(PreregisteredClient { id: id.clone(), secret: ClientSecret::None, issuer: None });
        }
        if let Some(name) = &self.client_secret_env {
            let secret = std::env::var(name).ok().filter(|secret| !secret.is_empty());
            let secret = secret.ok_or_else(|| Failure::Usage(format!("the variable {name} is not set")))?;
            let registered = options.identity.registered.as_mut();
            let registered =
                registered.ok_or_else(|| Failure::Usage("--client-secret-env requires --client-id".to_owned()))?;
            registered.secret = ClientSecret::Text(Secret::new(secret));
            options.identity.secret_variable = Some(name.clone());
        }
        if let Some(issuer) = &self.issuer {
            options.issuer = Some(issuer.clone());
            if let Some(registered) = &mut options.identity.registered {
                registered.issuer = Some(issuer.clone());
            }
        }
        if let Some(url) = &self.client_metadata_url {
            options.identity.document = Some(url.clone());
        }
        if self.client_credentials {
            let has_secret = |registered: &PreregisteredClient| registered.secret != ClientSecret::None;
            if !options.identity.registered.as_ref().is_some_and(has_secret) {
                return Err(Failure::Usage(
                    "--client-credentials requires --client-id and --client-secret-env".to_owned(),
                ));
            }
            options.grant = GrantKind::ClientCredentials;
            options.interaction = Interaction::None;
        }
        Ok(options)
    }
}

/// Whether the token can be used or refreshed without the user.
fn is_valid(token: &TokenStatus) -> bool {
    token.can_be_refreshed || token.expires.is_none_or(|at| SystemTime::now() < time(at))
}

/// The time in seconds since the epoch, at most the year 9999.
fn time(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(253_402_300_799))
}

fn human(server: &Server, token: Option<&TokenStatus>) -> String {
    let name = printable(server.name());
    let Some(token) = token else { return format!("{BAD}✗{BAD:#} {STRONG}{name}{STRONG:#} no token\n") };
    let mark = if is_valid(token) { format!("{GOOD}✓{GOOD:#}") } else { format!("{BAD}✗{BAD:#}") };
    let scopes = if token.scopes.is_empty() { "unknown".to_owned() } else { token.scopes.join(" ") };
    let expires = token.expires.map_or_else(
        || "unknown".to_owned(),
        |at| {
            let at = time(at);
            let left = at.duration_since(SystemTime::now()).map(|left| Duration::from_secs(left.as_secs()));
            let when =
                left.map_or_else(|_| "expired".to_owned(), |left| format!("in {}", humantime::format_duration(left)));
            format!("{} ({when})", humantime::format_rfc3339_seconds(at))
        },
    );
    let renewed = if token.can_be_refreshed { "yes" } else { "no" };
    format!(
        "{mark} {STRONG}{name}{STRONG:#}\n  Issuer: {}\n  Scopes: {}\n  Expires: {expires}\n  Refreshed automatically: {renewed}\n",
        printable(&token.issuer),
        printable(&scopes)
    )
}

fn described(server: &Server, token: Option<&TokenStatus>) -> Value {
    let mut described = json!({ "server": server.name(), "isAuthorized": token.is_some_and(is_valid) });
    if let Some(TokenStatus { issuer, scopes, expires, can_be_refreshed, .. }) = token {
        described["issuer"] = json!(issuer);
        described["scopes"] = json!(scopes);
        described["expires"] = json!(expires.map(|at| humantime::format_rfc3339_seconds(time(at)).to_string()));
        described["canBeRefreshed"] = json!(can_be_refreshed);
    }
    described
}
