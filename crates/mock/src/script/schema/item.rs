//! Tools, resources, resource templates, prompts, methods and completions.

use serde_json::{Value as Json, json};

use super::{
    build::{
        Definitions, Keys, any, at_most_one, choice, duration, exactly_one, extend, flag, integer, keys, list_of,
        mapping, object, reference, text,
    },
    reply::{SUBJECTS, keys_of},
};
use crate::script::repeat;

const PLANS: [&str; 3] = ["reply", "replies", "steps"];

pub(super) fn definitions() -> Definitions {
    let mut definitions = vec![
        ("tool".into(), item("tool", &["name"], &[tool(), common()].concat())),
        ("resource".into(), item("resource", &["uri"], &[uri(), common(), resource_members()].concat())),
        (
            "resourceTemplate".into(),
            item("resource", &["uriTemplate"], &[uri_template(), common(), resource_members()].concat()),
        ),
        ("prompt".into(), item("prompt", &["name"], &[prompt(), common()].concat())),
        ("method".into(), item("method", &["method"], &method())),
        ("completion".into(), completion()),
        ("calls".into(), calls()),
        ("app".into(), app()),
    ];
    definitions.extend(SUBJECTS.map(|subject| (format!("{subject}Rule"), rule(subject))));
    definitions
}

/// The kinds of reply that an item or rule may have without `reply:` around them.
fn short_forms(subject: &str) -> &'static [&'static str] {
    match subject {
        "resource" => &["text", "json", "blob", "contents"],
        "prompt" => &["messages"],
        _ => &[],
    }
}

