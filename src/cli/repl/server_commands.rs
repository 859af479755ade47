//! Commands about servers: status, reconnection and authorization.

use std::{io::IsTerminal, time::SystemTime};

use super::{chat::Chat, shell::Shell};
use crate::cli::{
    mcp::{
        auth, info,
        print::print_unchecked,
        table::{ago, callable_statuses, draw, list_items, status_table},
    },
    style::{self, DIM, STRONG, printable},
};
use rehearse_client::{Failure, oauth::Authorizer};
use rehearse_hub::{ConnectionState, HubError, Usage};
use rehearse_report::text::printable_lines;

impl Shell {
    pub(super) async fn status(&self) -> bool {
        list_items(&self.hub).await;
        let statuses = callable_statuses(&self.hub);
        let prefix = if self.chat.is_some() { "/" } else { "/mcp " };
        print_unchecked(&status_table(&statuses, SystemTime::now(), prefix));
        for (server, status) in statuses.iter().filter(|(_, status)| status.state == ConnectionState::Failed) {
            let error = status.last_error.as_deref().unwrap_or_default();
            self.hub_session().warn(&format!("MCP server '{server}' connection failed: {error}"));
        }
        true
    }

    pub(super) async fn connect(&self, server: &str) -> bool {
        self.backoffs.lock().remove(server);
        let came = Box::pin(self.hub.connect(server)).await;
        self.connected(server, came)
    }

    pub(super) async fn reconnect(&self, server: &str) -> bool {
        self.backoffs.lock().remove(server);
        let came = Box::pin(self.hub.reconnect(server)).await;
        self.connected(server, came)
    }

    pub(super) async fn enable(&self, server: &str) -> bool {
        match Box::pin(self.hub.enable(server)).await {
            Ok(None) if self.args.lazy => self.done(&format!("'{server}' is enabled")),
            came => self.connected(server, came),
        }
    }

    pub(super) async fn disconnect(&self, server: &str) -> bool {
        match self.hub.disconnect(server).await {
            Ok(()) => self.done(&format!("'{server}' is disconnected")),
            Err(error) => self.failed(&error),
        }
    }

    pub(super) async fn disable(&self, server: &str) -> bool {
        match self.hub.disable(server).await {
            Ok(()) => self.done(&format!("'{server}' is disabled")),
            Err(error) => self.failed(&error),
        }
    }

    fn connected(&self, server: &str, result: Result<Option<Failure>, HubError>) -> bool {
        match result {
            Ok(None) => self.done(&format!("'{server}' is connected, with {}", self.count(server))),
            Ok(Some(failure)) => {
                self.error(&format!("failed to list MCP tools for server {server}: {failure}"));
                false
            }
            Err(error) => self.failed(&error),
        }
    }

    fn done(&self, what: &str) -> bool {
        print_unchecked(&format!("MCP server {}\n", printable(what)));
        true
    }

    pub(super) fn failed(&self, error: &HubError) -> bool {
        self.print_hub_error(error);
        false
    }

    /// Prints which servers are in debug mode.
    pub(super) fn print_debug_state(&self) -> bool {
        for (server, _) in self.hub.status() {
            print_unchecked(&format!(
                "{}: {}\n",
                printable(&server),
                if self.switch.is_on(&server) { "on" } else { "off" }
            ));
        }
        true
    }

    pub(super) fn switch_debug(&self, server: Option<&str>, is_on: bool) -> bool {
        if let Some(Err(error)) = server.map(|server| self.hub.server(server)) {
            return self.failed(&error);
        }
        // Earlier frames are printed with the old state.
        self.tracer.catch_up();
        self.switch.set(server, is_on);
        let whose = server.map(|server| format!(" of '{}'", printable(server))).unwrap_or_default();
        print_unchecked(&format!("frames{whose} are {}\n", if is_on { "printed" } else { "no longer printed" }));
        true
    }

    /// Gets a token and reconnects, or deletes the token and disconnects.
    pub(super) async fn auth(&self, server: &str, is_logout: bool) -> bool {
        let loaded = self.loaded();
        let Some(found) = loaded.servers.iter().find(|found| found.name() == server) else {
            return self.failed(&HubError::UnknownServer(server.to_owned()));
        };
        let opens_browser = !self.args.connection.no_browser && std::io::stderr().is_terminal();
        // A connection attempt that waits for the browser holds the authorizer.
        let is_connecting =
            self.hub.status().iter().any(|(name, it)| **name == *server && it.state == ConnectionState::Connecting);
        if is_connecting && let Err(error) = self.hub.disconnect(server).await {
            return self.failed(&error);
        }
        let member = self.hub.server(server).ok();
        let authorizer = member.as_ref().and_then(|member| member.config.authorizer.as_ref());
        let follow = |authorizer: &Authorizer| self.tracer.follow(&server.into(), &authorizer.recorder());
        match Box::pin(auth::authorize_or_logout(found, authorizer, is_logout, opens_browser, follow)).await {
            Ok(message) => {
                print_unchecked(&message);
                if is_logout { self.disconnect(server).await } else { self.reconnect(server).await }
            }
            Err(failure) => {
                self.error(&failure.to_string());
                false
            }
        }
    }

    /// Prints everything that is known about a server, without connecting to it.
    pub(super) async fn describe(&self, server: &str) -> bool {
        let member = match self.hub.server(server) {
            Ok(member) => member,
            Err(error) => return self.failed(&error),
        };
        let status = self.hub.status().into_iter().find(|(name, _)| **name == *server).map(|(_, status)| status);
        let Some(status) = status else { return self.failed(&HubError::UnknownServer(server.to_owned())) };
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
            match session_info.await {
                Ok((info, wire)) => text.push_str(&format!("{info}{STRONG}Wire:{STRONG:#} {wire}\n")),
                Err(error) => return self.failed(&error),
            }
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
            for line in stderr
                .iter()
                .flat_map(|line| printable_lines(&self.loaded().secrets.hidden_in_stderr(line)).collect::<Vec<_>>())
            {
                text.push_str(&format!("  {DIM}{line}{DIM:#}\n"));
            }
        }
        print_unchecked(&text);
        true
    }

    pub(super) fn usage(&self) -> bool {
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
            style::print("no tool was called yet\n");
            return true;
        }
        let heads = ["Server", "Tool", "Calls", "Errors", "Failures", "Mean time", "Last"];
        print_unchecked(&draw(heads, &rows, |_, _| anstyle::Style::new()));
        true
    }
}
