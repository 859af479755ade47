//! What a [`HubSession`] prints on stderr, and failures as JSON.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, value::RawValue};

use super::HubSession;
use crate::cli::{
    mcp::{
        error::{CommandError, FailureReport},
        print::trace::print_stderr,
    },
    secrets::Secrets,
    style::{self, BAD, DOUBTFUL, STRONG, printable},
};
use rehearse_client::{self as client, ConnectError, STDERR_HEADING, StderrLine, StderrSink};
use rehearse_hub::{Discovery, Notice, RetrySink};
use rehearse_protocol::{
    RpcError,
    message::{METHOD_NOT_FOUND, MISSING_CAPABILITY},
};
use rehearse_report::text::printable_lines;

impl HubSession {
    /// Warns about servers that could not list their tools.
    ///
    /// # Errors
    /// No server listed a tool.
    pub(crate) fn report_incomplete(&self, found: &Discovery) -> Result<(), CommandError> {
        if let Some(failure) = found.total_failure() {
            return Err(CommandError::Listing(failure));
        }
        self.warn_incomplete(found);
        Ok(())
    }

    /// Logs what was left out or renamed, in the words of CPE.
    pub(super) fn record(&self, notice: &Notice) {
        match notice {
            Notice::Filtered { server, tools } => {
                let filtered = self.hidden(&tools.join(", "));
                let fields = [
                    ("server", Value::from(&**server)),
                    ("filtered_count", tools.len().into()),
                    ("filtered", filtered.into()),
                ];
                style::print_record("INFO", "mcp tools filtered", &fields);
            }
            notice => {
                let warning = self.hidden(&notice.to_string()).into();
                style::print_record("WARN", "mcp tool registration warning", &[("warning", warning)]);
            }
        }
    }

    pub(crate) fn warn_incomplete(&self, found: &Discovery) {
        found.listing_failures().for_each(|failure| self.warn(&failure));
    }

    pub(crate) fn warn_unreachable(&self, unreachable: &[(Arc<str>, Arc<ConnectError>)]) {
        for (server, error) in unreachable {
            self.warn(&format!("MCP server '{server}' connection failed: {error}"));
        }
        if !unreachable.is_empty() && unreachable.len() < self.names.len() {
            self.note("continuing with other MCP servers");
        }
    }

    /// A failed request as JSON.
    pub(in crate::cli::mcp) fn failure_json(&self, failure: &client::Failure) -> FailureReport {
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

    pub(crate) fn print_failure(&self, failure: &client::Failure) {
        if self.is_interrupted.is_cancelled() {
            return;
        }
        let (kind, text) = (failure.kind(), self.message(&failure.to_string()));
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
        if matches!(failure, client::Failure::Rpc(error) if error.code == METHOD_NOT_FOUND) {
            let hint = "the server does not know the method; `rehearse mcp info` shows what it declares";
            style::print(&format!("{STRONG}hint:{STRONG:#} {hint}\n"));
        }
        if wants_an_answer(failure) {
            let hint = "use --answer FILE to answer the server; on a terminal, `call-tool` and `rehearse repl` ask you";
            style::print(&format!("{STRONG}hint:{STRONG:#} {hint}\n"));
        }
    }
}

/// Prints the stderr of servers.
pub(super) fn stderr(secrets: Secrets) -> StderrSink {
    Arc::new(move |StderrLine { server, line }| print_stderr(&server, &secrets.hidden(&line)))
}

/// The message of an error without the last lines of a server's stderr.
pub(crate) fn without_stderr(text: &str) -> &str {
    text.split_once(STDERR_HEADING).map_or(text, |(before, _)| before.trim_end())
}

/// Whether the failure is a server request that the client cannot answer.
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

/// Warns before each retry, in one line.
pub(super) fn retries(secrets: Secrets) -> RetrySink {
    Arc::new(move |server, error, pause| {
        let pause = match Duration::from_millis(pause.as_millis().try_into().unwrap_or(u64::MAX)) {
            Duration::ZERO => "at once".to_owned(),
            pause => format!("in {}", humantime::format_duration(pause)),
        };
        let why = secrets.hidden(&error.to_string());
        let why = why.lines().next().unwrap_or_default().trim_end_matches(':');
        let text = format!("MCP server '{server}' connection failed: {why}; retrying {pause}");
        style::leave_line();
        style::print(&format!("{DOUBTFUL}warning:{DOUBTFUL:#} {}\n", printable(&text)));
    })
}
