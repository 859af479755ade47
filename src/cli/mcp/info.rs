//! `rehearse mcp info`: the information of a server.

use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{
    args::CommonArgs,
    error::CommandError,
    print::{indented, print, print_json, text_of},
    session::run_session,
};
use crate::cli::{
    Exit, Failure, Format,
    style::{STRONG, printable},
};
use rehearse_client::PeerInfo;
use rehearse_protocol::Transport;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp info files --mcp-config .mcp.json
  rehearse mcp info --stdio 'npx -y mcp-files' --protocol 2025-06-18
  rehearse mcp info --http http://127.0.0.1:8888/mcp --trace";

/// Connect to a server and show its information
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArgs {
    /// The server; optional if there is only one
    server: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// The report as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    server: &'a str,
    transport: &'a str,
    status: &'static str,
    protocol_version: String,
    server_info: Option<&'a RawValue>,
    capabilities: &'a RawValue,
    instructions: Option<&'a str>,
    /// The whole response of the handshake.
    handshake: &'a RawValue,
}

/// The report on a server that cannot be reached.
#[derive(Serialize)]
struct Unreachable<'a> {
    server: &'a str,
    transport: &'a str,
    status: &'static str,
    error: String,
}

pub(crate) fn run(args: &InfoArgs) -> Result<Exit, Failure> {
    let servers = args.common.one(args.server.as_deref(), "SERVER")?;
    let transport = servers.first().map(|server| server.resolved.config.target.transport());
    run_session(&args.common, &servers, async |hub_session| {
        let server = &hub_session.names[0];
        let info =
            hub_session.with_session(server, async |session, _| Ok::<_, CommandError>(session.info().clone())).await;
        if let (Format::Json, Err(CommandError::Failure(failure)), false) =
            (args.common.format(), &info, hub_session.is_interrupted())
        {
            let transport = transport.map_or("", Transport::as_str);
            let error = hub_session.hidden(&failure.to_string());
            print_json(&Unreachable { server, transport, status: "failed", error })?;
        }
        let info = info?;
        match args.common.format() {
            Format::Human => print(&hub_session.hidden(&human(server, &info)))?,
            Format::Json => print_json(&Report {
                server,
                transport: transport.map_or("", Transport::as_str),
                status: "connected",
                protocol_version: info.version.to_string(),
                server_info: info.server_info.as_deref(),
                capabilities: &info.capabilities,
                instructions: info.instructions.as_deref(),
                handshake: &info.raw,
            })?,
        }
        Ok(Exit::Success)
    })
}

pub(crate) fn human(server: &str, info: &PeerInfo) -> String {
    // The message of cpe.
    let mut text = format!("Connected to server: {}\n", printable(server));
    let identity: Value =
        info.server_info.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let word = |key: &str| identity[key].as_str().map(|word| printable(word).into_owned());
    if let Some(name) = word("name") {
        let title = word("title").map(|title| format!(" ({title})")).unwrap_or_default();
        let version = word("version").map(|version| format!(" {version}")).unwrap_or_default();
        text.push_str(&format!("  Name: {name}{version}{title}\n"));
    }
    text.push_str(&format!("  Protocol: {}\n", printable(&info.version.to_string())));
    let capabilities: serde_json::Map<String, Value> =
        serde_json::from_str(info.capabilities.get()).unwrap_or_default();
    let names: Vec<_> = capabilities.keys().map(|name| printable(name)).collect();
    text.push_str(&format!(
        "  Capabilities: {}\n",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    ));
    if !names.is_empty() {
        let lines: String = indented(&info.capabilities).lines().map(|line| format!("    {line}\n")).collect();
        text.push_str(&lines);
    }
    if let Some(instructions) = &info.instructions {
        text.push_str(&format!("\n{STRONG}Instructions:{STRONG:#}\n{}", text_of(instructions)));
    }
    text
}
