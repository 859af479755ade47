//! The identity of the client at an authorization server (2026-07-28, Client Registration; RFC 7591).

use std::{fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{Url, header::HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;

use super::{AuthError, Secret, SigningKey, discovery::ServerMetadata};
use rehearse_net::http_client::is_loopback;

/// The identity of the client. A registered id is used first, then the document, then dynamic registration.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name in a dynamic registration.
    pub name: String,
    /// A client that is already registered.
    pub registered: Option<PreregisteredClient>,
    /// The https URL of the client metadata document, which is the client id where such documents are supported.
    pub document: Option<String>,
    /// The variable with the secret of the registered client, for a later renewal of the token.
    pub secret_variable: Option<String>,
    /// Looks up a variable.
    pub lookup: fn(&str) -> Option<String>,
}

/// The client that a token was issued to, for its renewal. Dynamic registrations are stored separately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredClient {
    pub(super) id: String,
    pub(super) method: ClientAuthMethod,
    /// The variable with the secret, which itself is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret_variable: Option<String>,
    /// Whether the id is the URL of a document.
    pub(super) is_document: bool,
    /// Whether it acts for itself, so that no user is needed for the next token.
    pub(super) is_unattended: bool,
}

/// A client that is registered at an authorization server. Its id is not valid at any other.
#[derive(Clone, Debug)]
pub struct PreregisteredClient {
    /// The client id.
    pub id: String,
    /// The credentials of the client.
    pub secret: ClientSecret,
    /// The issuer of the registration; by default the first one that the server names.
    pub issuer: Option<String>,
}

/// The credentials of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientSecret {
    /// None: a public client.
    None,
    /// A client secret.
    Text(Secret),
    /// A signature (RFC 7523, section 2.2).
    Key(Arc<SigningKey>),
}

/// The authentication method at the token endpoint (RFC 7591, section 2: `token_endpoint_auth_method`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ClientAuthMethod {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "private_key_jwt")]
    Key,
}

/// A client as one authorization server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: ClientSecret,
    pub(super) method: ClientAuthMethod,
}

/// The result of a dynamic registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DynamicClient {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Secret>,
    pub(super) method: ClientAuthMethod,
    pub(super) redirect_uri: String,
}

impl Default for Identity {
    /// A client without a registration.
    fn default() -> Identity {
        Identity {
            name: "rehearse".to_owned(),
            registered: None,
            document: None,
            secret_variable: None,
            lookup: |_| None,
        }
    }
}

impl Identity {
    /// What is stored about a client; nothing after a dynamic registration.
    pub(super) fn stored_client(&self, client: &Client, is_unattended: bool) -> Option<StoredClient> {
        let is_registered = self.registered.as_ref().is_some_and(|registered| registered.id == client.id);
        let is_document = !is_registered && self.document.as_ref() == Some(&client.id);
        (is_registered || is_document).then(|| StoredClient {
            id: client.id.clone(),
            method: client.method,
            secret_variable: self.secret_variable.clone().filter(|_| is_registered),
            is_document,
            is_unattended,
        })
    }
}

impl StoredClient {
    /// The client with its secret; `None` if the secret was not in a variable.
    ///
    /// # Errors
    /// [`AuthError::NoSecret`] if the variable is empty.
    pub(super) fn client(&self, lookup: fn(&str) -> Option<String>) -> Result<Option<Client>, AuthError> {
        let secret = match (self.method, &self.secret_variable) {
            (ClientAuthMethod::None, _) => ClientSecret::None,
            (ClientAuthMethod::Basic | ClientAuthMethod::Post, Some(variable)) => {
                let secret = lookup(variable).filter(|secret| !secret.is_empty());
                let none = || AuthError::NoSecret { variable: variable.clone() };
                ClientSecret::Text(Secret::new(secret.ok_or_else(none)?))
            }
            _ => return Ok(None),
        };
        Ok(Some(Client { id: self.id.clone(), secret, method: self.method }))
    }
}

