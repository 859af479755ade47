//! An authorization server that approves every request, for mocks.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Value as Json, json};

/// The issued tokens: for reading, for reading and writing, and after a refresh.
pub(crate) const READER: &str = "geheim-reader-1234";
pub(crate) const WRITER: &str = "geheim-writer-1234";
pub(crate) const REFRESHED: &str = "geheim-refreshed-1234";
/// The prefix of all secrets.
pub(crate) const SECRET: &str = "geheim";
pub(crate) const REFRESH: &str = "geheim-refresh-1234";

/// It runs until the end of the process.
pub(crate) struct Issuer {
    pub(crate) url: String,
    /// The status of revocations; `None` without a revocation endpoint.
    revokes: Arc<Mutex<Option<&'static str>>>,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A received request.
#[derive(Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) what: String,
    pub(crate) form: HashMap<String, String>,
    pub(crate) authorization: Option<String>,
}

impl Issuer {
    /// Starts it; `life` is the lifetime of tokens in seconds.
    pub(crate) fn start(life: u64) -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let revokes = Arc::new(Mutex::new(Some("200 OK")));
        let (record, here, revoking) = (seen.clone(), url.clone(), revokes.clone());
        std::thread::spawn(move || {
            let mut scope = String::new();
            for stream in listener.incoming().flatten() {
                if let Some(asked) = read(&stream) {
                    record.lock().expect("no panic").push(asked.clone());
                    let revokes = *revoking.lock().expect("no panic");
                    let answer = answer(&here, life, revokes, &asked, &mut scope);
                    let _ = (&stream).write_all(answer.as_bytes());
                }
            }
        });
        Issuer { url, revokes, seen }
    }

    /// Sets the status of revocations; `None` disables the revocation endpoint.
    pub(crate) fn revoke_with(&self, status: Option<&'static str>) {
        *self.revokes.lock().expect("no panic") = status;
    }

    fn requests(&self) -> MutexGuard<'_, Vec<ReceivedRequest>> {
        self.seen.lock().expect("no panic")
    }

    /// The number of requests of this kind.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.requests().iter().filter(|asked| asked.what == what).count()
    }

    /// All requests of this kind, in order.
    pub(crate) fn all(&self, what: &str) -> Vec<ReceivedRequest> {
        self.requests().iter().filter(|asked| asked.what == what).cloned().collect()
    }

    /// The last request of this kind.
    #[track_caller]
    pub(crate) fn last(&self, what: &str) -> ReceivedRequest {
        let asked = self.requests().iter().rfind(|asked| asked.what == what).cloned();
        asked.unwrap_or_else(|| panic!("no request for {what}"))
    }
}

fn read(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (mut length, mut authorization) = (0, None);
    loop {
        let mut header = String::new();
        lines.read_line(&mut header).ok()?;
        let Some((name, value)) = header.split_once(':') else { break };
        match &*name.to_ascii_lowercase() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => authorization = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    let text = if body.is_empty() { query.as_bytes() } else { &body };
    let form = url::form_urlencoded::parse(text).into_owned().collect();
    Some(ReceivedRequest { what: format!("{method} {path}"), form, authorization })
}

/// The response; `scope` is the scope of the current authorization.
fn answer(here: &str, life: u64, revokes: Option<&str>, asked: &ReceivedRequest, scope: &mut String) -> String {
    let form = &asked.form;
    let text = |name: &str| form.get(name).cloned().unwrap_or_default();
    match &*asked.what {
        "GET /.well-known/oauth-authorization-server" => json(&json!({
            "issuer": here,
            "authorization_endpoint": format!("{here}/authorize"),
            "token_endpoint": format!("{here}/token"),
            "registration_endpoint": format!("{here}/register"),
            "revocation_endpoint": revokes.map(|_| format!("{here}/revoke")),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        })),
        "POST /revoke" => {
            let status = revokes.unwrap_or("404 Not Found");
            format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        }
        "POST /register" => json(&json!({ "client_id": "registered", "client_secret": "geheim-client-1234" })),
        "GET /authorize" => {
            *scope = text("scope");
            let mut back = url::Url::parse(&form["redirect_uri"]).expect("a URL");
            back.query_pairs_mut()
                .append_pair("code", "geheim-code-1234")
                .append_pair("state", &text("state"))
                .append_pair("iss", here);
            format!("HTTP/1.1 302 Found\r\nlocation: {back}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        }
        "POST /token" => {
            let (is_refresh, is_alone) =
                (text("grant_type") == "refresh_token", text("grant_type") == "client_credentials");
            let scope = if is_alone { text("scope") } else { scope.clone() };
            let token = match (is_refresh, scope.contains("write")) {
                (true, _) => REFRESHED,
                (false, true) => WRITER,
                (false, false) => READER,
            };
            let life = if is_refresh { 3600 } else { life };
            json(&json!({
                "access_token": token, "token_type": "Bearer", "expires_in": life, "refresh_token": REFRESH, "scope": scope,
            }))
        }
        _ => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
    }
}

fn json(value: &Json) -> String {
    let (head, body) = ("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close", value.to_string());
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
