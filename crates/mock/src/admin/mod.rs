//! The admin API: tests in any language control a running mock through it, over HTTP on its own port.
//!
//! | request | does |
//! | --- | --- |
//! | `GET /` | lists the endpoints |
//! | `GET /journal` | `{ "entries": […] }`: every request that the mock has received, and which rule answered it |
//! | `DELETE /journal` | clears it |
//! | `GET /verify` | `{ "holds", "expectations", "unmet", "violations", "unexpected", "tolerated", "report" }`: whether the expectations of the script are met |
//! | `GET /violations` | `{ "violations": […] }`: the rules of the specification that the clients have violated; needs a recorder of traces |
//! | `POST /reset` | starts over: clears the journal, traces, counters, state, tasks, added rules and list changes |
//! | `GET /state` | the state |
//! | `PUT /state` | replaces the state with an object; null members are dropped |
//! | `PATCH /state` | changes it by a JSON merge patch (RFC 7396) |
//! | `GET /rules` | `{ "rules": […] }`: every rule in the order in which they are tried, with its calls |
//! | `POST /rules` | adds a rule before those of an item: `{ "tool": "echo", "rule": { "when": …, "reply": … } }`; returns its `id` |
//! | `DELETE /rules/{id}` | removes a rule that was added |
//!
//! It listens on a loopback address only, and every request must have the server's random token:
//! `Authorization: Bearer TOKEN`. `Host` and `Origin` are checked as those of the mock are. Bodies are JSON in both
//! directions; an error response has `{ "error", "problems" }`, with the lines and columns of the body.

