//! Tool calls and their output.

use std::{path::PathBuf, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    call_tool_args::CallToolArgs,
    content::Saver,
    error::{CommandError, FailureReport, exit_of},
    print::{indented, print},
    projected_result::ProjectedResult,
    server_log::{LogEntry, log_entry},
    session::HubSession,
};
use crate::cli::{
    Exit, Failure,
    style::{self, BAD, STRONG, printable},
    terminal_user::TerminalUser,
};
use rehearse_client::{CallOptions, ClientRecorder, Content, Failure as CallFailure, Session, ToolOutcome};
use rehearse_hub::{
    CallError, RegisteredTool,
    projection::{Call, Projection},
};
use rehearse_protocol::Event;

/// A call that was sent.
pub(super) struct ToolCall {
    server: Arc<str>,
    /// The original name of the tool.
    tool: String,
    result: Result<ToolOutcome, CallError>,
    /// The files with saved content.
    saved: Vec<PathBuf>,
}

/// The result as JSON.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Report<'a> {
    ProjectedResult(ProjectedResult<'a>),
    #[serde(rename_all = "camelCase")]
    Canonical {
        server: &'a str,
        tool: &'a str,
        is_error: bool,
        /// Verbatim.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<FailureReport>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        saved: &'a [PathBuf],
    },
}

impl ToolCall {
    /// Calls a tool that its server does not list, without approval. The timeout excludes the time of user prompts.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) async fn send(
        hub_session: &HubSession,
        server: Arc<str>,
        tool: String,
        arguments: Map<String, Value>,
        log_level: Option<&str>,
    ) -> Result<ToolCall, CommandError> {
        let timeout = hub_session.hub.server(&server).ok().map(|member| member.tool_timeout(&tool));
        let result = hub_session
            .request(&server, async |session, options| {
                let limit = timeout.unwrap_or(session.timeouts().call);
                let call =
                    async |options: CallOptions| session.call_tool(&tool, Some(arguments.clone()), options).await;
                if let Some(level) = log_level.filter(|_| session.info().declares("logging")) {
                    session.set_log_level(level, options.clone()).await?;
                }
                let call = TerminalUser::with_timeout(hub_session.person.as_ref(), limit, options, call);
                Box::pin(with_server_log(hub_session, session.recorder(), session.name(), call)).await
            })
            .await?;
        Ok(ToolCall { server, tool, result: result.map_err(CallError::Failed), saved: Vec::new() })
    }

    /// As [`ToolCall::send_with_approval`], and prints the log messages of the server meanwhile, those of this level or worse
    /// if there is one.
    ///
    /// # Errors
    /// The server cannot be reached, or rejects the level.
    pub(super) async fn send_with_log(
        hub_session: &HubSession,
        tool: &Arc<RegisteredTool>,
        arguments: Map<String, Value>,
        log_level: Option<&str>,
    ) -> Result<ToolCall, CommandError> {
        let prepare = async |session: &Session, options: CallOptions| {
            if let Some(level) = log_level.filter(|_| session.info().declares("logging")) {
                session.set_log_level(level, options).await?;
            }
            Ok(session.recorder().clone())
        };
        let recorder = hub_session.request(&tool.server, prepare).await??;
        let call = ToolCall::send_with_approval(hub_session, tool, arguments);
        Ok(Box::pin(with_server_log(hub_session, &recorder, &tool.server, call)).await)
    }

    /// Calls a registered tool with approval, at the server that the options choose.
    pub(super) async fn send_with_approval(
        hub_session: &HubSession,
        tool: &Arc<RegisteredTool>,
        arguments: Map<String, Value>,
    ) -> ToolCall {
        let member = hub_session.hub.server(&tool.server).ok();
        let limit = member.map(|member| member.tool_timeout(&tool.original));
        let is_registered = hub_session.hub.registry().get(&tool.name).is_some_and(|known| Arc::ptr_eq(known, tool));
        let mut answered = tool.clone();
        let call = async |options: CallOptions| {
            if !is_registered {
                // It was named with its server.
                return hub_session.hub.call_tool(tool, Some(arguments), options).await;
            }
            let called = hub_session.hub.call_routed(tool, Some(arguments), options).await;
            answered = called.tool;
            called.result
        };
        let options = CallOptions { cancel: Some(hub_session.is_interrupted.clone()), ..CallOptions::default() };
        let call = TerminalUser::with_timeout(hub_session.person.as_ref(), limit.unwrap_or_default(), options, call);
        let result = tokio::select! {
            biased;
            result = Box::pin(call) => result,
            () = hub_session.given_up() => Err(CallFailure::Cancelled.into()),
        };
        ToolCall { server: answered.server.clone(), tool: answered.original.clone(), result, saved: Vec::new() }
    }

    /// The result as it came; a failure is printed.
    pub(super) fn raw(&self, hub_session: &HubSession) -> Option<&RawValue> {
        let outcome = self.result.as_ref().inspect_err(|error| print_error(hub_session, error)).ok()?;
        Some(&outcome.raw)
    }

    /// The number of saved files.
    pub(super) fn files(&self) -> usize {
        self.saved.len()
    }

    /// Saves binary content, numbered after `before` files of other calls. Prints a failure, and the content unless the
    /// output is JSON.
    ///
    /// # Errors
    /// A file cannot be saved.
    pub(super) async fn show(
        &mut self,
        hub_session: &HubSession,
        args: &CallToolArgs,
        before: usize,
    ) -> Result<(), CommandError> {
        let outcome = match &self.result {
            Ok(outcome) => outcome,
            Err(error) => {
                print_error(hub_session, error);
                return Ok(());
            }
        };
        let mut saver = Saver::new(args.content.output.as_deref(), &self.tool).starting_after(before);
        let text = outcome_text(outcome, &mut saver)?;
        saver.write_out(&hub_session.is_interrupted).await?;
        saver.print_saved(hub_session);
        self.saved = saver.saved;
        if args.is_json_output() {
            return Ok(());
        }
        print(&text)?;
        let definitions = hub_session.hub.tool_definitions(&self.server).unwrap_or_default();
        for error in outcome.schema_errors(&self.tool, &definitions) {
            hub_session.warn(&format!("the structured content breaks the output schema of the tool: {error}"));
        }
        if outcome.is_error {
            let tool = printable(&self.tool);
            style::print(&format!("{BAD}error:{BAD:#} the tool {STRONG}{tool}{STRONG:#} reported an error\n"));
        }
        Ok(())
    }

    pub(super) fn report(&self, hub_session: &HubSession, form: Option<Projection>) -> Report<'_> {
        let ToolCall { server, tool, result, saved } = self;
        if let Some(form) = form {
            return Report::ProjectedResult(ProjectedResult::new(
                form,
                hub_session,
                &Call { id: "", server, tool },
                result.as_ref(),
            ));
        }
        Report::Canonical {
            server,
            tool,
            is_error: result.as_ref().map_or(true, |outcome| outcome.is_error),
            result: result.as_ref().ok().map(|outcome| &*outcome.raw),
            failure: result.as_ref().err().map(|error| failure_report(hub_session, error)),
            saved,
        }
    }

    pub(super) fn exit(&self) -> Exit {
        match &self.result {
            Err(CallError::Failed(failure)) => exit_of(failure),
            Err(CallError::Unreachable { .. }) => Exit::CannotRun,
            Err(CallError::InvalidArguments { .. }) => Exit::Usage,
            Err(_) => Exit::Violation,
            Ok(outcome) if outcome.is_error => Exit::Violation,
            Ok(_) => Exit::Success,
        }
    }
}

