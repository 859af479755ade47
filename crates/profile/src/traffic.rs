//! What the connections with a server show of its work.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value as Json;

use rehearse_protocol::{Answered, Direction, EventKind, List, Message, Trace};

/// How the paths of documents begin that say where to get a token.
const DISCOVERY: &str = "/.well-known/oauth-";

/// What the connections with a server show.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// The methods of the requests and notifications that it has sent, also as input that it required.
    pub(crate) sent: BTreeSet<String>,
    /// The results of calls of tools.
    pub(crate) results: Vec<ToolResult>,
    /// Whether the list of tools had more than one page.
    pub(crate) has_pages: bool,
    /// Whether it asked for input in a browser.
    pub(crate) asks_for_url: bool,
    /// How long the fastest start took, to the end of the handshake: a host starts one process, and a check several at once.
    pub(crate) start: Option<Duration>,
    /// By cursor, how long a page of tools took that a connection had not read before: of several connections, the fastest.
    pub(crate) pages: BTreeMap<Option<String>, Duration>,
    /// Whether an HTTP request was answered with 401.
    pub(crate) needs_authorization: bool,
    /// Whether there was an HTTP exchange.
    pub(crate) has_http: bool,
    /// Whether it says where to get a token; `None` if it was not asked.
    pub(crate) has_discovery: Option<bool>,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(crate) struct ToolResult {
    pub(crate) tool: String,
    /// The types of its content.
    pub(crate) kinds: BTreeSet<String>,
    /// The texts of its content.
    pub(crate) text: String,
    /// The size of its JSON.
    pub(crate) bytes: usize,
    /// The bytes of its largest image.
    pub(crate) image: Option<usize>,
    pub(crate) has_structured_content: bool,
    pub(crate) is_error: bool,
    pub(crate) time: Duration,
}

/// Reads the connections with one server.
pub fn read_traffic<'t>(traces: impl IntoIterator<Item = &'t Trace>) -> Traffic {
    let mut traffic = Traffic::default();
    for trace in traces {
        traffic.read(trace);
    }
    traffic
}

impl Traffic {
    /// How long the slowest page of tools took; `None` if there was none.
    pub(crate) fn list(&self) -> Option<Duration> {
        self.pages.values().max().copied()
    }

    fn read(&mut self, trace: &Trace) {
        let mut asked = BTreeSet::new();
        for event in trace.events() {
            match &event.kind {
                EventKind::HttpRequest { target, .. } if target.starts_with(DISCOVERY) => asked.extend(event.exchange),
                EventKind::HttpResponse { status, headers } => {
                    self.has_http = true;
                    self.needs_authorization |= status.as_u16() == 401;
                    let mut challenges = headers.get_all("www-authenticate").iter().filter_map(|it| it.to_str().ok());
                    let is_document = event.exchange.is_some_and(|it| asked.contains(&it));
                    if challenges.any(|it| it.contains("resource_metadata")) || (is_document && status.is_success()) {
                        self.has_discovery = Some(true);
                    } else if is_document {
                        self.has_discovery.get_or_insert(false);
                    }
                }
                EventKind::Frame(frame) if frame.direction == Direction::ServerToClient => match frame.message() {
                    Ok(Message::Request(request)) => {
                        let params = request.params.and_then(|params| serde_json::from_str(params.get()).ok());
                        self.send(&request.method, &params.unwrap_or_default());
                    }
                    Ok(Message::Notification(notification)) => self.send(&notification.method, &Json::Null),
                    _ => {}
                },
                _ => {}
            }
        }
        let mut pages = BTreeMap::new();
        for answered in Answered::all(trace) {
            let (time, at) = (answered.came.saturating_sub(answered.sent), answered.came);
            let Ok(result) = &answered.outcome else { continue };
            // What hosts do with slow or paged lists is known of that of tools.
            if answered.method == List::Tools.method() {
                pages.entry(answered.params["cursor"].as_str().map(ToOwned::to_owned)).or_insert(time);
            }
            self.answer(&answered.method, &answered.params, result.get(), time, at);
        }
        for (cursor, time) in pages {
            let fastest = self.pages.entry(cursor).or_insert(time);
            *fastest = time.min(*fastest);
        }
    }

    fn send(&mut self, method: &str, params: &Json) {
        self.sent.insert(method.to_owned());
        self.asks_for_url |= method == "elicitation/create" && params["mode"] == "url";
    }

