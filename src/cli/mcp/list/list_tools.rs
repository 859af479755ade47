//! `rehearse mcp list-tools`: the tools of servers, including filtered ones.

use std::{collections::HashSet, num::NonZeroUsize, sync::Arc};

use serde::Serialize;
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr;

use super::{
    cost::{self, Cost},
    tool_format::{self, ToolFormat},
};
use crate::cli::{
    Exit, Failure, Format,
    mcp::{
        args::CommonArgs,
        error::{CommandError, FailureReport},
        print::{
            indented, print, print_json,
            prose::{OVERVIEW_WIDTH, first_sentence, plain, wrap},
            text_of,
        },
        session::{HubSession, run_with_user},
        target::{Select, Server, connection::PolicyArgs},
    },
    style::{DIM, STRONG, printable},
};
use rehearse_client as client;
use rehearse_client_configs::server::{At, ToolFilter};
use rehearse_hub::{Effect, HubError, RegisteredTool, Registry};
use rehearse_llm::tokens::Encoding;

/// The maximum width of the column of names.
const NAME_WIDTH: usize = 24;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp list-tools                              the tools of all servers
  rehearse mcp list-tools files --long                 with whole descriptions and schemas
  rehearse mcp list-tools files --show-all             including filtered tools
  rehearse mcp list-tools --format json -- npx -y mcp-files
  rehearse mcp list-tools --cost                       what each tool costs a model
  rehearse mcp list-tools --for anthropic              as `tools` of a model request
  rehearse mcp ls-tools --naming mcp_server_tool --duplicates qualify";

/// List the tools of one or all servers
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListToolsArgs {
    /// The server [default: all enabled servers]
    server: Option<String>,
    /// Include the tools that the config filters out
    #[arg(long)]
    show_all: bool,
    /// List only the tools that the config filters out
    #[arg(long)]
    show_filtered: bool,
    /// Show whole descriptions and schemas [default for servers of CPE]
    #[arg(long)]
    long: bool,
    /// Group the tools by what they may do: only read, add, or delete and overwrite
    #[arg(long, hide_short_help = true, conflicts_with_all = ["long", "format", "json", "tool_format"])]
    by_effect: bool,
    /// Show what each tool costs a model, in bytes and tokens
    #[arg(long, conflicts_with_all = ["long", "by_effect", "tool_format"])]
    cost: bool,
    /// Print the tool definitions for a model API (anthropic, openai, openai-responses or xml) or as a mock script (script)
    #[arg(long = "for", value_name = "API", value_enum, hide_possible_values = true, conflicts_with_all = ["show_all", "show_filtered", "long", "format", "json"])]
    tool_format: Option<ToolFormat>,
    /// With --for xml: the maximum number of calls in a message [default: 1]
    #[arg(long, hide_short_help = true, value_name = "NUMBER", requires = "tool_format")]
    max_calls: Option<NonZeroUsize>,
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

#[derive(Clone, Copy, PartialEq)]
enum ToolSelection {
    Offered,
    All,
    Filtered,
}

/// A tool of a list.
struct Tool {
    name: String,
    is_filtered: bool,
    registered: Option<Arc<RegisteredTool>>,
    definition: Box<RawValue>,
}

/// The tools of one server.
struct Tools<'a> {
    server: &'a Server,
    all: Vec<Tool>,
    /// The number of definitions, including invalid ones.
    total: usize,
    /// Why the list may be incomplete.
    failure: Option<client::Failure>,
}

