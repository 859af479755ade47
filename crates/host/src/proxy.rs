//! A proxy that lets nothing through, and notes what was tried.

use std::{collections::BTreeSet, io, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};

/// How much of a request is read, and for how long.
const LONGEST: u64 = 4096;
const PATIENCE: Duration = Duration::from_secs(5);
const REFUSAL: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// It refuses every request. It ends on drop.
pub(crate) struct RefusingProxy {
    url: String,
    tried: Arc<Mutex<BTreeSet<String>>>,
    serving: JoinHandle<()>,
}

impl RefusingProxy {
    /// Listens on a free port of the loopback interface.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn start() -> io::Result<RefusingProxy> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let url = format!("http://{}", listener.local_addr()?);
        let tried: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let notes = tried.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let notes = notes.clone();
                tokio::spawn(async move { timeout(PATIENCE, refuse(stream, &notes)).await });
            }
        });
        Ok(RefusingProxy { url, tried, serving })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The hosts that were asked for, such as `api.example.com:443`.
    pub(crate) fn tried(&self) -> Vec<String> {
        self.tried.lock().iter().cloned().collect()
    }
}

impl Drop for RefusingProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn refuse(stream: TcpStream, notes: &Mutex<BTreeSet<String>>) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader).take(LONGEST);
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    notes.lock().extend(authority(&line).map(str::to_owned));
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).await? == 0 || header.trim().is_empty() {
            break;
        }
    }
    writer.write_all(REFUSAL).await
}

/// The authority of a request line: that of CONNECT, or that of an absolute URL (RFC 9112, section 3.2).
fn authority(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    match (method, target.split_once("://")) {
        ("CONNECT", _) => Some(target),
        (_, Some((_, rest))) => rest.split('/').next(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_refused_and_its_host_noted() {
        let proxy = RefusingProxy::start().expect("a port");
        let address = proxy.url().trim_start_matches("http://").to_owned();
        for request in [
            "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n",
            "GET http://example.org/a HTTP/1.1\r\nhost: example.org\r\n\r\n",
        ] {
            let mut stream = TcpStream::connect(&address).await.expect("it listens");
            stream.write_all(request.as_bytes()).await.expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("it answers");
            assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
        }
        assert_eq!(proxy.tried(), ["api.example.com:443", "example.org"]);
    }
}
