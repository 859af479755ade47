//! Locations and validation of metadata (RFC 9728, RFC 8414; 2026-07-28, Authorization Server Discovery).

use reqwest::Url;
use serde::Deserialize;

use super::{AuthError, dpop, ssrf_guard::SsrfGuard};
use rehearse_net::http_client::display_url;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// The metadata of a protected resource (RFC 9728, section 2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct ResourceMetadata {
    pub(super) resource: Option<String>,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    dpop_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(default)]
    dpop_bound_access_tokens_required: bool,
}

/// The metadata of an authorization server (RFC 8414, section 2; OpenID Connect Discovery 1.0, section 3; RFC 9207,
/// section 3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) registration_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// (RFC 9449, section 5.1)
    pub(super) dpop_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

impl ResourceMetadata {
    /// Whether the resource takes, or requires, tokens that are bound to our kind of key.
    pub(super) fn takes_dpop(&self) -> bool {
        let algorithms = self.dpop_signing_alg_values_supported.as_deref();
        dpop::is_supported(algorithms) || (self.dpop_bound_access_tokens_required && algorithms.is_none())
    }

    /// The identifier of the resource for token requests, unchanged.
    ///
    /// # Errors
    /// [`AuthError::Resource`] if it is not the server: another origin, or not a parent of its path (RFC 9728, section
    /// 3.3; metadata at the root of an origin apply to all paths).
    pub(super) fn resource_of(&self, server: &Url) -> Result<&str, AuthError> {
        let stated = self.resource.as_deref().unwrap_or_default();
        let is_of = |resource: &Url| {
            let (whole, part) = (server.path(), resource.path().trim_end_matches('/'));
            let is_above = whole.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            resource.origin() == server.origin()
                && is_above
                && resource.fragment().is_none()
                && resource.query().is_none_or(|query| server.query() == Some(query))
        };
        match Url::parse(stated) {
            Ok(resource) if is_of(&resource) => Ok(stated),
            _ => Err(AuthError::Resource { resource: stated.to_owned(), server: display_url(server.as_str()) }),
        }
    }
}

impl ServerMetadata {
    /// The default endpoints of an authorization server without metadata (2025-03-26, Fallbacks for Servers without
    /// Metadata Discovery).
    pub(super) fn without_discovery(base: &str) -> ServerMetadata {
        let url = |path: &str| Some(format!("{base}{path}"));
        ServerMetadata {
            issuer: base.to_owned(),
            authorization_endpoint: url("/authorize"),
            token_endpoint: url("/token"),
            registration_endpoint: url("/register"),
            ..ServerMetadata::default()
        }
    }

    /// Checks that these are the metadata of this issuer, by string comparison (RFC 8414, section 3.3).
    ///
    /// # Errors
    /// [`AuthError::Issuer`].
    pub(super) fn check_issuer(&self, expected: &str) -> Result<(), AuthError> {
        match self.issuer == expected {
            true => Ok(()),
            false => Err(AuthError::Issuer { expected: expected.to_owned(), found: self.issuer.clone() }),
        }
    }

    /// Checks that the authorization server supports PKCE (2026-07-28, Authorization Code Protection).
    ///
    /// # Errors
    /// [`AuthError::NoPkce`], also if the metadata do not say.
    pub(super) fn check_pkce(&self) -> Result<(), AuthError> {
        let methods = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        match methods.iter().any(|method| method == "S256") {
            true => Ok(()),
            false => Err(AuthError::NoPkce { issuer: self.issuer.clone() }),
        }
    }
}

/// The locations of the metadata of a server that does not name one, in order (2026-07-28, Protected Resource Metadata
/// Discovery Requirements).
pub(super) fn resource_metadata_urls(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut urls = vec![with_path(server, &format!("{RESOURCE}{path}"))];
    if !path.is_empty() {
        urls.push(with_path(server, RESOURCE));
    }
    urls
}

/// The locations of the metadata of an authorization server, in order (2026-07-28, Authorization Server Metadata
/// Discovery).
///
/// # Errors
/// [`AuthError::NoMetadata`] if this cannot be an issuer: not a URL, or with a query or fragment (RFC 8414, section 2).
pub fn server_metadata_urls(issuer: &str) -> Result<Vec<Url>, AuthError> {
    let url = Url::parse(issuer).ok().filter(|url| {
        let is_web = matches!(url.scheme(), "https" | "http") && url.host_str().is_some();
        is_web && url.query().is_none() && url.fragment().is_none()
    });
    let url = url.ok_or_else(|| AuthError::NoMetadata { issuer: issuer.to_owned() })?;
    let path = url.path().trim_end_matches('/');
    let mut urls = vec![with_path(&url, &format!("{SERVER}{path}")), with_path(&url, &format!("{OPENID}{path}"))];
    if !path.is_empty() {
        urls.push(with_path(&url, &format!("{path}{OPENID}")));
    }
    Ok(urls)
}

/// The authorization base URL of servers without resource metadata (2025-03-26, Authorization Base URL).
pub(super) fn base_of(server: &Url) -> String {
    server.origin().ascii_serialization()
}

/// The resource identifier of a server without metadata: without user, query and fragment, and without the slash of an
/// empty path (2026-07-28, Canonical Server URI).
pub(super) fn canonical(server: &Url) -> String {
    let text = display_url(server.as_str());
    if server.path() == "/" { text.trim_end_matches('/').to_owned() } else { text }
}