pub(crate) fn run(args: &ListToolsArgs) -> Result<Exit, Failure> {
    let servers = args.common.servers(Select::from_name(args.server.as_deref()))?;
    let is_json = args.common.format() == Format::Json;
    if servers.is_empty() && is_json {
        print_json(&Report { cost: None, servers: Vec::new(), unreachable: Vec::new() })?;
    }
    let encoding = args.cost.then(cost::encoding).transpose()?;
    let which = match (args.show_all, args.show_filtered) {
        (true, _) => ToolSelection::All,
        (false, true) => ToolSelection::Filtered,
        (false, false) => ToolSelection::Offered,
    };
    run_with_user(
        None,
        &args.common,
        &servers,
        |options| args.policy.apply(options),
        async |hub_session| {
            let (found, outcome) = match is_json {
                true => hub_session.discover_reachable().await?,
                false => (hub_session.discover().await?, Ok(())),
            };
            hub_session.print_notices(&found.registry.notices);
            let incomplete = hub_session.report_incomplete(&found);
            let failed: HashSet<_> = found.unreachable.iter().map(|(server, _)| &**server).collect();
            let mut lists = Vec::new();
            let is_listed = |server: &&Server| outcome.is_ok() && !failed.contains(server.name());
            for server in servers.iter().filter(is_listed) {
                let failure = found
                    .incomplete
                    .iter()
                    .find(|(name, _)| **name == *server.name())
                    .map(|(_, failure)| failure.clone());
                lists.push(Tools::new(hub_session, server, &found.registry, failure).map_err(CommandError::from)?);
            }
            let is_incomplete = lists.iter().any(|list| list.failure.is_some());
            if let Some(format) = args.tool_format {
                format.print(&found.registry, &tool_format::options(args.max_calls))?;
            } else if is_json {
                let servers: Vec<_> = lists.iter().map(|list| list.report(hub_session, which, encoding)).collect();
                let unreachable = found
                    .unreachable
                    .iter()
                    .map(|(server, error)| Unreachable { server, error: hub_session.hidden(&error.to_string()) });
                let cost = encoding.map(|encoding| cost::total(servers.iter().filter_map(|it| it.cost), encoding));
                print_json(&Report { cost, servers, unreachable: unreachable.collect() })?;
            } else if let Some(encoding) = encoding {
                let tools = lists.iter().flat_map(|list| list.shown(which));
                let tools = tools.filter_map(|tool| tool.registered.as_deref());
                print(&cost::table(tools.map(|tool| (tool, cost::of(tool, encoding))).collect(), encoding))?;
            } else {
                // The error replaces an empty list.
                let known = lists.iter().filter(|list| list.failure.is_none() || list.total > 0);
                let is_long = args.long || servers.iter().any(Server::is_of_cpe);
                let text = |list: &Tools<'_>| match is_long && !args.by_effect {
                    true => list.human(which),
                    false => list.overview(which, args.by_effect),
                };
                print(&known.map(text).collect::<Vec<_>>().join("\n"))?;
            }
            outcome?;
            incomplete?;
            Ok(if is_incomplete { Exit::Violation } else { Exit::Success })
        },
    )
}

/// The unfiltered tools of a server as Markdown.
///
/// # Errors
/// The server is unknown.
pub(crate) fn offered_tools(
    hub_session: &HubSession,
    server: &Server,
    registry: &Registry,
) -> Result<String, HubError> {
    Ok(Tools::new(hub_session, server, registry, None)?.human(ToolSelection::Offered))
}

fn tools(listed: &[Box<RawValue>], server: &Server, registry: &Registry) -> Vec<Tool> {
    let mut registered: Vec<_> = registry.server_tools(server.name()).cloned().collect();
    let mut tool = |definition: &RawValue| {
        let name = name_of(definition)?;
        let is_filtered = !server.written.tools.offers(server.policy, &name);
        let is_this = |tool: &Arc<RegisteredTool>| tool.original == name && tool.definition.get() == definition.get();
        // Identical definitions match different registered tools.
        let registered = registered.iter().position(is_this).map(|index| registered.remove(index));
        Some(Tool { name, is_filtered, registered, definition: definition.to_owned() })
    };
    listed.iter().filter_map(|definition| tool(definition)).collect()
}

/// The name in a definition; `None` if it has none, which is a notice of the registry.
pub(crate) fn name_of(definition: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Named>(definition.get()).ok().map(|named| named.name)
}

/// The numbers of tools of a server. Unusable tools have an invalid definition or a duplicate name.
struct Counts {
    total: usize,
    available: usize,
    filtered_out: usize,
    unusable: usize,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    servers: Vec<ServerReport<'a>>,
    unreachable: Vec<Unreachable<'a>>,
}

#[derive(Serialize)]
struct Unreachable<'a> {
    server: &'a str,
    error: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerReport<'a> {
    server: &'a str,
    filter_mode: &'static str,
    total: usize,
    available: usize,
    filtered_out: usize,
    unusable: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    tools: Vec<ToolReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureReport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolReport<'a> {
    /// The name at its server.
    name: &'a str,
    /// The name for a model; `null` if the tool cannot be called.
    registered_as: Option<&'a str>,
    filtered: bool,
    /// What executes it.
    r#type: &'static str,
    /// Whether the config allows calls without asking.
    always_allow: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'static str>,
    /// What it costs a model, if it can be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    definition: &'a RawValue,
}

