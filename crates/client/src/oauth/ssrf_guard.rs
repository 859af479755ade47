//! The SSRF guard: which URLs a server may name (2026-07-28, Security Best Practices, Server-Side Request Forgery; RFC
//! 9728, section 7.7).

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use tokio::net::lookup_host;
use url::Host;

use super::AuthError;
use crate::url::parse_url;
use rehearse_net::http_client::{display_url, is_loopback};

/// Allows a server to name only hosts in its own network zone or a more public one. Hosts that the user has named are
/// always allowed. Clones share the state. Hosts behind a proxy are resolved there, and only checked by their URL.
#[derive(Clone, Debug)]
pub(crate) struct SsrfGuard(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    server: Url,
    hosts: Mutex<Hosts>,
}

#[derive(Debug, Default)]
struct Hosts {
    /// Hosts that the user has named.
    trusted: BTreeSet<String>,
    /// Hosts that servers have named. Only their addresses are checked, and not that of a proxy.
    named: BTreeSet<String>,
}

/// A host that has only addresses in a less public zone than the server.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("it is inside this machine or network and the server is not")]
pub(super) struct BlockedAddress;

/// From where an address can be reached, the most public zone first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NetworkZone {
    Public,
    Private,
    LinkLocal,
    Loopback,
}

impl SsrfGuard {
    /// A guard for this server, which the user has named.
    pub(super) fn new(server: Url) -> SsrfGuard {
        let trusted = server.host_str().map(str::to_owned).into_iter().collect();
        let hosts = Mutex::new(Hosts { trusted, named: BTreeSet::new() });
        SsrfGuard(Arc::new(Shared { server, hosts }))
    }

    /// A guard for requests to a URL that a server has named.
    ///
    /// # Errors
    /// Says why the server may not name it.
    pub(crate) fn of_named(server: &str, named: &Url) -> Result<SsrfGuard, String> {
        let guard = SsrfGuard::new(parse_url(server, &["http", "https"])?);
        let checked = guard.check(named.clone());
        checked.map(|_| guard).map_err(|error| error.to_string())
    }

    /// Allows the host of a URL that the user has named.
    pub(super) fn allow_host(&self, url: &str) {
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        self.0.hosts(|hosts| hosts.trusted.extend(host));
    }

