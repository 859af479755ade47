//! What all HTTP clients share: TLS, proxies, and texts for messages.

use std::{error::Error, net::IpAddr};

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Client, ClientBuilder, Url, redirect};

use super::tls;

/// The common settings of all HTTP clients; without a proxy for this machine. Redirects are not followed: one could take
/// keys and data to another server.
pub fn builder(is_near: bool) -> ClientBuilder {
    let builder = Client::builder().tls_backend_preconfigured((*tls::config()).clone());
    let builder = builder.redirect(redirect::Policy::none());
    if is_near { builder.no_proxy() } else { builder }
}

/// Whether the host is this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.ends_with(".localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// The URL for messages: without user, password, query and fragment.
pub fn display_url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else { return text.to_owned() };
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// An error of an HTTP client. The text has its causes, each once, and the proxy of the environment, but not the URL,
/// which may contain a secret.
#[derive(Debug, thiserror::Error)]
#[error("{}{}", with_causes(.error), after(.error, .proxy.as_deref()))]
pub struct HttpError {
    #[source]
    error: reqwest::Error,
    proxy: Option<String>,
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        HttpError { proxy: error.url().and_then(proxy_of), error: error.without_url() }
    }
}

/// The proxy through which a request to this URL goes, and the variable that names it: `the proxy http://h:1 of HTTP_PROXY`.
pub fn proxy_of(url: &Url) -> Option<String> {
    proxy(url, &Matcher::from_env(), |name| std::env::var_os(name).is_some())
}

fn proxy(url: &Url, proxies: &Matcher, is_set: impl Fn(&str) -> bool) -> Option<String> {
    let uri = Some(url.as_str().parse().ok()?).filter(|_| !is_loopback(url))?;
    let proxy = proxies.intercept(&uri)?;
    let own = if url.scheme() == "https" { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let name = own.into_iter().chain(["ALL_PROXY", "all_proxy"]).find(|name| is_set(name)).unwrap_or("the environment");
    Some(format!("the proxy {} of {name}", display_url(&proxy.uri().to_string())))
}

/// What is true of the way to the server, or may be.
fn after(error: &reqwest::Error, proxy: Option<&str>) -> String {
    match proxy {
        Some(proxy) => format!(", through {proxy}; NO_PROXY names the hosts without one"),
        None if error.is_connect() && with_causes(error).contains("refused") => "; is it running?".to_owned(),
        None => String::new(),
    }
}

/// What the libraries say around the reason why there is no connection.
const AROUND: [&str; 3] = ["error sending request", "client error (Connect)", "tcp connect error"];

/// The text of an [`HttpError`].
pub fn describe(error: reqwest::Error) -> String {
    HttpError::from(error).to_string()
}

fn with_causes(error: &reqwest::Error) -> String {
    let (mut text, mut next) = (String::new(), Some(error as &dyn Error));
    while let Some(cause) = next {
        let words = cause.to_string();
        let is_around = error.is_connect() && AROUND.contains(&&*words);
        if !is_around && !text.contains(&words) {
            text = if text.is_empty() { words } else { format!("{text}: {words}") };
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_bypass_proxies() {
        let loopback = |text: &str| is_loopback(&text.parse().expect("a URL"));
        for url in ["http://localhost:1/", "http://127.3.2.1/", "http://[::1]:80/mcp", "ws://a.localhost/"] {
            assert!(loopback(url), "{url}");
        }
        for url in ["http://example.com/", "http://10.0.0.1/", "http://localhost.example/"] {
            assert!(!loopback(url), "{url}");
        }
    }

    #[test]
    fn the_proxy_of_a_url_is_named_with_its_variable_and_without_its_secrets() {
        let proxies = Matcher::builder().all("http://u:p@all:1").http("http://plain:2").no("near.example").build();
        let of = |url: &str| proxy(&url.parse().expect("a URL"), &proxies, |name| name != "https_proxy");
        assert_eq!(of("http://h.example/mcp").as_deref(), Some("the proxy http://plain:2/ of HTTP_PROXY"));
        for url in ["http://near.example/mcp", "http://127.0.0.1/mcp"] {
            assert_eq!(of(url), None, "{url}");
        }
        let of_all = proxy(&"https://h.example".parse().expect("a URL"), &proxies, |name| name == "ALL_PROXY");
        assert_eq!(of_all.as_deref(), Some("the proxy http://all:1/ of ALL_PROXY"));
    }

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        assert_eq!(display_url("http://u:p@h:1/mcp?token=x#y"), "http://h:1/mcp");
    }
}
