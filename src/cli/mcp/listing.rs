//! Lists of resources, resource templates and prompts.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    args::CommonArgs,
    connection::UnreachableArgs,
    error::{CommandError, FailureReport},
    print::{print, print_json},
    session::{HubSession, ServerResult, ServerResults, first_notices, run_with_user},
    target::Select,
};
use crate::cli::{
    Exit, Failure, Format,
    style::{STRONG, printable},
};
use rehearse_client::{self as client, CallOptions, Listing, Session};
use rehearse_document::nearest;
use rehearse_hub::ItemKind;
use rehearse_report::text::printable_lines;

#[derive(Debug, clap::Args)]
pub(super) struct ListingArgs {
    /// The server [default: all enabled servers]
    server: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    unreachable: UnreachableArgs,
}

/// A kind of listed items.
pub(crate) struct ListingKind {
    pub(crate) item: ItemKind,
    /// The capability that a server with such items declares.
    pub(super) capability: &'static str,
    /// The title of a list.
    pub(super) title: &'static str,
    /// The key of the list in JSON.
    pub(super) key: &'static str,
    /// The member that identifies an item.
    pub(crate) name: &'static str,
    pub(super) human: fn(&Map<String, Value>) -> String,
}

/// Prints which listed item may be meant, if a server refused a request for another one.
pub(crate) async fn suggest(
    hub_session: &HubSession,
    server: &str,
    failure: &client::Failure,
    kind: &ListingKind,
    wanted: &str,
) {
    let list = async |session: &Session, options| match kind.capability {
        "prompts" => session.list_prompts(options).await,
        _ => session.list_resources(options).await,
    };
    let client::Failure::Rpc(_) = failure else { return };
    let Ok(Ok(listing)) = hub_session.request(server, list).await else { return };
    if let Some(near) = kind.nearest(listing.items.iter(), wanted) {
        let kind = kind.capability.trim_end_matches('s');
        hub_session.note(&format!("server '{server}' lists no {kind} {wanted:?}; did you mean {near:?}?"));
    }
}

impl ListingKind {
    /// The item whose identifier is most like a wanted one; `None` if that is listed.
    pub(crate) fn nearest<'i>(&self, items: impl Iterator<Item = &'i Box<RawValue>>, wanted: &str) -> Option<String> {
        let members = items.filter_map(|item| members_of(item));
        let names: Vec<_> = members.filter_map(|item| Some(item.get(self.name)?.as_str()?.to_owned())).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        nearest(wanted, &names).filter(|near| *near != wanted).map(str::to_owned)
    }
}

fn members_of(item: &RawValue) -> Option<Map<String, Value>> {
    serde_json::from_str(item.get()).ok()
}

/// The lists as JSON.
#[derive(Serialize)]
struct Report<'a> {
    servers: Vec<ServerReport<'a>>,
}

/// Members of one server's object.
struct ServerReport<'a>(Vec<(&'static str, ReportField<'a>)>);

#[derive(Serialize)]
#[serde(untagged)]
enum ReportField<'a> {
    Name(&'a str),
    /// Verbatim.
    Items(&'a [Box<RawValue>]),
    Failure(FailureReport),
    Unreachable(String),
}

impl Serialize for ServerReport<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, member)| (key, member)))
    }
}

/// Lists the items of every selected server.
///
/// # Errors
/// As `run_with_user`.
pub(super) fn run(
    args: &ListingArgs,
    kind: &ListingKind,
    list: impl AsyncFn(&Session, CallOptions) -> Result<Listing, client::Failure>,
) -> Result<Exit, Failure> {
    let servers = args.common.several(Select::from_name(args.server.as_deref()))?;
    run_with_user(
        None,
        &args.common,
        &servers,
        |options| args.unreachable.apply(options),
        async |hub_session| {
            let ServerResults { reached, outcome } = list_items(hub_session, kind, list).await?;
            match args.common.format() {
                Format::Human => print(&text(kind, &reached))?,
                Format::Json => {
                    let servers = reached.iter().map(|(server, came)| report(hub_session, kind, server, came));
                    print_json(&Report { servers: servers.collect() })?;
                }
            }
            outcome?;
            Ok(if has_failed(&reached) { Exit::Violation } else { Exit::Success })
        },
    )
}

