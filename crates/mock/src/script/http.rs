//! How a server behaves on streamable HTTP, where the protocol leaves a choice.

use std::time::Duration;

use rehearse_document::{Fields, Node, Problems};

/// The choices of a server.
#[derive(Clone, Copy, Debug)]
pub struct HttpPolicy {
    /// Whether legacy clients get a session. Without sessions no request needs a handshake.
    pub sessions: bool,
    /// The choices for answers without their own.
    pub answer: HttpResponseOptions,
}

impl Default for HttpPolicy {
    fn default() -> Self {
        HttpPolicy { sessions: true, answer: HttpResponseOptions::default() }
    }
}

/// The choices for one answer; what is not given is as the server has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpResponseOptions {
    /// What the answer is sent as.
    pub form: Option<HttpForm>,
    /// Whether a legacy stream begins with an event that carries only an id (2025-11-25, Transports).
    pub priming: Option<bool>,
    /// After which time a client should reconnect.
    pub retry: Option<Duration>,
}

/// What an answer is sent as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpForm {
    /// A JSON object if nothing comes before the response, else a stream. A legacy stream, which can be resumed, opens
    /// also where the response is not there at once.
    Auto,
    /// A JSON object always; what comes before the answer is lost.
    Json,
    /// A stream always.
    Sse,
}

impl HttpPolicy {
    pub(super) fn read(node: &Node) -> Result<HttpPolicy, Problems> {
        let fields = node.fields("`http`", &["sessions", "answers", "priming", "retry"])?;
        let sessions = fields.read("sessions", Node::bool)?.unwrap_or(true);
        Ok(HttpPolicy { sessions, answer: HttpResponseOptions::read_fields(&fields)? })
    }
}

impl HttpResponseOptions {
    pub(super) fn read(node: &Node) -> Result<HttpResponseOptions, Problems> {
        HttpResponseOptions::read_fields(&node.fields("`http`", &["answers", "priming", "retry"])?)
    }

    fn read_fields(fields: &Fields<'_>) -> Result<HttpResponseOptions, Problems> {
        let read_form = |node: &Node| match node.str()? {
            "auto" => Ok(HttpForm::Auto),
            "json" => Ok(HttpForm::Json),
            "sse" => Ok(HttpForm::Sse),
            _ => Err(node.problem("`answers` is `auto`, `json` or `sse`").into()),
        };
        Ok(HttpResponseOptions {
            form: fields.read("answers", read_form)?,
            priming: fields.read("priming", Node::bool)?,
            retry: fields.read("retry", Node::duration)?,
        })
    }

    /// These choices, and those of `server` where there are none.
    pub fn or(self, server: HttpResponseOptions) -> HttpResponseOptions {
        HttpResponseOptions {
            form: self.form.or(server.form),
            priming: self.priming.or(server.priming),
            retry: self.retry.or(server.retry),
        }
    }

    /// What the answer is sent as; [`HttpForm::Auto`] by default.
    pub fn form(self) -> HttpForm {
        self.form.unwrap_or(HttpForm::Auto)
    }
}
