//! `rehearse mcp app`: calls a tool, and shows the page of its app (SEP-1865) with the result.

mod host;
mod page;
mod screenshot;

use std::path::PathBuf;

use serde_json::{Value, json};

use self::{
    host::AppHost,
    page::{AppPage, PURPOSES, page_uri},
};
use super::{
    args::CommonArgs,
    arguments::Arguments,
    call::{
        call_tool::resolve_tool,
        tool_call::{ResolvedTool, ToolCall},
    },
    error::{CommandError, exit_of},
    print::{print, print_json},
    session::{HubSession, run_with_user},
    target::{Select, connection::PolicyArgs},
};
use crate::cli::{
    Exit, Failure, Format,
    style::{STRONG, printable},
    terminal_user::TerminalUser,
};
use rehearse_protocol::names::{APP_MIME, APPS_EXTENSION};
use rehearse_system::program::open_url;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp app show_map place=Oslo -- node server.js         what the page is and asks for
  rehearse mcp app show_map place=Oslo --open -- node server.js  the page in your browser
  REHEARSE_CHROMIUM=chromium rehearse mcp app show_map place=Oslo --screenshot map.png -- node server.js

Arguments are those of call-tool. The page is in a sandboxed frame of a page on 127.0.0.1, with the content security \
policy that it declares.";

/// Call a tool, and show the page of its app
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AppArgs {
    /// The tool, and its arguments
    #[arg(value_name = "TOOL | NAME=VALUE", required = true)]
    words: Vec<String>,
    /// The server of the tool; optional if only one has it
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Show the page in your browser, until you close it
    #[arg(long, conflicts_with = "screenshot")]
    open: bool,
    /// Save a picture of the page, made by the program in REHEARSE_CHROMIUM
    #[arg(long, value_name = "FILE")]
    screenshot: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(crate) fn run(args: &AppArgs) -> Result<Exit, Failure> {
    if let Some(problem) = args.common.target.unquoted(&args.words) {
        return Err(Failure::Usage(problem));
    }
    let Some((tool, words)) = args.words.split_first() else {
        return Err(Failure::Usage("the name of a tool is required".to_owned()));
    };
    let arguments = Arguments::read(None, words)?;
    let chromium = args.screenshot.as_ref().map(|_| screenshot::chromium()).transpose()?;
    let mut servers = args.common.servers(Select::from_name(args.server.as_deref()))?;
    for server in &mut servers {
        // Servers may hide apps from clients that do not show them (Server Behavior).
        let settings = json!({ "mimeTypes": [APP_MIME] });
        server.resolved.config.extensions.insert(APPS_EXTENSION.to_owned(), settings);
    }
    run_with_user(
        TerminalUser::detect(),
        &args.common,
        &servers,
        |options| args.policy.apply(options),
        async |hub_session| {
            let found = hub_session.discover_for(tool).await?;
            let ResolvedTool::Registered(tool) = resolve_tool(hub_session, &found, tool)? else {
                return Err(Failure::Usage(format!("no server lists a tool {tool:?}")).into());
            };
            let Some(uri) = page_uri(&tool.definition) else {
                let why = format!("the tool {:?} has no app: `_meta.ui.resourceUri` names no page", tool.original);
                return Err(Failure::Usage(why).into());
            };
            let arguments = arguments.typed(Some(&tool.input_schema))?;
            let called = ToolCall::send_with_log(hub_session, &tool, arguments.clone(), None).await?;
            let Some(result) = called.raw(hub_session) else { return Ok(called.exit()) };
            let read = async |session: &rehearse_client::Session, options| session.read_resource(&uri, options).await;
            let page = match hub_session.request(&tool.server, read).await? {
                Ok(page) => AppPage::parse(&uri, &page).map_err(Failure::cannot)?,
                Err(failure) => {
                    hub_session.print_failure(&failure);
                    return Ok(exit_of(&failure));
                }
            };
            let definition: Value = serde_json::from_str(tool.definition.get()).unwrap_or_default();
            let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
            let mut report = page.report();
            if args.common.format() == Format::Human {
                print(&summary(&page, &definition["_meta"]["ui"]))?;
            }
            if args.open || chromium.is_some() {
                let host = AppHost::start(&page, &definition, &arguments.into(), &result).await;
                let host = host.map_err(|error| Failure::cannot(format!("cannot serve the page: {error}")))?;
                let shown = show(hub_session, args, &host, &page, chromium.as_deref()).await;
                let notes = host.notes();
                host.stop().await;
                shown?;
                report["page"] = json!(notes);
                for (note, times) in notes.iter().filter(|_| args.common.format() == Format::Human) {
                    let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
                    print(&format!("  the page: {}{times}\n", printable(note)))?;
                }
            }
            if args.common.format() == Format::Json {
                report["result"] = result;
                print_json(&report)?;
            }
            Ok(called.exit())
        },
    )
}

/// Shows the page, as long as the user wants or until there is a picture.
async fn show(
    hub_session: &HubSession,
    args: &AppArgs,
    host: &AppHost,
    page: &AppPage,
    chromium: Option<&[String]>,
) -> Result<(), CommandError> {
    if let (Some(file), Some(chromium)) = (&args.screenshot, chromium) {
        tokio::select! {
            saved = screenshot::save(chromium, host, page, file) => saved?,
            () = hub_session.interrupted() => return Ok(()),
        }
        hub_session.note(&format!("saved {}", file.display()));
        return Ok(());
    }
    if let Err(error) = open_url(&host.url) {
        hub_session.warn(&format!("no browser can be opened: {error}"));
    }
    hub_session.note(&format!("the page is at {} until you close it", host.url));
    hub_session.note("your browser may let a page reach any host by WebRTC and `preconnect`, which no policy stops");
    tokio::select! {
        () = host.closed() => {}
        () = hub_session.interrupted() => {}
    }
    Ok(())
}

/// What a page is, and what it asks for.
fn summary(page: &AppPage, tool: &Value) -> String {
    let mut lines = vec![format!(
        "{STRONG}{}{STRONG:#}  {}, {} bytes",
        printable(&page.uri),
        printable(&page.mime_type),
        page.html.len()
    )];
    let allowed = PURPOSES.iter().map(|(purpose, key)| (purpose, page.origins(key)));
    let allowed = allowed.filter(|(_, origins)| !origins.is_empty());
    let allowed: Vec<_> = allowed.map(|(purpose, origins)| format!("{purpose} {}", origins.join(" "))).collect();
    let or = |texts: String, none: &str| if texts.is_empty() { none.to_owned() } else { texts };
    lines.push(format!("  loads: {}", printable(&or(allowed.join("; "), "nothing from elsewhere"))));
    lines.push(format!("  asks the browser for: {}", or(page.features(), "nothing")));
    if let Some(border) = page.ui["prefersBorder"].as_bool() {
        lines.push(format!("  prefers {} border", if border { "a" } else { "no" }));
    }
    let who: Vec<_> = tool["visibility"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !who.is_empty() {
        lines.push(format!("  the tool is for: {}", printable(&who.join(", "))));
    }
    lines.join("\n") + "\n"
}
