//! What a probe sends.
//!
//! A case is data: one message or HTTP request with a name. The areas say which cases they need; the prober sends each
//! on its [`CaseGroup`] and records the name before it, so that a judge finds it with [`Evidence::case`](crate::Evidence::case).

use bytes::Bytes;
use rehearse_protocol::{Era, List, Transport, Version};
use serde_json::{Value, json};

/// The connection on which a case is sent. Cases of one group are sent one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaseGroup {
    /// The main connection: whatever a client does in normal work.
    Main,
    /// A connection for requests that a server must refuse.
    Negative,
    /// A connection for input that a server may die of.
    Malformed,
    /// A connection of its own, without a handshake by the prober.
    Fresh,
    /// The connection on which listed tools are called.
    Calls,
    /// A connection over a pipe for unusual writes of valid requests.
    Input,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseBody {
    /// A request; the prober adds id and, in the modern era, the `_meta` that it must have.
    Request {
        method: String,
        /// Null sends no `params`.
        params: Value,
    },
    /// A notification.
    Notification { method: String, params: Value },
    /// These bytes.
    Bytes(Bytes),
    /// No body.
    Empty,
}

/// One message or HTTP request of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `probe/variant`.
    pub name: String,
    /// Where it is sent.
    pub group: CaseGroup,
    /// What is sent.
    pub body: CaseBody,
    /// Headers to set (`Some`) or to leave out (`None`), over HTTP. One that is set twice is sent twice.
    pub headers: Vec<(String, Option<String>)>,
    /// A path on the same host that replaces that of the endpoint.
    pub path: Option<String>,
    /// The HTTP method.
    pub http_method: &'static str,
    /// Members of the modern `_meta` to replace (`Some`) or to leave out (`None`).
    pub meta: Vec<(String, Option<Value>)>,
    /// Whether the names of the headers begin in upper case, over HTTP/1.1.
    pub has_title_case: bool,
    /// Whether an answer is expected. Without one, the prober waits only for the common window of silence.
    pub is_answered: bool,
}

/// The case of requests to an authorization server. Those for the metadata of one that a server names have its number and
/// that of the place below it, as `issuer/0/1`: what answers is not the server that is checked.
pub const ISSUER: &str = "issuer";

/// A list of more bytes is read once.
pub const LARGEST_LIST: usize = 2 << 20;

/// What the prober knows of the server when it asks for cases.
#[derive(Clone, Debug, Default)]
pub struct Material {
    /// The version of the group; `None` before it is known.
    pub version: Option<Version>,
    /// The transport.
    pub transport: Option<Transport>,
    /// The declared capabilities.
    pub capabilities: Value,
    /// The versions that `server/discover` names.
    pub supported: Vec<String>,
    /// The listed tools, as listed.
    pub tools: Vec<Value>,
    /// The listed resources.
    pub resources: Vec<Value>,
    /// The listed resource templates.
    pub templates: Vec<Value>,
    /// The listed prompts.
    pub prompts: Vec<Value>,
    /// Those of them that may get odd values and optional arguments.
    pub varied_prompts: Vec<Value>,
    /// The list methods that failed in normal work: no variation of them shows anything.
    pub failing: Vec<&'static str>,
    /// How many bytes the lists of each method have that are larger than most: they are read once or twice.
    pub large: Vec<(&'static str, usize)>,
    /// The cursor of the second page of each list that has one, by method.
    pub cursors: Vec<(String, Value)>,
    /// The tools that may be called, each with valid arguments.
    pub callable: Vec<(String, Value)>,
    /// The tools with mirrored parameters that may be called.
    pub mirrored: Vec<MirroredCall>,
    /// The URL of the server, if it has one.
    pub endpoint: String,
    /// A suffix for names that cannot exist.
    pub suffix: String,
}

/// A call of a tool with parameters that are repeated in headers (`x-mcp-header`).
#[derive(Clone, Debug)]
pub struct MirroredCall {
    /// The name of the tool.
    pub tool: String,
    /// Its input schema.
    pub schema: Value,
    /// Valid arguments.
    pub arguments: Value,
    /// Each mirrored parameter.
    pub parameters: Vec<MirroredParameter>,
}

/// A parameter that is repeated in a header.
#[derive(Clone, Debug)]
pub struct MirroredParameter {
    /// The name of the header, in lower case.
    pub header: String,
    /// The JSON pointer of its value in the arguments.
    pub pointer: String,
    /// `string`, `integer` or `boolean`.
    pub kind: String,
}

/// Whether a case is this one, or one below it.
pub(crate) fn is_case(case: &str, wanted: &str) -> bool {
    case.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Case {
    fn new(name: impl Into<String>, group: CaseGroup, body: CaseBody) -> Case {
        let (headers, meta) = (Vec::new(), Vec::new());
        let (name, path, http_method) = (name.into(), None, "POST");
        Case { name, group, body, headers, path, http_method, meta, has_title_case: false, is_answered: true }
    }

    /// A request. Null params are left out.
    pub fn request(name: impl Into<String>, group: CaseGroup, method: &str, params: Value) -> Case {
        Case::new(name, group, CaseBody::Request { method: method.to_owned(), params })
    }

    /// A notification, which nothing answers over a pipe.
    pub fn notification(name: impl Into<String>, group: CaseGroup, method: &str, params: Value) -> Case {
        let body = CaseBody::Notification { method: method.to_owned(), params };
        Case { is_answered: false, ..Case::new(name, group, body) }
    }

    /// Bytes that are sent as they are.
    pub fn bytes(name: impl Into<String>, group: CaseGroup, bytes: impl Into<Bytes>) -> Case {
        Case::new(name, group, CaseBody::Bytes(bytes.into()))
    }

    /// An HTTP request of this method without a body.
    pub fn http(name: impl Into<String>, group: CaseGroup, http_method: &'static str) -> Case {
        Case { http_method, ..Case::new(name, group, CaseBody::Empty) }
    }

    /// To this path in place of that of the endpoint.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Case {
        self.path = Some(path.into());
        self
    }

    /// With this header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Case {
        self.headers.push((name.to_owned(), Some(value.to_owned())));
        self
    }

