//! What came of a call, in the form in which another program hands it to its model.

use serde::Serialize;
use serde_json::Value;

use super::visit::Visit;
use crate::client::{
    Failure, ToolOutcome,
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
    /// What came of a call that was made.
    pub(in crate::cli) fn new(
        form: Projection,
        visit: &Visit,
        call: &Call<'a>,
        called: Result<&'a ToolOutcome, &'a Failure>,
    ) -> Formed<'a> {
        let projected = form.project(call, called);
        if called.is_ok() { Formed::Result(projected) } else { Formed::told(visit, &projected) }
    }

    /// Why a call was not made.
    pub(in crate::cli) fn refused(form: Projection, visit: &Visit, call: &Call<'a>, refusal: &Refusal) -> Formed<'a> {
        Formed::told(visit, &form.refuse(call, refusal))
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
