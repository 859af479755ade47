//! Holds the token of a server, and gets the next one.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use reqwest::{StatusCode, header::HeaderValue};
use tokio::sync::Notify;

use super::{
    AuthError, Challenge, GrantKind, Interaction, Logout, Options, SavedOptions, Secret, TokenStatus, TokenStore,
    current_token::{CurrentToken, TokenOrigin},
    deadline_pause::DeadlinePause,
    dpop,
    fetch::Fetcher,
    flow::{Discovery, Flow, NewToken},
    middleware::{AuthHeader, AuthMiddleware, RefusedRequest},
    ssrf_guard::SsrfGuard,
    store::Record,
    token::Token,
};
use crate::url::parse_url;
use rehearse_protocol::Version;

/// How often the same additional scopes are requested that the server demands again.
const UPGRADES: usize = 2;

/// Gives the requests to one server their token, and gets one when the server refuses a request. Clones share the
/// token: of several requests that are refused at the same time one gets a token, and the others wait for it.
///
/// No authorization server is contacted before the server refuses a request.
///
/// ```
/// use rehearse_client::{
///     ServerParams, Target,
///     oauth::{Authorizer, Browser, Interaction, Options},
/// };
///
/// let url = "https://example.com/mcp";
/// let interaction = Interaction::Browser(Browser::new(|url| println!("Open {url}")));
/// let authorizer = Authorizer::new(url, Options { interaction, ..Options::default() })?;
/// assert_eq!(authorizer.status()?, None);
/// let params = ServerParams { authorizer: Some(authorizer), ..ServerParams::new("weather", Target::http(url)) };
/// # drop(params);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Authorizer(Arc<Shared>);

struct Shared {
    flow: Flow,
    grant: GrantKind,
    store: TokenStore,
    current: Mutex<CurrentToken>,
    /// Held while a token is requested. It has the additional scopes that were requested, once for each time.
    upgrades: tokio::sync::Mutex<Vec<Vec<String>>>,
    /// Cancels the wait for a user.
    cancelled: Notify,
}

impl Authorizer {
    /// An authorizer for the server at this URL; the URL of a WebSocket is replaced by that of its handshake.
    ///
    /// # Errors
    /// [`AuthError::Invalid`] if it is not a URL of a server over HTTP or WebSocket.
    pub fn new(server: &str, options: Options) -> Result<Authorizer, AuthError> {
        let server = match server.split_once("://") {
            Some(("ws", rest)) => format!("http://{rest}"),
            Some(("wss", rest)) => format!("https://{rest}"),
            _ => server.to_owned(),
        };
        let server = parse_url(&server, &["http", "https"]).map_err(AuthError::Invalid)?;
        let Options { identity, grant, scopes, metadata_url, issuer, interaction, store } = options;
        let ssrf_guard = SsrfGuard::new(server.clone());
        let provider = match &grant {
            GrantKind::EnterpriseManaged(provider) => Some(&provider.token_endpoint),
            GrantKind::AuthorizationCode | GrantKind::ClientCredentials | GrantKind::WorkloadIdentity(_) => None,
        };
        for url in metadata_url.iter().chain(&issuer).chain(provider) {
            ssrf_guard.allow_host(url);
        }
        let (fetcher, pause) = (Fetcher::new(ssrf_guard.clone()), DeadlinePause::default());
        let flow = Flow { server, identity, scopes, metadata_url, issuer, ssrf_guard, interaction, fetcher, pause };
        let (current, upgrades) = (Mutex::default(), tokio::sync::Mutex::default());
        Ok(Authorizer(Arc::new(Shared { flow, grant, store, current, upgrades, cancelled: Notify::new() })))
    }

