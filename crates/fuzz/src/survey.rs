//! The targets of a server: only what it declares and lists.

use serde_json::Value as Json;

use crate::{error::FuzzError, options::FuzzOptions, target::Target};
use rehearse_client::{CallOptions, Failure, Listing, Session};
use rehearse_document::text::matches_wildcard;
use rehearse_protocol::List;
use rehearse_report::fuzz::TargetKind;

/// How many pages of a list are read.
const PAGES: usize = 100;
/// How many listed resources are read.
const RESOURCES: usize = 10;
/// How many tools an error names.
const NAMED: usize = 50;

/// All targets, tools first.
///
/// # Errors
/// The tools cannot be listed, or none has a name of [`FuzzOptions::only`].
pub(crate) async fn targets(session: &Session, options: &FuzzOptions) -> Result<Vec<Target>, FuzzError> {
    let (mut found, mut readable, mut cursors) = (Vec::new(), Vec::new(), Vec::new());
    for kind in session.info().lists() {
        let (items, own) = match list(session, kind).await {
            Err(failure) if kind == List::Tools => return Err(FuzzError::Tools(failure)),
            Err(_) => continue,
            Ok(listed) => listed,
        };
        match kind {
            List::Tools => found.extend(items.iter().map(|definition| tool(definition, options))),
            List::Prompts => readable.extend(items.iter().map(Target::prompt)),
            List::Resources => {
                let uris = items.iter().filter_map(|it| it["uri"].as_str().map(ToOwned::to_owned));
                readable.push(Target::resources(&uris.take(RESOURCES).collect::<Vec<_>>()));
            }
            List::ResourceTemplates => readable.extend(items.iter().filter_map(Target::template)),
        }
        cursors.push((kind, own));
    }
    let has_completions = session.info().declares("completions");
    let completions = readable.iter().filter(|_| has_completions).filter_map(Target::completion);
    let completions: Vec<_> = completions.collect();
    found.extend(readable.into_iter().chain(completions));
    for (kind, own) in &cursors {
        let others = cursors.iter().filter(|(other, _)| other != kind).filter_map(|(_, it)| it.first().cloned());
        found.push(Target::list(*kind, own, &others.collect::<Vec<_>>()));
    }
    match options.only.is_empty() {
        true => Ok(found),
        false => selected(found, &options.only),
    }
}

/// # Errors
/// No tool has one of the names.
fn selected(all: Vec<Target>, names: &[String]) -> Result<Vec<Target>, FuzzError> {
    let tools: Vec<_> = all.into_iter().filter(|target| target.id.kind == TargetKind::Tool).collect();
    let is_known = |name: &&String| tools.iter().any(|tool| matches_wildcard(name, &tool.id.name));
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        let known = tools.iter().take(NAMED).map(|tool| tool.id.name.clone()).collect();
        return Err(FuzzError::UnknownTool { name: name.clone(), known });
    }
    let is_named = |tool: &Target| names.iter().any(|name| matches_wildcard(name, &tool.id.name));
    Ok(tools.into_iter().filter(is_named).collect())
}

fn tool(definition: &Json, options: &FuzzOptions) -> Target {
    let is_open = definition["annotations"]["openWorldHint"] == true;
    let why = if is_open { "it is annotated with openWorldHint" } else { "it is not annotated with readOnlyHint" };
    let usual = options.tools.arguments_of(definition);
    Target::tool(definition, usual, (!options.tools.allows(definition)).then_some(why))
}

/// The items and the cursors of the pages up to the first without a valid answer. A first page that is malformed has no
/// items.
///
/// # Errors
/// Any other [`Failure`] of the first page; an item is nested too deeply to be sent anything.
pub(crate) async fn list(session: &Session, list: List) -> Result<(Vec<Json>, Vec<String>), Failure> {
    let listing = match session.list_partial(list, PAGES, CallOptions::default()).await {
        (Listing { pages: 0, .. }, Some(failure)) if !matches!(failure, Failure::Malformed(_)) => return Err(failure),
        (listing, _) => listing,
    };
    let items = listing.items.iter().map(|item| serde_json::from_str(item.get()));
    let items = items.collect::<Result<_, _>>().map_err(|error| Failure::Malformed(error.to_string()))?;
    Ok((items, listing.cursors))
}
