//! Tool definitions in the formats of model APIs.

use std::num::NonZeroUsize;

use serde_json::{Map, Value, value::RawValue};

use crate::cli::{
    Failure,
    mcp::print::{self, print_json, text_of},
    profile::tool_findings,
    style,
};
use rehearse_document::yaml;
use rehearse_hub::Registry;
use rehearse_llm::{
    Provider, ToolDefinition,
    xml::{Options, prompt},
};
use rehearse_mock::recording;
use rehearse_profile::{Profile, builtin};
use rehearse_report::profile::RuleLevel;

/// How many tools that are refused are named.
const WARNINGS: usize = 5;

/// A format of tool definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ToolFormat {
    /// The `tools` of the Anthropic Messages API
    Anthropic,
    /// The `tools` of the OpenAI Chat Completions API
    Openai,
    /// The `tools` of the OpenAI Responses API
    OpenaiResponses,
    /// A part of the system prompt, for models without tool calls
    Xml,
    /// A mock script with these tools, without answers
    Script,
}

impl ToolFormat {
    /// Prints the tool definitions.
    ///
    /// # Errors
    /// As `print`.
    pub(crate) fn print(self, registry: &Registry, options: &Options) -> Result<(), Failure> {
        let tools: Vec<_> = registry.tools().iter().map(|tool| tool.for_model()).collect();
        let provider = match self {
            ToolFormat::Anthropic => Provider::Anthropic,
            ToolFormat::Openai => Provider::OpenAi,
            ToolFormat::OpenaiResponses => Provider::OpenAiResponses,
            ToolFormat::Xml => return print::print(&text_of(&prompt(&tools, options))),
            ToolFormat::Script => return print_script(registry),
        };
        let aliases = registry.aliases();
        let definition = |tool: &ToolDefinition<'_>| {
            let name = aliases.alias(tool.name).unwrap_or_default();
            // The provider's shape borrows from the tool alone.
            serde_json::value::to_raw_value(&provider.definition(&ToolDefinition { name, ..*tool }))
        };
        let definitions: Vec<_> = tools.iter().filter_map(|tool| definition(tool).ok()).collect();
        print_json(&definitions)?;
        if let Some(profile) = builtin(if provider == Provider::Anthropic { "anthropic" } else { "openai" }) {
            warn_of_refused(profile, &definitions);
        }
        Ok(())
    }
}

/// Warns of the definitions that the provider refuses.
fn warn_of_refused(profile: &Profile, definitions: &[Box<RawValue>]) {
    let of_mcp = |definition: &RawValue| {
        let tool: Value = serde_json::from_str(definition.get()).unwrap_or_default();
        let mut tool = tool.get("function").cloned().unwrap_or(tool);
        let schema = ["input_schema", "parameters"].into_iter().find_map(|key| tool.get_mut(key).map(Value::take));
        tool["inputSchema"] = schema.unwrap_or_default();
        tool
    };
    let findings = tool_findings(profile, None, definitions.iter().map(|it| of_mcp(it)).collect());
    let refused: Vec<_> = findings.iter().filter(|finding| finding.level == RuleLevel::Blocks).collect();
    for finding in refused.iter().take(WARNINGS) {
        style::warn(&finding.sentence());
    }
    if let more @ 1.. = refused.len().saturating_sub(WARNINGS) {
        style::warn(&format!("and {more} more; `rehearse check --profile {} --verbose` shows all", profile.name));
    }
}

/// Prints a mock script that offers the tools.
fn print_script(registry: &Registry) -> Result<(), Failure> {
    let tools = registry.tools().iter().filter_map(|tool| {
        let definition: Value = serde_json::from_str(tool.definition.get()).ok()?;
        let mut item = recording::tool_item(&definition).as_object().cloned()?;
        item.insert("reply".to_owned(), "TODO".into());
        Some(Value::from(item))
    });
    let script = Map::from_iter([("tools".to_owned(), tools.collect())]);
    print::print(&text_of(&yaml::to_text(&script)))
}

/// The options of the XML format.
pub(crate) fn options(max_calls: Option<NonZeroUsize>) -> Options {
    let usual = Options::default();
    Options { max_calls_per_message: max_calls.map_or(usual.max_calls_per_message, NonZeroUsize::get), ..usual }
}
