//! `rehearse mcp read-resource`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    args::{CommonArgs, ContentArgs},
    content::{Saver, print_result},
    list_resources::RESOURCES,
    listing::suggest,
    session::run_session,
};
use crate::cli::{Exit, Failure};
use rehearse_client as client;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp read-resource docs://index --server docs
  rehearse mcp read-resource --http http://127.0.0.1:8888/mcp file:///logo.png --output logo.png
  rehearse mcp read-resource file:///readme.md --stdio 'npx -y mcp-files' --format json";

/// Read a resource and print its contents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("output", |it| it.help("Save the contents to this file or folder")))]
pub(super) struct ReadResourceArgs {
    /// The URI of the resource
    uri: String,
    #[command(flatten)]
    content: ContentArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// 2025-11-25, Resources: Reading Resources.
#[derive(Deserialize)]
pub(crate) struct Contents {
    contents: Vec<Box<RawValue>>,
}

impl Contents {
    /// Parses the result of a request.
    ///
    /// # Errors
    /// The result is invalid.
    pub(crate) fn parse(result: &RawValue) -> Result<Contents, client::Failure> {
        let parsed = serde_json::from_str(result.get());
        parsed.map_err(|error| client::Failure::Malformed(format!("invalid resource contents: {error}")))
    }

    /// The contents as text. Binary content is saved or described.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn text(&self, saver: &mut Saver<'_>) -> Result<String, Failure> {
        self.contents.iter().map(|raw| saver.contents(raw)).collect()
    }
}

pub(super) fn run(args: &ReadResourceArgs) -> Result<Exit, Failure> {
    let servers = args.common.one(args.content.server.as_deref(), "--server")?;
    run_session(&args.common, &servers, async |hub_session| {
        let server = &hub_session.names[0];
        let read =
            hub_session.request(server, async |session, options| session.read_resource(&args.uri, options).await);
        let read = read.await?;
        let read = read.and_then(|result| Contents::parse(&result).map(|parsed| (result, parsed)));
        if let Err(failure) = &read {
            suggest(hub_session, server, failure, &RESOURCES, &args.uri).await;
        }
        let saver = Saver::new(args.content.output.as_deref(), "resource");
        print_result(hub_session, args.common.format(), server, &read, saver, Contents::text).await
    })
}
