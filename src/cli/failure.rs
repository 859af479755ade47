//! The failure of a subcommand.

use std::{io, net::SocketAddr, ops::Range, sync::Arc};

use super::{Exit, log, secrets::MaskError, style};
use rehearse_check::client::ClientError;
use rehearse_client_configs::secret::{Redactor, hidden_in, mask_source, secrets_of};
use rehearse_document::{Diagnostic, Diagnostics, Source, Span, parse_yaml};
use rehearse_mock::script::ScriptError;
use rehearse_report::text::printable_lines;

/// Why a subcommand failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// A file has mistakes.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// The arguments are wrong.
    #[error("{0}")]
    Usage(String),
    /// There are servers, but each is switched off.
    #[error("all MCP servers are disabled: {0}")]
    AllDisabled(String),
    /// The arguments are right, but the command could not run.
    #[error("{what}")]
    CannotRun { what: String, hint: Option<String> },
}

impl Failure {
    pub(super) fn cannot(what: impl Into<String>) -> Failure {
        Failure::CannotRun { what: what.into(), hint: None }
    }

    /// An address cannot be listened on; `free` is the option for a free port.
    pub(super) fn listen(address: SocketAddr, free: &str, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::AddrInUse => {
                let failure = Failure::cannot(format!("cannot listen on {address}: the port is in use"));
                failure.hint(format!("stop the process that uses it, or use a free port with `{free}`"))
            }
            _ => Failure::cannot(format!("cannot listen on {address}: {error}")),
        }
    }

    #[must_use]
    pub(super) fn hint(self, text: impl Into<String>) -> Failure {
        match self {
            Failure::CannotRun { what, .. } => Failure::CannotRun { what, hint: Some(text.into()) },
            other => other,
        }
    }

    /// The message with its hint.
    pub(super) fn text(&self) -> String {
        let message = match self {
            Failure::Invalid(diagnostics) if log::is_json() => without_secrets(diagnostics).to_string(),
            Failure::Invalid(diagnostics) => return style::render(&without_secrets(diagnostics)),
            other => other.to_string(),
        };
        let (bad, strong) = (style::BAD, style::STRONG);
        let lines: Vec<_> = printable_lines(&message).collect();
        let mut text = format!("{bad}error:{bad:#} {}\n", lines.join("\n  "));
        if let Failure::CannotRun { hint: Some(hint), .. } = self {
            text.push_str(&format!("{strong}hint:{strong:#} {hint}\n"));
        }
        text
    }

    pub(super) fn exit(&self) -> Exit {
        match self {
            Failure::Invalid(_) | Failure::Usage(_) => Exit::Usage,
            Failure::AllDisabled(_) => Exit::NothingSelected,
            Failure::CannotRun { .. } => Exit::CannotRun,
        }
    }

    /// Prints the message on stderr and returns the exit code.
    pub(super) fn report(self) -> Exit {
        style::print(&self.text());
        self.exit()
    }
}

/// The problems, with sources in which no secret is shown.
fn without_secrets(diagnostics: &Diagnostics) -> Diagnostics {
    let mut shown: Vec<Diagnostic> = Vec::new();
    // The source of the problem before, with its secrets and without them.
    let mut last: Option<(&Arc<Source>, Vec<Span>, Arc<Source>)> = None;
    for Diagnostic { problem, source } in &diagnostics.0 {
        let (_, secrets, masked) = match last.take().filter(|(known, ..)| Arc::ptr_eq(known, source)) {
            Some(known) => last.insert(known),
            None => {
                let secrets = match parse_yaml(source) {
                    Ok(root) => secrets_of(source, &root),
                    Err(_) => hidden_in("", &source.text)
                        .into_iter()
                        .map(|Range { start, end }| Span { start, end })
                        .collect(),
                };
                let masked = mask_source(source, &secrets);
                last.insert((source, secrets, masked))
            }
        };
        let problem = Redactor::new(source, secrets).problem(problem);
        shown.push(Diagnostic { problem, source: masked.clone() });
    }
    Diagnostics(shown)
}

impl From<ScriptError> for Failure {
    fn from(error: ScriptError) -> Self {
        match error {
            ScriptError::Invalid(diagnostics) => Failure::Invalid(diagnostics),
            error => Failure::Usage(error.to_string()),
        }
    }
}

impl From<MaskError> for Failure {
    fn from(error: MaskError) -> Self {
        Failure::cannot(error.to_string())
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let cannot = Failure::cannot(error.to_string());
        match error {
            ClientError::UnknownAct { near, .. } => {
                let near = near.map(|near| format!("did you mean {near}?"));
                Failure::Usage(format!("{cannot}; {}", near.unwrap_or_else(|| "--list-acts prints all".to_owned())))
            }
            ClientError::Script(error) => error.into(),
            ClientError::Listen { address, source } => Failure::listen(address, "--listen :0", &source),
            ClientError::Create { .. } => cannot.hint("set TMPDIR to a writable folder with a short path"),
            ClientError::NotConnected { has_address: false, .. } => {
                cannot.hint("pass it the address: {url}, {command} or {config} in its arguments")
            }
            _ => cannot,
        }
    }
}
