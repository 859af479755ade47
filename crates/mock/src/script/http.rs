//! Options for streamable HTTP, where the protocol leaves a choice.

use std::time::Duration;

use super::keys::KEYS;
use http::StatusCode;
use rehearse_document::{Fields, Node, Problems};

/// The HTTP options of a server.
#[derive(Clone, Copy, Debug)]
pub struct HttpPolicy {
    /// Whether legacy clients get a session. Without sessions no request needs a handshake.
    pub sessions: bool,
    /// Whether the ids of sessions have unusual characters.
    pub odd_ids: bool,
    /// The status with which each GET is refused.
    pub get: Option<StatusCode>,
    /// The status with which each DELETE is refused.
    pub delete: Option<StatusCode>,
    /// The defaults for answers.
    pub answer: HttpResponseOptions,
    /// HTTP+SSE.
    pub sse: SsePolicy,
}

/// What a server does on HTTP+SSE.
#[derive(Clone, Copy, Debug, Default)]
pub struct SsePolicy {
    /// How long the client waits for the endpoint.
    pub delay: Duration,
    /// How the endpoint is named.
    pub endpoint: SseEndpoint,
    /// The status of an accepted POST; 202 by default.
    pub status: Option<StatusCode>,
}

/// How the endpoint of HTTP+SSE is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SseEndpoint {
    /// By its path.
    #[default]
    Relative,
    /// By a whole URL.
    Absolute,
    /// By a whole URL with another host name of this machine: another origin.
    Foreign,
}

impl Default for HttpPolicy {
    fn default() -> Self {
        HttpPolicy {
            sessions: true,
            odd_ids: false,
            get: None,
            delete: None,
            answer: HttpResponseOptions::default(),
            sse: SsePolicy::default(),
        }
    }
}

/// The HTTP options of one answer; the server's options are the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpResponseOptions {
    /// The form of the answer.
    pub form: Option<HttpForm>,
    /// Whether a legacy stream begins with an event that carries only an id (2025-11-25, Transports).
    pub priming: Option<bool>,
    /// The time after which a client should reconnect.
    pub retry: Option<Duration>,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpForm {
    /// A JSON object if no message comes before the response, else a stream. A legacy stream, which can be resumed,
    /// also opens if the response is not available at once.
    Auto,
    /// Always a JSON object; messages before the response are lost.
    Json,
    /// Always a stream.
    Sse,
}

impl HttpPolicy {
    pub(super) fn read(node: &Node) -> Result<HttpPolicy, Problems> {
        let fields = KEYS.fields(node, "http")?;
        let odd_ids = fields.get("sessions").is_some_and(|node| node.as_str() == Some("odd"));
        let sessions = odd_ids || fields.read("sessions", Node::bool)?.unwrap_or(true);
        let (get, delete) = (fields.read("get", read_status)?, fields.read("delete", read_status)?);
        let sse = fields.read("sse", SsePolicy::read)?.unwrap_or_default();
        Ok(HttpPolicy { sessions, odd_ids, get, delete, answer: HttpResponseOptions::read_fields(&fields)?, sse })
    }
}

fn read_status(node: &Node) -> Result<StatusCode, Problems> {
    let status = node.integer().ok().and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.filter(|status| (200..=599).contains(&status.as_u16()));
    status.ok_or_else(|| node.problem("an HTTP status must be a whole number from 200 to 599").into())
}

impl SsePolicy {
    fn read(node: &Node) -> Result<SsePolicy, Problems> {
        let fields = KEYS.fields(node, "sse")?;
        let endpoint = |node: &Node| match node.str()? {
            "relative" => Ok(SseEndpoint::Relative),
            "absolute" => Ok(SseEndpoint::Absolute),
            "foreign" => Ok(SseEndpoint::Foreign),
            _ => Err(node.problem("`endpoint` must be `relative`, `absolute` or `foreign`").into()),
        };
        Ok(SsePolicy {
            delay: fields.read("delay", Node::duration)?.unwrap_or_default(),
            endpoint: fields.read("endpoint", endpoint)?.unwrap_or_default(),
            status: fields.read("status", read_status)?,
        })
    }
}

impl HttpResponseOptions {
    pub(super) fn read(node: &Node) -> Result<HttpResponseOptions, Problems> {
        HttpResponseOptions::read_fields(&KEYS.fields(node, "httpAnswer")?)
    }

    fn read_fields(fields: &Fields<'_>) -> Result<HttpResponseOptions, Problems> {
        let read_form = |node: &Node| match node.str()? {
            "auto" => Ok(HttpForm::Auto),
            "json" => Ok(HttpForm::Json),
            "sse" => Ok(HttpForm::Sse),
            _ => Err(node.problem("`answers` must be `auto`, `json` or `sse`").into()),
        };
        Ok(HttpResponseOptions {
            form: fields.read("answers", read_form)?,
            priming: fields.read("priming", Node::bool)?,
            retry: fields.read("retry", Node::duration)?,
        })
    }

    /// These options, with those of `server` as the default.
    pub fn or(self, server: HttpResponseOptions) -> HttpResponseOptions {
        HttpResponseOptions {
            form: self.form.or(server.form),
            priming: self.priming.or(server.priming),
            retry: self.retry.or(server.retry),
        }
    }

    /// The form of the answer; [`HttpForm::Auto`] by default.
    pub fn form(self) -> HttpForm {
        self.form.unwrap_or(HttpForm::Auto)
    }
}