    fn answer(&mut self, method: &str, params: &Json, text: &str, time: Duration, at: Duration) {
        let result: Json = serde_json::from_str(text).unwrap_or_default();
        // Input that a result requires stands for a request of the server (2026-07-28, Multi Round-Trip Requests).
        let asked = result["inputRequests"].as_object().into_iter().flat_map(|all| all.values());
        for request in asked.cloned().collect::<Vec<_>>() {
            self.send(request["method"].as_str().unwrap_or_default(), &request["params"]);
        }
        if matches!(method, "initialize" | "server/discover") {
            self.start = Some(self.start.map_or(at, |known| known.min(at)));
        }
        self.has_pages |= method == List::Tools.method() && result["nextCursor"].is_string();
        let (true, Some(content)) = (method == "tools/call", result["content"].as_array()) else { return };
        let texts = content.iter().filter_map(|block| block["text"].as_str().or(block["resource"]["text"].as_str()));
        let images = content.iter().filter(|block| block["type"] == "image").filter_map(|block| block["data"].as_str());
        self.results.push(ToolResult {
            tool: params["name"].as_str().unwrap_or_default().to_owned(),
            kinds: content.iter().filter_map(|block| Some(block["type"].as_str()?.to_owned())).collect(),
            text: texts.collect::<Vec<_>>().join("\n"),
            bytes: text.len(),
            image: images.map(|data| BASE64_STANDARD.decode(data).map_or(data.len(), |bytes| bytes.len())).max(),
            has_structured_content: !result["structuredContent"].is_null(),
            is_error: result["isError"] == true,
            time,
        });
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, StatusCode, header::WWW_AUTHENTICATE};

    use super::*;
    use rehearse_protocol::Event;

    /// A connection with these requests, and the second in which each is answered that is sent when the one before is.
    fn trace(answers: &[(&str, u64)]) -> Trace {
        let mut trace = Trace::default();
        let mut sent = 0;
        for (id, (request, came)) in answers.iter().enumerate() {
            for (direction, at, text) in
                [(Direction::ClientToServer, sent, *request), (Direction::ServerToClient, *came, r#""result":{}"#)]
            {
                let text = format!(r#"{{"jsonrpc":"2.0","id":{id},{text}}}"#);
                trace.push_frame(Duration::from_secs(at), direction, text.into());
            }
            sent = *came;
        }
        trace
    }

    #[test]
    fn a_document_or_a_challenge_says_where_to_get_a_token() {
        let discovery = |path: &str, status: u16, challenge: &'static str| {
            let mut trace = Trace::default();
            let target = path.to_owned();
            let request = EventKind::HttpRequest { method: Method::GET, target, headers: HeaderMap::new() };
            let status = StatusCode::from_u16(status).expect("a status");
            let headers = [(WWW_AUTHENTICATE, challenge.parse().expect("a value"))];
            let response = EventKind::HttpResponse { status, headers: headers.into_iter().collect() };
            for kind in [request, response] {
                trace.push_event(Event { at: Duration::ZERO, exchange: Some(1), kind });
            }
            read_traffic([&trace]).has_discovery
        };
        let document = "/.well-known/oauth-protected-resource/mcp";
        assert_eq!(discovery(document, 200, ""), Some(true));
        assert_eq!(discovery(document, 404, ""), Some(false));
        assert_eq!(discovery("/mcp", 401, "Bearer"), None);
        assert_eq!(discovery("/mcp", 401, "Bearer resource_metadata=\"https://a.example\""), Some(true));
    }

    #[test]
    fn the_start_is_that_of_a_process_which_did_not_wait_for_others() {
        let traces = [5, 1, 3].map(|seconds| trace(&[(r#""method":"initialize","params":{}"#, seconds)]));
        assert_eq!(read_traffic(&traces).start, Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_list_takes_as_long_as_its_slowest_page_that_is_not_from_a_cache_in_the_fastest_connection() {
        let [first, second] = ["{}", r#"{"cursor":"2"}"#].map(|it| format!(r#""method":"tools/list","params":{it}"#));
        let [first, second] = [first.as_str(), second.as_str()];
        let busy = trace(&[(first, 9), (second, 17)]);
        let idle = trace(&[(first, 2), (second, 6), (first, 6), (second, 6)]);
        assert_eq!(read_traffic([&busy, &idle]).list(), Some(Duration::from_secs(4)));
    }
}