/// An endpoint of an authorization server that passes the SSRF guard.
///
/// # Errors
/// [`AuthError::NoEndpoint`] if there is none, and those of [`SsrfGuard::check`] (2026-07-28, Communication Security).
pub(super) fn endpoint(
    metadata: &ServerMetadata,
    stated: Option<&String>,
    name: &'static str,
    ssrf_guard: &SsrfGuard,
) -> Result<Url, AuthError> {
    let none = || AuthError::NoEndpoint { issuer: metadata.issuer.clone(), endpoint: name };
    let url = Url::parse(stated.ok_or_else(none)?).map_err(|_| none())?;
    ssrf_guard.check(url)
}

fn with_path(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn texts(urls: &[Url]) -> Vec<&str> {
        urls.iter().map(Url::as_str).collect()
    }

    #[test]
    fn metadata_of_a_resource_are_looked_for_at_its_path_and_then_at_the_root() {
        for (server, expected) in [
            (
                "https://h:8/a/mcp?x=1#y",
                &[
                    "https://h:8/.well-known/oauth-protected-resource/a/mcp",
                    "https://h:8/.well-known/oauth-protected-resource",
                ][..],
            ),
            (
                "https://h/mcp/",
                &[
                    "https://h/.well-known/oauth-protected-resource/mcp",
                    "https://h/.well-known/oauth-protected-resource",
                ],
            ),
            ("https://h", &["https://h/.well-known/oauth-protected-resource"]),
        ] {
            assert_eq!(texts(&resource_metadata_urls(&url(server))), expected);
        }
    }

    #[test]
    fn metadata_of_an_issuer_with_a_path_are_never_looked_for_at_the_root() {
        let urls = server_metadata_urls("https://as/tenant1").expect("an issuer");
        let expected = [
            "https://as/.well-known/oauth-authorization-server/tenant1",
            "https://as/.well-known/openid-configuration/tenant1",
            "https://as/tenant1/.well-known/openid-configuration",
        ];
        assert_eq!(texts(&urls), expected);
        assert_eq!(server_metadata_urls("https://as/tenant1/").expect("an issuer"), urls);
        let urls = server_metadata_urls("https://as").expect("an issuer");
        assert_eq!(
            texts(&urls),
            ["https://as/.well-known/oauth-authorization-server", "https://as/.well-known/openid-configuration"]
        );
        for issuer in ["nonsense", "https://as?x", "https://as#x", "file:///x"] {
            assert!(server_metadata_urls(issuer).is_err(), "{issuer}");
        }
    }

    #[test]
    fn a_resource_is_the_server_or_what_the_server_is_part_of() {
        let resource_of = |resource: Option<&str>, server: &str| {
            let metadata = ResourceMetadata { resource: resource.map(str::to_owned), ..ResourceMetadata::default() };
            metadata.resource_of(&url(server)).map(str::to_owned)
        };
        for (resource, server) in [
            ("https://h/mcp", "https://h/mcp"),
            ("https://h", "https://h/mcp"),
            ("https://h/", "https://h"),
            ("https://h", "https://h/"),
            ("https://H:443/mcp/", "https://h/mcp?x=1"),
            ("https://h/a", "https://h/a/mcp"),
        ] {
            assert_eq!(resource_of(Some(resource), server).as_deref(), Ok(resource));
        }
        for (resource, server) in [
            ("https://evil.example.com/mcp", "https://h/mcp"),
            ("http://h/mcp", "https://h/mcp"),
            ("https://h/mc", "https://h/mcp"),
            ("https://h/mcp/more", "https://h/mcp"),
            ("https://h/mcp#x", "https://h/mcp"),
            ("https://h/mcp?x=2", "https://h/mcp?x=1"),
            ("nonsense", "https://h/mcp"),
        ] {
            assert!(matches!(resource_of(Some(resource), server), Err(AuthError::Resource { .. })), "{resource}");
        }
        assert!(resource_of(None, "https://h/mcp").is_err());
    }

    #[test]
    fn issuers_are_compared_as_exact_strings() {
        let metadata = ServerMetadata { issuer: "https://as".into(), ..ServerMetadata::default() };
        assert_eq!(metadata.check_issuer("https://as"), Ok(()));
        for other in ["https://as/", "https://AS", "https://as:443", "http://as"] {
            assert!(metadata.check_issuer(other).is_err(), "{other}");
        }
    }

    #[test]
    fn pkce_has_to_be_promised() {
        let with = |methods: Option<&[&str]>| {
            let methods = methods.map(|methods| methods.iter().map(|&method| method.to_owned()).collect());
            ServerMetadata { code_challenge_methods_supported: methods, ..ServerMetadata::default() }.check_pkce()
        };
        assert_eq!(with(Some(&["plain", "S256"])), Ok(()));
        assert!(with(Some(&["plain"])).is_err() && with(Some(&[])).is_err() && with(None).is_err());
    }

    #[test]
    fn a_resource_takes_tokens_that_are_bound_to_a_key_if_it_says_so() {
        for (metadata, takes_dpop) in [
            ("{}", false),
            (r#"{"dpop_bound_access_tokens_required":true}"#, true),
            (r#"{"dpop_signing_alg_values_supported":["ES256"]}"#, true),
            (r#"{"dpop_bound_access_tokens_required":true,"dpop_signing_alg_values_supported":["PS256"]}"#, false),
        ] {
            let metadata: ResourceMetadata = serde_json::from_str(metadata).expect("metadata");
            assert_eq!(metadata.takes_dpop(), takes_dpop, "{metadata:?}");
        }
    }

    #[test]
    fn a_server_without_metadata_is_requested_in_canonical_form() {
        assert_eq!(canonical(&url("https://H/")), "https://h");
        assert_eq!(canonical(&url("https://user:pass@h/mcp?key=1#x")), "https://h/mcp");
        assert_eq!(canonical(&url("https://h/mcp/")), "https://h/mcp/");
        assert_eq!(base_of(&url("https://h:8/v1/mcp")), "https://h:8");
    }
}