impl<'a> Tools<'a> {
    /// # Errors
    /// The server is unknown.
    fn new(
        hub_session: &HubSession,
        server: &'a Server,
        registry: &Registry,
        failure: Option<client::Failure>,
    ) -> Result<Tools<'a>, HubError> {
        let listed = hub_session.hub.tool_definitions(server.name())?;
        Ok(Tools { server, all: tools(&listed, server, registry), total: listed.len(), failure })
    }

    fn shown(&self, which: ToolSelection) -> impl Iterator<Item = &Tool> {
        self.all.iter().filter(move |tool| match which {
            ToolSelection::Offered => !tool.is_filtered,
            ToolSelection::All => true,
            ToolSelection::Filtered => tool.is_filtered,
        })
    }

    fn counts(&self) -> Counts {
        let filtered_out = self.all.iter().filter(|tool| tool.is_filtered).count();
        let available = self.all.iter().filter(|tool| !tool.is_filtered && tool.registered.is_some()).count();
        Counts { total: self.total, available, filtered_out, unusable: self.total - filtered_out - available }
    }

    fn report(&self, hub_session: &HubSession, which: ToolSelection, encoding: Option<Encoding>) -> ServerReport<'_> {
        let Counts { total, available, filtered_out, unusable } = self.counts();
        let tools: Vec<_> = self.shown(which).map(|tool| tool.report(self.server, encoding)).collect();
        ServerReport {
            server: self.server.name(),
            filter_mode: mode(&self.server.written.tools),
            total,
            available,
            filtered_out,
            unusable,
            cost: encoding.map(|encoding| cost::total(tools.iter().filter_map(|tool| tool.cost), encoding)),
            tools,
            failure: self.failure.as_ref().map(|failure| hub_session.failure_json(failure)),
        }
    }

    /// One line for each tool, if wanted in groups by what the tools may do.
    fn overview(&self, which: ToolSelection, has_groups: bool) -> String {
        let Counts { total, filtered_out, unusable, .. } = self.counts();
        let tools = if total == 1 { "tool" } else { "tools" };
        let mut text = format!("{STRONG}{}{STRONG:#}: {total} {tools}", printable(self.server.name()));
        for (count, what) in [(filtered_out, "filtered out"), (unusable, "not callable")] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        text.push('\n');
        let width = self.shown(which).map(|tool| tool.called().width()).filter(|width| *width <= NAME_WIDTH).max();
        let indent = width.unwrap_or_default() + 4;
        if self.shown(which).next().is_none() {
            text.push_str("  no tools\n");
        }
        let (mut shown, mut group): (Vec<_>, _) = (self.shown(which).collect(), None);
        if has_groups {
            shown.sort_by_key(|tool| tool.effect());
        }
        for tool in shown {
            if has_groups && group.replace(tool.effect()) != Some(tool.effect()) {
                let heading = match tool.effect() {
                    Effect::ReadOnly => "only read",
                    Effect::Additive => "add, and delete nothing",
                    Effect::Destructive => "may delete or overwrite",
                    Effect::Unknown => "the server does not say what they do",
                };
                text.push_str(&format!(" {DIM}{heading}:{DIM:#}\n"));
            }
            let name = tool.called();
            text.push_str(&format!("  {STRONG}{}{STRONG:#}", printable(name)));
            let mut column = 2 + name.width();
            for line in wrap(&tool.summary(), OVERVIEW_WIDTH - indent).iter().filter(|line| !line.is_empty()) {
                if column + 2 > indent {
                    text.push('\n');
                    column = 0;
                }
                text.push_str(&format!("{}{line}", " ".repeat(indent - column)));
                column = OVERVIEW_WIDTH;
            }
            text.push('\n');
        }
        text
    }

    /// The Markdown of cpe.
    fn human(&self, which: ToolSelection) -> String {
        let server = printable(self.server.name());
        let title = match which {
            ToolSelection::Offered => format!("Available tools on server '{server}'"),
            ToolSelection::All => format!("All tools on server '{server}' (including filtered)"),
            ToolSelection::Filtered => format!("Filtered-out tools on server '{server}'"),
        };
        let filter = &self.server.written.tools;
        let Counts { total, available, filtered_out, unusable } = self.counts();
        let mut text = format!("{STRONG}# {title}{STRONG:#}\n\n**Filter mode:** `{}`", mode(filter));
        for (what, names) in [("Enabled", &filter.include), ("Disabled", &filter.exclude)] {
            if let Some(At { value: names, .. }) = names {
                let names: Vec<_> = names.iter().map(|name| format!("`{}`", printable(&name.value))).collect();
                text.push_str(&format!(" | **{what} tools:** {}", names.join(", ")));
            }
        }
        text.push_str(&format!(
            "\n**Total tools:** {total} | **Available:** {available} | **Filtered out:** {filtered_out}"
        ));
        if unusable > 0 {
            text.push_str(&format!(" | **Not callable:** {unusable}"));
        }
        text.push_str("\n\n");
        let before = text.len();
        for tool in self.shown(which) {
            text.push_str(&tool.human(which == ToolSelection::All));
        }
        if text.len() == before {
            text.push_str("*No tools to display.*\n");
        }
        text
    }
}