    /// Gets a new token, as after a refused request. If a user has to be asked, it happens in this call.
    ///
    /// # Errors
    /// Any [`AuthError`].
    pub async fn authorize(&self) -> Result<TokenStatus, AuthError> {
        let shared = &self.0;
        let _turn = shared.upgrades.lock().await;
        let challenge = shared.flow.challenge().await;
        let obtained = Box::pin(shared.grant(&challenge, None)).await;
        shared.finish_attempt(obtained.map(|token| (token, TokenOrigin::Granted)))?;
        self.status()?.ok_or(AuthError::InteractionRequired)
    }

    /// The status of the token.
    ///
    /// # Errors
    /// [`AuthError::Store`].
    pub fn status(&self) -> Result<Option<TokenStatus>, AuthError> {
        Ok(TokenStatus::from_record(&self.0.load()?, &self.0.flow))
    }

    /// The identifier of the resource, and its authorization servers, as the server names them.
    ///
    /// # Errors
    /// There are no metadata of the resource, or they are those of another one.
    pub async fn authorization_servers(&self) -> Result<(String, Vec<String>), AuthError> {
        self.0.flow.authorization_servers().await
    }

    /// The options of the stored token that are not in the config.
    ///
    /// # Errors
    /// [`AuthError::Store`].
    pub fn saved_options(&self) -> Result<SavedOptions, AuthError> {
        Ok(SavedOptions::from_record(&self.0.load()?, &self.0.flow))
    }

    /// Has the issuers revoke the tokens, if they support it, and deletes the tokens and registrations in any case.
    /// Waits for a renewal, so that its token does not remain, but not for a user.
    ///
    /// # Errors
    /// [`AuthError::Store`].
    pub async fn logout(&self) -> Result<Logout, AuthError> {
        let shared = &self.0;
        let server = &shared.flow.server;
        shared.cancelled.notify_waiters();
        let _turn = shared.upgrades.lock().await;
        shared.clear_token();
        if !shared.store.contains(server) {
            return Ok(Logout { was_there: false, revoked: Ok(false) });
        }
        let lock = shared.store.lock(server).await?;
        let revoked = match shared.load() {
            Ok(record) => Box::pin(shared.flow.revoke(&record)).await,
            // An unreadable record can still be deleted.
            Err(_) => Ok(false),
        };
        Ok(Logout { was_there: shared.store.forget(&lock, server)?, revoked })
    }

    /// Uses the stored token from now on, which another process may have replaced. Cancels the wait for a user.
    pub async fn reload(&self) {
        self.0.cancelled.notify_waiters();
        let _turn = self.0.upgrades.lock().await;
        let mut current = self.0.current();
        *current = CurrentToken { generation: current.generation + 1, ..CurrentToken::default() };
    }

    /// Why the last attempt to get a token failed.
    pub fn failure(&self) -> Option<AuthError> {
        self.0.current().failure.clone()
    }

    /// Changes with each token: results that one token gave access to may not be shown with another.
    pub fn generation(&self) -> u64 {
        self.0.current().generation
    }

    /// Replaces the tokens in use in a text by `mask`.
    pub fn masked(&self, text: &str, mask: &str) -> String {
        let current = self.0.current();
        let tokens = current.token.iter().flat_map(|token| std::iter::once(&token.access).chain(&token.refresh));
        let tokens = tokens.map(Secret::reveal).filter(|token| !token.is_empty());
        tokens.fold(text.to_owned(), |text, token| text.replace(token, mask))
    }

    /// The recorder of the token requests from now on, without secrets.
    pub fn recorder(&self) -> crate::recorder::ClientRecorder {
        self.0.flow.fetcher.recorder()
    }

    /// The additional scopes that the server last demanded.
    pub fn missing_scopes(&self) -> Vec<String> {
        self.0.upgrades.try_lock().ok().and_then(|upgrades| upgrades.last().cloned()).unwrap_or_default()
    }

    /// The middleware for HTTP requests to the server.
    pub(crate) fn middleware(&self) -> AuthMiddleware {
        let authorizer = self.clone();
        AuthMiddleware::new(move |refused| {
            let shared = authorizer.0.clone();
            async move {
                match refused {
                    None => shared.auth_header().await.map(Some),
                    Some(refused) => shared.refused(refused).await,
                }
            }
            .boxed()
        })
    }

