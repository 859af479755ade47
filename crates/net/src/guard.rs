//! Protection against DNS rebinding: `Host` and `Origin` are checked on every request of every network transport
//! (2026-07-28, Streamable HTTP: Security & Endpoint).

use std::net::IpAddr;

use http::{HeaderMap, Uri, header};

/// The host names of a server.
#[derive(Clone, Debug)]
pub struct HostPolicy {
    loopback: bool,
    allowed: Vec<String>,
}

/// Why a request gets the status 403.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForbiddenRequest {
    #[error("the Host header is missing")]
    NoHost,
    #[error("more than one {0}")]
    Several(&'static str),
    #[error("the host {0:?} is not served here")]
    Host(String),
    #[error("the origin {0:?} is not allowed")]
    Origin(String),
}

impl HostPolicy {
    /// A server on a loopback address accepts loopback names only. On another address it accepts any IP address as
    /// well, which a rebinding attack cannot use. `allowed` has more hosts. An origin must be the requested host, a
    /// loopback host, or an allowed one.
    pub fn new(bound: IpAddr, allowed: impl IntoIterator<Item = String>) -> Self {
        let allowed = allowed.into_iter().map(|host| host.to_ascii_lowercase()).collect();
        HostPolicy { loopback: bound.is_loopback(), allowed }
    }

    /// Checks `Host` and `Origin` of a request.
    ///
    /// # Errors
    /// The reason for the status 403.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ForbiddenRequest> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("\u{fffd}"));
        let host = text(header::HOST).ok_or(ForbiddenRequest::NoHost)?;
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Err(ForbiddenRequest::Several("Host"));
        }
        let target = uri.authority().map(http::uri::Authority::as_str);
        if let Some(host) = [Some(host), target].into_iter().flatten().find(|host| !self.serves(host)) {
            return Err(ForbiddenRequest::Host(host.to_owned()));
        }
        if headers.get_all(header::ORIGIN).iter().count() > 1 {
            return Err(ForbiddenRequest::Several("Origin"));
        }
        match text(header::ORIGIN) {
            None => Ok(()),
            Some(origin) => {
                let authority = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
                match authority.is_some_and(|authority| authority == host || self.is_own(authority)) {
                    true => Ok(()),
                    false => Err(ForbiddenRequest::Origin(origin.to_owned())),
                }
            }
        }
    }

    /// Whether requests may be addressed to this host.
    fn serves(&self, authority: &str) -> bool {
        self.is_own(authority) || (!self.loopback && host(authority).is_some_and(|host| host.parse::<IpAddr>().is_ok()))
    }

    /// Whether this is a loopback host or one that was allowed by name.
    fn is_own(&self, authority: &str) -> bool {
        // The usual names are known without parsing.
        let is_usual = |name: &str| {
            let port = authority.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
            port.is_some_and(|port| !port.is_empty() && port.len() <= 5 && port.bytes().all(|it| it.is_ascii_digit()))
        };
        if is_usual("127.0.0.1") || is_usual("localhost") {
            return true;
        }
        let Some(host) = host(authority) else { return false };
        match host.parse::<IpAddr>() {
            Ok(address) if address.is_loopback() => true,
            _ => host == "localhost" || self.allowed.contains(&host),
        }
    }
}

fn host(authority: &str) -> Option<String> {
    let authority = authority.parse::<http::uri::Authority>().ok()?;
    let is_plain = !authority.as_str().contains('@');
    is_plain.then(|| authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &HostPolicy, host: &'static str, origin: Option<&'static str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, http::HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, http::HeaderValue::from_static(origin));
        }
        policy.check(&headers, &Uri::from_static("/mcp")).is_ok()
    }

    #[test]
    fn a_loopback_server_answers_to_loopback_names_only() {
        let policy = HostPolicy::new([127, 0, 0, 1].into(), []);
        for host in ["127.0.0.1:80", "localhost", "LOCALHOST:9", "[::1]:80", "127.9.9.9"] {
            assert!(check(&policy, host, None), "{host}");
        }
        for host in
            ["evil.example.com", "127.0.0.1.evil.com", "10.0.0.1", "", "localhost.evil.com", "evil@localhost", "a b"]
        {
            assert!(!check(&policy, host, None), "{host}");
        }
        assert!(policy.check(&HeaderMap::new(), &Uri::from_static("/mcp")).is_err());
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, http::HeaderValue::from_static("localhost"));
        assert!(policy.check(&headers, &Uri::from_static("http://evil.example.com/mcp")).is_err(), "absolute form");
        headers.append(header::HOST, http::HeaderValue::from_static("localhost"));
        assert!(policy.check(&headers, &Uri::from_static("/mcp")).is_err(), "two hosts");
    }

    #[test]
    fn an_origin_must_be_one_of_the_hosts() {
        let policy = HostPolicy::new([127, 0, 0, 1].into(), ["Dev.test".into()]);
        for origin in ["http://127.0.0.1:6274", "https://localhost", "http://[::1]:1", "http://dev.test"] {
            assert!(check(&policy, "127.0.0.1:80", Some(origin)), "{origin}");
        }
        for origin in ["http://evil.example.com", "null", "file://localhost", "http://localhost@evil.com", ""] {
            assert!(!check(&policy, "127.0.0.1:80", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn a_public_server_answers_to_addresses_but_not_to_unknown_names() {
        let policy = HostPolicy::new([0, 0, 0, 0].into(), []);
        assert!(check(&policy, "192.168.1.5:80", None));
        assert!(!check(&policy, "mock.internal", None));
        assert!(check(&policy, "192.168.1.5:80", Some("http://192.168.1.5:80")));
        assert!(!check(&policy, "192.168.1.5:80", Some("http://6.6.6.6")), "an address is no origin of ours");
        assert!(check(&HostPolicy::new([0, 0, 0, 0].into(), ["mock.internal".into()]), "mock.internal:80", None));
    }
}
