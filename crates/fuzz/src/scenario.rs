//! A bug as a scenario, which fails until the bug is mended.

use serde_json::{Map, Value as Json, json};

use crate::oracle::EXCEPTION;
use crate::{private::CANARY, target::Target};
use rehearse_document::{template::without_templates, yaml};
use rehearse_protocol::{List, Operation, message::INVALID_PARAMS};
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
    let request = target.request(&bug.arguments);
    let expect = match (bug.oracle, bug.target.kind) {
        (Oracle::InvalidAccepted, TargetKind::Tool) => json!({ "isError": true }),
        (Oracle::InvalidAccepted, _) => json!({ "rpcError": { "code": INVALID_PARAMS } }),
        (Oracle::StackTrace | Oracle::PrivateData | Oracle::Exception, TargetKind::Tool) => {
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
            let member = List::of_method(&request.method)?.member();
            let list = json!({ "properties": { member: items }, "required": [member] });
            json!({ "isError": "any", "result": { "schema": list } })
        }
        _ => json!({ "isError": "any" }),
    };
    let step = |operation: Operation, expect: Json| {
        let (key, value) = operation.step();
        json!({ key: without_templates(value), "expect": expect })
    };
    let before = bug
        .before
        .as_ref()
        .map(|it| step(Operation::call(&it.name, it.arguments.as_object().cloned()), json!({ "isError": "any" })));
    let mut server = server.clone();
    if bug.oracle == Oracle::PrivateData && server.get("command").is_some() {
        server["env"][CANARY] = "canary-0".into();
    }
    let file = Map::from_iter([
        ("servers".to_owned(), json!({ "server": server })),
        ("matrix".to_owned(), json!({ "protocol": protocol })),
        ("steps".to_owned(), before.into_iter().chain([step(request, expect)]).collect()),
    ]);
    let message = bug.message.replace(['\n', '\r'], " ");
    let how = if bug.oracle == Oracle::Violation { "# It fails with `rehearse run --check`.\n" } else { "" };
    Some(format!("# {} in {}: {message}\n{how}{}", bug.oracle, bug.target, yaml::to_text(&file)))
}

/// What a text must not have.
fn unwanted(oracle: Oracle) -> &'static str {
    match oracle {
        Oracle::PrivateData => PRIVATE,
        Oracle::Exception => EXCEPTION,
        _ => STACK,
    }
}
