//! The shape of results and list items: the members that every protocol version requires, and their types.
//!
//! All versions require the same members, apart from the envelope. Other members may be there.

use std::{collections::HashMap, fmt};

use serde_json::value::RawValue;

/// A part of a result that is not as the specification defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The JSON pointer of the part; empty for the whole result.
    pub pointer: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pointer {
            "" => write!(f, "the result {}", self.problem),
            pointer => write!(f, "{pointer} {}", self.problem),
        }
    }
}

impl std::error::Error for Malformed {}

impl Malformed {
    /// A result that has the right shape, but cannot be read.
    pub(crate) fn from_error(error: serde_json::Error) -> Malformed {
        Malformed { pointer: String::new(), problem: format!("is not valid: {error}") }
    }
}

/// A type of JSON values.
#[derive(Clone, Copy)]
enum Type {
    String,
    Boolean,
    Object,
    Array,
}

/// A value and where it is.
struct Part<'a> {
    pointer: String,
    raw: &'a RawValue,
}

/// The members of an object.
struct Members<'a> {
    pointer: String,
    members: HashMap<String, &'a RawValue>,
}

/// Checks the result of a method; the items of a list are checked by [`check_item`].
///
/// # Errors
/// The first part that is malformed. A result of an unknown method has no shape.
pub(crate) fn check_result(method: &str, result: &RawValue) -> Result<(), Malformed> {
    let members = || Part { pointer: String::new(), raw: result }.members();
    match method {
        "tools/call" => {
            let members = members()?;
            members.optional("isError", Type::Boolean)?;
            // Servers of several SDKs leave out an empty `content`.
            if !members.has("content") && members.has("structuredContent") {
                return Ok(());
            }
            members.items("content")?.iter().try_for_each(check_block)
        }
        "resources/read" => members()?.items("contents")?.iter().try_for_each(check_contents),
        "prompts/get" => members()?.items("messages")?.iter().try_for_each(|message| {
            let members = message.members()?;
            members.required("role", Type::String)?;
            check_block(&members.required("content", Type::Object)?)
        }),
        _ => Ok(()),
    }
}

