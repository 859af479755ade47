//! Input requests to the client.

use serde_json::{Value as Json, json};

use super::build::{
    Definitions, Keys, any, choice, duration, exactly_one, extended, flag, keys, list_of, mapping, object, template,
};

pub(super) fn definitions() -> Definitions {
    let roots = extended(object(&[], [named(), common()].concat()), json!({ "type": ["object", "null"] }));
    let keys = keys! {
        "elicit": elicit(&common()),
            "Asks the user of the client.", [{ "message": "Who?", "requestedSchema": { "type": "object" } }];
        "sample": sample(&common()), "Asks the model of the client.", [{ "messages": [] }];
        "roots": extended(object(&[], common()), json!({ "type": ["object", "null"] })),
            "Asks for the roots of the client.", [{}];
    };
    vec![
        ("elicit".into(), elicit(&[named(), common()].concat())),
        ("sample".into(), sample(&[named(), common()].concat())),
        ("roots".into(), roots),
        ("inputRequest".into(), extended(object(&[], keys), exactly_one(&["elicit", "sample", "roots"]))),
    ]
}

fn named() -> Keys {
    keys! {
        "as": json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
            "What later templates call the answer; `elicit`, `sample` or `roots` by default.", ["guest"];
    }
}

fn common() -> Keys {
    keys! {
        "optional": flag(false), "A client without the capability is skipped, and the answer is `none`.", [true];
        "timeout": duration(), "How long a legacy client may take; 60 s by default.", ["5s"];
        "_meta": mapping(), "Members of `_meta` in the question.", [{ "example.com/why": "billing" }];
    }
}

fn elicit(more: &[(&'static str, Json)]) -> Json {
    let keys = keys! {
        "mode": extended(choice(&["form", "url"]), json!({ "default": "form" })),
            "A form to fill in, or a URL to open.", ["url"];
        "message": template(), "What the user reads.", ["Your name?"];
        "requestedSchema": mapping(),
            "The fields of the form as a flat JSON Schema.",
            [{ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] }];
        "url": template(), "The page to open, in the mode `url`.", ["https://example.com/login"];
        "elicitationId": any(), "The id of the elicitation in the mode `url`, for clients of 2025-11-25; made up if it is not given.", ["login-1"];
    };
    let is_url = json!({ "properties": { "mode": { "const": "url" } }, "required": ["mode"] });
    let condition =
        json!({ "if": is_url, "then": { "required": ["url"] }, "else": { "required": ["requestedSchema"] } });
    extended(object(&["message"], [&keys[..], more].concat()), condition)
}

fn sample(more: &[(&'static str, Json)]) -> Json {
    let keys = keys! {
        "messages": list_of(any()),
            "The conversation as MCP has it.",
            [[{ "role": "user", "content": { "type": "text", "text": "A poem, please" } }]];
        "modelPreferences": any(), "Which model would be good.", [{ "hints": [{ "name": "small" }] }];
        "systemPrompt": any(), "The system prompt.", ["Be brief."];
        "includeContext": any(), "Which context to include.", ["none"];
        "temperature": any(), "The temperature.", [0.2];
        "maxTokens": any(), "How long the answer may be; 1000 by default.", [100];
        "stopSequences": any(), "What ends the answer.", [["\n"]];
        "metadata": any(), "Anything for the provider of the model.", [{ "tier": "free" }];
        "tools": any(), "Tools that the model may use.", [[{ "name": "add", "inputSchema": { "type": "object" } }]];
        "toolChoice": any(), "How the model may use them.", [{ "mode": "auto" }];
    };
    object(&["messages"], [&keys[..], more].concat())
}
