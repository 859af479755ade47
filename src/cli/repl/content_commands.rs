//! Commands about what servers offer: tools, resources, prompts.

use std::{path::Path, sync::Arc};

use serde_json::{Value, value::RawValue};
use tokio_util::sync::CancellationToken;
use unicode_width::UnicodeWidthStr;

use super::{call::forward_cancellation, shell::Shell};
use crate::cli::{
    self,
    mcp::{
        arguments::{Arguments, names_of},
        content::Saver,
        error::CommandError,
        get_prompt::Prompt,
        list_prompts::PROMPTS,
        list_resources::{RESOURCES, TEMPLATES},
        list_tools,
        listing::{self, ListingKind},
        print::print_unchecked,
        prose::{OVERVIEW_WIDTH, first_sentence, plain, wrap},
        read_resource::Contents,
        session::{HubSession, ServerResult, ServerResults},
    },
    style::{DIM, STRONG, printable},
};
use rehearse_client::{CallOptions, Failure, Listing, Session};
use rehearse_hub::RegisteredTool;

type Listings = Vec<(Arc<str>, ServerResult<Listing>)>;

impl Shell {
    pub(super) async fn list_tools(&self, server: Option<&str>) -> bool {
        let hub_session = match self.session_for_target(server) {
            Ok(hub_session) => hub_session,
            Err(error) => return self.failed(&error),
        };
        if self.args.lazy {
            self.connect_waiting(&hub_session).await;
        } else if !self.has_started() {
            hub_session.note("some servers are still connecting");
        }
        let registry = self.hub.registry();
        let Some(name) = server else {
            print_unchecked(&overview(
                hub_session.names.iter().map(|name| (&**name, registry.server_tools(name).collect())),
            ));
            return true;
        };
        let loaded = self.loaded();
        let Some(written) = loaded.servers.iter().find(|server| server.name() == name) else {
            return self.failed(&rehearse_hub::HubError::UnknownServer(name.to_owned()));
        };
        match list_tools::offered_tools(&hub_session, written, &registry) {
            Ok(text) => print_unchecked(&text),
            Err(error) => return self.failed(&error),
        }
        true
    }

    /// Connects to the servers of a session that have waited for that, and lists their tools.
    pub(super) async fn connect_waiting(&self, hub_session: &HubSession) {
        for name in &hub_session.names {
            match Box::pin(self.hub.connect(name)).await {
                Ok(None) => {}
                Ok(Some(failure)) => {
                    hub_session.warn(&format!("failed to list MCP tools for server {name}: {failure}"));
                }
                Err(error) => self.print_hub_error(&error),
            }
        }
    }

    pub(super) async fn resources(&self, server: Option<&str>) -> bool {
        let hub_session = match self.session_for_target(server) {
            Ok(hub_session) => hub_session,
            Err(error) => return self.failed(&error),
        };
        let resources = self.list_items(&hub_session, &RESOURCES).await;
        let templates = self.list_items(&hub_session, &TEMPLATES).await;
        let (Some(resources), Some(templates)) = (resources, templates) else { return false };
        print_unchecked(&listing::text(&RESOURCES, &resources));
        let has_templates = members(&templates).next().is_some();
        if has_templates {
            print_unchecked(&format!("\n{}", listing::text(&TEMPLATES, &templates)));
        }
        !listing::has_failed(&resources) && !listing::has_failed(&templates)
    }

    pub(super) async fn prompts(&self, server: Option<&str>) -> bool {
        let hub_session = match self.session_for_target(server) {
            Ok(hub_session) => hub_session,
            Err(error) => return self.failed(&error),
        };
        let Some(prompts) = self.list_items(&hub_session, &PROMPTS).await else { return false };
        print_unchecked(&listing::text(&PROMPTS, &prompts));
        !listing::has_failed(&prompts)
    }

    /// Reads a resource of the named server, or of the server that lists it.
    pub(super) async fn read(
        &self,
        uri: &str,
        server: Option<&str>,
        output: Option<&Path>,
        cancel: &CancellationToken,
    ) -> bool {
        let Some(hub_session) = self.find_server(server, &RESOURCES, uri, cancel).await else { return false };
        let read = async |session: &Session, options: CallOptions| {
            self.hub.caching_session(session).read_resource(uri, options).await
        };
        let Some(result) = self.send_request(&hub_session, (&RESOURCES, uri), read, cancel).await else { return false };
        let mut saver = Saver::new(output, "resource");
        let contents = Contents::parse(&result).map_err(CommandError::Call);
        let text = contents.and_then(|contents| contents.text(&mut saver).map_err(CommandError::Failure));
        self.show(&hub_session, text, saver, cancel).await
    }

