//! A bug as a scenario, which fails until the bug is mended.

use serde_json::{Map, Value as Json, json};

use crate::{
    private::CANARY,
    target::{Target, list_member},
};
use rehearse_document::yaml;
use rehearse_protocol::message::INVALID_PARAMS;
use rehearse_report::fuzz::{FuzzBug, Oracle, TargetKind};

/// What stack traces have, as far as a scenario has to see it.
const STACK: &str = r"Traceback \(most recent call last\)|\n\s+at .+:\d+|goroutine \d+ \[|panicked at ";

/// What private data has: the value of the variable, or a path in a home folder.
const PRIVATE: &str = r"canary-|/home/|/root/|/Users/|\\Users\\";

/// The text of a scenario file with the request. `server` is the server as it stands in a scenario, `protocol` the version in
/// which the bug was found. A server that is mended may answer with a result or with an error; only what it declares as
/// wrong must be an error. `None` for a bug that no expectation of a scenario sees.
pub fn scenario(bug: &FuzzBug, target: &Target, server: &Json, protocol: &str) -> Option<String> {
    if bug.oracle == Oracle::NotIdempotent {
        return None;
    }
    let input = plain(&bug.arguments);
    let (method, params) = target.request(&input);
    let step = match bug.target.kind {
        TargetKind::Tool => json!({ "call": { "tool": bug.target.name, "args": input } }),
        TargetKind::Prompt => json!({ "get_prompt": { "name": bug.target.name, "args": input } }),
        TargetKind::Template | TargetKind::Resource => json!({ "read_resource": params["uri"] }),
        TargetKind::Completion | TargetKind::List => json!({ "request": { "method": method, "params": params } }),
    };
    let mut step = step.as_object().cloned().unwrap_or_default();
    let expect = match (bug.oracle, bug.target.kind) {
        (Oracle::InvalidAccepted, TargetKind::Tool) => json!({ "isError": true }),
        (Oracle::InvalidAccepted, _) => json!({ "rpcError": { "code": INVALID_PARAMS } }),
        (Oracle::StackTrace | Oracle::PrivateData, TargetKind::Tool) => {
            let text = json!({ "properties": { "text": { "not": { "pattern": unwanted(bug.oracle) } } } });
            json!({ "isError": "any", "content": { "schema": { "type": "array", "items": text } } })
        }
        (Oracle::StackTrace | Oracle::PrivateData, _) => {
            let message = json!({ "properties": { "message": { "not": { "pattern": unwanted(bug.oracle) } } } });
            json!({ "rpcError": { "schema": message } })
        }
        (Oracle::Malformed, TargetKind::Completion) => {
            let values = json!({ "schema": { "type": "array", "maxItems": 100, "items": { "type": "string" } } });
            json!({ "isError": "any", "at": { "/completion/values": values } })
        }
        (Oracle::Malformed, TargetKind::List) => {
            let items = json!({ "type": "array", "items": { "type": "object", "required": ["name"] } });
            let list = json!({ "properties": { list_member(method): items }, "required": [list_member(method)] });
            json!({ "isError": "any", "result": { "schema": list } })
        }
        _ => json!({ "isError": "any" }),
    };
    step.insert("expect".to_owned(), expect);
    let before = bug
        .before
        .as_ref()
        .map(|it| json!({ "call": { "tool": it.name, "args": plain(&it.arguments) }, "expect": { "isError": "any" } }));
    let mut server = server.clone();
    if bug.oracle == Oracle::PrivateData && server.get("command").is_some() {
        server["env"][CANARY] = "canary-0".into();
    }
    let file = Map::from_iter([
        ("servers".to_owned(), json!({ "server": server })),
        ("matrix".to_owned(), json!({ "protocol": protocol })),
        ("steps".to_owned(), before.into_iter().chain([Json::from(step)]).collect()),
    ]);
    let message = bug.message.replace(['\n', '\r'], " ");
    let how = if bug.oracle == Oracle::Violation { "# It fails with `rehearse run --check`.\n" } else { "" };
    Some(format!("# {} in {}: {message}\n{how}{}", bug.oracle, bug.target, yaml::to_text(&file)))
}

/// What a text must not have.
fn unwanted(oracle: Oracle) -> &'static str {
    if oracle == Oracle::PrivateData { PRIVATE } else { STACK }
}

/// The value as a scenario has it: what would begin a template is written as a text in a template.
fn plain(value: &Json) -> Json {
    match value {
        Json::String(text) => {
            let mut found = String::new();
            let mut rest = text.as_str();
            while let Some(at) = rest.find(['{']) {
                let (before, from) = rest.split_at(at);
                found.push_str(before);
                let sign = ["{{", "{%", "{#"].into_iter().find(|sign| from.starts_with(sign));
                found.push_str(&sign.map_or_else(|| "{".to_owned(), |sign| format!("{{{{ '{sign}' }}}}")));
                rest = &from[sign.map_or(1, str::len)..];
            }
            (found + rest).into()
        }
        Json::Array(items) => items.iter().map(plain).collect(),
        Json::Object(members) => members.iter().map(|(name, member)| (name.clone(), plain(member))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_looks_like_a_template_is_written_as_a_text() {
        assert_eq!(
            plain(&json!({ "a": ["{{7*7}} {% {#", "{"] })),
            json!({ "a": ["{{ '{{' }}7*7}} {{ '{%' }} {{ '{#' }}", "{"] })
        );
    }
}