impl ClientAuthMethod {
    fn from_name(name: &str) -> Option<ClientAuthMethod> {
        Some(match name {
            "none" => ClientAuthMethod::None,
            "client_secret_basic" => ClientAuthMethod::Basic,
            "client_secret_post" => ClientAuthMethod::Post,
            "private_key_jwt" => ClientAuthMethod::Key,
            _ => return None,
        })
    }

    /// The method for a client with this secret. The default is that of RFC 8414, section 2.
    fn choose(secret: &ClientSecret, metadata: &ServerMetadata) -> ClientAuthMethod {
        match (secret, &metadata.token_endpoint_auth_methods_supported) {
            (ClientSecret::None, _) => ClientAuthMethod::None,
            (ClientSecret::Key(_), _) => ClientAuthMethod::Key,
            (ClientSecret::Text(_), None) => ClientAuthMethod::Basic,
            (ClientSecret::Text(_), Some(names)) => {
                let known = |method: ClientAuthMethod| {
                    names.iter().any(|name| ClientAuthMethod::from_name(name) == Some(method))
                };
                [ClientAuthMethod::Basic, ClientAuthMethod::Post, ClientAuthMethod::None]
                    .into_iter()
                    .find(|&method| known(method))
                    .unwrap_or(ClientAuthMethod::Basic)
            }
        }
    }

    /// The method for a dynamic registration: a public client is preferred, because it has no secret to protect.
    fn preferred(metadata: &ServerMetadata) -> ClientAuthMethod {
        let Some(names) = &metadata.token_endpoint_auth_methods_supported else { return ClientAuthMethod::Basic };
        let known =
            |method: ClientAuthMethod| names.iter().any(|name| ClientAuthMethod::from_name(name) == Some(method));
        [ClientAuthMethod::None, ClientAuthMethod::Basic, ClientAuthMethod::Post]
            .into_iter()
            .find(|&method| known(method))
            .unwrap_or(ClientAuthMethod::None)
    }
}

impl fmt::Display for ClientAuthMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientAuthMethod::None => "none",
            ClientAuthMethod::Basic => "client_secret_basic",
            ClientAuthMethod::Post => "client_secret_post",
            ClientAuthMethod::Key => "private_key_jwt",
        })
    }
}

impl PreregisteredClient {
    /// The client, if it is registered with this authorization server; `bound` is the one that it was first used with.
    ///
    /// # Errors
    /// [`AuthError::IssuerMismatch`] (2026-07-28, Authorization Server Binding).
    pub(super) fn client_for(&self, metadata: &ServerMetadata, bound: Option<&str>) -> Result<Client, AuthError> {
        match self.issuer.as_deref().or(bound) {
            Some(registered) if registered != metadata.issuer => {
                Err(AuthError::IssuerMismatch { registered: registered.to_owned(), issuer: metadata.issuer.clone() })
            }
            _ => {
                let method = ClientAuthMethod::choose(&self.secret, metadata);
                Ok(Client { id: self.id.clone(), secret: self.secret.clone(), method })
            }
        }
    }
}

impl PreregisteredClient {
    /// Whether the secret may be sent to an issuer that only the server names: one on the same host, a parent or child
    /// domain, or the same machine. A signature is useless to others, and a public client has no secret.
    pub(super) fn allows_secret_for(&self, server: &Url, issuer: &str) -> bool {
        let Ok(issuer) = Url::parse(issuer) else { return false };
        let host = |url: &Url| url.host_str().unwrap_or_default().trim_end_matches('.').to_owned();
        let (one, other) = (host(server), host(&issuer));
        // IP addresses have no parent domain.
        let is_named = [server, &issuer].iter().all(|url| url.domain().is_some());
        let is_within = |inner: &str, outer: &str| {
            is_named && inner.strip_suffix(outer).is_some_and(|rest| rest.ends_with('.')) && outer.contains('.')
        };
        !matches!(self.secret, ClientSecret::Text(_))
            || one == other
            || is_within(&one, &other)
            || is_within(&other, &one)
            || (is_loopback(server) && is_loopback(&issuer))
    }
}

