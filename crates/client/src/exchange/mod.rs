//! What a client says in one session, without IO: ids, `_meta` and headers by version, the handshake's requests, answers
//! and cancellations.

mod answers;
mod connect;
pub(crate) mod handshake;
mod info;

pub use answers::{Answer, AnswerScript, Answers, InputHandler, InputKind, InputRequest, ScopedAnswers};
pub use connect::{ConnectError, other_path, wrong_output};
pub use handshake::{Handshake, HandshakeError, HandshakeStep};
pub use info::{ClientInfo, PeerInfo, PeerVersion};

use std::collections::HashMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use rehearse_document::{
    Source,
    mirrored::{ANNOTATION, MirroredParameters},
    parse_yaml,
};
use rehearse_protocol::{
    Era, Id, RpcError, Version,
    http::{mirrored_headers, request_headers},
    message, meta,
    names::{SESSION_HEADER, VERSION_HEADER},
    span::{TRACEPARENT, TraceContext},
};

/// The state of one session as its messages need it. A caller may change a message before it sends it.
///
/// ```
/// use rehearse_client::{ClientInfo, Exchange};
/// use rehearse_protocol::Version;
/// use serde_json::Map;
///
/// let mut exchange = Exchange::new(ClientInfo::default(), Map::new(), Version::V2025_11_25);
/// assert!(exchange.initialize().bytes.starts_with(br#"{"jsonrpc":"2.0","id":0,"method":"initialize""#));
/// let ping = exchange.request("ping", None, None);
/// assert_eq!(ping.bytes, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
/// assert_eq!(exchange.headers(Some("ping"), &ping.bytes)["mcp-protocol-version"], "2025-11-25");
/// ```
#[derive(Debug)]
pub struct Exchange {
    client: ClientInfo,
    capabilities: Map<String, Value>,
    version: PeerVersion,
    session: Option<HeaderValue>,
    next_id: i64,
    /// The trace of the requests.
    trace: Option<u128>,
    /// The parameters that calls mirror in headers, by tool.
    mirrored: HashMap<String, MirroredParameters>,
}

/// A request that can be sent.
#[derive(Clone, Debug)]
pub struct OutgoingRequest {
    /// Its id.
    pub id: Id,
    /// Its JSON text.
    pub bytes: Bytes,
}

/// The members of a listed tool that decide about its headers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool<'a> {
    name: String,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

#[derive(Deserialize)]
struct ListedTools<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

impl Exchange {
    /// A session that has not begun, of a client with this name and these capabilities.
    pub fn new(client: ClientInfo, capabilities: Map<String, Value>, version: Version) -> Exchange {
        let (version, mirrored) = (PeerVersion::Known(version), HashMap::new());
        Exchange { client, capabilities, version, session: None, next_id: 0, trace: None, mirrored }
    }

    /// From now on a client of these capabilities; a server with a handshake reads them only there.
    pub fn set_capabilities(&mut self, capabilities: Map<String, Value>) {
        self.capabilities = capabilities;
    }

    /// From now on each request is a span of this trace, and names it to the server (W3C Trace Context).
    pub fn set_trace(&mut self, trace: Option<u128>) {
        self.trace = trace;
    }

    /// The version that the messages have.
    pub fn version(&self) -> &PeerVersion {
        &self.version
    }

    /// Goes on in another version: the one that the server chose, or that is tried next.
    pub fn set_version(&mut self, version: PeerVersion) {
        self.version = version;
    }

    /// The id of the HTTP session.
    pub fn session(&self) -> Option<&HeaderValue> {
        self.session.as_ref()
    }

    /// Takes the session id from the headers of the response to `initialize` (2025-11-25, Streamable HTTP: Session
    /// Management).
    pub fn begin_session(&mut self, headers: &HeaderMap) {
        self.session = headers.get(SESSION_HEADER).cloned();
    }

    /// Forgets the session, which has ended.
    pub fn end_session(&mut self) {
        self.session = None;
    }

    /// An id that no request has had.
    pub fn next_id(&mut self) -> Id {
        let id = Id::from(self.next_id);
        self.next_id += 1;
        id
    }

    /// A request with the `_meta` of the version, in which the members of `meta` and of the params take precedence.
    pub fn request(
        &mut self,
        method: &str,
        params: Option<Map<String, Value>>,
        meta: Option<Map<String, Value>>,
    ) -> OutgoingRequest {
        let (mut all, mut params) = (self.meta(), params);
        all.extend(meta.unwrap_or_default());
        if let Some(Value::Object(own)) = params.as_mut().and_then(|params| params.get_mut("_meta")) {
            all.extend(std::mem::take(own));
            params.as_mut().and_then(|params| params.shift_remove("_meta"));
        }
        self.add_trace(&mut all);
        let mut whole = Map::new();
        if !all.is_empty() {
            whole.insert("_meta".to_owned(), all.into());
        }
        let has_params = params.is_some();
        whole.extend(params.unwrap_or_default());
        let text = (has_params || !whole.is_empty()).then(|| Value::Object(whole).to_string());
        let id = self.next_id();
        OutgoingRequest { bytes: message::request(&id, method, text.as_deref()), id }
    }

