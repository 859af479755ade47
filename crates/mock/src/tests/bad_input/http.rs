//! A client that sends any bytes over HTTP.

use rehearse_protocol::sse;
use serde_json::Value as Json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::PATIENCE;

/// A client with its own opinion of HTTP, to one server.
pub(super) struct Http<'a> {
    server: &'a str,
}

/// A whole response.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: String,
    /// The message of the body, or those of its events.
    pub(super) frames: Vec<Json>,
    pub(super) is_empty: bool,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The code of the error that came, or of none.
    pub(super) fn code(&self) -> Option<i64> {
        self.frames.last()?["error"]["code"].as_i64()
    }
}

/// A client that reads streams.
pub(super) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

impl<'a> Http<'a> {
    pub(super) fn new(server: &'a str) -> Self {
        Http { server }
    }

    pub(super) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.send("POST", path, headers, body).await
    }

    /// Sends a request on a connection of its own and reads until the server closes it.
    pub(super) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str(&format!("host: {}\r\n", self.server));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = TcpStream::connect(self.server).await.expect("connects");
        // A server that refuses a body may stop reading it.
        let _ = stream.write_all(&[head.as_bytes(), b"\r\n", body].concat()).await;
        let mut response = Vec::new();
        let read = stream.read_to_end(&mut response);
        let _ = tokio::time::timeout(PATIENCE, read).await.expect("in time");
        parse(&response)
    }
}

fn parse(response: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(response);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("a response: {text:?}"));
    let (status, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = status.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let is_chunked = headers.contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    let frames = match headers.contains("text/event-stream") {
        true => {
            let mut events = Vec::new();
            sse::Decoder::default().push(body.as_bytes(), &mut events).expect("small");
            let data = events.into_iter().filter_map(|event| event.data).filter(|data| !data.is_empty());
            data.map(|data| serde_json::from_slice(&data).expect("JSON")).collect()
        }
        false => serde_json::from_str(&body).into_iter().collect(),
    };
    Reply { status, headers: headers.to_owned(), frames, is_empty: body.is_empty() }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        whole.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}
