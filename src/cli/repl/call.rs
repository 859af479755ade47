//! `call`: one call of a tool.

use std::{sync::Arc, time::Instant};

use tokio_util::sync::CancellationToken;

use super::{
    command::{ArgumentInput, ResultFormat},
    shell::Shell,
};
use crate::cli::{
    Failure,
    background::BackgroundThread,
    mcp::{
        arguments::Arguments, content::Saver, error::CommandError, print::print_json,
        projected_result::ProjectedResult, tool_call::outcome_text,
    },
    style::{self, BAD, STRONG, printable},
    terminal_user::TerminalUser,
};
use rehearse_client::{self as client, CallOptions};
use rehearse_document::nearest;
use rehearse_hub::{CallError, Denial, RegisteredTool, Registry, projection::Call};

/// Runs work. `cancel` cancels `request`, and then the work still runs to its end.
pub(super) async fn forward_cancellation<T>(
    cancel: &CancellationToken,
    request: &CancellationToken,
    work: impl Future<Output = T>,
) -> T {
    let mut work = Box::pin(work);
    tokio::select! {
        biased;
        done = &mut work => done,
        () = cancel.cancelled() => {
            request.cancel();
            work.await
        }
    }
}

impl Shell {
    /// Calls a tool, with approval if necessary. Returns whether the call succeeded.
    pub(super) async fn call(
        &self,
        name: &str,
        server: Option<&str>,
        input: ArgumentInput,
        format: &ResultFormat,
        cancel: &CancellationToken,
    ) -> bool {
        let hub_session = self.hub_session();
        let read = match input {
            ArgumentInput::Words(words) => self.read_arguments(None, words, cancel).await,
            ArgumentInput::Json(json) => self.read_arguments(Some(json), Vec::new(), cancel).await,
        };
        let usage = |error| CommandError::Failure(Failure::Usage(error));
        let found = match self.find_tool(name, server, cancel).await {
            Ok(tool) => read.and_then(|read| Ok((read.typed(Some(&tool.input_schema)).map_err(usage)?, tool))),
            Err(error) => Err(usage(error)),
        };
        let (arguments, tool) = match found {
            Ok(found) => found,
            Err(error) => return self.print_error(&hub_session, error),
        };
        let limit = self.hub.server(&tool.server).ok().map(|member| member.tool_timeout(&tool.original));
        let user_time = || self.person.as_ref().map(TerminalUser::conversation_time).unwrap_or_default();
        let (started, user_time_before) = (Instant::now(), user_time());
        let options = CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() };
        let mut answered = tool.clone();
        let call = async |options: CallOptions| {
            if server.is_some() {
                return self.hub.call_tool(&tool, Some(arguments), options).await;
            }
            let called = self.hub.call_routed(&tool, Some(arguments), options).await;
            answered = called.tool;
            called.result
        };
        let called =
            Box::pin(TerminalUser::with_timeout(self.person.as_ref(), limit.unwrap_or_default(), options, call)).await;
        let tool = answered;
        // The time of conversations with the user does not count.
        let took =
            started.elapsed().saturating_sub(user_time().saturating_sub(user_time_before)).as_secs_f64() * 1000.0;
        self.debug(&tool.server, &format!("called '{}' in {took:.1} ms", tool.name));
        if let ResultFormat::As(form) = format {
            let call = Call { id: "", server: &tool.server, tool: &tool.original };
            let _ = print_json(&ProjectedResult::new(*form, &hub_session, &call, called.as_ref()));
        }
        let outcome = match called {
            Ok(outcome) => outcome,
            Err(CallError::Failed(failure)) => {
                hub_session.print_failure(&failure);
                self.print_auth_hint(&tool.server);
                return false;
            }
            Err(error @ CallError::Denied { denial: Denial::NoApprover, .. }) => {
                self.error(&error.to_string());
                style::print(&format!(
                    "{STRONG}hint:{STRONG:#} use --yes to allow every call, or allow the tool in the config\n"
                ));
                return false;
            }
            Err(error) => {
                self.error(&error.to_string());
                if let CallError::InvalidArguments { .. } = error {
                    let hint = "start `rehearse repl` with --no-check-arguments to send such calls";
                    style::print(&format!("{STRONG}hint:{STRONG:#} {hint}\n"));
                }
                return false;
            }
        };
        let output = match format {
            ResultFormat::Human(output) => output.as_deref(),
            ResultFormat::As(_) => return !outcome.is_error,
        };
        let mut saver = Saver::new(output, &tool.original);
        let text = outcome_text(&outcome, &mut saver).map_err(CommandError::Failure);
        if !self.show(&hub_session, text, saver, cancel).await {
            return false;
        }
        if outcome.is_error {
            let tool = printable(&tool.original);
            style::print(&format!("{BAD}error:{BAD:#} the tool {STRONG}{tool}{STRONG:#} reported an error\n"));
        }
        !outcome.is_error
    }

    /// Reads the typed arguments. Cancellable, because a file may be a pipe without a writer.
    ///
    /// # Errors
    /// Invalid arguments; `-`, because the REPL reads commands from standard input; or a cancellation.
    pub(super) async fn read_arguments(
        &self,
        json: Option<String>,
        words: Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<Arguments, CommandError> {
        let usage = |error| CommandError::Failure(Failure::Usage(error));
        if words.iter().any(|word| word == "-") {
            return Err(usage("cannot read `-`: standard input contains the commands; use @FILE".to_owned()));
        }
        let reading = BackgroundThread::start(move || Arguments::read(json.as_deref(), &words));
        match cancel.run_until_cancelled(reading.join()).await.flatten() {
            Some(read) => read.map_err(usage),
            None => Err(client::Failure::Cancelled.into()),
        }
    }

    /// Finds a tool by its registered name, else by its original name if that is unique. Searches the connected servers
    /// first, then all.
    async fn find_tool(
        &self,
        name: &str,
        server: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<Arc<RegisteredTool>, String> {
        if let Some(server) = server {
            self.hub.server(server).map_err(|error| self.hub_error_text(&error))?;
        }
        let find = || registered_tool(&self.hub.registry(), server, name);
        let found = find();
        if found.is_ok() || (self.has_started() && !self.args.lazy) {
            return found;
        }
        let all = async {
            match self.args.lazy {
                // Unreachable servers are skipped.
                true => match server {
                    Some(server) => drop(Box::pin(self.hub.connect(server)).await),
                    None => drop(Box::pin(self.hub.discover_for(name)).await),
                },
                false => self.wait_all().await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => return found,
            () = all => {}
        }
        find()
    }
}

/// # Errors
/// No tool has the name, or several have it and no server is named.
fn registered_tool(registry: &Registry, server: Option<&str>, name: &str) -> Result<Arc<RegisteredTool>, String> {
    let is_of_server = |tool: &&Arc<RegisteredTool>| server.is_none_or(|server| *tool.server == *server);
    let own = server.and_then(|server| registry.find(server, name));
    if let Some(tool) = own.or_else(|| registry.get(name).filter(is_of_server)) {
        return Ok(tool.clone());
    }
    let tools: Vec<_> = registry.tools().iter().filter(is_of_server).collect();
    match &tools.iter().filter(|tool| tool.original == name).collect::<Vec<_>>()[..] {
        [tool] => Ok(Arc::clone(tool)),
        [] => {
            let names: Vec<&str> = tools.iter().flat_map(|tool| [&*tool.name, &*tool.original]).collect();
            let near = nearest(name, &names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            let owner =
                server.map_or_else(|| "no server has a".to_owned(), |server| format!("server '{server}' has no"));
            Err(format!("{owner} tool {name:?}{near}"))
        }
        several => {
            let names: Vec<_> = several.iter().map(|tool| &*tool.name).collect();
            Err(format!("several servers have a tool {name:?}: {}; or use --server", names.join(", ")))
        }
    }
}
