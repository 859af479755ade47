//! Commands about servers: status, reconnection and authorization.

use std::{io::IsTerminal, time::SystemTime};

use clap::ValueEnum;

use super::{chat::Chat, command::Switch, error::ShellError, shell::Shell};
use crate::cli::{
    Exit,
    mcp::{
        auth, info,
        print::{
            print_unchecked,
            table::{ago, callable_statuses, draw, list_items, status_table},
        },
    },
    style::{self, DIM, STRONG, printable},
};
use rehearse_client::{Failure, oauth::Authorizer};
use rehearse_hub::{ConnectionState, HubError, Usage};
use rehearse_report::text::printable_lines;

impl Shell {
    pub(super) async fn status(&self) -> Result<Exit, ShellError> {
        list_items(&self.hub).await;
        let statuses = callable_statuses(&self.hub);
        let prefix = if self.chat.is_some() { "/" } else { "/mcp " };
        print_unchecked(&status_table(&statuses, SystemTime::now(), prefix));
        for (server, status) in statuses.iter().filter(|(_, status)| status.state == ConnectionState::Failed) {
            let error = status.last_error.as_deref().unwrap_or_default();
            self.hub_session().warn(&format!("MCP server '{server}' connection failed: {error}"));
        }
        Ok(Exit::Success)
    }

    pub(super) async fn connect(&self, server: &str) -> Result<Exit, ShellError> {
        self.backoffs.lock().remove(server);
        self.connected(server, Box::pin(self.hub.connect(server)).await?)
    }

    pub(super) async fn reconnect(&self, server: &str) -> Result<Exit, ShellError> {
        self.backoffs.lock().remove(server);
        self.connected(server, Box::pin(self.hub.reconnect(server)).await?)
    }

    pub(super) async fn enable(&self, server: &str) -> Result<Exit, ShellError> {
        match Box::pin(self.hub.enable(server)).await? {
            None if self.args.lazy => done(&format!("'{server}' is enabled")),
            came => self.connected(server, came),
        }
    }

    pub(super) async fn disconnect(&self, server: &str) -> Result<Exit, ShellError> {
        self.hub.disconnect(server).await?;
        done(&format!("'{server}' is disconnected"))
    }

    pub(super) async fn disable(&self, server: &str) -> Result<Exit, ShellError> {
        self.hub.disable(server).await?;
        done(&format!("'{server}' is disabled"))
    }

    fn connected(&self, server: &str, failure: Option<Failure>) -> Result<Exit, ShellError> {
        match failure {
            None => done(&format!("'{server}' is connected, with {}", self.count(server))),
            Some(failure) => Err(ShellError::new(format!("failed to list MCP tools for server {server}: {failure}"))),
        }
    }

    /// Shows a server, or switches whether frames are printed, or says of which servers they are.
    pub(super) async fn debug_command(
        &self,
        server: Option<String>,
        switch: Option<Switch>,
    ) -> Result<Exit, ShellError> {
        match (server.as_deref(), switch) {
            (None, None) => self.print_debug_state(),
            (server, Some(switch)) => self.switch_debug(server, switch == Switch::On)?,
            (Some(word), None) => match Switch::from_str(word, false) {
                Ok(switch) => self.switch_debug(None, switch == Switch::On)?,
                Err(_) => self.describe(word).await?,
            },
        }
        Ok(Exit::Success)
    }

    /// Prints which servers are in debug mode.
    fn print_debug_state(&self) {
        for (server, _) in self.hub.status() {
            print_unchecked(&format!(
                "{}: {}\n",
                printable(&server),
                if self.switch.is_on(&server) { "on" } else { "off" }
            ));
        }
    }

    fn switch_debug(&self, server: Option<&str>, is_on: bool) -> Result<(), HubError> {
        server.map(|server| self.hub.server(server)).transpose()?;
        // Earlier frames are printed with the old state.
        self.tracer.catch_up();
        self.switch.set(server, is_on);
        let whose = server.map(|server| format!(" of '{}'", printable(server))).unwrap_or_default();
        print_unchecked(&format!("frames{whose} are {}\n", if is_on { "printed" } else { "no longer printed" }));
        Ok(())
    }

