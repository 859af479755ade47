//! Conditions and matchers.

use serde_json::{Value as Json, json};

use super::build::{
    Definitions, Keys, any, choice, duration, extend, integer, keys, list_of, mapping, object, one_or_more, reference,
    text,
};
use rehearse_protocol::{Transport, Version};

pub(super) fn definitions() -> Definitions {
    vec![("when".into(), object(&[], keys())), ("matcher".into(), matcher())]
}

pub(super) fn keys() -> Keys {
    let headers = json!({ "type": "object", "additionalProperties": reference("matcher") });
    keys! {
        "args": reference("matcher"),
            "The arguments of the call, or the variables of the URI.",
            [{ "city": "Paris" }, { "name": { "matches": "^A" } }];
        "params": reference("matcher"),
            "All params of the request.", [{ "_meta": { "example.com/trace": { "exists": true } } }];
        "headers": headers, "HTTP headers by name; case does not matter.", [{ "x-tenant": "acme" }];
        "era": one_or_more(choice(&["legacy", "modern"])),
            "The era of the client: with a handshake, or 2026-07-28.", ["legacy"];
        "version": one_or_more(choice(&Version::ALL.map(Version::as_str))),
            "The protocol version of the request.", ["2025-11-25"];
        "transport": one_or_more(choice(&Transport::ALL.map(Transport::as_str))),
            "How the request came.", [["http", "sse"]];
        "capabilities": reference("matcher"), "What the client declares.", [{ "sampling": { "exists": true } }];
        "call": call(),
            "Which call of the tool (or prompt, …) this is, from 1.", [1, [2, 3], { "min": 4 }, { "every": 3 }];
        "state": reference("matcher"), "The server's state.", [{ "status": "paid" }];
        "probability": json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            "How likely it holds. The seed of the run decides.", [0.1];
        "time": time(), "The time since the server was started.", [{ "until": "5s" }, { "after": "1m" }];
    }
}

fn call() -> Json {
    let range = object(
        &[],
        keys! {
            "min": integer(0), "From this call on.", [4];
            "max": integer(0), "Up to this call.", [6];
        },
    );
    let every = object(
        &["every"],
        keys! {
            "every": integer(1), "Every nth call: 3 is the third, the sixth and so on.", [3];
        },
    );
    json!({ "anyOf": [integer(0), list_of(integer(0)), range, every] })
}

fn time() -> Json {
    object(
        &[],
        keys! {
            "after": duration(), "From this time on.", ["1m"];
            "until": duration(), "Before this time.", ["5s"];
        },
    )
}

fn matcher() -> Json {
    let length = object(
        &[],
        keys! {
            "min": integer(0), "At least so long.", [1];
            "max": integer(0), "At most so long.", [3];
        },
    );
    let operators = keys! {
        "equals": any(), "Exactly this, without other keys.", [{ "city": "Paris" }];
        "subset": mapping(), "At least these keys; for keys that look like these words.", [{ "length": 3 }];
        "matches": text(), "A string in which this regular expression is found.", ["^[A-Z]"];
        "contains": reference("matcher"),
            "A string that contains this string, or an array with an item that matches this.", ["vip"];
        "schema": mapping(), "A value that this JSON Schema accepts.", [{ "minimum": 10 }];
        "length": json!({ "anyOf": [integer(0), length] }), "A string, array or object of this length.", [3, { "min": 1 }];
        "exists": json!({ "type": "boolean" }), "`true`: anything; `false`: no value at all.", [true];
        "not": reference("matcher"), "A value that this does not match.", ["Paris"];
    };
    let names: Vec<_> = operators.iter().map(|(name, _)| *name).collect();
    let has_operator = names.iter().map(|name| json!({ "required": [name] })).collect::<Vec<_>>();
    let nothing_else = json!({ "propertyNames": { "enum": names } });
    let matcher = extend(
        object(&[], operators),
        json!({
            "description": "What a value must look like: the same value, or an object with at least these keys; or operators.",
            "additionalProperties": reference("matcher"),
            "items": reference("matcher"),
            "if": { "type": "object", "anyOf": has_operator },
            "then": nothing_else,
        }),
    );
    match matcher {
        Json::Object(mut members) => {
            members.shift_remove("type");
            members.into()
        }
        other => other,
    }
}
