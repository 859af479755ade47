//! Steps.

use serde_json::{Value as Json, json};

use super::{
    build::{
        Definitions, Keys, any, choice, duration, exactly_one, extend, flag, keys, list_of, mapping, object, reference,
        template, text,
    },
    reply::SUBJECTS,
};
use crate::script::log_level;

pub(super) fn definitions() -> Definitions {
    let mut definitions: Definitions = SUBJECTS.map(|subject| (format!("{subject}Steps"), steps(subject))).into();
    definitions.extend([("change".into(), change()), ("replacement".into(), replacement())]);
    definitions
}

fn steps(subject: &str) -> Json {
    let mut kinds = kinds(subject);
    for (name, schema) in &mut kinds {
        match (subject, *name) {
            ("method", "elicit" | "sample" | "roots" | "ask") => {
                *schema = json!({ "not": {}, "description": "Only tools, prompts and resources can ask the client." });
            }
            ("resource" | "prompt" | "method", "task") => {
                *schema = json!({ "not": {}, "description": "Only a tool can run as a task." });
            }
            _ => {}
        }
    }
    let names: Vec<_> = kinds.iter().map(|(name, _)| *name).collect();
    kinds.extend(keys! {
        "if": text(),
            "An expression without braces; the step is left out unless it is true.",
            ["guest.action == 'accept'", "args.count > 3 and not state.closed"];
    });
    let mut steps = list_of(extend(object(&[], kinds), exactly_one(&names)));
    steps["contains"] = json!({ "anyOf": [{ "required": ["reply"] }, { "required": ["exit"] }] });
    steps
}

fn kinds(subject: &str) -> Keys {
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let params = json!({ "uri": "file:///a" });
    let wait = json!({ "anyOf": [duration(), { "type": "string", "pattern": r"\{\{" }] });
    let log = object(
        &["data"],
        keys! {
            "level": extend(choice(log_level::NAMES), json!({ "default": "info" })), "How severe it is.", ["warning"];
            "logger": template(), "Who says it.", ["oven"];
            "data": any(), "A string or any other data.", ["Baking {{ args.what }}", { "celsius": 180 }];
        },
    );
    let number = || json!({ "anyOf": [{ "type": "number" }, { "type": "string", "pattern": r"\{\{" }] });
    let progress = object(
        &["progress"],
        keys! {
            "progress": number(), "How far it is.", [1];
            "total": number(), "How far it will be at the end.", [3];
            "message": any(), "What is being done.", ["Half baked"];
        },
    );
    let notify = object(
        &["method"],
        keys! {
            "method": notification(), "The method of the notification.", ["notifications/resources/updated"];
            "params": mapping(), "Its params.", [{ "uri": "file:///a" }];
        },
    );
    let open = |schema: Json| extend(schema, json!({ "type": ["object", "null"] }));
    let task_keys = object(
        &[],
        keys! {
            "ttl": duration(), "How long the task can be asked for; without an end by default.", ["1m"];
            "pollInterval": duration(), "How often a client should ask; every 500 ms by default.", ["100ms"];
            "required": flag(false),
                "Refuses a client that knows no tasks, which otherwise waits for the answer.", [true];
        },
    );
    let disconnect = object(
        &[],
        keys! {
            "retry": duration(), "After which time the client should come back.", ["100ms"];
        },
    );
    keys! {
        "wait": wait, "Waits. A template may give the time.", ["50ms", "{{ rand(10, 90) }}ms"];
        "log": json!({ "anyOf": [text(), log] }),
            "A log message, if the client wants messages of this level. A string is short for `data` at level `info`.",
            ["Baking {{ args.what }}", { "level": "warning", "data": "It is hot" }];
        "progress": progress,
            "A progress notification, if the client has asked for progress.", [{ "progress": 1, "total": 3 }];
        "elicit": reference("elicit"),
            "Asks the user of the client. Later templates know the answer by its name.",
            [{ "as": "guest", "message": "Your name?", "requestedSchema": form }];
        "sample": reference("sample"),
            "Asks the model of the client.",
            [{ "as": "poem", "messages": [{ "role": "user", "content": { "type": "text", "text": "A poem!" } }] }];
        "roots": reference("roots"), "Asks the client for its roots.", [{ "as": "folders" }];
        "ask": json!({ "type": "object", "minProperties": 1, "additionalProperties": reference("inputRequest") }),
            "Sends several input requests at once, each by the name of its answer.",
            [{ "guest": { "elicit": { "message": "Who?", "requestedSchema": form } }, "folders": { "roots": {} } }];
        "set": mapping(),
            "Sets values of the server's state; `null` removes one.", [{ "visits": "{{ state.visits + 1 }}" }];
        "notify": json!({ "anyOf": [notification(), notify] }),
            "A notification. A changed list or resource is sent to its subscribers, any other notification to the caller.",
            ["notifications/tools/list_changed", { "method": "notifications/resources/updated", "params": params }];
        "enable": reference("change"),
            "Shows a tool, prompt, resource or resource template that was hidden.", [{ "tool": "secret" }];
        "disable": reference("change"), "Hides one.", [{ "prompt": "greet" }];
        "replace": reference("replacement"),
            "Puts another one in the place of the one of that name, or adds it.",
            [{ "tool": { "name": "echo", "reply": "no" } }];
        "task": open(task_keys),
            "From here on the call runs as a task, if the client knows tasks (2026-07-28).",
            [{ "ttl": "1m", "pollInterval": "100ms" }];
        "disconnect": open(disconnect),
            "Closes the response stream; the client can resume it (legacy streamable HTTP only, otherwise ignored).",
            [{ "retry": "100ms" }];
        "reply": reference(&format!("{subject}Reply")), "The answer. Nothing follows it, unless it has an `if`.", [];
        "exit": json!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 255 }, { "type": "null" }] }),
            "The server exits without an answer, with this code or 1.", [3];
    }
}

fn notification() -> Json {
    json!({ "type": "string", "pattern": "^notifications/" })
}

fn change() -> Json {
    let keys = keys! {
        "tool": text(), "The tool's name.", ["secret"];
        "prompt": text(), "The prompt's name.", ["greet"];
        "resource": text(), "The resource's URI.", ["file:///a"];
        "resourceTemplate": text(), "The URI template.", ["file:///{+path}"];
    };
    extend(object(&[], keys), exactly_one(&LISTED))
}

fn replacement() -> Json {
    let keys = keys! {
        "tool": reference("tool"), "A whole tool.", [{ "name": "echo", "reply": "no" }];
        "prompt": reference("prompt"), "A whole prompt.", [{ "name": "greet", "messages": [] }];
        "resource": reference("resource"), "A whole resource.", [{ "uri": "file:///a", "text": "new" }];
        "resourceTemplate": reference("resourceTemplate"),
            "A whole resource template.", [{ "uriTemplate": "file:///{+path}", "text": "new" }];
    };
    extend(object(&[], keys), exactly_one(&LISTED))
}

const LISTED: [&str; 4] = ["tool", "prompt", "resource", "resourceTemplate"];
