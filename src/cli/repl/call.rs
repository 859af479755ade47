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
        projected_result::ProjectedResult, tool_call::shown,
    },
    style::{self, BAD, STRONG, printable},
    terminal_user::TerminalUser,
};
use rehearse_client::{self as client, CallOptions};
use rehearse_document::nearest;
use rehearse_hub::{CallError, Denial, RegisteredTool, Registry, projection::Call};

/// Does the work; whoever cancels `cancel` cancels it by `own`, and waits for what it says to that.
pub(super) async fn cancelled_by<T>(
    cancel: &CancellationToken,
    own: &CancellationToken,
    work: impl Future<Output = T>,
) -> T {
    let mut work = Box::pin(work);
    tokio::select! {
        biased;
        done = &mut work => done,
        () = cancel.cancelled() => {
            own.cancel();
            work.await
        }
    }
}

impl Shell {
    /// Calls a tool, with an approval if it needs one: whether it worked.
    pub(super) async fn call(
        &self,
        name: &str,
        input: ArgumentInput,
        how: &ResultFormat,
        cancel: &CancellationToken,
    ) -> bool {
        let hub_session = self.hub_session();
        let read = match input {
            ArgumentInput::Words(words) => self.arguments(None, words, cancel).await,
            ArgumentInput::Json(json) => self.arguments(Some(json), Vec::new(), cancel).await,
        };
        let usage = |error| CommandError::Failure(Failure::Usage(error));
        let found = match self.find(name, cancel).await {
            Ok(tool) => read.and_then(|read| Ok((read.typed(Some(&tool.input_schema)).map_err(usage)?, tool))),
            Err(error) => Err(usage(error)),
        };
        let (arguments, tool) = match found {
            Ok(found) => found,
            Err(trouble) => return self.print_error(&hub_session, trouble),
        };
        let limit = self
            .hub
            .server(&tool.server)
            .ok()
            .map(|member| member.tool_timeouts.get(&tool.original).copied().unwrap_or(member.config.timeouts.call));
        let asked = || self.person.as_ref().map(TerminalUser::time_spent).unwrap_or_default();
        let (started, asked_before) = (Instant::now(), asked());
        let options = CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() };
        let call = async |options: CallOptions| self.hub.call(&tool.name, Some(arguments), options).await;
        let called =
            Box::pin(TerminalUser::with_timeout(self.person.as_ref(), limit.unwrap_or_default(), options, call)).await;
        // The time in which somebody thought is theirs.
        let took = started.elapsed().saturating_sub(asked().saturating_sub(asked_before)).as_secs_f64() * 1000.0;
        self.debug(&tool.server, &format!("called '{}' in {took:.1} ms", tool.name));
        if let ResultFormat::As(form) = how {
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
                return false;
            }
        };
        let output = match how {
            ResultFormat::Human(output) => output.as_deref(),
            ResultFormat::As(_) => return !outcome.is_error,
        };
        let mut saver = Saver::new(output, &tool.original);
        let text = shown(&outcome, &mut saver).map_err(CommandError::Failure);
        if !self.show(&hub_session, text, saver, cancel).await {
            return false;
        }
        if outcome.is_error {
            let tool = printable(&tool.original);
            style::print(&format!("{BAD}error:{BAD:#} the tool {STRONG}{tool}{STRONG:#} reported an error\n"));
        }
        !outcome.is_error
    }

    /// The arguments as they were typed. A file may be a pipe without a writer.
    ///
    /// # Errors
    /// What is none; standard input, which commands come from; or whoever wanted them has arguments up.
    pub(super) async fn arguments(
        &self,
        json: Option<String>,
        words: Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<Arguments, CommandError> {
        let usage = |error| CommandError::Failure(Failure::Usage(error));
        if words.iter().any(|word| word == "-") {
            return Err(usage("standard input has the commands; use @FILE".to_owned()));
        }
        let reading = BackgroundThread::start(move || Arguments::read(json.as_deref(), &words));
        match cancel.run_until_cancelled(reading.join()).await.flatten() {
            Some(read) => read.map_err(usage),
            None => Err(client::Failure::Cancelled.into()),
        }
    }

    /// The tool of a name: one that is registered under it, else the only one that a server knows by it. It is looked for
    /// among the servers that are connected, and then among all.
    async fn find(&self, name: &str, cancel: &CancellationToken) -> Result<Arc<RegisteredTool>, String> {
        let found = named(&self.hub.registry(), name);
        if found.is_ok() || (self.has_started() && !self.args.lazy) {
            return found;
        }
        let all = async {
            match self.args.lazy {
                // Whoever cannot be reached has no such tool.
                true => drop(Box::pin(self.hub.discover_for(name)).await),
                false => self.wait_all().await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => return found,
            () = all => {}
        }
        named(&self.hub.registry(), name)
    }
}

/// # Errors
/// There is none, or more than one.
fn named(registry: &Registry, name: &str) -> Result<Arc<RegisteredTool>, String> {
    if let Some(tool) = registry.get(name) {
        return Ok(tool.clone());
    }
    let tools = registry.tools();
    match &tools.iter().filter(|tool| tool.original == name).collect::<Vec<_>>()[..] {
        [tool] => Ok((*tool).clone()),
        [] => {
            let names: Vec<&str> = tools.iter().flat_map(|tool| [&*tool.name, &*tool.original]).collect();
            let near = nearest(name, &names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            Err(format!("no server has a tool {name:?}{near}"))
        }
        several => {
            let names: Vec<_> = several.iter().map(|tool| &*tool.name).collect();
            Err(format!("several servers have a tool {name:?}: {}", names.join(", ")))
        }
    }
}
