//! `call`: one call of a tool.

use std::{sync::Arc, time::Instant};

use tokio_util::sync::CancellationToken;

use super::{
    command::{Given, Shown},
    shell::Shell,
};
use crate::{
    cli::{
        ask::Person,
        mcp::{
            arguments::Arguments,
            called::shown,
            content::{Saver, print_json, tell},
            form::Formed,
            trouble::Trouble,
        },
        style::{self, BAD, STRONG, printable},
    },
    client::{
        CallOptions,
        hub::{CallError, Denial, RegisteredTool, Registry},
        projection::Call,
    },
    config::nearest,
};

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
    pub(super) async fn call(&self, name: &str, given: Given, how: &Shown, cancel: &CancellationToken) -> bool {
        let read = match &given {
            Given::Words(words) => self.arguments(None, words),
            Given::Json(json) => self.arguments(Some(json), &[]),
        };
        let found = match self.find(name, cancel).await {
            Ok(tool) => read.and_then(|read| Ok((read.typed(Some(&tool.input_schema))?, tool))),
            Err(error) => Err(error),
        };
        let (arguments, tool) = match found {
            Ok(found) => found,
            Err(error) => {
                self.error(&error);
                return false;
            }
        };
        let visit = self.visit();
        let limit = self
            .hub
            .member(&tool.server)
            .ok()
            .map(|member| member.tool_timeouts.get(&tool.original).copied().unwrap_or(member.config.timeouts.call));
        let asked = || self.person.as_ref().map(Person::asked).unwrap_or_default();
        let (started, asked_before) = (Instant::now(), asked());
        let options = CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() };
        let call = async |options: CallOptions| self.hub.call(&tool.name, Some(arguments), options).await;
        let called = Box::pin(Person::in_time(self.person.as_ref(), limit.unwrap_or_default(), options, call)).await;
        // The time in which somebody thought is theirs.
        let took = started.elapsed().saturating_sub(asked().saturating_sub(asked_before)).as_secs_f64() * 1000.0;
        self.debug(&tool.server, &format!("the call of '{}' took {took:.1} ms", tool.name));
        if let Shown::As(form) = how {
            let call = Call { id: "", server: &tool.server, tool: &tool.original };
            let _ = print_json(&Formed::new(*form, &visit, &call, called.as_ref()));
        }
        let outcome = match called {
            Ok(outcome) => outcome,
            Err(CallError::Failed(failure)) => {
                visit.tell_failure(&failure);
                self.tell_authorization(&tool.server);
                return false;
            }
            Err(error @ CallError::Denied { denial: Denial::Unasked, .. }) => {
                self.error(&error.to_string());
                style::print(&format!(
                    "{STRONG}hint:{STRONG:#} --yes allows every call, and so do the config's own rules\n"
                ));
                return false;
            }
            Err(error) => {
                self.error(&error.to_string());
                return false;
            }
        };
        let output = match how {
            Shown::Human(output) => output.as_deref(),
            Shown::As(_) => return !outcome.is_error,
        };
        match shown(&outcome, &mut Saver::new(output, &tool.original)) {
            Ok(text) => tell(&text),
            Err(failure) => return self.tell(&visit, Trouble::Failure(failure)),
        }
        if outcome.is_error {
            let tool = printable(&tool.original);
            style::print(&format!("{BAD}error:{BAD:#} the tool {STRONG}{tool}{STRONG:#} reports that it failed\n"));
        }
        !outcome.is_error
    }

    /// The arguments as they were typed.
    ///
    /// # Errors
    /// What is none; standard input, which commands come from.
    pub(super) fn arguments(&self, json: Option<&str>, words: &[String]) -> Result<Arguments, String> {
        match words.iter().any(|word| word == "-") {
            true => Err("standard input is where commands come from; write @FILE".to_owned()),
            false => Arguments::read(json, words),
        }
    }

    /// The tool of a name: one that is registered under it, else the only one that a server knows by it. It is looked for
    /// among the servers that are connected, and then among all.
    async fn find(&self, name: &str, cancel: &CancellationToken) -> Result<Arc<RegisteredTool>, String> {
        let found = named(&self.hub.registry(), name);
        if found.is_ok() || (self.is_settled() && !self.args.lazy) {
            return found;
        }
        let all = async {
            match self.args.lazy {
                // Whoever cannot be reached has no such tool.
                true => drop(Box::pin(self.hub.discover_for(name)).await),
                false => self.settled().await,
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
