//! The XML tool calls in a model's message: parsed and run in order.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::{
    call_tool_args::CallToolArgs,
    projected_result::hide,
    tool_call::{Report, ToolCall},
};
use crate::cli::{
    Exit, Failure, input,
    mcp::{
        error::CommandError,
        list::tool_format,
        print::print_json,
        session::{HubSession, run_with_user},
        target::Select,
    },
    style::{self, BAD, printable},
    terminal_user::TerminalUser,
};
use rehearse_document::Source;
use rehearse_hub::Registry;
use rehearse_llm::xml::{Parser, RequestError, ToolRequest};

/// A tool call or an invalid request in a message.
enum MessageItem {
    Call(ToolRequest),
    Invalid(RequestError),
}

/// The results so far, in the order of the message.
#[derive(Default)]
struct MessageRun {
    called: Vec<ToolCall>,
    invalid: Vec<RequestError>,
}

/// The results as JSON.
#[derive(Serialize)]
struct MessageReport<'a> {
    calls: Vec<Report<'a>>,
    errors: Vec<Value>,
}

/// Runs the tool calls in a message. Invalid requests do not affect the others.
///
/// # Errors
/// The message cannot be read; otherwise as [`run_with_user`].
pub(crate) fn run(args: &CallToolArgs, path: &Path) -> Result<Exit, Failure> {
    let message = input::read(path)?;
    let servers = args.common.servers(Select::from_name(args.call.server()))?;
    let person = TerminalUser::detect();
    run_with_user(
        person.clone(),
        &args.common,
        &servers,
        |options| {
            args.policy.apply(options);
            args.calls.apply(options);
            options.approval = args.approve.approval(person.as_ref());
        },
        async |hub_session| {
            let found = hub_session.discover().await?;
            hub_session.report_incomplete(&found)?;
            let registry = found.registry;
            let items = items(args, &message, &registry);
            if items.is_empty() {
                hub_session.note("the message has no tool call");
            }
            let mut run = MessageRun::default();
            // The results before an error are reported, too.
            let done = Box::pin(run.execute(args, hub_session, &message, &registry, items)).await;
            if args.is_json_output() {
                print_json(&run.report(args, hub_session, &message))?;
            }
            done.map(|()| run.exit())
        },
    )
}

/// The calls and invalid requests of a message, in order.
fn items(args: &CallToolArgs, message: &Source, registry: &Registry) -> Vec<MessageItem> {
    let tools = registry.tools().iter().chain(registry.shadowed()).map(|tool| tool.for_model());
    let requests = Parser::new(tools, tool_format::options(args.max_calls)).parse(&message.text);
    let calls = requests.calls.into_iter().map(MessageItem::Call);
    let mut items: Vec<_> = calls.chain(requests.errors.into_iter().map(MessageItem::Invalid)).collect();
    items.sort_by_key(|items| match items {
        MessageItem::Call(call) => call.range.start,
        MessageItem::Invalid(error) => error.range.start,
    });
    items
}

impl MessageRun {
    /// Runs the calls one after another, and prints invalid requests.
    ///
    /// # Errors
    /// A file cannot be saved.
    async fn execute(
        &mut self,
        args: &CallToolArgs,
        hub_session: &HubSession,
        message: &Source,
        registry: &Registry,
        items: Vec<MessageItem>,
    ) -> Result<(), CommandError> {
        let are_several = items.len() > 1;
        for items in items {
            if hub_session.is_interrupted() {
                break;
            }
            let request = match items {
                MessageItem::Call(request) => request,
                MessageItem::Invalid(error) => {
                    print_error(hub_session, message, &error);
                    self.invalid.push(error);
                    continue;
                }
            };
            // The parser accepts only tools of the registry.
            let Some(tool) = request.origin.and_then(|(server, name)| registry.find(&server, &name)) else { continue };
            if are_several {
                hub_session.note(&format!("calling '{}'", request.name));
            }
            let before = self.called.iter().map(ToolCall::files).sum();
            self.called.push(ToolCall::send_with_approval(hub_session, tool, request.arguments).await);
            if let Some(called) = self.called.last_mut() {
                called.show(hub_session, args.call.content.output.as_deref(), !args.is_json_output(), before).await?;
            }
        }
        Ok(())
    }

    fn report(&self, args: &CallToolArgs, hub_session: &HubSession, message: &Source) -> MessageReport<'_> {
        let described = |error: &RequestError| {
            let mut described = error.to_json();
            hide(&mut described, hub_session);
            let (line, column) = message.position(error.range.start);
            described["line"] = line.into();
            described["column"] = column.into();
            described
        };
        MessageReport {
            calls: self.called.iter().map(|called| called.report(hub_session, args.call.form)).collect(),
            errors: self.invalid.iter().map(described).collect(),
        }
    }

    fn exit(&self) -> Exit {
        let exits: Vec<_> = self.called.iter().map(ToolCall::exit).collect();
        match (&*self.invalid, &*exits) {
            ([], []) => Exit::NothingSelected,
            (_, exits) if exits.contains(&Exit::CannotRun) => Exit::CannotRun,
            ([], exits) if exits.iter().all(|exit| *exit == Exit::Success) => Exit::Success,
            _ => Exit::Violation,
        }
    }
}

/// Prints an invalid request with its location.
fn print_error(hub_session: &HubSession, message: &Source, error: &RequestError) {
    let (line, column) = message.position(error.range.start);
    let (code, text) = (error.kind.code(), hub_session.hidden(&error.to_string()));
    let text = format!("{}:{line}:{column}: {code}: {text}", message.name);
    style::print(&format!("{BAD}error:{BAD:#} {}\n", printable(&text)));
}
