//! Servers of configs with their variables replaced, ready to connect.

use std::{path::Path, time::Duration};

use crate::cli::secrets::Secrets;
use rehearse_client::ServerParams;
use rehearse_client_configs::{Unresolved, Variables, codes, dialect::Dialect, resolve, server};
use rehearse_hub::configured::{default_timeouts, server_params};
use rehearse_protocol::{Protocol, Transport, Version};
use rehearse_report::findings::Finding;

/// The minimum timeout for [`Protocol::Auto`], which waits 10 s for a response before it tries the legacy handshake.
const MIN_AUTO_TIMEOUT: Duration = Duration::from_secs(12);

/// A server with its connection options and its secrets.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedServer {
    pub(crate) config: ServerParams,
    /// The OAuth settings of the config, with variables replaced.
    pub(crate) oauth: server::OAuth,
    pub(crate) secrets: Secrets,
}

/// Replaces the variables of a configured server. Relative paths start at `folder`.
///
/// # Errors
/// A finding for every variable without a value, or for a missing key.
pub(crate) fn prepare(
    server: &server::ConfiguredServer,
    dialect: &Dialect,
    variables: &Variables,
    folder: &Path,
) -> Result<ResolvedServer, Vec<Finding>> {
    let name = &server.name;
    let resolved = resolve(server, dialect, variables).map_err(|unresolved| {
        let finding = |it: &Unresolved| {
            let message = format!("cannot connect to `{}`: {}", name.value, it.describe(dialect.program));
            codes::CONNECT.at(it.span, message).about(&*name.value)
        };
        unresolved.iter().map(finding).collect::<Vec<_>>()
    })?;
    let config = server_params(&resolved, &dialect.policy, default_timeouts(dialect), folder).map_err(|error| {
        vec![codes::CONNECT.at(name.span, format!("cannot connect to `{}`: {error}", name.value)).about(&*name.value)]
    })?;
    let secrets = Secrets::from_server(server, &resolved, &config, variables);
    Ok(ResolvedServer { secrets, oauth: resolved.auth.oauth.map(|oauth| *oauth).unwrap_or_default(), config })
}

/// The default protocol version: negotiated, or the newest legacy version if the timeout is too short for two attempts.
pub(crate) fn default_protocol(config: &ServerParams) -> Protocol {
    let is_http = matches!(config.target.transport(), Transport::Http | Transport::Sse);
    match is_http || config.timeouts.connect >= MIN_AUTO_TIMEOUT {
        true => Protocol::Auto,
        false => Protocol::Exact(Version::LATEST_LEGACY),
    }
}
