//! Calls of registered tools.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    ConnectionState, Event, Hub, RegisteredTool, approval::Denial, caching_session::authorization,
    server_connection::OpenSession, usage::CallOutcome,
};
use rehearse_client::{CallOptions, ConnectError, Failure, ToolOutcome};
use rehearse_document::nearest;
use rehearse_llm::Violation;
use rehearse_protocol::Operation;

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// No tool is registered under the name.
    #[error("unknown tool {name:?}{}", .suggestion.as_ref().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default())]
    UnknownTool { name: String, suggestion: Option<String> },
    /// The server was removed from the hub.
    #[error("the server {0:?} was removed")]
    UnknownServer(Arc<str>),
    /// The server is disabled.
    #[error("the server {0:?} is disabled")]
    Disabled(Arc<str>),
    /// The arguments break the input schema of the tool, and the options forbid that. The call was not sent.
    #[error("the arguments of {tool:?} are invalid: {}", .violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    InvalidArguments { tool: String, violations: Vec<Violation> },
    /// The call was denied and not sent.
    #[error("{}", denied(.tool, *.denial))]
    Denied { tool: String, denial: Denial },
    /// The server cannot be reached.
    #[error("{server}: {error}")]
    Unreachable { server: Arc<str>, error: Arc<ConnectError> },
    /// The call was sent and failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

fn denied(tool: &str, denial: Denial) -> String {
    match denial {
        Denial::ByUser => "Tool execution was denied by user.".to_owned(),
        Denial::NoApprover => format!("the tool {tool:?} needs approval, and there is no terminal to ask on"),
        Denial::BySetting(setting) => format!("the tool {tool:?} needs approval, denied by {setting}"),
    }
}

impl Hub {
    /// Calls a tool by its registered name, connecting to its server if necessary. The timeout is that of the options, else
    /// of the tool, else of the server.
    ///
    /// The options decide which server gets the call if several have the tool. If a server has lost the session, the call is
    /// repeated once in a new session. If the connection is lost, the call is repeated once if the tool is read-only or
    /// idempotent and the options want it.
    ///
    /// # Errors
    /// [`CallError`]. An error that the tool reports is an `Ok` with `is_error`.
    pub async fn call(
        &self,
        name: &str,
        arguments: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        let registry = self.registry();
        let Some(tool) = registry.get(name).cloned() else {
            let names: Vec<&str> = registry.tools().iter().map(|tool| &*tool.name).collect();
            let suggestion = nearest(name, &names).map(str::to_owned);
            return Err(CallError::UnknownTool { name: name.to_owned(), suggestion });
        };
        self.call_routed(&tool, arguments, options).await.result
    }

    /// As [`Hub::call`], for exactly this tool of the registry, also a shadowed one.
    ///
    /// # Errors
    /// As [`Hub::call`].
    pub async fn call_tool(
        &self,
        tool: &Arc<RegisteredTool>,
        arguments: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        let connection = self.connection(&tool.server).map_err(|_| CallError::UnknownServer(tool.server.clone()))?;
        let member = connection.member();
        if connection.status().state == ConnectionState::Disabled {
            return Err(CallError::Disabled(tool.server.clone()));
        }
        let violations = if self.0.options.checks_arguments { tool.violations(arguments.as_ref()) } else { Vec::new() };
        if !violations.is_empty() {
            return Err(CallError::InvalidArguments { tool: tool.name.clone(), violations });
        }
        let approved = tokio::select! {
            biased;
            approved = self.0.saved_approvals.decide(&self.0.options.approval, &member, tool, arguments.as_ref()) => approved,
            () = options.cancelled() => return Err(Failure::Cancelled.into()),
        };
        approved.map_err(|denial| CallError::Denied { tool: tool.name.clone(), denial })?;
        let started = Instant::now();
        let count = |outcome| self.0.usages.count(&tool.server, &tool.original, outcome, started.elapsed());
        let results = &self.0.results;
        let (reads, now) = (tool.annotations.read_only, || authorization(&member));
        let asked = (results.is_used() && reads).then(|| {
            let Operation { method, params } = Operation::call(&tool.original, arguments.clone());
            results.key(&tool.server, &method, Some(&params), now())
        });
        let kept = asked.as_ref().and_then(|asked| results.get(asked));
        if let Some(outcome) = kept.and_then(|result| ToolOutcome::parse(result).ok()) {
            count(CallOutcome::Stored);
            return Ok(outcome);
        }
        let limit = options.timeout.unwrap_or_else(|| member.tool_timeout(&tool.original));
        let options = CallOptions { timeout: Some(limit), ..options };
        let called = self.call_server(tool, arguments, options).await;
        if !reads {
            // A failed call may have changed something, too.
            results.invalidate(&tool.server);
        }
        match &called {
            Ok(outcome) => {
                count(CallOutcome::Result { is_error: outcome.is_error });
                if let Some(asked) = asked.filter(|_| !outcome.is_error) {
                    results.put_tool(asked, &outcome.raw, now());
                }
            }
            Err(_) => count(CallOutcome::Failure),
        }
        called
    }

    async fn call_server(
        &self,
        tool: &RegisteredTool,
        arguments: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        let connection = self.connection(&tool.server).map_err(|_| CallError::UnknownServer(tool.server.clone()))?;
        let mut may_repeat = self.0.options.repeats_calls && tool.annotations.may_repeat();
        let mut may_renew = true;
        loop {
            let (session, is_new) = connection
                .session(&self.0.options)
                .await
                .map_err(|error| CallError::Unreachable { server: tool.server.clone(), error })?;
            let Some(live) = &*session else { return Err(CallError::UnknownServer(tool.server.clone())) };
            if is_new {
                self.emit(Event::StatusChanged(connection.name.clone()));
                self.watch(&connection, live).await;
            }
            match call_in_session(live, &tool.original, arguments.clone(), options.clone()).await {
                Err(Failure::Disconnected { .. }) if std::mem::take(&mut may_repeat) => {}
                Err(failure) if live.session.is_lost_by(&failure) && std::mem::take(&mut may_renew) => {
                    self.emit(Event::SessionRenewed(connection.name.clone()));
                }
                called => return called.map_err(CallError::Failed),
            }
        }
    }
}

/// Calls a tool so that both the caller and the closing of the session can cancel it.
async fn call_in_session(
    live: &OpenSession,
    tool: &str,
    arguments: Option<Map<String, Value>>,
    options: CallOptions,
) -> Result<ToolOutcome, Failure> {
    let cancel = live.calls.child_token();
    let forward = options.cancelled();
    let call = live.session.call_tool(tool, arguments, CallOptions { cancel: Some(cancel.clone()), ..options.clone() });
    tokio::pin!(call, forward);
    tokio::select! {
        biased;
        called = &mut call => called,
        () = &mut forward => {
            cancel.cancel();
            call.await
        }
    }
}
