//! The targets of a server: only what it declares and lists.

use serde_json::{Map, Value as Json, value::RawValue};

use crate::{
    options::FuzzOptions,
    target::{Target, list_member},
};
use rehearse_client::{CallOptions, Failure, Session};

/// How many pages of a list are read.
const PAGES: usize = 100;
/// How many listed resources are read.
const RESOURCES: usize = 10;

/// A list with the cursors of its pages.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) items: Vec<Json>,
    cursors: Vec<String>,
}

/// All targets, tools first.
///
/// # Errors
/// The tools cannot be listed.
pub(crate) async fn targets(session: &Session, options: &FuzzOptions) -> Result<Vec<Target>, String> {
    let mut lists = Vec::new();
    let mut found = Vec::new();
    let declares = |capability: &str| session.info().declares(capability);
    if declares("tools") {
        let listed = list(session, "tools/list").await;
        let listed = listed.map_err(|failure| format!("its tools cannot be listed: {failure}"))?;
        found.extend(listed.items.iter().map(|definition| tool(definition, options)));
        lists.push(("tools/list", listed.cursors));
    }
    let mut readable = Vec::new();
    if declares("prompts")
        && let Ok(listed) = list(session, "prompts/list").await
    {
        readable.extend(listed.items.iter().map(Target::prompt));
        lists.push(("prompts/list", listed.cursors));
    }
    if declares("resources") {
        if let Ok(listed) = list(session, "resources/templates/list").await {
            readable.extend(listed.items.iter().filter_map(Target::template));
            lists.push(("resources/templates/list", listed.cursors));
        }
        if let Ok(listed) = list(session, "resources/list").await {
            let uris = listed.items.iter().filter_map(|it| it["uri"].as_str().map(ToOwned::to_owned));
            readable.push(Target::resources(&uris.take(RESOURCES).collect::<Vec<_>>()));
            lists.push(("resources/list", listed.cursors));
        }
    }
    let completions = readable.iter().filter(|_| declares("completions")).filter_map(Target::completion);
    let completions: Vec<_> = completions.collect();
    found.extend(readable.into_iter().chain(completions));
    for (method, cursors) in &lists {
        let others = lists.iter().filter(|(other, _)| other != method).filter_map(|(_, it)| it.first().cloned());
        found.push(Target::list(method, cursors, &others.collect::<Vec<_>>()));
    }
    Ok(found)
}

/// The methods of the lists that the server declares.
pub(crate) fn lists(session: &Session) -> impl Iterator<Item = &'static str> {
    let lists = [("tools", "tools/list"), ("prompts", "prompts/list"), ("resources", "resources/list")];
    lists.into_iter().filter(|(capability, _)| session.info().declares(capability)).map(|(_, method)| method)
}

fn tool(definition: &Json, options: &FuzzOptions) -> Target {
    let name = definition["name"].as_str().unwrap_or_default();
    let example = options.tools.arguments.iter().find(|(tool, _)| tool == name).map(|(_, it)| it);
    let is_open = definition["annotations"]["openWorldHint"] == true;
    let why = if is_open { "it is annotated with openWorldHint" } else { "it is not annotated with readOnlyHint" };
    Target::tool(definition, example, (!options.tools.allows(definition)).then_some(why))
}

/// # Errors
/// Any [`Failure`] of the first page.
pub(crate) async fn list(session: &Session, method: &str) -> Result<Listed, Failure> {
    let mut listed = Listed::default();
    while listed.cursors.len() < PAGES {
        let cursor =
            listed.cursors.last().map(|cursor| Map::from_iter([("cursor".to_owned(), cursor.as_str().into())]));
        let is_first = cursor.is_none();
        let page: Box<RawValue> = match session.request(method, cursor, CallOptions::default()).await {
            Err(failure) if is_first => return Err(failure),
            Err(_) => break,
            Ok(page) => page,
        };
        let page: Json = serde_json::from_str(page.get()).map_err(|error| Failure::Malformed(error.to_string()))?;
        listed.items.extend(page[list_member(method)].as_array().into_iter().flatten().cloned());
        let Some(next) = page["nextCursor"].as_str().filter(|next| !listed.cursors.iter().any(|it| it == next)) else {
            break;
        };
        listed.cursors.push(next.to_owned());
    }
    Ok(listed)
}
