//! Tool calls and their output.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{call_tool_args::ToolCallArgs, projected_result::ProjectedResult};
use crate::cli::{
    Exit, Failure, Format,
    mcp::{
        arguments::Arguments,
        content::Saver,
        error::{CommandError, FailureReport, exit_of},
        print::{
            indented, print, print_json,
            server_log::{LogEntry, log_entry},
        },
        session::HubSession,
    },
    style::{self, BAD, STRONG, printable},
    terminal_user::TerminalUser,
};
use rehearse_client::{CallOptions, ClientRecorder, Content, Failure as CallFailure, Session, ToolOutcome};
use rehearse_hub::{
    CallError, Denial, RegisteredTool,
    projection::{Call, Projection},
};
use rehearse_protocol::Event;

/// The tool to call.
pub(crate) enum ResolvedTool {
    Registered(Arc<RegisteredTool>),
    /// The original name of a tool that its server does not list.
    Unlisted {
        server: Arc<str>,
        tool: String,
    },
}

/// A call that was sent.
pub(crate) struct ToolCall {
    pub(crate) server: Arc<str>,
    /// The original name of the tool.
    tool: String,
    result: Result<ToolOutcome, CallError>,
    /// The files with saved content.
    saved: Vec<PathBuf>,
}

/// The result as JSON.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Report<'a> {
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
    /// Calls a tool, and prints the log messages of the server meanwhile, those of the wanted level or worse
    /// if one is wanted.
    ///
    /// # Errors
    /// An argument is wrong; the server cannot be reached, or rejects the level.
    pub(crate) async fn begin(
        hub_session: &HubSession,
        tool: ResolvedTool,
        arguments: Arguments,
        args: &ToolCallArgs,
    ) -> Result<ToolCall, CommandError> {
        let log_level = args.log_level.as_deref();
        match tool {
            ResolvedTool::Registered(tool) => {
                let arguments = arguments.typed(Some(&tool.input_schema))?;
                ToolCall::send_with_log(hub_session, &tool, arguments, log_level).await
            }
            ResolvedTool::Unlisted { server, tool } => {
                let arguments = arguments.typed(None)?;
                ToolCall::send(hub_session, server, tool, arguments, log_level).await
            }
        }
    }

    /// Calls a tool that its server does not list, without approval. The timeout excludes the time of user prompts.
    ///
    /// # Errors
    /// The server cannot be reached.
    async fn send(
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

    /// As [`ToolCall::send_with_approval`], with the log messages of the server.
    ///
    /// # Errors
    /// The server cannot be reached, or rejects the level.
    pub(crate) async fn send_with_log(
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
    pub(crate) async fn send_with_approval(
        hub_session: &HubSession,
        tool: &Arc<RegisteredTool>,
        arguments: Map<String, Value>,
    ) -> ToolCall {
        let member = hub_session.hub.server(&tool.server).ok();
        let limit = member.map(|member| member.tool_timeout(&tool.original));
        let is_registered = hub_session.hub.registry().get(&tool.name).is_some_and(|known| Arc::ptr_eq(known, tool));
        // The only server of the session was chosen.
        let is_routed = is_registered && hub_session.names.len() > 1;
        let mut answered = tool.clone();
        let call = async |options: CallOptions| {
            if !is_routed {
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
    pub(crate) fn raw(&self, hub_session: &HubSession) -> Option<&RawValue> {
        let outcome = self.result.as_ref().inspect_err(|error| print_error(hub_session, error)).ok()?;
        Some(&outcome.raw)
    }

    /// The number of saved files.
    pub(crate) fn files(&self) -> usize {
        self.saved.len()
    }

    /// Prints the result, and saves its binary content.
    ///
    /// # Errors
    /// Something cannot be written.
    pub(crate) async fn print(
        mut self,
        hub_session: &HubSession,
        args: &ToolCallArgs,
        format: Format,
    ) -> Result<Exit, CommandError> {
        let is_json = args.form.is_some() || format == Format::Json;
        self.show(hub_session, args.content.output.as_deref(), !is_json, 0).await?;
        if is_json {
            print_json(&self.report(hub_session, args.form))?;
        }
        Ok(self.exit())
    }

    /// Saves binary content, numbered after `before` files of other calls. Prints a failure, and the content if it is to be
    /// shown.
    ///
    /// # Errors
    /// A file cannot be saved.
    pub(crate) async fn show(
        &mut self,
        hub_session: &HubSession,
        output: Option<&Path>,
        is_shown: bool,
        before: usize,
    ) -> Result<(), CommandError> {
        let outcome = match &self.result {
            Ok(outcome) => outcome,
            Err(error) => {
                print_error(hub_session, error);
                return Ok(());
            }
        };
        let mut saver = Saver::new(output, &self.tool).starting_after(before);
        let text = outcome_text(outcome, &mut saver)?;
        saver.write_out(&hub_session.is_interrupted).await?;
        saver.print_saved(hub_session);
        self.saved = saver.saved;
        if !is_shown {
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

    pub(crate) fn report(&self, hub_session: &HubSession, form: Option<Projection>) -> Report<'_> {
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

    pub(crate) fn exit(&self) -> Exit {
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
    let hint = |text: &str| style::print(&format!("{STRONG}hint:{STRONG:#} {text}\n"));
    match error {
        CallError::Failed(failure) => hub_session.print_failure(failure),
        error => style::print(&format!("{BAD}error:{BAD:#} {}\n", printable(&hub_session.message(&error.to_string())))),
    }
    if let CallError::InvalidArguments { .. } = error {
        hint("--no-check-arguments sends the call");
    }
    if let CallError::Denied { denial: Denial::NoApprover, .. } = error {
        hint("--approve always allows every call; or allow the tool in the config");
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
fn outcome_text(outcome: &ToolOutcome, saver: &mut Saver<'_>) -> Result<String, Failure> {
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
