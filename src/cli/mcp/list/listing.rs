//! Lists of resources, resource templates and prompts.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::listed_item::item_text;
use crate::cli::{
    Exit, Failure, Format,
    mcp::{
        args::CommonArgs,
        error::{CommandError, FailureReport},
        print::{print, print_json},
        session::{HubSession, ServerResult, ServerResults, first_notices, run_with_user},
        target::{Select, connection::UnreachableArgs},
    },
    style::{STRONG, printable},
    terminal_user::TerminalUser,
};
use rehearse_client::{self as client, CallOptions, Listing, Session};
use rehearse_document::nearest;
use rehearse_protocol::List;

pub(crate) const RESOURCE_EXAMPLES: &str = "\
Examples:
  rehearse mcp list-resources                    of all servers
  rehearse mcp list-resources docs --format json
  rehearse mcp list-resources --http http://127.0.0.1:8888/mcp";

pub(crate) const TEMPLATE_EXAMPLES: &str = "\
Examples:
  rehearse mcp list-resource-templates           of all servers
  rehearse mcp list-resource-templates --ws ws://127.0.0.1:8888/ws --format json";

pub(crate) const PROMPT_EXAMPLES: &str = "\
Examples:
  rehearse mcp list-prompts                      of all servers
  rehearse mcp list-prompts review --format json
  rehearse mcp list-prompts --stdio 'npx -y mcp-prompts'";

#[derive(Debug, clap::Args)]
pub(crate) struct ListingArgs {
    /// The server [default: all enabled servers]
    server: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    unreachable: UnreachableArgs,
}

/// Requests an item of the only server of the session; with the result as it came. If the server refuses it, prints which
/// listed item may be meant. The timeout excludes the time of user prompts.
///
/// # Errors
/// The server cannot be reached.
pub(crate) async fn request_item<T>(
    hub_session: &HubSession,
    (list, wanted): (List, &str),
    send: impl AsyncFn(&Session, CallOptions) -> Result<Box<RawValue>, client::Failure>,
    parse: impl Fn(&RawValue) -> Result<T, client::Failure>,
) -> Result<Result<(Box<RawValue>, T), client::Failure>, CommandError> {
    let server = &hub_session.names[0];
    let request = async |session: &Session, options| {
        let (limit, send) = (session.timeouts().call, async |options: CallOptions| send(session, options).await);
        TerminalUser::with_timeout(hub_session.person.as_ref(), limit, options, send).await
    };
    let ask = async |session: &Session, options| hub_session.hub.caching_session(session).items(list, options).await;
    let response = hub_session.request(server, request).await?;
    if let Err(client::Failure::Rpc(_)) = &response
        && let Ok(Ok(listing)) = hub_session.request(server, ask).await
        && let Some(near) = nearest_item(list, listing.items.iter(), wanted)
    {
        hub_session.note(&format!("server '{server}' lists no {} {wanted:?}; did you mean {near:?}?", list.noun()));
    }
    Ok(response.and_then(|result| parse(&result).map(|parsed| (result, parsed))))
}

/// The identifier of an item.
pub(crate) fn name_of(list: List, item: &RawValue) -> Option<String> {
    Some(members_of(item)?.get(list.key())?.as_str()?.to_owned())
}

/// The item whose identifier is most like a wanted one; `None` if that is listed.
pub(crate) fn nearest_item<'i>(
    list: List,
    items: impl Iterator<Item = &'i Box<RawValue>>,
    wanted: &str,
) -> Option<String> {
    let names: Vec<_> = items.filter_map(|item| name_of(list, item)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    nearest(wanted, &names).filter(|near| *near != wanted).map(str::to_owned)
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
pub(crate) fn run(args: &ListingArgs, list: List) -> Result<Exit, Failure> {
    let servers = args.common.several(Select::from_name(args.server.as_deref()))?;
    run_with_user(
        None,
        &args.common,
        &servers,
        |options| args.unreachable.apply(options),
        async |hub_session| {
            let ServerResults { reached, outcome } = list_items(hub_session, list, true).await?;
            match args.common.format() {
                Format::Human => print(&text(list, &reached))?,
                Format::Json => {
                    let servers = reached.iter().map(|(server, came)| report(hub_session, list, server, came));
                    print_json(&Report { servers: servers.collect() })?;
                }
            }
            outcome?;
            Ok(if has_failed(&reached) { Exit::Violation } else { Exit::Success })
        },
    )
}

/// Lists the items of each server; warns about failures. Unless it is `fresh`, a list that is still current is not asked for.
///
/// # Errors
/// As [`HubSession::each`].
pub(crate) async fn list_items(
    hub_session: &HubSession,
    list: List,
    fresh: bool,
) -> Result<ServerResults<Arc<Listing>>, CommandError> {
    let ask = async |session: &Session, options| {
        let session = hub_session.hub.caching_session(session);
        if fresh { session.list(list, options).await } else { session.items(list, options).await }
    };
    let each = Box::pin(hub_session.each(ask)).await?;
    for (server, came) in &each.reached {
        match came {
            ServerResult::Answered(Err(failure)) => {
                hub_session
                    .warn(&format!("{} of server '{server}' cannot be listed: {failure}", list.title().to_lowercase()));
            }
            ServerResult::Answered(Ok(listing)) => {
                let what = list.title().to_lowercase();
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

/// The lists of servers.
pub(crate) type Lists = Vec<(Arc<str>, ServerResult<Arc<Listing>>)>;

/// Whether a server failed to list its items.
pub(crate) fn has_failed(reached: &[(Arc<str>, ServerResult<Arc<Listing>>)]) -> bool {
    reached.iter().any(|(_, came)| matches!(came, ServerResult::Answered(Err(_))))
}

pub(crate) fn text(list: List, reached: &[(Arc<str>, ServerResult<Arc<Listing>>)]) -> String {
    let texts: Vec<_> = reached.iter().filter_map(|(server, came)| human(list, server, came)).collect();
    texts.join("\n")
}

fn report<'a>(
    hub_session: &HubSession,
    list: List,
    server: &'a str,
    came: &'a ServerResult<Arc<Listing>>,
) -> ServerReport<'a> {
    let what = match came {
        ServerResult::Answered(Ok(listing)) => (list.member(), ReportField::Items(&listing.items)),
        ServerResult::Answered(Err(failure)) => ("failure", ReportField::Failure(hub_session.failure_json(failure))),
        ServerResult::Unreachable(error) => {
            ("unreachable", ReportField::Unreachable(hub_session.hidden(&error.to_string())))
        }
    };
    ServerReport(vec![("server", ReportField::Name(server)), what])
}

/// `None` for a server without a list.
fn human(list: List, server: &str, came: &ServerResult<Arc<Listing>>) -> Option<String> {
    let ServerResult::Answered(Ok(listing)) = came else { return None };
    let mut text = format!("{STRONG}# {} of server '{}'{STRONG:#}\n\n", list.title(), printable(server));
    let items: Vec<_> = listing.valid().filter_map(members_of).collect();
    items.iter().for_each(|members| text.push_str(&item_text(list, members)));
    if items.is_empty() {
        text.push_str(&format!("*No {} to display.*\n", list.title().to_lowercase()));
    }
    Some(text)
}
