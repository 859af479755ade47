//! What a person is told when a mock starts: where it is, and how a client is pointed at it.

use std::{
    io::{IsTerminal, stdin},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

use serde_json::Value as Json;

use crate::{
    cli::style,
    mock::{engine::Engine, serve::MockServer},
    transport::Transport,
};

/// Says that the script is served over stdio; and to someone at a terminal, what to do with that.
pub(super) fn stdio(engine: &Engine, path: &Path, seed: u64) -> String {
    let (strong, name) = (style::STRONG, engine.name());
    let mut text = format!("{strong}{}{strong:#} is served over stdio (seed {seed})\n", style::printable(&name));
    if stdin().is_terminal() {
        text.push_str("\nWaiting for JSON-RPC messages, one a line. Ctrl-D ends it.\n");
        text.push_str("\nConfiguration of a client that starts it by itself:\n\n");
        text.push_str(&client_config(&name, &command(path)));
        text.push_str("\nWith `--listen 8888` it has URLs instead.\n\n");
    }
    text
}

/// Says where the server listens.
pub(super) fn network(server: &MockServer, seed: u64) -> String {
    let (engine, address) = (server.engine(), server.address());
    let (name, versions) = (engine.name(), engine.versions());
    let (strong, dim, doubtful) = (style::STRONG, style::DIM, style::DOUBTFUL);
    let mut text = format!("{strong}{}{strong:#} listens on {address} (seed {seed})\n\n", style::printable(&name));
    for transport in Transport::ALL {
        let Some(url) = server.url(transport) else { continue };
        let url = url.replacen(&address.to_string(), &reachable(address).to_string(), 1);
        match versions.iter().any(|version| transport.carries(*version)) {
            true => text.push_str(&format!("  {transport:<5} {strong}{url}{strong:#}\n")),
            false => text.push_str(&format!("  {transport:<5} {dim}not in the versions of this script{dim:#}\n")),
        }
    }
    if !address.ip().is_loopback() {
        text.push_str(&format!("\n{doubtful}Everyone who can reach this machine can use it.{doubtful:#}\n"));
    }
    let url = Json::from(format!("http://{}/mcp", reachable(address)));
    text.push_str("\nConfiguration of a client:\n\n");
    text.push_str(&client_config(&name, &format!("\"type\": \"http\", \"url\": {url}")));
    text.push_str("\nCtrl-C ends it.\n\n");
    text
}

/// The entry of a client's configuration, ready to paste; `members` are those of the server.
fn client_config(name: &str, members: &str) -> String {
    format!("{{\n  \"mcpServers\": {{\n    {}: {{ {members} }}\n  }}\n}}\n", Json::from(name))
}

/// How a client starts this mock: by the name under which it was found, or by its path if it was not on the PATH.
fn command(script: &Path) -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let on_path = Path::new(&called).components().count() == 1;
    let program = std::env::current_exe().ok().filter(|_| !on_path);
    let program = program.map_or_else(|| "rehearse".into(), |path| path.display().to_string());
    let script = std::fs::canonicalize(script).unwrap_or_else(|_| script.into());
    let script = Json::from(script.display().to_string());
    format!("\"command\": {}, \"args\": [\"mock\", {script}]", Json::from(program))
}

/// An address that a client can connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