/// Lists the items of each server; warns about failures.
///
/// # Errors
/// As [`HubSession::each`].
pub(crate) async fn list_items(
    hub_session: &HubSession,
    kind: &ListingKind,
    list: impl AsyncFn(&Session, CallOptions) -> Result<Listing, client::Failure>,
) -> Result<ServerResults<Listing>, CommandError> {
    let list = async |session: &Session, options| match session.info().declares(kind.capability) {
        true => list(session, options).await,
        // Without the capability there are no items.
        false => Ok(Listing::default()),
    };
    let each = hub_session.each(list).await?;
    for (server, came) in &each.reached {
        match came {
            ServerResult::Answered(Err(failure)) => {
                hub_session
                    .warn(&format!("{} of server '{server}' cannot be listed: {failure}", kind.title.to_lowercase()));
            }
            ServerResult::Answered(Ok(listing)) => {
                let what = kind.title.to_lowercase();
                let malformed = listing.malformed.iter();
                let texts: Vec<_> = malformed
                    .map(|(_, malformed)| format!("one of the {what} of server '{server}' cannot be used: {malformed}"))
                    .collect();
                first_notices(&texts).for_each(|text| hub_session.warn(&text));
            }
            ServerResult::Unreachable(_) => {}
        }
    }
    Ok(each)
}

/// Whether a server failed to list its items.
pub(crate) fn has_failed(reached: &[(Arc<str>, ServerResult<Listing>)]) -> bool {
    reached.iter().any(|(_, came)| matches!(came, ServerResult::Answered(Err(_))))
}

pub(crate) fn text(kind: &ListingKind, reached: &[(Arc<str>, ServerResult<Listing>)]) -> String {
    let texts: Vec<_> = reached.iter().filter_map(|(server, came)| human(kind, server, came)).collect();
    texts.join("\n")
}

fn report<'a>(
    hub_session: &HubSession,
    kind: &ListingKind,
    server: &'a str,
    came: &'a ServerResult<Listing>,
) -> ServerReport<'a> {
    let what = match came {
        ServerResult::Answered(Ok(listing)) => (kind.key, ReportField::Items(&listing.items)),
        ServerResult::Answered(Err(failure)) => ("failure", ReportField::Failure(hub_session.failure_json(failure))),
        ServerResult::Unreachable(error) => {
            ("unreachable", ReportField::Unreachable(hub_session.hidden(&error.to_string())))
        }
    };
    ServerReport(vec![("server", ReportField::Name(server)), what])
}

/// `None` for a server without a list.
fn human(kind: &ListingKind, server: &str, came: &ServerResult<Listing>) -> Option<String> {
    let ServerResult::Answered(Ok(listing)) = came else { return None };
    let mut text = format!("{STRONG}# {} of server '{}'{STRONG:#}\n\n", kind.title, printable(server));
    let items: Vec<_> = listing.valid().filter_map(members_of).collect();
    items.iter().for_each(|members| text.push_str(&(kind.human)(members)));
    if items.is_empty() {
        text.push_str(&format!("*No {} to display.*\n", kind.title.to_lowercase()));
    }
    Some(text)
}

/// A line with a name and details, followed by the description.
pub(super) fn entry(name: &str, beside: &[Option<&str>], members: &Map<String, Value>) -> String {
    let beside: Vec<_> = beside.iter().flatten().map(|text| printable(text)).collect();
    let beside = if beside.is_empty() { String::new() } else { format!(" ({})", beside.join(", ")) };
    let mut text = format!("- `{}`{beside}\n", printable(name));
    if let Some(description) = members.get("description").and_then(Value::as_str) {
        text.extend(printable_lines(description).map(|line| format!("  {line}\n")));
    }
    text
}

/// A string member, or an empty string.
pub(super) fn word<'m>(members: &'m Map<String, Value>, key: &str) -> &'m str {
    members.get(key).and_then(Value::as_str).unwrap_or_default()
}
