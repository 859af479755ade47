//! Independent judges of messages: the types of rmcp, and the JSON Schemas of the specification if they are available.

use std::{collections::HashMap, sync::LazyLock};

use jsonschema::Validator;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolResult, CompleteResult, CreateTaskResult, DiscoverResult, EmptyResult, GetPromptResult, GetTaskResult,
    InitializeResult, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, ReadResourceResult, ServerJsonRpcMessage, ServerNotification, ServerRequest,
    SubscriptionsListenResult, TaskAckResult,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value as Json, json};

use crate::tests::generated::{Law, Said, What};

/// The folder that has the `schema-VERSION.json` of the specification. They are no part of this project; without them
/// only rmcp judges.
const SCHEMAS: &str = "SPEC_SCHEMAS";

/// What rmcp 3.9 does not have though the specification does: `params` of `roots/list` (all versions: an optional object,
/// of which rmcp keeps nothing), and `taskIds` in a filter of notifications (SEP-2663, Task Status Notifications).
const NARROWER: [&str; 2] = ["params", "taskIds"];

pub(crate) fn judge(said: &Said<'_>) -> Law {
    rmcp_reads(said)?;
    schema_allows(said)
}

/// rmcp reads the message as what it is, and no member of it is unknown to it.
fn rmcp_reads(said: &Said<'_>) -> Law {
    let message = said.message;
    let read = serde_json::from_value::<ServerJsonRpcMessage>(message.clone());
    let read = read.map_err(|error| format!("rmcp does not read {message}: {error}"))?;
    let result = &message["result"];
    match (said.what, read) {
        (_, ServerJsonRpcMessage::Error(_)) => Ok(()),
        (What::Response(method), ServerJsonRpcMessage::Response(_)) => match result["resultType"].as_str() {
            Some("input_required") => keeps::<InputRequiredResult>(result),
            Some("task") => keeps::<CreateTaskResult>(result),
            _ => result_of(method, result),
        },
        (What::Notification, ServerJsonRpcMessage::Notification(read)) => {
            match matches!(read.notification, ServerNotification::CustomNotification(_)) {
                true => Err(format!("rmcp does not know the notification {message}")),
                false => check_known(&message["params"], &serde_json::to_value(&read).unwrap_or_default()["params"]),
            }
        }
        (What::Request, ServerJsonRpcMessage::Request(read)) => {
            match matches!(read.request, ServerRequest::CustomRequest(_)) {
                true => Err(format!("rmcp does not know the request {message}")),
                false => check_known(&message["params"], &serde_json::to_value(&read).unwrap_or_default()["params"]),
            }
        }
        (what, read) => Err(format!("{what:?} is for rmcp {read:?}")),
    }
}

fn result_of(method: &str, result: &Json) -> Law {
    match method {
        "initialize" => keeps::<InitializeResult>(result),
        "server/discover" => keeps::<DiscoverResult>(result),
        "tools/list" => keeps::<ListToolsResult>(result),
        "tools/call" => keeps::<CallToolResult>(result),
        "resources/list" => keeps::<ListResourcesResult>(result),
        "resources/templates/list" => keeps::<ListResourceTemplatesResult>(result),
        "resources/read" => keeps::<ReadResourceResult>(result),
        "prompts/list" => keeps::<ListPromptsResult>(result),
        "prompts/get" => keeps::<GetPromptResult>(result),
        "completion/complete" => keeps::<CompleteResult>(result),
        "subscriptions/listen" => keeps::<SubscriptionsListenResult>(result),
        "tasks/get" => keeps::<GetTaskResult>(result),
        "tasks/update" | "tasks/cancel" => keeps::<TaskAckResult>(result),
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => keeps::<EmptyResult>(result),
        other => Err(format!("a result for {other}: {result}")),
    }
}

fn keeps<T: DeserializeOwned + Serialize>(json: &Json) -> Law {
    let name = std::any::type_name::<T>();
    let read: T = serde_json::from_value(json.clone()).map_err(|error| format!("{name}: {error} in {json}"))?;
    check_known(json, &serde_json::to_value(&read).unwrap_or_default()).map_err(|why| format!("{name}: {why}"))
}

/// Everything that was sent is in what was read.
fn check_known(sent: &Json, read: &Json) -> Law {
    match (sent, read) {
        (Json::Object(sent), Json::Object(read)) => sent.iter().try_for_each(|(name, value)| match read.get(name) {
            Some(read) => check_known(value, read).map_err(|why| format!("{name}: {why}")),
            None if NARROWER.contains(&&**name) => Ok(()),
            None => Err(format!("the member {name} is unknown")),
        }),
        (Json::Array(sent), Json::Array(read)) if sent.len() == read.len() => {
            sent.iter().zip(read).try_for_each(|(sent, read)| check_known(sent, read))
        }
        // `roots/list`, see below.
        (Json::Object(sent), Json::Null) if sent.is_empty() => Ok(()),
        // rmcp has floats where we write whole numbers.
        (Json::Number(sent), Json::Number(read)) if sent.as_f64() == read.as_f64() => Ok(()),
        (sent, read) if sent == read => Ok(()),
        (sent, read) => Err(format!("{sent} is read as {read}")),
    }
}

