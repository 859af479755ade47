//! An MCP server and its authorization servers, on one port.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use hyper::Response;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use url::form_urlencoded;

use super::super::{Authorizer, Interaction, Options, pkce::Verifier};
use crate::client::{
    Endpoint, ServerConfig, Target,
    tests::server::{self, Body, HELLO, HttpServer, Seen, greet_http, reply, result},
};

/// A server and what it is to do.
pub(super) struct World {
    pub(super) server: HttpServer,
    play: Arc<Mutex<Play>>,
}

/// How the servers behave. Everything is right by default.
pub(super) struct Play {
    base: String,
    /// The parameters of the challenge besides those that are there for a reason; `None` sends no challenge at all.
    pub(super) challenge: Option<String>,
    /// Whether the challenge says where the metadata are.
    pub(super) is_pointing: bool,
    /// The metadata of the resource; `null` for none.
    pub(super) resource: Value,
    /// What the metadata of the issuers have in place of what is right; `null` takes a member away.
    pub(super) issuer: Value,
    /// Whether issuers have metadata.
    pub(super) has_metadata: bool,
    /// The `iss` of the authorization response; `None` for the right one, and the empty text for none.
    pub(super) iss: Option<&'static str>,
    /// What the authorization response has in place of a code.
    pub(super) refusal: Option<&'static str>,
    /// What the authorization response has in place of the state.
    pub(super) state: Option<&'static str>,
    pub(super) registration: Value,
    /// Members of token responses.
    pub(super) token: Value,
    /// The status and error with which a refresh is refused.
    pub(super) refusal_of_refresh: Option<(u16, &'static str)>,
    /// Where the metadata of the resource are.
    pub(super) resource_path: &'static str,
    /// What is wanted of a request that shows nothing to refuse it: this method of the protocol, or else any.
    pub(super) refused_method: Option<&'static str>,
    /// What every answer of a token endpoint waits for.
    pub(super) hold: Arc<Semaphore>,
    /// The only access token there is, for servers that know no other.
    pub(super) fixed: Option<&'static str>,
    /// Whether tokens have no scopes, whatever is asked for.
    pub(super) is_stingy: bool,
    /// The scopes that a call needs.
    pub(super) needed: Vec<&'static str>,
    /// The access tokens that the server takes, with their scopes.
    pub(super) valid: HashMap<String, Vec<String>>,
    pub(super) takes_nothing: bool,
    codes: HashMap<String, (String, Vec<String>)>,
    count: usize,
}

impl World {
    pub(super) async fn new() -> World {
        let play = Arc::new(Mutex::new(Play {
            base: String::new(),
            challenge: Some(String::new()),
            is_pointing: true,
            resource: json!({}),
            issuer: json!({}),
            has_metadata: true,
            iss: None,
            refusal: None,
            state: None,
            registration: json!({}),
            token: json!({}),
            refusal_of_refresh: None,
            resource_path: "/.well-known/oauth-protected-resource/mcp",
            refused_method: None,
            hold: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            fixed: None,
            is_stingy: false,
            needed: Vec::new(),
            valid: HashMap::new(),
            takes_nothing: false,
            codes: HashMap::new(),
            count: 0,
        }));
        let acting = play.clone();
        let server = HttpServer::start(move |seen| {
            let (response, hold) = {
                let mut play = acting.lock().expect("no panic");
                (play.answer(&seen), play.hold.clone())
            };
            async move {
                if seen.uri.path().ends_with("/token") {
                    drop(hold.acquire().await);
                }
                response
            }
        })
        .await;
        let base = server.url.trim_end_matches("/mcp").to_owned();
        {
            let mut play = play.lock().expect("no panic");
            play.resource = json!({ "resource": server.url, "authorization_servers": [format!("{base}/as1")] });
            play.base = base;
        }
        World { server, play }
    }

    pub(super) fn play(&self) -> MutexGuard<'_, Play> {
        self.play.lock().expect("no panic")
    }

    pub(super) fn base(&self) -> String {
        self.play().base.clone()
    }

    pub(super) fn options() -> Options {
        let redirect_uri = "http://localhost:3000/callback".to_owned();
        Options { interaction: Interaction::Headless { redirect_uri }, ..Options::default() }
    }

    pub(super) fn authorizer(&self, options: Options) -> Authorizer {
        Authorizer::new(&self.server.url, options).expect("an authorizer")
    }

