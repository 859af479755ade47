//! A picture of a page, made by the user's own Chromium.

use std::{
    net::SocketAddr,
    path::{Path, absolute},
    process::Stdio,
    time::Duration,
};

use rehearse_system::{TempFolder, program};
use tokio::process::Command;

use super::{
    host::AppHost,
    page::{AppPage, PURPOSES},
};
use crate::cli::Failure;

/// The variable with the program, and arguments if it needs any.
const VARIABLE: &str = "REHEARSE_CHROMIUM";
/// How long the program may take.
const LIMIT: Duration = Duration::from_secs(60);
/// What it prints on standard error is shown up to here.
const MAX_ERROR: usize = 500;

/// The command line of the program.
///
/// # Errors
/// The user has named none.
pub(super) fn chromium() -> Result<Vec<String>, Failure> {
    let command = std::env::var(VARIABLE).unwrap_or_default();
    let words = match Path::new(&command).is_file() {
        true => vec![command],
        false => program::words(&command).map_err(|error| Failure::Usage(format!("the command has {error}")))?,
    };
    match words.is_empty() {
        true => Err(Failure::Usage(format!("--screenshot needs Chromium or Chrome; set {VARIABLE} to its path"))),
        false => Ok(words),
    }
}

/// Saves a picture of a page, when it has had five seconds of its own time. It reaches the host, and what it declares.
///
/// # Errors
/// The program cannot be run, or makes no picture.
pub(super) async fn save(chromium: &[String], host: &AppHost, page: &AppPage, file: &Path) -> Result<(), Failure> {
    let Some((program, arguments)) = chromium.split_first() else { return Ok(()) };
    let failed = |why: String| Failure::cannot(format!("cannot make a picture with {program}: {why}"));
    let profile = TempFolder::create(&std::env::temp_dir()).map_err(|error| failed(error.to_string()))?;
    let file = absolute(file).map_err(|error| failed(error.to_string()))?;
    let mut command: Command = program::command(program, None).into();
    command
        .args(arguments)
        .args(["--headless", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--window-size=800,600"])
        .arg("--virtual-time-budget=5000")
        .args(fence(host.addresses, page))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--screenshot={}", file.display()))
        .arg(&host.url)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = tokio::time::timeout(LIMIT, command.output()).await;
    let output = ended.map_err(|_| failed(format!("it has not ended after {LIMIT:?}")))?;
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() && file.is_file() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: String = said.trim().chars().take(MAX_ERROR).collect();
    Err(failed(format!("{} {said}", output.status)))
}

/// The options with which a page reaches nothing but these addresses and the hosts that it declares: a policy does not
/// stop `preconnect`, `dns-prefetch` and WebRTC. The first address is the proxy for all others, and refuses.
fn fence(addresses: [SocketAddr; 2], page: &AppPage) -> Vec<String> {
    let declared = PURPOSES.iter().flat_map(|(_, key)| page.origins(key));
    // What is no host is a scheme, `https:`, which allows every host of it.
    let host = |origin: &str| match origin.split_once("://") {
        Some((_, rest)) => rest.split('/').next().unwrap_or_default().to_owned(),
        None if origin.ends_with(':') => "*".to_owned(),
        None => origin.split('/').next().unwrap_or_default().to_owned(),
    };
    let hosts: Vec<_> = declared.map(host).collect();
    let names = hosts.iter().map(|host| host.rsplit_once(':').map_or(&**host, |(name, _)| name));
    let known = names.map(|name| format!(", EXCLUDE {name}")).collect::<String>();
    let [outer, inner] = addresses;
    vec![
        format!("--proxy-server={outer}"),
        format!("--proxy-bypass-list=<-loopback>;{outer};{inner};{}", hosts.join(";")),
        format!("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {}{known}", outer.ip()),
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
        "--webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
        "--dns-prefetch-disable".to_owned(),
        "--disable-background-networking".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_reaches_its_host_and_what_it_declares() {
        let addresses = ["127.0.0.1:1", "127.0.0.1:2"].map(|address| address.parse().expect("an address"));
        let csp = json!({ "connectDomains": ["wss://a.example:8443/x"], "resourceDomains": ["https://*.b.example"] });
        let page =
            AppPage { uri: String::new(), mime_type: String::new(), html: String::new(), ui: json!({ "csp": csp }) };
        let options = fence(addresses, &page);
        assert_eq!(options[0], "--proxy-server=127.0.0.1:1");
        let bypassed = "<-loopback>;127.0.0.1:1;127.0.0.1:2;a.example:8443;*.b.example";
        assert_eq!(options[1], format!("--proxy-bypass-list={bypassed}"));
        let rules = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE a.example, EXCLUDE *.b.example";
        assert_eq!(options[2], format!("--host-resolver-rules={rules}"));
    }
}
