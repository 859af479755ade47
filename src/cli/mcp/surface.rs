//! `rehearse surface`: all that a server shows, as a file.

use std::path::PathBuf;

use serde_json::Value as Json;

use super::{
    args::CommonArgs,
    error::CommandError,
    session::run_session,
    target::{Select, Server, TargetArgs, check_single, connection::ConnectionArgs},
};
use crate::cli::{Exit, Failure, output};
use rehearse_client::{ConnectError, PeerInfo, ServerParams, Session};
use rehearse_diff::Surface;
use rehearse_protocol::{Era, Protocol, Transport, Version};
use rehearse_scenario::read_surface;

const EXAMPLES: &str = "\
Examples:
  rehearse surface -- node server.js > surface.json
  rehearse surface files --mcp-config .mcp.json -o surface.json
  rehearse diff surface.json 'node server.js'            what has changed since

The file has all lists, capabilities, instructions and versions, sorted: the same server gives the same file. \
Commit it, and a pull request shows what changes for users.";

/// Write all that a server shows to a surface file, for `rehearse diff`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct SurfaceArgs {
    /// The server; optional if there is only one
    server: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// # Errors
/// There is no such server, it cannot be reached, or the file cannot be written.
pub(in crate::cli) fn write_surface(args: &SurfaceArgs) -> Result<Exit, Failure> {
    let servers = servers(&args.target, &args.connection, args.server.as_deref())?;
    let surface = match surface_of(&args.connection, &servers)? {
        Ok(surface) => surface,
        Err(exit) => return Ok(exit),
    };
    match &args.output {
        Some(path) => output::write_file(path, surface.to_text().as_bytes())?,
        None => output::write(surface.to_text().as_bytes())?,
    }
    Ok(Exit::Success)
}

/// The server of this name, or the only one.
///
/// # Errors
/// There are none or several, or a config cannot be read.
pub(in crate::cli) fn servers(
    target: &TargetArgs,
    connection: &ConnectionArgs,
    name: Option<&str>,
) -> Result<Vec<Server>, Failure> {
    let servers = target.servers(Select::from_name(name), connection.show_secrets)?;
    check_single(&servers, "SERVER")?;
    Ok(servers)
}

/// The surface of a server; `Err` is the exit code after a failure that has been printed.
///
/// # Errors
/// The server cannot be reached.
pub(in crate::cli) fn surface_of(
    connection: &ConnectionArgs,
    servers: &[Server],
) -> Result<Result<Surface, Exit>, Failure> {
    let is_sse = servers.iter().any(|server| server.resolved.config.target.transport() == Transport::Sse);
    let mut found = None;
    let args = CommonArgs::new(&TargetArgs::default(), connection);
    let exit = run_session(&args, servers, async |hub_session| {
        let read = async |session: &_, options| read_surface(session, options).await.map_err(CommandError::from);
        let name = &hub_session.names[0];
        let mut surface = hub_session.with_session(name, read).await?;
        if surface.protocol_versions.is_none() && connection.protocol().is_none() && !is_sse {
            let info = async |session: &Session, _| Ok::<_, CommandError>(session.info().clone());
            let info = hub_session.with_session(name, info).await?;
            surface.protocol_versions = versions(&info, &servers[0].resolved.config).await;
        }
        found = Some(surface);
        Ok(Exit::Success)
    })?;
    Ok(found.ok_or(exit))
}

/// The versions that a server speaks: without a handshake those that it names, with one the newest. `None` if a second
/// connection did not show whether there are any with a handshake.
async fn versions(info: &PeerInfo, config: &ServerParams) -> Option<Vec<String>> {
    let Some(Era::Modern) = info.version.known().map(Version::era) else { return Some(vec![info.version.to_string()]) };
    let raw: Json = serde_json::from_str(info.raw.get()).ok()?;
    let named = raw.get("supportedVersions")?.as_array()?.iter();
    let mut versions: Vec<_> = named.filter_map(|version| Some(version.as_str()?.to_owned())).collect();
    match Session::connect(config, Protocol::Exact(Version::LATEST_LEGACY)).await {
        Ok(session) => {
            versions.push(session.info().version.to_string());
            session.close().await;
        }
        // A server that refuses the version in which the client asks could have an older one.
        Err(ConnectError::Refused { .. } | ConnectError::Http { .. }) => {}
        Err(_) => return None,
    }
    versions.sort();
    Some(versions)
}