    /// How to reach the server with this authorizer.
    pub(super) fn config(&self, authorizer: &Authorizer) -> ServerConfig {
        let target = Target::Http(Endpoint { url: self.server.url.clone(), headers: Vec::new() });
        ServerConfig { authorizer: Some(authorizer.clone()), ..ServerConfig::new("fake", target) }
    }

    /// What the authorization servers were asked, as method and path, with what is of interest.
    pub(super) fn asked(&self) -> Vec<String> {
        let asked = self.server.seen().into_iter().filter(|seen| seen.uri.path() != "/mcp");
        asked.map(|seen| format!("{} {}", seen.method, seen.uri.path())).collect()
    }

    /// How often this was asked for.
    pub(super) fn times(&self, what: &str) -> usize {
        self.asked().iter().filter(|asked| *asked == what).count()
    }

    /// What the last request to the server was made with.
    pub(super) fn last_authorization(&self) -> String {
        let seen = self.server.seen().into_iter().rfind(|seen| seen.uri.path() == "/mcp").expect("a request");
        seen.headers["authorization"].to_str().expect("a text").to_owned()
    }

    /// The parameters of the last request for this.
    pub(super) fn last(&self, path: &str) -> HashMap<String, String> {
        let seen = self.server.seen().into_iter().rfind(|seen| seen.uri.path() == path);
        parameters(&seen.unwrap_or_else(|| panic!("nobody asked for {path}")))
    }
}

/// The parameters of a query or a form.
fn parameters(seen: &Seen) -> HashMap<String, String> {
    let text = if seen.body.is_empty() { seen.uri.query().unwrap_or_default().as_bytes() } else { &seen.body };
    form_urlencoded::parse(text).into_owned().collect()
}

impl Play {
    /// The server takes no token any more that it has taken so far.
    pub(super) fn forget_tokens(&mut self) {
        self.valid.clear();
    }

    fn answer(&mut self, seen: &Seen) -> Response<Body> {
        let path = seen.uri.path().to_owned();
        let none = || reply(404, "text/plain", "");
        match (&*seen.method, &*path) {
            (_, "/mcp") => self.serve(seen),
            ("GET", path) if path == self.resource_path && !self.resource.is_null() => {
                server::json(self.resource.to_string())
            }
            ("GET", "/.well-known/oauth-authorization-server") if self.has_metadata && self.resource.is_null() => {
                server::json(self.metadata("").to_string())
            }
            ("GET", path) if self.has_metadata && path.starts_with("/.well-known/oauth-authorization-server/") => {
                let issuer = path.trim_start_matches("/.well-known/oauth-authorization-server");
                server::json(self.metadata(issuer).to_string())
            }
            (method, path) => match (method, path.rsplit_once('/').unwrap_or_default()) {
                ("GET", (issuer, "authorize")) => self.authorize(seen, issuer),
                ("POST", (issuer, "register")) => self.register(issuer),
                ("POST", (issuer, "token")) => self.issue(seen, issuer),
                _ => none(),
            },
        }
    }

    fn serve(&self, seen: &Seen) -> Response<Body> {
        let token = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let is_let_in = |method| seen.body.is_empty() || seen.message()["method"] != method;
        if token.is_none() && self.refused_method.is_some_and(is_let_in) {
            return reply(405, "text/plain", "");
        }
        let Some(scopes) = token.and_then(|token| self.valid.get(token)).filter(|_| !self.takes_nothing) else {
            return self.challenge(401, "");
        };
        let message = seen.message();
        let is_call = message["method"] == "tools/call";
        if is_call && self.needed.iter().any(|needed| !scopes.iter().any(|scope| scope == needed)) {
            let scope = format!("error=\"insufficient_scope\", scope=\"{}\"", self.needed.join(" "));
            return self.challenge(403, &scope);
        }
        greet_http(seen).unwrap_or_else(|| server::json(result(&message, HELLO)))
    }

    fn challenge(&self, status: u16, own: &str) -> Response<Body> {
        let mut response = reply(status, "text/plain", "no");
        let Some(more) = &self.challenge else { return response };
        let at = format!("resource_metadata=\"{}{}\"", self.base, self.resource_path);
        let parts = [own, more, if self.is_pointing { &at } else { "" }];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let value = format!("Bearer {}", parts.join(", "));
        response.headers_mut().insert("www-authenticate", value.parse().expect("a header"));
        response
    }