    /// The total time of waits for a user.
    pub(crate) fn paused(&self) -> Duration {
        self.0.flow.pause.total()
    }
}

impl Shared {
    fn current(&self) -> MutexGuard<'_, CurrentToken> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the token.
    fn clear_token(&self) {
        let mut current = self.current();
        *current = CurrentToken { generation: current.generation + 1, is_loaded: true, ..CurrentToken::default() };
    }

    /// The stored record. Issuers that the user named once are exempt from the SSRF guard.
    ///
    /// # Errors
    /// [`AuthError::Store`].
    fn load(&self) -> Result<Record, AuthError> {
        let record = self.store.load(&self.flow.server)?;
        for (issuer, _) in record.issuers.iter().filter(|(_, issued)| issued.is_chosen) {
            self.flow.ssrf_guard.allow_host(issuer);
        }
        Ok(record)
    }

    /// The header of the next request, with the token if there is one. A token that expires is renewed first, if that
    /// needs no user.
    async fn auth_header(&self) -> Result<AuthHeader, AuthError> {
        if let Some(header) = self.current().ready_header() {
            return Ok(header);
        }
        let _turn = self.upgrades.lock().await;
        if let Some(header) = self.current().ready_header() {
            return Ok(header);
        }
        if !self.current().is_loaded {
            let token = self.load()?.token().cloned();
            let mut current = self.current();
            (current.is_loaded, current.token) = (true, token);
        }
        if let Some(header) = self.current().ready_header() {
            return Ok(header);
        }
        match Box::pin(self.refresh(None)).await {
            Ok(Some(found)) => drop(self.finish_attempt(Ok(found))),
            // The challenge of the server decides.
            Ok(None) | Err(_) => self.current().is_stuck = true,
        }
        Ok(self.current().header())
    }

    /// The header for another attempt; `None` if a token cannot fix the refusal.
    async fn refused(&self, refused: RefusedRequest) -> Result<Option<AuthHeader>, AuthError> {
        let challenge = Challenge::from_headers(&refused.headers);
        if refused.header.is_bound()
            && challenge.as_ref().is_some_and(Challenge::wants_nonce)
            && dpop::nonce_of(&refused.headers).is_some()
        {
            return Ok(Some(refused.header));
        }
        let is_more_wanted = refused.status == StatusCode::FORBIDDEN;
        let needed = challenge.as_ref().filter(|it| it.wants_more_scopes()).and_then(|it| it.scopes.clone());
        let is_other_scheme = challenge.is_none() && refused.headers.contains_key(reqwest::header::WWW_AUTHENTICATE);
        if is_other_scheme || (is_more_wanted && needed.is_none()) {
            return Ok(None);
        }
        let mut upgrades = self.upgrades.lock().await;
        {
            let current = self.current();
            if current.generation != refused.header.generation {
                return match &current.failure {
                    Some(error) => Err(error.clone()),
                    None => Ok(Some(current.header())),
                };
            }
        }
        // `initialize` has its version in the body (2025-03-26, Server Metadata Discovery Headers).
        let legacy = || HeaderValue::from_static(Version::LATEST_LEGACY.as_str());
        let version = Some(refused.version.unwrap_or_else(legacy));
        let (challenge, version) = (challenge.unwrap_or_default(), version.as_ref());
        let got = match needed.filter(|_| is_more_wanted) {
            Some(mut needed) => {
                needed.sort();
                needed.dedup();
                if upgrades.iter().filter(|asked| **asked == needed).count() >= UPGRADES {
                    return Err(AuthError::Scopes(needed));
                }
                upgrades.push(needed);
                Box::pin(self.grant(&challenge, version)).await.map(|token| (token, TokenOrigin::Granted))
            }
            None => Box::pin(self.renew(&challenge, version)).await,
        };
        self.finish_attempt(got)?;
        Ok(Some(self.current().header()))
    }

