//! What the configuration of a server says about it.

use std::{io::ErrorKind, time::Duration};

use rehearse_client::{ServerParams, StopGrace, Target};
use rehearse_conformance::Facts;
use tokio::{net::TcpStream, time::timeout};
use url::Url;

use crate::CheckOptions;

/// How long a process may take to exit, and what it has started after it, before it gets SIGTERM, and again before it is
/// killed.
const EXIT: Duration = Duration::from_millis(2500);
/// How long it may take to see whether a server still listens.
const CONNECT: Duration = Duration::from_secs(1);
/// A variable with a value that only the process of the server has.
const CANARY: &str = "REHEARSE_CANARY";
/// The words by which a variable is taken for a secret.
const SECRETS: [&str; 4] = ["TOKEN", "SECRET", "PASSWORD", "KEY"];

/// The same server with its token, and with little time to exit: a process that has to be stopped is a finding, and
/// each costs that time. The options with the token that the configuration has.
pub(crate) fn prepared(params: &ServerParams, options: &CheckOptions) -> (ServerParams, CheckOptions) {
    let (mut params, mut options) = (params.clone(), options.clone());
    if let Target::Stdio(spec) = &mut params.target {
        spec.grace = StopGrace { exit: EXIT, others: EXIT, terminate: EXIT, ..spec.grace };
        // Nothing else has this value: who says it has it from there.
        let value = options.seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        spec.env.insert(CANARY.to_owned(), format!("canary-{value:016x}"));
    }
    if let Some(at) = params.target.endpoint_mut() {
        let is_token = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        let bearer = |(_, value): &(String, String)| value.strip_prefix("Bearer ").map(ToOwned::to_owned);
        let configured = at.headers.iter().find(|header| is_token(header)).and_then(bearer);
        if let Some(token) = &options.tokens.valid {
            at.headers.retain(|header| !is_token(header));
            at.headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        options.tokens.valid = options.tokens.valid.take().or(configured);
    }
    (params, options)
}

/// The URL of a server, if it has one.
pub(crate) fn endpoint(params: &ServerParams) -> Option<&str> {
    params.target.endpoint().map(|at| &*at.url)
}

/// What is known of a server before it has said anything.
pub(crate) fn facts(params: &ServerParams, options: &CheckOptions) -> Facts {
    let endpoint = endpoint(params).map(ToOwned::to_owned);
    let (secrets, canary, is_local) = (secrets(params), canary(params), is_local(params));
    Facts { endpoint, secrets, canary, counts_harm: options.counts_harm, is_local, ..Facts::default() }
}

/// The variable that the prober gives to a process, with its value.
fn canary(params: &ServerParams) -> Option<(&'static str, String)> {
    let Target::Stdio(spec) = &params.target else { return None };
    spec.env.get(CANARY).map(|value| (CANARY, value.clone()))
}

/// The values of variables for the server that are named like secrets.
fn secrets(params: &ServerParams) -> Vec<String> {
    let Target::Stdio(spec) = &params.target else { return Vec::new() };
    let is_secret = |name: &str| SECRETS.iter().any(|word| name.to_ascii_uppercase().contains(word));
    let secrets = spec.env.iter().filter(|(name, value)| is_secret(name) && value.len() >= 8);
    secrets.map(|(_, value)| value.clone()).collect()
}

/// Why a run against a server on this machine has not seen all of it: nothing listens there any more.
pub(crate) async fn why_gone(params: &ServerParams) -> Option<String> {
    let url = Url::parse(endpoint(params).filter(|_| is_local(params))?).ok()?;
    let (host, port) = (url.host_str()?.trim_matches(['[', ']']), url.port_or_known_default()?);
    let connected = timeout(CONNECT, TcpStream::connect((host, port))).await.ok()?;
    let is_gone = connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    is_gone.then(|| "the server has ended: nothing listens at its URL any more".to_owned())
}

fn is_local(params: &ServerParams) -> bool {
    let hosts = ["//127.", "//localhost", "//[::1]", "//10.", "//192.168."];
    endpoint(params).is_none_or(|url| hosts.iter().any(|host| url.contains(host)))
}
