//! `--attach`: one act for an application that something else starts.

use std::{collections::BTreeSet, net::SocketAddr, path::Path, time::Duration};

use tokio::time::sleep;

use crate::cli::{
    Failure,
    signals::Signals,
    style::{self, STRONG},
};
use rehearse_check::client::{ActRun, ActScript, ActServer};
use rehearse_mock::script::ItemKind;

/// How often it is looked what the client has done.
const LOOK: Duration = Duration::from_millis(200);

/// Serves an act until the client has done everything that the act needs and is idle, or a signal arrives.
///
/// # Errors
/// The address is in use.
pub(super) async fn run(
    act: ActScript,
    address: SocketAddr,
    seed: u64,
    program: &Path,
    idle: Duration,
    signals: &mut Signals,
) -> Result<ActRun, Failure> {
    let work: Vec<_> = act.needs().into_iter().map(|method| (what_to_do(&act, &method), method)).collect();
    let mut server = ActServer::start(act, seed, address, Some(program)).await?;
    let mut text = format!("act {STRONG}{}{STRONG:#}: connect your client\n\n", server.name());
    let mut addresses = server.variables();
    addresses.sort_by_key(|(name, _)| (name.len(), *name == "REHEARSE_TOKEN"));
    for (name, value) in addresses {
        text.push_str(&format!("  {:<6} {}\n", name_of(name), style::printable(&value.to_string_lossy())));
    }
    style::print(&(text + "\nCtrl-C ends the act and prints the report.\n\n"));
    let idle = server.rules().idle.unwrap_or(idle);
    let mut shown = None;
    loop {
        let used = server.used_methods();
        let left: Vec<_> = work.iter().filter(|(_, method)| !used.contains(method)).map(|(say, _)| say).collect();
        let quiet = server.quiet_for();
        if let Some(next) = left.first().filter(|_| quiet.is_some() && shown != Some(left.len())) {
            let more = if left.len() > 1 { format!(" ({} more to do)", left.len() - 1) } else { String::new() };
            style::print(&format!("now {next}{more}\n"));
            shown = Some(left.len());
        }
        if left.is_empty() && quiet.is_some_and(|quiet| quiet > idle) {
            style::print("the client has done everything that the act needs\n");
            break;
        }
        tokio::select! {
            () = sleep(LOOK) => {}
            _ = signals.next() => break,
        }
    }
    Ok(server.finish(false).await)
}

/// What a user lets the client do, so that it uses a method.
fn what_to_do(act: &ActScript, method: &str) -> String {
    let first = |kind| {
        let names: BTreeSet<_> = act.names(kind).into_iter().collect();
        names.into_iter().next().map(|name| format!(", for example {name}")).unwrap_or_default()
    };
    match method {
        "tools/list" => "let your client list the tools".to_owned(),
        "tools/call" => format!("let it call a tool{}", first(ItemKind::Tool)),
        "resources/list" => "let it list the resources".to_owned(),
        "resources/read" => format!("let it read a resource{}", first(ItemKind::Resource)),
        "prompts/list" => "let it list the prompts".to_owned(),
        "prompts/get" => format!("let it get a prompt{}", first(ItemKind::Prompt)),
        other => format!("let it send `{other}`"),
    }
}

/// The name of an address.
fn name_of(variable: &str) -> &str {
    match variable {
        "REHEARSE_URL" => "http",
        "REHEARSE_SSE_URL" => "sse",
        "REHEARSE_WS_URL" => "ws",
        "REHEARSE_STDIO" => "stdio",
        "REHEARSE_TOKEN" => "token",
        "REHEARSE_CONFIG" => "config",
        other => other,
    }
}
