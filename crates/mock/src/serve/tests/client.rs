//! A client over HTTP.

use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::*;

pub(super) struct Client {
    pub(super) server: MockServer,
    pub(super) http: reqwest::Client,
    pub(super) headers: Vec<(&'static str, String)>,
}

/// A client of HTTP that uses no proxy, whichever test comes first in the process.
pub(super) fn http_client() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy()
}

impl Client {
    pub(super) async fn open(script: &str) -> Client {
        let server = MockServer::start(engine(script), ListenOptions::default()).await.expect("binds");
        let http = http_client().build().expect("a client");
        let headers = vec![
            ("accept", "application/json, text/event-stream".to_owned()),
            ("content-type", "application/json".to_owned()),
        ];
        Client { server, http, headers }
    }

    pub(super) async fn session(version: &str) -> Client {
        Client::session_with(SCRIPT, version).await
    }

    pub(super) async fn session_with(script: &str, version: &str) -> Client {
        let mut client = Client::open(script).await;
        let response = client.post("/mcp", &initialize(version)).await;
        assert_eq!(response.status(), 200);
        let id = response.headers()["mcp-session-id"].to_str().expect("text").to_owned();
        client.headers.push(("mcp-session-id", id));
        client
    }

    pub(super) fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("http://{}{path}", self.server.address()));
        self.headers.iter().fold(request, |request, (name, value)| request.header(*name, value))
    }

    pub(super) async fn post(&self, path: &str, frame: &Json) -> reqwest::Response {
        self.request(reqwest::Method::POST, path).body(frame.to_string()).send().await.expect("a response")
    }

    pub(super) async fn get(&self, path: &str) -> reqwest::Response {
        self.request(reqwest::Method::GET, path).send().await.expect("a response")
    }

    pub(super) async fn post_modern(&self, request: Json) -> reqwest::Response {
        self.try_post_modern(request).await.expect("a response")
    }

    pub(super) async fn try_post_modern(&self, request: Json) -> reqwest::Result<reqwest::Response> {
        let name = request["params"]["name"].as_str().unwrap_or_default().to_owned();
        self.post_as_is(modern(request), &name).await
    }

    /// Sends a request that has all it needs; `name` is what it is about, if anything.
    pub(super) async fn post_as_is(&self, request: Json, name: &str) -> reqwest::Result<reqwest::Response> {
        let http = self
            .request(reqwest::Method::POST, "/mcp")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", request["method"].as_str().expect("text"));
        let http = if name.is_empty() { http } else { http.header("mcp-name", name) };
        http.body(request.to_string()).send().await
    }

    pub(super) async fn socket(&self) -> WebSocketStream<MaybeTlsStream<TcpStream>> {
        let url = self.server.url(Transport::Ws).expect("a URL");
        let mut request = url.into_client_request().expect("a request");
        request.headers_mut().insert("sec-websocket-protocol", ::http::HeaderValue::from_static("mcp"));
        let (socket, response) = tokio_tungstenite::connect_async(request).await.expect("connects");
        assert_eq!(response.headers()["sec-websocket-protocol"], "mcp");
        socket
    }
}

pub(super) struct Events {
    response: reqwest::Response,
    decoder: Decoder,
    ready: std::collections::VecDeque<Event>,
}

impl Events {
    pub(super) fn from_response(response: reqwest::Response) -> Events {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { response, decoder: Decoder::default(), ready: Default::default() }
    }

    pub(super) async fn next(&mut self) -> Option<Event> {
        while self.ready.is_empty() {
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("in time");
            let mut events = Vec::new();
            self.decoder.push(&chunk.ok()??, &mut events).expect("small");
            self.ready.extend(events);
        }
        self.ready.pop_front()
    }

    pub(super) async fn json(&mut self) -> Json {
        let data = self.next().await.expect("an event").data.expect("data");
        serde_json::from_slice(&data).expect("JSON")
    }
}
