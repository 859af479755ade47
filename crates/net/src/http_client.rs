//! What all HTTP clients share: TLS, proxies, and texts for messages.

use std::{error::Error, net::IpAddr};

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

/// An error of an HTTP client. The text has its causes, each once, and not the URL, which may contain a secret.
#[derive(Debug, thiserror::Error)]
#[error("{}", with_causes(.0))]
pub struct HttpError(#[source] reqwest::Error);

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        HttpError(error.without_url())
    }
}

/// The text of an [`HttpError`].
pub fn describe(error: reqwest::Error) -> String {
    HttpError::from(error).to_string()
}

fn with_causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
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
    fn a_url_is_shown_without_its_secrets() {
        assert_eq!(display_url("http://u:p@h:1/mcp?token=x#y"), "http://h:1/mcp");
    }
}