    /// Gets a prompt of the named server, or of the server that lists it.
    pub(super) async fn prompt(
        &self,
        name: &str,
        words: Vec<String>,
        server: Option<&str>,
        output: Option<&Path>,
        cancel: &CancellationToken,
    ) -> bool {
        let texts = |read: Arguments| read.texts().map_err(|error| CommandError::Failure(cli::Failure::Usage(error)));
        let arguments = match self.read_arguments(None, words, cancel).await.and_then(texts) {
            Ok(arguments) => Some(arguments).filter(|arguments| !arguments.is_empty()),
            Err(error) => return self.print_error(&self.hub_session(), error),
        };
        let Some(hub_session) = self.find_server(server, &PROMPTS, name, cancel).await else { return false };
        let get = async |session: &Session, options: CallOptions| session.get_prompt(name, arguments, options).await;
        let Some(result) = self.send_request(&hub_session, (&PROMPTS, name), get, cancel).await else { return false };
        let mut saver = Saver::new(output, name);
        let prompt = Prompt::parse(&result).map_err(CommandError::Call);
        let text = prompt.and_then(|prompt| prompt.text(&mut saver).map_err(CommandError::Failure));
        self.show(&hub_session, text, saver, cancel).await
    }

    /// Saves binary content, then prints the text or the error. Returns whether there was no error.
    pub(super) async fn show(
        &self,
        hub_session: &HubSession,
        text: Result<String, CommandError>,
        mut saver: Saver<'_>,
        cancel: &CancellationToken,
    ) -> bool {
        let text = match text {
            Ok(text) => saver.write_out(cancel).await.map(|()| text),
            failed => failed,
        };
        match text {
            Ok(text) => print_unchecked(&text),
            Err(error) => return self.print_error(hub_session, error),
        }
        true
    }

    pub(super) fn print_error(&self, hub_session: &HubSession, error: CommandError) -> bool {
        match error {
            CommandError::Call(failure) => hub_session.print_failure(&failure),
            CommandError::Listing(what) => self.error(&what),
            CommandError::Failure(failure) => self.error(&failure.to_string()),
        }
        false
    }

    /// Asks for the items of each server.
    async fn list_items(&self, hub_session: &HubSession, kind: &ListingKind) -> Option<Listings> {
        let list = async |session: &Session, options| {
            self.hub.caching_session(session).list(kind.item, options).await.map(Arc::unwrap_or_clone)
        };
        let listed = Box::pin(listing::list_items(hub_session, kind, list)).await;
        self.listings(hub_session, listed)
    }

    /// What was listed; an error is printed.
    fn listings(
        &self,
        hub_session: &HubSession,
        listed: Result<ServerResults<Listing>, CommandError>,
    ) -> Option<Listings> {
        match listed {
            Ok(ServerResults { reached, outcome: Ok(()) }) => Some(reached),
            Ok(ServerResults { outcome: Err(error), .. }) | Err(error) => {
                self.print_error(hub_session, error);
                None
            }
        }
    }