    fn metadata(&self, issuer: &str) -> Value {
        let at = format!("{}{issuer}", self.base);
        let mut metadata = json!({
            "issuer": at,
            "authorization_endpoint": format!("{at}/authorize"),
            "token_endpoint": format!("{at}/token"),
            "registration_endpoint": format!("{at}/register"),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        for (name, value) in self.issuer.as_object().expect("an object") {
            metadata[name] = value.clone();
        }
        if let Some(members) = metadata.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        metadata
    }

    fn register(&self, issuer: &str) -> Response<Body> {
        let mut answer = json!({ "client_id": format!("client-of{issuer}"), "client_secret": "s3cret" });
        let patch = self.registration.as_object().expect("an object");
        for (name, value) in patch {
            answer[name] = value.clone();
        }
        reply(if patch.contains_key("error") { 400 } else { 201 }, "application/json", answer.to_string())
    }

    fn authorize(&mut self, seen: &Seen, issuer: &str) -> Response<Body> {
        self.count += 1;
        let (asked, code) = (parameters(seen), format!("code-{}", self.count));
        let scopes = asked.get("scope").map(|it| it.split(' ').map(str::to_owned).collect()).unwrap_or_default();
        self.codes.insert(code.clone(), (asked["code_challenge"].clone(), scopes));
        let mut answer: reqwest::Url = asked["redirect_uri"].parse().expect("a URL");
        let right = format!("{}{issuer}", self.base);
        {
            let mut pairs = answer.query_pairs_mut();
            match self.refusal {
                Some(refusal) => pairs.append_pair("error", refusal),
                None => pairs.append_pair("code", &code),
            };
            pairs.append_pair("state", self.state.unwrap_or(&asked["state"]));
            match self.iss {
                Some("") => {}
                Some("slash") => drop(pairs.append_pair("iss", &format!("{right}/"))),
                Some(iss) => drop(pairs.append_pair("iss", iss)),
                None => drop(pairs.append_pair("iss", &right)),
            }
        }
        let mut response = reply(302, "text/plain", "");
        response.headers_mut().insert("location", answer.as_str().parse().expect("a header"));
        response
    }

    fn issue(&mut self, seen: &Seen, issuer: &str) -> Response<Body> {
        let form = parameters(seen);
        let refuse_with =
            |status, error: &str| reply(status, "application/json", json!({ "error": error }).to_string());
        let refuse = |error: &str| refuse_with(400, error);
        if !form.contains_key("client_id") {
            // As FastMCP does it, whatever else shows who the client is.
            return refuse("invalid_client");
        }
        let scopes = match &*form["grant_type"] {
            "authorization_code" => match self.codes.remove(&form["code"]) {
                Some((challenge, scopes)) if Verifier::of(&form["code_verifier"]).challenge() == challenge => scopes,
                _ => return refuse("invalid_grant"),
            },
            "refresh_token" => match self.refusal_of_refresh {
                Some((status, error)) => return refuse_with(status, error),
                None => Vec::new(),
            },
            "urn:ietf:params:oauth:grant-type:token-exchange" if form["subject_token"] == "id-token" => {
                return server::json(json!({ "access_token": "certificate", "token_type": "N_A" }).to_string());
            }
            "urn:ietf:params:oauth:grant-type:jwt-bearer" if form["assertion"] != "certificate" => {
                return refuse("invalid_grant");
            }
            "urn:ietf:params:oauth:grant-type:jwt-bearer" => Vec::new(),
            "client_credentials" => {
                form.get("scope").map(|it| it.split(' ').map(str::to_owned).collect()).unwrap_or_default()
            }
            _ => return refuse("unsupported_grant_type"),
        };
        self.count += 1;
        let token =
            self.fixed.map_or_else(|| format!("token-{}{}", self.count, issuer.replace('/', ".")), str::to_owned);
        self.valid.insert(token.clone(), if self.is_stingy { Vec::new() } else { scopes });
        let mut answer = json!({ "access_token": token, "token_type": "Bearer" });
        for (name, value) in self.token.as_object().expect("an object") {
            answer[name] = value.clone();
        }
        server::json(answer.to_string())
    }
}