impl Client {
    /// A client whose id is the URL of its metadata document.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] if it is not an https URL with a path.
    pub(super) fn from_document_url(url: &str) -> Result<Client, AuthError> {
        let is_fit = Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.path() != "/");
        match is_fit {
            true => Ok(Client { id: url.to_owned(), secret: ClientSecret::None, method: ClientAuthMethod::None }),
            false => Err(AuthError::Invalid(format!("{url:?} is not an https URL of a client's metadata document"))),
        }
    }

    /// Adds the client authentication to the form of a token request, and returns the header for it, if the method has
    /// one (RFC 6749, section 2.3.1). The id is always in the form, because some servers expect it there.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] if the key cannot sign.
    pub(super) fn authenticate(
        &self,
        form: &mut Vec<(&'static str, String)>,
        issuer: &str,
    ) -> Result<Option<HeaderValue>, AuthError> {
        form.push(("client_id", self.id.clone()));
        match (self.method, &self.secret) {
            (ClientAuthMethod::Basic, ClientSecret::Text(secret)) => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encoded(&self.id), encoded(secret.reveal()));
                let header = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(pair)));
                let mut header = header.map_err(|error| AuthError::Invalid(error.to_string()))?;
                header.set_sensitive(true);
                return Ok(Some(header));
            }
            (ClientAuthMethod::Post, ClientSecret::Text(secret)) => {
                form.push(("client_secret", secret.reveal().to_owned()));
            }
            (ClientAuthMethod::Key, ClientSecret::Key(key)) => {
                let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                form.push(("client_assertion_type", kind.to_owned()));
                form.push(("client_assertion", key.assertion(&self.id, issuer)?));
            }
            _ => {}
        }
        Ok(None)
    }
}

impl From<&DynamicClient> for Client {
    fn from(known: &DynamicClient) -> Client {
        let secret = known.secret.clone().map_or(ClientSecret::None, ClientSecret::Text);
        Client { id: known.id.clone(), secret, method: known.method }
    }
}

/// The body of a registration (RFC 7591, section 2; 2026-07-28, Application Type and Redirect URI Constraints, and Refresh
/// Tokens).
pub(super) fn registration(name: &str, redirect_uri: &str, scopes: &[String], metadata: &ServerMetadata) -> Value {
    let mut body = json!({
        "client_name": name,
        "redirect_uris": [redirect_uri],
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": ClientAuthMethod::preferred(metadata).to_string(),
    });
    if !scopes.is_empty() {
        body["scope"] = scopes.join(" ").into();
    }
    body
}

