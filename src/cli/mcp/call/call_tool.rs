//! `rehearse mcp call-tool`: one tool call, or those in a model's message.

use std::sync::Arc;

use super::{
    call_tool_args::CallToolArgs,
    model_message,
    tool_call::{ResolvedTool, ToolCall},
};
use crate::cli::{
    Exit, Failure,
    mcp::{
        error::CommandError,
        list::list_tools::name_of,
        session::{HubSession, run_with_user},
        target::Select,
    },
    terminal_user::TerminalUser,
};
use rehearse_client as client;
use rehearse_client_configs::policy::Naming;
use rehearse_document::nearest;
use rehearse_hub::{ConnectionState, Discovery, RegisteredTool, Registry, ServerStatus};

pub(crate) fn run(args: &CallToolArgs) -> Result<Exit, Failure> {
    if let Some(path) = &args.xml {
        return model_message::run(args, path);
    }
    if let Some(problem) = args.common.target.unquoted(&args.call.words) {
        return Err(Failure::Usage(problem));
    }
    let (tool, arguments) = (args.call.tool()?, args.call.arguments()?);
    let servers = args.common.servers(Select::from_name(args.call.server()))?;
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
            let tool = resolve_tool(hub_session, &found, tool)?;
            let called = ToolCall::begin(hub_session, tool, arguments, &args.call).await?;
            called.print(hub_session, &args.call, args.common.format()).await
        },
    )
}

/// The tool that the servers of the session have under this registered name, alias or original name.
///
/// # Errors
/// Several servers have it, or a filter excludes it.
pub(crate) fn find_tool(
    hub_session: &HubSession,
    registry: &Registry,
    name: &str,
) -> Result<Option<Arc<RegisteredTool>>, CommandError> {
    let own = match &hub_session.names[..] {
        [server] => registry.find(server, name),
        _ => None,
    };
    let is_of_session = |tool: &&Arc<RegisteredTool>| hub_session.names.contains(&tool.server);
    let alias = || registry.get(registry.aliases().name(name)?);
    if let Some(tool) = own.or_else(|| registry.get(name).or_else(alias).filter(is_of_session)) {
        return Ok(Some(tool.clone()));
    }
    let is_same = |tool: &&Arc<RegisteredTool>| tool.original == name && is_of_session(tool);
    match &registry.tools().iter().filter(is_same).collect::<Vec<_>>()[..] {
        [tool] => return Ok(Some(Arc::clone(tool))),
        [] => {}
        several => {
            let names: Vec<_> = several.iter().map(|tool| &*tool.server).collect();
            return Err(CommandError::usage(format!(
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
            return Err(CommandError::usage(format!("the filter of server '{server}' excludes the tool {name:?}")));
        }
    }
    Ok(None)
}

/// The tool that may be meant by an unknown name, as a part of a sentence.
fn near_tool(hub_session: &HubSession, registry: &Registry, name: &str) -> String {
    let tools = registry.tools().iter().filter(|tool| hub_session.names.contains(&tool.server));
    let names: Vec<&str> = tools.flat_map(|tool| [&*tool.original, &*tool.name]).collect();
    nearest(name, &names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}

/// Whether a name can be that of a tool of a server: its own name, or the one that the program makes of both.
fn may_name(naming: Naming, server: &str, name: &str) -> bool {
    match naming {
        Naming::Bare => true,
        Naming::Qualified(form) | Naming::Literal(form) => {
            let prefix = form.split('{').next().unwrap_or_default();
            prefix.is_empty() || !name.starts_with(prefix) || name.contains(server)
        }
    }
}

/// That no server of the session has the tool, as far as is known.
pub(crate) fn no_tool(hub_session: &HubSession, registry: &Registry, name: &str) -> CommandError {
    let near = near_tool(hub_session, registry, name);
    let is_away = |(server, status): &(Arc<str>, ServerStatus)| {
        let is_one = !matches!(status.state, ConnectionState::Connected | ConnectionState::Disabled);
        let may_be_its =
            || hub_session.hub.server(server).is_ok_and(|member| may_name(member.policy.naming, server, name));
        is_one && hub_session.names.contains(server) && may_be_its()
    };
    if let Some((server, ServerStatus { state, .. })) = hub_session.hub.status().into_iter().find(is_away) {
        let state = state.to_string().to_lowercase();
        let text =
            format!("{name:?} may be a tool of the server '{server}', whose connection is not open ({state}){near}");
        return Failure::cannot(text).into();
    }
    CommandError::usage(match &hub_session.names[..] {
        [server] => format!("server '{server}' has no tool {name:?}{near}"),
        _ => format!("no server has a tool {name:?}{near}"),
    })
}

/// As [`find_tool`]. With a single server, an unknown name is sent to that server.
///
/// # Errors
/// As there; or no server has the tool.
pub(crate) fn resolve_tool(
    hub_session: &HubSession,
    found: &Discovery,
    name: &str,
) -> Result<ResolvedTool, CommandError> {
    if let Some(tool) = find_tool(hub_session, &found.registry, name)? {
        return Ok(ResolvedTool::Registered(tool));
    }
    let near = near_tool(hub_session, &found.registry, name);
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
        _ => Err(no_tool(hub_session, &found.registry, name)),
    }
}
