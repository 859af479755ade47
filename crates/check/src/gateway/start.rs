//! Starts a gateway before its upstream.

use std::{ffi::OsString, sync::Arc};

use rehearse_client::{
    Answer, AnswerScript, Answers, CommandSpec, Endpoint, NetworkServer, Readiness, ServerParams, StderrLine, Target,
    Timeouts, address, free_port,
};
use rehearse_system::program::words;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{GatewayError, GatewayOptions};
use crate::client::ActServer;

/// Stands for the command of the upstream, as words of their own.
const COMMAND: &str = "{upstream_command}";

/// A gateway that can be reached.
pub(super) struct Gateway {
    target: Target,
    server: Option<NetworkServer>,
}

/// Starts the command of a gateway, if it is one on the network; one over stdio is started by its client.
///
/// # Errors
/// It does not start.
pub(super) async fn start(options: &GatewayOptions, upstream: &ActServer) -> Result<Gateway, GatewayError> {
    let port = free_port()?.to_string();
    let url = options.at.as_ref().map(|at| at.replace("{port}", &port));
    let variables = upstream.variables();
    let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| text(value));
    let places = [
        ("{port}", Some(port)),
        ("{url}", url.clone()),
        ("{upstream_url}", value("REHEARSE_URL")),
        ("{upstream_sse_url}", value("REHEARSE_SSE_URL")),
        ("{upstream_config}", value("REHEARSE_CONFIG")),
        ("{upstream_line}", value("REHEARSE_STDIO")),
    ];
    let filled = |word: &String| {
        if word == COMMAND {
            return value("REHEARSE_STDIO").map(|line| words(&line).unwrap_or_default()).unwrap_or_default();
        }
        let filled = places.iter().fold(word.clone(), |word, (name, value)| match value {
            Some(value) => word.replace(name, value),
            None => word,
        });
        vec![filled]
    };
    let mut command = options.command.iter().flat_map(filled).collect::<Vec<_>>().into_iter();
    if let Some(word) = command.as_slice().iter().find(|word| word.contains("{upstream_")) {
        return Err(GatewayError::Placeholder(word.clone()));
    }
    let program = command.next();
    let env = variables.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect();
    let spec = program.map(|program| CommandSpec { program, args: command.collect(), env, ..CommandSpec::default() });
    let Some(url) = url else {
        return Ok(Gateway { target: Target::Stdio(spec.unwrap_or_default()), server: None });
    };
    let endpoint = Endpoint { url: url.clone(), headers: Vec::new() };
    let target = Target::at(options.over, endpoint).ok_or_else(|| GatewayError::Url(url.clone()))?;
    let Some(spec) = spec else { return Ok(Gateway { target, server: None }) };
    let address = address(&url).ok_or(GatewayError::Url(url))?;
    let quiet = Arc::new(|_: StderrLine| {});
    let at = ("gateway", address.as_str());
    let server =
        NetworkServer::start(&spec, at, Readiness::Address, quiet, options.start_timeout, &options.shutdown).await?;
    Ok(Gateway { target, server: Some(server) })
}

fn text(value: &OsString) -> String {
    value.to_string_lossy().into_owned()
}

impl Gateway {
    /// How a client reaches it, with answers to all questions.
    pub(super) fn params(&self, options: &GatewayOptions, token: &str) -> ServerParams {
        let mut target = self.target.clone();
        if let Some(at) = target.endpoint_mut() {
            at.headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let timeouts = Timeouts { connect: options.start_timeout, list: options.timeout, call: options.timeout };
        let (shutdown, answers) = (options.shutdown.clone(), answers());
        ServerParams { timeouts, shutdown, answers, ..ServerParams::new("gateway", target) }
    }

    pub(super) async fn stop(self, shutdown: &CancellationToken) {
        if let Some(server) = self.server {
            server.stop(shutdown).await;
        }
    }
}

fn answers() -> Answers {
    let word = json!({
        "role": "assistant", "content": { "type": "text", "text": "word ä 😀" }, "model": "m", "stopReason": "endTurn",
    });
    let script = AnswerScript {
        elicitation: vec![Answer::Result(
            json!({ "action": "accept", "content": { "city": "Oslo ä", "size": "small" } }),
        )],
        sampling: vec![Answer::Result(word)],
        roots: vec![Answer::Result(json!({ "roots": [{ "uri": "file:///tmp/rehearse", "name": "ä" }] }))],
    };
    Answers::from_script(script, [])
}
