//! Commands about what servers offer: tools, resources, prompts.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use unicode_width::UnicodeWidthStr;

use super::{error::ShellError, shell::Shell};
use crate::cli::{
    Exit, Failure, Format,
    background::BackgroundThread,
    mcp::{
        arguments::{Arguments, names_of},
        content::{get_prompt::PromptArgs, read_resource::ResourceArgs},
        error::CommandError,
        list::{list_tools, listing},
        print::{
            print_unchecked,
            prose::{OVERVIEW_WIDTH, first_sentence, plain, wrap},
        },
        session::{HubSession, ServerResult, ServerResults},
    },
    style::{DIM, STRONG, printable},
};
use rehearse_client as client;
use rehearse_hub::{HubError, RegisteredTool};
use rehearse_protocol::List;

impl Shell {
    pub(super) async fn list_tools(&self, server: Option<&str>) -> Result<Exit, ShellError> {
        let hub_session = self.session_for_target(server)?;
        if self.args.lazy {
            self.connect_waiting(&hub_session).await;
        } else if !self.has_started() {
            hub_session.note("some servers are still connecting");
        }
        let (registry, loaded) = (self.hub.registry(), self.loaded());
        print_unchecked(&match server {
            None => overview(hub_session.names.iter().map(|name| (&**name, registry.server_tools(name).collect()))),
            Some(name) => {
                let written = loaded.servers.iter().find(|server| server.name() == name);
                let written = written.ok_or_else(|| HubError::UnknownServer(name.to_owned()))?;
                list_tools::offered_tools(&hub_session, written, &registry)?
            }
        });
        Ok(Exit::Success)
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

    /// Lists resources, and templates if there are any.
    pub(super) async fn resources(&self, server: Option<&str>) -> Result<Exit, ShellError> {
        let hub_session = self.session_for_target(server)?;
        let (resources, has_failed) = list(&hub_session, List::Resources).await?;
        let (templates, has_failed_too) = list(&hub_session, List::ResourceTemplates).await?;
        let has_templates = templates
            .iter()
            .any(|(_, came)| matches!(came, ServerResult::Answered(Ok(listing)) if !listing.items.is_empty()));
        print_unchecked(&listing::text(List::Resources, &resources));
        if has_templates {
            print_unchecked(&format!("\n{}", listing::text(List::ResourceTemplates, &templates)));
        }
        Ok(if has_failed || has_failed_too { Exit::Violation } else { Exit::Success })
    }

    pub(super) async fn prompts(&self, server: Option<&str>) -> Result<Exit, ShellError> {
        let (prompts, has_failed) = list(&self.session_for_target(server)?, List::Prompts).await?;
        print_unchecked(&listing::text(List::Prompts, &prompts));
        Ok(if has_failed { Exit::Violation } else { Exit::Success })
    }

    /// Reads a resource of the named server, or of the server that lists it.
    pub(super) async fn read(&self, args: &ResourceArgs, cancel: &CancellationToken) -> Result<Exit, ShellError> {
        let hub_session = self.find_server(args.server(), (List::Resources, &args.uri), cancel).await?;
        Ok(args.read(&hub_session, Format::Human).await?)
    }

    /// Gets a prompt of the named server, or of the server that lists it.
    pub(super) async fn prompt(&self, args: PromptArgs, cancel: &CancellationToken) -> Result<Exit, ShellError> {
        let (reads_stdin, args) = (args.reads_stdin(), Arc::new(args));
        let read = args.clone();
        let arguments = read_arguments(reads_stdin, move || read.arguments(), cancel).await?;
        let hub_session = self.find_server(args.server(), (List::Prompts, &args.name), cancel).await?;
        Ok(args.get(&hub_session, arguments, Format::Human).await?)
    }

    /// The session with the server of an item: the named one, the only one, or the one that lists the item.
    async fn find_server(
        &self,
        server: Option<&str>,
        (kind, wanted): (List, &str),
        cancel: &CancellationToken,
    ) -> Result<HubSession, ShellError> {
        let hub_session = self.session_for_target(server)?.interrupted_by(cancel);
        match hub_session.names.len() {
            0 => return Err(ShellError::new("no server is connected")),
            1 => return Ok(hub_session),
            _ => {}
        }
        let ServerResults { reached, outcome } = listing::list_items(&hub_session, kind, false).await?;
        outcome?;
        let listings = || {
            reached.iter().filter_map(|(name, came)| match came {
                ServerResult::Answered(Ok(listing)) => Some((name, &listing.items)),
                _ => None,
            })
        };
        let has_it = listings()
            .filter(|(_, items)| items.iter().any(|it| listing::name_of(kind, it).as_deref() == Some(wanted)));
        let names: Vec<_> = has_it.map(|(name, _)| name.clone()).collect();
        match &names[..] {
            [_] => Ok(self.session_for(names).interrupted_by(cancel)),
            [] => {
                let near = listing::nearest_item(kind, listings().flat_map(|(_, items)| items), wanted);
                let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                Err(ShellError::new(format!("no server lists {wanted:?}; select a server with --server{near}")))
            }
            several => Err(ShellError::new(format!(
                "several servers list {wanted:?}; select one with --server: {}",
                several.join(", ")
            ))),
        }
    }
}

/// The lists of a kind, and whether one of them is missing.
async fn list(hub_session: &HubSession, kind: List) -> Result<(listing::Lists, bool), CommandError> {
    let ServerResults { reached, outcome } = listing::list_items(hub_session, kind, true).await?;
    outcome?;
    let has_failed = listing::has_failed(&reached);
    Ok((reached, has_failed))
}

/// Reads typed arguments. Cancellable, because a file may be a pipe without a writer.
///
/// # Errors
/// Invalid arguments; standard input, because the REPL reads commands from there; or a cancellation.
pub(super) async fn read_arguments(
    reads_stdin: bool,
    read: impl FnOnce() -> Result<Arguments, Failure> + Send + 'static,
    cancel: &CancellationToken,
) -> Result<Arguments, CommandError> {
    if reads_stdin {
        let why = "cannot read `-`: standard input contains the commands; use @FILE";
        return Err(CommandError::usage(why.to_owned()));
    }
    let read = cancel.run_until_cancelled(BackgroundThread::start(read).join()).await.flatten();
    Ok(read.ok_or(client::Failure::Cancelled)??)
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
