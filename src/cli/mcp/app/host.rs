//! A minimal host: a page of ours that shows the page of an app in a sandboxed frame, both on this machine alone.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http::{HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use rehearse_net::{
    Body, ConnectionHandle, ConnectionLimit, HostPolicy, Request, Response, Shutdown, accept, read_body,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

use super::page::AppPage;

/// How long answers in progress may take at the end.
const GRACE: Duration = Duration::from_millis(500);
/// A window that is loaded again is back after this time.
const RELOAD: Duration = Duration::from_secs(2);
const MAX_NOTE: usize = 64 << 10;
const MAX_NOTES: usize = 1000;
const JSON: &str = "application/json";

/// What happened on a page, and how often.
type Notes = Arc<Mutex<BTreeMap<String, usize>>>;

/// A host that is served. Dropping it ends it.
pub(super) struct AppHost {
    pub(super) url: String,
    /// The addresses of the page around the app and of the app.
    pub(super) addresses: [SocketAddr; 2],
    notes: Notes,
    /// How many windows show it.
    windows: Windows,
    shutdown: Shutdown,
}

type Windows = watch::Sender<i64>;

/// The files of one origin.
struct Site {
    hosts: HostPolicy,
    /// What only we know, so that no other user of this machine finds the pages.
    folder: String,
    files: Vec<(&'static str, &'static str, Vec<u8>)>,
    policy: HeaderValue,
    notes: Notes,
    /// Only the outer page counts them.
    windows: Option<Windows>,
}

impl AppHost {
    /// Serves the page of an app, and the page around it on another port: they have different origins.
    ///
    /// # Errors
    /// No port can be bound.
    pub(super) async fn start(page: &AppPage, tool: &Value, args: &Value, result: &Value) -> io::Result<AppHost> {
        let folder = format!("/{:016x}/", RandomState::new().hash_one(&page.uri));
        let [inner, outer] =
            [TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?, TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?];
        let addresses = [outer.local_addr()?, inner.local_addr()?];
        let [outer_origin, inner_origin] = addresses.map(|address| format!("http://{address}"));
        let view = format!("{inner_origin}{folder}");
        let data = json!({
            "view": view, "title": tool["name"], "allow": page.features(), "tool": tool, "args": args, "result": result,
        });
        let shell = include_str!("host.html")
            .replace("data-version=\"0\"", concat!("data-version=\"", env!("CARGO_PKG_VERSION"), "\""));
        let outer_policy = format!(
            "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; frame-src {inner_origin}"
        );
        let inner_policy = format!("{}; frame-ancestors {outer_origin}; report-uri {folder}note", page.policy());
        let (notes, shutdown, windows) = (Notes::default(), Shutdown::default(), Windows::new(0));
        let serve = |listener: TcpListener, policy: String, windows: Option<Windows>, files: Vec<_>| {
            let site = Arc::new(Site {
                hosts: HostPolicy::new(Ipv4Addr::LOCALHOST.into(), []),
                folder: folder.clone(),
                files,
                policy: HeaderValue::try_from(policy).map_err(io::Error::other)?,
                notes: notes.clone(),
                windows,
            });
            let service = move |request, _: &ConnectionHandle| {
                let site = site.clone();
                async move { site.respond(request).await }
            };
            shutdown.tasks.spawn(accept(listener, ConnectionLimit::default(), shutdown.clone(), service));
            Ok::<_, io::Error>(())
        };
        serve(inner, inner_policy, None, vec![("", "text/html; charset=utf-8", page.html.clone().into_bytes())])?;
        let script = include_bytes!("host.js").to_vec();
        serve(
            outer,
            outer_policy,
            Some(windows.clone()),
            vec![
                ("", "text/html; charset=utf-8", shell.into_bytes()),
                ("host.js", "text/javascript; charset=utf-8", script),
                ("data.json", JSON, data.to_string().into_bytes()),
            ],
        )?;
        Ok(AppHost { url: format!("{outer_origin}{folder}"), addresses, notes, windows, shutdown })
    }

    /// What happened so far: the messages of the page, and what its policy blocked.
    pub(super) fn notes(&self) -> BTreeMap<String, usize> {
        self.notes.lock().clone()
    }

    /// Waits until the user has closed the window.
    pub(super) async fn closed(&self) {
        let mut windows = self.windows.subscribe();
        loop {
            let _ = windows.wait_for(|open| *open > 0).await;
            let _ = windows.wait_for(|open| *open <= 0).await;
            tokio::time::sleep(RELOAD).await;
            if *windows.borrow() <= 0 {
                return;
            }
        }
    }