fn item(subject: &str, required: &[&str], members: &[(&'static str, Json)]) -> Json {
    let keys = [members, &item_keys(subject), &answer(subject)].concat();
    let plans = [&PLANS[..], &["rules"], short_forms(subject)].concat();
    extend(object(required, keys), extend(at_most_one(&plans), json!({ "dependencies": { "then": ["replies"] } })))
}

fn rule(subject: &str) -> Json {
    let plans = [&PLANS[..], short_forms(subject)].concat();
    let own = keys! {
        "when": reference("when"),
            "What must hold of a request so that the rule answers. Without it the rule always does.",
            [{ "args": { "city": "Paris" } }];
        "expect": reference("calls"), "How often the rule must answer for the verification to hold.", [{ "calls": 1 }];
    };
    let rule = object(&[], [own, answer(subject)].concat());
    extend(rule, extend(exactly_one(&plans), json!({ "dependencies": { "then": ["replies"] } })))
}

/// The keys for the answer of an item or a rule.
fn answer(subject: &str) -> Keys {
    let reply = || reference(&format!("{subject}Reply"));
    let example = match subject {
        "prompt" => json!({ "messages": [{ "role": "user", "content": "Hello" }] }),
        "method" => json!({ "result": { "ok": true } }),
        _ => json!({ "text": "Hello {{ args.name }}" }),
    };
    let mut keys = keys! {
        "delay": duration(), "How long to wait before the answer begins.", ["5s"];
        "reply": reply(), "The answer, always the same but for its templates.", [example];
        "replies": extend(list_of(reply()), json!({ "minItems": 1 })),
            "The answers of one call after the other.", [[example, example]];
        "then": choice(&["last", "cycle", "error"]),
            "What follows the last of `replies`: it again (the default), the first one, or an error.", ["cycle"];
        "steps": reference(&format!("{subject}Steps")),
            "What is done on the way to the answer, one after the other; the last is a `reply` or an `exit`.",
            [[{ "wait": "50ms" }, { "reply": example }]];
        "http": reference("httpAnswer"), "How the answer is sent over streamable HTTP.", [{ "answers": "sse" }];
    };
    let short = keys_of(subject);
    keys.extend(short.into_iter().filter(|(name, _)| short_forms(subject).contains(name)));
    keys
}

/// The keys that every item has.
fn item_keys(subject: &str) -> Keys {
    keys! {
        "rules": list_of(reference(&format!("{subject}Rule"))),
            "Answers with conditions; the first whose `when` holds answers.", [];
        "enabled": flag(true),
            "Whether it is there when the server starts; the step `enable` brings it later.", [false];
        "scopes": list_of(text()), "The scopes that a token needs for it.", [["notes:write"]];
        "expect": reference("calls"),
            "How often it must be called for the verification to hold.", [{ "calls": { "min": 1 } }];
        "repeat": json!({ "type": "integer", "minimum": 1, "maximum": repeat::MAX }),
            "How many there are of it. `{{ n }}` is the number of each, from 1, in its members and in its answer.",
            [1000];
    }
}

fn tool() -> Keys {
    let schema = || extend(mapping(), json!({ "default": { "type": "object" } }));
    keys! {
        "name": text(), "The name by which clients call the tool.", ["get_forecast"];
        "inputSchema": schema(),
            "The JSON Schema of the arguments. Arguments that break it are refused before any rule is tried.",
            [{ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] }];
        "outputSchema": mapping(),
            "The JSON Schema of `structured` replies, which must keep to it.",
            [{ "type": "object", "properties": { "celsius": { "type": "number" } } }];
        "annotations": mapping(), "Hints for clients.", [{ "readOnlyHint": true }];
        "ui": reference("app"), "The page on which hosts show the results (MCP Apps).", [{ "file": "map.html" }];
        "execution": mapping(), "How the tool runs (2025-11-25).", [{ "taskSupport": "optional" }];
        "unchecked": flag(false), "Does not check the tool, so that it can break its own schemas.", [true];
    }
}

fn app() -> Json {
    let origins = || list_of(text());
    let csp = keys! {
        "connectDomains": origins(), "For requests.", [["https://api.example.com"]];
        "resourceDomains": origins(), "For scripts, styles, images and fonts.", [["https://cdn.example.com"]];
        "frameDomains": origins(), "For frames.", [["https://video.example.com"]];
        "baseUriDomains": origins(), "For `<base>`.", [["https://cdn.example.com"]];
    };
    let permissions = keys! {
        "camera": mapping(), "The camera.", [{}];
        "microphone": mapping(), "The microphone.", [{}];
        "geolocation": mapping(), "The place of the user.", [{}];
        "clipboardWrite": mapping(), "Writing to the clipboard.", [{}];
    };
    let keys = keys! {
        "html": text(), "The page.", ["<!doctype html><p>Hello</p>"];
        "file": text(), "The file of the page, beside the script.", ["map.html"];
        "uri": text(), "Its URI, `ui://` and the name of the tool by default; alone, the page of another tool.",
            ["ui://map"];
        "mimeType": text(), "Another type, to be wrong on purpose.", ["text/html"];
        "visibility": list_of(choice(&["model", "app"])), "Who may call the tool; both by default.", [["app"]];
        "csp": object(&[], csp), "The origins that the page needs.",
            [{ "connectDomains": ["https://api.example.com"] }];
        "permissions": object(&[], permissions), "What the page asks of the browser.", [{ "camera": {} }];
        "domain": text(), "An origin of its own, in the format of a host.", ["a9.apps.example.com"];
        "prefersBorder": json!({ "type": "boolean" }), "Whether the host draws a border.", [true];
    };
    extend(object(&[], keys), at_most_one(&["html", "file"]))
}

fn uri() -> Keys {
    keys! { "uri": text(), "The URI by which clients read the resource.", ["file:///readme.md"]; }
}

fn uri_template() -> Keys {
    keys! { "uriTemplate": text(), "An RFC 6570 template; its variables are `args`.", ["file:///logs/{day}"]; }
}

fn resource_members() -> Keys {
    keys! {
        "name": text(), "The name that clients show; the URI by default.", ["readme"];
        "mimeType": text(), "The type of the contents.", ["text/markdown"];
        "size": any(), "The size in bytes, as the list says it.", [1024];
        "annotations": mapping(), "Hints for clients.", [{ "subscribers": ["user"], "priority": 0.5 }];
    }
}

fn prompt() -> Keys {
    let argument = object(
        &["name"],
        keys! {
            "name": text(), "The name of the argument.", ["language"];
            "title": any(), "The name as people read it.", ["Language"];
            "description": any(), "What the argument is for.", ["The language to greet in."];
            "required": flag(false), "Whether a request without it is refused.", [true];
        },
    );
    keys! {
        "name": text(), "The name by which clients get the prompt.", ["greet"];
        "arguments": list_of(argument),
            "The arguments of the prompt, which are strings.", [[{ "name": "language", "required": true }]];
    }
}

fn method() -> Keys {
    keys! { "method": text(), "The JSON-RPC method.", ["example/time"]; }
}

/// The members that tools, resources, resource templates and prompts have in common.
fn common() -> Keys {
    keys! {
        "title": text(), "The name as people read it.", ["Forecast"];
        "description": text(), "What it is for, as clients and models read it.", ["Tomorrow's weather."];
        "icons": list_of(mapping()), "MCP icons.", [[{ "src": "https://example.com/icon.png" }]];
        "_meta": mapping(), "Members of `_meta` in the definition.", [{ "example.com/team": "weather" }];
    }
}

fn completion() -> Json {
    let keys = keys! {
        "prompt": text(), "The prompt whose argument is completed.", ["greet"];
        "resource": text(), "The URI template whose variable is completed.", ["file:///{+path}"];
        "argument": text(), "The argument or variable.", ["language"];
        "values": json!({ "anyOf": [list_of(text()), text()] }),
            "All values, or a template that gives an array. At most a hundred that begin with what was typed are sent.",
            [["en", "es"], "{{ state.names }}"];
    };
    extend(object(&["argument", "values"], keys), exactly_one(&["prompt", "resource"]))
}

fn calls() -> Json {
    let range = object(
        &[],
        keys! {
            "min": integer(0), "At least this many.", [1];
            "max": integer(0), "At most this many.", [3];
        },
    );
    object(
        &["calls"],
        keys! {
            "calls": json!({ "anyOf": [integer(0), range] }),
                "How many calls there must be: a number, or `min` and `max`.", [2, { "min": 1 }];
        },
    )
}
