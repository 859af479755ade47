//! `rehearse mcp list-prompts`.

use serde_json::{Map, Value};

use super::listing::{self, ListingArgs, ListingKind, entry, word};
use crate::cli::{Exit, Failure, style::printable};
use rehearse_client::Session;
use rehearse_hub::ItemKind;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp list-prompts                      of all servers
  rehearse mcp list-prompts review --format json
  rehearse mcp list-prompts --stdio 'npx -y mcp-prompts'";

/// List the prompts of one or all servers
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListPromptsArgs {
    #[command(flatten)]
    listing: ListingArgs,
}

pub(crate) const PROMPTS: ListingKind = ListingKind {
    item: ItemKind::Prompt,
    capability: "prompts",
    title: "Prompts",
    key: "prompts",
    name: "name",
    human: prompt,
};

pub(super) fn run(args: &ListPromptsArgs) -> Result<Exit, Failure> {
    listing::run(&args.listing, &PROMPTS, async |session: &Session, options| session.list_prompts(options).await)
}

fn prompt(members: &Map<String, Value>) -> String {
    let mut text = entry(word(members, "name"), &[], members);
    for argument in members.get("arguments").and_then(Value::as_array).into_iter().flatten() {
        let required = if argument["required"] == true { "required" } else { "optional" };
        let about = argument["description"].as_str().map(|about| format!(": {}", printable(about))).unwrap_or_default();
        let name = printable(argument["name"].as_str().unwrap_or_default());
        text.push_str(&format!("  - `{name}` ({required}){about}\n"));
    }
    text
}
