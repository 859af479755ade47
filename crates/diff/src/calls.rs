//! Recorded calls against a new surface.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::{RecordedCall, Surface};
use rehearse_document::{json_schema, uri_template::UriTemplate};
use rehearse_protocol::List;
use rehearse_report::diff::RefusedCall;

/// The recorded calls that succeeded and that the new surface refuses, each kind of them once, with how many were held
/// against it. Nothing is called. Each call comes with the name of its trace.
pub(crate) fn refused_calls<'c>(
    new: &Surface,
    calls: impl IntoIterator<Item = (&'c str, &'c RecordedCall)>,
) -> (Vec<RefusedCall>, usize) {
    let (mut refused, mut held): (Vec<RefusedCall>, _) = (Vec::new(), 0);
    let mut schemas = HashMap::new();
    for (trace, call) in calls.into_iter().filter(|(_, call)| call.has_succeeded) {
        held += 1;
        let Some(reason) = reason(new, call, &mut schemas) else { continue };
        let subject = format!("{} {}", call.list.noun(), call.name);
        let same = |it: &&mut RefusedCall| (&it.subject, &it.client, &it.reason) == (&subject, &call.client, &reason);
        match refused.iter_mut().find(same) {
            Some(known) => known.count += 1,
            None => refused.push(RefusedCall {
                client: call.client.clone(),
                count: 1,
                trace: trace.to_owned(),
                arguments: call.arguments.clone(),
                subject,
                reason,
            }),
        }
    }
    (refused, held)
}

/// Compiled input schemas by tool; `None` if a schema is invalid, which refuses nothing.
type Schemas = HashMap<String, Option<json_schema::Validator>>;

/// Why the new surface refuses a call.
fn reason(new: &Surface, call: &RecordedCall, schemas: &mut Schemas) -> Option<String> {
    let items = new.list(call.list)?;
    let item = new.item(call.list, &call.name);
    match call.list {
        List::Tools => {
            let Some(tool) = item else { return Some("there is no such tool any more".to_owned()) };
            let compile = || json_schema::compile(tool.get("inputSchema")?).ok();
            let validator = schemas.entry(call.name.clone()).or_insert_with(compile).as_ref()?;
            let error = validator.iter_errors(&call.arguments).next()?;
            let at = error.instance_path().to_string();
            let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
            Some(format!("its arguments do not match the schema any more{at}: {error}"))
        }
        List::Prompts => {
            let Some(prompt) = item else { return Some("there is no such prompt any more".to_owned()) };
            let arguments = prompt.get("arguments").and_then(Json::as_array).into_iter().flatten();
            let required = arguments.filter(|it| it.get("required") == Some(&Json::Bool(true)));
            let mut names = required.filter_map(|it| it.get("name").and_then(Json::as_str));
            let missing = names.find(|name| call.arguments.get(name).is_none())?;
            Some(format!("the argument `{missing}` is required now"))
        }
        List::Resources | List::ResourceTemplates => {
            let templates = new.list(List::ResourceTemplates)?.iter();
            let mut texts = templates.filter_map(|it| it.get(List::ResourceTemplates.key())?.as_str());
            let is_known = item.is_some()
                || texts.any(|text| UriTemplate::parse(text).is_ok_and(|it| it.match_uri(&call.name).is_some()));
            // A server may have resources that it does not list.
            (!is_known && !items.is_empty()).then(|| "it is neither listed nor of a template".to_owned())
        }
    }
}