impl Tool {
    /// The name for calls.
    fn called(&self) -> &str {
        self.registered.as_ref().map_or(&self.name, |tool| &tool.name)
    }

    /// The first sentence of the description, and what is special about the tool.
    fn summary(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Described {
            description: Option<String>,
        }
        let described = serde_json::from_str::<Described>(self.definition.get()).ok();
        let sentence = first_sentence(&plain(&described.and_then(|it| it.description).unwrap_or_default()));
        let note = match self.registered {
            _ if self.is_filtered => " (filtered)",
            None => " (not callable by a name of its own)",
            Some(_) => "",
        };
        printable(&format!("{sentence}{note}")).into_owned()
    }

    /// What the tool may do; unknown if it cannot be called.
    fn effect(&self) -> Effect {
        self.registered.as_ref().map_or(Effect::Unknown, |tool| tool.annotations.effect())
    }

    fn report(&self, server: &Server, encoding: Option<Encoding>) -> ToolReport<'_> {
        let approval = &server.written.approval;
        let is_trusted = approval.trust.as_ref().is_some_and(|trust| trust.value);
        ToolReport {
            name: &self.name,
            registered_as: self.registered.as_ref().map(|tool| &*tool.name),
            filtered: self.is_filtered,
            r#type: "mcp",
            always_allow: is_trusted || approval.always_allow.iter().any(|tool| tool.value == self.name),
            effect: Some(self.effect().as_str()).filter(|_| self.registered.is_some()),
            cost: encoding.and_then(|encoding| Some(cost::of(self.registered.as_deref()?, encoding))),
            definition: &self.definition,
        }
    }

    fn human(&self, has_badge: bool) -> String {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Definition {
            description: Option<String>,
            input_schema: Option<Box<RawValue>>,
            output_schema: Option<Box<RawValue>>,
        }
        let badge = if has_badge && self.is_filtered { " 🚫 *filtered*" } else { "" };
        let mut text = format!("{STRONG}### `{}`{STRONG:#}{badge}\n", printable(&self.name));
        let Ok(shown) = serde_json::from_str::<Definition>(self.definition.get()) else {
            return text + &text_of(self.definition.get()) + "\n";
        };
        if let Some(description) = &shown.description {
            text.push_str(&text_of(&plain(description)));
        }
        if let Some(other) = self.registered.as_ref().filter(|tool| tool.name != self.name) {
            text.push_str(&format!("\n**Called:** `{}`\n", printable(&other.name)));
        } else if self.registered.is_none() && !self.is_filtered {
            text.push_str(&format!("\n{DIM}*Not callable by a name of its own: see the warnings.*{DIM:#}\n"));
        }
        for (title, schema) in [("Input", &shown.input_schema), ("Output", &shown.output_schema)] {
            if let Some(schema) = schema {
                text.push_str(&format!("\n**{title} Schema:**\n\n```json\n{}\n```\n", indented(schema)));
            }
        }
        text + "\n"
    }
}

fn mode(filter: &ToolFilter) -> &'static str {
    match (&filter.include, &filter.exclude) {
        (None, None) => "all",
        (Some(_), None) => "whitelist",
        (None, Some(_)) => "blacklist",
        (Some(_), Some(_)) => "whitelist and blacklist",
    }
}