    /// Ends the host.
    pub(super) async fn stop(self) {
        self.shutdown.end(GRACE).await;
    }
}

impl Drop for AppHost {
    fn drop(&mut self) {
        self.shutdown.stop.cancel();
        self.shutdown.kill.cancel();
    }
}

impl Site {
    async fn respond(&self, request: Request) -> Response {
        let allowed = self.hosts.check(request.headers(), request.uri());
        let name = request.uri().path().strip_prefix(&*self.folder).unwrap_or("/").to_owned();
        let file = self.files.iter().find(|(file, ..)| *file == name);
        if let (Some(windows), Ok(()), "" | "closed") = (&self.windows, &allowed, &*name) {
            windows.send_modify(|open| *open += if name.is_empty() { 1 } else { -1 });
        }
        let (status, kind, bytes) = match (allowed, request.method(), file) {
            (Err(_), ..) => (StatusCode::FORBIDDEN, JSON, Vec::new()),
            (Ok(()), &Method::GET, Some((_, kind, bytes))) => (StatusCode::OK, *kind, bytes.clone()),
            (Ok(()), &Method::POST, _) if name == "note" => {
                let body = read_body(request.into_body(), MAX_NOTE).await;
                self.note(&body.map(|body| String::from_utf8_lossy(&body).into_owned()).unwrap_or_default());
                (StatusCode::NO_CONTENT, JSON, Vec::new())
            }
            _ => (StatusCode::NOT_FOUND, JSON, Vec::new()),
        };
        let mut response = Response::new(Body::whole(bytes));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Notes a message of the page by its method, or the report of a browser about what it has blocked.
    fn note(&self, text: &str) {
        let report = serde_json::from_str::<Value>(text).unwrap_or_default();
        let report = &report["csp-report"];
        let text = match (report["effective-directive"].as_str(), report["blocked-uri"].as_str()) {
            (Some(directive), Some(uri)) => format!("blocked by {directive}: {uri}"),
            _ => text.to_owned(),
        };
        let mut notes = self.notes.lock();
        if notes.len() < MAX_NOTES && !text.is_empty() {
            *notes.entry(text).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn ask(url: &str, method: &str, path: &str, headers: &str, body: &str) -> String {
        let authority = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("a URL");
        let mut stream = std::net::TcpStream::connect(authority).expect("a connection");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_page_has_its_policy_and_only_this_machine_gets_it() {
        let page = AppPage {
            uri: "ui://a".to_owned(),
            mime_type: String::new(),
            html: "<p>Hello</p>".to_owned(),
            ui: json!({ "csp": { "resourceDomains": ["https://b.example"] } }),
        };
        let tool = json!({ "name": "t" });
        let host = AppHost::start(&page, &tool, &json!({ "x": 1 }), &json!({})).await.expect("starts");
        let path = host.url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).expect("a path");
        let own = "Host: 127.0.0.1\r\n";
        let data = ask(&host.url, "GET", &format!("{path}data.json"), own, "");
        let body: Value = serde_json::from_str(data.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
        let view = body["view"].as_str().expect("a URL");
        let answer = ask(view, "GET", &path, own, "");
        assert!(answer.contains("script-src 'self' 'unsafe-inline' https://b.example;"), "{answer}");
        assert!(answer.contains("frame-ancestors http://127.0.0.1:") && answer.ends_with("<p>Hello</p>"), "{answer}");
        for (path, headers, status) in [
            (&*path, "Host: evil.example\r\n", "403"),
            (&path, "Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n", "403"),
            ("/", own, "404"),
            (&path, own, "200"),
        ] {
            let answer = ask(&host.url, "GET", path, headers, "");
            assert_eq!(answer.split(' ').nth(1), Some(status), "{headers}");
        }
        let report =
            r#"{"csp-report":{"effective-directive":"script-src-elem","blocked-uri":"https://c.example/x.js"}}"#;
        ask(view, "POST", &format!("{path}note"), own, report);
        let found: Vec<_> = host.notes().into_keys().collect();
        assert_eq!(found, ["blocked by script-src-elem: https://c.example/x.js"]);
        let open = *host.windows.borrow();
        ask(&host.url, "POST", &format!("{path}closed"), own, "");
        assert_eq!((open, *host.windows.borrow()), (1, 0));
        host.stop().await;
    }
}