    /// A new token in place of an invalid one, or of none.
    async fn renew(
        &self,
        challenge: &Challenge,
        version: Option<&HeaderValue>,
    ) -> Result<(Token, TokenOrigin), AuthError> {
        let (origin, is_valid, is_unproven) = {
            let current = self.current();
            (current.origin, current.is_valid(), current.is_valid() && !current.is_accepted())
        };
        let record = self.load()?;
        let is_last = match origin {
            TokenOrigin::Granted => true,
            // A client grant is renewed by a new request.
            TokenOrigin::Refreshed => self.needs_missing_user() || matches!(self.grant, GrantKind::ClientCredentials),
            TokenOrigin::Stored => false,
        };
        if is_unproven && is_last {
            let issuer = record.issuer.unwrap_or_default();
            return Err(AuthError::Rejected { issuer, said: challenge.error_text() });
        }
        let is_to_be_renewed = !(is_unproven && origin == TokenOrigin::Refreshed);
        let kept = record.issued().and_then(|issued| Some((issued, issued.token.as_ref()?)));
        if let Some((issued, token)) = kept.filter(|_| is_to_be_renewed) {
            let can_be_renewed = token.refresh.is_some() || issued.is_unattended(token);
            if can_be_renewed || !self.needs_missing_user() {
                // The issuer may have changed; no other one may get the refresh token (2026-07-28, Authorization Server
                // Binding).
                let found = self.discover(challenge, version, &record).await?;
                if let Some(renewed) = self.refresh(Some(&found)).await? {
                    return Ok(renewed);
                }
                if !self.needs_missing_user() {
                    return self.grant_with(&found, challenge).await.map(|token| (token, TokenOrigin::Granted));
                }
            } else if let Some(of_another) = self.refresh(None).await? {
                return Ok(of_another);
            }
            if is_valid && self.needs_missing_user() {
                return Err(AuthError::ReauthorizationRequired { said: challenge.error_text() });
            }
        }
        self.grant(challenge, version).await.map(|token| (token, TokenOrigin::Granted))
    }

    /// Whether a user is needed and cannot be asked.
    fn needs_missing_user(&self) -> bool {
        matches!((&self.grant, &self.flow.interaction), (GrantKind::AuthorizationCode, Interaction::None))
    }

    /// A token without user interaction: that of another process, or a renewed one. `None` if there is none, or its
    /// issuer rejects the refresh token.
    async fn refresh(&self, found: Option<&Discovery>) -> Result<Option<(Token, TokenOrigin)>, AuthError> {
        let server = &self.flow.server;
        let lock = self.store.lock(server).await?;
        let record = self.load()?;
        let (Some(issuer), Some(issued)) = (record.issuer.clone(), record.issued()) else { return Ok(None) };
        let Some(token) = issued.token.clone() else { return Ok(None) };
        if found.is_some_and(|found| found.issuer.issuer != issuer) {
            return Ok(None);
        }
        let is_of_another = self.current().token.as_ref() != Some(&token);
        if is_of_another && !token.is_expired() {
            return Ok(Some((token, TokenOrigin::Stored)));
        }
        let is_unattended = issued.is_unattended(&token);
        if token.refresh.is_none() && !is_unattended {
            return Ok(None);
        }
        let metadata = match found {
            Some(found) => found.issuer.clone(),
            None => self.flow.server_metadata(&issuer, None).await?,
        };
        let renewed = self.flow.renew(&metadata, &token, &record).await;
        // A token that was deleted meanwhile must not be replaced.
        let mut record = self.load()?;
        let Some(issued) = record.issuers.get_mut(&issuer).filter(|issued| issued.token.as_ref() == Some(&token))
        else {
            return Ok(None);
        };
        match renewed {
            Ok(Some(renewed)) => {
                issued.token = Some(renewed.clone());
                self.store.save(&lock, server, &record)?;
                Ok(Some((renewed, TokenOrigin::Refreshed)))
            }
            Ok(None) => Ok(None),
            Err(error) if is_unattended || error.is_temporary() => Err(error),
            Err(error) if error.is_permanent() => {
                if matches!(&error, AuthError::Token { error, .. } if error == "invalid_client") {
                    issued.client = None;
                }
                issued.token = Some(Token { refresh: None, ..token });
                self.store.save(&lock, server, &record)?;
                Ok(None)
            }
            Err(_) => Ok(None),
        }
    }

