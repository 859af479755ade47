//! From a challenge to a token (2026-07-28, Authorization Flow Steps).

use std::sync::Arc;

use reqwest::{Url, header::HeaderValue};

use super::{
    AuthError, Challenge, ClientSecret, GrantKind, IdentityProvider, Interaction, Secret, SigningKey,
    code::Request,
    deadline_pause::DeadlinePause,
    discovery::{self, ResourceMetadata, ServerMetadata, endpoint},
    dpop,
    error::quoted,
    fetch::{Fetcher, MetadataLocation},
    grant::Grant,
    identity::{self, Client, DynamicClient, Identity, PreregisteredClient, StoredClient},
    scope::ScopeSources,
    ssrf_guard::SsrfGuard,
    store::{Issued, Record},
    token::{self, Token, TokenContext},
};
use rehearse_net::http_client::display_url;

/// The parts of a flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) server: Url,
    pub(super) identity: Identity,
    pub(super) scopes: Option<Vec<String>>,
    /// The URL of the metadata of the authorization server, instead of what the server names.
    pub(super) metadata_url: Option<String>,
    /// The only issuer to use, if the user has named one.
    pub(super) issuer: Option<String>,
    pub(super) ssrf_guard: SsrfGuard,
    pub(super) interaction: Interaction,
    pub(super) fetcher: Fetcher,
    pub(super) pause: DeadlinePause,
}

/// The issuer of the tokens for the server.
#[derive(Clone, Debug)]
pub(super) struct Discovery {
    /// The identifier of the resource in token requests.
    pub(super) resource: String,
    pub(super) issuer: ServerMetadata,
    /// The scopes of the resource.
    scopes: Option<Vec<String>>,
    /// Whether the server takes tokens that are bound to a key.
    takes_dpop: bool,
    /// Whether the server has no resource metadata (2025-03-26, Authorization): its issuer must support PKCE, but need
    /// not say so.
    is_old: bool,
}

/// A new token, with the registration of the client for it.
#[derive(Debug)]
pub(super) struct NewToken {
    pub(super) token: Token,
    pub(super) client: Option<DynamicClient>,
    pub(super) stored_client: Option<StoredClient>,
}

impl Flow {
    /// The challenge of the server; the default if there is none.
    pub(super) async fn challenge(&self) -> Challenge {
        self.fetcher.challenge(&self.server).await.unwrap_or_default()
    }