    /// The `_meta` that each request has (2026-07-28, Base Protocol: `_meta`); empty in older versions.
    pub fn meta(&self) -> Map<String, Value> {
        if self.version.era() == Era::Legacy {
            return Map::new();
        }
        meta::of_request(self.known_version(), json!(self.client), self.capabilities.clone().into())
    }

    /// `initialize` (2025-11-25, Lifecycle: Initialization). It begins an HTTP session of its own.
    pub fn initialize(&mut self) -> OutgoingRequest {
        self.session = None;
        let (mut params, mut meta) = (self.initialize_params(), Map::new());
        self.add_trace(&mut meta);
        if !meta.is_empty() {
            params.insert("_meta".to_owned(), meta.into());
        }
        let (id, params) = (self.next_id(), Value::Object(params).to_string());
        OutgoingRequest { bytes: message::request(&id, "initialize", Some(&params)), id }
    }

    /// The context of a new span, unless the caller has chosen one.
    fn add_trace(&self, meta: &mut Map<String, Value>) {
        if let Some(trace) = self.trace.filter(|_| !meta.contains_key(TRACEPARENT)) {
            let span = rand::random_range(1..=u64::MAX);
            meta.insert(TRACEPARENT.to_owned(), TraceContext { trace, span }.to_string().into());
        }
    }

    /// The params of `initialize`.
    pub fn initialize_params(&self) -> Map<String, Value> {
        Map::from_iter([
            ("protocolVersion".to_owned(), self.version.to_string().into()),
            ("capabilities".to_owned(), self.capabilities.clone().into()),
            ("clientInfo".to_owned(), json!(self.client)),
        ])
    }

    /// The headers of the protocol for a POST of a message with this method.
    pub fn headers(&self, method: Option<&str>, body: &[u8]) -> HeaderMap {
        let mut headers = self.http_headers(&Method::POST, method);
        if self.version.era() == Era::Modern {
            headers.extend(mirrored_headers(body));
            if method == Some("tools/call") {
                headers.extend(self.parameter_headers(body));
            }
        }
        headers
    }

    /// The headers of the protocol for an HTTP request without a message.
    pub fn session_headers(&self, http_method: &Method) -> HeaderMap {
        self.http_headers(http_method, None)
    }

    fn http_headers(&self, http_method: &Method, method: Option<&str>) -> HeaderMap {
        let session = self.session.as_ref();
        let mut headers = request_headers(http_method, self.known_version(), method.unwrap_or_default(), session);
        if let (PeerVersion::Unknown(version), Some(header)) = (&self.version, headers.get_mut(VERSION_HEADER))
            && let Ok(version) = HeaderValue::from_str(version)
        {
            *header = version;
        }
        headers
    }

    /// The version whose rules hold.
    fn known_version(&self) -> Version {
        self.version.known().unwrap_or(Version::LATEST_LEGACY)
    }

    /// The headers that mirror arguments of a call (2026-07-28, Streamable HTTP: Custom Headers from Tool Parameters).
    fn parameter_headers(&self, body: &[u8]) -> HeaderMap {
        let Some(mut call) = self.has_mirrored().then(|| serde_json::from_slice::<Value>(body).ok()).flatten() else {
            return HeaderMap::new();
        };
        let arguments = call["params"]["arguments"].take();
        let tool = call["params"]["name"].as_str().and_then(|name| self.mirrored.get(name));
        tool.map(|parameters| parameters.headers(&arguments).collect()).unwrap_or_default()
    }

    fn has_mirrored(&self) -> bool {
        !self.mirrored.is_empty()
    }

    /// Reads from the result of `tools/list` which arguments belong into headers. Tools with invalid annotations are left
    /// out: the list of tools rejects them.
    pub fn read_tools(&mut self, result: &RawValue) {
        if self.version.era() == Era::Legacy || !result.get().contains(ANNOTATION) {
            return;
        }
        let listed = serde_json::from_str::<ListedTools<'_>>(result.get());
        for tool in listed.map(|listed| listed.tools).unwrap_or_default() {
            let Ok(tool) = serde_json::from_str::<ListedTool<'_>>(tool.get()) else { continue };
            let schema = parse_yaml(&Source::new("inputSchema", tool.input_schema.get()));
            if let Some(parameters) = schema.ok().and_then(|schema| MirroredParameters::read(&schema).ok()) {
                self.mirrored.insert(tool.name, parameters);
            }
        }
    }

    /// The response to a request of the server.
    pub fn response(id: &Id, answer: &Answer) -> Bytes {
        match answer {
            Answer::Result(result) => message::result(id, &result.to_string()),
            Answer::Error(error) => message::error(Some(id), error),
        }
    }

    /// The response to a request of the server with a method that the client does not know.
    pub fn unknown_method(id: &Id, method: &str) -> Bytes {
        let error = RpcError::new(message::METHOD_NOT_FOUND, format!("this client does not answer {method}"));
        message::error(Some(id), &error)
    }

