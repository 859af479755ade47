//! A server that the command line describes.

use crate::cli::usage_hint::quoted_command;
use rehearse_client_configs::server::{At, ConfiguredServer, Pair};
use rehearse_document::{Source, Span};
use rehearse_protocol::{Transport, is_protocol_header};
use rehearse_system::program;

/// The arguments that describe one server.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Servers")]
pub(crate) struct ServerArgs {
    /// Start this command as a server on stdio
    #[arg(long, value_name = "COMMAND", group = "ad_hoc", group = "ad_hoc_process", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    stdio: Option<String>,
    /// The same, as words after `--`
    #[arg(value_name = "COMMAND", last = true, group = "ad_hoc", group = "ad_hoc_process", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    #[arg(hide_short_help = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<String>,
    /// Connect to this URL over streamable HTTP
    #[arg(long, value_name = "URL", group = "ad_hoc", group = "ad_hoc_url", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    http: Option<String>,
    /// Connect to this URL over HTTP+SSE, the transport of 2024-11-05
    #[arg(long, hide_short_help = true, value_name = "URL", group = "ad_hoc", group = "ad_hoc_url", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    sse: Option<String>,
    /// Connect to this URL over WebSocket
    #[arg(long, hide_short_help = true, value_name = "URL", group = "ad_hoc", group = "ad_hoc_url", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    ws: Option<String>,
    /// Add a header to every HTTP request (repeatable)
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "ad_hoc_url")]
    pub(super) headers: Vec<String>,
    /// Set an environment variable of the command (repeatable)
    #[arg(
        long = "env",
        hide_short_help = true,
        value_name = "NAME=VALUE",
        requires = "ad_hoc_process",
        conflicts_with = "ad_hoc_url"
    )]
    pub(super) env: Vec<String>,
}

/// The arguments that describe several servers.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Servers")]
pub(crate) struct ServersArgs {
    /// Start this command as a server on stdio (repeatable)
    #[arg(long = "stdio", value_name = "COMMAND", group = "process", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    stdio: Vec<String>,
    /// The same, as words after `--`
    #[arg(value_name = "COMMAND", last = true, group = "process", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    #[arg(hide_short_help = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<String>,
    /// Connect to this URL over streamable HTTP (repeatable)
    #[arg(long = "http", value_name = "URL", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    http: Vec<String>,
    /// Connect to this URL over HTTP+SSE, the transport of 2024-11-05 (repeatable)
    #[arg(long = "sse", hide_short_help = true, value_name = "URL", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    sse: Vec<String>,
    /// Connect to this URL over WebSocket (repeatable)
    #[arg(long = "ws", hide_short_help = true, value_name = "URL", conflicts_with_all = ["mcp_config", "config", "dialect"])]
    ws: Vec<String>,
    /// Add a header to every HTTP request (repeatable)
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Set an environment variable of the command (repeatable)
    #[arg(long = "env", hide_short_help = true, value_name = "NAME=VALUE", requires = "process")]
    pub(crate) env: Vec<String>,
}

impl ServersArgs {
    /// The last command if it has no arguments.
    pub(crate) fn bare_command(&self) -> Option<&str> {
        self.stdio.last().map(String::as_str).filter(|line| !line.contains(char::is_whitespace))
    }

    /// The arguments of each server.
    ///
    /// # Errors
    /// There is a header and no URL.
    pub(crate) fn each(&self) -> Result<Vec<ServerArgs>, String> {
        let ServersArgs { stdio, command, http, sse, ws, headers, env } = self;
        if !headers.is_empty() && http.is_empty() && sse.is_empty() && ws.is_empty() {
            return Err("--header needs --http, --sse or --ws".to_owned());
        }
        let at = || ServerArgs { headers: headers.clone(), ..ServerArgs::default() };
        let process = || ServerArgs { env: env.clone(), ..ServerArgs::default() };
        let stdio = stdio.iter().cloned().map(Some).map(|stdio| ServerArgs { stdio, ..process() });
        let command = (!command.is_empty()).then(|| ServerArgs { command: command.clone(), ..process() });
        let http = http.iter().cloned().map(Some).map(|http| ServerArgs { http, ..at() });
        let sse = sse.iter().cloned().map(Some).map(|sse| ServerArgs { sse, ..at() });
        let ws = ws.iter().cloned().map(Some).map(|ws| ServerArgs { ws, ..at() });
        Ok(stdio.chain(command).chain(http).chain(sse).chain(ws).collect())
    }
}

