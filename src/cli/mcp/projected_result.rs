//! What came of a call, in the form in which another program hands it to its model.

use serde::Serialize;
use serde_json::Value;

use super::session::HubSession;
use crate::client::{
    ToolOutcome,
    hub::CallError,
    projection::{Call, Projected, Projection, Refusal},
};

/// A result in a form. Secrets are in results only, where the server put them.
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::cli) enum ProjectedResult<'a> {
    Result(Projected<'a>),
    /// Why there is none.
    Told(Value),
}

impl<'a> ProjectedResult<'a> {
    /// What came of a call by a hub, which may not have been made.
    pub(in crate::cli) fn new(
        form: Projection,
        hub_session: &HubSession,
        call: &Call<'a>,
        called: Result<&'a ToolOutcome, &'a CallError>,
    ) -> ProjectedResult<'a> {
        let refusal = match called {
            Ok(outcome) => return ProjectedResult::Result(form.project(call, Ok(outcome))),
            Err(CallError::Failed(failure)) => {
                return ProjectedResult::told(hub_session, &form.project(call, Err(failure)));
            }
            Err(CallError::UnknownTool { .. }) => Refusal::UnknownTool,
            Err(CallError::UnknownServer(_)) => Refusal::UnknownServer,
            Err(CallError::Disabled(_)) => Refusal::Disabled,
            Err(CallError::Denied { .. }) => Refusal::Denied,
            Err(CallError::Unreachable { error, .. }) => Refusal::NotConnected(error.to_string()),
        };
        ProjectedResult::told(hub_session, &form.refuse(call, &refusal))
    }

    fn told(hub_session: &HubSession, projected: &Projected<'_>) -> ProjectedResult<'a> {
        let mut told = serde_json::to_value(projected).unwrap_or_default();
        hide(&mut told, hub_session);
        ProjectedResult::Told(told)
    }
}

/// Takes the secrets out of all texts.
pub(super) fn hide(value: &mut Value, hub_session: &HubSession) {
    match value {
        Value::String(text) => *text = hub_session.hidden(text),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, hub_session)),
        Value::Object(members) => members.values_mut().for_each(|member| hide(member, hub_session)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
