//! The lists of a server: material for probes, and the base of comparisons.

use std::collections::HashSet;

use rehearse_conformance::{Evidence, LARGEST_LIST, Material, MirroredCall, MirroredParameter, MoreTools};
use rehearse_document::json_schema::accepts;
use rehearse_protocol::{List, Transport, names::PARAMETER_HEADER};
use rehearse_report::check::UncalledTool;
use serde_json::{Value, json};

use crate::{CheckOptions, connection::ProbeConnection, detection};

/// How many pages of a list are read.
const MAX_PAGES: usize = 50;
/// A list of more bytes is large: it is read only in normal work. An item of so many bytes is not used.
const LARGE: usize = 256 << 10;
/// How many tools with parameters that are repeated in headers are called.
const MIRRORED_TOOLS: usize = 3;

/// Reads all lists of the declared capabilities.
pub(crate) async fn read(connection: &mut ProbeConnection, material: &mut Material) {
    read_up_to(connection, material, usize::MAX).await;
}

/// Reads the lists once more, without the large ones.
pub(crate) async fn read_small(connection: &mut ProbeConnection, material: &mut Material) {
    read_up_to(connection, material, 0).await;
}

/// Reads the lists once more, without the largest ones.
pub(crate) async fn read_again(connection: &mut ProbeConnection, material: &mut Material) {
    read_up_to(connection, material, LARGEST_LIST).await;
}

/// Reads the lists, other than those that are known to have more bytes and to be large.
async fn read_up_to(connection: &mut ProbeConnection, material: &mut Material, most: usize) {
    let known = std::mem::take(&mut material.large);
    material.cursors.clear();
    material.failing.clear();
    for kind in material.lists().collect::<Vec<_>>() {
        let method = kind.method();
        if let Some(large) = known.iter().find(|(large, bytes)| *large == method && *bytes > most) {
            material.large.push(*large);
            continue;
        }
        let before = connection.wire().recorder().bytes();
        let list = match kind {
            List::Tools => &mut material.tools,
            List::Prompts => &mut material.prompts,
            List::Resources => &mut material.resources,
            List::ResourceTemplates => &mut material.templates,
        };
        let Some((items, cursor)) = pages_from(connection, method, kind.member(), json!({})).await else {
            list.clear();
            material.failing.push(method);
            continue;
        };
        *list = items;
        let bytes = connection.wire().recorder().bytes() - before;
        if bytes > LARGE {
            material.large.push((method, bytes));
            list.retain(|item| item.to_string().len() <= LARGE);
        }
        material.cursors.extend(cursor.map(|cursor| (method.to_owned(), cursor)));
    }
}

/// The items of all pages.
pub(crate) async fn pages(connection: &mut ProbeConnection, method: &str, key: &str, params: Value) -> Vec<Value> {
    pages_from(connection, method, key, params).await.unwrap_or_default().0
}

/// The items of all pages, and the cursor of the second one; `None` if the first one failed.
async fn pages_from(
    connection: &mut ProbeConnection,
    method: &str,
    key: &str,
    params: Value,
) -> Option<(Vec<Value>, Option<Value>)> {
    let (mut items, mut cursor, mut second) = (Vec::new(), None::<Value>, None);
    for number in 0..MAX_PAGES {
        let mut params = params.clone();
        if let Some(cursor) = &cursor {
            params["cursor"] = cursor.clone();
        }
        let answer = connection.request(method, params).await;
        let Some(result) = answer.result() else {
            if number == 0 {
                return None;
            }
            break;
        };
        let next = result.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
        if let Some(Value::Array(page)) = answer.into_result().and_then(|mut result| Some(result.get_mut(key)?.take()))
        {
            items.extend(page);
        }
        match next {
            Some(next) if Some(&next) != cursor.as_ref() => cursor = Some(next),
            _ => break,
        }
        second = second.or_else(|| cursor.clone());
    }
    Some((items, second))
}

/// What is known of the server on this connection before its lists are read.
pub(crate) fn material(
    connection: &ProbeConnection,
    transport: Transport,
    handshake: &Value,
    options: &CheckOptions,
) -> Material {
    Material {
        version: Some(connection.version()),
        transport: Some(transport),
        capabilities: handshake.get("capabilities").cloned().unwrap_or_default(),
        supported: detection::supported_names(handshake),
        suffix: format!("{:04x}", 0x7f3a_u64 ^ (options.seed - options.seed.min(1))),
        ..Material::default()
    }
}

/// The keyword of parameters that are repeated in headers.
const MIRRORED: &str = "x-mcp-header";

/// Whether arguments of a tool are repeated in headers.
fn has_header(tool: &Value) -> bool {
    headers_in(tool) > 0
}

fn headers_in(tool: &Value) -> usize {
    tool["inputSchema"].to_string().matches(&format!("\"{MIRRORED}\":")).count()
}

/// The first tools with parameters that are repeated in headers which may be called.
pub(crate) fn mirrored(tools: &[Value], options: &CheckOptions) -> Vec<MirroredCall> {
    let allowed = tools.iter().filter(|tool| options.tools.allows(tool) && has_header(tool));
    let calls = allowed.filter_map(|tool| {
        let (name, arguments) = call_of(tool, options)?;
        let mut parameters = Vec::new();
        find_mirrored(&tool["inputSchema"], "", &mut parameters);
        // A client has to reject a tool with an annotation that it cannot follow.
        let is_valid = parameters.len() == headers_in(tool);
        let schema = tool["inputSchema"].clone();
        let arguments = with_optional(&schema, arguments, &parameters);
        is_valid.then(|| MirroredCall { tool: name, schema, arguments, parameters })
    });
    calls.take(MIRRORED_TOOLS).collect()
}