    /// The server with an item: the named one, the only one, or the one that lists the item.
    async fn find_server(
        &self,
        server: Option<&str>,
        kind: &ListingKind,
        wanted: &str,
        cancel: &CancellationToken,
    ) -> Option<HubSession> {
        let hub_session = match self.session_for_target(server) {
            Ok(hub_session) => hub_session,
            Err(error) => {
                self.print_hub_error(&error);
                return None;
            }
        };
        if hub_session.names.len() < 2 {
            if hub_session.names.is_empty() {
                self.error("no server is connected");
                return None;
            }
            return Some(hub_session);
        }
        let list = async |session: &Session, options: CallOptions| {
            let request = options.cancel.unwrap_or_default().child_token();
            let options = CallOptions { cancel: Some(request.clone()), ..CallOptions::default() };
            let session = self.hub.caching_session(session);
            let listed = forward_cancellation(cancel, &request, session.items(kind.item, options)).await;
            listed.map(Arc::unwrap_or_clone)
        };
        let listed = Box::pin(listing::list_items(&hub_session, kind, list)).await;
        let listed = self.listings(&hub_session, listed)?;
        if cancel.is_cancelled() {
            return None;
        }
        let has_it = |(_, came): &&(Arc<str>, ServerResult<Listing>)| match came {
            ServerResult::Answered(Ok(listing)) => items(listing).any(|item| item[kind.name] == wanted),
            _ => false,
        };
        let names: Vec<_> = listed.iter().filter(has_it).map(|(name, _)| name.clone()).collect();
        match &names[..] {
            [_] => Some(self.session_for(names)),
            [] => {
                let all = listed.iter().filter_map(|(_, came)| match came {
                    ServerResult::Answered(Ok(listing)) => Some(&listing.items),
                    _ => None,
                });
                let near = kind.nearest(all.flatten(), wanted).map(|near| format!("; did you mean {near:?}?"));
                let near = near.unwrap_or_default();
                self.error(&format!("no server lists {wanted:?}; select a server with --server{near}"));
                None
            }
            several => {
                self.error(&format!(
                    "several servers list {wanted:?}; select one with --server: {}",
                    several.join(", ")
                ));
                None
            }
        }
    }

    /// Sends a request for an item to the only server of a session.
    async fn send_request(
        &self,
        hub_session: &HubSession,
        (kind, wanted): (&ListingKind, &str),
        send: impl AsyncFnOnce(&Session, CallOptions) -> Result<Box<RawValue>, Failure>,
        cancel: &CancellationToken,
    ) -> Option<Box<RawValue>> {
        let response = hub_session.with_session(&hub_session.names[0], async |session, options| {
            let request = options.cancel.unwrap_or_default().child_token();
            let options = CallOptions { cancel: Some(request.clone()), ..CallOptions::default() };
            let limit = session.timeouts().call;
            let send = async |options: CallOptions| send(session, options).await;
            let sending =
                crate::cli::terminal_user::TerminalUser::with_timeout(self.person.as_ref(), limit, options, send);
            forward_cancellation(cancel, &request, sending).await.map_err(CommandError::Call)
        });
        match response.await {
            Ok(result) => Some(result),
            Err(error) => {
                if let CommandError::Call(failure) = &error {
                    listing::suggest(hub_session, &hub_session.names[0], failure, kind, wanted).await;
                }
                self.print_error(hub_session, error);
                None
            }
        }
    }
}

fn items(listing: &Listing) -> impl Iterator<Item = Value> {
    listing.items.iter().filter_map(|item| serde_json::from_str(item.get()).ok())
}

/// The items of all servers.
fn members(listings: &Listings) -> impl Iterator<Item = Value> {
    let answered = listings.iter().filter_map(|(_, came)| match came {
        ServerResult::Answered(Ok(listing)) => Some(listing),
        _ => None,
    });
    answered.flat_map(items)
}

/// The tools of each server with their arguments and the first sentence of their descriptions.
fn overview<'t>(servers: impl Iterator<Item = (&'t str, Vec<&'t Arc<RegisteredTool>>)>) -> String {
    let text = |(server, tools): (&str, Vec<&Arc<RegisteredTool>>)| {
        let mut text = format!("{STRONG}{}{STRONG:#} ({})\n", printable(server), tools.len());
        for tool in tools {
            let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
            let word = |(name, is_required): (&str, bool)| match is_required {
                true => format!(" {}", printable(name)),
                false => format!(" [{}]", printable(name)),
            };
            let arguments: String = names_of(&schema).into_iter().map(word).collect();
            let about = first_sentence(&plain(tool.description.as_deref().unwrap_or_default()));
            let (name, about) = (printable(&tool.name), printable(&about));
            text.push_str(&format!("  {name}{DIM}{arguments}{DIM:#}"));
            let is_short = 4 + name.width() + arguments.width() + about.width() <= OVERVIEW_WIDTH;
            match &*about {
                "" => {}
                about if is_short => text.push_str(&format!("  {about}")),
                about => {
                    wrap(about, OVERVIEW_WIDTH - 6).iter().for_each(|line| text.push_str(&format!("\n      {line}")))
                }
            }
            text.push('\n');
        }
        text
    };
    servers.map(text).collect::<Vec<_>>().join("\n")
}
