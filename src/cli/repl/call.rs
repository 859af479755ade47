//! `call`: one call of a tool.

use std::{sync::Arc, time::Instant};

use tokio_util::sync::CancellationToken;

use super::{content_commands::read_arguments, error::ShellError, shell::Shell};
use crate::cli::{
    Exit, Format,
    mcp::{
        call::{
            call_tool::{find_tool, no_tool},
            call_tool_args::ToolCallArgs,
            tool_call::{ResolvedTool, ToolCall},
        },
        error::CommandError,
        session::HubSession,
    },
    terminal_user::TerminalUser,
};
use rehearse_hub::RegisteredTool;

impl Shell {
    /// Calls a tool, with approval if necessary.
    pub(super) async fn call(&self, args: ToolCallArgs, cancel: &CancellationToken) -> Result<Exit, ShellError> {
        let hub_session = match args.server() {
            Some(server) => self.session_for_target(Some(server))?,
            None => self.hub_session(),
        };
        let hub_session = hub_session.interrupted_by(cancel);
        let (reads_stdin, args) = (args.reads_stdin(), Arc::new(args));
        let (name, read) = (args.tool()?, args.clone());
        let arguments = read_arguments(reads_stdin, move || read.arguments(), cancel).await?;
        let tool = self.wait_for_tool(&hub_session, name, cancel).await?;
        let user_time = || self.person.as_ref().map(TerminalUser::conversation_time).unwrap_or_default();
        let (started, user_time_before) = (Instant::now(), user_time());
        let called = ToolCall::begin(&hub_session, ResolvedTool::Registered(tool.clone()), arguments, &args).await?;
        // The time of conversations with the user does not count.
        let took = started.elapsed().saturating_sub(user_time().saturating_sub(user_time_before));
        let server = called.server.clone();
        self.tracer.catch_up();
        self.debug(&server, &format!("called '{}' in {:.1} ms", tool.name, took.as_secs_f64() * 1000.0));
        let exit = called.print(&hub_session, &args, Format::Human).await?;
        if exit != Exit::Success {
            self.print_auth_hint(&server);
        }
        Ok(exit)
    }

    /// Finds a tool. Searches the connected servers first, then all.
    async fn wait_for_tool(
        &self,
        hub_session: &HubSession,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Arc<RegisteredTool>, CommandError> {
        let find = || {
            let registry = self.hub.registry();
            find_tool(hub_session, &registry, name)?.ok_or_else(|| no_tool(hub_session, &registry, name))
        };
        let found = find();
        if found.is_ok() || (self.has_started() && !self.args.lazy) {
            return found;
        }
        let all = async {
            match (self.args.lazy, &hub_session.names[..]) {
                // Unreachable servers are skipped.
                (true, [server]) => drop(Box::pin(self.hub.connect(server)).await),
                (true, _) => drop(Box::pin(self.hub.discover_for(name)).await),
                (false, _) => self.wait_all().await,
            }
        };
        match cancel.run_until_cancelled(all).await {
            Some(()) => find(),
            None => found,
        }
    }
}
