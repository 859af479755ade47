//! The check of an authorization server: what a client sends it, and what a thief would.
//!
//! Codes need a user, unless the server redirects without one. Without a login, what needs a code is not tested.

mod login;
mod prober;

use std::{sync::Arc, time::Duration};

use rehearse_conformance::{Evidence, Facts, Role, checks_of, judge_selected};
use rehearse_protocol::{Trace, Transport, Version};
use rehearse_report::check::CheckedServer;
use tokio_util::sync::CancellationToken;

use self::prober::IssuerProber;
use crate::{report::checked_version, selects};

/// What is checked, and as which client.
#[derive(Clone)]
pub struct IssuerOptions {
    /// The identifier of the authorization server.
    pub issuer: String,
    /// The resource that tokens are requested for; without one, requests name none.
    pub resource: Option<String>,
    /// The MCP server that names the authorization server; it may not lead to a network nearer than itself.
    pub named_by: Option<String>,
    /// The id of a public client; without one, a client is registered.
    pub client: Option<String>,
    /// The port of the redirect URI; 0 is any.
    pub port: u16,
    /// Shows a URL to a user, or opens it.
    pub login: Option<Login>,
    /// How long a user may take.
    pub login_timeout: Duration,
    /// How long one request may take.
    pub timeout: Duration,
    /// The checks that are judged, as [`selects`] takes them; all if empty.
    pub checks: Vec<String>,
    /// Ends the run.
    pub shutdown: CancellationToken,
}

/// Shows a URL to a user, or opens it.
pub type Login = Arc<dyn Fn(&str) + Send + Sync>;

/// The result, and what it was judged by.
#[derive(Debug)]
pub struct IssuerRun {
    /// The verdicts.
    pub checked: CheckedServer,
    /// All that was sent and came.
    pub traces: Vec<Trace>,
}

/// Probes an authorization server, and judges what it does.
pub async fn check_issuer(options: &IssuerOptions) -> IssuerRun {
    let mut checked = CheckedServer::new(options.issuer.clone(), Transport::Http);
    let mut prober = IssuerProber::new(options);
    let failed = tokio::select! {
        probed = Box::pin(prober.probe()) => probed.err(),
        () = options.shutdown.cancelled() => {
            checked.is_interrupted = true;
            None
        }
    };
    let (traces, missing) = prober.close().await;
    if failed.is_some() {
        checked.error = failed;
        return IssuerRun { checked, traces };
    }
    let facts = Facts {
        role: Role::Issuer,
        resource: options.resource.clone(),
        endpoint: Some(options.issuer.clone()),
        missing,
        ..Facts::default()
    };
    let all: Vec<_> = traces.iter().collect();
    let is_selected = |id: &str| options.checks.is_empty() || options.checks.iter().any(|it| selects(it, id));
    let evidence = Evidence::new(&all, Version::LATEST, Transport::Http, facts);
    let outcomes = judge_selected(&evidence, checks_of(Role::Issuer).filter(|check| is_selected(&check.id)));
    checked.versions.push(checked_version(&all, Version::LATEST, &outcomes));
    drop(evidence);
    IssuerRun { checked, traces }
}