use std::{collections::HashMap, io, net::SocketAddr, sync::Arc, time::Duration, time::Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt;
use rand::RngExt;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use tokio::{net::TcpListener, time::timeout};

use super::{
    engine::{Engine, Verification},
    script::{auth::is_same, merge},
    serve::ServerRecorder,
};
use rehearse_document::{
    Diagnostics,
    state::{State, StateTooLarge},
};
use rehearse_net::{
    Body, BodyError, ConnectionHandle, ConnectionLimit, HostPolicy, Request, Response, Shutdown, accept, read_body,
};
use rehearse_protocol::MAX_FRAME;

/// The time limit for a request body.
const SLOW: Duration = Duration::from_secs(30);
const RULES: &str = "/rules/";
/// The endpoints; `{id}` is one path segment.
const ENDPOINTS: &[(Method, &str, &str)] = &[
    (Method::GET, "/", "lists the endpoints"),
    (Method::GET, "/journal", "every request that the mock has received, and which rule answered it"),
    (Method::DELETE, "/journal", "clears the journal"),
    (Method::GET, "/verify", "whether the expectations of the script are met"),
    #[cfg(feature = "check")]
    (Method::GET, "/violations", "the rules of the specification that the clients have violated; needs --check"),
    (
        Method::POST,
        "/reset",
        "starts over: clears the journal, traces, counters, state, tasks, added rules and changed lists",
    ),
    (Method::GET, "/state", "the state"),
    (Method::PUT, "/state", "replaces the state"),
    (Method::PATCH, "/state", "changes the state by a JSON merge patch"),
    (Method::GET, "/rules", "every rule in the order in which they are tried"),
    (Method::POST, "/rules", "puts a rule in front: { \"tool\": NAME, \"rule\": { \"when\": …, \"reply\": … } }"),
    (Method::DELETE, "/rules/{id}", "removes a rule that was added"),
];

/// The admin API of an engine. Dropping it ends it at once; [`AdminServer::stop`] ends it in order.
#[derive(Debug)]
pub struct AdminServer {
    address: SocketAddr,
    state: Arc<AdminState>,
    shutdown: Shutdown,
}

#[derive(Debug)]
struct AdminState {
    engine: Arc<Engine>,
    recorder: Option<Arc<ServerRecorder>>,
    started: Instant,
    hosts: HostPolicy,
    token: String,
}

/// Why a request is refused.
struct AdminError {
    status: StatusCode,
    why: String,
    problems: Option<Diagnostics>,
    header: Option<(header::HeaderName, String)>,
}

impl AdminServer {
    /// Listens on a loopback address; port 0 selects a free port. `started` is the start time of the mock, `recorder` that
    /// of its traces.
    ///
    /// # Errors
    /// The address cannot be bound, or is not a loopback address.
    pub async fn start(
        engine: Arc<Engine>,
        recorder: Option<Arc<ServerRecorder>>,
        started: Instant,
        address: SocketAddr,
    ) -> io::Result<AdminServer> {
        if !address.ip().is_loopback() {
            let why = format!("{} is not a loopback address", address.ip());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let token = format!("{:032x}{:032x}", rand::rng().random::<u128>(), rand::rng().random::<u128>());
        let state = Arc::new(AdminState { engine, recorder, started, hosts: HostPolicy::new(address.ip(), []), token });
        let shutdown = Shutdown::default();
        let service = {
            let state = state.clone();
            move |request, _: &ConnectionHandle| handle(state.clone(), request)
        };
        shutdown.tasks.spawn(accept(listener, ConnectionLimit::default(), shutdown.clone(), service));
        Ok(AdminServer { address, state, shutdown })
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of the endpoints.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bearer token that every request needs.
    pub fn token(&self) -> &str {
        &self.state.token
    }

    /// Ends the server. Nothing is left running.
    pub async fn stop(self) {
        self.shutdown.end(Duration::ZERO).await;
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.shutdown.stop.cancel();
        self.shutdown.kill.cancel();
    }
}

async fn handle(state: Arc<AdminState>, request: Request) -> Response {
    let answered = match state.admit(&request) {
        Ok(()) => state.answer(request).await,
        Err(refusal) => Err(refusal),
    };
    let (status, body, more) = match answered {
        Ok((status, body)) => (status, body, None),
        Err(AdminError { status, why, problems, header }) => {
            let problems = problems.map_or(json!([]), |problems| json!(problems));
            (status, Some(json!({ "error": why, "problems": problems }).to_string()), header)
        }
    };
    let mut response = Response::new(body.map_or(Body::Whole(None), Body::whole));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some((name, Ok(value))) = more.map(|(name, value)| (name, value.parse())) {
        headers.insert(name, value);
    }
    response
}

impl AdminState {
    /// # Errors
    /// The request comes from a page that must not use this server, or does not have the token.
    fn admit(&self, request: &Request) -> Result<(), AdminError> {
        if request.headers().get_all(header::HOST).iter().count() != 1 {
            return Err(AdminError::new(StatusCode::BAD_REQUEST, "there must be one Host header"));
        }
        self.hosts
            .check(request.headers(), request.uri())
            .map_err(|why| AdminError::new(StatusCode::FORBIDDEN, why.to_string()))?;
        match self.is_authorized(request.headers()) {
            true => Ok(()),
            false => {
                let refusal = AdminError::new(StatusCode::UNAUTHORIZED, "the bearer token of this server is required");
                Err(refusal.with_header(header::WWW_AUTHENTICATE, "Bearer"))
            }
        }
    }

    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        token.is_some_and(|token| is_same(&self.token, token))
    }

    /// The status and the body. Messages of clients are in it as they came: a [`Json`] cannot be as deep as they can.
    async fn answer(&self, request: Request) -> Result<(StatusCode, Option<String>), AdminError> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let engine = &self.engine;
        let found = match (parts.method.as_str(), path) {
            ("GET", "/") => json!({ "name": engine.name(), "endpoints": endpoints() }),
            ("GET", "/journal") => {
                let entries = HashMap::from([("entries", engine.journal().entries())]);
                return Ok((StatusCode::OK, Some(written(&entries))));
            }
            ("DELETE", "/journal") => {
                engine.journal().clear();
                return Ok((StatusCode::NO_CONTENT, None));
            }
            ("GET", "/verify") => return Ok((StatusCode::OK, Some(self.verify()))),
            #[cfg(feature = "check")]
            ("GET", "/violations") => match &self.recorder {
                Some(recorder) => json!({ "violations": recorder.violations() }),
                None => {
                    let why = "the traffic is not checked; start the mock with --check";
                    return Err(AdminError::new(StatusCode::NOT_FOUND, why));
                }
            },
            ("POST", "/reset") => {
                self.recorder.iter().for_each(|recorder| recorder.reset());
                engine.reset(self.started.elapsed());
                return Ok((StatusCode::NO_CONTENT, None));
            }
            ("GET", "/state") => json!(*engine.state().get()),
            ("PUT", "/state") => {
                let mut values = object(&read(body).await?)?;
                // A null removes a value, as in scripts.
                values.retain(|_, value| !value.is_null());
                State::check(&values, engine.state_limit())?;
                engine.state().replace(values);
                json!(*engine.state().get())
            }
            ("PATCH", "/state") => {
                let patch = object(&read(body).await?)?;
                self.patch(&patch)?;
                json!(*engine.state().get())
            }
            ("GET", "/rules") => json!({ "rules": engine.rules() }),
            ("POST", "/rules") => {
                let id = engine.add_rule(&text(&read(body).await?)?).map_err(AdminError::invalid)?;
                return Ok((StatusCode::CREATED, Some(json!({ "id": id }).to_string())));
            }
            ("DELETE", path) if path.len() > RULES.len() && path.starts_with(RULES) => {
                let id = &path[RULES.len()..];
                return match engine.remove_rule(id) {
                    true => Ok((StatusCode::NO_CONTENT, None)),
                    false => Err(AdminError::new(StatusCode::NOT_FOUND, format!("no rule of the id {id:?} was added"))),
                };
            }
            _ => return Err(nothing_there(path)),
        };
        Ok((StatusCode::OK, Some(found.to_string())))
    }

    fn verify(&self) -> String {
        #[derive(Serialize)]
        struct Verified {
            holds: bool,
            report: String,
            #[serde(flatten)]
            verification: Verification,
        }
        let verification = self.engine.verify();
        let (holds, report) = (verification.holds(), verification.to_string());
        written(&Verified { holds, report, verification })
    }

    fn patch(&self, patch: &Map<String, Json>) -> Result<(), AdminError> {
        let state = self.engine.state();
        let change = || {
            let before = state.get();
            let merged = |(name, value): (&String, &Json)| {
                let value = match value {
                    Json::Null => Json::Null,
                    value => merge(before.get(name).cloned().unwrap_or_default(), value),
                };
                (name.clone(), value)
            };
            Ok::<_, StateTooLarge>(patch.iter().map(merged).collect())
        };
        Ok(state.update(self.engine.state_limit(), change)?)
    }
}

fn written(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap_or_default()
}

impl From<StateTooLarge> for AdminError {
    fn from(error: StateTooLarge) -> AdminError {
        AdminError::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())
    }
}