    /// Without this header.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Case {
        self.headers.push((name.to_owned(), None));
        self
    }

    /// With this member of `_meta`, or without it.
    #[must_use]
    pub fn meta(mut self, key: &str, value: Option<Value>) -> Case {
        self.meta.push((key.to_owned(), value));
        self
    }

    /// With header names in title case.
    #[must_use]
    pub fn title_case(mut self) -> Case {
        self.has_title_case = true;
        self
    }

    /// With silence as a possible answer.
    #[must_use]
    pub fn unanswered(mut self) -> Case {
        self.is_answered = false;
        self
    }
}

impl Material {
    /// Whether a capability is declared.
    pub fn declares(&self, capability: &str) -> bool {
        crate::facts::declares(&self.capabilities, capability)
    }

    /// Whether an extension is declared.
    pub fn has_extension(&self, name: &str) -> bool {
        crate::facts::has_extension(&self.capabilities, name)
    }

    /// Whether the group is modern.
    pub fn is_modern(&self) -> bool {
        self.version.is_some_and(|version| version.era() == Era::Modern)
    }

    /// Whether the transport is streamable HTTP.
    pub fn is_http(&self) -> bool {
        self.transport == Some(Transport::Http)
    }

    /// The lists of the declared capabilities.
    pub fn lists(&self) -> impl Iterator<Item = List> {
        List::ALL.into_iter().filter(|list| self.declares(list.capability()))
    }

    /// The list methods of which variations are sent: those whose lists are not among the largest.
    pub fn varied_lists(&self) -> Vec<&'static str> {
        let is_largest = |method: &str| self.large.iter().any(|(it, bytes)| *it == method && *bytes > LARGEST_LIST);
        self.lists().map(List::method).filter(|method| !is_largest(method)).collect()
    }

    /// The first list that the server serves, and that is not large.
    pub fn served_list(&self) -> Option<&'static str> {
        let is_large = |method: &str| self.large.iter().any(|(large, _)| *large == method);
        self.lists().map(List::method).find(|method| !self.failing.contains(method) && !is_large(method))
    }

    /// A method that every server of these capabilities serves, and that costs nothing.
    pub fn cheap_method(&self) -> &'static str {
        self.served_list().unwrap_or(if self.is_modern() { "server/discover" } else { "ping" })
    }

    /// A name that no server offers.
    pub fn unknown_name(&self) -> String {
        format!("rehearse-no-such-name-{}", self.suffix)
    }

    /// The params of a call of a tool.
    pub fn call_params(name: &str, arguments: &Value) -> Value {
        json!({ "name": name, "arguments": arguments })
    }
}