impl ServerArgs {
    /// The server of a URL, whose transport its scheme says, or of a command on stdio.
    pub(crate) fn described(text: &str, headers: &[String]) -> ServerArgs {
        let (some, headers) = (Some(text.to_owned()), headers.to_owned());
        match text.split_once("://") {
            Some(("http" | "https", _)) => ServerArgs { http: some, headers, ..ServerArgs::default() },
            Some(("ws" | "wss", _)) => ServerArgs { ws: some, headers, ..ServerArgs::default() },
            _ => ServerArgs { stdio: some, ..ServerArgs::default() },
        }
    }

    pub(crate) fn is_url(&self) -> bool {
        self.http.is_some() || self.sse.is_some() || self.ws.is_some()
    }

    /// The command if it has no arguments.
    pub(crate) fn bare_command(&self) -> Option<&str> {
        self.stdio.as_deref().filter(|line| !line.contains(char::is_whitespace))
    }

    /// The described server; its name is that of its command or host.
    ///
    /// # Errors
    /// The command has an unclosed quote, or is one word; or a header or variable is malformed, which is not quoted.
    pub(crate) fn server(&self) -> Result<Option<ConfiguredServer>, String> {
        let ServerArgs { stdio, command, http, sse, ws, headers, env } = self;
        let source = Source::new("the command line", "");
        let server = |name: &str, transport| {
            ConfiguredServer::new(source.clone(), at(name), At { value: transport, span: Span::default() })
        };
        if stdio.is_some() || !command.is_empty() {
            if let Some(wrong) = quoted_command(command) {
                return Err(wrong);
            }
            let words = stdio.as_deref().map_or_else(|| Ok(command.clone()), program::words);
            let words = words.map_err(|error| format!("the command has {error}"))?;
            let mut words = words.into_iter();
            let command = words.next().ok_or("--stdio has no command")?;
            let name = program::name(&command);
            let mut server = server(if name.is_empty() { &command } else { name }, Transport::Stdio);
            server.command = Some(at(&command));
            server.args = words.map(|word| at(&word)).collect();
            server.env = env.iter().map(|text| variable(text)).collect::<Result<_, _>>()?;
            return Ok(Some(server));
        }
        let url = [(http, Transport::Http), (sse, Transport::Sse), (ws, Transport::Ws)];
        let Some((url, transport)) = url.into_iter().find_map(|(url, transport)| Some((url.as_ref()?, transport)))
        else {
            return Ok(None);
        };
        let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let mut server = server(host.as_deref().unwrap_or("server"), transport);
        server.url = Some(at(url));
        server.headers = headers.iter().map(|text| header(text)).collect::<Result<_, _>>()?;
        Ok(Some(server))
    }
}

fn at(text: &str) -> At<String> {
    At { value: text.to_owned(), span: Span::default() }
}

fn header(text: &str) -> Result<Pair, String> {
    match text.split_once(':') {
        Some((name, _)) if is_protocol_header(name.trim()) => {
            Err(format!("the protocol sets the header {}: remove --header", name.trim()))
        }
        Some((name, value)) => Ok(Pair { name: at(name.trim()), value: at(value.trim()) }),
        _ => Err("a --header is not of the form `Name: value`".to_owned()),
    }
}

fn variable(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(Pair { name: at(name), value: at(value) }),
        _ => Err("an --env is not of the form `NAME=VALUE`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_and_a_variable_are_a_name_and_a_value() {
        let pair = |read: Result<Pair, String>| read.map(|pair| (pair.name.value, pair.value.value));
        let expected = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(pair(header("Authorization: Bearer a:b")), expected("Authorization", "Bearer a:b"));
        assert_eq!(pair(variable("A=b=c")), expected("A", "b=c"));
        let reserved = header("Mcp-Session-Id: geheim").map(|_| ()).expect_err("reserved");
        assert_eq!(reserved, "the protocol sets the header Mcp-Session-Id: remove --header");
        for wrong in [header("geheim"), variable("geheim"), variable("=geheim")] {
            assert!(!pair(wrong).expect_err("wrong").contains("geheim"));
        }
    }
}
