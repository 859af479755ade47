//! What is sent to an authorization server.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rand::Rng;
use rehearse_client::{ClientRecorder, ServerParams, Target, Wire, WireRequest, oauth::server_metadata_urls};
use rehearse_conformance::ISSUER;
use rehearse_protocol::{Closed, Direction, Event, EventKind, Trace};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use super::{IssuerOptions, login::Callback};

const NO_METADATA: &str = "there are no metadata";
const NO_CLIENT: &str = "the server registers no client like this one; --client-id ID names a public client";
const NO_LOGIN: &str = "the server asks a user to log in; --login does that";
const NO_CODE: &str = "the login gave no code";
const NO_RESOURCE: &str = "the resource is that of an MCP server; --http URL names one";

/// What was sent so far.
pub(super) struct IssuerProber<'o> {
    options: &'o IssuerOptions,
    /// The connections by origin.
    wires: BTreeMap<String, Wire>,
    /// The responses to authorization requests that a browser brought.
    logins: Trace,
    begun: Instant,
    callback: Option<Callback>,
    client: Client,
    /// Another client of the same server.
    other: Option<Client>,
    metadata: Value,
    missing: Vec<(String, String)>,
}

/// The client as the server knows it.
#[derive(Default)]
struct Client {
    id: String,
    secret: Option<String>,
    /// Whether the secret is a parameter of the form.
    is_in_form: bool,
}

impl Client {
    /// The client of an accepted registration.
    fn registered(answer: &Answer, method: &str) -> Option<Client> {
        let body = Some(&answer.body).filter(|_| answer.status < 300)?;
        let used = body["token_endpoint_auth_method"].as_str().unwrap_or(method);
        let secret = body["client_secret"].as_str().filter(|_| used != "none").map(str::to_owned);
        Some(Client { id: body["client_id"].as_str()?.to_owned(), secret, is_in_form: used == "client_secret_post" })
    }
}

/// What came back.
struct Answer {
    status: u16,
    location: Option<String>,
    body: Value,
}