static COMPILED: LazyLock<Mutex<HashMap<(String, String), &'static Validator>>> = LazyLock::new(Mutex::default);

fn schema_allows(said: &Said<'_>) -> Law {
    let Some(folder) = std::env::var_os(SCHEMAS) else { return Ok(()) };
    let message = said.message;
    let code = message["error"]["code"].as_i64();
    let result = &message["result"];
    let definitions: &[(&str, &Json)] = &match (said.what, code) {
        (What::Response(_), Some(code)) => vec![(error_definition(said.version, code), message)],
        (What::Response(method), None) => {
            let envelope = if said.version < "2025-11-25" { "JSONRPCResponse" } else { "JSONRPCResultResponse" };
            vec![(envelope, message), (result_definition(method, result["resultType"].as_str()), result)]
        }
        (What::Notification | What::Request, _) => {
            let envelope = if said.what == What::Request { "JSONRPCRequest" } else { "JSONRPCNotification" };
            vec![(envelope, message), (definition_of(message["method"].as_str().unwrap_or_default()), message)]
        }
    };
    for (definition, json) in definitions.iter().filter(|(definition, _)| !definition.is_empty()) {
        let key = (said.version.to_owned(), (*definition).to_owned());
        let validator = {
            let mut compiled = COMPILED.lock();
            *compiled.entry(key).or_insert_with(|| compile(&folder, said.version, definition))
        };
        let errors: Vec<_> = validator.iter_errors(json).map(|it| format!("{}: {it}", it.instance_path())).collect();
        if !errors.is_empty() {
            return Err(format!("no {definition} of {}: {}: {json}", said.version, errors.join("; ")));
        }
    }
    Ok(())
}

/// # Panics
/// The folder does not have the schemas.
fn compile(folder: &std::ffi::OsStr, version: &str, definition: &str) -> &'static Validator {
    let path = std::path::Path::new(folder).join(format!("schema-{version}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut schema: Json = serde_json::from_str(&text).expect("a JSON Schema");
    let all = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
    assert!(schema[all].get(definition).is_some(), "{version} has no {definition}");
    schema["$ref"] = json!(format!("#/{all}/{definition}"));
    Box::leak(Box::new(jsonschema::validator_for(&schema).expect("a valid JSON Schema")))
}

fn error_definition(version: &str, code: i64) -> &'static str {
    match (version, code) {
        ("2026-07-28", -32_020) => "HeaderMismatchError",
        ("2026-07-28", -32_021) => "MissingRequiredClientCapabilityError",
        ("2026-07-28", -32_022) => "UnsupportedProtocolVersionError",
        ("2025-11-25" | "2026-07-28", _) => "JSONRPCErrorResponse",
        _ => "JSONRPCError",
    }
}

/// The definition of a result; none for those of an extension, which the schemas do not have.
fn result_definition(method: &str, kind: Option<&str>) -> &'static str {
    match (method, kind) {
        (_, Some("task")) => "Result",
        (_, Some("input_required")) => "InputRequiredResult",
        ("initialize", _) => "InitializeResult",
        ("server/discover", _) => "DiscoverResult",
        ("tools/list", _) => "ListToolsResult",
        ("tools/call", _) => "CallToolResult",
        ("resources/list", _) => "ListResourcesResult",
        ("resources/templates/list", _) => "ListResourceTemplatesResult",
        ("resources/read", _) => "ReadResourceResult",
        ("prompts/list", _) => "ListPromptsResult",
        ("prompts/get", _) => "GetPromptResult",
        ("completion/complete", _) => "CompleteResult",
        ("subscriptions/listen", _) => "SubscriptionsListenResult",
        ("ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe", _) => "EmptyResult",
        _ => "Result",
    }
}

fn definition_of(method: &str) -> &'static str {
    match method {
        "elicitation/create" => "ElicitRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "roots/list" => "ListRootsRequest",
        "notifications/progress" => "ProgressNotification",
        "notifications/message" => "LoggingMessageNotification",
        "notifications/cancelled" => "CancelledNotification",
        "notifications/tools/list_changed" => "ToolListChangedNotification",
        "notifications/prompts/list_changed" => "PromptListChangedNotification",
        "notifications/resources/list_changed" => "ResourceListChangedNotification",
        "notifications/resources/updated" => "ResourceUpdatedNotification",
        "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledgedNotification",
        // SEP-2663; the schemas do not have it.
        "notifications/tasks" => "",
        _ => "Notification",
    }
}