impl AdminError {
    fn new(status: StatusCode, why: impl Into<String>) -> AdminError {
        AdminError { status, why: why.into(), problems: None, header: None }
    }

    fn with_header(self, name: header::HeaderName, value: impl Into<String>) -> AdminError {
        AdminError { header: Some((name, value.into())), ..self }
    }

    fn invalid(problems: Diagnostics) -> AdminError {
        AdminError { problems: Some(problems), ..AdminError::new(StatusCode::BAD_REQUEST, "the rule has mistakes") }
    }
}

fn endpoints() -> Json {
    ENDPOINTS
        .iter()
        .map(|(method, path, about)| json!({ "request": format!("{method} {path}"), "does": about }))
        .collect()
}

/// The error for an unknown path, or for a method that the path does not have.
fn nothing_there(path: &str) -> AdminError {
    let is_it = |known: &str| match known.split_once("{id}") {
        Some((prefix, _)) => path.len() > prefix.len() && path.starts_with(prefix),
        None => path == known,
    };
    let allowed: Vec<_> =
        ENDPOINTS.iter().filter(|(_, known, _)| is_it(known)).map(|(method, ..)| method.as_str()).collect();
    if allowed.is_empty() {
        return AdminError::new(
            StatusCode::NOT_FOUND,
            format!("nothing is served at {path}; GET / lists the endpoints"),
        );
    }
    let allowed = allowed.join(", ");
    let why = format!("the method is not allowed here; allowed are {allowed}");
    AdminError::new(StatusCode::METHOD_NOT_ALLOWED, why).with_header(header::ALLOW, allowed)
}

async fn read(mut body: hyper::body::Incoming) -> Result<Bytes, AdminError> {
    let reading = async {
        match read_body(&mut body, MAX_FRAME).await {
            Ok(body) => Ok(body),
            Err(error @ BodyError::TooLong(_)) => {
                // A client that is still sending does not read the error.
                while let Some(Ok(_)) = body.frame().await {}
                Err(AdminError::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()))
            }
            Err(error) => Err(AdminError::new(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}"))),
        }
    };
    let late = |_| Err(AdminError::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"));
    timeout(SLOW, reading).await.unwrap_or_else(late)
}

fn text(body: &Bytes) -> Result<String, AdminError> {
    let text = str::from_utf8(body);
    text.map(str::to_owned).map_err(|_| AdminError::new(StatusCode::BAD_REQUEST, "the body is not UTF-8"))
}

fn object(body: &Bytes) -> Result<Map<String, Json>, AdminError> {
    let object = serde_json::from_slice(body);
    object.map_err(|error| AdminError::new(StatusCode::BAD_REQUEST, format!("the body must be a JSON object: {error}")))
}

#[cfg(test)]
mod tests;