    /// Cancels a request (2026-07-28, Cancellation).
    pub fn cancellation(id: &Id, reason: &str) -> Bytes {
        let params = format!("{{\"requestId\":{},\"reason\":{}}}", id.to_json(), Value::from(reason));
        message::notification("notifications/cancelled", &params)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn exchange(version: Version) -> Exchange {
        let client = ClientInfo { name: "c".to_owned(), title: Some("C".to_owned()), version: "1".to_owned() };
        Exchange::new(client, Map::from_iter([("roots".to_owned(), json!({}))]), version)
    }

    fn object(value: Value) -> Option<Map<String, Value>> {
        value.as_object().cloned()
    }

    #[test]
    fn a_modern_request_has_the_meta_of_its_version_and_the_members_of_the_caller_win() {
        let mut exchange = exchange(Version::V2026_07_28);
        let meta = object(json!({ "io.modelcontextprotocol/clientCapabilities": {}, "x": 1 }));
        let request = exchange.request("tools/call", object(json!({ "name": "t" })), meta);
        let expected = r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","title":"C","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"x":1},"name":"t"}}"#;
        assert_eq!(request.bytes, expected);
        let own = object(json!({ "_meta": { "x": 2 }, "a": 1 }));
        let request = exchange.request("ping", own, None);
        assert_eq!(request.id, Id::from(1));
        assert!(request.bytes.ends_with(br#""x":2},"a":1}}"#), "{:?}", request.bytes);
    }

    #[test]
    fn each_request_names_a_new_span_of_the_trace_unless_the_caller_names_one() {
        let mut exchange = exchange(Version::V2025_11_25);
        exchange.set_trace(Some(0xaa));
        let context = |request: OutgoingRequest| {
            let request: Value = serde_json::from_slice(&request.bytes).expect("JSON");
            TraceContext::parse(request["params"]["_meta"]["traceparent"].as_str()?)
        };
        let (one, other) = (context(exchange.initialize()), context(exchange.request("ping", None, None)));
        assert!(
            one != other && [one, other].iter().all(|it| it.is_some_and(|it| it.trace == 0xaa)),
            "{one:?} {other:?}"
        );
        let own = object(json!({ "traceparent": TraceContext { trace: 1, span: 2 }.to_string() }));
        assert_eq!(context(exchange.request("ping", None, own)), Some(TraceContext { trace: 1, span: 2 }));
        exchange.set_trace(None);
        assert_eq!(context(exchange.request("ping", None, None)), None);
    }

    #[test]
    fn initialize_begins_without_session_and_version_in_its_headers() {
        let mut exchange = exchange(Version::V2025_06_18);
        exchange.begin_session(&HeaderMap::from_iter([(
            HeaderName::from_static(SESSION_HEADER),
            HeaderValue::from_static("s"),
        )]));
        assert_eq!(exchange.session_headers(&Method::GET)["mcp-session-id"], "s");
        let request = exchange.initialize();
        let headers = exchange.headers(Some("initialize"), &request.bytes);
        assert!(exchange.session().is_none() && headers.len() == 2, "{headers:?}");
        let expected = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","title":"C","version":"1"}}}"#;
        assert_eq!(request.bytes, expected);
    }

    #[test]
    fn the_version_header_is_that_of_the_server_even_if_it_is_unknown() {
        let mut exchange = exchange(Version::V2025_11_25);
        exchange.set_version(PeerVersion::Unknown("1999-01-01".to_owned()));
        assert_eq!(exchange.headers(Some("ping"), b"{}")["mcp-protocol-version"], "1999-01-01");
        exchange.set_version(PeerVersion::Known(Version::V2024_11_05));
        assert!(exchange.session_headers(&Method::DELETE).is_empty());
    }

    #[test]
    fn arguments_are_mirrored_as_the_listed_tool_asks() {
        let mut exchange = exchange(Version::V2026_07_28);
        let schema = r#"{"properties":{"a":{"type":"integer","x-mcp-header":"A"}}}"#;
        let broken = r#"{"properties":{"a":{"type":"integer","x-mcp-header":""}}}"#;
        let tools =
            format!(r#"{{"tools":[{{"name":"t","inputSchema":{schema}}},{{"name":"u","inputSchema":{broken}}},5]}}"#);
        exchange.read_tools(&RawValue::from_string(tools).expect("JSON"));
        let headers = |exchange: &mut Exchange, tool: &str| {
            let call = exchange.request("tools/call", object(json!({ "name": tool, "arguments": { "a": 7 } })), None);
            exchange.headers(Some("tools/call"), &call.bytes)
        };
        assert_eq!(headers(&mut exchange, "t")["mcp-param-a"], "7");
        assert!(!headers(&mut exchange, "u").contains_key("mcp-param-a"));
    }

    #[test]
    fn answers_and_cancellations_name_the_request() {
        let id = Id::from("x\"");
        let answer = Exchange::response(&id, &Answer::Error(RpcError::new(-1, "m")));
        assert_eq!(answer, r#"{"jsonrpc":"2.0","id":"x\"","error":{"code":-1,"message":"m"}}"#);
        let cancelled = Exchange::cancellation(&id, "late");
        assert_eq!(
            cancelled,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x\"","reason":"late"}}"#
        );
    }
}
