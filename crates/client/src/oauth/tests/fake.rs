//! An MCP server and its authorization servers, on one port.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use serde_json::{Value, json};
use url::form_urlencoded;
use wiremock::{
    Match, Mock, MockServer, Request, ResponseTemplate,
    matchers::{method, path, path_regex},
};

use super::super::{Authorizer, Interaction, Options, pkce::Verifier};
use crate::{
    ServerParams, Target,
    tests::peer::{greet, header, json, message, reply},
};
use rehearse_testing::{HELLO, result};

/// A server and its behaviour.
pub(super) struct FakeServers {
    /// The URL of the MCP server.
    pub(super) url: String,
    server: MockServer,
    behaviour: Arc<Mutex<Behaviour>>,
}

/// The behaviour of the servers; correct by default.
pub(super) struct Behaviour {
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
    /// How long every answer of a token endpoint takes.
    pub(super) delay: Duration,
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

impl FakeServers {
    pub(super) async fn new() -> FakeServers {
        let server = MockServer::builder().start().await;
        let (base, url) = (server.uri(), format!("{}/mcp", server.uri()));
        let behaviour = Arc::new(Mutex::new(Behaviour {
            resource: json!({ "resource": url, "authorization_servers": [format!("{base}/as1")] }),
            base,
            challenge: Some(String::new()),
            is_pointing: true,
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
            delay: Duration::ZERO,
            is_stingy: false,
            needed: Vec::new(),
            valid: HashMap::new(),
            takes_nothing: false,
            codes: HashMap::new(),
            count: 0,
        }));
        let servers = FakeServers { url, server, behaviour };
        let get = || method("GET");
        servers.on(path("/mcp"), path_regex(""), |behaviour, request| behaviour.serve(request)).await;
        servers.on(get(), path_regex("^/authorize$|^/as[12]/authorize$"), Behaviour::authorize).await;
        servers
            .on(method("POST"), path_regex("^(/as[12])?/register$"), |behaviour, request| behaviour.register(request))
            .await;
        servers.on(method("POST"), path_regex("/token$"), Behaviour::issue).await;
        let metadata = "^/.well-known/oauth-authorization-server(/as[12])?$";
        servers.on(get(), path_regex(metadata), |behaviour, request| behaviour.issuer_metadata(request)).await;
        servers
            .on(get(), path_regex("^/.well-known/oauth-protected-resource|^/elsewhere$"), |behaviour, request| {
                behaviour.resource_metadata(request)
            })
            .await;
        servers
    }

    /// Has the state answer the requests that match; any other is not found.
    async fn on(
        &self,
        one: impl Match + 'static,
        other: impl Match + 'static,
        answer: impl Fn(&mut Behaviour, &Request) -> ResponseTemplate + Send + Sync + 'static,
    ) {
        let behaviour = self.behaviour.clone();
        let respond = move |request: &Request| answer(&mut behaviour.lock().expect("no panic"), request);
        Mock::given(one).and(other).respond_with(respond).mount(&self.server).await;
    }

    pub(super) fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour.lock().expect("no panic")
    }

    pub(super) fn base(&self) -> String {
        self.behaviour().base.clone()
    }

    pub(super) fn options() -> Options {
        let redirect_uri = "http://localhost:3000/callback".to_owned();
        Options { interaction: Interaction::Headless { redirect_uri }, ..Options::default() }
    }

    pub(super) fn authorizer(&self, options: Options) -> Authorizer {
        Authorizer::new(&self.url, options).expect("an authorizer")
    }

    /// How to reach the server with this authorizer.
    pub(super) fn config(&self, authorizer: &Authorizer) -> ServerParams {
        let params = ServerParams::new("fake", Target::http(&self.url));
        ServerParams { authorizer: Some(authorizer.clone()), ..params }
    }

    /// All requests, in order.
    pub(super) async fn requests(&self) -> Vec<Request> {
        self.server.received_requests().await.expect("requests are recorded")
    }

    /// The requests to the MCP server.
    pub(super) async fn to_server(&self) -> Vec<Request> {
        self.requests().await.into_iter().filter(|request| request.url.path() == "/mcp").collect()
    }

    /// The requests to the authorization servers, as method and path.
    pub(super) async fn auth_requests(&self) -> Vec<String> {
        let requests = self.requests().await.into_iter().filter(|request| request.url.path() != "/mcp");
        requests.map(|request| format!("{} {}", request.method, request.url.path())).collect()
    }

    /// How often this was requested.
    pub(super) async fn times(&self, what: &str) -> usize {
        self.auth_requests().await.iter().filter(|asked| *asked == what).count()
    }

    /// The `Authorization` of the last request to the MCP server.
    pub(super) async fn last_authorization(&self) -> String {
        let request = self.to_server().await.pop().expect("a request");
        header(&request, "authorization").expect("a header").to_owned()
    }

    /// The parameters of the last request to this path.
    pub(super) async fn last(&self, path: &str) -> HashMap<String, String> {
        let request = self.requests().await.into_iter().rfind(|request| request.url.path() == path);
        parameters(&request.unwrap_or_else(|| panic!("no request to {path}")))
    }
}

