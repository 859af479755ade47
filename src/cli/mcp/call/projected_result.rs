//! The result of a call as another client passes it to its model.

use serde::Serialize;
use serde_json::Value;

use crate::cli::mcp::session::HubSession;
use rehearse_client::ToolOutcome;
use rehearse_hub::{
    CallError,
    projection::{Call, CallRejection, Projected, Projection, project, reject},
};

/// A projected result. Secrets can only be in results, where the server put them.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ProjectedResult<'a> {
    Result(Projected<'a>),
    /// The projected failure.
    Failure(Value),
}

impl<'a> ProjectedResult<'a> {
    /// Projects the result of a hub call.
    pub(crate) fn new(
        form: Projection,
        hub_session: &HubSession,
        call: &Call<'a>,
        called: Result<&'a ToolOutcome, &'a CallError>,
    ) -> ProjectedResult<'a> {
        let rejection = match called {
            Ok(outcome) => return ProjectedResult::Result(project(form, call, Ok(outcome))),
            Err(CallError::Failed(failure)) => {
                return ProjectedResult::failure(hub_session, &project(form, call, Err(failure)));
            }
            Err(CallError::UnknownTool { .. }) => CallRejection::UnknownTool,
            Err(CallError::UnknownServer(_)) => CallRejection::UnknownServer,
            Err(CallError::Disabled(_)) => CallRejection::Disabled,
            Err(CallError::InvalidArguments { violations, .. }) => {
                let all: Vec<_> = violations.iter().map(ToString::to_string).collect();
                CallRejection::InvalidArguments(all.join("; "))
            }
            Err(CallError::Denied { .. }) => CallRejection::Denied,
            Err(CallError::Unreachable { error, .. }) => CallRejection::NotConnected(error.to_string()),
        };
        ProjectedResult::failure(hub_session, &reject(form, call, &rejection))
    }

    fn failure(hub_session: &HubSession, projected: &Projected<'_>) -> ProjectedResult<'a> {
        let mut failure = serde_json::to_value(projected).unwrap_or_default();
        hide(&mut failure, hub_session);
        ProjectedResult::Failure(failure)
    }
}

/// Hides secrets in all strings.
pub(crate) fn hide(value: &mut Value, hub_session: &HubSession) {
    match value {
        Value::String(text) => *text = hub_session.hidden(text),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, hub_session)),
        Value::Object(members) => members.values_mut().for_each(|member| hide(member, hub_session)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
