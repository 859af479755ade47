//! What came of a call, in the form in which another program hands it to its model.

use serde::Serialize;
use serde_json::Value;

use super::visit::Visit;
use crate::client::{
    ToolOutcome,
    hub::CallError,
    projection::{Call, Projected, Projection, Refusal},
};

/// A result in a form. Secrets are in results only, where the server put them.
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::cli) enum Formed<'a> {
    Result(Projected<'a>),
    /// Why there is none.
    Told(Value),
}

impl<'a> Formed<'a> {
    /// What came of a call by a hub, which may not have been made.
    pub(in crate::cli) fn new(
        form: Projection,
        visit: &Visit,
        call: &Call<'a>,
        called: Result<&'a ToolOutcome, &'a CallError>,
    ) -> Formed<'a> {
        let refusal = match called {
            Ok(outcome) => return Formed::Result(form.project(call, Ok(outcome))),
            Err(CallError::Failed(failure)) => return Formed::told(visit, &form.project(call, Err(failure))),
            Err(CallError::NoTool { .. }) => Refusal::UnknownTool,
            Err(CallError::NoServer(_)) => Refusal::UnknownServer,
            Err(CallError::Disabled(_)) => Refusal::Disabled,
            Err(CallError::Denied { .. }) => Refusal::Denied,
            Err(CallError::Unreachable { error, .. }) => Refusal::NotConnected(error.to_string()),
        };
        Formed::told(visit, &form.refuse(call, &refusal))
    }

    fn told(visit: &Visit, projected: &Projected<'_>) -> Formed<'a> {
        let mut told = serde_json::to_value(projected).unwrap_or_default();
        hide(&mut told, visit);
        Formed::Told(told)
    }
}

/// Takes the secrets out of all texts.
pub(super) fn hide(value: &mut Value, visit: &Visit) {
    match value {
        Value::String(text) => *text = visit.hidden(text),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, visit)),
        Value::Object(members) => members.values_mut().for_each(|member| hide(member, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
