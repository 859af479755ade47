//! The browser of a client that is checked. It has no window: it requests the page, and follows the redirect to the
//! client.

use std::time::Duration;

use tokio::runtime;

use crate::cli::{Exit, Failure};
use rehearse_client::download;

/// How long a page may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The largest page.
const LARGEST: usize = 1 << 20;
/// What is requested of the mock in place of a URL that is not one of the web.
const OPENED: &str = "/.well-known/rehearse-opened";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BrowseArgs {
    url: String,
}

/// Requests a page of this machine.
///
/// # Errors
/// There is no such page.
pub(in crate::cli) fn browse(args: &BrowseArgs) -> Result<Exit, Failure> {
    let url = url::Url::parse(&args.url).map_err(|error| Failure::cannot(error.to_string()))?;
    let mock = std::env::var("REHEARSE_URL").ok().and_then(|url| url::Url::parse(&url).ok());
    let page = match (url.scheme(), url.host_str(), mock) {
        ("http" | "https", Some("localhost" | "127.0.0.1" | "[::1]"), _) => url,
        ("http" | "https", ..) | (.., None) => return Err(Failure::cannot("only pages of this machine are opened")),
        (.., Some(mock)) => mock.join(OPENED).map_err(|error| Failure::cannot(error.to_string()))?,
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::cannot(error.to_string()))?;
    runtime
        .block_on(download(page.as_str(), LIMIT, LARGEST))
        .map(|_| Exit::Success)
        .map_err(|error| Failure::cannot(error.to_string()))
}