/// The client in a registration response (RFC 7591, section 3.2.1); `None` if the response is not valid. An empty
/// secret is ignored.
pub(super) fn registered(body: &[u8], redirect_uri: &str, metadata: &ServerMetadata) -> Option<DynamicClient> {
    #[derive(Deserialize)]
    struct Answer {
        client_id: String,
        client_secret: Option<Secret>,
        token_endpoint_auth_method: Option<String>,
    }
    let answer: Answer = serde_json::from_slice(body).ok()?;
    let secret = answer.client_secret.filter(|secret| !secret.reveal().is_empty());
    let kind = secret.clone().map_or(ClientSecret::None, ClientSecret::Text);
    let stated = answer.token_endpoint_auth_method.as_deref().and_then(ClientAuthMethod::from_name);
    let method = match (stated, &secret) {
        (Some(ClientAuthMethod::Basic | ClientAuthMethod::Post), None) => ClientAuthMethod::None,
        (Some(stated), _) => stated,
        (None, _) => ClientAuthMethod::choose(&kind, metadata),
    };
    Some(DynamicClient { id: answer.client_id, secret, method, redirect_uri: redirect_uri.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(methods: Option<&[&str]>) -> ServerMetadata {
        let methods = methods.map(|methods| methods.iter().map(|&method| method.to_owned()).collect());
        ServerMetadata {
            issuer: "https://as".into(),
            token_endpoint_auth_methods_supported: methods,
            ..ServerMetadata::default()
        }
    }

    fn preregistered(secret: &str, issuer: Option<&str>) -> PreregisteredClient {
        let secret = ClientSecret::Text(Secret::new(secret));
        PreregisteredClient { id: "me".into(), secret, issuer: issuer.map(str::to_owned) }
    }

    #[test]
    fn a_client_authenticates_with_a_method_of_the_server() {
        for (methods, expected) in [
            (None, "Basic bWU6YSUyRmIlM0Fj | grant_type=x&client_id=me"),
            (
                Some(&["client_secret_post", "client_secret_basic"][..]),
                "Basic bWU6YSUyRmIlM0Fj | grant_type=x&client_id=me",
            ),
            (Some(&["client_secret_post"]), " | grant_type=x&client_id=me&client_secret=a/b:c"),
            (Some(&["none"]), " | grant_type=x&client_id=me"),
        ] {
            let client = preregistered("a/b:c", None).client_for(&metadata(methods), None).expect("a client");
            let mut form = vec![("grant_type", "x".to_owned())];
            let header = client.authenticate(&mut form, "https://as").expect("authenticates");
            let header = header.map(|header| header.to_str().expect("ASCII").to_owned()).unwrap_or_default();
            let form: Vec<_> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(format!("{header} | {}", form.join("&")), expected, "{methods:?}");
        }
    }

    #[test]
    fn a_registered_client_is_known_to_one_issuer_only() {
        let metadata = metadata(None);
        assert!(preregistered("s", None).client_for(&metadata, None).is_ok());
        assert!(preregistered("s", None).client_for(&metadata, Some("https://as")).is_ok());
        assert!(preregistered("s", Some("https://as")).client_for(&metadata, Some("https://old")).is_ok());
        for (issuer, bound) in [(Some("https://old"), None), (None, Some("https://old"))] {
            let error = preregistered("s", issuer).client_for(&metadata, bound).expect_err("another issuer");
            assert_eq!(
                error,
                AuthError::IssuerMismatch { registered: "https://old".into(), issuer: "https://as".into() }
            );
        }
    }

    #[test]
    fn of_a_client_nothing_is_kept_that_is_secret() {
        let identity = Identity {
            registered: Some(preregistered("geheim", None)),
            document: Some("https://h/client.json".to_owned()),
            secret_variable: Some("SECRET".to_owned()),
            lookup: |name| (name == "SECRET").then(|| "geheim".to_owned()),
            ..Identity::default()
        };
        let client = preregistered("geheim", None).client_for(&metadata(None), None).expect("a client");
        let stored_client = identity.stored_client(&client, true).expect("something to keep");
        let kept = json!({
            "id": "me",
            "method": "client_secret_basic",
            "secretVariable": "SECRET",
            "isDocument": false,
            "isUnattended": true,
        });
        assert_eq!(serde_json::to_value(&stored_client).expect("JSON"), kept);
        assert_eq!(stored_client.client(identity.lookup), Ok(Some(client.clone())));
        assert_eq!(stored_client.client(|_| None), Err(AuthError::NoSecret { variable: "SECRET".to_owned() }));
        let written_out = Identity { secret_variable: None, ..identity.clone() }.stored_client(&client, false);
        assert_eq!(written_out.expect("something to keep").client(identity.lookup), Ok(None));
        let document = Client::from_document_url("https://h/client.json").expect("a client");
        let stored_client = identity.stored_client(&document, false).expect("something to keep");
        assert_eq!((stored_client.is_document, stored_client.client(|_| None)), (true, Ok(Some(document))));
        assert_eq!(identity.stored_client(&Client { id: "own".to_owned(), ..client }, false), None);
    }

    #[test]
    fn a_secret_is_not_sent_to_an_issuer_named_only_by_the_server() {
        let shown = |server: &str, issuer: &str| {
            preregistered("s", None).allows_secret_for(&server.parse().expect("a URL"), issuer)
        };
        for (server, issuer) in [
            ("https://h.example/mcp", "https://h.example/as"),
            ("https://h.example:8443/mcp", "https://H.example"),
            ("https://mcp.h.example/", "https://h.example"),
            ("https://h.example/", "https://auth.h.example"),
            ("https://192.0.2.1/mcp", "https://192.0.2.1:9/"),
            ("http://localhost:1/mcp", "http://127.0.0.1:2/"),
        ] {
            assert!(shown(server, issuer), "{server} names {issuer}");
        }
        for (server, issuer) in [
            ("https://h.example/mcp", "https://as.example"),
            ("https://h.example/mcp", "https://noth.example"),
            // The owner of a common suffix is unknown here.
            ("https://a.co.example/mcp", "https://b.co.example"),
            ("https://h.example/mcp", "https://example"),
            ("https://h.example/mcp", "http://localhost"),
            ("http://localhost:1/mcp", "https://as.example"),
            ("https://1.192.0.2.1.example/mcp", "https://192.0.2.1"),
            ("https://h.example/mcp", "nonsense"),
        ] {
            assert!(!shown(server, issuer), "{server} names {issuer}");
        }
        let public = PreregisteredClient { id: "me".into(), secret: ClientSecret::None, issuer: None };
        assert!(public.allows_secret_for(&"https://h/".parse().expect("a URL"), "https://as"));
    }

    #[test]
    fn the_id_of_a_document_is_an_https_url_with_a_path() {
        assert_eq!(Client::from_document_url("https://h/client.json").expect("a client").id, "https://h/client.json");
        for url in ["http://h/client.json", "https://h", "https://h/", "client.json"] {
            assert!(Client::from_document_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_registration_is_that_of_a_native_client_that_wants_refresh_tokens() {
        let body =
            registration("me", "http://127.0.0.1:1/callback", &["a".into(), "b".into()], &metadata(Some(&["none"])));
        let expected = json!({
            "client_name": "me",
            "redirect_uris": ["http://127.0.0.1:1/callback"],
            "application_type": "native",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "scope": "a b",
        });
        assert_eq!(body, expected);
        assert_eq!(registration("me", "x", &[], &metadata(None)).get("scope"), None);
        let method = |methods| registration("me", "x", &[], &metadata(methods))["token_endpoint_auth_method"].clone();
        assert_eq!(method(None), "client_secret_basic");
        assert_eq!(method(Some(&["client_secret_post"])), "client_secret_post");
        assert_eq!(method(Some(&["client_secret_basic", "none"])), "none");
    }

    #[test]
    fn the_answer_to_a_registration_decides_on_the_method() {
        let method = |answer: &str, methods| {
            let client = registered(answer.as_bytes(), "r", &metadata(methods)).expect("a client");
            (client.method, client.secret.is_some())
        };
        let secret = r#"{"client_id":"c","client_secret":"s"}"#;
        assert_eq!(method(secret, None), (ClientAuthMethod::Basic, true));
        assert_eq!(method(secret, Some(&["none"][..])), (ClientAuthMethod::None, true));
        assert_eq!(method(secret, Some(&["client_secret_post"])), (ClientAuthMethod::Post, true));
        let stated = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}"#;
        assert_eq!(method(stated, None), (ClientAuthMethod::Post, true));
        assert_eq!(method(r#"{"client_id":"c","client_secret":""}"#, None), (ClientAuthMethod::None, false));
        let lost = r#"{"client_id":"c","token_endpoint_auth_method":"client_secret_basic"}"#;
        assert_eq!(method(lost, None), (ClientAuthMethod::None, false));
        assert_eq!(registered(b"{}", "r", &metadata(None)), None);
    }
}