    /// A token by the grant. Without user interaction the discovery is not needed either.
    async fn grant(&self, challenge: &Challenge, version: Option<&HeaderValue>) -> Result<Token, AuthError> {
        if self.needs_missing_user() {
            return Err(AuthError::InteractionRequired);
        }
        let found = self.discover(challenge, version, &self.load()?).await?;
        self.grant_with(&found, challenge).await
    }

    async fn grant_with(&self, found: &Discovery, challenge: &Challenge) -> Result<Token, AuthError> {
        let (server, issuer) = (&self.flow.server, &found.issuer.issuer);
        let record = self.load()?;
        let obtained = match &self.grant {
            GrantKind::AuthorizationCode => tokio::select! {
                obtained = Box::pin(self.flow.authorize(found, challenge, &record)) => obtained,
                () = self.cancelled.notified() => Err(AuthError::Cancelled),
            },
            alone => self.flow.obtain_alone(alone, found, challenge, &record).await,
        };
        let lock = self.store.lock(server).await?;
        // The wait may have been long, and other processes may have changed the record.
        let mut record = self.load()?;
        let issued = record.issuers.entry(issuer.clone()).or_default();
        let NewToken { token, client, stored_client } = match obtained {
            Ok(obtained) => obtained,
            Err(error) => {
                if matches!(&error, AuthError::Token { error, .. } if error == "invalid_client")
                    && issued.client.take().is_some()
                {
                    // The issuer has deleted the client; the next attempt registers it again.
                    self.store.save(&lock, server, &record)?;
                }
                return Err(error);
            }
        };
        issued.token = Some(token.clone());
        issued.client = client.or_else(|| issued.client.take());
        issued.is_chosen |= self.flow.issuer.as_ref() == Some(issuer);
        let registered = stored_client
            .as_ref()
            .filter(|stored_client| !stored_client.is_document)
            .map(|stored_client| stored_client.id.clone());
        issued.stored_client = stored_client;
        record.bound.extend(registered.map(|id| (id, issuer.clone())));
        record.issuer = Some(issuer.clone());
        self.store.save(&lock, server, &record)?;
        Ok(token)
    }

    async fn discover(
        &self,
        challenge: &Challenge,
        version: Option<&HeaderValue>,
        record: &Record,
    ) -> Result<Discovery, AuthError> {
        let registered = self.flow.identity.registered.as_ref();
        let stated = registered.and_then(|registered| registered.issuer.as_deref());
        let bound = registered.and_then(|registered| record.bound.get(&registered.id).map(String::as_str));
        self.flow.discover(challenge, version, stated.or(bound).or(record.issuer.as_deref())).await
    }

    /// Ends an attempt; all requests that wait for it get its result.
    ///
    /// # Errors
    /// That of the attempt.
    fn finish_attempt(&self, got: Result<(Token, TokenOrigin), AuthError>) -> Result<(), AuthError> {
        let mut current = self.current();
        current.generation += 1;
        current.is_loaded = true;
        match got {
            Ok((token, origin)) => {
                current.failure = None;
                (current.token, current.origin, current.is_stuck) = (Some(token), origin, false);
                current.accepted = Arc::default();
                Ok(())
            }
            Err(error) => {
                current.failure = Some(error.clone());
                Err(error)
            }
        }
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("flow", &self.0.flow).finish_non_exhaustive()
    }
}
