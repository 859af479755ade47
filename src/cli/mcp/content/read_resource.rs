//! `rehearse mcp read-resource`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Saver, print_result};
use crate::cli::{
    Exit, Failure, Format,
    mcp::{
        args::{CommonArgs, ContentArgs},
        error::CommandError,
        list::listing::request_item,
        session::{HubSession, run_session},
    },
};
use rehearse_client::{self as client, Session};
use rehearse_protocol::List;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp read-resource docs://index --server docs
  rehearse mcp read-resource --http http://127.0.0.1:8888/mcp file:///logo.png --output logo.png
  rehearse mcp read-resource file:///readme.md --stdio 'npx -y mcp-files' --format json";

/// A resource, and what becomes of its contents.
#[derive(Debug, clap::Args)]
pub(crate) struct ResourceArgs {
    /// The URI of the resource
    pub(crate) uri: String,
    #[command(flatten)]
    content: ContentArgs,
}

/// Read a resource and print its contents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("output", |it| it.help("Save the contents to this file or folder")))]
pub(crate) struct ReadResourceArgs {
    #[command(flatten)]
    resource: ResourceArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// 2025-11-25, Resources: Reading Resources.
#[derive(Deserialize)]
struct Contents {
    contents: Vec<Box<RawValue>>,
}

impl Contents {
    /// Parses the result of a request.
    ///
    /// # Errors
    /// The result is invalid.
    fn parse(result: &RawValue) -> Result<Contents, client::Failure> {
        let parsed = serde_json::from_str(result.get());
        parsed.map_err(|error| client::Failure::Malformed(format!("invalid resource contents: {error}")))
    }

    /// The contents as text. Binary content is saved or described.
    ///
    /// # Errors
    /// A file cannot be written.
    fn text(&self, saver: &mut Saver<'_>) -> Result<String, Failure> {
        self.contents.iter().map(|raw| saver.contents(raw)).collect()
    }
}

pub(crate) fn run(args: &ReadResourceArgs) -> Result<Exit, Failure> {
    let servers = args.common.one(args.resource.server(), "--server")?;
    run_session(&args.common, &servers, async |hub_session| args.resource.read(hub_session, args.common.format()).await)
}

impl ResourceArgs {
    pub(crate) fn server(&self) -> Option<&str> {
        self.content.server.as_deref()
    }

    /// Reads the resource of the only server of the session, and prints its contents.
    ///
    /// # Errors
    /// The request failed, or something cannot be written.
    pub(crate) async fn read(&self, hub_session: &HubSession, format: Format) -> Result<Exit, CommandError> {
        let read = async |session: &Session, options| {
            hub_session.hub.caching_session(session).read_resource(&self.uri, options).await
        };
        let read = request_item(hub_session, (List::Resources, &self.uri), read, Contents::parse).await?;
        let saver = Saver::new(self.content.output.as_deref(), "resource");
        print_result(hub_session, format, &hub_session.names[0], &read, saver, Contents::text).await
    }
}
