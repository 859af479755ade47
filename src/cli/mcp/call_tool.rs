//! `rehearse mcp call-tool`: one call of a tool, or those that a model asks for.

use std::{num::NonZeroUsize, path::PathBuf, sync::Arc};

use serde_json::value::RawValue;

use super::{
    arguments::Arguments,
    called::Called,
    common::{CommonArgs, ContentArgs},
    connection::PolicyArgs,
    content::print_json,
    hearing::LEVELS,
    list_tools::name_of,
    requests,
    target::Select,
    trouble::Trouble,
    visit::{Visit, visit_with},
};
use crate::{
    cli::{
        Exit, Failure, Format,
        ask::{Approve, Person},
    },
    client::{
        hub::{Discovery, RegisteredTool},
        projection::Projection,
    },
    config::nearest,
};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp call-tool --server files --tool read --args '{\"path\": \"README.md\"}'
  rehearse mcp call-tool read path=README.md lines=5    typed by the tool's schema
  rehearse mcp call-tool search tags=a tags=b limit:=null query=@query.txt
  rehearse mcp call-tool --http http://127.0.0.1:8888/mcp echo @args.json
  rehearse mcp call-tool draw what=cat --output pictures/
  rehearse mcp call-tool read path=README.md --as cpe    as cpe hands it to its model
  rehearse mcp call-tool book_table city=Paris --answer answers.yaml
  rehearse mcp call-tool --xml message.txt              what a model wrote that knows `list-tools --for xml`

Arguments: name=value is what the schema wants it to be, name:=JSON is JSON, name=@FILE is the text of a file; {…}, @FILE \
and - (standard input) are a JSON object with several. What is given later goes before what is given earlier.";

/// The arguments that say which one call to make.
const SINGLE: &[&str] = &["words", "tool", "args"];

/// Call a tool, and print what it returns
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("server", |it| it.help("The server of the tool; not needed if only one has it")))]
pub(super) struct CallToolArgs {
    /// The tool, unless --tool names it, then its arguments
    #[arg(value_name = "TOOL | NAME=VALUE", allow_hyphen_values = false)]
    words: Vec<String>,
    #[command(flatten)]
    pub(super) content: ContentArgs,
    /// The tool, by its own name or by the one that a model calls it by
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The arguments as a JSON object, or @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Print what another program hands to its model: canonical, cpe, code_agent, mcpilot or engine
    #[arg(long = "as", value_name = "FORM", conflicts_with_all = ["format", "json", "output"])]
    pub(super) form: Option<Projection>,
    /// Call what a model asks for in this message of text, which is a file or -
    #[arg(long, value_name = "FILE", conflicts_with_all = SINGLE)]
    xml: Option<PathBuf>,
    /// With --xml: how many calls the message may have [default: 1]
    #[arg(long, value_name = "NUMBER", requires = "xml", conflicts_with_all = SINGLE)]
    pub(super) max_calls: Option<NonZeroUsize>,
    /// With --xml: who allows calls that the config does not
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Approve::Always, requires = "xml", conflicts_with_all = SINGLE)]
    pub(super) approve: Approve,
    /// Ask for log messages as bad as this or worse, from debug to emergency; those that come are shown anyway
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS, conflicts_with = "xml")]
    pub(super) log_level: Option<String>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
}

/// The tool that is meant.
struct Meant {
    server: Arc<str>,
    /// The name that the server knows.
    tool: String,
    schema: Option<Box<RawValue>>,
}

