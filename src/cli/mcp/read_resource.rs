//! `rehearse mcp read-resource`.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    connection::ConnectionArgs,
    content::{Report, Saver, print, print_json},
    target::{Select, TargetArgs, only_one},
    visit::visit,
};
use crate::{
    cli::{Exit, Failure, Format},
    client,
};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp read-resource docs://index --server docs
  rehearse mcp read-resource --http http://127.0.0.1:8888/mcp file:///logo.png --output logo.png
  rehearse mcp read-resource file:///readme.md --stdio 'npx -y mcp-files' --format json";

/// Read a resource, and print what it holds
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReadResourceArgs {
    /// The URI of the resource
    uri: String,
    /// The server; not needed if there is only one
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Save what it holds in this file or folder
    #[arg(short, long, value_name = "FILE|FOLDER")]
    output: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// 2025-11-25, Resources: Reading Resources.
#[derive(Deserialize)]
struct Contents {
    contents: Vec<Box<RawValue>>,
}

pub(super) fn run(args: &ReadResourceArgs) -> Result<Exit, Failure> {
    let servers = args.target.servers(Select::of(args.server.as_deref()), args.connection.show_secrets)?;
    only_one(&servers, "--server")?;
    visit(
        &args.connection,
        &servers,
        |_| {},
        async |visit| {
            let server = &visit.names[0];
            let read = visit.over(server, async |session, options| Ok(session.read_resource(&args.uri, options).await));
            let read = read.await?;
            let mut saver = Saver::new(args.output.as_deref(), "resource");
            let read = read.and_then(|result| {
                let parsed = serde_json::from_str::<Contents>(result.get());
                let parsed = parsed
                    .map_err(|error| client::Failure::Malformed(format!("no contents of a resource: {error}")))?;
                Ok((result, parsed))
            });
            let mut text = String::new();
            if let Ok((_, Contents { contents })) = &read {
                for raw in contents {
                    text.push_str(&saver.contents(raw)?);
                }
            }
            let result = read.as_ref().map(|(result, _)| &**result);
            match args.format {
                Format::Human => print(&text),
                Format::Json => print_json(&Report::of(server, result, &saver)),
            }
            result.map(|_| Exit::Success).map_err(|failure| failure.clone().into())
        },
    )
}
