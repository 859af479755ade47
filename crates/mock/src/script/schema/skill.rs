//! Skills.

use serde_json::{Value as Json, json};

use super::build::{Definitions, any, exactly_one, extend, flag, keys, mapping, object, reference, text};

pub(super) fn definitions() -> Definitions {
    vec![("skill".into(), skill()), ("skillFile".into(), file())]
}

fn skill() -> Json {
    let files = json!({ "type": "object", "additionalProperties": { "anyOf": [text(), reference("skillFile")] } });
    object(
        &["name", "description"],
        keys! {
            "name": text(), "The name, in lower-case letters, digits and hyphens.", ["refunds"];
            "description": json!({ "type": "string", "maxLength": 1024 }),
                "What the skill is for, and when to use it.", ["Process refund requests by company policy."];
            "license": text(), "The licence.", ["Apache-2.0"];
            "compatibility": text(), "What the skill needs.", ["Needs Python 3"];
            "metadata": mapping(), "More about the skill, as strings by name.", [{ "author": "billing" }];
            "allowed-tools": any(), "The tools that it may use, in one string.", ["read_file search"];
            "frontmatter": mapping(), "Any other field of the frontmatter.", [{ "category": "billing" }];
            "path": text(), "The path before the name in its URI.", ["acme/billing"];
            "body": text(), "The Markdown of SKILL.md.", ["Read `references/policy.md` first."];
            "files": files,
                "The other files, by their paths in the skill.", [{ "references/policy.md": "The customer is right." }];
            "listed": flag(true), "Whether `skills/list` has it.", [false];
            "dynamic": flag(false), "Publishes no digests of the files.", [true];
        },
    )
}

fn file() -> Json {
    let keys = keys! {
        "text": text(), "What is in it.", ["The customer is right."];
        "blob": text(), "What is in it, in base64.", ["iVBORw0KGgo="];
        "mimeType": text(), "Its type; what the name says by default.", ["image/png"];
        "digest": text(), "Another digest than it has, to be wrong on purpose.", ["sha256:0"];
        "size": json!({ "type": "integer", "minimum": 0 }), "Another size than it has.", [0];
    };
    extend(object(&[], keys), exactly_one(&["text", "blob"]))
}
