//! `rehearse mock`: serves a script over stdio, or over all network transports on one port.

mod announce;
mod background;
mod console;
mod follow;
mod stdio;

use std::{
    fs::File,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use rand::RngExt;
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use self::console::Console;
use super::{Exit, Failure, signals::Signals};
use crate::{
    mock::{
        engine::Engine,
        journal::Journal,
        script::Script,
        serve::{Ended, Listen, MockServer, serve_pipe},
    },
    transport::Transport,
};

/// How long answers that are under way may still take after a signal, and the journal after them.
const GRACE: Duration = Duration::from_secs(5);
/// How long stderr may take at the end. Who reads it at all has read it by then.
const UNHEARD: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  rehearse mock basic                             # the embedded script, over stdio
  rehearse mock my.yaml --listen 8888             # http, sse and ws on 127.0.0.1:8888
  rehearse mock my.yaml --listen :0 --verbose     # a free port; show every request
  rehearse mock my.yaml --journal requests.jsonl  # keep every request, and the rule that answered";

const LONG_EXAMPLES: &str = "\
Examples:
  rehearse mock basic                             # the embedded script, over stdio
  rehearse mock my.yaml --listen 8888             # http, sse and ws on 127.0.0.1:8888
  rehearse mock my.yaml --listen :0 --verbose     # a free port; show every request
  rehearse mock my.yaml --journal requests.jsonl  # keep every request, and the rule that answered

In the configuration of a client:
  { \"mcpServers\": { \"my\": { \"command\": \"rehearse\", \"args\": [\"mock\", \"/path/to/my.yaml\"] } } }

A script:
  server: { name: my, version: 1.0.0 }
  tools:
    - name: greet
      inputSchema: { type: object, properties: { name: { type: string } }, required: [name] }
      rules:
        - when: { args: { name: Ada } }
          reply: { text: Welcome back. }
        - reply: { text: \"Hello {{ args.name }}\" }

The mock ends with the client's end of stdin, or with SIGINT or SIGTERM; answers that are under way
may take 5 s longer, and a second signal ends it at once. A script's `exit` step ends it with its code.";

/// Serve a scripted mock server
///
/// Both protocol eras are spoken at once, over stdio unless an address to listen on is given. The mock keeps to the
/// protocol, and misbehaves only where the script says so.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = LONG_EXAMPLES)]
pub(super) struct MockArgs {
    /// A script file, or the name of an embedded script: basic
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,
    /// Serve streamable HTTP, HTTP+SSE and WebSocket on this address; a port alone means 127.0.0.1, port 0 a free one
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    listen: Option<SocketAddr>,
    /// Answer requests for this host name too; may be repeated
    #[arg(long = "allow-host", value_name = "NAME", requires = "listen", value_parser = parse_host)]
    allowed_hosts: Vec<String>,
    /// Decide everything random from this number, to repeat an earlier run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Append every request to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Show every request on stderr, and how it was answered
    #[arg(short, long)]
    verbose: bool,
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

fn parse_host(text: &str) -> Result<String, String> {
    let is_name = |text: &str| text.parse::<http::uri::Authority>().is_ok_and(|it| it.host() == it.as_str());
    match text.parse::<IpAddr>().is_ok() || is_name(text) {
        true => Ok(text.into()),
        false => Err("expected a host name without scheme and port".into()),
    }
}

/// Serves until the client closes its end or a signal comes. Once it serves, nothing waits for a stderr that nobody
/// reads.
///
/// # Errors
/// The script has mistakes, or the journal cannot be opened.
pub(super) fn run(args: MockArgs) -> Result<Exit, Failure> {
    let script = Script::load(&args.script)?;
    let journal = args.journal.as_deref().map(|path| follow::open(path, args.listen.is_none())).transpose()?;
    let (console, said) = Console::open();
    let exit = serve(args, script, journal, &console).unwrap_or_else(|failure| {
        console.say(failure.text());
        failure.exit()
    });
    drop(console);
    said.end(UNHEARD);
    Ok(exit)
}

fn serve(args: MockArgs, script: Script, journal: Option<File>, console: &Console) -> Result<Exit, Failure> {
    let (sender, follower) = follow::start(journal, args.verbose.then(|| console.clone())).unzip();
    let seed = args.seed.unwrap_or_else(|| rand::rng().random::<u32>().into());
    let engine = Engine::new(script, seed, Journal::new(sender));
    let exit = match args.listen {
        Some(address) => listen(engine, seed, Listen { address, allowed_hosts: args.allowed_hosts }, console),
        None => {
            console.say(announce::stdio(&engine, &args.script, seed));
            stdio(engine, console)
        }
    };
    let followed = follower.map_or(Ok(()), |follower| follower.finish(GRACE));
    exit.and_then(|exit| followed.map(|()| exit))
}

fn runtime_failure(error: std::io::Error) -> Failure {
    Failure::cannot(format!("cannot start: {error}"))
}

/// One thread, for the sake of a fast start.
fn stdio(engine: Arc<Engine>, console: &Console) -> Result<Exit, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(runtime_failure)?;
    let exit = runtime.block_on(serve_stdio(engine, console));
    // A thread that reads a terminal never returns.
    runtime.shutdown_background();
    exit
}

async fn serve_stdio(engine: Arc<Engine>, console: &Console) -> Result<Exit, Failure> {
    let mut signals = Signals::install().map_err(runtime_failure)?;
    let (mut input, mut output) = (stdio::Input::open(), stdio::Output::open());
    let stop = CancellationToken::new();
    let second_signal = async {
        signals.next().await;
        say_stopping(console, &engine);
        stop.cancel();
        signals.next().await;
    };
    let ended = tokio::select! {
        ended = serve_pipe(engine.clone(), Transport::Stdio, &mut input, &mut output, stop.clone(), GRACE) => ended,
        () = stdio::nobody_reads() => Ok(Ended::Closed),
        () = second_signal => Ok(Ended::Stopped),
    };
    input.restore();
    output.restore();
    match ended {
        Ok(Ended::Closed | Ended::Stopped) => Ok(Exit::Success),
        Ok(Ended::Died(code)) => Ok(Exit::Scripted(code)),
        Err(error) => Err(Failure::cannot(format!("cannot read stdin: {error}"))),
    }
}

fn listen(engine: Arc<Engine>, seed: u64, listen: Listen, console: &Console) -> Result<Exit, Failure> {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build().map_err(runtime_failure)?;
    runtime.block_on(serve_network(engine, seed, listen, console))
}

async fn serve_network(engine: Arc<Engine>, seed: u64, listen: Listen, console: &Console) -> Result<Exit, Failure> {
    let mut signals = Signals::install().map_err(runtime_failure)?;
    let address = listen.address;
    let server = MockServer::start(engine, listen).await.map_err(|error| cannot_listen(address, &error))?;
    console.say(announce::network(&server, seed));
    tokio::select! {
        code = server.died() => {
            server.stop(Duration::ZERO).await;
            Ok(Exit::Scripted(code))
        }
        () = signals.next() => {
            say_stopping(console, server.engine());
            tokio::select! {
                () = server.stop(GRACE) => {}
                () = signals.next() => {}
            }
            Ok(Exit::Success)
        }
    }
}

fn say_stopping(console: &Console, engine: &Engine) {
    console.leave_line();
    if engine.in_flight() > 0 {
        console.say("Stopping: answers under way have 5 s; another signal ends them at once.\n");
    }
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            let failure = Failure::cannot(format!("cannot listen on {address}: the port is taken"));
            failure.hint("end the process that has it, or take a free port with `--listen :0`")
        }
        _ => Failure::cannot(format!("cannot listen on {address}: {error}")),
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
