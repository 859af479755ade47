//! What keeps a command from its result, and how that is told.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::visit::Visit;
use crate::{
    cli::{
        Exit, Failure,
        style::{self, BAD, STRONG, printable},
    },
    client::{
        self, ConnectError,
        hub::{Discovery, HubError},
    },
    report::text::printable_lines,
    wire::{RpcError, message::MISSING_CAPABILITY},
};

/// Why a command cannot go on.
#[derive(Debug)]
pub(in crate::cli) enum Trouble {
    Failure(Failure),
    /// The call reached the server, and brought no result.
    Call(client::Failure),
    /// Servers did not say what there is.
    Unlisted(String),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failure(failure)
    }
}

impl From<client::Failure> for Trouble {
    fn from(failure: client::Failure) -> Self {
        Trouble::Call(failure)
    }
}

/// What programs are told of a failed request.
#[derive(Debug, Serialize)]
pub(super) struct FailureReport {
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    /// As it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl FailureReport {
    pub(super) const fn new(kind: &'static str, message: String) -> FailureReport {
        FailureReport { kind, message, code: None, data: None, status: None, body: None }
    }
}

impl Visit {
    /// Tells which servers have not listed their tools.
    ///
    /// # Errors
    /// There are no tools at all.
    pub(super) fn tell_unlisted(&self, found: &Discovery) -> Result<(), Trouble> {
        if found.registry.tools().is_empty() && !found.unlisted.is_empty() {
            let failures: Vec<_> = unlisted(found).collect();
            return Err(Trouble::Unlisted(format!("failed to register any MCP tools: {}", failures.join("; "))));
        }
        self.warn_unlisted(found);
        Ok(())
    }

    pub(super) fn warn_unlisted(&self, found: &Discovery) {
        unlisted(found).for_each(|failure| self.warn(&failure));
    }

    /// The words of code_agent.
    pub(super) fn warn_unreachable(&self, unreachable: &[(Arc<str>, Arc<ConnectError>)]) {
        for (server, error) in unreachable {
            self.warn(&format!("MCP server '{server}' connection failed: {error}"));
        }
        if !unreachable.is_empty() && unreachable.len() < self.names.len() {
            self.note("Continuing with other MCP servers");
        }
    }

    /// A failed request for programs.
    pub(super) fn failure_json(&self, failure: &client::Failure) -> FailureReport {
        let mut report = FailureReport::new(failure.kind(), self.hidden(&failure.to_string()));
        match failure {
            client::Failure::Rpc(error) => {
                report.message = self.hidden(&error.message);
                report.code = Some(error.code);
                let data = error.data.as_ref().map(|data| self.hidden(data.get()));
                report.data = data.and_then(|data| RawValue::from_string(data).ok());
            }
            client::Failure::Http { status, body } => {
                report.status = Some(*status);
                report.body = Some(self.hidden(body));
            }
            _ => {}
        }
        report
    }

    pub(in crate::cli) fn tell_failure(&self, failure: &client::Failure) {
        if self.is_interrupted.is_cancelled() {
            return;
        }
        let (kind, text) = (failure.kind(), self.hidden(&failure.to_string()));
        let mut lines = printable_lines(&text);
        let first = lines.next().unwrap_or_default();
        let rest: String = lines.map(|line| format!("  {line}\n")).collect();
        style::print(&format!("{BAD}error:{BAD:#} {kind}: {first}\n{rest}"));
        if let client::Failure::Http { body, .. } = failure
            && !body.trim().is_empty()
        {
            style::print(&format!("  {}\n", printable(self.hidden(body).trim())));
        }
        if let client::Failure::Rpc(error) = failure
            && let Some(data) = &error.data
        {
            style::print(&format!("  data: {}\n", printable(&self.hidden(data.get()))));
        }
        if wants_an_answer(failure) {
            let hint = "--answer FILE says what to answer; at a terminal, call-tool and the prompt ask you";
            style::print(&format!("{STRONG}hint:{STRONG:#} {hint}\n"));
        }
    }
}

/// Whether a server asks for something that nobody is there to answer.
fn wants_an_answer(failure: &client::Failure) -> bool {
    match failure {
        client::Failure::Unanswered { method, .. } => client::InputKind::from_method(method).is_some(),
        client::Failure::Rpc(RpcError { code: MISSING_CAPABILITY, data: Some(data), .. }) => {
            let data: Value = serde_json::from_str(data.get()).unwrap_or_default();
            let required = &data["requiredCapabilities"];
            ["elicitation", "sampling", "roots"].iter().any(|capability| required.get(capability).is_some())
        }
        _ => false,
    }
}

/// The words of cpe for each server that has not listed its tools.
fn unlisted(found: &Discovery) -> impl Iterator<Item = String> {
    found.unlisted.iter().map(|(server, failure)| format!("failed to list MCP tools for server {server}: {failure}"))
}

/// How a hub's errors end a command.
pub(in crate::cli) fn trouble(error: HubError) -> Trouble {
    Trouble::Failure(match error {
        HubError::Unreachable { server, error } => {
            Failure::cannot(format!("MCP server '{server}' connection failed: {error}"))
        }
        error @ (HubError::Duplicate(_) | HubError::NoServer(_) | HubError::Disabled(_)) => {
            Failure::Usage(error.to_string())
        }
    })
}

/// How a failed request ends a command.
pub(super) fn exit_of(failure: &client::Failure) -> Exit {
    match failure {
        client::Failure::Unauthorized(_) => Exit::CannotRun,
        _ => Exit::Violation,
    }
}