/// The parameters of a query or a form.
fn parameters(request: &Request) -> HashMap<String, String> {
    let query = request.url.query().unwrap_or_default().as_bytes();
    form_urlencoded::parse(if request.body.is_empty() { query } else { &request.body }).into_owned().collect()
}

/// The path of the authorization server that a request goes to: all but the last segment.
fn issuer_of(request: &Request) -> &str {
    request.url.path().rsplit_once('/').unwrap_or_default().0
}

impl Behaviour {
    /// The server takes no token any more that it has taken so far.
    pub(super) fn forget_tokens(&mut self) {
        self.valid.clear();
    }

    fn resource_metadata(&self, request: &Request) -> ResponseTemplate {
        let is_there = request.url.path() == self.resource_path && !self.resource.is_null();
        if is_there { json(&self.resource) } else { ResponseTemplate::new(404) }
    }

    fn issuer_metadata(&self, request: &Request) -> ResponseTemplate {
        let issuer = request.url.path().trim_start_matches("/.well-known/oauth-authorization-server");
        let is_there = self.has_metadata && (!issuer.is_empty() || self.resource.is_null());
        if is_there { json(self.metadata(issuer)) } else { ResponseTemplate::new(404) }
    }

    fn serve(&self, request: &Request) -> ResponseTemplate {
        let token = header(request, "authorization").and_then(|value| value.strip_prefix("Bearer "));
        let message = message(request);
        let is_let_in = |method| request.body.is_empty() || message["method"] != method;
        if token.is_none() && self.refused_method.is_some_and(is_let_in) {
            return ResponseTemplate::new(405);
        }
        let Some(scopes) = token.and_then(|token| self.valid.get(token)).filter(|_| !self.takes_nothing) else {
            return self.challenge(401, "");
        };
        let is_call = message["method"] == "tools/call";
        if is_call && self.needed.iter().any(|needed| !scopes.iter().any(|scope| scope == needed)) {
            let scope = format!("error=\"insufficient_scope\", scope=\"{}\"", self.needed.join(" "));
            return self.challenge(403, &scope);
        }
        greet(request).unwrap_or_else(|| json(result(&message, HELLO)))
    }

    fn challenge(&self, status: u16, own: &str) -> ResponseTemplate {
        let response = reply(status, "text/plain", "no");
        let Some(more) = &self.challenge else { return response };
        let at = format!("resource_metadata=\"{}{}\"", self.base, self.resource_path);
        let parts = [own, more, if self.is_pointing { &at } else { "" }];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        response.insert_header("www-authenticate", format!("Bearer {}", parts.join(", ")))
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

    fn register(&self, request: &Request) -> ResponseTemplate {
        let client = format!("client-of{}", issuer_of(request));
        let mut answer = json!({ "client_id": client, "client_secret": "s3cret" });
        let patch = self.registration.as_object().expect("an object");
        for (name, value) in patch {
            answer[name] = value.clone();
        }
        reply(if patch.contains_key("error") { 400 } else { 201 }, "application/json", answer.to_string())
    }

    fn authorize(&mut self, request: &Request) -> ResponseTemplate {
        self.count += 1;
        let (asked, code) = (parameters(request), format!("code-{}", self.count));
        let scopes = asked.get("scope").map(|it| it.split(' ').map(str::to_owned).collect()).unwrap_or_default();
        self.codes.insert(code.clone(), (asked["code_challenge"].clone(), scopes));
        let mut answer: reqwest::Url = asked["redirect_uri"].parse().expect("a URL");
        let right = format!("{}{}", self.base, issuer_of(request));
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
        ResponseTemplate::new(302).insert_header("location", answer.as_str())
    }

    fn issue(&mut self, request: &Request) -> ResponseTemplate {
        self.token_response(request).set_delay(self.delay)
    }

    fn token_response(&mut self, request: &Request) -> ResponseTemplate {
        let form = parameters(request);
        let refuse_with =
            |status, error: &str| reply(status, "application/json", json!({ "error": error }).to_string());
        let refuse = |error: &str| refuse_with(400, error);
        if !form.contains_key("client_id") {
            // As FastMCP does it, whatever else authenticates the client.
            return refuse("invalid_client");
        }
        let scopes = match &*form["grant_type"] {
            "authorization_code" => match self.codes.remove(&form["code"]) {
                Some((challenge, scopes)) if Verifier::from_text(&form["code_verifier"]).challenge() == challenge => {
                    scopes
                }
                _ => return refuse("invalid_grant"),
            },
            "refresh_token" => match self.refusal_of_refresh {
                Some((status, error)) => return refuse_with(status, error),
                None => Vec::new(),
            },
            "urn:ietf:params:oauth:grant-type:token-exchange" if form["subject_token"] == "id-token" => {
                return json(json!({ "access_token": "certificate", "token_type": "N_A" }));
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
        let token = format!("token-{}{}", self.count, issuer_of(request).replace('/', "."));
        self.valid.insert(token.clone(), if self.is_stingy { Vec::new() } else { scopes });
        let mut answer = json!({ "access_token": token, "token_type": "Bearer" });
        for (name, value) in self.token.as_object().expect("an object") {
            answer[name] = value.clone();
        }
        json(answer)
    }
}