    /// Gets a token and reconnects, or deletes the token and disconnects.
    pub(super) async fn auth(&self, server: &str, is_logout: bool) -> Result<Exit, ShellError> {
        let loaded = self.loaded();
        let found = loaded.servers.iter().find(|found| found.name() == server);
        let found = found.ok_or_else(|| HubError::UnknownServer(server.to_owned()))?;
        let opens_browser = !self.args.connection.no_browser && std::io::stderr().is_terminal();
        // A connection attempt that waits for the browser holds the authorizer.
        let is_connecting =
            self.hub.status().iter().any(|(name, it)| **name == *server && it.state == ConnectionState::Connecting);
        if is_connecting {
            self.hub.disconnect(server).await?;
        }
        let member = self.hub.server(server).ok();
        let authorizer = member.as_ref().and_then(|member| member.config.authorizer.as_ref());
        let follow = |authorizer: &Authorizer| self.tracer.follow(&server.into(), &authorizer.recorder());
        let message = Box::pin(auth::authorize_or_logout(found, authorizer, is_logout, opens_browser, follow)).await?;
        print_unchecked(&message);
        if is_logout { self.disconnect(server).await } else { self.reconnect(server).await }
    }

    /// Prints everything that is known about a server, without connecting to it.
    async fn describe(&self, server: &str) -> Result<(), ShellError> {
        let member = self.hub.server(server)?;
        let status = self.hub.status().into_iter().find(|(name, _)| **name == *server).map(|(_, status)| status);
        let status = status.ok_or_else(|| HubError::UnknownServer(server.to_owned()))?;
        let mut text = String::new();
        if status.state == ConnectionState::Connected {
            let session_info = Box::pin(self.hub.with_session(server, async |session, _| {
                let (frames, bytes) = session
                    .recorder()
                    .since(0)
                    .iter()
                    .fold((0, 0), |(frames, bytes), frame| (frames + 1, bytes + frame.bytes.len()));
                (info::human(server, session.info()), format!("{frames} frames, {bytes} bytes"))
            }));
            let (info, wire) = session_info.await?;
            text.push_str(&format!("{info}{STRONG}Wire:{STRONG:#} {wire}\n"));
        }
        let mut fact = |name: &str, value: &str| {
            let value = self.hidden(value);
            let lines: Vec<_> = printable_lines(&value).collect();
            text.push_str(&format!("{STRONG}{name}:{STRONG:#} {}\n", lines.join("\n  ")));
        };
        fact("Status", &format!("{}, since {}", status.state, ago(status.since, SystemTime::now())));
        fact("Transport", member.config.target.transport().as_str());
        if let Some(error) = &status.last_error {
            fact("Last error", error);
        }
        if let Some(listed) = status.tools {
            let offered = self.hub.registry().server_tools(server).count();
            fact("Tools", &if offered == listed { listed.to_string() } else { format!("{offered} of {listed}") });
        }
        for (name, count) in [("Resources", status.resources), ("Prompts", status.prompts)] {
            count.iter().for_each(|count| fact(name, &count.to_string()));
        }
        fact("Frames printed", if self.switch.is_on(server) { "yes" } else { "no" });
        let stderr = self.recent_stderr(server);
        if !stderr.is_empty() {
            text.push_str(&format!("{STRONG}Standard error:{STRONG:#}\n"));
            for line in
                stderr.iter().flat_map(|line| printable_lines(&self.loaded().secrets.hidden(line)).collect::<Vec<_>>())
            {
                text.push_str(&format!("  {DIM}{line}{DIM:#}\n"));
            }
        }
        print_unchecked(&text);
        Ok(())
    }

    pub(super) fn print_usage(&self) {
        self.chat.iter().for_each(Chat::print_usage);
        let now = SystemTime::now();
        let row = |(server, tool, usage): (std::sync::Arc<str>, String, Usage)| {
            let reached = u32::try_from(usage.calls - usage.stored).unwrap_or(u32::MAX).max(1);
            [
                printable(&server).into_owned(),
                printable(&tool).into_owned(),
                usage.calls.to_string(),
                usage.tool_errors.to_string(),
                usage.failures.to_string(),
                format!("{:.1} ms", (usage.time / reached).as_secs_f64() * 1000.0),
                usage.last.map_or_else(|| "-".to_owned(), |last| ago(last, now)),
            ]
        };
        let rows: Vec<_> = self.hub.usage().into_iter().map(row).collect();
        if rows.is_empty() {
            return style::print("no tool was called yet\n");
        }
        let heads = ["Server", "Tool", "Calls", "Errors", "Failures", "Mean time", "Last"];
        print_unchecked(&draw(heads, &rows, |_, _| anstyle::Style::new()));
    }
}

fn done(what: &str) -> Result<Exit, ShellError> {
    print_unchecked(&format!("MCP server {}\n", printable(what)));
    Ok(Exit::Success)
}