    /// Finds the issuer. Of several the `preferred` one is taken, or else the first that can be reached and has
    /// metadata.
    ///
    /// # Errors
    /// All errors of metadata. There is no fallback if the server names a location.
    pub(super) async fn discover(
        &self,
        challenge: &Challenge,
        version: Option<&HeaderValue>,
        preferred: Option<&str>,
    ) -> Result<Discovery, AuthError> {
        // Anyone who listens would get the token (OAuth 2.1, section 1.5).
        self.ssrf_guard.check(self.server.clone())?;
        let document = self.resource_metadata(challenge, version).await?;
        let takes_dpop = challenge.takes_dpop || document.as_ref().is_some_and(|(_, document)| document.takes_dpop());
        if let Some(stated) = &self.metadata_url {
            let issuer = self.configured_metadata(stated, version).await?;
            self.check_wanted(&[&issuer.issuer])?;
            let (resource, scopes) = match document {
                Some((_, document)) => (document.resource_of(&self.server)?.to_owned(), document.scopes_supported),
                None => (discovery::canonical(&self.server), None),
            };
            return Ok(Discovery { resource, issuer, scopes, takes_dpop, is_old: false });
        }
        let Some((at, document)) = document else { return self.discover_at_origin(version).await };
        let resource = document.resource_of(&self.server)?.to_owned();
        let mut issuers: Vec<&str> = document.authorization_servers.iter().map(String::as_str).collect();
        self.check_wanted(&issuers)?;
        issuers.retain(|&issuer| self.issuer.as_deref().is_none_or(|wanted| issuer == wanted));
        issuers.sort_by_key(|&issuer| Some(issuer) != preferred);
        let mut failed = AuthError::NoAuthorizationServer { url: display_url(at.as_str()) };
        for (index, name) in issuers.into_iter().enumerate() {
            match self.server_metadata(name, version).await {
                Ok(issuer) => {
                    let scopes = document.scopes_supported;
                    return Ok(Discovery { resource, issuer, scopes, takes_dpop, is_old: false });
                }
                // The issuer of the stored token may be back later.
                Err(error @ AuthError::Unreachable { .. }) if preferred == Some(name) => return Err(error),
                Err(error @ (AuthError::NoMetadata { .. } | AuthError::Unreachable { .. })) if index == 0 => {
                    failed = error
                }
                Err(AuthError::NoMetadata { .. } | AuthError::Unreachable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(failed)
    }

    /// The validated metadata of an issuer.
    ///
    /// # Errors
    /// [`AuthError::NoMetadata`], [`AuthError::Issuer`], [`AuthError::Insecure`], and those of requests.
    pub(super) async fn server_metadata(
        &self,
        issuer: &str,
        version: Option<&HeaderValue>,
    ) -> Result<ServerMetadata, AuthError> {
        if let Some(stated) = &self.metadata_url {
            let metadata = self.configured_metadata(stated, version).await?;
            metadata.check_issuer(issuer)?;
            return Ok(metadata);
        }
        for url in discovery::server_metadata_urls(issuer)? {
            let url = self.ssrf_guard.check(url)?;
            if let Some(metadata) =
                self.fetcher.metadata(&url, MetadataLocation::WellKnown, version, "metadata").await?
            {
                let metadata: ServerMetadata = metadata;
                metadata.check_issuer(issuer)?;
                return Ok(metadata);
            }
        }
        Err(AuthError::NoMetadata { issuer: issuer.to_owned() })
    }

    /// The metadata at a URL that the user has chosen and trusts.
    async fn configured_metadata(&self, url: &str, version: Option<&HeaderValue>) -> Result<ServerMetadata, AuthError> {
        let at = Url::parse(url).map_err(|_| AuthError::Invalid(format!("{url:?} is not a URL of metadata")))?;
        let at = self.ssrf_guard.check(at)?;
        let metadata = self.fetcher.metadata(&at, MetadataLocation::Stated, version, "metadata").await?;
        metadata.ok_or_else(|| AuthError::NoMetadata { issuer: display_url(url) })
    }

    /// The resource, and the authorization servers that its metadata name.
    ///
    /// # Errors
    /// [`AuthError::NoAuthorizationServer`], [`AuthError::Resource`], and those of requests.
    pub(super) async fn authorization_servers(&self) -> Result<(String, Vec<String>), AuthError> {
        let document = self.resource_metadata(&self.challenge().await, None).await?;
        let none = || AuthError::NoAuthorizationServer { url: display_url(self.server.as_str()) };
        let (_, document) = document.ok_or_else(none)?;
        Ok((document.resource_of(&self.server)?.to_owned(), document.authorization_servers))
    }

    async fn resource_metadata(
        &self,
        challenge: &Challenge,
        version: Option<&HeaderValue>,
    ) -> Result<Option<(Url, ResourceMetadata)>, AuthError> {
        const WHAT: &str = "the metadata of a protected resource";
        if let Some(text) = &challenge.resource_metadata {
            let url = self.server.join(text).map_err(|_| AuthError::Invalid(format!("{text:?} is not a URL")))?;
            let url = self.ssrf_guard.check(url)?;
            let document = self.fetcher.metadata(&url, MetadataLocation::Stated, version, WHAT).await?;
            return Ok(document.map(|document| (url, document)));
        }
        for url in discovery::resource_metadata_urls(&self.server) {
            if let Some(document) = self.fetcher.metadata(&url, MetadataLocation::WellKnown, version, WHAT).await? {
                return Ok(Some((url, document)));
            }
        }
        Ok(None)
    }

    /// A server that is its own authorization server, as before resource metadata existed (2025-03-26, Server Metadata
    /// Discovery).
    async fn discover_at_origin(&self, version: Option<&HeaderValue>) -> Result<Discovery, AuthError> {
        let base = discovery::base_of(&self.server);
        let url = discovery::server_metadata_urls(&base)?.swap_remove(0);
        let found: Option<ServerMetadata> =
            self.fetcher.metadata(&url, MetadataLocation::WellKnown, version, "metadata").await?;
        let issuer = match found {
            None => ServerMetadata::without_discovery(&base),
            Some(metadata) => {
                // The issuer may end with a slash: both forms lead to these metadata.
                metadata
                    .check_issuer(&base)
                    .or_else(|error| metadata.check_issuer(&format!("{base}/")).map_err(|_| error))?;
                metadata
            }
        };
        self.check_wanted(&[&issuer.issuer])?;
        let resource = discovery::canonical(&self.server);
        Ok(Discovery { resource, issuer, scopes: None, takes_dpop: false, is_old: true })
    }

    /// Checks that the server names the required issuer.
    ///
    /// # Errors
    /// [`AuthError::IssuerNotOffered`].
    fn check_wanted(&self, named: &[&str]) -> Result<(), AuthError> {
        match &self.issuer {
            Some(wanted) if !named.contains(&wanted.as_str()) => {
                let named = if named.is_empty() { "none".to_owned() } else { quoted(&named.join(", ")) };
                Err(AuthError::IssuerNotOffered { wanted: wanted.clone(), named })
            }
            _ => Ok(()),
        }
    }

    /// Has a user authorize the client, and gets the token.
    ///
    /// # Errors
    /// Any [`AuthError`].
    pub(super) async fn authorize(
        &self,
        found: &Discovery,
        challenge: &Challenge,
        record: &Record,
    ) -> Result<NewToken, AuthError> {
        let issuer = &found.issuer;
        if !found.is_old || issuer.code_challenge_methods_supported.is_some() {
            issuer.check_pkce()?;
        }
        let authorization =
            endpoint(issuer, issuer.authorization_endpoint.as_ref(), "authorization endpoint", &self.ssrf_guard)?;
        let scopes = self.choose_scopes(found, challenge, record);
        let before = record.issuers.get(&issuer.issuer).and_then(|issued| issued.client.as_ref());
        let callback = self.interaction.prepare(before.map(|client| &*client.redirect_uri)).await?;
        let (client, registered) = match self.known_client(issuer, record, Some(&callback.redirect_uri))? {
            Some(client) => (client, None),
            None => {
                let registered = self.register(issuer, &callback.redirect_uri, &scopes).await?;
                (Client::from(&registered), Some(registered))
            }
        };
        let uri = callback.redirect_uri.clone();
        let request = Request::new(authorization, issuer, &client.id, uri, &scopes, &found.resource);
        let request = Arc::new(request);
        let code = {
            let _waiting = self.pause.start();
            callback.code(&request, &self.fetcher).await?
        };
        let grant = Grant::Code { request: &request, code: &code };
        let token = self.request_token(found, &client, &grant, &scopes, found.new_key()?).await?;
        let stored_client = self.identity.stored_client(&client, false);
        Ok(NewToken { token, client: registered, stored_client })
    }

    /// A token without a user.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] for a client without an id or secret, and all errors of the requests.
    pub(super) async fn obtain_alone(
        &self,
        kind: &GrantKind,
        found: &Discovery,
        challenge: &Challenge,
        record: &Record,
    ) -> Result<NewToken, AuthError> {
        let needs_secret = !matches!(kind, GrantKind::WorkloadIdentity(_));
        let registered = self.identity.registered.as_ref();
        let is_fit = registered.is_some_and(|it| !needs_secret || it.secret != ClientSecret::None);
        let client = self.known_client(&found.issuer, record, None)?.filter(|_| is_fit);
        let lacking = || AuthError::Invalid("a client without a user needs an id and a secret".to_owned());
        let client = client.ok_or_else(lacking)?;
        let scopes = self.choose_scopes(found, challenge, record);
        let exchanged;
        let grant = match kind {
            GrantKind::AuthorizationCode => return Err(AuthError::InteractionRequired),
            GrantKind::ClientCredentials => Grant::Client { scopes: &scopes },
            GrantKind::WorkloadIdentity(token) => Grant::Assertion { token, scopes: &scopes },
            GrantKind::EnterpriseManaged(provider) => {
                exchanged = self.exchange(provider, found, &scopes).await?;
                Grant::Assertion { token: &exchanged, scopes: &scopes }
            }
        };
        let token = self.request_token(found, &client, &grant, &scopes, found.new_key()?).await?;
        let stored_client = self.identity.stored_client(&client, matches!(kind, GrantKind::ClientCredentials));
        Ok(NewToken { token, client: None, stored_client })
    }

    /// The assertion of the identity provider about the user, for the issuer.
    async fn exchange(
        &self,
        provider: &IdentityProvider,
        found: &Discovery,
        scopes: &[String],
    ) -> Result<Secret, AuthError> {
        let wrong = |_| AuthError::Invalid(format!("{:?} is not a URL", provider.token_endpoint));
        let url = self.ssrf_guard.check(Url::parse(&provider.token_endpoint).map_err(wrong)?)?;
        let form = provider.form(&found.issuer.issuer, &found.resource, scopes);
        let (status, body) = self.fetcher.post_form(&url, &form, None, None).await?;
        token::exchanged(status, &body, &display_url(url.as_str()))
    }

    /// Renews a token without a user: by its refresh token, or by the client grant. `None` if that is not possible, or
    /// the client of the token is not known.
    ///
    /// # Errors
    /// Those of the request, and [`AuthError::NoSecret`].
    pub(super) async fn renew(
        &self,
        metadata: &ServerMetadata,
        token: &Token,
        record: &Record,
    ) -> Result<Option<Token>, AuthError> {
        let Some(client) = self.client_of(token, metadata, record)? else { return Ok(None) };
        let is_unattended = record.issuers.get(&metadata.issuer).is_some_and(|issued| issued.is_unattended(token));
        let grant = match &token.refresh {
            _ if is_unattended => Grant::Client { scopes: &token.requested },
            Some(refresh) => Grant::Refresh(refresh),
            None => return Ok(None),
        };
        let (resource, scopes) = (token.resource.clone(), None);
        let found = Discovery { resource, issuer: metadata.clone(), scopes, takes_dpop: false, is_old: false };
        self.request_token(&found, &client, &grant, &token.requested, token.key.clone()).await.map(Some)
    }

    /// The client of the token with its current credentials; `None` if it is not known.
    ///
    /// # Errors
    /// [`AuthError::NoSecret`], and those of [`Flow::known_client`].
    pub(super) fn client_of(
        &self,
        token: &Token,
        metadata: &ServerMetadata,
        record: &Record,
    ) -> Result<Option<Client>, AuthError> {
        let stored_client = record.issuers.get(&metadata.issuer).and_then(|issued| issued.stored_client.as_ref());
        let stored_client = stored_client.filter(|stored_client| stored_client.id == token.client);
        match (self.known_client(metadata, record, None), stored_client) {
            (Ok(Some(client)), _) if client.id == token.client => Ok(Some(client)),
            (_, Some(stored_client)) => stored_client.client(self.identity.lookup),
            (known, None) => known.map(|_| None),
        }
    }

    /// Whether the token can be renewed without a user, as far as is known here.
    pub(super) fn can_renew(&self, issued: &Issued) -> bool {
        let Some(token) = &issued.token else { return false };
        let is_it = |id: Option<&String>| id == Some(&token.client);
        let is_known = is_it(self.identity.registered.as_ref().map(|registered| &registered.id))
            || is_it(self.identity.document.as_ref())
            || is_it(issued.client.as_ref().map(|client| &client.id))
            || issued.stored_client.as_ref().is_some_and(|stored_client| {
                stored_client.id == token.client && matches!(stored_client.client(self.identity.lookup), Ok(Some(_)))
            });
        is_known && (token.refresh.is_some() || issued.is_unattended(token))
    }

    /// The client as the issuer knows it; `None` if it has to register. A registration with another redirect URI cannot
    /// be used.
    pub(super) fn known_client(
        &self,
        issuer: &ServerMetadata,
        record: &Record,
        redirect_uri: Option<&str>,
    ) -> Result<Option<Client>, AuthError> {
        if let Some(registered) = &self.identity.registered {
            let bound = bound(registered, record);
            let client = registered.client_for(issuer, bound)?;
            // A user who sets the metadata URL trusts it.
            let is_said = [&registered.issuer, &self.issuer, &self.metadata_url].into_iter().any(Option::is_some);
            if bound.is_none() && !is_said && !registered.allows_secret_for(&self.server, &issuer.issuer) {
                return Err(AuthError::UntrustedIssuer { issuer: issuer.issuer.clone() });
            }
            return Ok(Some(client));
        }
        if let Some(document) = self.identity.document.as_ref().filter(|_| issuer.client_id_metadata_document_supported)
        {
            return Client::from_document_url(document).map(Some);
        }
        let known = record.issuers.get(&issuer.issuer).and_then(|issued| issued.client.as_ref());
        let fits = |client: &&DynamicClient| redirect_uri.is_none_or(|uri| uri == client.redirect_uri);
        Ok(known.filter(fits).map(Client::from))
    }

    async fn register(
        &self,
        issuer: &ServerMetadata,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<DynamicClient, AuthError> {
        if issuer.registration_endpoint.is_none() {
            return Err(AuthError::NoIdentity { issuer: issuer.issuer.clone() });
        }
        let url = endpoint(issuer, issuer.registration_endpoint.as_ref(), "registration endpoint", &self.ssrf_guard)?;
        let document = identity::registration(&self.identity.name, redirect_uri, scopes, issuer);
        let (status, body) = self.fetcher.post_json(&url, &document).await?;
        if !status.is_success() {
            return Err(AuthError::Registration(
                error_description(&body).unwrap_or_else(|| format!("HTTP {}", status.as_u16())),
            ));
        }
        let malformed = || AuthError::Malformed { url: display_url(url.as_str()), what: "a registered client" };
        identity::registered(&body, redirect_uri, issuer).ok_or_else(malformed)
    }

    /// Requests a token, bound to the `key` if there is one: a refresh token may be bound to it as well (RFC 9449,
    /// section 5).
    async fn request_token(
        &self,
        found: &Discovery,
        client: &Client,
        grant: &Grant<'_>,
        scopes: &[String],
        key: Option<Secret>,
    ) -> Result<Token, AuthError> {
        let issuer = &found.issuer;
        let url = endpoint(issuer, issuer.token_endpoint.as_ref(), "token endpoint", &self.ssrf_guard)?;
        let mut form = grant.form(&found.resource);
        let authorization = client.authenticate(&mut form, &issuer.issuer)?;
        let (status, body) = self.fetcher.post_form(&url, &form, authorization, key.as_ref()).await?;
        let shown = display_url(url.as_str());
        let (resource, client, key) = (&*found.resource, &*client.id, key.as_ref());
        let purpose = TokenContext { resource, client, endpoint: &shown, scopes, key };
        let refresh = if let Grant::Refresh(token) = grant { Some(*token) } else { None };
        Token::read(status, &body, purpose, refresh)
    }

    fn choose_scopes(&self, found: &Discovery, challenge: &Challenge, record: &Record) -> Vec<String> {
        let token = record.issuers.get(&found.issuer.issuer).and_then(|issued| issued.token.as_ref());
        let known = ScopeSources {
            configured: self.scopes.as_deref(),
            challenged: challenge.scopes.as_deref(),
            of_resource: found.scopes.as_deref(),
            of_issuer: found.issuer.scopes_supported.as_deref(),
            before: token.map(|token| &*token.requested).unwrap_or_default(),
        };
        known.choose()
    }
}

impl Discovery {
    /// The key for a new token, if it is to be bound: if the server takes such tokens and the issuer makes them.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] if no key can be made.
    fn new_key(&self) -> Result<Option<Secret>, AuthError> {
        let is_supported = dpop::is_supported(self.issuer.dpop_signing_alg_values_supported.as_deref());
        (self.takes_dpop && is_supported).then(SigningKey::generate).transpose()
    }
}

/// The issuer that a registered client was first used with.
fn bound<'a>(registered: &PreregisteredClient, record: &'a Record) -> Option<&'a str> {
    if let Some(issuer) = record.bound.get(&registered.id) {
        return Some(issuer);
    }
    let is_of = |token: &Token| token.client == registered.id;
    let mut issuers = record.issuers.iter().filter(|(_, issued)| issued.token.as_ref().is_some_and(is_of));
    issuers.next().map(|(issuer, _)| issuer.as_str())
}

/// The text of an error response (RFC 7591, section 3.2.2).
fn error_description(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct No {
        error: String,
        error_description: Option<String>,
    }
    let no: No = serde_json::from_slice(body).ok()?;
    Some(quoted(&no.error_description.map_or(no.error.clone(), |why| format!("{}: {why}", no.error))))
}
