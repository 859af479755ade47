//! The message when a mock starts: its addresses, and the configuration for a client.

use std::{
    io::{IsTerminal, Write, stdin, stdout},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

use serde_json::{Map, Value as Json, json};

use crate::cli::{Failure, style};
use rehearse_client::is_started_by_client;
use rehearse_mock::{admin::AdminServer, engine::Engine, serve::MockServer};
use rehearse_protocol::Transport;

/// The message for stdio; on a terminal with the configuration for a client. A server of `rehearse` itself says only what
/// its client cannot know.
pub(super) fn stdio(engine: &Engine, path: &Path, seed: u64, admin: Option<&AdminServer>) -> String {
    let (strong, name) = (style::STRONG, engine.name());
    let mut text = match is_started_by_client() {
        true => String::new(),
        false => format!("{strong}{}{strong:#} is served over stdio (seed {seed})\n", style::printable(&name)),
    };
    text.extend(admin.map(describe));
    text + &on_terminal(&name, &["mock"], path)
}

/// What a server over stdio says on a terminal: the configuration for a client that starts it. Otherwise empty.
pub(in crate::cli) fn on_terminal(name: &str, args: &[&str], file: &Path) -> String {
    if !stdin().is_terminal() {
        return String::new();
    }
    format!(
        "\nWaiting for JSON-RPC messages, one per line. Ctrl-D ends it.\n\n\
         Configuration of a client that starts it by itself:\n\n{}\n\
         With `--listen 8888` it has URLs instead.\n\n",
        client_config(name, &command(args, file))
    )
}

/// The address of the server, in one line.
pub(super) fn line(server: &MockServer, seed: u64) -> String {
    let (name, address, strong) = (server.engine().name(), server.address(), style::STRONG);
    format!("{strong}{}{strong:#} listens on {address} (seed {seed})\n", style::printable(&name))
}

/// The addresses of the server and the configuration for a client.
pub(super) fn network(server: &MockServer, seed: u64, admin: Option<&AdminServer>) -> String {
    let (name, address) = (server.engine().name(), server.address());
    let (strong, dim, doubtful) = (style::STRONG, style::DIM, style::DOUBTFUL);
    let mut text = line(server, seed) + "\n";
    for (transport, url) in urls(server) {
        match url {
            Some(url) => text.push_str(&format!("  {transport:<5} {strong}{url}{strong:#}\n")),
            None => text.push_str(&format!(
                "  {transport:<5} {dim}not supported by the protocol versions of this script{dim:#}\n"
            )),
        }
    }
    text.extend(admin.map(describe));
    if !address.ip().is_loopback() {
        text.push_str(&format!(
            "\n{doubtful}warning: everyone who can reach this machine can use the mock{doubtful:#}\n"
        ));
    }
    if let Some(entry) = entry(server) {
        let members: Vec<_> = entry.iter().map(|(member, value)| format!("\"{member}\": {value}")).collect();
        text.push_str("\nConfiguration of a client:\n\n");
        text.push_str(&client_config(&name, &members.join(", ")));
    }
    text.push_str("\nCtrl-C ends it.\n\n");
    text
}

/// Prints the addresses of the server as one line of JSON.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn print_json(server: &MockServer, seed: u64, admin: Option<&AdminServer>) -> Result<(), Failure> {
    let mut line = json!({ "name": server.engine().name(), "seed": seed });
    for (transport, url) in urls(server) {
        if let Some(url) = url {
            line[transport.as_str()] = url.into();
        }
    }
    if let Some(admin) = admin {
        line["admin"] = json!({ "url": admin.url(), "token": admin.token() });
    }
    let mut out = stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|error| Failure::cannot(format!("cannot write to stdout: {error}")))
}

/// The URL of each network transport; `None` if no version of the script supports the transport.
pub(super) fn urls(server: &MockServer) -> Vec<(Transport, Option<String>)> {
    let (address, versions) = (server.address(), server.engine().versions());
    let url = |transport: Transport| {
        let url = server.url(transport)?.replacen(&address.to_string(), &reachable(address).to_string(), 1);
        Some((transport, versions.iter().any(|version| transport.carries(*version)).then_some(url)))
    };
    Transport::ALL.into_iter().filter_map(url).collect()
}

fn describe(admin: &AdminServer) -> String {
    let strong = style::STRONG;
    format!("  {:<5} {strong}{}{strong:#} with the token {}\n", "admin", admin.url(), admin.token())
}

/// The entry of the server in a client's configuration.
pub(super) fn entry(server: &MockServer) -> Option<Map<String, Json>> {
    let (transport, url) = urls(server).into_iter().find_map(|(transport, url)| Some((transport, url?)))?;
    let mut entry = Map::from_iter([("type".into(), json!(transport)), ("url".into(), json!(url))]);
    if let Some(token) = token(server) {
        entry.insert("headers".into(), json!({ "Authorization": format!("Bearer {token}") }));
    }
    Some(entry)
}

/// A token that the script accepts, if it requires one.
pub(super) fn token(server: &MockServer) -> Option<String> {
    server.engine().auth(|auth| auth.first_token().map(str::to_owned)).flatten()
}

/// A client's configuration, ready to paste; `members` are those of the server.
fn client_config(name: &str, members: &str) -> String {
    format!("{{\n  \"mcpServers\": {{\n    {}: {{ {members} }}\n  }}\n}}\n", Json::from(name))
}

/// The command that starts this server: the name of this program, or its path if it is not on the PATH.
fn command(args: &[&str], file: &Path) -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let on_path = Path::new(&called).components().count() == 1;
    let program = std::env::current_exe().ok().filter(|_| !on_path);
    let program = program.map_or_else(|| "rehearse".into(), |path| path.display().to_string());
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.into()).display().to_string();
    let args: Vec<_> = args.iter().copied().chain([&*file]).map(|arg| Json::from(arg).to_string()).collect();
    format!("\"command\": {}, \"args\": [{}]", Json::from(program), args.join(", "))
}

/// An address that a client can connect to.
pub(in crate::cli) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