impl<'o> IssuerProber<'o> {
    pub(super) fn new(options: &'o IssuerOptions) -> IssuerProber<'o> {
        IssuerProber {
            options,
            wires: BTreeMap::new(),
            logins: Trace::default(),
            begun: Instant::now(),
            callback: None,
            client: Client::default(),
            other: None,
            metadata: Value::Null,
            missing: Vec::new(),
        }
    }

    /// Ends all connections. Returns the traces, and why something could not be sent.
    pub(super) async fn close(mut self) -> (Vec<Trace>, Vec<(String, String)>) {
        if let Some(callback) = self.callback.take() {
            callback.close().await;
        }
        let mut traces = Vec::new();
        for (_, wire) in std::mem::take(&mut self.wires) {
            let recorder = wire.recorder().clone();
            wire.close().await;
            traces.push(recorder.trace());
        }
        self.logins.push(self.begun.elapsed(), EventKind::Closed(Closed::by_client("the check has ended")));
        traces.push(self.logins);
        (traces, self.missing)
    }

    /// Sends everything.
    ///
    /// # Errors
    /// Why nothing can be checked.
    pub(super) async fn probe(&mut self) -> Result<(), String> {
        let urls = server_metadata_urls(&self.options.issuer).map_err(|error| error.to_string())?;
        let mut is_reached = false;
        for (number, url) in urls.iter().enumerate() {
            let answer = self.get(&format!("metadata/{number}"), url).await;
            is_reached |= answer.is_some();
            let found = answer.filter(|it| it.status == 200 && it.body.is_object());
            if let Some(answer) = found.filter(|_| self.metadata.is_null()) {
                self.metadata = answer.body;
            }
        }
        if !is_reached {
            let failure = self.wires.values().find_map(Wire::failure).unwrap_or_else(|| "no answer".to_owned());
            return Err(format!("cannot reach the authorization server: {failure}"));
        }
        let callback = Callback::listen(self.options.port).await;
        self.callback = Some(callback.map_err(|error| format!("cannot listen for the browser: {error}"))?);
        if self.metadata.is_null() {
            for what in ["client", "code", "resource"] {
                self.lack(what, NO_METADATA);
            }
            return Ok(());
        }
        if self.options.resource.is_none() {
            self.lack("resource", NO_RESOURCE);
        }
        self.register().await;
        self.provoke_errors().await;
        match self.client.id.is_empty() {
            true => {
                for what in ["client", "code", "resource"] {
                    self.lack(what, NO_CLIENT);
                }
            }
            false => {
                self.try_redirects().await;
                self.use_codes().await;
            }
        }
        Ok(())
    }

    fn lack(&mut self, what: &str, why: &str) {
        self.missing.push((what.to_owned(), why.to_owned()));
    }

    fn redirect_uri(&self) -> String {
        self.callback.as_ref().map(|callback| callback.uri.clone()).unwrap_or_default()
    }

    fn endpoint(&self, name: &str) -> Option<Url> {
        Url::parse(self.metadata[name].as_str()?).ok()
    }

    /// Whether the metadata name a method of client authentication; without any, `client_secret_basic` is meant (RFC
    /// 8414, section 2).
    fn authenticates_by(&self, method: &str) -> bool {
        match self.metadata["token_endpoint_auth_methods_supported"].as_array() {
            Some(methods) => methods.iter().any(|it| it == method),
            None => method == "client_secret_basic",
        }
    }

    /// Registers the client, unless there is one; and one that must not be.
    async fn register(&mut self) {
        if let Some(id) = &self.options.client {
            self.client.id.clone_from(id);
        }
        let Some(url) = self.endpoint("registration_endpoint") else { return };
        let is_listed = self.metadata["token_endpoint_auth_methods_supported"].is_array();
        let methods = ["none", "client_secret_basic", "client_secret_post"];
        let method = methods.into_iter().find(|method| is_listed && self.authenticates_by(method)).unwrap_or("none");
        let client = |uri: &str| {
            json!({
                "client_name": "rehearse check",
                "redirect_uris": [uri],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "token_endpoint_auth_method": method,
                "application_type": "native",
            })
        };
        let json = HeaderValue::from_static("application/json");
        let headers: HeaderMap = [(header::CONTENT_TYPE, json)].into_iter().collect();
        let (valid, mut answers) = (self.redirect_uri(), Vec::new());
        for (case, uri) in [
            ("valid", &*valid),
            ("other", &*valid),
            ("invalid", "this is no URI"),
            ("unprotected", "http://rehearse.invalid/callback"),
        ] {
            let (case, body) = (format!("registration/{case}"), client(uri).to_string());
            answers.push(self.send(&case, Method::POST, &url, headers.clone(), Some(body.into())).await);
        }
        let mut clients = answers.into_iter().map(|answer| Client::registered(&answer?, method));
        if let (Some(client), None) = (clients.next().flatten(), &self.options.client) {
            self.client = client;
        }
        self.other = clients.next().flatten();
    }

    /// Token requests that every server refuses.
    async fn provoke_errors(&mut self) {
        let code = [("grant_type", "authorization_code"), ("code", "rehearse"), ("code_verifier", &*random(43))];
        let code = code.map(|(name, value)| (name, value.to_owned()));
        if !self.client.id.is_empty() {
            let uri = ("redirect_uri", self.redirect_uri());
            self.token("error/code", code.iter().cloned().chain([uri]).collect()).await;
            self.token("error/grant-type", vec![("grant_type", "rehearse".to_owned())]).await;
        }
        if let (Some(url), true) = (self.endpoint("token_endpoint"), self.authenticates_by("client_secret_basic")) {
            let client =
                Client { id: "rehearse-unknown".to_owned(), secret: Some("rehearse".to_owned()), is_in_form: false };
            self.form("error/client", &url, &client, code.to_vec()).await;
        }
    }

    /// Authorization requests whose redirect URI is not that of the client.
    async fn try_redirects(&mut self) {
        let uri = self.redirect_uri();
        let others = [
            ("path", format!("{uri}/other")),
            ("query", format!("{uri}?other=1")),
            ("host", "https://rehearse.invalid/callback".to_owned()),
        ];
        for (name, other) in others {
            let verifier = random(43);
            let Some(url) = self.authorization_url(&other, &challenge(&verifier), "S256") else { return };
            self.get(&format!("redirect/{name}"), &url).await;
        }
    }

    /// Gets codes, and uses each as its client or as a thief.
    async fn use_codes(&mut self) {
        let verifier = random(43);
        if let Some(mut url) = self.authorization_url(&self.redirect_uri(), &verifier, "plain") {
            self.get("authorize/plain", &url).await;
            // Others may be known by their secret.
            if self.client.secret.is_none() {
                let pairs: Vec<_> = url.query_pairs().into_owned().collect();
                let others = pairs.iter().filter(|(name, _)| !name.starts_with("code_challenge"));
                url.query_pairs_mut().clear().extend_pairs(others);
                self.get("authorize/no-challenge", &url).await;
            }
        }
        let Some(code) = self.code("authorize/usual", &verifier).await else { return };
        let token = self.exchange("token/usual", &code, Some(&verifier)).await;
        let refresh = |token: &Option<Answer>| Some(token.as_ref()?.body["refresh_token"].as_str()?.to_owned());
        if let Some(first) = refresh(&token) {
            let kind = if self.client.secret.is_none() { "refresh/public" } else { "refresh/confidential" };
            let renewed = self.refresh(kind, &first).await;
            let last = refresh(&renewed).unwrap_or(first);
            if self.revoke("revocation/refresh-token", &last).await {
                self.refresh("refresh/revoked", &last).await;
            }
        }
        self.revoke("revocation/unknown", "rehearse-unknown").await;
        self.exchange("token/again", &code, Some(&verifier)).await;
        for (name, length, is_right) in [
            ("wrong-verifier", 43, Some(false)),
            ("no-verifier", 43, None),
            ("long-verifier", 128, Some(true)),
            ("short-verifier", 42, Some(true)),
        ] {
            let (verifier, other) = (random(length), random(length));
            let Some(code) = self.code(&format!("authorize/{name}"), &verifier).await else { return };
            let shown = is_right.map(|is_right| if is_right { &*verifier } else { &*other });
            let token = self.exchange(&format!("token/{name}"), &code, shown).await;
            let Some(first) = refresh(&token).filter(|_| name == "long-verifier") else { continue };
            let renewed = self.refresh("refresh/replacing", &first).await;
            if refresh(&renewed).is_some_and(|next| next != first) {
                self.refresh("refresh/replaced", &first).await;
            }
        }
        if let Some(other) = self.other.take() {
            let Some(code) = self.code("authorize/other-client", &verifier).await else { return };
            let own = std::mem::replace(&mut self.client, other);
            self.exchange("token/other-client", &code, Some(&verifier)).await;
            self.client = own;
        }
    }

    fn authorization_url(&self, redirect_uri: &str, challenge: &str, method: &str) -> Option<Url> {
        let mut url = self.endpoint("authorization_endpoint")?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", &random(43))
            .append_pair("code_challenge", challenge)
            .append_pair("code_challenge_method", method);
        if let Some(resource) = &self.options.resource {
            url.query_pairs_mut().append_pair("resource", resource);
        }
        let scopes = self.metadata["scopes_supported"].as_array();
        if scopes.is_some_and(|scopes| scopes.iter().any(|scope| scope == "offline_access")) {
            url.query_pairs_mut().append_pair("scope", "offline_access");
        }
        Some(url)
    }

    /// A new code. Where the server shows a page, a user logs in.
    async fn code(&mut self, case: &str, verifier: &str) -> Option<String> {
        let url = self.authorization_url(&self.redirect_uri(), &challenge(verifier), "S256")?;
        let answer = self.get(case, &url).await?;
        let own = self.redirect_uri();
        let mut location = answer.location.filter(|location| location.starts_with(&own));
        if location.is_none() {
            let Some(login) = &self.options.login else {
                self.lack("code", NO_LOGIN);
                self.lack("resource", NO_LOGIN);
                return None;
            };
            login(url.as_str());
            location = self.callback.as_mut()?.response(self.options.login_timeout).await;
            self.note_login(case, &url, location.as_deref());
        }
        let code = location.and_then(|location| {
            let location = Url::parse(&location).ok()?;
            location.query_pairs().find(|(name, _)| name == "code").map(|(_, code)| code.into_owned())
        });
        if code.is_none() {
            self.lack("code", NO_CODE);
            self.lack("resource", NO_CODE);
        }
        code
    }

    /// Records where the browser was redirected to after an authorization request.
    fn note_login(&mut self, case: &str, url: &Url, location: Option<&str>) {
        let Some(location) = location.and_then(|location| HeaderValue::from_str(location).ok()) else { return };
        let (at, exchange) =
            (self.begun.elapsed(), Some(u32::try_from(self.logins.events().count()).unwrap_or(u32::MAX)));
        let headers = [(header::LOCATION, location)].into_iter().collect();
        for kind in [
            EventKind::Case(format!("{ISSUER}/{case}").into()),
            EventKind::HttpRequest { method: Method::GET, target: target(url), headers: HeaderMap::new() },
            EventKind::HttpResponse { status: StatusCode::FOUND, headers },
        ] {
            self.logins.push_event(Event { at, exchange, kind });
        }
    }

    async fn exchange(&mut self, case: &str, code: &str, verifier: Option<&str>) -> Option<Answer> {
        let mut form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.to_owned()),
            ("redirect_uri", self.redirect_uri()),
        ];
        form.extend(verifier.map(|verifier| ("code_verifier", verifier.to_owned())));
        self.token(case, form).await
    }

    async fn refresh(&mut self, case: &str, token: &str) -> Option<Answer> {
        let form = vec![("grant_type", "refresh_token".to_owned()), ("refresh_token", token.to_owned())];
        self.token(case, form).await
    }

    async fn token(&mut self, case: &str, mut form: Vec<(&'static str, String)>) -> Option<Answer> {
        let url = self.endpoint("token_endpoint")?;
        form.extend(self.options.resource.clone().map(|resource| ("resource", resource)));
        let client = std::mem::take(&mut self.client);
        let answer = self.form(case, &url, &client, form).await;
        self.client = client;
        answer
    }

    /// Revokes a token. Whether the server says that it did.
    async fn revoke(&mut self, case: &str, token: &str) -> bool {
        let Some(url) = self.endpoint("revocation_endpoint") else { return false };
        let form = vec![("token", token.to_owned()), ("token_type_hint", "refresh_token".to_owned())];
        let client = std::mem::take(&mut self.client);
        let answer = self.form(case, &url, &client, form).await;
        self.client = client;
        answer.is_some_and(|it| it.status == 200)
    }

    /// Sends a form as a client.
    async fn form(
        &mut self,
        case: &str,
        url: &Url,
        client: &Client,
        mut form: Vec<(&'static str, String)>,
    ) -> Option<Answer> {
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        match &client.secret {
            Some(secret) if !client.is_in_form => {
                let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(&client.id), encoded(secret)));
                headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Basic {pair}")).ok()?);
            }
            secret => {
                form.push(("client_id", client.id.clone()));
                form.extend(secret.clone().map(|secret| ("client_secret", secret)));
            }
        }
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        self.send(case, Method::POST, url, headers, Some(body.into())).await
    }

    async fn get(&mut self, case: &str, url: &Url) -> Option<Answer> {
        self.send(case, Method::GET, url, HeaderMap::new(), None).await
    }

    /// Sends a request as a case. `None` if nothing comes back in time.
    async fn send(
        &mut self,
        case: &str,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Option<Answer> {
        let origin = url.origin().ascii_serialization();
        if !self.wires.contains_key(&origin) {
            let is_issuer = Url::parse(&self.options.issuer).is_ok_and(|issuer| issuer.origin() == url.origin());
            let params = ServerParams {
                // Only what the user names may be anywhere.
                named_by: self.options.named_by.clone().or((!is_issuer).then(|| self.options.issuer.clone())),
                shutdown: self.options.shutdown.clone(),
                ..ServerParams::new(ISSUER, Target::http(&origin))
            };
            let wire = Wire::open(&params, None, ClientRecorder::new()).await.ok()?;
            self.wires.insert(origin.clone(), wire);
        }
        let wire = self.wires.get(&origin)?;
        let case = Some(Arc::from(format!("{ISSUER}/{case}")));
        let path = Some(target(url));
        let mut read = wire.recorder().end();
        let mut sent =
            wire.exchange(WireRequest { method, path, headers, body, case, ..WireRequest::default() }).ok()?;
        sent.ended(self.options.timeout).await;
        let (mut answer, mut body) = (None, Vec::new());
        for event in wire.recorder().read(&mut read).into_iter().filter(|it| it.exchange == Some(sent.number)) {
            match &event.kind {
                EventKind::HttpResponse { status, headers } => {
                    let location = headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
                    answer = Some((status.as_u16(), location.map(str::to_owned)));
                }
                EventKind::HttpBody { direction: Direction::ServerToClient, bytes } => body.extend_from_slice(bytes),
                EventKind::Frame(frame) if frame.direction == Direction::ServerToClient => {
                    body.extend_from_slice(&frame.bytes);
                }
                _ => {}
            }
        }
        let (status, location) = answer?;
        Some(Answer { status, location, body: serde_json::from_slice(&body).unwrap_or_default() })
    }
}

/// Path and query.
fn target(url: &Url) -> String {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", url.path())
}

/// So many random characters that a verifier may have.
fn random(length: usize) -> String {
    let mut bytes = vec![0; length];
    rand::rng().fill_bytes(&mut bytes);
    let mut text = BASE64_URL_SAFE_NO_PAD.encode(bytes);
    text.truncate(length);
    text
}

/// The challenge by the method `S256` (RFC 7636, section 4.2).
fn challenge(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}
