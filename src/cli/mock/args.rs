//! The arguments of `rehearse mock`.

use std::{
    ffi::OsString,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use crate::cli::Format;
use rehearse_mock::serve::ListenOptions;

/// The flags for serving a script.
const SERVING: &[&str] = &[
    "listen",
    "allowed_hosts",
    "max_connections",
    "seed",
    "journal",
    "verbose",
    "watch",
    "verify",
    "check",
    "exec",
    "admin",
];

macro_rules! examples {
    () => {
        "\
Examples:
  rehearse mock basic                          # a built-in script, over stdio
  rehearse mock my.yaml --listen 8888          # http, sse and ws on one port
  rehearse mock my.yaml --listen :0 --verbose  # a free port; show every request
  rehearse mock my.yaml --listen 8888 --watch  # reload the script on save
  rehearse mock my.yaml --journal log.jsonl    # log every request to a file
  rehearse mock my.yaml --exec -- npm test     # run tests against the mock
  rehearse mock --validate mocks/*.yaml        # check scripts
  rehearse mock --list                         # the built-in scripts
  rehearse mock --faults                       # the faults of scripts"
    };
}

const LONG_EXAMPLES: &str = concat!(
    examples!(),
    "

In the configuration of a client:
  { \"mcpServers\": { \"my\": {
    \"command\": \"rehearse\", \"args\": [\"mock\", \"/path/to/my.yaml\"] } } }

A script:
  server: { name: my, version: 1.0.0 }
  tools:
    - name: greet
      inputSchema:
        type: object
        properties: { name: { type: string } }
        required: [name]
      expect: { calls: { min: 1 } }
      rules:
        - when: { args: { name: Ada } }
          reply: { text: Welcome back. }
        - reply: { text: \"Hello {{ args.name }}\" }

With --exec the command gets these environment variables:
  REHEARSE_URL          streamable HTTP
  REHEARSE_SSE_URL      HTTP+SSE
  REHEARSE_WS_URL       WebSocket
  REHEARSE_STDIO        a command that connects stdio to the mock
  REHEARSE_CONFIG       a file with { \"mcpServers\": { … } }
  REHEARSE_TOKEN        the first token of `auth` in the script
  REHEARSE_ADMIN_URL    with --admin: the admin API
  REHEARSE_ADMIN_TOKEN  with --admin: its token
They all lead to the same mock. The exit code is that of the command if it
failed, else 1 if an expectation of the script failed, else 0."
);

/// Serve a scripted mock MCP server
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(), after_long_help = LONG_EXAMPLES)]
pub(crate) struct MockArgs {
    /// A script file, or the name of a built-in script
    #[arg(value_name = "SCRIPT", required_unless_present_any = ["list", "faults", "from_trace"])]
    pub(super) scripts: Vec<PathBuf>,
    /// Serve HTTP, SSE and WebSocket on this address or port (0: a free port) instead of stdio
    #[arg(long, alias = "port", value_name = "ADDR", value_parser = parse_address)]
    pub(super) listen: Option<SocketAddr>,
    /// Also accept requests for this host name (repeatable)
    #[arg(long = "allow-host", value_name = "NAME", requires = "listen", value_parser = parse_host)]
    pub(super) allowed_hosts: Vec<String>,
    /// How many network connections may be open; further ones get status 503 [default: 4096]
    #[arg(long, value_name = "N", default_value_t = ListenOptions::default().max_connections, hide_default_value = true)]
    #[arg(value_parser = parse_connections, hide_short_help = true)]
    pub(super) max_connections: usize,
    /// Seed for all randomness, to repeat an earlier run [default: random]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Append every request to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(super) journal: Option<PathBuf>,
    /// Print every request and the rule that answered it on stderr
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Reload the script on save; keep serving the last valid one
    #[arg(long)]
    pub(super) watch: bool,
    /// Exit with code 1 if an expectation failed or the client broke the protocol
    #[arg(long)]
    pub(super) verify: bool,
    /// Check whether the clients keep to the specification; with --verify or --exec, exit with code 1 if not
    #[arg(long)]
    pub(super) check: bool,
    /// Run the command after `--` against the mock, then verify the expectations
    #[arg(long, conflicts_with = "watch")]
    pub(super) exec: bool,
    /// The command of --exec with its arguments
    #[arg(value_name = "COMMAND", last = true, requires = "exec", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
    /// Serve the admin API for tests on a loopback address [default: a free port]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    #[arg(value_parser = parse_loopback)]
    pub(super) admin: Option<SocketAddr>,
    /// Print the built-in scripts and exit
    #[arg(long, conflicts_with_all = SERVING, conflicts_with_all = ["scripts", "validate", "faults"])]
    pub(super) list: bool,
    /// Print the faults that a script can inject and exit
    #[arg(long, conflicts_with_all = SERVING, conflicts_with_all = ["scripts", "validate"])]
    pub(super) faults: bool,
    /// Check the scripts and exit
    #[arg(long, conflicts_with_all = SERVING)]
    pub(super) validate: bool,
    /// Print a script that answers as the servers of this trace did, and exit
    #[arg(long, value_name = "FILE", conflicts_with_all = SERVING, conflicts_with_all = ["scripts", "validate", "list", "faults"])]
    pub(super) from_trace: Option<PathBuf>,
    /// Output format of --list, --faults, --validate and --listen: human or json
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(super) format: Format,
}

pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Err(format!("there is no port; write {}", SocketAddr::new(ip, 8888)));
    }
    let port = text.strip_prefix("localhost:").or(text.strip_prefix(':')).unwrap_or(text);
    let port = || port.parse().ok().filter(|_| !port.starts_with('+'));
    let address = text.parse().ok().or_else(|| port().map(|port| (Ipv4Addr::LOCALHOST, port).into()));
    address.ok_or_else(|| "expected an address such as 127.0.0.1:8888, or a port such as 8888".into())
}

fn parse_loopback(text: &str) -> Result<SocketAddr, String> {
    let address = parse_address(text)?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err("expected a loopback address, because the admin API can change the mock".into()),
    }
}

fn parse_connections(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1 << 20).contains(count));
    count.ok_or_else(|| "expected a number from 1 to 1048576".into())
}

fn parse_host(text: &str) -> Result<String, String> {
    let is_name = |text: &str| text.parse::<http::uri::Authority>().is_ok_and(|it| it.host() == it.as_str());
    match text.parse::<IpAddr>().is_ok() || is_name(text) {
        true => Ok(text.into()),
        false => Err("expected a host name without scheme and port".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn a_port_alone_means_loopback() {
        for text in ["8888", ":8888", "localhost:8888", "127.0.0.1:8888"] {
            assert_eq!(parse_address(text), Ok(([127, 0, 0, 1], 8888).into()), "{text}");
        }
        assert_eq!(parse_address("[::1]:0").map(|address| address.is_ipv6()), Ok(true));
        assert_eq!(parse_address("[::1]:8888"), Ok((Ipv6Addr::LOCALHOST, 8888).into()));
        for text in [
            "",
            ":",
            "localhost",
            "localhost8888",
            "example.com:80",
            "70000",
            "+80",
            ":+80",
            "http://127.0.0.1:1",
            "[::1]",
        ] {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_admin_api_is_for_this_machine_only() {
        assert!(parse_loopback("9000").is_ok() && parse_loopback("[::1]:0").is_ok());
        assert!(parse_loopback("0.0.0.0:9000").is_err() && parse_loopback("192.168.0.1:9000").is_err());
    }

    #[test]
    fn an_address_without_a_port_is_shown_with_one() {
        for (text, whole) in [("127.0.0.1", "127.0.0.1:8888"), ("::1", "[::1]:8888"), ("[::1]", "[::1]:8888")] {
            let error = parse_address(text).expect_err(text);
            assert!(error.contains(&format!("no port; write {whole}")), "{error}");
        }
    }

    #[test]
    fn an_allowed_host_is_a_name_and_nothing_more() {
        for text in ["mock.internal", "10.0.0.1", "::1", "MOCK"] {
            assert!(parse_host(text).is_ok(), "{text}");
        }
        for text in ["", "mock:8888", "http://mock", "a b", "user@mock"] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }
}
