//! The arguments of `rehearse mock`.

use std::{
    ffi::OsString,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use crate::cli::Format;

/// The flags that say how a script is served.
const SERVING: &[&str] = &["listen", "allowed_hosts", "seed", "journal", "verbose", "watch", "verify", "exec", "admin"];

macro_rules! examples {
    () => {
        "\
Examples:
  rehearse mock basic                          # the embedded script, over stdio
  rehearse mock my.yaml --listen 8888          # http, sse and ws on one port
  rehearse mock my.yaml --listen :0 --verbose  # a free port; show every request
  rehearse mock my.yaml --listen 8888 --watch  # serve every edit as it is saved
  rehearse mock my.yaml --journal log.jsonl    # keep requests with their rules
  rehearse mock my.yaml --exec -- npm test     # run tests against it; verify
  rehearse mock --validate mocks/*.yaml        # check scripts, serve nothing
  rehearse mock --list                         # the embedded scripts
  rehearse mock --faults                       # how a script can misbehave"
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

The mock ends with the client's end of stdin, or with SIGINT or SIGTERM; answers
that are under way may take 5 s longer, and a second signal ends it at once. A
script's `exit` step ends it with its code.

The command of --exec finds the mock in variables:
  REHEARSE_URL          streamable HTTP
  REHEARSE_SSE_URL      HTTP+SSE
  REHEARSE_WS_URL       WebSocket
  REHEARSE_STDIO        a command that is the mock on stdio
  REHEARSE_CONFIG       a file with { \"mcpServers\": { … } }
  REHEARSE_TOKEN        the first token of the script's `auth`
  REHEARSE_ADMIN_URL    with --admin: the admin API
  REHEARSE_ADMIN_TOKEN  with --admin: its token
All of them are the same mock, with one state, one journal and one verification.
The exit code is the command's if it failed; else 1 if what the script expects
did not come. What the command has started and left running is ended.

--admin prints a URL and a token for `Authorization: Bearer TOKEN`; GET / there
says what there is: GET and DELETE /journal, GET /verify, POST /reset, GET, PUT
and PATCH /state, GET and POST /rules, DELETE /rules/{id}.

If the script expects something (`expect`, or `unexpected: fail`), it is told on
stderr at the end whether it came, with the requests that were nearly it; with
--verify the exit code is 1 if it did not."
);

/// Serve a scripted mock server
///
/// Both protocol eras are spoken at once, over stdio unless an address to listen on is given. The mock keeps to the
/// protocol, and misbehaves only where the script says so.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(), after_long_help = LONG_EXAMPLES)]
pub(in crate::cli) struct MockArgs {
    /// A script file, or the name of an embedded script; several with --validate
    #[arg(value_name = "SCRIPT", required_unless_present_any = ["list", "faults"])]
    pub(super) scripts: Vec<PathBuf>,
    /// Serve streamable HTTP, HTTP+SSE and WebSocket on this address; a port alone means 127.0.0.1, port 0 a free one
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(super) listen: Option<SocketAddr>,
    /// Answer requests for this host name too; may be repeated
    #[arg(long = "allow-host", value_name = "NAME", requires = "listen", value_parser = parse_host)]
    pub(super) allowed_hosts: Vec<String>,
    /// Decide everything random from this number, to repeat an earlier run
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Append every request to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(super) journal: Option<PathBuf>,
    /// Show every request on stderr, and how it was answered
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Serve every edit of the script as it is saved; with a mistake in it, the script from before
    #[arg(long)]
    pub(super) watch: bool,
    /// End with exit code 1 if what the script expects did not come
    #[arg(long)]
    pub(super) verify: bool,
    /// Serve while the command after `--` runs, with URLs in its environment; then verify what the script expects
    #[arg(long, conflicts_with = "watch")]
    pub(super) exec: bool,
    /// The command of --exec, and its arguments
    #[arg(value_name = "COMMAND", last = true, requires = "exec", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
    /// Let tests ask for the journal, state, verification and rules, at a loopback address [default: a free port]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    #[arg(value_parser = parse_loopback)]
    pub(super) admin: Option<SocketAddr>,
    /// Show the embedded scripts, and serve nothing
    #[arg(long, conflicts_with_all = SERVING, conflicts_with_all = ["scripts", "validate", "faults"])]
    pub(super) list: bool,
    /// Show the faults that a script can have, each with an example, and serve nothing
    #[arg(long, conflicts_with_all = SERVING, conflicts_with_all = ["scripts", "validate"])]
    pub(super) faults: bool,
    /// Check the scripts and say what they offer, and serve nothing
    #[arg(long, conflicts_with_all = SERVING)]
    pub(super) validate: bool,
    /// How --list, --faults, --validate and the URLs of --listen are written to stdout: human or json
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(super) format: Format,
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
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
        false => Err("expected a loopback address: whoever reaches it and has the token may change the mock".into()),
    }
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