/// The arguments with a value for each mirrored parameter that the schema does not require.
fn with_optional(schema: &Value, mut arguments: Value, parameters: &[MirroredParameter]) -> Value {
    for parameter in parameters {
        let mut more = arguments.clone();
        let key = parameter.pointer.strip_prefix('/').filter(|key| !key.contains(['/', '~']));
        let (Some(key), Some(members)) = (key, more.as_object_mut()) else { continue };
        members.entry(key).or_insert_with(|| match parameter.kind.as_str() {
            "integer" => json!(1),
            "boolean" => json!(true),
            _ => json!("test"),
        });
        if accepts(schema, &more) == Some(true) {
            arguments = more;
        }
    }
    arguments
}

fn find_mirrored(schema: &Value, pointer: &str, found: &mut Vec<MirroredParameter>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        if let (Some(header), Some(kind)) = (property[MIRRORED].as_str(), property["type"].as_str())
            && matches!(kind, "string" | "integer" | "boolean")
        {
            let header = format!("{PARAMETER_HEADER}{}", header.to_ascii_lowercase());
            found.push(MirroredParameter { header, pointer: pointer.clone(), kind: kind.to_owned() });
        }
        find_mirrored(property, &pointer, found);
    }
}

/// The tools that may be called, with arguments: none that runs only as a task.
pub(crate) fn callable<'a>(
    tools: &'a [Value],
    options: &'a CheckOptions,
) -> impl Iterator<Item = (String, Value)> + 'a {
    let is_task =
        |name: &str| tools.iter().any(|it| it["name"] == name && it["execution"]["taskSupport"] == "required");
    allowed(tools, options).filter(move |(name, _)| !is_task(name))
}

/// The tools that may be called, with arguments that their schemas accept.
pub(crate) fn allowed<'a>(tools: &'a [Value], options: &'a CheckOptions) -> impl Iterator<Item = (String, Value)> + 'a {
    let mut allowed: Vec<_> = tools.iter().filter(|tool| options.tools.allows(tool) && !has_header(tool)).collect();
    // What is named, and what has an output schema and arguments, says most.
    allowed.sort_by_key(|tool| {
        let is_named = options.tools.allowed.iter().any(|name| tool["name"] == name.as_str());
        let has_arguments = tool["inputSchema"]["required"].as_array().is_some_and(|required| !required.is_empty());
        (!is_named, tool.get("outputSchema").is_none(), !has_arguments)
    });
    allowed.into_iter().filter_map(|tool| call_of(tool, options))
}

/// The name of a tool, with arguments that its schema accepts.
fn call_of(tool: &Value, options: &CheckOptions) -> Option<(String, Value)> {
    let name = tool["name"].as_str()?;
    let arguments = options.tools.arguments_of(tool);
    let is_accepted = options.tools.given(name).is_some() || accepts(&tool["inputSchema"], &arguments) == Some(true);
    is_accepted.then(|| (name.to_owned(), arguments))
}

/// Why a tool that may be called is not.
const NO_ARGUMENTS: &str = "no arguments are known that its schema accepts; --tool-args NAME=JSON gives some";

/// The tools that may be called and were not, each with the reason: this one, unless nothing could be sent to it.
pub(crate) fn uncalled(
    evidence: &Evidence<'_>,
    tools: &[Value],
    options: &CheckOptions,
    why: &str,
) -> Vec<UncalledTool> {
    let called: HashSet<_> = evidence.calls_of("tools/call").filter_map(|call| call.text("/params/name")).collect();
    let left = tools.iter().filter(|tool| options.tools.allows(tool)).filter_map(|tool| {
        let name = tool["name"].as_str().filter(|name| !called.contains(name))?;
        let reason = if call_of(tool, options).is_some() { why } else { NO_ARGUMENTS };
        Some(UncalledTool { name: name.to_owned(), reason: reason.to_owned() })
    });
    left.collect()
}

/// Which tools may show more than those that were called.
pub(crate) fn more_tools(uncalled: &[UncalledTool], tools: &[Value], options: &CheckOptions) -> MoreTools {
    match uncalled {
        [] if tools.iter().all(|tool| options.tools.allows(tool)) => MoreTools::None,
        [] => MoreTools::Others,
        all => MoreTools::Uncalled(format!("allowed tools that were not called: {}", all.len())),
    }
}

/// Why checks that need something of the server cannot be tested.
pub(crate) fn missing(material: &Material) -> Vec<(String, String)> {
    let has_arguments = |it: &Value| it["arguments"].as_array().is_some_and(|arguments| !arguments.is_empty());
    let no_tool = match material.tools.len() {
        0 => "the server lists no tools",
        _ => "no tool was called; annotate one with readOnlyHint or use --allow-tool NAME",
    };
    let no_argument = match material.prompts.iter().any(has_arguments) {
        true => "a prompt may pass on what it gets; --allow-prompt NAME sends odd values to it",
        false => "no listed prompt has arguments",
    };
    let found = [
        ("tool", material.callable.is_empty(), no_tool),
        ("listed tool", material.tools.is_empty(), "the server lists no tools"),
        ("resource", material.resources.is_empty(), "the server lists no resources"),
        ("template", material.templates.is_empty(), "the server lists no resource templates"),
        ("prompt", material.prompts.is_empty(), "the server lists no prompts"),
        ("argument", !material.prompts.iter().any(has_arguments), "no listed prompt has arguments"),
        ("varied argument", !material.varied_prompts.iter().any(has_arguments), no_argument),
        ("page", material.cursors.is_empty(), "no list has a second page"),
    ];
    found.into_iter().filter(|(_, is_missing, _)| *is_missing).map(|(what, _, why)| (what.into(), why.into())).collect()
}
