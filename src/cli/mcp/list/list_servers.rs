//! `rehearse mcp list-servers`: the configured servers, without connecting to them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::{
    Exit, Failure, Format,
    mcp::{
        args::FormatArgs,
        print::{print, print_json},
        target::{FoundServer, FoundServers, TargetArgs, print_server_hint},
    },
    style::{DOUBTFUL, printable},
};
use rehearse_client_configs::{
    secret::{KnownSecrets, mask, mask_argument},
    server::{ConfiguredServer, Pair},
};
use rehearse_hub::configured::default_timeouts;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp list-servers
  rehearse mcp list-servers --mcp-config .mcp.json --format json
  rehearse mcp ls-servers --dialect cursor

`rehearse config show` prints where each value comes from.";

/// List the configured servers
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListServersArgs {
    /// Show tokens and passwords
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    print: FormatArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &ListServersArgs) -> Result<Exit, Failure> {
    let FoundServers { servers, secrets, has_cpe } = args.target.all(args.show_secrets)?;
    let known = (!args.show_secrets).then(|| KnownSecrets::new(secrets.iter().map(String::as_str)));
    let shown: Vec<_> = servers.iter().map(|found| DisplayedServer::new(found, known.as_ref())).collect();
    match args.print.format() {
        Format::Json => print_json(&json!({ "servers": shown.iter().map(DisplayedServer::json).collect::<Vec<_>>() }))?,
        Format::Human if shown.is_empty() => {
            print("No MCP servers configured.\n")?;
            print_server_hint();
        }
        Format::Human => {
            let list: String = shown.iter().map(DisplayedServer::human).collect();
            print(&format!("Configured MCP Servers:\n{list}"))?;
        }
    }
    // As CPE does.
    Ok(if shown.is_empty() && !has_cpe { Exit::NothingSelected } else { Exit::Success })
}

/// A server without its secrets.
struct DisplayedServer<'a> {
    server: &'a ConfiguredServer,
    /// The timeout of calls, or of connecting if only that has one.
    timeout: Duration,
    /// The location of its name.
    origin: Option<String>,
    name: String,
    command: Option<Vec<String>>,
    url: Option<String>,
    env: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl<'a> DisplayedServer<'a> {
    /// Masks the `known` secrets and text that looks like a secret; masks nothing without `known`.
    fn new(found: &'a FoundServer, known: Option<&KnownSecrets>) -> DisplayedServer<'a> {
        let server = &found.written;
        let text = |name: &str, value: &str| match known {
            Some(known) => known.mask(mask(name, value)).into_owned(),
            None => value.to_owned(),
        };
        let pairs = |pairs: &[Pair]| -> Vec<_> {
            pairs.iter().map(|Pair { name, value }| (text("", &name.value), text(&name.value, &value.value))).collect()
        };
        let argument = |before: &str, value: &str| match known {
            Some(known) => known.mask(mask_argument(before, value)).into_owned(),
            None => value.to_owned(),
        };
        let command = server.command.as_ref().map(|command| {
            let before = std::iter::once("").chain(server.args.iter().map(|arg| &*arg.value));
            let args = server.args.iter().zip(before).map(|(arg, before)| argument(before, &arg.value));
            std::iter::once(text("command", &command.value)).chain(args).collect()
        });
        let dialect = found.kept.as_ref().map(|kept| kept.dialect);
        let usual = dialect.map(default_timeouts).unwrap_or_default();
        let (own, usual) = match dialect.is_some_and(|dialect| dialect.policy.waits_for_tools) {
            true => (&server.timeouts.connect, usual.connect),
            false => (&server.timeouts.call, usual.call),
        };
        DisplayedServer {
            server,
            timeout: own.as_ref().map_or(usual, |own| own.value),
            origin: found.kept.as_ref().map(|kept| kept.origin().to_string()),
            name: text("", &server.name.value),
            command,
            url: server.url.as_ref().map(|url| text("url", &url.value)),
            env: pairs(&server.env),
            headers: pairs(&server.headers),
        }
    }

    /// The text of cpe, with additions.
    fn human(&self) -> String {
        let name = printable(&self.name);
        let off = if self.server.is_enabled() { String::new() } else { format!(" {DOUBTFUL}disabled{DOUBTFUL:#}") };
        let mut text = format!(
            "- {name} (Type: {}, Timeout: {}s){off}\n",
            self.server.transport.value,
            self.timeout.as_secs_f64()
        );
        if let Some(command) = &self.command {
            text.push_str(&format!("  Command: {}\n", printable(&command.join(" "))));
        }
        if let Some(url) = &self.url {
            text.push_str(&format!("  URL: {}\n", printable(url)));
        }
        for (title, pairs, between) in [("Environment Variables", &self.env, "="), ("Headers", &self.headers, ": ")] {
            if !pairs.is_empty() {
                text.push_str(&format!("  {title}:\n"));
            }
            for (name, value) in pairs {
                text.push_str(&format!("    {}{between}{}\n", printable(name), printable(value)));
            }
        }
        text
    }

    fn json(&self) -> Value {
        let pairs = |pairs: &[(String, String)]| -> Value {
            pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<serde_json::Map<_, _>>().into()
        };
        let mut value = json!({
            "name": self.name,
            "type": self.server.transport.value,
            "enabled": self.server.is_enabled(),
            "timeoutSeconds": self.timeout.as_secs_f64(),
        });
        if let Some(origin) = &self.origin {
            value["origin"] = json!(origin);
        }
        if let Some([command, args @ ..]) = self.command.as_deref() {
            value["command"] = json!(command);
            value["args"] = json!(args);
        }
        if let Some(url) = &self.url {
            value["url"] = json!(url);
        }
        for (key, found) in [("env", &self.env), ("headers", &self.headers)] {
            if !found.is_empty() {
                value[key] = pairs(found);
            }
        }
        value
    }
}
