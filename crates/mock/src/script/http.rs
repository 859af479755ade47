//! Options for streamable HTTP, where the protocol leaves a choice.

use std::time::Duration;

use rehearse_document::{Fields, Node, Problems};

/// The HTTP options of a server.
#[derive(Clone, Copy, Debug)]
pub struct HttpPolicy {
    /// Whether legacy clients get a session. Without sessions no request needs a handshake.
    pub sessions: bool,
    /// The defaults for answers.
    pub answer: HttpResponseOptions,
}

impl Default for HttpPolicy {
    fn default() -> Self {
        HttpPolicy { sessions: true, answer: HttpResponseOptions::default() }
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