fn print_error(hub_session: &HubSession, error: &CallError) {
    match error {
        CallError::Failed(failure) => hub_session.print_failure(failure),
        error => style::print(&format!("{BAD}error:{BAD:#} {}\n", printable(&hub_session.message(&error.to_string())))),
    }
    if let CallError::InvalidArguments { .. } = error {
        style::print(&format!("{STRONG}hint:{STRONG:#} --no-check-arguments sends the call\n"));
    }
}

fn failure_report(hub_session: &HubSession, error: &CallError) -> FailureReport {
    let kind = match error {
        CallError::Failed(failure) => return hub_session.failure_json(failure),
        CallError::Denied { .. } => "denied",
        CallError::InvalidArguments { .. } => "invalidArguments",
        CallError::Unreachable { .. } => "unreachable",
        CallError::Disabled(_) => "disabled",
        CallError::UnknownTool { .. } | CallError::UnknownServer(_) => "unknown",
    };
    FailureReport::new(kind, hub_session.hidden(&error.to_string()))
}

/// The content blocks as text, then the structured content. What both say is printed once: a text block with the same JSON
/// is omitted, and so is `{"result": …}` around the texts, as FastMCP sends it.
pub(crate) fn outcome_text(outcome: &ToolOutcome, saver: &mut Saver<'_>) -> Result<String, Failure> {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let structured = outcome.structured_content.as_deref();
    let structured = structured.filter(|raw| !value(raw.get()).is_some_and(|value| wraps(&value, &outcome.content)));
    let is_repeated = |text: &str| structured.is_some_and(|raw| value(raw.get()) == value(text));
    let mut text = String::new();
    for content in &outcome.content {
        match content {
            Content::Text { text, .. } if is_repeated(text) => {}
            content => text.push_str(&saver.block(content)?),
        }
    }
    if let Some(raw) = structured {
        text.push_str(&indented(raw));
        text.push('\n');
    }
    Ok(text)
}

/// Whether the structured content is only `{"result": …}` around what the text blocks say: one value, or one item each.
fn wraps(structured: &Value, content: &[Content]) -> bool {
    let Some(result) = structured.as_object().filter(|it| it.len() == 1).and_then(|it| it.get("result")) else {
        return false;
    };
    let is_same = |value: &Value, content: &Content| match content {
        Content::Text { text, .. } => {
            value.as_str() == Some(text) || serde_json::from_str::<Value>(text).is_ok_and(|it| it == *value)
        }
        _ => false,
    };
    match (content, result) {
        ([one], _) if is_same(result, one) => true,
        (blocks, Value::Array(items)) if !items.is_empty() && items.len() == blocks.len() => {
            items.iter().zip(blocks).all(|(item, block)| is_same(item, block))
        }
        _ => false,
    }
}

/// Runs `work`, and prints the log messages and progress of the server meanwhile.
async fn with_server_log<T>(
    hub_session: &HubSession,
    recorder: &ClientRecorder,
    server: &str,
    work: impl Future<Output = T>,
) -> T {
    let mut read = recorder.end();
    let print = |entries: Vec<Event>| {
        for entry in entries {
            let Some(frame) = entry.frame() else { continue };
            match log_entry(frame) {
                Some(LogEntry { is_bad: true, text }) => hub_session.warn(&format!("{server}: {text}")),
                Some(LogEntry { is_bad: false, text }) => hub_session.note(&format!("{server}: {text}")),
                None => {}
            }
        }
    };
    let done = {
        let reading = async {
            while recorder.has_more(read).await {
                print(recorder.read(&mut read));
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            done = work => done,
            never = reading => never,
        }
    };
    print(recorder.read(&mut read));
    done
}