/// Checks an item of a list, whose pointer is `/member/index`, where `index` counts the items of all pages.
///
/// # Errors
/// The first part that is malformed.
pub fn check_item(member: &str, index: usize, item: &RawValue) -> Result<(), Malformed> {
    let members = Part { pointer: format!("/{member}/{index}"), raw: item }.members()?;
    let required = match member {
        "resources" => "uri",
        "resourceTemplates" => "uriTemplate",
        _ => "name",
    };
    members.required(required, Type::String)?;
    members.required("name", Type::String)?;
    members.optional("description", Type::String)?;
    match member {
        "tools" => {
            members.required("inputSchema", Type::Object)?;
            members.optional("outputSchema", Type::Object)?;
            if let Some(annotations) = members.optional("annotations", Type::Object)? {
                let hints = annotations.members()?;
                for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
                    hints.optional(hint, Type::Boolean)?;
                }
            }
        }
        "prompts" => {
            if let Some(arguments) = members.optional("arguments", Type::Array)? {
                for argument in arguments.items()? {
                    argument.members()?.required("name", Type::String)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Checks a content block.
///
/// # Errors
/// The first part that is malformed.
pub(crate) fn check_content(block: &RawValue) -> Result<(), Malformed> {
    check_block(&Part { pointer: String::new(), raw: block })
}

fn check_block(block: &Part<'_>) -> Result<(), Malformed> {
    let members = block.members()?;
    let kind = members.required("type", Type::String)?;
    let required: &[&str] = match kind.raw.get() {
        r#""text""# => &["text"],
        r#""image""# | r#""audio""# => &["data", "mimeType"],
        r#""resource_link""# => &["uri", "name"],
        r#""resource""# => return check_contents(&members.required("resource", Type::Object)?),
        other => return Err(kind.malformed(format!("is the unknown type {other}"))),
    };
    required.iter().try_for_each(|key| members.required(key, Type::String).map(drop))
}

/// The contents of a resource.
fn check_contents(contents: &Part<'_>) -> Result<(), Malformed> {
    let members = contents.members()?;
    members.required("uri", Type::String)?;
    members.optional("mimeType", Type::String)?;
    match (members.optional("text", Type::String)?, members.optional("blob", Type::String)?) {
        (None, None) => Err(contents.malformed("has neither `text` nor `blob`")),
        _ => Ok(()),
    }
}

impl<'a> Part<'a> {
    fn malformed(&self, problem: impl Into<String>) -> Malformed {
        Malformed { pointer: self.pointer.clone(), problem: problem.into() }
    }

    /// The value of a type. All strings are decoded, because JSON can contain text that is not Unicode.
    fn has_type(&self, wanted: Type) -> Result<(), Malformed> {
        let text = self.raw.get();
        let (name, is_it) = match wanted {
            Type::String => ("a string", serde_json::from_str::<String>(text).is_ok()),
            Type::Boolean => ("a boolean", matches!(text, "true" | "false")),
            Type::Object => ("an object", text.starts_with('{')),
            Type::Array => ("an array", text.starts_with('[')),
        };
        if is_it { Ok(()) } else { Err(self.malformed(format!("is not {name}"))) }
    }

    fn members(&self) -> Result<Members<'a>, Malformed> {
        self.has_type(Type::Object)?;
        let members =
            serde_json::from_str(self.raw.get()).map_err(|error| self.malformed(format!("is not valid: {error}")))?;
        Ok(Members { pointer: self.pointer.clone(), members })
    }

    fn items(&self) -> Result<Vec<Part<'a>>, Malformed> {
        self.has_type(Type::Array)?;
        let items: Vec<&RawValue> =
            serde_json::from_str(self.raw.get()).map_err(|error| self.malformed(format!("is not valid: {error}")))?;
        let part = |(index, raw)| Part { pointer: format!("{}/{index}", self.pointer), raw };
        Ok(items.into_iter().enumerate().map(part).collect())
    }
}

impl<'a> Members<'a> {
    fn has(&self, key: &str) -> bool {
        self.members.get(key).is_some_and(|value| value.get() != "null")
    }

    fn required(&self, key: &str, wanted: Type) -> Result<Part<'a>, Malformed> {
        let pointer = format!("{}/{key}", self.pointer);
        match self.members.get(key) {
            Some(raw) => {
                let part = Part { pointer, raw };
                part.has_type(wanted).map(|()| part)
            }
            None => Err(Malformed { pointer, problem: "is missing".to_owned() }),
        }
    }

    /// A member that may be missing; `null` is the same.
    fn optional(&self, key: &str, wanted: Type) -> Result<Option<Part<'a>>, Malformed> {
        if self.has(key) { self.required(key, wanted).map(Some) } else { Ok(None) }
    }

    fn items(&self, key: &str) -> Result<Vec<Part<'a>>, Malformed> {
        self.required(key, Type::Array)?.items()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;
    use rehearse_testing::table;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    fn result(method: &str, result: &Value) -> String {
        let found = check_result(method, &to_raw_value(result).expect("JSON"));
        found.map_or_else(|malformed| malformed.to_string(), |()| "fine".to_owned())
    }

    fn item(member: &str, item: &Value) -> String {
        let found = check_item(member, 3, &to_raw_value(item).expect("JSON"));
        found.map_or_else(|malformed| malformed.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn a_malformed_content_block_is_named_by_its_pointer() {
        for [block, problem] in
            table::rows(include_str!("malformed.txt"), "a malformed content block is named by its pointer")
        {
            let (block, good) = (parsed(&block), json!({ "type": "text", "text": "" }));
            assert_eq!(result("tools/call", &json!({ "content": [good, block] })), format!("/content/1{problem}"));
            let message = json!({ "role": "user", "content": block });
            let in_prompt = result("prompts/get", &json!({ "messages": [message] }));
            assert_eq!(in_prompt, format!("/messages/0/content{problem}"));
        }
    }

    #[test]
    fn a_malformed_result_is_named_by_its_pointer() {
        for [method, value, problem] in
            table::rows(include_str!("malformed.txt"), "a malformed result is named by its pointer")
        {
            assert_eq!(result(&method, &parsed(&value)), problem);
        }
    }

    #[test]
    fn what_a_correct_peer_may_send_is_never_malformed() {
        let blocks = json!([
            { "type": "text", "text": "", "annotations": { "x": 1 }, "new": null },
            { "type": "image", "data": "", "mimeType": "" },
            { "type": "audio", "data": "", "mimeType": "" },
            { "type": "resource_link", "uri": "", "name": "", "size": 1 },
            { "type": "resource", "resource": { "uri": "", "text": "", "mimeType": null } },
            { "type": "resource", "resource": { "uri": "", "blob": "" } },
        ]);
        assert_eq!(result("tools/call", &json!({ "content": blocks, "isError": null })), "fine");
        assert_eq!(result("tools/call", &json!({ "structuredContent": [5] })), "fine");
        assert_eq!(result("prompts/get", &json!({ "messages": [], "description": "d" })), "fine");
        assert_eq!(result("tools/future", &json!(5)), "fine");
        let annotations = json!({ "title": "T", "readOnlyHint": true, "newHint": 5 });
        let tool =
            json!({ "name": "t", "inputSchema": {}, "description": null, "annotations": annotations, "icons": [] });
        assert_eq!(item("tools", &tool), "fine");
        assert_eq!(item("prompts", &json!({ "name": "p", "arguments": [{ "name": "a" }] })), "fine");
    }

    #[test]
    fn a_malformed_item_is_named_by_its_pointer() {
        for [member, value, problem] in
            table::rows(include_str!("malformed.txt"), "a malformed item is named by its pointer")
        {
            assert_eq!(item(&member, &parsed(&value)), problem);
        }
    }
}
