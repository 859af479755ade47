//! `rehearse mcp list-resources` and `rehearse mcp list-resource-templates`.

use serde_json::{Map, Value};

use super::listing::{self, ListingArgs, ListingKind, entry, word};
use crate::cli::{Exit, Failure};
use rehearse_client::Session;
use rehearse_hub::ItemKind;

const RESOURCE_EXAMPLES: &str = "\
Examples:
  rehearse mcp list-resources                    of all servers
  rehearse mcp list-resources docs --format json
  rehearse mcp list-resources --http http://127.0.0.1:8888/mcp";

const TEMPLATE_EXAMPLES: &str = "\
Examples:
  rehearse mcp list-resource-templates           of all servers
  rehearse mcp list-resource-templates --ws ws://127.0.0.1:8888/ws --format json";

/// List the resources of one or all servers
#[derive(Debug, clap::Args)]
#[command(after_help = RESOURCE_EXAMPLES)]
pub(super) struct ListResourcesArgs {
    #[command(flatten)]
    listing: ListingArgs,
}

/// List the resource templates of one or all servers
#[derive(Debug, clap::Args)]
#[command(after_help = TEMPLATE_EXAMPLES)]
pub(super) struct ListResourceTemplatesArgs {
    #[command(flatten)]
    listing: ListingArgs,
}

pub(crate) const RESOURCES: ListingKind = ListingKind {
    item: ItemKind::Resource,
    capability: "resources",
    title: "Resources",
    key: "resources",
    name: "uri",
    human: resource,
};
pub(crate) const TEMPLATES: ListingKind = ListingKind {
    item: ItemKind::ResourceTemplate,
    capability: "resources",
    title: "Resource templates",
    key: "resourceTemplates",
    name: "uriTemplate",
    human: template,
};

pub(super) fn run(args: &ListResourcesArgs) -> Result<Exit, Failure> {
    listing::run(&args.listing, &RESOURCES, async |session: &Session, options| session.list_resources(options).await)
}

pub(super) fn run_templates(args: &ListResourceTemplatesArgs) -> Result<Exit, Failure> {
    listing::run(&args.listing, &TEMPLATES, async |session: &Session, options| {
        session.list_resource_templates(options).await
    })
}

fn resource(members: &Map<String, Value>) -> String {
    let size = members.get("size").and_then(Value::as_u64).map(|size| format!("{size} bytes"));
    entry(word(members, "uri"), &[name(members), mime_type(members), size.as_deref()], members)
}

fn template(members: &Map<String, Value>) -> String {
    entry(word(members, "uriTemplate"), &[name(members), mime_type(members)], members)
}

fn name(members: &Map<String, Value>) -> Option<&str> {
    Some(word(members, "name")).filter(|name| !name.is_empty())
}

fn mime_type(members: &Map<String, Value>) -> Option<&str> {
    Some(word(members, "mimeType")).filter(|mime_type| !mime_type.is_empty())
}
