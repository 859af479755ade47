//! `rehearse mcp call-tool`: one tool call, or those in a model's message.

use std::sync::Arc;

use super::{
    arguments::Arguments,
    call_tool_args::CallToolArgs,
    error::CommandError,
    list_tools::name_of,
    model_message,
    print::print_json,
    session::{HubSession, run_with_user},
    target::Select,
    tool_call::ToolCall,
};
use crate::cli::{Exit, Failure, terminal_user::TerminalUser, usage_hint::wrong_arguments};
use rehearse_client as client;
use rehearse_document::nearest;
use rehearse_hub::{Discovery, RegisteredTool};

/// The tool to call.
pub(super) enum ResolvedTool {
    Registered(Arc<RegisteredTool>),
    /// The original name of a tool that its server does not list.
    Unlisted {
        server: Arc<str>,
        tool: String,
    },
}

pub(super) fn run(args: &CallToolArgs) -> Result<Exit, Failure> {
    if let Some(path) = &args.xml {
        return model_message::run(args, path);
    }
    if let Some(problem) = args.common.target.unquoted(&args.words) {
        return Err(Failure::Usage(problem));
    }
    let (tool, words) = match (&args.tool, args.words.split_first()) {
        (Some(tool), _) => (tool, &args.words[..]),
        (None, Some((tool, words))) if !tool.contains('=') && !tool.starts_with('{') => (tool, words),
        (None, _) => {
            return Err(Failure::Usage(
                "--tool is required, or the name of the tool before its arguments, as `rehearse mcp list-tools` shows it"
                    .to_owned(),
            ));
        }
    };
    let arguments =
        Arguments::read(args.args.as_deref(), words).map_err(|wrong| Failure::Usage(wrong_arguments(wrong, words)))?;
    let servers = args.common.servers(Select::from_name(args.content.server.as_deref()))?;
    run_with_user(
        TerminalUser::detect(),
        &args.common,
        &servers,
        |options| {
            args.policy.apply(options);
            args.calls.apply(options);
        },
        async |hub_session| {
            let found = match args.calls.needs_all() {
                true => hub_session.discover().await?,
                false => hub_session.discover_for(tool).await?,
            };
            let level = args.log_level.as_deref();
            let mut called = match resolve_tool(hub_session, &found, tool)? {
                ResolvedTool::Registered(tool) => {
                    let arguments = arguments.typed(Some(&tool.input_schema)).map_err(Failure::Usage)?;
                    ToolCall::send_with_log(hub_session, &tool, arguments, level).await?
                }
                ResolvedTool::Unlisted { server, tool } => {
                    let arguments = arguments.typed(None).map_err(Failure::Usage)?;
                    ToolCall::send(hub_session, server, tool, arguments, level).await?
                }
            };
            called.show(hub_session, args, 0).await?;
            if args.is_json_output() {
                print_json(&called.report(hub_session, args.form))?;
            }
            Ok(called.exit())
        },
    )
}

/// Finds a tool by its registered name, its alias or its original name. With a single server, an unknown name is sent to
/// that server.
pub(super) fn resolve_tool(
    hub_session: &HubSession,
    found: &Discovery,
    name: &str,
) -> Result<ResolvedTool, CommandError> {
    let resolved = |tool: &Arc<RegisteredTool>| ResolvedTool::Registered(tool.clone());
    let aliases = found.registry.aliases();
    if let Some(tool) = found.registry.get(name).or_else(|| found.registry.get(aliases.name(name)?)) {
        return Ok(resolved(tool));
    }
    let same: Vec<_> = found.registry.tools().iter().filter(|tool| tool.original == name).collect();
    let usage = |text: String| CommandError::Failure(Failure::Usage(text));
    match &same[..] {
        [tool] => return Ok(resolved(tool)),
        [] => {}
        several => {
            let names: Vec<_> = several.iter().map(|tool| &*tool.server).collect();
            return Err(usage(format!(
                "several servers have a tool {name:?}; select one with --server: {}",
                names.join(", ")
            )));
        }
    }
    for server in &hub_session.names {
        let member = hub_session.hub.server(server).map_err(CommandError::from)?;
        let listed = hub_session.hub.tool_definitions(server).map_err(CommandError::from)?;
        let is_listed = listed.iter().any(|definition| name_of(definition).as_deref() == Some(name));
        if is_listed && !member.filter.offers(member.policy, name) {
            return Err(usage(format!("the filter of server '{server}' excludes the tool {name:?}")));
        }
    }
    let tools = found.registry.tools();
    let names: Vec<&str> =
        tools.iter().map(|tool| &*tool.original).chain(tools.iter().map(|tool| &*tool.name)).collect();
    let near = nearest(name, &names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    // A server that has just let the list wait gets no second chance to do so.
    let is_overdue = found.incomplete.iter().any(|(_, failure)| matches!(failure, client::Failure::Timeout(_)));
    match &hub_session.names[..] {
        [server] if !is_overdue => {
            if found.incomplete.is_empty() {
                hub_session.note(&format!("server '{server}' lists no tool {name:?}{near}"));
            }
            hub_session.warn_incomplete(found);
            Ok(ResolvedTool::Unlisted { server: server.clone(), tool: name.to_owned() })
        }
        _ if !found.incomplete.is_empty() => {
            hub_session.report_incomplete(found)?;
            Err(CommandError::Listing(format!("no server that lists its tools has a tool {name:?}{near}")))
        }
        _ if !found.unreachable.is_empty() => {
            Err(Failure::cannot(format!("no reachable server has a tool {name:?}{near}")).into())
        }
        _ => Err(usage(format!("no server has a tool {name:?}{near}"))),
    }
}
