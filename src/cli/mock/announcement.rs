//! The message when a mock starts: its addresses, and the configuration for a client.

use std::{
    io::{IsTerminal, Write, stdin, stdout},
    path::Path,
};

use serde_json::{Value as Json, json};

use crate::cli::{Failure, style};
use rehearse_mock::{admin::AdminServer, engine::Engine, serve::MockServer};
use rehearse_system::process::is_started_by_client;

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
    for (transport, url) in server.urls() {
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
    if let Some(entry) = server.client_entry() {
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
    for (transport, url) in server.urls() {
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

fn describe(admin: &AdminServer) -> String {
    let strong = style::STRONG;
    format!("  {:<5} {strong}{}{strong:#} with the token {}\n", "admin", admin.url(), admin.token())
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