    /// Returns the URL if it uses https, or http between programs on this machine, and if its zone is not less public
    /// than that of the server. A host name is checked by its addresses when it is resolved.
    ///
    /// # Errors
    /// [`AuthError::Insecure`] and [`AuthError::Internal`].
    pub(super) fn check(&self, url: Url) -> Result<Url, AuthError> {
        let server = &self.0.server;
        let is_within = url.scheme() == "http" && is_loopback(&url) && is_loopback(server);
        if url.scheme() != "https" && !is_within {
            return Err(AuthError::Insecure { url: display_url(url.as_str()) });
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        if self.0.hosts(|hosts| hosts.trusted.contains(&host)) {
            return Ok(url);
        }
        if NetworkZone::from_url(&url) > NetworkZone::from_url(server).or(Some(NetworkZone::Public)) {
            return Err(AuthError::Internal { url: display_url(url.as_str()) });
        }
        self.0.hosts(|hosts| hosts.named.insert(host));
        Ok(url)
    }
}

impl Shared {
    fn hosts<T>(&self, work: impl FnOnce(&mut Hosts) -> T) -> T {
        work(&mut self.hosts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The allowed addresses of a host.
    ///
    /// # Errors
    /// No address is allowed.
    async fn permitted_addresses(
        &self,
        host: &str,
        mut addresses: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, BlockedAddress> {
        let is_judged = self.hosts(|hosts| hosts.named.contains(host) && !hosts.trusted.contains(host));
        let zone = |address: &SocketAddr| NetworkZone::from_ip(address.ip());
        if is_judged && addresses.iter().any(|address| zone(address) > NetworkZone::Public) {
            let limit = self.server_zone().await;
            addresses.retain(|address| zone(address) <= limit);
            if addresses.is_empty() {
                return Err(BlockedAddress);
            }
        }
        Ok(addresses)
    }

    /// The most public zone of the addresses of the server.
    async fn server_zone(&self) -> NetworkZone {
        if let Some(zone) = NetworkZone::from_url(&self.server) {
            return zone;
        }
        match lookup_host((self.server.host_str().unwrap_or_default(), 0)).await {
            Ok(addresses) => {
                addresses.map(|address| NetworkZone::from_ip(address.ip())).min().unwrap_or(NetworkZone::Public)
            }
            Err(_) => NetworkZone::Public,
        }
    }
}

impl Resolve for SsrfGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let shared = self.0.clone();
        Box::pin(async move {
            let addresses = lookup_host((name.as_str(), 0)).await?.collect();
            let addresses = shared.permitted_addresses(name.as_str(), addresses).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

impl NetworkZone {
    /// The zone in a URL; `None` for a name that has to be resolved.
    fn from_url(url: &Url) -> Option<NetworkZone> {
        match url.host()? {
            Host::Ipv4(address) => Some(NetworkZone::from_ip(address.into())),
            Host::Ipv6(address) => Some(NetworkZone::from_ip(address.into())),
            Host::Domain(name) => {
                let name = name.trim_end_matches('.');
                (name == "localhost" || name.ends_with(".localhost")).then_some(NetworkZone::Loopback)
            }
        }
    }

    /// The zone by the registries of special-purpose addresses (RFC 6890). An IPv4 address in an IPv6 one counts.
    fn from_ip(address: IpAddr) -> NetworkZone {
        match address {
            IpAddr::V4(address) => NetworkZone::from_ipv4(address),
            IpAddr::V6(address) if address.is_loopback() || address.is_unspecified() => NetworkZone::Loopback,
            IpAddr::V6(address) if address.is_unicast_link_local() || address.is_multicast() => NetworkZone::LinkLocal,
            IpAddr::V6(address) if address.is_unique_local() => NetworkZone::Private,
            IpAddr::V6(address) => match (address.to_ipv4(), address.octets()) {
                (Some(inner), _) => NetworkZone::from_ipv4(inner),
                // RFC 6052, section 2.1, and RFC 3056.
                (None, [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] | [0x20, 0x02, a, b, c, d, ..]) => {
                    NetworkZone::from_ipv4(Ipv4Addr::new(a, b, c, d))
                }
                _ => NetworkZone::Public,
            },
        }
    }

    fn from_ipv4(address: Ipv4Addr) -> NetworkZone {
        match address.octets() {
            [0 | 127, ..] => NetworkZone::Loopback,
            [169, 254, ..] | [224..=255, ..] => NetworkZone::LinkLocal,
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => NetworkZone::Private,
            _ => NetworkZone::Public,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::fetch::Fetcher;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn ssrf_guard(server: &str) -> SsrfGuard {
        SsrfGuard::new(url(server))
    }

    #[test]
    fn urls_in_metadata_use_tls_or_are_as_local_as_the_server() {
        let admit = |named: &str, server: &str| ssrf_guard(server).check(url(named));
        for (named, server) in [
            ("https://as/token", "https://h/mcp"),
            ("https://as/token", "http://127.0.0.1:1/mcp"),
            ("http://localhost:2/token", "http://127.0.0.1:1/mcp"),
        ] {
            assert!(admit(named, server).is_ok(), "{named}");
        }
        for (named, server) in [
            ("http://as/token", "https://h/mcp"),
            ("http://10.0.0.1/token", "http://10.0.0.1/mcp"),
            ("http://localhost:2/token", "https://h/mcp"),
            ("file:///etc/passwd", "http://localhost/mcp"),
        ] {
            assert!(matches!(admit(named, server), Err(AuthError::Insecure { .. })), "{named}");
        }
    }

    #[test]
    fn nothing_is_named_that_is_nearer_than_the_server() {
        let servers = ["https://h/", "https://10.0.0.1/", "https://169.254.1.1/", "https://127.0.0.2/"];
        for (from, names) in [
            (0, "https://as/ https://8.8.8.8/ https://[2606:4700::1]/"),
            (1, "https://10.9.9.9/ https://172.16.0.1/ https://192.168.1.1/ https://100.64.0.1/ https://[fd00::1]/"),
            (1, "https://[::ffff:10.0.0.2]/ https://[64:ff9b::a00:2]/ https://[2002:a00:2::1]/ https://0xa.2/"),
            (2, "https://169.254.169.254/ https://[fe80::1]/ https://[::ffff:a9fe:a9fe]/"),
            (3, "https://127.0.0.1:8443/ https://localhost/ https://a.localhost./ https://[::1]/ https://0/"),
            (3, "https://017700000001/"),
        ] {
            for (place, server) in servers.iter().enumerate() {
                for named in names.split(' ') {
                    let admitted = ssrf_guard(server).check(url(named));
                    assert_eq!(admitted.is_ok(), place >= from, "{server} names {named}");
                    assert!(matches!(admitted, Ok(_) | Err(AuthError::Internal { .. })));
                }
            }
        }
    }

    #[test]
    fn urls_of_the_user_may_be_in_any_network() {
        let ssrf_guard = ssrf_guard("https://h/mcp");
        ssrf_guard.allow_host("https://10.0.0.1/as");
        assert!(ssrf_guard.check(url("https://10.0.0.1:8443/token")).is_ok());
        assert!(ssrf_guard.check(url("https://10.0.0.2/token")).is_err());
        assert!(ssrf_guard.check(url("http://10.0.0.1/token")).is_err());
    }

    #[tokio::test]
    async fn a_name_is_judged_by_its_addresses() {
        let resolve = async |server: &str, named: bool, trusted: bool| {
            let ssrf_guard = ssrf_guard(server);
            if named {
                // The only name that resolves on every machine.
                ssrf_guard.0.hosts(|hosts| hosts.named.insert("localhost".to_owned()));
            }
            if trusted {
                ssrf_guard.allow_host("https://localhost/");
            }
            let found = ssrf_guard.resolve("localhost".parse().expect("a name")).await;
            found.map(Iterator::count).map_err(|error| error.to_string())
        };
        let why = "it is inside this machine or network and the server is not".to_owned();
        assert_eq!(resolve("https://192.0.2.1/mcp", true, false).await, Err(why));
        for (server, named, trusted) in [
            ("https://192.0.2.1/mcp", false, false),
            ("https://192.0.2.1/mcp", true, true),
            ("https://127.0.0.1/mcp", true, false),
        ] {
            assert!(resolve(server, named, trusted).await.is_ok_and(|count| count > 0), "{server}");
        }
    }

    #[tokio::test]
    async fn requests_go_to_no_address_that_may_not_be_named() {
        let ssrf_guard = ssrf_guard("https://192.0.2.1/mcp");
        ssrf_guard.0.hosts(|hosts| hosts.named.insert("localhost".to_owned()));
        let error = Fetcher::new(ssrf_guard).post_form(&url("https://localhost:1/token"), &[], None, None).await;
        assert_eq!(error, Err(AuthError::Internal { url: "https://localhost:1/token".to_owned() }));
    }
}