pub(super) fn run(args: &CallToolArgs) -> Result<Exit, Failure> {
    if let Some(path) = &args.xml {
        return requests::run(args, path);
    }
    let (tool, words) = match (&args.tool, args.words.split_first()) {
        (Some(tool), _) => (tool, &args.words[..]),
        (None, Some((tool, words))) if !tool.contains('=') && !tool.starts_with('{') => (tool, words),
        // The first words of cpe.
        (None, _) => {
            return Err(Failure::Usage(
                "--tool is required, or the name of the tool before its arguments, as `rehearse mcp list-tools` shows it"
                    .to_owned(),
            ));
        }
    };
    let arguments = Arguments::read(args.args.as_deref(), words).map_err(Failure::Usage)?;
    let servers = args.common.servers(Select::of(args.content.server.as_deref()))?;
    visit_with(
        Person::at_terminal(),
        &args.common,
        &servers,
        |options| args.policy.apply(options),
        async |visit| {
            let found = visit.discover_for(tool).await?;
            let meant = meant(visit, &found, tool)?;
            let arguments = arguments.typed(meant.schema.as_deref()).map_err(Failure::Usage)?;
            let mut called =
                Called::make(visit, meant.server, meant.tool, arguments, args.log_level.as_deref()).await?;
            called.show(visit, args, 0).await?;
            if args.is_for_programs() {
                print_json(&called.report(visit, args.form))?;
            }
            Ok(called.exit())
        },
    )
}

impl CallToolArgs {
    /// Whether results are printed as JSON.
    pub(super) fn is_for_programs(&self) -> bool {
        self.form.is_some() || self.common.format() == Format::Json
    }
}

/// Finds the tool of a name: one that is registered under it or its alias, else one that its server knows by it. Of one server, any
/// name goes: it is for the server to say that there is no such tool.
fn meant(visit: &Visit, found: &Discovery, name: &str) -> Result<Meant, Trouble> {
    let of = |tool: &RegisteredTool| Meant {
        server: tool.server.clone(),
        tool: tool.original.clone(),
        schema: Some(tool.input_schema.clone()),
    };
    let aliases = found.registry.aliases();
    if let Some(tool) = found.registry.get(name).or_else(|| found.registry.get(aliases.name(name)?)) {
        return Ok(of(tool));
    }
    let same: Vec<_> = found.registry.tools().iter().filter(|tool| tool.original == name).collect();
    let usage = |text: String| Trouble::Failure(Failure::Usage(text));
    match &same[..] {
        [tool] => return Ok(of(tool)),
        [] => {}
        several => {
            let names: Vec<_> = several.iter().map(|tool| &*tool.server).collect();
            return Err(usage(format!(
                "several servers have a tool {name:?}; say which with --server: {}",
                names.join(", ")
            )));
        }
    }
    for server in &visit.names {
        let member = visit.hub.member(server).map_err(super::trouble::trouble)?;
        let listed = visit.hub.listed(server).map_err(super::trouble::trouble)?;
        let is_listed = listed.iter().any(|definition| name_of(definition).as_deref() == Some(name));
        if is_listed && !member.filter.offers(member.policy, name) {
            return Err(usage(format!("the filter of server '{server}' leaves out the tool {name:?}")));
        }
    }
    let tools = found.registry.tools();
    let names: Vec<&str> =
        tools.iter().map(|tool| &*tool.original).chain(tools.iter().map(|tool| &*tool.name)).collect();
    let near = nearest(name, &names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    match &visit.names[..] {
        [server] if !found.unlisted.is_empty() => {
            visit.warn_unlisted(found);
            Ok(Meant { server: server.clone(), tool: name.to_owned(), schema: None })
        }
        [server] => {
            visit.note(&format!("server '{server}' lists no tool {name:?}{near}"));
            Ok(Meant { server: server.clone(), tool: name.to_owned(), schema: None })
        }
        _ if !found.unlisted.is_empty() => {
            visit.tell_unlisted(found)?;
            Err(Trouble::Unlisted(format!("no server that lists its tools has a tool {name:?}{near}")))
        }
        _ if !found.unreachable.is_empty() => {
            Err(Failure::cannot(format!("no server that can be reached has a tool {name:?}{near}")).into())
        }
        _ => Err(usage(format!("no server has a tool {name:?}{near}"))),
    }
}
